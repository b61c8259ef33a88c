// Collectives between threads: values, bits, groups, failures.
#include "runtime/comm/InProcess.h"
#include "runtime/comm/Reduce.h"
#include <cmath>
#include <cstring>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

namespace meshwork::runtime {
namespace {
using Kind = plan::CollectiveKind;
using plan::DType, plan::Reduction;

/// Runs `body` as each of `ranks` threads.
void asRanks(uint32_t ranks, std::function<void(uint32_t)> body) {
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back(body, rank);
  for (std::thread &thread : threads)
    thread.join();
}

/// Splits as a team of two would, in the wrong order.
void inTwoParts(int64_t items, absl::FunctionRef<void(int64_t, int64_t)> body) {
  body(items / 2, items);
  body(0, items / 2);
}

template <typename T> std::byte *bytes(std::vector<T> &values) {
  return reinterpret_cast<std::byte *>(values.data());
}

float value(uint32_t rank, size_t i) {
  return std::sin(static_cast<float>(rank * 7919 + i)) * 1000.0f;
}

uint16_t bf16(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float wide(uint16_t b) {
  uint32_t bits = uint32_t{b} << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

/// The elements of `values` as a tensor of one dim.
template <typename T>
Strided row(std::vector<T> &values, DType dtype, size_t begin, size_t end) {
  return {bytes(values) + begin * sizeof(T),
          dtype,
          {static_cast<int64_t>(end - begin)},
          {1}};
}
TransferRequest inPlace(const Strided &tensor) { return {tensor, tensor}; }

CollectiveRequest sumOf(std::vector<float> &data, const char *name = "x") {
  return {Kind::all_reduce,
          Reduction::sum,
          {0},
          {inPlace(row(data, DType::f32, 0, data.size()))},
          name};
}

/// An all_reduce in two parts, in place, on every rank of `mesh`.
template <typename T>
void runOnce(InProcessTransport &transport, Kind kind, Reduction reduction,
             DType dtype, std::vector<std::vector<T>> &data,
             std::vector<uint32_t> axes = {0}) {
  asRanks(transport.numRanks(), [&](uint32_t rank) {
    size_t half = data[rank].size() / 2;
    auto collective = transport.prepare(
        rank, {kind,
               reduction,
               axes,
               {inPlace(row(data[rank], dtype, 0, half)),
                inPlace(row(data[rank], dtype, half, data[rank].size()))},
               "bucket"});
    ASSERT_TRUE(collective.ok());
    CommTimes times;
    absl::Status status = (*collective)->run(inTwoParts, times);
    EXPECT_TRUE(status.ok()) << status;
  });
}

TEST(Mesh, groupsAndIndices) {
  Mesh mesh({2, 3, 2});
  EXPECT_EQ(mesh.numRanks(), 12u);
  EXPECT_EQ(mesh.coordinate(11, 1), 2u);
  EXPECT_EQ(mesh.group(7, {1}), (std::vector<uint32_t>{7, 9, 11}));
  EXPECT_EQ(mesh.group(7, {0, 2}), (std::vector<uint32_t>{0, 1, 6, 7}));
  EXPECT_EQ(mesh.group(7, {2, 0}), (std::vector<uint32_t>{0, 6, 1, 7}));
  EXPECT_EQ(mesh.index(7, {2, 0}), 3u);
  EXPECT_EQ(mesh.index(6, {2, 0}), 1u);
}

TEST(Collectives, allReduceF32IsTheSumInGroupOrder) {
  for (uint32_t ranks : {1u, 2u, 3u, 4u})
    for (size_t size : {2u, 3u, 65u, 100001u}) {
      InProcessTransport transport(Mesh({ranks}), {});
      std::vector<std::vector<float>> data(ranks, std::vector<float>(size));
      std::vector<float> expected(size);
      for (uint32_t r = 0; r < ranks; ++r)
        for (size_t i = 0; i < size; ++i)
          data[r][i] = value(r, i),
          expected[i] = r ? expected[i] + data[r][i] : data[r][i];
      runOnce(transport, Kind::all_reduce, Reduction::sum, DType::f32, data);
      for (uint32_t r = 0; r < ranks; ++r)
        ASSERT_EQ(data[r], expected) << ranks << " ranks, " << size;
    }
}

TEST(Collectives, allReduceBf16RoundsOnce) {
  constexpr uint32_t ranks = 3;
  constexpr size_t size = 70001;
  InProcessTransport transport(Mesh({ranks}), {});
  std::vector<std::vector<uint16_t>> data(ranks, std::vector<uint16_t>(size));
  std::vector<uint16_t> expected(size);
  for (size_t i = 0; i < size; ++i) {
    float sum = 0;
    for (uint32_t r = 0; r < ranks; ++r)
      sum = r ? sum + wide(data[r][i] = bf16(value(r, i)))
              : wide(data[r][i] = bf16(value(r, i)));
    expected[i] = bf16(sum);
  }
  runOnce(transport, Kind::all_reduce, Reduction::sum, DType::bf16, data);
  for (uint32_t r = 0; r < ranks; ++r)
    ASSERT_EQ(data[r], expected);
}

TEST(Collectives, maxKeepsNaN) {
  InProcessTransport transport(Mesh({2}), {});
  std::vector<std::vector<float>> data = {{1, NAN, 3, -1}, {2, 0, NAN, -2}};
  runOnce(transport, Kind::all_reduce, Reduction::max, DType::f32, data);
  for (const auto &copy : data) {
    EXPECT_EQ(copy[0], 2);
    EXPECT_TRUE(std::isnan(copy[1]) && std::isnan(copy[2]));
    EXPECT_EQ(copy[3], -1);
  }
}

TEST(Collectives, bf16NaNStaysNaN) {
  uint16_t source[2] = {0x7f81, 0xffff}, target[2] = {0, 0};
  const std::byte *sources[] = {reinterpret_cast<std::byte *>(source)};
  std::byte *targets[] = {reinterpret_cast<std::byte *>(target)};
  reduceRun(DType::bf16, Reduction::sum, sources, 1, targets, 1, 2);
  EXPECT_TRUE(std::isnan(wide(target[0])) && std::isnan(wide(target[1])));
}

TEST(Collectives, groupsOverSomeAxes) {
  InProcessTransport transport(Mesh({2, 2}), {});
  std::vector<std::vector<float>> data = {{1, 1}, {2, 2}, {4, 4}, {8, 8}};
  runOnce(transport, Kind::all_reduce, Reduction::sum, DType::f32, data, {0});
  EXPECT_EQ(data[0][0], 5);
  EXPECT_EQ(data[1][0], 10);
  runOnce(transport, Kind::all_reduce, Reduction::sum, DType::f32, data, {1});
  for (const auto &copy : data)
    EXPECT_EQ(copy[1], 15);
}

// The same collective again and again: a rank that runs ahead must not read
// or write what another still works on.
TEST(Collectives, manyRoundsStayInStep) {
  for (bool spins : {true, false}) {
    constexpr uint32_t ranks = 4;
    InProcessTransport transport(Mesh({ranks}),
                                 {.timeoutSeconds = 60, .spins = spins});
    asRanks(ranks, [&](uint32_t rank) {
      std::vector<float> data(300);
      auto collective = transport.prepare(rank, sumOf(data));
      CommTimes times;
      for (int round = 0; round < 300; ++round) {
        std::fill(data.begin(), data.end(),
                  static_cast<float>(rank + 1 + round));
        ASSERT_TRUE((*collective)->run(inTwoParts, times).ok());
        for (float element : data)
          ASSERT_EQ(element, static_cast<float>(10 + ranks * round));
        auto flags = transport.agree(rank, 1u << rank, "test");
        ASSERT_TRUE(flags.ok());
        ASSERT_EQ(*flags, 15u);
      }
    });
  }
}

TEST(Collectives, aFailedRankWakesTheOthers) {
  InProcessTransport transport(Mesh({3}), {.timeoutSeconds = 60});
  asRanks(3, [&](uint32_t rank) {
    std::vector<float> data(4);
    auto collective = transport.prepare(rank, sumOf(data));
    if (rank == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return transport.abort(2, absl::DataLossError("the file shrank"));
    }
    CommTimes times;
    absl::Status status = (*collective)->run(inTwoParts, times);
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    EXPECT_EQ(status.message(),
              "stopped because rank 2 failed: the file shrank");
    EXPECT_EQ((*collective)->run(inTwoParts, times).code(),
              absl::StatusCode::kAborted);
  });
  EXPECT_EQ(transport.failure().code(), absl::StatusCode::kDataLoss);
}

/// Who comes first may be alone until its time is up; who comes last is not.
TEST(Collectives, timeoutNamesWhoIsMissingAndWhere) {
  InProcessTransport transport(Mesh({3}), {.timeoutSeconds = 0.1});
  std::vector<absl::Status> found(2);
  asRanks(2, [&](uint32_t rank) {
    std::vector<float> data(4);
    auto collective = transport.prepare(rank, sumOf(data, "gradients"));
    CommTimes times;
    found[rank] = (*collective)->run(inTwoParts, times);
  });
  for (const absl::Status &status : found)
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(found,
              testing::Contains(testing::ResultOf(
                  [](const absl::Status &status) { return status.message(); },
                  "rank 2 did not arrive at all_reduce \"gradients\" within "
                  "0.1 s; there were ranks 0, 1")));
}

TEST(Collectives, differentRequestsDoNotOverrun) {
  InProcessTransport transport(Mesh({2}), {});
  asRanks(2, [&](uint32_t rank) {
    std::vector<float> data(4 + rank);
    auto collective = transport.prepare(rank, sumOf(data));
    CommTimes times;
    EXPECT_EQ((*collective)->run(inTwoParts, times).code(),
              absl::StatusCode::kInternal);
  });
}

} // namespace
} // namespace meshwork::runtime
