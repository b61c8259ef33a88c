// From where a run that could not save at its end is to go on.
#pragma once

#include "meshwork/Runtime/Run.h"
#include <atomic>
#include <thread>

namespace meshwork::runtime {

/// A failure after which nothing could be saved, with where to go on from.
absl::Status withCheckpoint(absl::Status failure, const RunOptions &options);

/// A launcher asks all ranks to end when one of them has died, and kills them
/// soon after: the rank that lives cannot tell that from a request to save. So
/// it tells at once what to do if no checkpoint comes. Until it is destroyed.
class TellAtStop {
public:
  /// `isOn` false: does nothing.
  TellAtStop(const RunOptions &options, bool isOn);
  ~TellAtStop();
  TellAtStop(const TellAtStop &) = delete;

private:
  void watch() const;

  const RunOptions &options;
  std::atomic<bool> isOver = false;
  std::thread thread;
};

} // namespace meshwork::runtime
