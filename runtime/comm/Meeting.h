// How processes find each other, and the sockets between them.
#pragma once

#include "runtime/comm/Zmq.h"
#include <array>
#include <memory>
#include <set>
#include <vector>

namespace meshwork::runtime {

/// Where rank 0 listens, and who is who.
struct MeetingPlace {
  uint32_t rank = 0, size = 1;
  std::string host; // of rank 0; an address of IPv6 in brackets
  uint16_t port = 0;
  std::optional<std::string> secret; // of the job
  std::string own; // where others reach this process; "": found out
  /// What starts this process again when it fails (--restarts); "": nothing.
  std::string supervisor;
};

/// Those that have come to rank 0, by rank.
struct Arrivals {
  std::vector<std::string> endpoints, supervisors;
};

enum class WireKind : uint32_t {
  hello, // to rank 0: where this rank listens
  table, // from rank 0: where all listen
  stop,  // or why nobody begins; its tag is the status's code
  ready, // to rank 0: this rank knows
  go,    // from rank 0: all know
  here,  // on each connection, the first
  eager, // a small message
  offer, // of a large one
  take,  // which may come now
  data,  // and comes
  notice,
  goodbye
};

/// What stands in front of each message.
struct WireHeader {
  static constexpr uint32_t magicNumber = 0x314b574d; // MWK1
  uint32_t magic;
  WireKind kind;
  std::array<uint64_t, 2> token; // of this start; hello has none
  uint32_t from, lane;
  int32_t tag;
  uint32_t size; // of the world
  uint64_t number, bytes;
  uint64_t at = 0; // of data: where it begins in the message
};

/// The sockets of one process. After start(), of one thread.
class Meeting {
public:
  /// Waits for all. deadlineExceeded names who did not come; invalidArgument
  /// tells how they were started wrongly, failedPrecondition what the host
  /// lacks.
  static absl::StatusOr<std::unique_ptr<Meeting>>
  start(const MeetingPlace &place, double timeoutSeconds);

  /// To a peer: what is large and what is small have a socket each, so that
  /// notices do not wait.
  struct Peer {
    ZmqSocket data, control, monitor;
  };

  const ZmqLibrary &zmq() const { return context->zmq; }
  MeetingPlace place;
  std::array<uint64_t, 2> token{};
  std::unique_ptr<ZmqContext> context;
  std::vector<std::optional<Peer>> peers; // by rank
  std::optional<ZmqContext::Inbox> inbox;

  /// A message whose header has the form and the token of this start; false
  /// when none is there. Others are dropped.
  bool receive(WireHeader &header, ZmqFrame &content);
  /// Of a message of this rank.
  WireHeader header(WireKind kind) const;
  bool sendText(const ZmqSocket &to, const WireHeader &header,
                const std::string &text) const;
  /// All are connected: strangers no longer can be.
  void closeDoors() { inbox->close(zmq()); }
  /// What still leaves has `lingerMs`: of peers that are gone nobody takes it.
  void close(int lingerMs);

private:
  absl::Status listen();
  absl::StatusOr<std::set<std::string>> doors() const; // where it listens
  absl::StatusOr<std::string> ownAddress() const;      // where it is reached
  absl::Status lead(double timeoutSeconds);            // rank 0
  absl::Status gather(double timeoutSeconds, Arrivals &all);
  absl::Status admit(const WireHeader &header, const std::string &said,
                     Arrivals &all) const;
  void tellAll(const std::vector<std::string> &endpoints,
               const absl::Status &why);
  absl::Status join(double timeoutSeconds); // the others
  absl::Status connectAll(const std::vector<std::string> &endpoints);
  bool wait(double seconds); // for a message
  absl::Status checkReach(const std::vector<std::string> &endpoints) const;
};

} // namespace meshwork::runtime
