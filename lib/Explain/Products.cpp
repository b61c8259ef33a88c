#include "lib/Explain/Products.h"
#include "absl/strings/str_cat.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Float8Sizes.h"
#include "lib/Plan/Views.h"
#include "meshwork/Plan/LayerNames.h"
#include "meshwork/Plan/Types.h"
#include <algorithm>
#include <optional>
#include <string_view>

namespace meshwork::explain {
namespace {

bool isMultiple(const plan::View &view, uint32_t dim) {
  return view.shape() && dim < view.shape()->size() &&
         view.shape()->Get(dim) % plan::float8Unit == 0;
}

/// Experts in FP8 keep the magnitudes of the rows that they make.
constexpr std::string_view ofRows = "row_magnitude";

/// Whether some parameter keeps a number, of rows or of something else.
bool remembers(const plan::Program &program, bool rows) {
  for (const plan::Parameter *parameter : plan::orEmpty(program.parameters()))
    for (const plan::State *state : plan::orEmpty(parameter->states()))
      if (state->part()->is_number() &&
          (state->name()->string_view() == ofRows) == rows)
        return true;
  return false;
}

struct ProductViews {
  uint32_t lhs, rhs, dst;
};

/// None where it is no product that FP8 could be of.
std::optional<ProductViews> viewsOf(const plan::Program &program,
                                    const plan::Instruction &instruction) {
  if (const auto *op = instruction.op_as_Matmul())
    return ProductViews{op->lhs(), op->rhs(), op->dst()};
  if (!remembers(program, /*rows=*/true))
    return {};
  if (const auto *op = instruction.op_as_GroupedProduct())
    return ProductViews{op->lhs(), op->rhs(), op->out()};
  if (const auto *op = instruction.op_as_GroupedGradient())
    return ProductViews{op->lhs(), op->rhs(), op->dst()};
  return {};
}

Products describe(const plan::Program &program,
                  const plan::Instruction &instruction,
                  const ProductViews &views) {
  const plan::View &lhs = *program.views()->Get(views.lhs),
                   &rhs = *program.views()->Get(views.rhs),
                   &dst = *program.views()->Get(views.dst);
  Products one;
  one.name = plan::overLayers(clean(instruction.name()), instruction.layer());
  one.types = absl::StrCat(plan::EnumNameDType(lhs.dtype()), " x ",
                           plan::EnumNameDType(rhs.dtype()), " to ",
                           plan::EnumNameDType(dst.dtype()));
  one.isFloat8 = plan::isFloat8(lhs.dtype());
  one.isRounded = instruction.op_type() != plan::Operation::Matmul;
  one.fitsFloat8 = !one.isRounded && isMultiple(lhs, 1) && isMultiple(lhs, 2) &&
                   isMultiple(rhs, 2);
  return one;
}
} // namespace

std::vector<Products> products(const plan::Program &program,
                               const Listing &listing) {
  std::vector<Products> list;
  for (const Phase &phase : listing.phases())
    for (uint64_t i = phase.begin; i < phase.end; ++i) {
      std::optional<ProductViews> views = viewsOf(program, listing[i]);
      if (!views)
        continue;
      Products one = describe(program, listing[i], *views);
      auto known =
          std::find_if(list.begin(), list.end(), [&](const Products &other) {
            return other.name == one.name && other.types == one.types &&
                   other.fitsFloat8 == one.fitsFloat8;
          });
      if (known == list.end())
        known = list.insert(list.end(), one);
      ++known->instructions;
      known->flops = saturatingAdd(
          known->flops,
          saturatingMul(saturatingMul(listing[i].flops(), phase.runs),
                        listing.timesOf(i)));
    }
  return list;
}

namespace {
std::string_view answer(const Products &one) {
  if (one.isFloat8)
    return "yes";
  if (one.isRounded)
    return "rounded to it";
  return one.fitsFloat8 ? "no: of no linear layer"
                        : "no: not all sizes are multiples of 16";
}

/// Delayed scaling keeps numbers, and so do experts.
std::string scalesText(const plan::Program &program) {
  std::string text = "each operand is scaled by its largest magnitude of now";
  if (remembers(program, /*rows=*/false))
    absl::StrAppend(&text,
                    ", but activations and gradients by that of the steps "
                    "before");
  else if (remembers(program, /*rows=*/true))
    absl::StrAppend(&text, ", but rows that experts make by that of the steps "
                           "before");
  return text;
}
} // namespace

std::string productsText(const plan::Program &program, const Listing &listing) {
  std::vector<Products> list = products(program, listing);
  if (std::none_of(list.begin(), list.end(), [](const Products &one) {
        return one.isFloat8 || one.isRounded;
      }))
    return "";
  Table table({"product", "multiplies", ">instructions", ">flops", "FP8"});
  for (const Products &one : list)
    table.add({one.name, one.types, absl::StrCat(one.instructions),
               countText(one.flops), std::string(answer(one))});
  return absl::StrCat("\nProducts (precision.matmul = \"fp8\"; ",
                      scalesText(program), ")\n", table.render());
}

} // namespace meshwork::explain
