#include "runtime/device/cuda/TimeRow.h"
#include "lib/Plan/StatusMacros.h"
#include <algorithm>

namespace meshwork::runtime::cuda {

absl::StatusOr<double> secondsInRow(const Gpu &gpu, Queue &queue, int length,
                                    absl::FunctionRef<absl::Status()> put) {
  EventHandle begin, end;
  MESHWORK_ASSIGN_OR_RETURN(begin, EventHandle::create(gpu, true));
  MESHWORK_ASSIGN_OR_RETURN(end, EventHandle::create(gpu, true));
  MESHWORK_RETURN_IF_ERROR(queue.record(begin));
  for (int i = 0; i < length; ++i)
    MESHWORK_RETURN_IF_ERROR(put());
  MESHWORK_RETURN_IF_ERROR(queue.record(end));
  MESHWORK_RETURN_IF_ERROR(queue.finish());
  float ms = 0;
  MESHWORK_RETURN_IF_ERROR(gpu.driver().check(
      gpu.driver().eventElapsedMs(&ms, begin.get(), end.get()),
      "reading the time of a row"));
  constexpr float leastMs = 1e-3f; // about what the clock tells apart
  return static_cast<double>(std::max(ms, leastMs)) / 1e3 / length;
}

int rowLength(double seconds) {
  constexpr double ofRow = 0.02;
  constexpr double most = 500;
  return static_cast<int>(std::clamp(ofRow / seconds, 1.0, most));
}

absl::StatusOr<double> meanSeconds(const Gpu &gpu, Queue &queue,
                                   absl::FunctionRef<absl::Status()> put) {
  double first = 0;
  MESHWORK_RETURN_IF_ERROR(put());
  MESHWORK_ASSIGN_OR_RETURN(first, secondsInRow(gpu, queue, 1, put));
  return secondsInRow(gpu, queue, rowLength(first), put);
}

absl::StatusOr<double> fastestRow(const Gpu &gpu, Queue &queue, int length,
                                  absl::FunctionRef<absl::Status()> put) {
  constexpr int rows = 5;
  double best = 0;
  MESHWORK_RETURN_IF_ERROR(put()); // what loads, loads now
  for (int i = 0; i < rows; ++i) {
    double seconds = 0;
    MESHWORK_ASSIGN_OR_RETURN(seconds, secondsInRow(gpu, queue, length, put));
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

} // namespace meshwork::runtime::cuda
