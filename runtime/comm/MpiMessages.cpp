#include "runtime/comm/MpiMessages.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include <algorithm>
#include <thread>
#include <unistd.h>

namespace meshwork::runtime {
namespace {
/// MPI counts in int; larger messages travel in parts.
constexpr size_t maxMessage = size_t{1} << 30;
/// No notice is longer; a stranger's would be cut.
constexpr size_t maxNotice = 8000;
} // namespace

absl::StatusOr<Messages *> MpiMessages::start(uint32_t lanes) {
  absl::StatusOr<const MpiLibrary *> mpi = MpiLibrary::open();
  MESHWORK_RETURN_IF_ERROR(mpi.status());
  auto *messages = new MpiMessages(**mpi);
  MESHWORK_RETURN_IF_ERROR(messages->initialize(lanes));
  return messages;
}

absl::Status MpiMessages::check(int code, const char *call) const {
  if (code == 0)
    return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(call, " failed on rank ", me, ": ", mpi.errorText(code)));
}

absl::Status MpiMessages::initialize(uint32_t numLanes) {
  MESHWORK_RETURN_IF_ERROR(startThreads());
  MESHWORK_RETURN_IF_ERROR(findRank());
  MESHWORK_RETURN_IF_ERROR(copyWorld(control));
  lanes.resize(numLanes);
  for (MpiLibrary::Comm &lane : lanes)
    MESHWORK_RETURN_IF_ERROR(copyWorld(lane));
  return absl::OkStatus();
}

absl::Status MpiMessages::startThreads() {
  int provided = 0;
  MESHWORK_RETURN_IF_ERROR(check(
      mpi.Init_thread(nullptr, nullptr, MpiLibrary::threadMultiple, &provided),
      "MPI_Init_thread"));
  if (provided >= MpiLibrary::threadMultiple)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("this MPI gives thread level ", provided, ", expected ",
                   MpiLibrary::threadMultiple, ", MPI_THREAD_MULTIPLE"));
}

absl::Status MpiMessages::findRank() {
  int number = 0;
  MESHWORK_RETURN_IF_ERROR(
      check(mpi.Comm_rank(mpi.world, &number), "MPI_Comm_rank"));
  me = static_cast<uint32_t>(number);
  MESHWORK_RETURN_IF_ERROR(
      check(mpi.Comm_size(mpi.world, &number), "MPI_Comm_size"));
  count = static_cast<uint32_t>(number);
  return absl::OkStatus();
}

absl::Status MpiMessages::copyWorld(MpiLibrary::Comm &to) {
  MESHWORK_RETURN_IF_ERROR(check(mpi.Comm_dup(mpi.world, &to), "MPI_Comm_dup"));
  return check(mpi.Comm_set_errhandler(to, mpi.errorsReturn),
               "MPI_Comm_set_errhandler");
}

absl::Status MpiMessages::send(uint32_t lane, uint32_t peer, const void *data,
                               size_t bytes, std::vector<Pending> &pending,
                               int tag) {
  for (size_t at = 0; at < bytes; at += maxMessage) {
    Pending one{nullptr, peer, false};
    if (int code = mpi.Isend(static_cast<const char *>(data) + at,
                             static_cast<int>(std::min(maxMessage, bytes - at)),
                             mpi.byte, static_cast<int>(peer), tag, lanes[lane],
                             &one.request))
      return check(code, "MPI_Isend");
    pending.push_back(one);
  }
  return absl::OkStatus();
}

absl::Status MpiMessages::receive(uint32_t lane, uint32_t peer, void *data,
                                  size_t bytes, std::vector<Pending> &pending,
                                  int tag) {
  for (size_t at = 0; at < bytes; at += maxMessage) {
    Pending one{nullptr, peer, true};
    if (int code = mpi.Irecv(static_cast<char *>(data) + at,
                             static_cast<int>(std::min(maxMessage, bytes - at)),
                             mpi.byte, static_cast<int>(peer), tag, lanes[lane],
                             &one.request))
      return check(code, "MPI_Irecv");
    pending.push_back(one);
  }
  return absl::OkStatus();
}

absl::Status MpiMessages::poll(std::vector<Pending> &pending) {
  for (size_t i = pending.size(); i-- > 0;) {
    int done = 0;
    MpiLibrary::Status status;
    if (int code = mpi.Test(&pending[i].request, &done, &status))
      return check(code, pending[i].receives ? "receiving" : "sending");
    if (!done)
      continue;
    pending[i] = pending.back();
    pending.pop_back();
  }
  return absl::OkStatus();
}

/// Nothing may be written to memory that the caller is about to free.
void MpiMessages::giveUp(std::vector<Pending> &pending) {
  for (Pending &one : pending) {
    if (one.receives)
      (void)mpi.Cancel(&one.request);
    (void)mpi.Request_free(&one.request);
  }
  pending.clear();
}

void MpiMessages::post(uint32_t peer, int tag, std::string text) {
  std::lock_guard<std::mutex> lock(mutex);
  outbox.push_back({nullptr, std::move(text)});
  auto &[request, body] = outbox.back();
  // The other side may be gone; there is nobody to tell.
  (void)mpi.Isend(body.data(), static_cast<int>(body.size()), mpi.byte,
                  static_cast<int>(peer), tag, control, &request);
}

/// MPI must be asked.
absl::StatusOr<std::optional<Messages::Notice>>
MpiMessages::nextNotice(std::chrono::microseconds patience) {
  int found = 0;
  MpiLibrary::Status status;
  MESHWORK_RETURN_IF_ERROR(
      check(mpi.Iprobe(MpiLibrary::anySource, MpiLibrary::anyTag, control,
                       &found, &status),
            "MPI_Iprobe"));
  if (!found) {
    std::this_thread::sleep_for(patience);
    return std::nullopt;
  }
  std::string text(std::min(status.count, maxNotice), '\0');
  MESHWORK_RETURN_IF_ERROR(
      check(mpi.Recv(text.data(), static_cast<int>(text.size()), mpi.byte,
                     status.source, status.tag, control, &status),
            "MPI_Recv"));
  return Notice{static_cast<uint32_t>(status.source), status.tag,
                std::move(text)};
}

void MpiMessages::abort(int code) {
  mpi.Abort(mpi.world, code);
  ::_exit(code);
}

} // namespace meshwork::runtime
