// Bad plans: mesh, buffers, views, inputs, results, parameters.
#include "Mutants.h"
#include "meshwork/Plan/Frame.h"
#include <cmath>

namespace meshwork::runtime::test {
namespace {
using plan::PlanT, plan::ProgramT;

TEST(PlanCheck, meshAndBatch) {
  expectRefused(
      cpuPlan,
      {
          {"of size 0", [](PlanT &p, ProgramT &) { p.mesh[0]->size = 0; }},
          {"2^24", [](PlanT &p, ProgramT &) { p.mesh[0]->size = 0xffffffff; }},
          {"no programs", [](PlanT &p, ProgramT &) { p.programs.clear(); }},
          {"program_of_rank has 3",
           [](PlanT &p, ProgramT &) { p.program_of_rank = {0, 0, 0}; }},
          {"names program 1",
           [](PlanT &p, ProgramT &) { p.program_of_rank = {0, 0, 0, 1}; }},
          {"global batch is 17",
           [](PlanT &p, ProgramT &) { p.global_batch = 17; }},
          {"global batch", [](PlanT &p, ProgramT &) { p.batch_axes.clear(); }},
          {"batch axis 0", [](PlanT &p, ProgramT &) { p.batch_axes = {0, 0}; }},
          {"batch axis 5", [](PlanT &p, ProgramT &) { p.batch_axes = {5}; }},
          {"at least 1 of each",
           [](PlanT &p, ProgramT &) { p.microbatches = 0; }},
          {"at least 1 of each",
           [](PlanT &p, ProgramT &) { p.vocabulary = 0; }},
          {"expected i32[2,17]", [](PlanT &p, ProgramT &) { p.sequence = 17; }},
          {"unknown device",
           [](PlanT &p, ProgramT &) {
             p.device = static_cast<plan::Device>(9);
           }},
          {"unknown compute",
           [](PlanT &p, ProgramT &) { p.compute = plan::DType::i32; }},
          {"beta", [](PlanT &p, ProgramT &) { p.beta1 = NAN; }},
          {"beta 1", [](PlanT &p, ProgramT &) { p.beta2 = 1; }},
          {"no symbol",
           [](PlanT &p, ProgramT &) {
             p.kernels.push_back(std::make_unique<plan::KernelT>());
           }},
          {"no code",
           [](PlanT &p, ProgramT &) {
             p.kernels.push_back(std::make_unique<plan::KernelT>());
             p.kernels[0]->symbol = "k";
           }},
      });
}

TEST(PlanCheck, buffers) {
  expectRefused(
      cpuPlan,
      {
          {"multiple of 64",
           [](PlanT &, ProgramT &p) { p.buffers[1]->offset += 4; }},
          {"leaves the arena",
           [](PlanT &, ProgramT &p) { p.arena_bytes -= 64; }},
          {"leaves the arena",
           [](PlanT &, ProgramT &p) { p.buffers[0]->offset = ~63ull; }},
          {"workspace_bytes_per_thread is 4294967295, expected at most 64 MiB",
           [](PlanT &, ProgramT &p) {
             p.workspace_bytes_per_thread = 4294967295;
           }},
          {"unknown kind",
           [](PlanT &, ProgramT &p) {
             p.buffers[0]->kind = static_cast<plan::BufferKind>(77);
           }},
          {"lives from instruction 3 to 2",
           [](PlanT &, ProgramT &p) {
             p.buffers[2]->first_use = 3;
             p.buffers[2]->last_use = 2;
           }},
          {"lives from instruction 2 to 99",
           [](PlanT &, ProgramT &p) { p.buffers[2]->last_use = 99; }},
          {"share bytes",
           [](PlanT &, ProgramT &p) {
             p.buffers[2]->offset = p.buffers[0]->offset;
           }},
          {"\"wte gradient\"",
           [](PlanT &, ProgramT &p) { p.buffers[1]->offset -= 64; }},
          {"share bytes",
           [](PlanT &, ProgramT &p) { p.buffers[0]->size_bytes += 1; }},
          {"at instruction 3, but it lives from 2 to 2",
           [](PlanT &, ProgramT &p) { p.buffers[2]->last_use = 2; }},
          {"at instruction 2, but it lives from 3 to 3",
           [](PlanT &, ProgramT &p) { p.buffers[2]->first_use = 3; }},
          {"before anything was written",
           [](PlanT &, ProgramT &p) {
             std::swap(p.microbatch[0], p.microbatch[1]);
           }},
          // A gradient that shares bytes with x looks free before the third
          // instruction of a microbatch, but the second microbatch adds to it.
          {"share bytes",
           [](PlanT &, ProgramT &p) {
             p.buffers[1]->persistent = false;
             p.buffers[1]->first_use = 4;
             p.buffers[1]->last_use = 8;
             p.buffers[2]->offset = p.buffers[1]->offset;
           }},
      });
}

TEST(PlanCheck, sharedBytesOfSeparateLivesAreFine) {
  PlanT plan = tinyPlan();
  ProgramT &p = *plan.programs[0];
  p.buffers.push_back(std::make_unique<plan::BufferT>(*p.buffers[2]));
  p.buffers.back()->first_use = p.buffers.back()->last_use = 4;
  auto file = PlanFile::fromBytes(encode(plan));
  EXPECT_TRUE(file.ok()) << file.status();
  p.buffers.back()->first_use = 3;
  EXPECT_FALSE(PlanFile::fromBytes(encode(plan)).ok());
}

TEST(PlanCheck, views) {
  expectRefused(
      cpuPlan,
      {
          {"buffer 99 does not exist",
           [](PlanT &, ProgramT &p) { p.views[0]->buffer = 99; }},
          {"unknown element type",
           [](PlanT &, ProgramT &p) {
             p.views[0]->dtype = static_cast<plan::DType>(7);
           }},
          {"8192 bytes", [](PlanT &, ProgramT &p) { p.views[0]->offset = 4; }},
          {"has 8192",
           [](PlanT &, ProgramT &p) { p.views[0]->offset = ~0ull; }},
          {"not a multiple of its element",
           [](PlanT &, ProgramT &p) {
             p.views[0]->offset = 2;
             p.views[0]->shape[0] = 1;
           }},
          {"size 0", [](PlanT &, ProgramT &p) { p.views[0]->shape[0] = 0; }},
          {"size -1", [](PlanT &, ProgramT &p) { p.views[0]->shape[0] = -1; }},
          {"stride 0",
           [](PlanT &, ProgramT &p) { p.views[0]->strides[0] = 0; }},
          {"64 bits",
           [](PlanT &, ProgramT &p) { p.views[0]->shape[0] = INT64_MAX; }},
          {"64 bits",
           [](PlanT &, ProgramT &p) { p.views[0]->strides[0] = INT64_MAX; }},
          {"sizes and",
           [](PlanT &, ProgramT &p) { p.views[0]->strides.pop_back(); }},
          {"at most 8",
           [](PlanT &, ProgramT &p) {
             p.views[0]->shape.assign(9, 1);
             p.views[0]->strides.assign(9, 1);
           }},
          {"steps over",
           [](PlanT &, ProgramT &p) { p.views[0]->strides[0] = 7; }},
      });
}

TEST(PlanCheck, inputsResultsParameters) {
  expectRefused(
      cpuPlan,
      {
          {"tokens is view 99",
           [](PlanT &, ProgramT &p) { p.inputs[0]->view = 99; }},
          {"tokens is absent",
           [](PlanT &, ProgramT &p) { p.inputs[0]->view = plan::noView; }},
          {"tokens is there twice",
           [](PlanT &, ProgramT &p) {
             p.inputs[1]->kind = plan::InputKind::tokens;
           }},
          {"unknown kind",
           [](PlanT &, ProgramT &p) {
             p.inputs[1]->kind = static_cast<plan::InputKind>(50);
           }},
          {"expected one f32",
           [](PlanT &, ProgramT &p) { p.inputs[2]->view = tokens; }},
          {"random is",
           [](PlanT &, ProgramT &p) { p.inputs[5]->view = tokens; }},
          {"there is no loss",
           [](PlanT &, ProgramT &p) { p.results.erase(p.results.begin()); }},
          {"loss is there twice",
           [](PlanT &, ProgramT &p) {
             p.results[1]->kind = plan::ResultKind::loss;
           }},
          {"loss is f32[256,8]",
           [](PlanT &, ProgramT &p) { p.results[0]->view = weight; }},
          {"loss_ready is 9", [](PlanT &, ProgramT &p) { p.loss_ready = 9; }},
          {"update[3] \"optimizer\" writes \"wte\", which outlives the step, "
           "before the loss is known",
           [](PlanT &, ProgramT &p) { p.loss_ready = 4; }},
          {"update[3] \"norm\" writes \"gradient norm\" when weights may have "
           "changed",
           [](PlanT &, ProgramT &p) { std::swap(p.update[2], p.update[3]); }},
          {"read after the last",
           [](PlanT &, ProgramT &p) {
             p.buffers[3]->persistent = false;
             p.buffers[3]->last_use = 5;
           }},
          {"lives only from 3",
           [](PlanT &, ProgramT &p) {
             p.buffers[4]->persistent = false;
             p.buffers[4]->first_use = 3;
             p.buffers[4]->last_use = 8;
           }},
          {"name of 0 bytes",
           [](PlanT &, ProgramT &p) { p.parameters[0]->name = ""; }},
          {"is there twice",
           [](PlanT &, ProgramT &p) {
             p.parameters.push_back(
                 std::make_unique<plan::ParameterT>(*p.parameters[0]));
           }},
          {"product of file_shape",
           [](PlanT &, ProgramT &p) {
             p.parameters[0]->file_shape = {256, 9};
           }},
          {"file_shape has the size 0",
           [](PlanT &, ProgramT &p) { p.parameters[0]->file_shape = {0}; }},
          {"more elements",
           [](PlanT &, ProgramT &p) {
             p.parameters[0]->file_shape = {INT64_MAX, INT64_MAX};
           }},
          {"unknown init",
           [](PlanT &, ProgramT &p) {
             p.parameters[0]->init = static_cast<plan::InitKind>(9);
           }},
          {"init has the numbers",
           [](PlanT &, ProgramT &p) { p.parameters[0]->init_b = INFINITY; }},
          {"standard deviation",
           [](PlanT &, ProgramT &p) { p.parameters[0]->init_b = -1; }},
          {"master is absent",
           [](PlanT &, ProgramT &p) {
             p.views.push_back(std::make_unique<plan::ViewT>(*p.views[weight]));
             p.views.back()->dtype = plan::DType::bf16;
             p.parameters[0]->weight->view =
                 static_cast<uint32_t>(p.views.size() - 1);
             p.parameters[0]->master = nullptr;
           }},
          {"does not persist",
           [](PlanT &, ProgramT &p) {
             p.buffers[0]->persistent = false;
             p.buffers[0]->last_use = 8;
           }},
          {"first_moment is i32",
           [](PlanT &, ProgramT &p) {
             p.views.push_back(std::make_unique<plan::ViewT>(*p.views[weight]));
             p.views.back()->dtype = plan::DType::i32;
             p.parameters[0]->first_moment =
                 whole(static_cast<uint32_t>(p.views.size() - 1));
           }},
      });
}

} // namespace
} // namespace meshwork::runtime::test
