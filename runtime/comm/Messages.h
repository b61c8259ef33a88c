// Messages from one process to another, by whatever carries them: MPI, or
// sockets. World adds deadlines, and who is at fault when one does not come.
#pragma once

#include "absl/status/statusor.h"
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwork::runtime {

class Messages {
public:
  virtual ~Messages() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;

  /// A message under way: what the carrier knows it by. Memory stays until it
  /// is done or given up; what is sent stays as it is.
  struct Pending {
    void *request;
    uint32_t peer;
    bool receives;
  };
  /// Both add what is under way to `pending`; messages of any size, also 0,
  /// which is none. Those of one lane and tag between two ranks arrive in
  /// order. Lanes may be used by a thread each.
  virtual absl::Status send(uint32_t lane, uint32_t peer, const void *data,
                            size_t bytes, std::vector<Pending> &pending,
                            int tag) = 0;
  virtual absl::Status receive(uint32_t lane, uint32_t peer, void *data,
                               size_t bytes, std::vector<Pending> &pending,
                               int tag) = 0;
  /// Removes what is done.
  virtual absl::Status poll(std::vector<Pending> &pending) = 0;
  /// Removes all of it: its memory may go.
  virtual void giveUp(std::vector<Pending> &pending) = 0;

  /// What processes tell each other beside their data.
  struct Notice {
    uint32_t from;
    int tag;
    std::string text;
  };
  /// The tag of a notice that its process has ended, or is not reached any
  /// more. Not every carrier finds out.
  static constexpr int gone = 0;
  /// Leaves at once, whatever its receiver does, which may be gone.
  virtual void post(uint32_t peer, int tag, std::string text) = 0;
  /// By one thread: the next notice, nothing when none has come in `patience`.
  /// Where the carrier moves messages only when it is called, this calls it.
  virtual absl::StatusOr<std::optional<Notice>>
  nextNotice(std::chrono::microseconds patience) = 0;

  /// All ranks together, at a good end.
  virtual void finish() = 0;
  /// Ends all processes with `code`, or at least this one.
  [[noreturn]] virtual void abort(int code) = 0;
};

} // namespace meshwork::runtime
