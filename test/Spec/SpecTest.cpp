#include "lib/Spec/Spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshwork::spec {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string smallest = R"([mesh]
axes = ["dp=2"]
[batch]
global = 16
micro = 4
sequence = 128
)";

Result read(const std::string &text,
            const std::vector<std::string> &overrides = {}) {
  Result result = parse(text, "s.toml", overrides);
  EXPECT_TRUE(result.spec) << textOf(result.diagnostics);
  return result;
}

TEST(Spec, MeshAndBatchAreEnough) {
  Spec spec = *read(smallest).spec;
  ASSERT_EQ(spec.mesh.size(), 1u);
  EXPECT_EQ(spec.mesh[0].name, "dp");
  EXPECT_EQ(spec.numRanks(), 2u);
  EXPECT_EQ(spec.dataParallel(), 2u);
  EXPECT_EQ(spec.microbatches(), 2u);
  EXPECT_EQ(spec.compute, Type::bf16);
  EXPECT_EQ(spec.gradients, Type::f32); // of two microbatches
  EXPECT_EQ(spec.rounding, Rounding::nearest);
  EXPECT_FALSE(spec.fp8);
  EXPECT_EQ(spec.scaling, Scaling::current);
  EXPECT_EQ(spec.weightCasts, WeightCasts::byCount);
  EXPECT_EQ(spec.optimizer.settings.at("beta2"), 0.95);
  EXPECT_EQ(spec.optimizer.clipGradNorm, 1.0);
  EXPECT_EQ(spec.device, Device::cpu);
  EXPECT_EQ(spec.arch, "native");
  EXPECT_FALSE(spec.memoryPerRankBytes);
  ASSERT_EQ(spec.shard.size(), 1u);
  EXPECT_EQ(spec.shard[0].dim, "batch");
}

TEST(Spec, EveryKeyOfThisVersionIsRead) {
  Spec spec = *read(R"(
[mesh]
axes = ["pp=1", "dp=2", "cp=1", "tp=1"]
[batch]
global = 64
micro = 4
sequence = 1024
[shard]
batch = ["dp"]
sequence = ["cp"]
heads = ["tp"]
[zero]
stage = 0
[recompute]
policy = "selective"
[precision]
compute = "bf16"
master = "f32"
gradients = "f32"
rounding = "stochastic"
reduction_order = "any"
matmul = "fp8"
scaling = "delayed"
weight_casts = "microbatch"
[optimizer]
kind = "adamw"
beta1 = 0.8
beta2 = 0.99
epsilon = 1e-6
weight_decay = 0
clip_grad_norm = 0.5
[target]
device = "cpu"
arch = "x86-64-v3"
[expect]
memory_per_rank = "1.5 GiB"
)")
                   .spec;
  EXPECT_EQ(spec.numRanks(), 2u);
  EXPECT_EQ(spec.microbatches(), 8u);
  EXPECT_EQ(spec.shard.size(), 8u); // and kv_heads, ffn, expert_ffn, vocab
  EXPECT_EQ(spec.gradients, Type::f32);
  EXPECT_TRUE(spec.fp8);
  EXPECT_THAT(print(spec), HasSubstr("matmul = \"fp8\"\n"));
  EXPECT_EQ(spec.scaling, Scaling::delayed);
  EXPECT_THAT(print(spec), HasSubstr("scaling = \"delayed\"\n"));
  EXPECT_FALSE(spec.castsWeightsPerStep());
  EXPECT_THAT(print(spec), HasSubstr("weight_casts = \"microbatch\"\n"));
  EXPECT_EQ(spec.compute, Type::bf16);
  EXPECT_EQ(spec.rounding, Rounding::stochastic);
  EXPECT_THAT(print(spec), HasSubstr("rounding = \"stochastic\"\n"));
  EXPECT_EQ(spec.reductionOrder, ReductionOrder::any);
  EXPECT_THAT(print(spec), HasSubstr("reduction_order = \"any\"\n"));
  EXPECT_EQ(spec.optimizer.settings.at("beta1"), 0.8);
  EXPECT_EQ(spec.optimizer.settings.at("beta2"), 0.99);
  EXPECT_EQ(spec.optimizer.settings.at("epsilon"), 1e-6);
  EXPECT_EQ(spec.optimizer.settings.at("weight_decay"), 0);
  EXPECT_EQ(spec.optimizer.clipGradNorm, 0.5);
  EXPECT_EQ(spec.arch, "x86-64-v3");
  EXPECT_EQ(spec.memoryPerRankBytes, 3u << 29);
}

/// The text of [optimizer] as it is printed.
std::string optimizerOf(const std::vector<std::string> &overrides) {
  std::string text = print(*read(smallest, overrides).spec);
  size_t begin = text.find("[optimizer]\n");
  return text.substr(begin, text.find("\n[", begin) - begin);
}

TEST(Spec, OptimizersHaveTheirOwnSettings) {
  EXPECT_EQ(optimizerOf({}),
            "[optimizer]\nkind = \"adamw\"\nbeta1 = 0.9\nbeta2 = "
            "0.95\nepsilon = 1e-08\nweight_decay = 0.1\nclip_grad_norm = "
            "1.0\n");
  EXPECT_EQ(optimizerOf({"optimizer.kind=sgd", "optimizer.momentum=0.9"}),
            "[optimizer]\nkind = \"sgd\"\nweight_decay = 0.0\nmomentum = "
            "0.9\nnesterov = false\nclip_grad_norm = 1.0\n");
  EXPECT_EQ(optimizerOf({"optimizer.kind=sgd", "optimizer.momentum=0.5",
                         "optimizer.nesterov=true"}),
            "[optimizer]\nkind = \"sgd\"\nweight_decay = 0.0\nmomentum = "
            "0.5\nnesterov = true\nclip_grad_norm = 1.0\n");
  EXPECT_EQ(optimizerOf({"optimizer.kind=lion", "optimizer.weight_decay=1"}),
            "[optimizer]\nkind = \"lion\"\nbeta1 = 0.9\nbeta2 = "
            "0.99\nweight_decay = 1.0\nclip_grad_norm = 1.0\n");
}

TEST(Spec, Gpus) {
  for (const char *arch : {"native", "sm_80", "sm_90a", "sm_100"}) {
    Spec spec = *read(smallest, {"target.device=cuda",
                                 std::string("target.arch=") + arch})
                     .spec;
    EXPECT_EQ(spec.device, Device::cuda);
    EXPECT_EQ(spec.arch, arch);
    EXPECT_THAT(print(spec), HasSubstr("device = \"cuda\"\n"));
    EXPECT_EQ(print(*read(print(spec)).spec), print(spec));
  }
}

TEST(Spec, UsualPlacement) {
  Spec spec = *read(smallest, {"mesh.axes=[\"dp=2\", \"fsdp=2\", \"tp=2\"]",
                               "batch.global=16", "zero.stage=3"})
                   .spec;
  std::map<std::string, std::vector<std::string>> rules;
  for (const ShardRule &rule : spec.shard)
    rules[rule.dim] = rule.axes;
  std::vector<std::string> tp = {"tp"};
  EXPECT_EQ(rules["batch"], (std::vector<std::string>{"dp", "fsdp"}));
  for (const char *dim : {"heads", "kv_heads", "ffn", "vocab"})
    EXPECT_EQ(rules[dim], tp) << dim;
  EXPECT_EQ(rules.count("residual_sequence"), 0u);
  EXPECT_EQ(spec.zero.axes, std::vector<std::string>{"fsdp"});
}

TEST(Spec, AxesThatWeightsStaySplitOver) {
  Spec spec =
      *read(smallest, {"mesh.axes=[\"dp=2\", \"fsdp=2\"]", "batch.global=16",
                       "zero.stage=3", "zero.axes=[\"dp\", \"fsdp\"]",
                       "zero.gathered=[\"fsdp\"]"})
           .spec;
  EXPECT_EQ(spec.zero.gatheredOnce(), std::vector<std::string>{"dp"});
  EXPECT_THAT(print(spec), HasSubstr("gathered = [\"fsdp\"]\n"));
  EXPECT_EQ(print(*read(print(spec)).spec), print(spec));
}

TEST(Spec, TypesThatWeightsTravelIn) {
  Spec spec = *read(smallest, {"mesh.axes=[\"dp=2\"]", "batch.global=16",
                               "zero.stage=3", "zero.weights=int8"})
                   .spec;
  EXPECT_EQ(spec.zero.weights, WeightType::int8);
  EXPECT_THAT(print(spec), HasSubstr("weights = \"int8\"\n"));
  EXPECT_EQ(print(*read(print(spec)).spec), print(spec));
}

TEST(Spec, TypesThatGradientsTravelIn) {
  Spec spec =
      *read(smallest, {"mesh.axes=[\"dp=2\"]", "batch.global=16",
                       "zero.stage=1", "zero.gradients=int4",
                       "zero.gradient_block=64", "zero.gradient_error=true"})
           .spec;
  EXPECT_EQ(spec.zero.gradients, GradientType::int4);
  EXPECT_EQ(spec.zero.gradientBlock, 64u);
  EXPECT_TRUE(spec.zero.gradientError);
  EXPECT_THAT(print(spec), HasSubstr("gradients = \"int4\"\n"));
  EXPECT_THAT(print(spec), HasSubstr("gradient_block = 64\n"));
  EXPECT_THAT(print(spec), HasSubstr("gradient_error = true\n"));
  EXPECT_EQ(print(*read(print(spec)).spec), print(spec));
}

TEST(Spec, PinsAreKeptAndPrinted) {
  Spec spec = *read(smallest + "[[shard.tensor]]\nname = \"*.down.weight\"\n"
                               "dims = '[{\"dp\"}, {?}]'\n")
                   .spec;
  ASSERT_EQ(spec.pins.size(), 1u);
  EXPECT_EQ(spec.pins[0].name, "*.down.weight");
  EXPECT_EQ(spec.pins[0].dims, "[{\"dp\"}, {?}]");
  EXPECT_EQ(print(*read(print(spec)).spec), print(spec));
}

TEST(Spec, GroupsAreKeptAndPrinted) {
  Spec spec =
      *read(smallest + "[[optimizer.groups]]\nname = \"*.bias\"\nrate = 2\n"
                       "[[optimizer.groups]]\nname = \"w\"\nrate = 1\n"
                       "weight_decay = 0\n[[optimizer.groups]]\nname = \"x\"\n"
                       "rate = 1\n")
           .spec;
  ASSERT_EQ(spec.optimizer.groups.size(), 3u);
  EXPECT_EQ(spec.optimizer.groups[0].name, "*.bias");
  EXPECT_EQ(spec.optimizer.groups[0].rate, 2);
  EXPECT_EQ(spec.optimizer.groups[0].weightDecay, 1);
  EXPECT_EQ(spec.optimizer.groups[1].weightDecay, 0);
  EXPECT_THAT(print(spec),
              HasSubstr("groups = [{name = \"*.bias\", rate = 2.0}, "
                        "{name = \"w\", weight_decay = 0.0}, "));
  EXPECT_EQ(print(*read(print(spec)).spec), print(spec));
}

TEST(Spec, GradientsFollowCompute) {
  Spec spec = *read(smallest + "[precision]\ncompute = \"f32\"\n").spec;
  EXPECT_EQ(spec.compute, Type::f32);
  EXPECT_EQ(spec.gradients, Type::f32);
}

TEST(Spec, GradientsOfSeveralMicrobatchesAreSummedInF32) {
  auto gradients = [](const std::vector<std::string> &settings) {
    return read(smallest, settings).spec->gradients;
  };
  EXPECT_EQ(gradients({"batch.micro=4"}), Type::f32);
  EXPECT_EQ(gradients({"batch.micro=8"}), Type::bf16);
  EXPECT_EQ(gradients({"batch.micro=auto", "expect.memory_per_rank=1 GiB"}),
            Type::f32);
  Result rounded = read(smallest, {"batch.micro=1", "batch.global=2048",
                                   "precision.gradients=bf16"});
  EXPECT_EQ(rounded.spec->gradients, Type::bf16);
  EXPECT_THAT(textOf(rounded.diagnostics),
              HasSubstr("precision.gradients: \"bf16\" rounds the sum of "
                        "gradients after each of 1024 microbatches, an error "
                        "of up to 100.0 %"));
  EXPECT_TRUE(read(smallest, {"batch.micro=8", "precision.gradients=bf16"})
                  .diagnostics.empty());
}

TEST(Spec, CommandLineWinsOverTheFile) {
  Result result =
      read(smallest, {"batch.micro=2", "batch.micro=1", "target.arch=x86-64-v4",
                      "mesh.axes=[\"dp=4\"]", "precision.compute=\"f32\"",
                      "expect.memory_per_rank=2 GiB"});
  EXPECT_EQ(result.spec->batch.micro, 1u);
  EXPECT_EQ(result.spec->numRanks(), 4u);
  EXPECT_EQ(result.spec->arch, "x86-64-v4");
  EXPECT_EQ(result.spec->compute, Type::f32);
  EXPECT_EQ(result.spec->memoryPerRankBytes, uint64_t{2} << 30);
  EXPECT_EQ(result.origins.at("batch.micro"), "--set batch.micro=1");
}

TEST(Spec, OriginsAreShown) {
  std::string text = printWithOrigins(read(smallest, {"batch.micro=1"}));
  EXPECT_THAT(text, HasSubstr("global = 16  # s.toml:4:10\n"));
  EXPECT_THAT(text, HasSubstr("micro = 1  # --set batch.micro=1\n"));
  EXPECT_THAT(text, HasSubstr("beta2 = 0.95  # default\n"));
  EXPECT_TRUE(parse(text, "again").spec);
}

// What an override holds cannot become a line of its own.
TEST(Spec, OriginsStayOneLine) {
  Result result = parse(smallest, "s.toml", {"target.arch=native\nx=1"});
  ASSERT_FALSE(result.spec);
  EXPECT_EQ(result.diagnostics[0].text().find('\n'), std::string::npos);
}

TEST(Spec, PrintRoundTrips) {
  Spec spec =
      *read(smallest, {"optimizer.epsilon=1e-30", "optimizer.weight_decay=0.1",
                       "expect.memory_per_rank=1.5 KiB"})
           .spec;
  std::string text = print(spec);
  EXPECT_THAT(text, HasSubstr("memory_per_rank = \"1536 B\""));
  EXPECT_THAT(text, HasSubstr("weight_decay = 0.1\n"));
  EXPECT_THAT(text, HasSubstr("clip_grad_norm = 1.0\n"));
  EXPECT_THAT(text, HasSubstr("batch = [\"dp\"]"));
  EXPECT_EQ(print(*read(text).spec), text);
}

TEST(Spec, OffloadingPrintsWhatItSays) {
  EXPECT_THAT(print(*read(smallest).spec), Not(HasSubstr("[offload]")));
  Spec spec = *read(smallest, {"offload.optimizer=true",
                               "offload.host_memory_per_rank=64 GiB"})
                   .spec;
  EXPECT_EQ(spec.offload.windowBytes, 16u << 20);
  EXPECT_EQ(spec.offload.hostBytes, uint64_t{64} << 30);
  std::string text = print(spec);
  EXPECT_THAT(text, HasSubstr("[offload]\noptimizer = true\nwindow = "
                              "\"16777216 B\"\nhost_memory_per_rank = "
                              "\"68719476736 B\"\n"));
  EXPECT_EQ(print(*read(text).spec), text);
}

TEST(Spec, KeysOfDocumentsStandAlone) {
  Spec usual = *read(smallest).spec;
  EXPECT_FALSE(usual.batch.separateDocuments);
  EXPECT_FALSE(usual.batch.restartPositions);
  EXPECT_TRUE(usual.batch.documentEndLoss);
  Spec spec = *read(smallest, {"batch.positions=\"document\"",
                               "batch.document_end_loss=false"})
                   .spec;
  EXPECT_FALSE(spec.batch.separateDocuments);
  EXPECT_TRUE(spec.batch.restartPositions);
  EXPECT_FALSE(spec.batch.documentEndLoss);
  std::string text = print(spec);
  EXPECT_THAT(text, HasSubstr("documents = \"joined\"\n"
                              "positions = \"document\"\n"
                              "document_end_loss = false\n"));
  EXPECT_EQ(print(*read(text).spec), text);
}

TEST(Spec, LayoutOfASplitSequence) {
  std::vector<std::string> split = {"mesh.axes=[\"cp=2\"]",
                                    "shard.sequence=[\"cp\"]"};
  Spec spec = *read(smallest, split).spec;
  EXPECT_TRUE(spec.splits("sequence"));
  EXPECT_EQ(spec.sequenceLayout, layout::DimLayout::block);
  EXPECT_EQ(spec.context, Context::byCost);
  EXPECT_THAT(print(spec), HasSubstr("[context]\nmethod = \"auto\"\n"
                                     "layout = \"block\"\n"));
  // That is what an axis of this name is for.
  EXPECT_EQ(print(*read(smallest, {"mesh.axes=[\"cp=2\"]"}).spec), print(spec));
  split.push_back("context.layout=zigzag");
  split.push_back("context.method=ulysses");
  spec = *read(smallest, split).spec;
  EXPECT_EQ(spec.sequenceLayout, layout::DimLayout::zigzag);
  EXPECT_EQ(spec.context, Context::ulysses);
  split.back() = "context.method=ring";
  EXPECT_EQ(read(smallest, split).spec->context, Context::ring);
  EXPECT_EQ(read(smallest, split).spec->ringRanks(), 2u);
  // A spec may be tried on one rank.
  split.front() = "mesh.axes=[\"cp=1\"]";
  EXPECT_FALSE(read(smallest, split).spec->splits("sequence"));
}

TEST(Spec, AMethodForEachAxisOfASequence) {
  const std::string text = std::string(smallest) +
                           "[shard]\nsequence = [\"cp\", \"up\"]\n[context]\n"
                           "method = { cp = \"ring\", up = \"ulysses\" }\n";
  std::vector<std::string> axes = {"mesh.axes=[\"cp=2\", \"up=2\"]"};
  Spec spec = *read(text, axes).spec;
  EXPECT_EQ(spec.context, Context::ring);
  EXPECT_THAT(spec.exchangedAxes(), testing::ElementsAre("up"));
  EXPECT_THAT(print(spec),
              HasSubstr("method = { cp = \"ring\", up = \"ulysses\" }\n"));
  EXPECT_EQ(print(*read(print(spec)).spec), print(spec));
  // Those who exchange heads make the ring no longer.
  EXPECT_EQ(read(text, {"mesh.axes=[\"cp=1024\", \"up=2\"]"}).spec->ringRanks(),
            1024u);
  // A word takes the place of the table, and of one method nothing is apart.
  axes.push_back("context.method=gathered");
  EXPECT_TRUE(read(text, axes).spec->contextOfAxis.empty());
  axes.back() = "context.method={cp=\"ulysses\", up=\"ulysses\"}";
  spec = *read(text, axes).spec;
  EXPECT_EQ(spec.context, Context::ulysses);
  EXPECT_TRUE(spec.exchangedAxes().empty());
  EXPECT_EQ(print(*read(print(spec)).spec), print(spec));
}

TEST(Spec, NoMeshAxisIsOneRank) {
  Spec spec = *read(smallest, {"mesh.axes=[]"}).spec;
  EXPECT_EQ(spec.numRanks(), 1u);
  EXPECT_EQ(spec.dataParallel(), 1u);
  EXPECT_EQ(spec.microbatches(), 4u);
}

TEST(Spec, Budgets) {
  Result result = parse(R"([mesh]
axes = ["dp=2", "tp=2"]
[batch]
global = 16
micro = 4
sequence = 128
[expect]
collectives = ["all_gather(dp, tp) >= 2 per layer in forward",
               "no permute", "all_reduce <= 7"]
)",
                        "s.toml");
  ASSERT_TRUE(result.spec) << textOf(result.diagnostics);
  const std::vector<CollectiveBudget> &list = result.spec->collectives;
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].kind, "all_gather");
  EXPECT_EQ(list[0].axes, (std::vector<std::string>{"dp", "tp"}));
  EXPECT_EQ(list[0].compare, CollectiveBudget::Compare::atLeast);
  EXPECT_EQ(list[0].per, CollectiveBudget::Per::layer);
  EXPECT_EQ(list[0].phase, "forward");
  EXPECT_EQ(list[0].place, "s.toml:8:16");
  EXPECT_TRUE(list[0].allows(8, 4));
  EXPECT_FALSE(list[0].allows(7, 4));
  EXPECT_TRUE(list[1].allows(0, 1));
  EXPECT_FALSE(list[1].allows(1, 1));
  EXPECT_EQ(list[2].per, CollectiveBudget::Per::step);
  EXPECT_TRUE(list[2].allows(7, 1));
  EXPECT_FALSE(list[2].allows(8, 1));
  EXPECT_EQ(print(*parse(print(*result.spec), "again").spec),
            print(*result.spec));
}

/// A machine's name or path is kept as it is, what a file holds line by line.
TEST(Spec, AMachineReadsBackFromWhatIsPrinted) {
  for (std::string machine :
       {"h100x8", "my machines/a.toml", "name = \"m\"\n\n[flops]\nf32 = 1e9\n",
        "a\n", "\n\"\"\"\\\r\n\t\""}) {
    Result given = parse("[mesh]\naxes = []\n[batch]\nglobal = 1\nmicro = 1\n"
                         "sequence = 8\n",
                         "s.toml");
    ASSERT_TRUE(given.spec) << textOf(given.diagnostics);
    given.spec->machine = machine;
    Result again = parse(print(*given.spec), "printed");
    ASSERT_TRUE(again.spec) << textOf(again.diagnostics);
    EXPECT_EQ(again.spec->machine, machine) << print(*given.spec);
  }
}

} // namespace
} // namespace meshwork::spec
