// Which of the library's proposals is fastest here, found by trying them.
#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/StatusMacros.h"
#include "runtime/device/cuda/BlasLt.h"
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>

namespace meshwork::runtime::cuda {
namespace {
/// Enough to tell candidates apart that differ by a few per cent; a plan has
/// some ten different products of about a millisecond.
constexpr int timedRuns = 5;
/// In turns, so that a clock that changes meets all; the best time counts.
constexpr int rounds = 3;
/// What is slower than this times the best is out after its first round.
constexpr float slack = 1.1f;

/// The fastest candidate by problem, as BlasLtMatmul::describe has it. The
/// lists of candidates are the same for the same problem, and the GPUs of a run
/// are taken to be alike: what several ranks compute must have the same bits on
/// all.
struct Tuned {
  std::mutex mutex; // held while timing: nobody disturbs it or does it twice
  std::map<std::string, std::string> fastest;
};

Tuned &tuned() {
  static Tuned all;
  return all;
}

constexpr float never = std::numeric_limits<float>::infinity();
struct Timed {
  size_t candidate = 0;
  float ms = never;
  bool operator<(const Timed &other) const { return ms < other.ms; }
};

void keepFast(std::vector<Timed> &all) {
  float limit = std::min_element(all.begin(), all.end())->ms * slack;
  std::erase_if(
      all, [&](const Timed &one) { return one.ms == never || one.ms > limit; });
}
} // namespace

std::string BlasLtMatmul::key() const {
  return absl::StrCat(ways[0].product->key(), ways[0].rest ? " beside" : "");
}

/// The algorithm itself: its place among the proposals may be another's in a
/// process or a version to come.
std::string BlasLtMatmul::describe(const Candidate &candidate) const {
  const Way &way = ways[candidate.way];
  const blas::Algorithm &algorithm =
      way.product->algorithms()[candidate.algorithm].algorithm;
  std::string bytes(sizeof(algorithm), '\0');
  std::memcpy(bytes.data(), &algorithm, sizeof(algorithm));
  return absl::StrCat(way.rest ? "beside:" : "whole:",
                      absl::BytesToHexString(bytes));
}

std::optional<size_t> BlasLtMatmul::find(absl::string_view description) const {
  for (size_t i = 0; i < candidates.size(); ++i)
    if (describe(candidates[i]) == description)
      return i;
  return std::nullopt;
}

absl::Status BlasLtMatmul::tune(Stream stream) {
  if (hasEpilogue() && !triedBeside)
    if (absl::Status beside = addBeside(); !absl::IsUnimplemented(beside))
      MESHWORK_RETURN_IF_ERROR(beside);
  if (!ways[0].rest)
    why = "faster here than the epilogue of cuBLASLt";
  if (candidates.size() == 1)
    return absl::OkStatus();
  std::lock_guard<std::mutex> lock(tuned().mutex);
  std::string &known = tuned().fastest[key()];
  if (std::optional<size_t> found = find(known)) {
    chosen = *found;
    return absl::OkStatus();
  }
  MESHWORK_ASSIGN_OR_RETURN(chosen, fastest(stream));
  known = describe(candidates[chosen]);
  return absl::OkStatus();
}

std::string BlasLt::choices() {
  std::lock_guard<std::mutex> lock(tuned().mutex);
  std::string text;
  for (const auto &[key, candidate] : tuned().fastest)
    if (!candidate.empty())
      absl::StrAppend(&text, candidate, " ", key, "\n");
  return text;
}

void BlasLt::adopt(absl::string_view choices) {
  std::lock_guard<std::mutex> lock(tuned().mutex);
  for (absl::string_view line : absl::StrSplit(choices, '\n')) {
    std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (!parts.second.empty())
      tuned().fastest[std::string(parts.second)] = std::string(parts.first);
  }
}

absl::StatusOr<size_t> BlasLtMatmul::fastest(Stream stream) {
  std::vector<Timed> all(candidates.size());
  for (size_t i = 0; i < all.size(); ++i)
    all[i].candidate = i;
  absl::Status failure;
  for (int round = 0; round < rounds; ++round) {
    for (Timed &one : all) {
      absl::StatusOr<float> ms = timeMs(candidates[one.candidate], stream);
      // The library may propose what then does not run on this device.
      if (absl::IsUnimplemented(ms.status())) {
        failure = ms.status();
        one.ms = never;
        continue;
      }
      MESHWORK_RETURN_IF_ERROR(ms.status());
      one.ms = std::min(one.ms, *ms);
    }
    keepFast(all);
    if (all.empty())
      return failure;
  }
  return std::min_element(all.begin(), all.end())->candidate;
}

/// Of `timedRuns` runs, after one that loads the code.
absl::StatusOr<float> BlasLtMatmul::timeMs(const Candidate &candidate,
                                           Stream stream) {
  const Driver &driver = blas.driver;
  Event start = nullptr, end = nullptr;
  absl::Cleanup destroy = [&] {
    for (Event event : {start, end})
      if (event)
        (void)driver.eventDestroy(event);
  };
  auto check = [&](Result result, const char *call) {
    return driver.check(
        result,
        absl::StrCat(call, " for the timing of matmul \"", request.name, "\""));
  };
  MESHWORK_RETURN_IF_ERROR(
      check(driver.eventCreate(&start, 0), "cuEventCreate"));
  MESHWORK_RETURN_IF_ERROR(check(driver.eventCreate(&end, 0), "cuEventCreate"));
  MESHWORK_RETURN_IF_ERROR(run(candidate, stream, false));
  MESHWORK_RETURN_IF_ERROR(
      check(driver.eventRecord(start, stream), "cuEventRecord"));
  for (int i = 0; i < timedRuns; ++i)
    MESHWORK_RETURN_IF_ERROR(run(candidate, stream, false));
  MESHWORK_RETURN_IF_ERROR(
      check(driver.eventRecord(end, stream), "cuEventRecord"));
  MESHWORK_RETURN_IF_ERROR(
      check(driver.eventSynchronize(end), "cuEventSynchronize"));
  float ms = 0;
  MESHWORK_RETURN_IF_ERROR(
      check(driver.eventElapsedMs(&ms, start, end), "cuEventElapsedTime"));
  return ms;
}

} // namespace meshwork::runtime::cuda
