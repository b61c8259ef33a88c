// The keys other programs rely on: all of them, no others, and their values.
#include "Loaded.h"
#include "lib/Explain/Explain.h"
#include <nlohmann/json.hpp>

namespace meshwork::explain::test {
namespace {
using Json = nlohmann::json;

Json parsed(const Loaded &file) {
  auto text = json(file.plan());
  EXPECT_TRUE(text.ok()) << text.status();
  return Json::parse(text.ok() ? *text : "{}");
}

std::vector<std::string> keys(const Json &object) {
  std::vector<std::string> names;
  for (const auto &item : object.items())
    names.push_back(item.key());
  return names;
}

TEST(Json, hasTheKeysOfTheContract) {
  Json object = parsed(tiny(2));
  EXPECT_EQ(keys(object), (std::vector<std::string>{
                              "bubble_fraction", "collectives",
                              "flops_per_step", "memory_per_rank_bytes",
                              "parameters", "programs", "ranks", "schedule"}));
  EXPECT_EQ(
      keys(object["memory_per_rank_bytes"]),
      (std::vector<std::string>{"activations", "communication", "gradients",
                                "optimizer", "peak", "weights", "workspace"}));
  EXPECT_EQ(keys(object["collectives"][0]),
            (std::vector<std::string>{"axis", "bytes_sent_per_rank", "cause",
                                      "count", "kind", "phase"}));
}

TEST(Json, hasTheValuesOfThePlan) {
  Loaded file = tiny(2, 3);
  Json object = parsed(file);
  EXPECT_EQ(object["ranks"], 2);
  EXPECT_EQ(object["programs"], 1);
  EXPECT_EQ(object["parameters"], 2048);
  EXPECT_EQ(object["flops_per_step"], 1000000);
  EXPECT_EQ(object["memory_per_rank_bytes"]["weights"], 8192);
  EXPECT_EQ(object["memory_per_rank_bytes"]["optimizer"], 0);
  EXPECT_EQ(object["memory_per_rank_bytes"]["peak"],
            file.program().arena_bytes());
  EXPECT_EQ(object["bubble_fraction"], 0);
  EXPECT_EQ(object["schedule"],
            Json::parse(
                R"([["0F0", "0B0", "0F1", "0B1", "0F2", "0B2", "0REDUCE"]])"));
  EXPECT_EQ(object["collectives"],
            Json::parse(R"([{"kind": "all_reduce", "axis": "dp",
      "phase": "update", "count": 2, "bytes_sent_per_rank": 8196,
      "cause": "each rank saw only its part of the batch"}])"));
}

/// Kinds without a key of their own are scratch, so that nothing is left out.
TEST(Json, workspaceHoldsTheRest) {
  auto plan = runtime::test::tinyPlan();
  uint64_t before = parsed(Loaded(plan))["memory_per_rank_bytes"]["workspace"];
  plan.programs[0]->workspace_bytes_per_thread = 1000;
  EXPECT_EQ(parsed(Loaded(plan))["memory_per_rank_bytes"]["workspace"],
            before + 1000);
  uint64_t named = 2 * 8192 + 1024; // weights, gradients, activations
  uint64_t buffers = 0;
  for (const auto &buffer : plan.programs[0]->buffers)
    buffers += buffer->size_bytes;
  EXPECT_EQ(before, buffers - named);
}

TEST(Json, memoryIsThatOfTheRankThatNeedsMost) {
  auto plan = runtime::test::tinyPlan({.ranks = 2});
  plan.programs.push_back(std::make_unique<plan::ProgramT>(*plan.programs[0]));
  plan.programs[1]->arena_bytes += 4096;
  plan.program_of_rank = {0, 1};
  Json object = parsed(Loaded(plan));
  EXPECT_EQ(object["programs"], 2);
  EXPECT_EQ(object["memory_per_rank_bytes"]["peak"],
            plan.programs[1]->arena_bytes);
}

TEST(Json, refusesToListMoreActionsThanAnyoneReads) {
  auto plan = runtime::test::tinyPlan();
  plan.microbatches = 1u << 30;
  plan.global_batch = plan.microbatches * plan.micro_batch;
  auto text = json(Loaded(plan).plan());
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_HAS(std::string(text.status().message()), "1073741824 microbatches");
}

TEST(Json, isValidWhateverTheNamesHold) {
  auto plan = runtime::test::tinyPlan();
  runtime::test::opOf<plan::CollectiveT>(*plan.programs[0]->update[0]).cause =
      "\xff\"\n\x1b";
  EXPECT_EQ(parsed(Loaded(plan))["collectives"].size(), 2u);
}

} // namespace
} // namespace meshwork::explain::test
