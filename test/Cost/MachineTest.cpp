#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/Cost/Machine.h"

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
  EXPECT_EQ(machine.flops[2], 1e11);     // as f32
  EXPECT_EQ(machine.attention[2], 1e11); // as products
  EXPECT_EQ(machine.kernels, 1e10);      // as memory
  EXPECT_EQ(machine.host, 5e9);          // half of it
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
  EXPECT_EQ(result.machine->host, 3e9);
  EXPECT_EQ(*readMachine(print(*result.machine), "m.toml").machine,
            *result.machine);
  EXPECT_EQ(result.machine->halfSize, 3e6);
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
  ASSERT_EQ(shippedMachines().size(), 5u);
  for (const Machine &machine : shippedMachines()) {
    MachineResult again = readMachine(print(machine), "printed");
    ASSERT_TRUE(again.machine) << textOf(again.diagnostics);
    EXPECT_EQ(*again.machine, machine) << print(machine);
    EXPECT_EQ(findShipped(machine.name), &machine);
  }
  EXPECT_EQ(findShipped("h100"), nullptr);
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
