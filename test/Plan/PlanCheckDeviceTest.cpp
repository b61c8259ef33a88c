// Code and launches: what a plan for GPUs must have, and one for CPUs must not.
#include "Mutants.h"
#include "meshwork/Plan/Frame.h"

namespace meshwork::plan::test {
namespace {

PlanT gpuPlan() { return tinyGpuPlan({.ranks = 4}); }

TEST(PlanCheckDevice, codeOfGpus) {
  expectRefused(
      gpuPlan, {
                   {"features of a CPU, and no code for one",
                    [](PlanT &p, ProgramT &) { p.cpu_features = {"avx2"}; }},
                   {"3 kernels but no images",
                    [](PlanT &p, ProgramT &) { p.images.clear(); }},
                   {"an image has no arch",
                    [](PlanT &p, ProgramT &) { p.images[0]->arch.clear(); }},
                   {"\"sm_80\" has the unknown kind 7",
                    [](PlanT &p, ProgramT &) {
                      p.images[0]->kind = static_cast<ImageKind>(7);
                    }},
                   {"\"sm_80\" is empty",
                    [](PlanT &p, ProgramT &) { p.images[0]->code.clear(); }},
                   {"does not end with a zero byte",
                    [](PlanT &p, ProgramT &) { p.images[0]->code = {'.'}; }},
                   {"no symbol",
                    [](PlanT &p, ProgramT &) { p.kernels[0]->symbol.clear(); }},
               });
}

TEST(PlanCheckDevice, launches) {
  expectRefused(
      gpuPlan,
      {
          {"\"fill_0\" has 0 blocks",
           [](PlanT &p, ProgramT &) { p.kernels[0]->grid = 0; }},
          {"2147483648 blocks, expected 1 to 2147483647",
           [](PlanT &p, ProgramT &) { p.kernels[0]->grid = 1u << 31; }},
          {"blocks of 0 threads",
           [](PlanT &p, ProgramT &) { p.kernels[0]->block = 0; }},
          {"blocks of 48 threads, expected a multiple of 32",
           [](PlanT &p, ProgramT &) { p.kernels[0]->block = 48; }},
          {"blocks of 1056 threads",
           [](PlanT &p, ProgramT &) { p.kernels[0]->block = 1056; }},
          {"232449 bytes of shared memory, expected at most 232448",
           [](PlanT &p, ProgramT &) { p.kernels[0]->shared_bytes = 232449; }},
          {"\"fill_0\" has maxima in argument 1, there are 1",
           [](PlanT &p, ProgramT &) { p.kernels[0]->maxima = {0, 1}; }},
      });
}

TEST(PlanCheckDevice, kernelsOfInstructions) {
  expectRefused(
      gpuPlan,
      {
          {"once[0] \"share of a token\": it lists 0 kernels, expected at "
           "least one of Fill on cuda",
           [](PlanT &, ProgramT &p) { onceOf(p)[0]->kernels.clear(); }},
          {"it lists 1 kernels, expected none of RotaryTable on cuda",
           [](PlanT &, ProgramT &p) { onceOf(p)[1]->kernels = {0}; }},
          {"it lists 1 kernels, expected none of Matmul on cuda",
           [](PlanT &, ProgramT &p) { forwardOf(p)[1]->kernels = {0}; }},
          {"it lists 1 kernels, expected none of Collective on cuda",
           [](PlanT &, ProgramT &p) { updateOf(p)[0]->kernels = {0}; }},
          {"kernel 3 does not exist, there are 3",
           [](PlanT &, ProgramT &p) { onceOf(p)[0]->kernels = {0, 3}; }},
          {"\"embedding_0\" takes 3 pointers, expected 1",
           [](PlanT &, ProgramT &p) { onceOf(p)[0]->kernels = {1}; }},
      });
}

TEST(PlanCheckDevice, cpusHaveNoLaunches) {
  auto addCode = [](PlanT &p) {
    p.code = {1};
    p.kernels.push_back(std::make_unique<KernelT>());
    p.kernels.back()->symbol = "k";
  };
  expectRefused(cpuPlan,
                {
                    {"for a CPU but has 1 images",
                     [](PlanT &p, ProgramT &) {
                       p.images.push_back(std::make_unique<ImageT>());
                     }},
                    {"\"k\" has a GPU's launch",
                     [&](PlanT &p, ProgramT &) {
                       addCode(p);
                       p.kernels[0]->block = 32;
                     }},
                    {"\"k\" has a GPU's launch",
                     [&](PlanT &p, ProgramT &) {
                       addCode(p);
                       p.kernels[0]->streams = {1};
                     }},
                    {"\"k\" has a GPU's launch",
                     [&](PlanT &p, ProgramT &) {
                       addCode(p);
                       p.kernels[0]->maxima = {0};
                     }},
                    {"two kernels have the symbol \"k\", expected one of each",
                     [&](PlanT &p, ProgramT &) {
                       addCode(p);
                       addCode(p);
                     }},
                    {"it lists 1 kernels, expected none of Fill on cpu",
                     [&](PlanT &p, ProgramT &q) {
                       addCode(p);
                       onceOf(q)[0]->kernels = {0};
                     }},
                });
}

} // namespace
} // namespace meshwork::plan::test
