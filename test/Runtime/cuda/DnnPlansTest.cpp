// What cuDNN itself says of the graphs, for GPUs that are described to it: its
// engines know them, and their kernels compile. No GPU is needed for that
// (cuDNN's "deviceless" compilation, from 9.8 on); what they compute, the
// stand-in tells (test/Support/Emulator/dnn).
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/device/cuda/AttentionGraph.h"
#include "runtime/device/cuda/DnnPlan.h"
#include <gtest/gtest.h>

namespace meshwork::runtime::cuda {
namespace {

struct DescribedGpu {
  const char *name;
  int version, processors, sharedBytes;
};
const DescribedGpu a100{"NVIDIA A100-SXM4-80GB", 800, 108, 166912},
    h100{"NVIDIA H100 80GB HBM3", 900, 132, 232448},
    b200{"NVIDIA B200", 1000, 148, 232448};

/// The keys are those that the library asks for; what it has no use for is
/// that of an H100.
std::string jsonOf(const DescribedGpu &gpu) {
  return absl::StrCat(R"({"deviceName": ")", gpu.name, R"(", "deviceVer": )",
                      gpu.version, R"(, "multiProcessorCount": )",
                      gpu.processors, R"(, "maxSharedMemoryPerBlockOptin": )",
                      gpu.sharedBytes,
                      R"(, "maxGridSize": [2147483647, 65535, 65535],
         "maxBlockSize": [1024, 1024, 64], "cudaDeviceId": 0,
         "regsPerBlock": 65536, "smClockRateKHz": 1980000,
         "memClockRateKHz": 2619000, "memoryBusWidth": 5120,
         "l2CacheSize": 52428800, "warpSize": 32,
         "maxSharedMemoryPerBlock": 49152,
         "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
         "pciDeviceId": 0, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
         "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1,
         "driverVer": 13000, "totalGlobalMem": 85017755648})");
}

/// Owns the description.
class Target {
public:
  Target(const DnnLibrary &library, const DescribedGpu &gpu)
      : library(library) {
    std::string json = jsonOf(gpu);
    expect(library.createDescriptor(dnn::descriptor::deviceProperties, &raw));
    expect(library.setAttribute(
        raw, dnn::attribute::deviceJson, dnn::type::character,
        static_cast<int64_t>(json.size()), json.data()));
    expect(library.finalize(raw));
  }
  ~Target() { (void)library.destroyDescriptor(raw); }
  DnnTarget get() const { return {nullptr, raw}; }

private:
  void expect(dnn::Status status) {
    absl::Status checked = library.check(status, "describing a GPU");
    EXPECT_TRUE(checked.ok()) << checked;
  }
  const DnnLibrary &library;
  dnn::Descriptor raw = nullptr;
};

/// q, k and v are parts of one tensor of tokens, as after one product.
AttentionProblem problemOf(int64_t heads, int64_t kvHeads, int64_t sequence,
                           int64_t d) {
  constexpr int64_t batch = 2;
  auto part = [&](int64_t of, int64_t row) {
    return AttentionTensor{{batch, of, sequence, d},
                           {sequence * row, d, row, 1}};
  };
  int64_t fused = (heads + 2 * kvHeads) * d;
  AttentionProblem problem;
  problem.q = problem.dq = part(heads, fused);
  problem.k = problem.v = problem.dk = problem.dv = part(kvHeads, fused);
  problem.out = problem.dout = part(heads, heads * d);
  problem.causal = true;
  return problem;
}

class DnnPlans : public ::testing::TestWithParam<DescribedGpu> {
protected:
  void SetUp() override {
    auto opened = DnnLibrary::open();
    ASSERT_TRUE(opened.ok()) << opened.status();
    library = *opened;
  }

  auto planOf(const AttentionGraph &made) {
    Target target(*library, GetParam());
    return DnnPlan::create(*library, target.get(), made.graph);
  }

  void expectPlanned(const AttentionProblem &problem,
                     const AttentionGraph &made) {
    auto plan = planOf(made);
    ASSERT_TRUE(plan.ok()) << plan.status();
    // Linear in the sequence: each head's gradients of keys and values, in f32
    // at most.
    const Dims4 &q = problem.q.dims;
    EXPECT_LE((*plan)->workspaceBytes(), 8 * q[0] * q[1] * q[2] * q[3] + 4096);
  }
  void expectPlanned(const AttentionProblem &problem) {
    expectPlanned(problem, attentionGraph(problem));
    expectPlanned(problem, attentionGradGraph(problem));
  }

  const DnnLibrary *library = nullptr;
};

TEST_P(DnnPlans, heads) { expectPlanned(problemOf(12, 12, 1024, 64)); }
TEST_P(DnnPlans, groupsOfHeads) { expectPlanned(problemOf(8, 2, 512, 128)); }
TEST_P(DnnPlans, window) {
  AttentionProblem problem = problemOf(8, 2, 512, 64);
  problem.window = 128;
  expectPlanned(problem);
}
/// 9.19 knows the gradient from Hopper on; before, the plan's kernels run it.
TEST_P(DnnPlans, documents) {
  AttentionProblem heads = problemOf(12, 12, 1024, 64),
                   window = problemOf(8, 2, 512, 128);
  window.window = 128;
  for (AttentionProblem problem : {heads, window}) {
    problem.documents = true;
    expectPlanned(problem, attentionGraph(problem));
    AttentionGraph gradient = attentionGradGraph(problem);
    if (GetParam().version >= 900)
      expectPlanned(problem, gradient);
    else if (auto plan = planOf(gradient); !plan.ok())
      EXPECT_EQ(plan.status().code(), absl::StatusCode::kUnimplemented)
          << plan.status();
  }
}
TEST_P(DnnPlans, everyKey) {
  AttentionProblem problem = problemOf(4, 4, 200, 64);
  problem.causal = false;
  expectPlanned(problem);
}

/// A graph that no engine knows is told as such, so that kernels take over.
TEST_P(DnnPlans, refusesWhatNoEngineKnows) {
  Target target(*library, GetParam());
  DnnGraph graph;
  Dims4 dims{2, 3, 4, 5};
  size_t x = graph.memory(dnn::dataType::i32, dims, denseStrides(dims)),
         y = graph.memory(dnn::dataType::boolean, dims, {1, 2, 6, 24});
  graph.pointwise(dnn::pointwiseMode::log, x, std::nullopt, y);
  auto plan = DnnPlan::create(*library, target.get(), graph);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kUnimplemented)
      << plan.status();
}

INSTANTIATE_TEST_SUITE_P(Gpus, DnnPlans, ::testing::Values(a100, h100, b200),
                         [](const auto &info) {
                           return absl::StrReplaceAll(info.param.name,
                                                      {{" ", "_"}, {"-", "_"}});
                         });

} // namespace
} // namespace meshwork::runtime::cuda
