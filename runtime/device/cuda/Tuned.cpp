#include "runtime/device/cuda/Tuned.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/Plan/StatusMacros.h"
#include <algorithm>
#include <limits>
#include <vector>

namespace meshwork::runtime::cuda {
namespace {
/// Enough to tell candidates apart that differ by a few per cent; a plan has
/// some ten different products of about a millisecond.
constexpr int timedRuns = 5;
/// In turns, so that a clock that changes meets all; the best time counts.
constexpr int rounds = 3;
/// What is slower than this times the best is out after its first round.
constexpr float slack = 1.1f;
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

/// Of `timedRuns` runs, after one that loads the code.
absl::StatusOr<float> timeMs(const Driver &driver, Stream stream,
                             absl::FunctionRef<absl::Status()> run) {
  Event start = nullptr, end = nullptr;
  absl::Cleanup destroy = [&] {
    for (Event event : {start, end})
      if (event)
        (void)driver.eventDestroy(event);
  };
  auto check = [&](Result result, const char *call) {
    return driver.check(result, absl::StrCat(call, " for a timing"));
  };
  MESHWORK_RETURN_IF_ERROR(
      check(driver.eventCreate(&start, 0), "cuEventCreate"));
  MESHWORK_RETURN_IF_ERROR(check(driver.eventCreate(&end, 0), "cuEventCreate"));
  MESHWORK_RETURN_IF_ERROR(run());
  MESHWORK_RETURN_IF_ERROR(
      check(driver.eventRecord(start, stream), "cuEventRecord"));
  for (int i = 0; i < timedRuns; ++i)
    MESHWORK_RETURN_IF_ERROR(run());
  MESHWORK_RETURN_IF_ERROR(
      check(driver.eventRecord(end, stream), "cuEventRecord"));
  MESHWORK_RETURN_IF_ERROR(
      check(driver.eventSynchronize(end), "cuEventSynchronize"));
  float ms = 0;
  MESHWORK_RETURN_IF_ERROR(
      check(driver.eventElapsedMs(&ms, start, end), "cuEventElapsedTime"));
  return ms;
}

bool isPrintable(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
}
} // namespace

Tuned &Tuned::ofProcess() {
  static Tuned all;
  return all;
}

absl::StatusOr<std::string>
Tuned::get(const std::string &key,
           absl::FunctionRef<bool(absl::string_view)> accepts,
           absl::FunctionRef<absl::StatusOr<std::string>()> time) {
  std::lock_guard<std::mutex> lock(mutex);
  auto known = choices.find(key);
  if (known != choices.end() && accepts(known->second.text)) {
    known->second.isUsed = true;
    return known->second.text;
  }
  absl::StatusOr<std::string> timed = time();
  if (timed.ok())
    choices[key] = {*timed, true, true};
  return timed;
}

std::string Tuned::text(bool onlyUsed) const {
  std::lock_guard<std::mutex> lock(mutex);
  std::string text;
  for (const auto &[key, choice] : choices)
    if (choice.isUsed || !onlyUsed)
      absl::StrAppend(&text, choice.text, " ", key, "\n");
  return text;
}

void Tuned::adopt(absl::string_view text) {
  std::lock_guard<std::mutex> lock(mutex);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (parts.first.empty() || parts.second.empty() || !isPrintable(line))
      continue;
    Choice &choice = choices[std::string(parts.second)];
    if (choice.text != parts.first)
      choice = {std::string(parts.first)};
  }
}

Tuned::Counts Tuned::counts() const {
  std::lock_guard<std::mutex> lock(mutex);
  Counts counts;
  for (const auto &[key, choice] : choices)
    if (choice.isUsed)
      ++(choice.isTimed ? counts.timed : counts.known);
  return counts;
}

absl::StatusOr<size_t> fastestOf(const Driver &driver, Stream stream,
                                 size_t count,
                                 absl::FunctionRef<absl::Status(size_t)> run) {
  std::vector<Timed> all(count);
  for (size_t i = 0; i < count; ++i)
    all[i].candidate = i;
  absl::Status failure;
  for (int round = 0; round < rounds; ++round) {
    for (Timed &one : all) {
      absl::StatusOr<float> ms =
          timeMs(driver, stream, [&] { return run(one.candidate); });
      // A library may propose what then does not run on this device.
      if (!ms.ok() && !absl::IsUnimplemented(ms.status()))
        return ms.status();
      if (ms.ok())
        one.ms = std::min(one.ms, *ms);
      else
        failure = ms.status();
    }
    keepFast(all);
    if (all.empty())
      return failure;
  }
  return std::min_element(all.begin(), all.end())->candidate;
}

} // namespace meshwork::runtime::cuda
