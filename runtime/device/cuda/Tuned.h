// What timing has found to be fastest on this GPU, by problem: known to all
// ranks, and kept on disk for later runs.
//
//   Tuned &tuned = Tuned::ofProcess();
//   tuned.adopt(readTuned(path));             // rank 0
//   absl::StatusOr<std::string> choice = tuned.get(key, isOneOfThese, time);
//   status = writeTuned(path, tuned.text()); // rank 0
//   tuned.adopt(textOfRank0);                 // the others
//
// A choice names what to run so that a process, or a version, with other
// candidates knows it for another's: it is timed again then.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/device/cuda/Driver.h"
#include <map>
#include <mutex>
#include <string>

namespace meshwork::runtime::cuda {

/// By ranks in threads of their own. The GPUs of a run are taken to be alike:
/// what several ranks compute must have the same bits on all.
class Tuned {
public:
  static Tuned &ofProcess();

  /// The choice for `key` where one is known that `accepts`, else what `time`
  /// finds, which holds the lock: nobody disturbs it or does it twice.
  absl::StatusOr<std::string>
  get(const std::string &key,
      absl::FunctionRef<bool(absl::string_view)> accepts,
      absl::FunctionRef<absl::StatusOr<std::string>()> time);

  /// A line "CHOICE KEY" for each; those that `get` has returned, or all.
  std::string text(bool onlyUsed) const;
  /// Of such lines, from anywhere; leaves out what is none.
  void adopt(absl::string_view text);

  struct Counts {
    size_t timed = 0, known = 0; // of different keys that `get` was asked for
  };
  Counts counts() const;

private:
  struct Choice {
    std::string text;
    bool isUsed = false, isTimed = false;
  };
  mutable std::mutex mutex;
  std::map<std::string, Choice> choices; // by key
};

/// The fastest of `count` candidates, which `run` puts into `stream`: several
/// rounds, in turns, of what is not clearly slower. One that is unimplemented
/// is out; when all are, its error.
absl::StatusOr<size_t> fastestOf(const Driver &driver, Stream stream,
                                 size_t count,
                                 absl::FunctionRef<absl::Status(size_t)> run);

/// Where choices for this version of cuBLASLt and this GPU are kept: a file in
/// $MESHWORK_CACHE_DIR, else $XDG_CACHE_HOME/meshwork, else ~/.cache/meshwork;
/// "" where there is no such folder or the first is set and empty.
std::string tunedPath(size_t version, absl::string_view gpu);
/// For `adopt`; "" when there is no such file or it is none of these.
std::string readTuned(const std::string &path);
/// Makes the folder too; the file is there whole or as it was.
absl::Status writeTuned(const std::string &path, const Tuned &tuned);

} // namespace meshwork::runtime::cuda
