// GroupedProduct: each expert's rows times its matrix. A thread takes panels of
// columns, and of a panel rows that follow each other, so that it packs a panel
// of the matrix once for all of them.
#include <cstring>

#include "runtime/device/cpu/GroupedOperands.h"

namespace meshwork::runtime::cpu {
namespace {

/// To pack a panel takes as long as so many rows times it.
constexpr double packedAsRows = 16;

struct Product {
  Rows lhs, out;
  ExpertMatrices rhs;
  Numbers begins;
};

class GroupedProductOperation final : public Operation {
public:
  explicit GroupedProductOperation(Product product)
      : p(std::move(product)),
        panels{p.out.width, freeGemmColumns(p.lhs.type())} {}

  uint64_t workspaceBytes() const override {
    return freeGemmScratch(specOf(p.lhs.count, panels.lengthAt(0)));
  }

  void run(const StepState &) override {
    ExpertRows rows{p.begins.in(arena), p.begins.count - 1, p.lhs.count};
    auto workOf = [&](const Expert &expert) {
      return Work{expert.count == 0 ? 0 : panels.count(), expert.count, 1,
                  packedAsRows};
    };
    ExpertShare share(rows, workOf);
    clear(0, rows.first());
    clear(rows.end(), p.out.count);
    team->parallelFor(team->size(), [&](int64_t part, int64_t end, int thread) {
      for (; part < end; ++part)
        share.forEach(
            part, team->size(),
            [&](const Expert &expert, int64_t panel, int64_t begin,
                int64_t end) { multiply(expert, panel, begin, end, thread); });
    });
  }

private:
  GemmSpec specOf(int64_t rows, int64_t columns) const {
    GemmSpec spec{.m = rows, .n = columns, .k = p.lhs.width};
    spec.type = p.lhs.type();
    spec.dstType = p.out.type();
    spec.rhsTransposed = p.rhs.transposed;
    spec.lhsLd = p.lhs.stride, spec.rhsLd = p.rhs.ld, spec.dstLd = p.out.stride;
    return spec;
  }

  void multiply(const Expert &expert, int64_t panel, int64_t begin, int64_t end,
                int thread) const {
    int64_t row = expert.first + begin, column = panel * panels.block;
    runFreeGemm(specOf(end - begin, panels.lengthAt(panel)),
                p.lhs.at(arena, row), p.rhs.at(arena, expert.number, 0, column),
                p.out.at(arena, row) + column * p.out.tensor.bytes(),
                workspaceOf(thread));
  }

  /// Rows of no expert.
  void clear(int64_t first, int64_t last) const {
    team->parallelFor(last - first, [&](int64_t row, int64_t end, int) {
      for (; row < end; ++row)
        std::memset(p.out.at(arena, first + row), 0, p.out.rowBytes());
    });
  }

  Product p;
  Cut panels;
};

absl::Status check(const Product &p) {
  MESHWORK_RETURN_IF_ERROR(
      checkGroupedTypes(p.lhs.type(), p.rhs.tensor.dtype, p.out.type()));
  MESHWORK_RETURN_IF_ERROR(
      expectCount(p.out.count, p.lhs.count, "rows of out"));
  return expectShape(p.rhs.tensor,
                     {p.rhs.tensor.shape[0], p.lhs.width, p.out.width}, "rhs");
}
} // namespace

OperationOr make(const plan::GroupedProduct &op, const ProgramOnRank &program) {
  Product product;
  MESHWORK_ASSIGN_OR_RETURN(product.lhs,
                            floatRowsOf(program, op.lhs(), 1, "lhs"));
  MESHWORK_ASSIGN_OR_RETURN(product.out,
                            floatRowsOf(program, op.out(), 1, "out"));
  MESHWORK_ASSIGN_OR_RETURN(product.rhs,
                            expertMatricesOf(program, op.rhs(), "rhs"));
  MESHWORK_ASSIGN_OR_RETURN(product.begins,
                            beginsOf(program, op.begins(), product.rhs));
  MESHWORK_RETURN_IF_ERROR(check(product));
  return std::make_unique<GroupedProductOperation>(std::move(product));
}

} // namespace meshwork::runtime::cpu
