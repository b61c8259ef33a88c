#include "test/Spec/SpecErrors.h"

namespace meshwork::spec {
namespace {

TEST(SpecErrors, AllOfARunAreReported) {
  std::string errors = errorsOf(R"([mesh]
axes = "dp=2"
[batch]
global = 0
micor = 4
sequence = 1.5
[optimizer]
beta1 = 1.0
[precison]
compute = "f32"
)");
  EXPECT_EQ(
      errors,
      R"(s.toml: error: batch.micro: missing, expected a whole number from 1 to 2147483647, or "auto"
s.toml:2:8: error: mesh.axes: found "dp=2", expected an array of axes like ["dp=2"], sizes from 1 to 1048576
s.toml:4:10: error: batch.global: found 0, expected a whole number from 1 to 2147483647
s.toml:5:1: error: unknown key batch.micor; did you mean "batch.micro"?
s.toml:6:12: error: batch.sequence: found 1.5, expected a whole number from 1 to 2147483647
s.toml:8:9: error: optimizer.beta1: found 1, expected a number from 0 to below 1 (f32 rounds those above 0.9999999 to 1)
s.toml:9:2: error: unknown table [precison]; did you mean "precision"?
)");
}

// A check across keys is left out only where a key that it needs is wrong.
TEST(SpecErrors, OfOneKeyAndOfSeveralAreReportedTogether) {
  EXPECT_EQ(
      errorsOf(R"([mesh]
axes = ["dp=2", "tp=2"]
[batch]
global = 7
micro = 4
sequence = 128
[shard]
vocab = ["pt"]
[zero]
stage = 4
[optimizer]
lr = 1e-3
[expect]
collectives = ["all_reduce(td) <= 1"]
)"),
      R"(s.toml:4:10: error: batch.global: found 7, expected a multiple of 8 (batch.micro 4 times 2 data-parallel ranks), like 8
s.toml:8:9: error: shard.vocab: found axis "pt", expected one of mesh.axes; did you mean "tp"?
s.toml:10:9: error: zero.stage: found 4, expected a whole number from 0 to 3
s.toml:12:1: error: unknown key optimizer.lr; a run decides it, not a plan: meshwork-run --lr
s.toml:14:15: error: expect.collectives: "all_reduce(td) <= 1": found axis "td", expected one of mesh.axes; did you mean "tp"?
)");
  EXPECT_EQ(
      errorsOf(R"([mesh]
axes = ["dp=0"]
[batch]
global = 7
micro = 4
sequence = 128
[shard]
batch = ["dp"]
)"),
      "s.toml:2:9: error: mesh.axes: found \"dp=0\", expected a size from "
      "1 to 1048576, like \"dp=2\"\n");
}

std::string repeated(const std::string &text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i)
    result += text;
  return result;
}

TEST(SpecErrors, WhatNoSpecHoldsIsNotParsed) {
  const char *parts = "s.toml: error: has a key of more than 16 parts",
             *levels = "s.toml: error: nests brackets deeper than 16";
  expectError(repeated("a.", 20000) + "a = 1\n", parts);
  expectError("[" + repeated("a . ", 20000) + "a]\n", parts);
  expectError(repeated("'#'.", 20000) + "a = 1\n", parts);
  expectError("a = " + repeated("[", 100000), levels);
  expectError("a = " + repeated("{a.a.a = ", 100000), levels);
  expectError("a = [ # [\n'[', \"[\\\"[\"]\n", "unknown key batch.a");
  expectError("a = " + std::string(100000, '1'), "s.toml:7:");
  std::string keys;
  for (int i = 0; i < 50000; ++i)
    keys += "key" + std::to_string(i) + " = 1\n";
  expectError("[unknown]\n" + keys, "has 50007 keys, expected at most 500");
  EXPECT_THAT(errorsOf(good, {"batch.micro=" + repeated("[", 100000)}),
              HasSubstr("batch.micro: found \"[[[["));
}

TEST(SpecErrors, WhatTheUserWroteIsEscaped) {
  expectError("\"\\u001b[2J\" = 1\n", "unknown key batch.\"\\x1b[2J\"");
  EXPECT_THAT(errorsOf(good, {"a\x1b[2J=1"}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(errorsOf(good, {"a\n=1"}), HasSubstr("a\\n"));
}

TEST(SpecErrors, BudgetsSayWhereTheyGoWrong) {
  auto expectBudgetError = [](const std::string &budget,
                              const std::string &message) {
    expectError("[expect]\ncollectives = [\"" + budget + "\"]\n",
                "expect.collectives: \"" + budget + "\": " + message);
  };
  expectBudgetError("all_gahter <= 1",
                    "found \"all_gahter\", expected a collective (all_reduce, "
                    "all_gather, reduce_scatter, all_to_all, permute); did "
                    "you mean \"all_gather\"?");
  expectBudgetError("all_gather(tp) <= 1",
                    "found axis \"tp\", expected one of");
  expectBudgetError("all_gather(dp <= 1", "found \"<=\", expected ')' or ','");
  expectBudgetError("all_gather < 1", "found \"<\", expected <=, == or >=");
  expectBudgetError("all_gather <= many", "found \"many\", expected a whole");
  expectBudgetError("all_gather <= 1 per head",
                    "found \"head\", expected a "
                    "unit (step, microbatch, layer)");
  expectBudgetError("no all_gather in step", "found \"step\", expected a phase "
                                             "(forward, backward, update)");
  expectBudgetError("no all_gather <= 1", "found \"<=\", expected the end");
  expectBudgetError("no", "found the end, expected a collective");
}

TEST(SpecErrors, UnknownKeys) {
  expectError("[target]\ndevcie = \"cpu\"\n",
              "did you mean \"target.device\"?");
  expectError("[target]\nmicro = 1\n", "unknown key target.micro");
  expectError("[nothing]\n", "unknown table [nothing]");
  expectError("[batch.inner]\nx = 1\n", "[batch.inner]");
  expectError("[optimizer]\n\"beta1.x\" = 1\n",
              "unknown key optimizer.\"beta1.x\"");
  EXPECT_THAT(errorsOf("mesh = 1\n" + good.substr(good.find("[batch]"))),
              HasSubstr("mesh: found 1, expected a table [mesh]"));
  expectSetError("batch.mirco=1", "unknown key batch.mirco");
  expectSetError("steps=1", "unknown key steps");
}

TEST(SpecErrors, Syntax) {
  expectError("[target\n", "s.toml:7:");
  expectError("[=]\n", "s.toml:7:2: error: is not TOML");
  expectError("[mesh]\naxes = []\n", "is not TOML");
  expectError("[target]\narch = \"native\"\narch = \"native\"\n",
              "is not TOML");
  expectError(std::string("\xff\xfe"), "is not TOML");
  expectError(std::string("\0", 1), "is not TOML");
  expectError(std::string(2 << 20, '#'), "expected a spec of at most 1048576");
  expectError("a = 99999999999999999999\n", "is not TOML");
  EXPECT_THAT(errorsOf(""), HasSubstr("mesh.axes: missing"));
  EXPECT_THAT(
      errorsOf(good, {"batch.micro"}),
      HasSubstr("--set batch.micro: error: expected section.key=value"));
}

TEST(SpecErrors, WrongTypes) {
  expectSetError("batch.micro=four", "batch.micro: found \"four\", expected");
  expectSetError("batch.micro=-1", "batch.micro: found -1");
  expectSetError("batch.micro=2147483648", "batch.micro: found 2147483648");
  expectSetError("batch.micro=true", "batch.micro: found true");
  expectSetError("batch.micro=1979-05-27", "batch.micro: found a date");
  expectSetError("batch.micro={a = 1}", "batch.micro: found a table");
  EXPECT_THAT(errorsOf(good, {"batch.micro=1\nglobal=2"}),
              HasSubstr("batch.micro: found \"1\\nglobal=2\""));
  expectSetError("optimizer.beta1=nan", "optimizer.beta1: found nan");
  expectSetError("optimizer.weight_decay=inf", "optimizer.weight_decay: found");
  expectSetError("optimizer.weight_decay=-0.1",
                 "optimizer.weight_decay: found");
  expectSetError("optimizer.epsilon=0", "optimizer.epsilon: found 0");
  // In f32, in which the update computes, these are 1, infinite and 0.
  expectSetError("optimizer.beta1=0.99999999", "optimizer.beta1: found 0.99");
  expectSetError("optimizer.beta2=0.99999999", "optimizer.beta2: found 0.99");
  expectSetError("optimizer.weight_decay=1e39",
                 "optimizer.weight_decay: found");
  expectSetError("optimizer.clip_grad_norm=1e-50",
                 "optimizer.clip_grad_norm: found 1e-50");
  expectSetError("optimizer.kind=adam",
                 "optimizer.kind: found \"adam\", expected "
                 "\"adamw\", \"sgd\" or \"lion\"");
  expectSetError("optimizer.momentum=0.9",
                 "optimizer.momentum: has no meaning for optimizer.kind "
                 "\"adamw\", which takes beta1, beta2, epsilon, "
                 "weight_decay; leave the line out");
  EXPECT_THAT(
      errorsOf(good, {"optimizer.kind=sgd", "optimizer.epsilon=1e-8",
                      "optimizer.momentum=1"}),
      testing::AllOf(HasSubstr("optimizer.epsilon: has no meaning for "
                               "optimizer.kind \"sgd\", which takes momentum, "
                               "weight_decay, nesterov; leave the line out"),
                     HasSubstr("optimizer.momentum: found 1, expected a number "
                               "from 0 to below 1")));
  const char *noMomentum =
      "optimizer.nesterov: means nothing without optimizer.momentum, which is "
      "0; give that one, or leave this one out";
  EXPECT_THAT(errorsOf(good, {"optimizer.kind=sgd", "optimizer.nesterov=true"}),
              HasSubstr(noMomentum));
  EXPECT_THAT(errorsOf(good, {"optimizer.kind=sgd", "optimizer.nesterov=true",
                              "optimizer.momentum=1"}),
              Not(HasSubstr(noMomentum)));
  expectSetError("optimizer.nesterov=1",
                 "optimizer.nesterov: found 1, expected true or false");
  for (const char *kind : {"adamw", "lion"})
    EXPECT_THAT(errorsOf(good, {std::string("optimizer.kind=") + kind,
                                "optimizer.nesterov=true"}),
                HasSubstr("optimizer.nesterov: has no meaning for "
                          "optimizer.kind \"" +
                          std::string(kind) + "\""));
  expectSetError(
      "precision.compute=f16",
      "precision.compute: found \"f16\", expected \"bf16\" or \"f32\"");
  expectSetError("precision.master=bf16", "precision.master: found");
  expectSetError("target.arch=x86-64-v9", "target.arch: found");
  expectSetError("recompute.policy=some", "recompute.policy: found \"some\"");
  expectSetError("expect.memory_per_rank=20",
                 "expect.memory_per_rank: found 20");
  expectSetError("expect.memory_per_rank=20 gigs",
                 "expect.memory_per_rank: found");
  expectSetError("zero.stage=4", "zero.stage: found 4");
  expectSetError("context.method=rnig", "context.method: found");
  expectSetError("pipeline.schedule=2f2b", "pipeline.schedule: found");
  expectSetError("shard.batch=dp",
                 "shard.batch: found \"dp\", expected an array");
  expectSetError("shard.batch=[1]",
                 "shard.batch: found [1], expected an array of mesh axes");
  expectSetError("shard.tensor=[{name = \"x\"}]", "shard.tensor: has no dims");
  expectSetError("optimizer.groups=[{rate = 2}]",
                 "optimizer.groups: has no name");
  expectSetError(
      "optimizer.groups=[{name = \"x\"}]",
      "optimizer.groups: changes nothing: give rate or weight_decay");
  expectSetError("optimizer.groups=[{name = \"\", rate = 1}]",
                 "optimizer.groups: name: found \"\", expected the glob");
  for (const char *rate : {"-1", "nan", "1e+300", "\"2\""})
    expectSetError(std::string("optimizer.groups=[{name = \"x\", rate = ") +
                       rate + "}]",
                   std::string("optimizer.groups: rate: found ") + rate);
  expectSetError("optimizer.groups=[{name = \"x\", rat = 1}]",
                 "optimizer.groups: found key \"rat\", expected name, rate and "
                 "weight_decay; did you mean \"rate\"?");
  expectSetError("optimizer.groups=[3]",
                 "optimizer.groups: found 3, expected a table");
  expectSetError("shard.tensor=[{nmae = \"x\", dims = 3}]",
                 "shard.tensor: dims: found 3, expected a string");
  EXPECT_THAT(errorsOf(good + "[[shard.tensor]]\nnmae = \"x\"\ndims = \"\"\n"),
              HasSubstr("s.toml:8:8: error: shard.tensor: found key \"nmae\", "
                        "expected name and dims; did you mean \"name\"?"));
}

TEST(SpecErrors, Axes) {
  for (const char *axis : {"dp=0", "dp=2x", "dp=-2", "dp= 2", "dp=99999999999"})
    expectSetError("mesh.axes=[\"" + std::string(axis) + "\"]",
                   "mesh.axes: found \"" + std::string(axis) +
                       "\", expected a size from 1 to 1048576, like \"dp=2\"");
  for (const char *axis : {"=2", "DP=2", "a-b=2", "x y=2", "2d=2", "\u00e9=2",
                           "a12345678901234567890123456789012=2"})
    expectSetError("mesh.axes=[\"" + std::string(axis) + "\"]",
                   "mesh.axes: found \"" + std::string(axis) +
                       "\", expected a name of at most 32 lower-case letters, "
                       "digits and _, a letter first, like \"dp=2\"");
  expectSetError("mesh.axes=[\"dp\"]", "mesh.axes: found \"dp\", expected a "
                                       "name and a size, like \"dp=2\"");
  expectSetError("mesh.axes=[2]",
                 "mesh.axes: found 2, expected a string like \"dp=2\"");
  std::string axes;
  for (char name = 'a'; name <= 'q'; ++name)
    axes += (axes.empty() ? "\"" : ", \"") + std::string(1, name) + "=1\"";
  expectSetError("mesh.axes=[" + axes + "]",
                 "mesh.axes: has 17 axes, expected at most 16");
  EXPECT_THAT(
      errorsOf(good, {"mesh.axes=[\"dp=2\", \"cp=2\"]", "shard.sequence=[]"}),
      HasSubstr("mesh.axes: axis \"cp\" splits nothing; its 2 ranks "
                "would repeat each other. Name it in [shard], like "
                "sequence = [\"cp\"]"));
  expectSetError("mesh.axes=[\"dp=1\", \"dp=2\"]",
                 "mesh.axes: has axis \"dp\" twice");
  EXPECT_THAT(
      errorsOf(good,
               {"mesh.axes=[\"dp=2\", \"ep=2\"]", "shard.batch=[\"dp\"]"}),
      HasSubstr("shard.batch: leaves out axis \"ep\", which splits experts "
                "alone: its ranks would all compute the same tokens; write "
                "shard.batch = [\"dp\", \"ep\"]"));
  expectSetError("mesh.axes=[\"dp=2\", \"x=2\"]",
                 "mesh.axes: axis \"x\" splits nothing; its 2 ranks would "
                 "repeat each other");
}

TEST(SpecErrors, ShardRules) {
  expectSetError("shard.batch=[\"pd\"]",
                 "shard.batch: found axis \"pd\", expected one of mesh.axes");
  expectSetError("shard.batch=[\"dp\", \"dp\"]",
                 "shard.batch: found axis \"dp\" again");
  EXPECT_THAT(errorsOf(good, {"shard.batch=[]"}),
              HasSubstr("mesh.axes: axis \"dp\" splits nothing"));
  expectError("[shard]\nheads = [\"dp\"]\n",
              "shard.batch: found axis \"dp\", which splits \"heads\" too");
  expectError("[shard]\nbatch = []\nhead_dim = [\"dp\"]\n",
              "shard.head_dim: not supported by this version: splitting "
              "\"head_dim\" over \"dp\"");
  EXPECT_THAT(
      errorsOf(good + "[shard]\nsequence = [\"cp\"]\n"
                      "residual_sequence = [\"tp\", \"cp\"]\n",
               {"mesh.axes=[\"dp=2\", \"cp=2\", \"tp=2\"]"}),
      HasSubstr(
          "shard.residual_sequence: has an axis of shard.sequence and does not "
          "begin with all of them; begin with \"cp\", or name none of them"));
  expectError("[shard]\nhead = [\"dp\"]\n", "did you mean \"shard.heads\"?");
}

TEST(SpecErrors, ALayerForEachStage) {
  auto layers = [](const std::string &text) {
    return errorsOf(good, {"mesh.axes=[\"pp=2\"]", "pipeline.layers=" + text});
  };
  EXPECT_THAT(layers("[0, 2]"),
              HasSubstr("pipeline.layers: stage 0 has 0 layers, expected a "
                        "whole number from 1 on: each stage needs at least "
                        "one layer"));
  EXPECT_THAT(layers("[2, -1, \"a\"]"),
              testing::AllOf(HasSubstr("stage 1 has -1 layers"),
                             HasSubstr("stage 2 has \"a\" layers")));
  EXPECT_THAT(layers("[9223372036854775807, 1]"),
              HasSubstr("stage 0 has 9223372036854775807 layers"));
  EXPECT_THAT(layers("[]"), HasSubstr("pipeline.layers: found []"));
}

TEST(SpecErrors, MethodsOfASequencesAxes) {
  auto errors = [](const std::string &sequence, const std::string &method) {
    return errorsOf(good + "[shard]\nsequence = " + sequence +
                        "\n[context]\nmethod = " + method + "\n",
                    {"mesh.axes=[\"dp=2\", \"cp=2\", \"up=2\"]"});
  };
  const std::string both = "[\"cp\", \"up\"]";
  EXPECT_THAT(errors(both, "{ cp = \"ring\" }"),
              HasSubstr("context.method: says nothing of axis \"up\""));
  EXPECT_THAT(errors("[\"cp\"]", "{ cp = \"ring\", up = \"ring\" }"),
              HasSubstr("context.method: names axis \"up\", which does not "
                        "split the sequence"));
  EXPECT_THAT(errors("[\"up\", \"cp\"]", "{ cp = \"ring\", up = \"ulysses\" }"),
              HasSubstr("shard.sequence: has an axis of \"ulysses\" before one "
                        "of \"ring\"; write it as [\"cp\", \"up\"]"));
  for (const char *method :
       {"{ cp = \"ring\", up = \"gathered\" }", "{}", "{ cp = 1 }",
        "{ cp = \"auto\", up = \"ulysses\" }", "[\"ring\"]"})
    EXPECT_THAT(errors(both, method), HasSubstr("context.method: found"))
        << method;
}

TEST(SpecErrors, ARingThatIsTooLong) {
  EXPECT_THAT(errorsOf(good, {"mesh.axes=[\"dp=2\", \"cp=1024\", \"up=2\"]",
                              "shard.sequence=[\"cp\", \"up\"]",
                              "context.method=ring"}),
              HasSubstr("context.method: \"ring\" would go through 2048 ranks, "
                        "expected at most 1024; let some exchange heads"));
}

TEST(SpecErrors, NotSupportedNamesTheWayOut) {
  expectSetError("zero.gradients=int8",
                 "zero.gradients: has no meaning in stage 0, where gradients "
                 "are all_reduced as they are");
  expectSetError("context.method=gathered",
                 "context.method: has no meaning where no axis splits the "
                 "sequence; write shard.sequence");
  expectSetError("context.layout=block",
                 "context.layout: has no meaning where no axis splits the "
                 "sequence; write shard.sequence");
  expectSetError("context.layout=zag", "context.layout: found");
  expectSetError("pipeline.schedule=zb-h3", "pipeline.schedule: found");
  for (const char *name : {"zb-h1", "zb-h2", "auto", "my.csv"})
    expectSetError((std::string("pipeline.schedule=") + name).c_str(),
                   "pipeline.schedule: \"" + std::string(name) +
                       "\" has no meaning without a pipeline");
  expectSetError("pipeline.virtual_stages=1",
                 "pipeline.virtual_stages: has no meaning without a pipeline");
  expectSetError("pipeline.layers=[3,4]",
                 "pipeline.layers: has no meaning without a pipeline");
  expectSetError("zero.gathered=keep",
                 "zero.gathered: has no meaning in stage 0");
  expectSetError("zero.weights=int8",
                 "zero.weights: has no meaning in stage 0; weights are "
                 "gathered in stage 3 only");
  expectSetError("zero.reduce=step", "zero.reduce: has no meaning in stage 0, "
                                     "where gradients are reduced once a step");
  expectSetError("overlap.bucket=1 B", "overlap.bucket: found");
  expectSetError("overlap.chunks=2", "overlap.chunks: has no meaning with "
                                     "overlap.matmul \"never\"");
  expectSetError("overlap.matmul=sometimes", "overlap.matmul: found");
  for (const char *when : {"auto", "always"})
    EXPECT_THAT(errorsOf(good, {"overlap.collectives=never",
                                std::string("overlap.matmul=") + when}),
                HasSubstr("overlap.matmul: found \"" + std::string(when) +
                          "\" with overlap.collectives \"never\", which lets "
                          "no chunk travel beside a product"));
  expectSetError("recompute.policy=auto",
                 "recompute.policy: \"auto\" takes what fits "
                 "expect.memory_per_rank, or the memory.capacity of "
                 "target.machine, which are missing");
  expectSetError("batch.micro=auto",
                 "batch.micro: \"auto\" takes what fits "
                 "expect.memory_per_rank, or the memory.capacity of "
                 "target.machine, which are missing");
  EXPECT_THAT(
      errorsOf(good,
               {"batch.micro=auto", "batch.global=7", "pipeline.schedule=a.csv",
                "expect.memory_per_rank=1 GiB"}),
      testing::AllOf(HasSubstr("found \"auto\" with a schedule of your own"),
                     HasSubstr("expected a multiple of 2 (batch.micro "
                               "\"auto\", from 1 on, times 2 data-parallel "
                               "ranks), like 6 or 8")));
}

// What a spec for more ranks says still means something when one rank has it.
TEST(Spec, APipelineOfOneRankTakesWhatMoreRanksTake) {
  for (const char *name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1",
                           "zb-h2", "zb-v", "dualpipe-v", "auto"})
    EXPECT_TRUE(parse(good, "s.toml",
                      {"mesh.axes=[\"dp=2\", \"pp=1\"]",
                       std::string("pipeline.schedule=") + name,
                       "pipeline.virtual_stages=2", "pipeline.layers=[1, 3]"})
                    .spec)
        << name;
  EXPECT_THAT(errorsOf(good, {"mesh.axes=[\"dp=2\", \"pp=1\"]",
                              "pipeline.schedule=my.csv"}),
              HasSubstr("pipeline.schedule: found a table of your own with one "
                        "rank along \"pp\", expected a schedule by name"));
}

TEST(SpecErrors, Target) {
  expectSetError("target.device=rocm",
                 "target.device: found \"rocm\", expected \"cpu\" or \"cuda\"");
  expectSetError("target.arch=sm_90a",
                 "target.arch: found \"sm_90a\" with target.device \"cpu\", "
                 "expected \"native\", \"x86-64-v3\" or \"x86-64-v4\"");
  EXPECT_THAT(
      errorsOf(good, {"target.device=cuda", "target.arch=x86-64-v3"}),
      HasSubstr("target.arch: found \"x86-64-v3\" with target.device \"cuda\", "
                "expected \"native\", \"sm_80\", \"sm_90a\" or \"sm_100\""));
}

TEST(SpecErrors, ArchitecturesAreThoseOfTheDevice) {
  auto arch = [](const std::string &name, const char *device) {
    return errorsOf(
        good, {"target.arch=" + name, std::string("target.device=") + device});
  };
  const std::string gpus =
      "expected \"native\", \"sm_80\", \"sm_90a\" or \"sm_100\"";
  EXPECT_THAT(arch("sm_89", "cuda"),
              HasSubstr("target.arch: found \"sm_89\" with target.device "
                        "\"cuda\", " +
                        gpus +
                        "; write \"sm_80\", whose code runs there "
                        "too\n"));
  EXPECT_THAT(arch("sm_90", "cuda"), HasSubstr(gpus + "; write \"sm_90a\"\n"));
  EXPECT_THAT(arch("SM_90A", "cuda"), HasSubstr(gpus + "; write \"sm_90a\"\n"));
  EXPECT_THAT(arch("x86-64-v3", "cuda"),
              HasSubstr(gpus + "; or write target.device = \"cpu\"\n"));
  EXPECT_THAT(arch("h100", "cpu"),
              HasSubstr("expected \"native\", \"x86-64-v3\" or "
                        "\"x86-64-v4\"; write target.device = \"cuda\" and "
                        "target.arch = \"sm_90a\"\n"));
}

TEST(SpecErrors, Batch) {
  expectSetError(
      "batch.global=20",
      "batch.global: found 20, expected a multiple of 8 (batch.micro "
      "4 times 2 data-parallel ranks), like 16 or 24");
  expectSetError("batch.global=7", "batch.global: found 7, expected a multiple "
                                   "of 8 (batch.micro 4 times 2 data-parallel "
                                   "ranks), like 8");
  EXPECT_THAT(errorsOf(good, {"batch.sequence=2147483647"}),
              HasSubstr("more than 2147483647 tokens a microbatch"));
}

TEST(SpecErrors, Precision) {
  EXPECT_THAT(
      errorsOf(good, {"precision.compute=f32", "precision.gradients=bf16"}),
      HasSubstr("precision.gradients: found \"bf16\" with "
                "precision.compute \"f32\", expected \"f32\""));
  EXPECT_THAT(
      errorsOf(good,
               {"precision.compute=f32", "precision.rounding=stochastic"}),
      HasSubstr("precision.rounding: \"stochastic\" has nothing to round with "
                "precision.compute \"f32\""));
  EXPECT_THAT(errorsOf(good, {"precision.rounding=up"}),
              HasSubstr("precision.rounding: found \"up\", expected"));
  EXPECT_THAT(errorsOf(good, {"target.device=cuda", "target.arch=sm_80",
                              "precision.matmul=fp8"}),
              HasSubstr("precision.matmul: found \"fp8\" with target.arch "
                        "\"sm_80\", whose tensor cores multiply nothing of 8 "
                        "bits; expected \"compute\", or target.arch "
                        "\"sm_90a\" or \"sm_100\""));
  EXPECT_THAT(errorsOf(good, {"precision.matmul=fp4"}),
              HasSubstr("precision.matmul: found \"fp4\", expected "
                        "\"compute\" or \"fp8\""));
  EXPECT_THAT(errorsOf(good, {"precision.matmuls=fp8"}), HasSubstr("matmul"));
  EXPECT_THAT(errorsOf(good, {"precision.scaling=delayed"}),
              HasSubstr("precision.scaling: \"delayed\" has nothing to scale "
                        "with precision.matmul \"compute\""));
  EXPECT_THAT(
      errorsOf(good, {"precision.matmul=fp8", "precision.scaling=blocks"}),
      HasSubstr("precision.scaling: found \"blocks\", expected"));
  EXPECT_THAT(errorsOf(good, {"precision.weight_casts=step"}),
              HasSubstr("precision.weight_casts: found \"step\", but with "
                        "precision.matmul \"compute\" no weight is cast"));
}

TEST(SpecErrors, OfOffloading) {
  expectSetError("offload.optimizer=nvme",
                 "offload.optimizer: not supported by this version: \"nvme\"; "
                 "states can lie in the host's memory, not on disks; write "
                 "true");
  Result onCpu = parse(good, "s.toml",
                       {"offload.optimizer=true", "recompute.policy=offload"});
  EXPECT_TRUE(onCpu.spec);
  for (const char *key : {"offload.optimizer", "recompute.policy"})
    EXPECT_THAT(textOf(onCpu.diagnostics),
                HasSubstr("warning: " + std::string(key) +
                          ": saves nothing with target.device \"cpu\""));
  EXPECT_TRUE(
      parse(good, "s.toml", {"offload.optimizer=true", "target.device=cuda"})
          .diagnostics.empty());
  for (const char *lone :
       {"offload.window=1 MiB", "offload.host_memory_per_rank=1 GiB"})
    EXPECT_THAT(errorsOf(good, {lone}),
                HasSubstr("means nothing where nothing is offloaded; write "
                          "offload.optimizer = true, say"));
  EXPECT_THAT(errorsOf(good, {"offload.activations=auto"}),
              HasSubstr("offload.activations: \"auto\" lets recompute.policy = "
                        "\"auto\" choose, and that is \"selective\"; write "
                        "recompute.policy = \"offload\""));
  EXPECT_THAT(errorsOf(good, {"offload.optimizer=true", "optimizer.kind=sgd",
                              "precision.compute=f32"}),
              HasSubstr("offload.optimizer: has nothing to move: \"sgd\" with "
                        "these settings keeps no states"));
  expectSetError("offload.window=1 B", "offload.window: found \"1 B\", "
                                       "expected a size from 1 KiB to 4 GiB");
}

// Every prefix and every single changed byte of a spec ends in a result.
TEST(SpecErrors, SurvivesDamage) {
  std::string text = good + "[optimizer]\nbeta1 = 0.9\n[expect]\n"
                            "memory_per_rank = \"2 GiB\"\n";
  for (size_t length = 0; length < text.size(); ++length) {
    Result result = parse(text.substr(0, length), "s.toml");
    EXPECT_NE(result.spec.has_value(), hasErrors(result.diagnostics));
  }
  for (size_t place = 0; place < text.size(); ++place)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = text;
      changed[place] = static_cast<char>(changed[place] ^ (1 << bit));
      Result result = parse(changed, "s.toml");
      EXPECT_NE(result.spec.has_value(), hasErrors(result.diagnostics));
    }
}

// Letters of which toml++ 3.3 asks whether they are spaces.
TEST(SpecErrors, LettersBeyondAscii) {
  for (const char *letter : {"\u00e9", "\ufef7", "\u200b", "\u4e00"})
    EXPECT_THAT(errorsOf(good + letter + " = 1\n"), HasSubstr("s.toml:7"));
}

} // namespace
} // namespace meshwork::spec
