// Transfers between threads: values, order, failures.
#include "runtime/comm/InProcess.h"
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

namespace meshwork::runtime {
namespace {

void alone(int64_t items, absl::FunctionRef<void(int64_t, int64_t)> body) {
  body(0, items);
}

/// [4, 3], with its rows `stride` elements apart.
Strided rows(std::vector<float> &values, int64_t stride) {
  return {reinterpret_cast<std::byte *>(values.data()),
          plan::DType::f32,
          {4, 3},
          {stride, 1}};
}

/// Two ranks with a transfer from 0 to 1 prepared.
struct Two {
  explicit Two(double timeoutSeconds = 60)
      : transport(Mesh({2}), {.timeoutSeconds = timeoutSeconds}) {
    std::iota(from.begin(), from.end(), 0.0f);
    prepare(0, 1, true, rows(from, 5), send);
    prepare(1, 0, false, rows(to, 3), receive);
  }
  void prepare(uint32_t rank, uint32_t peer, bool sends, Strided part,
               std::unique_ptr<PreparedTransfer> &made) {
    auto one = transport.prepareTransfer(rank, {sends, peer, 0, {part}, "x"});
    EXPECT_TRUE(one.ok()) << one.status();
    made = std::move(*one);
  }

  InProcessTransport transport;
  std::vector<float> from = std::vector<float>(20), to = std::vector<float>(12);
  std::unique_ptr<PreparedTransfer> send, receive;
  CommTimes times;
};

TEST(Transfers, endForEitherSideOnceBothHaveStarted) {
  for (bool senderFirst : {false, true}) {
    Two two;
    EXPECT_TRUE(two.receive->start(alone).ok());
    EXPECT_TRUE(two.send->start(alone).ok());
    // The other one does nothing meanwhile.
    PreparedTransfer &first = senderFirst ? *two.send : *two.receive;
    EXPECT_TRUE(first.finish(alone, two.times).ok());
    EXPECT_EQ(two.to,
              (std::vector<float>{0, 1, 2, 5, 6, 7, 10, 11, 12, 15, 16, 17}));
    two.from.assign(20, -1.0f);
    PreparedTransfer &second = senderFirst ? *two.receive : *two.send;
    EXPECT_TRUE(second.finish(alone, two.times).ok());
    EXPECT_EQ(two.to[0], 0);
  }
}

TEST(Transfers, manyMeetInTheOrderOfTheirStarts) {
  Two two;
  std::vector<float> more(20, 7.0f), last(12);
  std::unique_ptr<PreparedTransfer> nextSend, nextReceive;
  two.prepare(0, 1, true, rows(more, 5), nextSend);
  two.prepare(1, 0, false, rows(last, 3), nextReceive);
  for (PreparedTransfer *one :
       {two.send.get(), nextSend.get(), two.receive.get(), nextReceive.get()})
    EXPECT_TRUE(one->start(alone).ok());
  std::thread receiver([&] {
    CommTimes times;
    EXPECT_TRUE(nextReceive->finish(alone, times).ok());
    EXPECT_TRUE(two.receive->finish(alone, times).ok());
  });
  EXPECT_TRUE(two.send->finish(alone, two.times).ok());
  EXPECT_TRUE(nextSend->finish(alone, two.times).ok());
  receiver.join();
  EXPECT_EQ(two.to[4], 6);
  EXPECT_EQ(last[4], 7);
}

TEST(Transfers, timeoutNamesWhoDidNotCome) {
  Two two(0.05);
  EXPECT_TRUE(two.send->start(alone).ok());
  absl::Status status = two.send->finish(alone, two.times);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_NE(status.message().find("rank 1 did not arrive at send \"x\""),
            std::string::npos)
      << status;
}

TEST(Transfers, aFailedRankWakesTheOther) {
  Two two;
  EXPECT_TRUE(two.receive->start(alone).ok());
  std::thread sender(
      [&] { two.transport.abort(0, absl::InternalError("out of luck")); });
  absl::Status status = two.receive->finish(alone, two.times);
  sender.join();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_NE(status.message().find("rank 0 failed: out of luck"),
            std::string::npos)
      << status;
}

} // namespace
} // namespace meshwork::runtime
