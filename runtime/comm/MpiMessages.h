// Messages by Open MPI.
#pragma once

#include "runtime/comm/Messages.h"
#include "runtime/comm/MpiLibrary.h"
#include <deque>
#include <memory>
#include <mutex>

namespace meshwork::runtime {

class MpiMessages : public Messages {
public:
  /// Starts MPI; once in a process. Lives to the process's end, since MPI may
  /// hold on to memory after a failure.
  static absl::StatusOr<Messages *> start(uint32_t lanes);

  uint32_t rank() const override { return me; }
  uint32_t size() const override { return count; }
  absl::Status send(uint32_t lane, uint32_t peer, const void *data,
                    size_t bytes, std::vector<Pending> &pending,
                    int tag) override;
  absl::Status receive(uint32_t lane, uint32_t peer, void *data, size_t bytes,
                       std::vector<Pending> &pending, int tag) override;
  absl::Status poll(std::vector<Pending> &pending) override;
  void giveUp(std::vector<Pending> &pending) override;
  void post(uint32_t peer, int tag, std::string text) override;
  absl::StatusOr<std::optional<Notice>>
  nextNotice(std::chrono::microseconds patience) override;
  void finish() override { mpi.Finalize(); }
  [[noreturn]] void abort(int code) override;

private:
  explicit MpiMessages(const MpiLibrary &mpi) : mpi(mpi) {}
  absl::Status initialize(uint32_t lanes);
  absl::Status startThreads();
  absl::Status findRank();
  absl::Status copyWorld(MpiLibrary::Comm &to);
  absl::Status check(int code, const char *call) const;

  const MpiLibrary &mpi;
  uint32_t me = 0, count = 1;
  std::vector<MpiLibrary::Comm> lanes;
  MpiLibrary::Comm control = nullptr;
  std::mutex mutex; // guards what follows
  std::deque<std::pair<MpiLibrary::Request, std::string>> outbox;
};

} // namespace meshwork::runtime
