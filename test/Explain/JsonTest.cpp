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
  EXPECT_EQ(
      keys(object),
      (std::vector<std::string>{
          "bubble_fraction", "checkpoint_copy_bytes_per_rank", "choices",
          "collectives", "estimate", "flops_per_step", "format_version",
          "host_memory_per_rank", "idle_fraction", "memory_per_rank_bytes",
          "mesh", "parameters", "programs", "rank_classes", "ranks", "schedule",
          "shared_attention", "spec", "unread_stores"}));
  EXPECT_EQ(
      keys(object["memory_per_rank_bytes"]),
      (std::vector<std::string>{"activations", "communication", "gradients",
                                "optimizer", "peak", "weights", "workspace"}));
  EXPECT_EQ(
      keys(object["collectives"][0]),
      (std::vector<std::string>{"annotations", "axis", "bytes_sent_per_rank",
                                "cause", "count", "kind", "phase"}));
  const Json &ranks = object["rank_classes"][0];
  EXPECT_EQ(keys(ranks),
            (std::vector<std::string>{"arena_bytes", "buffers", "host_bytes",
                                      "instructions", "parameters", "ranks"}));
  EXPECT_EQ(
      keys(ranks["parameters"][0]),
      (std::vector<std::string>{"file_shape", "gradient", "master", "name",
                                "weight"})); // and what its optimizer keeps
  EXPECT_EQ(keys(ranks["buffers"][0]),
            (std::vector<std::string>{"bytes", "kind", "life", "name",
                                      "offset_bytes", "space"}));
  EXPECT_EQ(keys(ranks["instructions"][0]),
            (std::vector<std::string>{"bytes", "flops", "name", "operation",
                                      "phase", "reads", "times", "writes"}));
}

plan::PlanT withChoice() {
  auto plan = plan::test::tinyPlan({});
  plan.provenance = std::make_unique<plan::ProvenanceT>();
  for (auto [key, value, place] :
       {std::tuple("shard.ffn", "[\"tp\"]", "default"),
        {"experts.exchange", "gathered", "layers 0-2, 5: because"},
        {"experts.exchange.tried", "gathered", "3.0625"},
        {"experts.exchange.tried", "all_to_all", "no number"}}) {
    auto &made = plan.provenance->annotations.emplace_back(
        std::make_unique<plan::AnnotationT>());
    made->key = key;
    made->value = value;
    made->place = place;
  }
  return plan;
}

TEST(Json, tellsWhatWasChosen) {
  EXPECT_EQ(parsed(Loaded(withChoice()))["choices"],
            Json::array({{{"key", "experts.exchange"},
                          {"value", "gathered"},
                          {"why", "layers 0-2, 5: because"},
                          {"step_ms",
                           {{"gathered", 3.0625}, {"all_to_all", nullptr}}}}}));
  std::string found = text(Loaded(withChoice()).plan());
  EXPECT_NE(found.find("chosen  experts.exchange: gathered; layers 0-2, 5: "
                       "because\n"),
            std::string::npos)
      << found;
}

TEST(Json, tellsOfMeshAndSpec) {
  auto plan = plan::test::tinyPlan({.ranks = 2});
  plan::test::addAxis(plan, "tp", 2);
  plan.spec = "[mesh]\naxes = [\"dp=2\", \"tp=2\"]\n";
  Json object = parsed(Loaded(plan));
  EXPECT_EQ(object["format_version"], 1);
  EXPECT_EQ(object["mesh"], Json::parse(R"([{"axis": "dp", "size": 2},
                            {"axis": "tp", "size": 2}])"));
  EXPECT_EQ(object["spec"], plan.spec);
}

/// The gradient of "wte", from the parameter to all that touches it.
TEST(Json, tellsWhatUsesATensor) {
  Json ranks = parsed(tiny(2))["rank_classes"][0];
  const Json &parameter = ranks["parameters"][0];
  EXPECT_EQ(parameter["name"], "wte.weight");
  EXPECT_EQ(parameter["file_shape"], Json::array({256, 8}));
  EXPECT_EQ(parameter["master"], parameter["weight"]); // f32 training
  EXPECT_EQ(parameter["gradient"]["type"], "f32[256,8]");
  const Json &index = parameter["gradient"]["buffer"];
  EXPECT_EQ(ranks["buffers"][index.get<size_t>()]["kind"], "gradients");
  EXPECT_EQ(ranks["buffers"][index.get<size_t>()]["bytes"], 8192);
  std::vector<std::string> readers, writers;
  for (const Json &at : ranks["instructions"])
    for (const char *way : {"reads", "writes"})
      for (const Json &tensor : at[way])
        if (tensor["buffer"] == index)
          (way[0] == 'r' ? readers : writers)
              .push_back(at["phase"].get<std::string>() + " " +
                         at["operation"].get<std::string>() + " " +
                         tensor["role"].get<std::string>());
  // Sums over ranks in place, then the norm, then the optimizer.
  EXPECT_EQ(writers,
            (std::vector<std::string>{"forward embedding_grad dtable",
                                      "update all_reduce src and dst"}));
  EXPECT_EQ(readers, (std::vector<std::string>{
                         "update all_reduce src and dst", "update matmul lhs",
                         "update matmul rhs", "update matmul lhs"}));
}

TEST(Json, namesTheRanksOfEachClass) {
  auto plan = plan::test::tinyPlan({.ranks = 2});
  EXPECT_EQ(parsed(Loaded(plan))["rank_classes"][0]["ranks"], nullptr);
  plan.programs.push_back(std::make_unique<plan::ProgramT>(*plan.programs[0]));
  plan::test::setPrograms(plan, {1, 0});
  Json classes = parsed(Loaded(plan))["rank_classes"];
  EXPECT_EQ(classes[0]["ranks"], Json::array({1}));
  EXPECT_EQ(classes[1]["ranks"], Json::array({0}));
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
            Json::parse(R"([["0F0", "0B0", "0F1", "0B1", "0F2", "0B2"]])"));
  EXPECT_EQ(object["collectives"],
            Json::parse(R"([{"kind": "all_reduce", "axis": "dp",
      "phase": "update", "count": 2, "bytes_sent_per_rank": 8196,
      "cause": "each rank saw only its part of the batch",
      "annotations": []}])"));
}

/// Kinds without a key of their own are scratch, so that nothing is left out.
TEST(Json, workspaceHoldsTheRest) {
  auto plan = plan::test::tinyPlan();
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
  auto plan = plan::test::tinyPlan({.ranks = 2});
  plan.programs.push_back(std::make_unique<plan::ProgramT>(*plan.programs[0]));
  plan.programs[1]->arena_bytes += 4096;
  plan::test::setPrograms(plan, {0, 1});
  Json object = parsed(Loaded(plan));
  EXPECT_EQ(object["programs"], 2);
  EXPECT_EQ(object["memory_per_rank_bytes"]["peak"],
            plan.programs[1]->arena_bytes);
}

TEST(Json, refusesToListMoreActionsThanAnyoneReads) {
  auto plan = plan::test::tinyPlan();
  plan.microbatches = (1u << 20) + 1;
  plan.global_batch = plan.microbatches * plan.micro_batch;
  plan::test::setActions(*plan.programs[0], plan.microbatches);
  auto text = json(Loaded(plan).plan());
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_HAS(std::string(text.status().message()), "1048577 microbatches");
}

TEST(Json, isValidWhateverTheNamesHold) {
  auto plan = plan::test::tinyPlan();
  plan::test::opOf<plan::CollectiveT>(
      *plan::test::updateOf(*plan.programs[0])[0])
      .cause->value = "\xff\"\n\x1b";
  EXPECT_EQ(parsed(Loaded(plan))["collectives"].size(), 2u);
}

} // namespace
} // namespace meshwork::explain::test
