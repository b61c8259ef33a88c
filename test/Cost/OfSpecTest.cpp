#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/Cost/OfSpec.h"

namespace meshwork::cost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A spec with this machine, in a folder, and what of files was asked for.
struct Resolved {
  explicit Resolved(const std::string &machine,
                    std::string origin = "dir/s.toml:9:11",
                    const std::string &device = "cpu") {
    spec::Result read = spec::parse(
        "[mesh]\naxes = []\n[batch]\nglobal = 1\nmicro = 1\nsequence = 8\n",
        "dir/s.toml", {"target.device=" + device});
    spec = *read.spec;
    spec.machine = machine;
    wrong = resolveMachine(spec, origin, "dir/s.toml",
                           [this](const std::string &path) {
                             paths.push_back(path);
                             return file;
                           });
  }
  static inline std::optional<std::string> file;
  spec::Spec spec;
  Diagnostics wrong;
  std::vector<std::string> paths;
};

TEST(MachineOfSpec, WithoutAKeyItIsTheDevicesDefault) {
  Resolved cpu(""), gpu("", "default", "cuda");
  EXPECT_EQ(machineOf(cpu.spec), defaultMachine(spec::Device::cpu));
  EXPECT_EQ(machineOf(gpu.spec), defaultMachine(spec::Device::cuda));
}

TEST(MachineOfSpec, ANameIsAShippedMachine) {
  Resolved gpu("h100x8", "dir/s.toml:9:11", "cuda");
  EXPECT_TRUE(gpu.wrong.empty()) << textOf(gpu.wrong);
  EXPECT_EQ(machineOf(gpu.spec), *findShipped("h100x8"));
  EXPECT_EQ(gpu.spec.machine, "h100x8");
  EXPECT_THAT(
      textOf(Resolved("h100x9").wrong),
      HasSubstr(
          "dir/s.toml:9:11: error: target.machine: found \"h100x9\", expected "
          "\"a100x8\", \"b200x8\", \"cpu\", \"cuda\", \"h100x8\", \"h200x8\", "
          "\"xeon-2\", or the path of "
          "a machine file, which ends in .toml; did you mean \"h100x8\"?"));
  EXPECT_THAT(
      textOf(Resolved("h100x8").wrong),
      HasSubstr("found a machine with device \"cuda\", expected that of "
                "target.device, \"cpu\""));
}

TEST(MachineOfSpec, ItsMemoryIsTheLimitWhereTheSpecGivesNone) {
  EXPECT_FALSE(memoryLimit(Resolved("", "default", "cuda").spec));
  Resolved gpu("h100x8", "dir/s.toml:9:11", "cuda");
  EXPECT_EQ(memoryLimit(gpu.spec)->bytes, 80'000'000'000u);
  EXPECT_EQ(memoryLimit(gpu.spec)->from,
            "memory.capacity of target.machine \"h100x8\"");
  gpu.spec.memoryPerRankBytes = 5;
  EXPECT_EQ(memoryLimit(gpu.spec)->bytes, 5u);
  EXPECT_EQ(memoryLimit(gpu.spec)->from, "expect.memory_per_rank");
}

/// Ranks of a node whose figures are of all of them together.
TEST(MachineOfSpec, RanksOfANodeShareItsMemory) {
  Machine node = *findShipped("xeon-2");
  node.ranksPerNode = 4;
  node.capacity = 1200;
  spec::Spec spec;
  spec.machine = print(node);
  for (auto [ranks, bytes] : {std::pair{1u, 1200u}, {3u, 400u}, {8u, 300u}}) {
    spec.mesh = {{"a", ranks}};
    EXPECT_EQ(memoryLimit(spec)->bytes, bytes) << ranks;
  }
}

/// The same figures give the same spec, wherever the file was.
TEST(MachineOfSpec, WhatAFileHoldsTakesThePlaceOfItsPath) {
  Machine own = *findShipped("xeon-2");
  own.name = "own";
  own.flops[0] = 123456789012.5;
  Resolved::file = "# mine\n" + print(own);
  Resolved ofSpec("m.toml"), ofOption("m.toml", "--set target.machine=m.toml"),
      absolute("/a/m.toml");
  EXPECT_THAT(ofSpec.paths, ElementsAre("dir/m.toml"));
  EXPECT_THAT(ofOption.paths, ElementsAre("m.toml"));
  EXPECT_THAT(absolute.paths, ElementsAre("/a/m.toml"));
  EXPECT_EQ(ofSpec.spec.machine, absolute.spec.machine);
  EXPECT_EQ(machineOf(ofSpec.spec), own);
  Resolved again(ofSpec.spec.machine);
  EXPECT_TRUE(again.wrong.empty() && again.paths.empty());
  MachineResult ofPlan =
      machineOfPlan(spec::print(ofSpec.spec), spec::Device::cpu);
  ASSERT_TRUE(ofPlan.machine) << textOf(ofPlan.diagnostics);
  EXPECT_EQ(*ofPlan.machine, own);
}

TEST(MachineOfSpec, AFilesMistakesAreToldAtTheFile) {
  Resolved::file = "name = 3\n";
  EXPECT_THAT(textOf(Resolved("m.toml").wrong),
              HasSubstr("dir/m.toml:1:8: error: name: found 3, expected"));
  Resolved::file.reset();
  EXPECT_THAT(textOf(Resolved("m.toml").wrong),
              HasSubstr("dir/s.toml:9:11: error: target.machine: "
                        "\"dir/m.toml\" cannot be read"));
}

TEST(MachineOfSpec, APlansSpecMayHoldAnything) {
  for (const char *text : {"", "[", "target = 3", "[target]\nmachine = 3"})
    EXPECT_NO_FATAL_FAILURE(machineOfPlan(text, spec::Device::cpu)) << text;
  MachineResult broken =
      machineOfPlan("[target]\nmachine = \"a\\nb\"", spec::Device::cpu);
  EXPECT_FALSE(broken.machine);
  EXPECT_EQ(*machineOfPlan("", spec::Device::cuda).machine,
            defaultMachine(spec::Device::cuda));
}

} // namespace
} // namespace meshwork::cost
