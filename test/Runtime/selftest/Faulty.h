// Ranks as threads, on a transport with a planted fault.
#pragma once

#include "runtime/comm/InProcess.h"
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

namespace meshwork::runtime::test {

/// Passes everything on, except what a test changes.
class Faulty : public Transport {
public:
  using SpoilCollective =
      std::function<void(uint32_t rank, const CollectiveRequest &request)>;
  using DelayTransfer = std::function<double(uint32_t rank, uint32_t peer)>;

  Faulty(Mesh mesh, SpoilCollective spoil, DelayTransfer delay)
      : real(std::move(mesh), {60, false}), spoil(std::move(spoil)),
        delay(std::move(delay)) {}

  uint32_t numRanks() const override { return real.numRanks(); }
  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(uint32_t rank, CollectiveRequest request) override {
    auto prepared = real.prepare(rank, request);
    if (!prepared.ok() || !spoil)
      return prepared;
    return std::make_unique<Spoilt>(
        *std::move(prepared), [this, rank, request] { spoil(rank, request); });
  }
  absl::StatusOr<std::unique_ptr<PreparedTransfer>>
  prepareTransfer(uint32_t rank, PairRequest request) override {
    double seconds = delay ? delay(rank, request.peer) : 0;
    auto prepared = real.prepareTransfer(rank, std::move(request));
    if (!prepared.ok() || seconds == 0)
      return prepared;
    return std::make_unique<Delayed>(*std::move(prepared), seconds);
  }
  absl::StatusOr<uint32_t> agree(uint32_t rank, uint32_t flags,
                                 const char *what) override {
    return real.agree(rank, flags, what);
  }
  absl::StatusOr<std::vector<std::string>>
  exchange(uint32_t rank, std::string mine, const char *what) override {
    return real.exchange(rank, std::move(mine), what);
  }
  absl::Status gather(uint32_t rank, std::string mine,
                      Deliver deliver) override {
    return real.gather(rank, std::move(mine), deliver);
  }
  void abort(uint32_t rank, const absl::Status &why) override {
    real.abort(rank, why);
  }
  void setWaiting(uint32_t rank, const Waiting &waiting) override {
    real.setWaiting(rank, waiting);
  }
  void setFileWork(uint32_t rank, std::string what) override {
    real.setFileWork(rank, std::move(what));
  }
  absl::Status blame(uint32_t rank, const Waiting &mine,
                     double seconds) override {
    return real.blame(rank, mine, seconds);
  }
  absl::Status failure() const override { return real.failure(); }

private:
  struct Spoilt : PreparedCollective {
    Spoilt(std::unique_ptr<PreparedCollective> inner,
           std::function<void()> spoil)
        : inner(std::move(inner)), spoil(std::move(spoil)) {}
    absl::Status run(ParallelFor parallel, CommTimes &times) override {
      absl::Status status = inner->run(parallel, times);
      spoil();
      return status;
    }
    std::unique_ptr<PreparedCollective> inner;
    std::function<void()> spoil;
  };
  struct Delayed : PreparedTransfer {
    Delayed(std::unique_ptr<PreparedTransfer> inner, double seconds)
        : inner(std::move(inner)), seconds(seconds) {}
    absl::Status start(ParallelFor parallel) override {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      return inner->start(parallel);
    }
    absl::Status finish(ParallelFor parallel, CommTimes &times) override {
      return inner->finish(parallel, times);
    }
    std::unique_ptr<PreparedTransfer> inner;
    double seconds;
  };

  InProcessTransport real;
  SpoilCollective spoil;
  DelayTransfer delay;
};

/// `body` on each rank at once; what rank 0 returns.
template <typename Body> auto onAllRanks(Transport &transport, Body body) {
  std::vector<std::thread> others;
  for (uint32_t rank = 1; rank < transport.numRanks(); ++rank)
    others.emplace_back([&body, rank] { (void)body(rank); });
  auto result = body(0);
  for (std::thread &one : others)
    one.join();
  return result;
}

} // namespace meshwork::runtime::test
