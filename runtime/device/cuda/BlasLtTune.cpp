// Which of the library's proposals is fastest here, found by trying them.
#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/StatusMacros.h"
#include "runtime/device/cuda/BlasLt.h"
#include <map>
#include <mutex>

namespace meshwork::runtime::cuda {
namespace {
/// Enough to tell candidates apart that differ by a few per cent; a plan has
/// some ten different products of about a millisecond.
constexpr int timedRuns = 5;

/// Index of the fastest candidate by problem. The lists of candidates are the
/// same for the same problem, and the GPUs of a run are taken to be alike: what
/// several ranks compute must have the same bits on all.
struct Tuned {
  std::mutex mutex; // held while timing: nobody disturbs it or does it twice
  std::map<std::string, size_t> fastest;
};

Tuned &tuned() {
  static Tuned all;
  return all;
}
} // namespace

absl::Status BlasLtMatmul::tune(Stream stream) {
  if (candidates.size() == 1)
    return absl::OkStatus();
  std::lock_guard<std::mutex> lock(tuned().mutex);
  std::string key = problem.key();
  auto known = tuned().fastest.find(key);
  if (known != tuned().fastest.end() && known->second < candidates.size()) {
    chosen = known->second;
    return absl::OkStatus();
  }
  MESHWORK_ASSIGN_OR_RETURN(chosen, fastest(stream));
  tuned().fastest[key] = chosen;
  return absl::OkStatus();
}

std::string BlasLt::choices() {
  std::lock_guard<std::mutex> lock(tuned().mutex);
  std::string text;
  for (const auto &[key, index] : tuned().fastest)
    absl::StrAppend(&text, index, " ", key, "\n");
  return text;
}

void BlasLt::adopt(absl::string_view choices) {
  std::lock_guard<std::mutex> lock(tuned().mutex);
  for (absl::string_view line : absl::StrSplit(choices, '\n')) {
    std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    size_t index = 0;
    if (absl::SimpleAtoi(parts.first, &index))
      tuned().fastest[std::string(parts.second)] = index;
  }
}

absl::StatusOr<size_t> BlasLtMatmul::fastest(Stream stream) {
  size_t best = 0;
  float bestMs = -1;
  absl::Status failure;
  for (size_t i = 0; i < candidates.size(); ++i) {
    absl::StatusOr<float> ms = timeMs(i, stream);
    // The library may propose what then does not run on this device.
    if (!ms.ok() && ms.status().code() == absl::StatusCode::kUnimplemented) {
      failure = ms.status();
      continue;
    }
    if (!ms.ok())
      return ms.status();
    if (bestMs < 0 || *ms < bestMs) {
      best = i;
      bestMs = *ms;
    }
  }
  if (bestMs < 0)
    return failure;
  return best;
}

/// Of `timedRuns` runs, after one that loads the code.
absl::StatusOr<float> BlasLtMatmul::timeMs(size_t candidate, Stream stream) {
  Event start = nullptr, end = nullptr;
  absl::Cleanup destroy = [&] {
    for (Event event : {start, end})
      if (event)
        (void)driver.eventDestroy(event);
  };
  auto check = [&](Result result, const char *call) {
    return driver.check(result, what(call));
  };
  MESHWORK_RETURN_IF_ERROR(
      check(driver.eventCreate(&start, 0), "cuEventCreate"));
  MESHWORK_RETURN_IF_ERROR(check(driver.eventCreate(&end, 0), "cuEventCreate"));
  MESHWORK_RETURN_IF_ERROR(run(candidates[candidate], stream, false));
  MESHWORK_RETURN_IF_ERROR(
      check(driver.eventRecord(start, stream), "cuEventRecord"));
  for (int i = 0; i < timedRuns; ++i)
    MESHWORK_RETURN_IF_ERROR(run(candidates[candidate], stream, false));
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
