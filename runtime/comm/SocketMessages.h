// Messages by sockets (ZeroMQ), for processes that any launcher started.
//
// Rank 0 listens where all know it; the others tell it where they listen, and
// it tells all (Meeting.h). Then each sends to each other one directly. A
// message of some size is offered first and sent once the other side has taken
// it, so that nobody keeps more than has been planned.
#pragma once

#include "runtime/comm/Meeting.h"
#include "runtime/comm/Messages.h"
#include "runtime/comm/Zmq.h"
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>

namespace meshwork::runtime {

class SocketMessages : public Messages {
public:
  /// Meets all other processes, for `timeoutSeconds` at most. Lives to the
  /// process's end.
  static absl::StatusOr<Messages *> start(const MeetingPlace &place,
                                          double timeoutSeconds);

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
  void finish() override;
  [[noreturn]] void abort(int code) override;

private:
  /// One part of a message that is under way.
  struct Request {
    uint32_t peer;
    std::byte *data;
    size_t bytes;
    uint64_t number;          // of what is sent
    bool isMoving = false;    // its memory is in use
    std::atomic<size_t> left; // bytes
    Request(uint32_t peer, std::byte *data, size_t bytes, uint64_t number)
        : peer(peer), data(data), bytes(bytes), number(number), left(bytes) {}
    /// It may be gone after its last byte.
    void take(size_t moved) {
      left.fetch_sub(moved, std::memory_order_acq_rel);
    }
    bool isDone() const { return left.load(std::memory_order_acquire) == 0; }
  };
  using Key = std::tuple<uint32_t, uint32_t, int>; // peer, lane, tag
  /// What came before it was asked for: all of it, or an offer.
  struct Arrival {
    uint64_t number;
    size_t bytes;
    std::string content;
    bool isOffer;
  };
  /// To go out, by the thread that has the sockets.
  struct Out {
    uint32_t peer;
    WireHeader header;
    std::string content;
    Request *request = nullptr; // or its memory
  };

  SocketMessages(std::unique_ptr<Meeting> meeting);
  WireHeader header(WireKind kind, uint32_t lane = 0, int tag = 0,
                    uint64_t number = 0, size_t bytes = 0) const;
  void push(Out out); // with `mutex`
  void ring();        // wakes the thread that has the sockets
  absl::Status sendPart(const Key &key, std::byte *data, size_t bytes,
                        std::vector<Pending> &pending);
  absl::Status receivePart(const Key &key, std::byte *data, size_t bytes,
                           std::vector<Pending> &pending);
  absl::Status fail(std::string why); // with `mutex`
  void end();

  // The thread that has the sockets. Before all ranks know each other nothing
  // is sent: who does not know a rank yet drops what it says.
  void run();
  void sendAll();
  void sendOne(Out &out);
  void takeAll();
  void take(const WireHeader &from, const ZmqFrame &content);
  void takeData(const WireHeader &from, const ZmqFrame &content);
  void arrive(const WireHeader &from, const ZmqFrame &content);
  void watch(uint32_t peer);
  void addReady();
  void begin();
  void sendData(const Out &out, const Meeting::Peer &peer);
  void closeUnreachable();
  static void sent(void *data, void *request);

  std::unique_ptr<Meeting> meeting;
  uint32_t me, count;
  int wake; // an eventfd
  std::atomic<bool> stopping{false}, endsWell{false};
  std::mutex mutex; // guards what follows
  std::condition_variable noticed, moved;
  std::deque<Out> outbox;
  std::vector<uint32_t> unreachable; // peers that no data goes to any more
  std::deque<Notice> notices;
  std::map<uint64_t, Request *> offered;                       // by number
  std::map<std::pair<uint32_t, uint64_t>, Request *> expected; // by peer
  std::map<Key, std::deque<Request *>> asked;
  std::map<Key, std::deque<Arrival>> arrived;
  std::vector<bool> saidGoodbye; // or are known to be gone
  uint32_t numReady = 1;         // of rank 0
  uint32_t numHere = 0;          // connections of others
  bool mayBegin = false, hasEnded = false;
  uint64_t next = 1; // number of an offer
  absl::Status broken;
  std::thread thread;
};

} // namespace meshwork::runtime
