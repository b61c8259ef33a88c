// Every kind of collective over random groups, shapes, strides and element
// types, against element-by-element loops; what lies between the elements of a
// destination must not change.
#include "CollectiveCase.h"
#include "runtime/comm/InProcess.h"
#include <gtest/gtest.h>
#include <thread>

namespace meshwork::runtime::test {
namespace {
using Kind = plan::CollectiveKind;

void inThreeParts(int64_t items,
                  absl::FunctionRef<void(int64_t, int64_t)> body) {
  body(2 * items / 3, items);
  body(0, items / 3);
  body(items / 3, 2 * items / 3);
}

void runOnThreads(CollectiveCase &one) {
  InProcessTransport transport(Mesh(one.mesh), {});
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < transport.numRanks(); ++rank)
    threads.emplace_back([&, rank] {
      auto collective = transport.prepare(rank, one.request(rank));
      ASSERT_TRUE(collective.ok()) << collective.status();
      CommTimes times;
      for (int round = 0; round < 2; ++round) { // The second changes nothing
        absl::Status status = (*collective)->run(inThreeParts, times);
        EXPECT_TRUE(status.ok()) << status;
        if (one.inPlace)
          break; // but where it works on its own result.
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

class Shapes : public ::testing::TestWithParam<Kind> {};

TEST_P(Shapes, areWhatLoopsGive) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    CollectiveCase one(GetParam(), seed);
    runOnThreads(one);
    ASSERT_EQ(one.firstDifference(), "")
        << "seed " << seed << ", " << one.describe();
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, Shapes,
                         ::testing::Values(Kind::all_reduce, Kind::all_gather,
                                           Kind::reduce_scatter,
                                           Kind::all_to_all, Kind::permute),
                         [](const auto &info) {
                           return std::string(
                               plan::EnumNameCollectiveKind(info.param));
                         });

} // namespace
} // namespace meshwork::runtime::test
