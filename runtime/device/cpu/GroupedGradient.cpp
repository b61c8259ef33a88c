// GroupedGradient: of each expert's rows, lhs transposed times rhs. A result
// with dense columns is the transpose of rhs transposed times lhs.
#include "runtime/device/cpu/GroupedOperands.h"

namespace meshwork::runtime::cpu {
namespace {

/// To write a line of the result takes as long as so many rows add to it.
constexpr double writtenAsRows = 32;

struct Gradient {
  Rows down, across; // along the result's stored rows, and across them
  ExpertMatrices dst;
  Numbers begins;
  plan::Accumulate accumulate = plan::Accumulate::no;
};

class GroupedGradientOperation final : public Operation {
public:
  explicit GroupedGradientOperation(Gradient gradient)
      : g(std::move(gradient)),
        panels{g.across.width, freeGemmColumns(g.down.type())} {}

  uint64_t workspaceBytes() const override {
    return freeGemmScratch(
        specOf(g.down.width, panels.lengthAt(0), g.down.count, true));
  }

  void run(const StepState &state) override {
    ExpertRows rows{g.begins.in(arena), g.begins.count - 1, g.down.count};
    bool adds = accumulates(g.accumulate, state);
    auto workOf = [&](const Expert &expert) {
      bool isIdle = expert.count == 0 && adds;
      return Work{isIdle ? 0 : panels.count(), g.down.width,
                  static_cast<double>(expert.count) + writtenAsRows, 0};
    };
    ExpertShare share(rows, workOf);
    team->parallelFor(team->size(), [&](int64_t part, int64_t end, int thread) {
      for (; part < end; ++part)
        share.forEach(part, team->size(),
                      [&](const Expert &expert, int64_t panel, int64_t begin,
                          int64_t end) {
                        multiply(expert, panel, begin, end, adds, thread);
                      });
    });
  }

private:
  GemmSpec specOf(int64_t rows, int64_t columns, int64_t depth,
                  bool adds) const {
    GemmSpec spec{.m = rows, .n = columns, .k = depth};
    spec.type = g.down.type();
    spec.dstType = g.dst.tensor.dtype;
    spec.lhsTransposed = true;
    spec.lhsLd = g.down.stride, spec.rhsLd = g.across.stride;
    spec.dstLd = g.dst.ld;
    spec.accumulate = adds;
    return spec;
  }

  void multiply(const Expert &expert, int64_t panel, int64_t begin, int64_t end,
                bool adds, int thread) const {
    int64_t column = panel * panels.block;
    int64_t bytes = g.down.tensor.bytes();
    std::byte *dst = g.dst.transposed
                         ? g.dst.at(arena, expert.number, column, begin)
                         : g.dst.at(arena, expert.number, begin, column);
    runFreeGemm(specOf(end - begin, panels.lengthAt(panel), expert.count, adds),
                g.down.at(arena, expert.first) + begin * bytes,
                g.across.at(arena, expert.first) + column * bytes, dst,
                workspaceOf(thread));
  }

  Gradient g;
  Cut panels;
};

absl::Status check(const Gradient &g) {
  MESHWORK_RETURN_IF_ERROR(
      checkGroupedTypes(g.down.type(), g.across.type(), g.dst.tensor.dtype));
  MESHWORK_RETURN_IF_ERROR(
      expectCount(g.across.count, g.down.count, "rows of rhs"));
  return expectShape(g.dst.tensor,
                     {g.dst.tensor.shape[0], g.down.width, g.across.width},
                     "dst");
}
} // namespace

OperationOr make(const plan::GroupedGradient &op,
                 const ProgramOnRank &program) {
  Gradient gradient;
  gradient.accumulate = op.accumulate();
  MESHWORK_ASSIGN_OR_RETURN(gradient.down,
                            floatRowsOf(program, op.lhs(), 1, "lhs"));
  MESHWORK_ASSIGN_OR_RETURN(gradient.across,
                            floatRowsOf(program, op.rhs(), 1, "rhs"));
  MESHWORK_ASSIGN_OR_RETURN(gradient.dst,
                            expertMatricesOf(program, op.dst(), "dst"));
  MESHWORK_ASSIGN_OR_RETURN(gradient.begins,
                            beginsOf(program, op.begins(), gradient.dst));
  MESHWORK_RETURN_IF_ERROR(check(gradient));
  if (gradient.dst.transposed)
    std::swap(gradient.down, gradient.across);
  return std::make_unique<GroupedGradientOperation>(std::move(gradient));
}

} // namespace meshwork::runtime::cpu
