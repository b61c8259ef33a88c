// Who is at fault when ranks wait for each other: followed from rank to rank,
// until one waits for nobody or does not answer.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwork::runtime {

class Transport;

/// What a rank waits for.
struct Waiting {
  bool active = false; // else it waits for nobody
  std::string what;    // a collective, or the like; else what it does, if known
  std::vector<uint32_t> peers;
  bool usesFiles = false; // waits for nobody, but for a disk: see FileWork
};

/// deadlineExceeded that names those whom rank `me` of `count` waits for since
/// `seconds`, at the end of all chains, and `me` itself if it waits for nobody.
/// Ok when at those ends are ranks at work on files alone: wait on.
/// `ask` tells what a rank waits for; nothing when it does not answer.
absl::Status
blame(uint32_t me, uint32_t count, const Waiting &mine, double seconds,
      absl::FunctionRef<std::optional<Waiting>(uint32_t rank)> ask);

/// While it lives, a rank reads or writes files. A disk may be slow, so peers
/// wait for it without a time-out, as long as its process answers.
///
///   FileWork work(transport, rank, "it writes weights"); // or an World
template <typename Host> class FileWork {
public:
  FileWork(Host &host, uint32_t rank, std::string what)
      : host(host), rank(rank) {
    host.setFileWork(rank, std::move(what));
  }
  FileWork(const FileWork &) = delete;
  ~FileWork() { host.setFileWork(rank, ""); }

private:
  Host &host;
  uint32_t rank;
};

/// A wait that a transport does not do itself, such as that for a stream of a
/// GPU. While it lasts others are told of it when they ask. One without peers
/// is none: who waits for nobody else is at fault, for what it says.
///
///   PeerWait wait(host, rank, {peers, what});
///   while (!done())
///     MESHWORK_RETURN_IF_ERROR(wait.check(seconds));
class PeerWait {
public:
  PeerWait(Transport &host, uint32_t rank, const Waiting &waiting);
  PeerWait(const PeerWait &) = delete;
  ~PeerWait();

  /// Now and then, by the rank's thread: ok for `seconds` since it began, then
  /// as `blame`. When that is no failure, for as long again; else what others
  /// are told stays: the rank fails.
  absl::Status check(double seconds);

private:
  Transport &host;
  uint32_t rank;
  Waiting waiting;
  std::chrono::steady_clock::time_point begin;
  bool told = false;
};

} // namespace meshwork::runtime
