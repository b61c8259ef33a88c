#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/Cost/Keys.h"
#include "lib/Cost/Machine.h"

#include <fstream>
#include <sstream>

namespace meshwork::cost {
namespace {

using testing::HasSubstr;

const std::string good = R"(name = "m"
device = "cpu"
ranks_per_node = 4
[flops]
f32 = 1e11
[memory]
bandwidth = 1e10
[link.within_node]
latency = 1e-5
bandwidth = 1e9
)";

std::string errorsOf(const std::string &text) {
  MachineResult result = readMachine(text, "m.toml");
  EXPECT_FALSE(result.machine) << "no error in\n" << text;
  return textOf(result.diagnostics);
}

TEST(Machine, WhatIsLeftOutFollowsFromTheRest) {
  MachineResult result = readMachine(good, "m.toml");
  ASSERT_TRUE(result.machine) << textOf(result.diagnostics);
  const Machine &machine = *result.machine;
  EXPECT_EQ(machine.flops[2], 1e11);      // as f32
  EXPECT_EQ(machine.attention[2], 1e11);  // as products
  EXPECT_EQ(machine.kernels, 1e10);       // as memory
  EXPECT_EQ(machine.host.bandwidth, 5e9); // half of it
  EXPECT_EQ(machine.halfSize, 0);
  EXPECT_EQ(machine.launch, 0);
  EXPECT_EQ(machine.cores, 0u);
  for (size_t i = 0; i < numLinkClasses; ++i)
    EXPECT_EQ(machine.links[i], (Link{1e-5, 1e9, false, i == 1}));
  EXPECT_EQ(print(machine).find("between_nodes"), std::string::npos);
  EXPECT_EQ(print(machine).find("host"), std::string::npos);
}

TEST(Machine, KindsOfWorkHaveRatesOfTheirOwn) {
  std::string text = good;
  text.replace(text.find("[memory]\n"), 9,
               "half_size = 3e6\n[attention]\nbf16 = 2e10\n"
               "[memory]\nkernels = 4e9\nhost = 3e9\n");
  MachineResult result = readMachine(text, "m.toml");
  ASSERT_TRUE(result.machine) << textOf(result.diagnostics);
  EXPECT_EQ(result.machine->attention[0], 1e11);
  EXPECT_EQ(result.machine->attention[1], 2e10);
  EXPECT_EQ(result.machine->kernels, 4e9);
  EXPECT_EQ(result.machine->host.bandwidth, 3e9); // by its older name
  EXPECT_EQ(*readMachine(print(*result.machine), "m.toml").machine,
            *result.machine);
  EXPECT_EQ(result.machine->halfSize, 3e6);
}

/// Every key that a GPU's file may have, in the order in which they print.
const std::string full = R"(name = "m"
device = "cuda"
ranks_per_node = 8

[flops]
f32 = 1e12
bf16 = 2e12
fp8 = 3e12
half_size = 0.0

[attention]
f32 = 4e12
bf16 = 5e12
fp8 = 6e12
half_head = 7.0
half_keys = 8.0

[attention.backward]
f32 = 9e12
bf16 = 10e12
fp8 = 11e12
half_head = 12.0
half_keys = 13.0

[peak]
bf16 = 14e12

[products]
multiprocessors = 15
tiles = ["256x128","64x32"]
half_tile = 16.0
begin = 17.0

[memory]
bandwidth = 18e12
kernels = 19e12
capacity = 21e9

[launch]
overhead = 0.0
hand_over = 0.0

[host]
instruction = 22e-6

[node]
adapters = 4

[nodes]
jitter = 0.02
late = 23e-6

[ranks]
jitter = 0.03

[overlap]
slowdown = 0.1

[link.within_node]
latency = 24e-6
bandwidth = 25e9
takes_cores = false
hop = 26e-6
half_size = 27.0

[link.between_nodes]
latency = 28e-6
bandwidth = 29e9
takes_cores = false
hop = 30e-6
half_size = 31.0

[link.host]
bandwidth = 20e9
latency = 33e-6
shared_by = 2
takes_cores = true

[link.spine]
nodes = 32
share = 0.5
)";

TEST(Machine, EveryKeyReadsBackFromWhatItPrints) {
  MachineResult result = readMachine(full, "m.toml");
  ASSERT_TRUE(result.machine) << textOf(result.diagnostics);
  const Machine &m = *result.machine;
  EXPECT_EQ(m.products, (Products{15, {{256, 128}, {64, 32}}, 16, 17}));
  EXPECT_EQ(m.gradient[1], 10e12);
  EXPECT_EQ(m.halfKeysOfGradient, 13);
  EXPECT_EQ(m.adapters, 4u);
  EXPECT_EQ(m.spine, (Spine{32, 0.5}));
  EXPECT_EQ(m.jitter, 0.02);
  EXPECT_EQ(m.late, 23e-6);
  EXPECT_EQ(m.rankJitter, 0.03);
  EXPECT_EQ(m.slowdown, 0.1);
  EXPECT_EQ(m.hostInstruction, 22e-6);
  EXPECT_EQ(m.host, (HostLink{20e9, 33e-6, 2, true}));
  EXPECT_EQ(m.links[2], (Link{28e-6, 29e9, false, true, 30e-6, 31}));
  EXPECT_EQ(*readMachine(print(m), "printed").machine, m) << print(m);
  EXPECT_EQ(*readFromOneLine(printOnOneLine(m)).machine, m);
  auto names = [](const std::string &of) {
    std::vector<std::string> keys;
    std::istringstream lines(of);
    for (std::string line; std::getline(lines, line);)
      keys.push_back(line.substr(0, line.find(' ')));
    return keys;
  };
  EXPECT_EQ(names(print(m)), names(full)); // none is left out
}

TEST(Machine, TheHostsLinkHasOneBandwidth) {
  std::string text = full;
  text.replace(text.find("capacity"), 0, "host = 20e9\n");
  MachineResult result = readMachine(text, "m.toml");
  EXPECT_FALSE(result.machine);
  EXPECT_NE(textOf(result.diagnostics)
                .find("memory.host: found beside link.host.bandwidth, whose "
                      "older name it is; leave it out"),
            std::string::npos)
      << textOf(result.diagnostics);
}

/// By its path or, beside others of its section, by its name.
TEST(Machine, EveryKeyIsInTheReadme) {
  std::ifstream file(MESHWORK_COST_README);
  std::string readme(std::istreambuf_iterator<char>(file), {});
  readme = readme.substr(readme.find("## A machine file"));
  readme = readme.substr(0, readme.find("\n## ", 3));
  for (const Key &key : allKeys()) {
    bool isTold = readme.find("`" + key.path + "`") != std::string::npos ||
                  readme.find("`" + key.name() + "`") != std::string::npos;
    EXPECT_TRUE(isTold) << key.path;
    std::string section = key.section();
    section = section.substr(section.rfind('.') + 1);
    EXPECT_NE(readme.find(section), std::string::npos) << section;
  }
}

TEST(Machine, AttentionBackwardIsAsForwardUnlessSaid) {
  std::string text = good;
  text.replace(text.find("[memory]\n"), 9,
               "[attention]\nbf16 = 2e10\nhalf_head = 3\nhalf_keys = 4\n"
               "[memory]\n");
  Machine m = *readMachine(text, "m.toml").machine;
  EXPECT_EQ(m.gradient, m.attention);
  EXPECT_EQ(m.halfHeadOfGradient, 3);
  EXPECT_EQ(m.halfKeysOfGradient, 4);
  EXPECT_EQ(print(m).find("backward"), std::string::npos);
}

TEST(Machine, KeysThatBelongTogetherStandTogether) {
  EXPECT_EQ(
      errorsOf(good + R"([products]
tiles = ["256x128", "64"]
[node]
adapters = 4
[link.spine]
nodes = 0
)"),
      R"(m.toml:12:1: error: products.tiles: found without products.multiprocessors, which it belongs to
m.toml:12:9: error: products.tiles: found ["256x128", "64"], expected 1 to 16 tiles of 8 to 4096, like ["256x128", "64x64"]
m.toml:14:1: error: node.adapters: found without link.between_nodes, which it belongs to
m.toml:16:1: error: link.spine.nodes: found without link.spine.share, which it belongs to
m.toml:16:9: error: link.spine.nodes: found 0, expected a whole number from 1 to 1048576
)");
  std::string text = good + "[products]\nmultiprocessors = 2\ntiles = "
                            "[\"8x4096\"]\n";
  ASSERT_TRUE(readMachine(text, "m.toml").machine);
  text.replace(text.find("[memory]\n"), 9, "half_size = 1e6\n[memory]\n");
  EXPECT_THAT(errorsOf(text),
              HasSubstr("m.toml:6:1: error: flops.half_size: found beside "
                        "products.tiles, expected one of them"));
  for (const char *tile :
       {"7x8", "8x4097", "8x8x8", "x8", "8x", "-8x8", "8X8", "99999999999x8"})
    EXPECT_THAT(errorsOf(good + "[products]\nmultiprocessors = 2\ntiles = [\"" +
                         tile + "\"]\n"),
                HasSubstr("expected 1 to 16 tiles of 8 to 4096"))
        << tile;
}

TEST(Machine, NamesItsGpus) {
  std::string text = good;
  text.replace(text.find("\"cpu\""), 5, "\"cuda\"\narch = \"sm_90a\"");
  MachineResult result = readMachine(text, "m.toml");
  ASSERT_TRUE(result.machine) << textOf(result.diagnostics);
  EXPECT_EQ(result.machine->arch, "sm_90a");
  EXPECT_EQ(readMachine(print(*result.machine), "m.toml").machine->arch,
            "sm_90a");
  EXPECT_EQ(findShipped("h100x8")->arch, "sm_90a");
  EXPECT_EQ(findShipped("a100x8")->arch, "sm_80");
  EXPECT_EQ(findShipped("cuda")->arch, "");
  text.replace(text.find("sm_90a"), 6, "sm_91a");
  EXPECT_THAT(errorsOf(text),
              HasSubstr("m.toml:3:8: error: arch: found \"sm_91a\", expected "
                        "\"sm_80\", \"sm_90a\" or \"sm_100\""));
  EXPECT_THAT(errorsOf("arch = \"sm_80\"\n" + good),
              HasSubstr("m.toml:1:8: error: arch: found \"sm_80\" with device "
                        "\"cpu\", expected none: it names GPUs"));
}

TEST(Machine, AllMistakesOfAFileAreReported) {
  EXPECT_EQ(
      errorsOf(R"(name = "My machine"
device = "tpu"
ranks_per_nod = 8
cores = 1.5
[flops]
f32 = nan
bf17 = 1e11
[memory]
bandwidth = -1
[launch]
overhead = "5 us"
[link.within_node]
latency = inf
[links.between_nodes]
latency = 1e-6
)"),
      R"(m.toml: error: ranks_per_node: missing, expected a whole number from 1 to 1048576
m.toml:1:8: error: name: found "My machine", expected at most 64 lower-case letters, digits, "-", "_" and "."
m.toml:2:10: error: device: found "tpu", expected cpu or cuda
m.toml:3:1: error: unknown key ranks_per_nod; did you mean "ranks_per_node"?
m.toml:4:9: error: cores: found 1.5, expected a whole number from 1 to 65536
m.toml:6:7: error: flops.f32: found nan, expected a number from 1e+06 to 1e+18, flops a second
m.toml:7:1: error: unknown key flops.bf17; did you mean "flops.bf16"?
m.toml:9:13: error: memory.bandwidth: found -1, expected a number from 1e+06 to 1e+18, bytes a second
m.toml:11:12: error: launch.overhead: found "5 us", expected a number from 0 to 1, seconds
m.toml:12:7: error: link.within_node.bandwidth: missing, a link has a latency and a bandwidth
m.toml:13:11: error: link.within_node.latency: found inf, expected a number from 0 to 10, seconds
m.toml:14:2: error: unknown table [links]; did you mean "link"?
)");
}

TEST(Machine, OneNeedsALink) {
  std::string text = good.substr(0, good.find("[link"));
  EXPECT_THAT(errorsOf(text), HasSubstr("m.toml: error: has no link"));
  EXPECT_THAT(errorsOf("flops = 3\n" + good.substr(0, good.find("[flops"))),
              HasSubstr("flops: found 3, expected a table [flops]"));
}

TEST(Machine, LongAndBrokenTextsAreRefused) {
  EXPECT_THAT(errorsOf(good + std::string(maxMachineBytes, '#')),
              HasSubstr("expected a machine file of at most 65536"));
  EXPECT_THAT(errorsOf("name = "), HasSubstr("m.toml:1:"));
  EXPECT_THAT(errorsOf(good + std::string(4096, '[')), HasSubstr("m.toml"));
}

TEST(Machine, ShippedOnesReadBackFromWhatTheyPrint) {
  ASSERT_EQ(shippedMachines().size(), 7u);
  for (const Machine &machine : shippedMachines()) {
    MachineResult again = readMachine(print(machine), "printed");
    ASSERT_TRUE(again.machine) << textOf(again.diagnostics);
    EXPECT_EQ(*again.machine, machine) << print(machine);
    EXPECT_EQ(findShipped(machine.name), &machine);
  }
  EXPECT_EQ(findShipped("h100"), nullptr);
  EXPECT_EQ(findShipped("b200x8")->arch, "sm_100");
  EXPECT_EQ(findShipped("h200x8")->capacity, 141e9);
}

/// What plans without a machine were made for before there were machine files.
TEST(Machine, TheDefaultsAreTheRoughCpuAndGpu) {
  const Machine &cpu = defaultMachine(spec::Device::cpu);
  const Machine &gpu = defaultMachine(spec::Device::cuda);
  EXPECT_EQ(cpu.device, spec::Device::cpu);
  EXPECT_EQ(gpu.device, spec::Device::cuda);
  for (size_t i = 0; i < numArithmetics; ++i) {
    EXPECT_EQ(cpu.flops[i], 1e11);
    EXPECT_EQ(gpu.flops[i], 5e14);
  }
  EXPECT_EQ(cpu.memory, 1e10);
  EXPECT_EQ(gpu.memory, 2.5e12);
  EXPECT_EQ(cpu.handOver, 50e-6);
  EXPECT_EQ(gpu.handOver, 5e-6);
  for (size_t i = 0; i < numLinkClasses; ++i) {
    EXPECT_EQ(cpu.links[i].bandwidth, 5e9);
    EXPECT_EQ(cpu.links[i].latency, 20e-6);
    EXPECT_TRUE(cpu.links[i].takesCores);
    EXPECT_FALSE(gpu.links[i].takesCores);
    EXPECT_EQ(gpu.links[i].bandwidth, 5e10);
    EXPECT_EQ(gpu.links[i].latency, 20e-6);
  }
}

} // namespace
} // namespace meshwork::cost
