#include "test/Runtime/cuda/FaultyPlan.h"
#include "absl/strings/str_cat.h"

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {

/// 32 threads of `count` floats each, which lie together.
std::string stores(const char *to, const char *value, uint32_t count) {
  std::string text =
      absl::StrCat("ld.param.u64 %a1, [", to, "];\nmul.wide.u32 %a2, %t, ",
                   count * 4, ";\nadd.s64 %a1, %a1, %a2;\n");
  for (uint32_t i = 0; i < count; ++i)
    absl::StrAppend(&text, "st.global.f32 [%a1+", 4 * i, "], ", value, ";\n");
  return text;
}

std::string entry(const char *symbol, const std::string &parameters,
                  const std::string &body) {
  return absl::StrCat(".visible .entry ", symbol, "(", parameters,
                      ")\n{\n.reg .b64 %a<4>, %p;\n.reg .b32 %r<4>, %t;\n"
                      ".reg .f32 %f1;\n.reg .pred %q1;\nmov.u32 %t, %tid.x;\n",
                      body, "ret;\n}\n");
}

/// Thread 0 counts launches, and on the rank at fault does what is asked.
std::string lateKernel(const Fault &fault) {
  return absl::StrCat(
      "setp.ne.u32 %q1, %t, 0;\n@%q1 bra DONE;\n"
      "atom.global.add.u32 %r1, [launched], 1;\n" // of all ranks
      "setp.lt.u32 %q1, %r1, ",
      fault.launch,
      ";\n@%q1 bra DONE;\nld.param.u64 %a1, [p0];\n"
      "ld.global.u32 %r1, [%a1];\nsetp.ne.u32 %q1, %r1, ",
      fault.rank, ";\n@%q1 bra DONE;\nld.param.u64 %p, [p1];\n", fault.body,
      "DONE:\n");
}

std::string kernels(const Fault &fault) {
  const std::string ofThree = ".param .u64 p0, .param .u64 p1, .param .u64 p2",
                    more = ", .param .u32 adds, .param .u64 workspace";
  return absl::StrCat(
      ".version 7.0\n.target sm_80\n.address_size 64\n"
      ".global .align 4 .u32 launched[1] = {0};\n",
      entry("fill_0", ".param .u64 p0" + more,
            "mov.f32 %f1, 0f3B000000;\n" + stores("p0", "%f1", 8)),
      entry("embedding_0", ofThree + more,
            "ld.param.u64 %a1, [p1];\nmul.wide.u32 %a2, %t, 4;\n"
            "add.s64 %a1, %a1, %a2;\nld.global.u32 %r1, [%a1];\n"
            "cvt.rn.f32.u32 %f1, %r1;\n" +
                stores("p2", "%f1", 8)),
      entry("embedding_grad_0", ofThree + more,
            "mov.f32 %f1, 0f3F800000;\n" + stores("p2", "%f1", 64)),
      entry("late", ".param .u64 p0, .param .u64 p1", lateKernel(fault)));
}
} // namespace

plan::PlanT faultyPlan(const Fault &fault, uint32_t ranks) {
  plan::PlanT plan = tinyGpuPlan({.ranks = ranks, .microbatches = 2});
  std::string text = kernels(fault);
  plan.images[0]->code.assign(text.c_str(), text.c_str() + text.size() + 1);
  plan::LaunchT op;
  op.kernel = static_cast<uint32_t>(plan.kernels.size());
  // x lives in the microbatch.
  op.args = {addRank(plan), fault.inUpdate ? weight : x};
  op.num_outputs = 1;
  op.items = 1;
  plan.kernels.push_back(std::make_unique<plan::KernelT>());
  plan::KernelT &kernel = *plan.kernels.back();
  kernel.symbol = "late";
  kernel.num_args = 2;
  kernel.items = 1;
  kernel.arg_bytes = {4, fault.inUpdate ? 8192u : 1024u};
  kernel.grid = 1;
  kernel.block = 32;
  plan::ProgramT &program = *plan.programs[0];
  if (fault.meets) {
    plan::CollectiveT sum;
    sum.axes = {0};
    sum.parts.push_back(transfer(x, x));
    sum.pass = plan::Pass::forward;
    insert(forwardOf(program), 1, "sum", std::move(sum));
  }
  fault.inUpdate
      ? insert(updateOf(program), updateOf(program).size(), "late", op)
      : insert(forwardOf(program), 1, "late", op);
  return plan;
}

} // namespace meshwork::runtime::test
