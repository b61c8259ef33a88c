#include "lib/Explain/Products.h"
#include "absl/strings/str_cat.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Views.h"
#include "meshwork/Plan/LayerNames.h"
#include "meshwork/Plan/Types.h"
#include <algorithm>

namespace meshwork::explain {
namespace {
constexpr int64_t unit = 16; // of FP8's sizes

bool isMultiple(const plan::View &view, uint32_t dim) {
  return view.shape() && dim < view.shape()->size() &&
         view.shape()->Get(dim) % unit == 0;
}

Products describe(const plan::Program &program,
                  const plan::Instruction &instruction) {
  const plan::Matmul &op = *instruction.op_as_Matmul();
  const plan::View &lhs = *program.views()->Get(op.lhs()),
                   &rhs = *program.views()->Get(op.rhs()),
                   &dst = *program.views()->Get(op.dst());
  Products one;
  one.name = plan::overLayers(clean(instruction.name()), instruction.layer());
  one.types = absl::StrCat(plan::EnumNameDType(lhs.dtype()), " x ",
                           plan::EnumNameDType(rhs.dtype()), " to ",
                           plan::EnumNameDType(dst.dtype()));
  one.isFloat8 = plan::isFloat8(lhs.dtype());
  one.fitsFloat8 =
      isMultiple(lhs, 1) && isMultiple(lhs, 2) && isMultiple(rhs, 2);
  return one;
}
} // namespace

std::vector<Products> products(const plan::Program &program,
                               const Listing &listing) {
  std::vector<Products> list;
  for (const Phase &phase : listing.phases())
    for (uint64_t i = phase.begin; i < phase.end; ++i) {
      if (listing[i].op_type() != plan::Operation::Matmul)
        continue;
      Products one = describe(program, listing[i]);
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
/// Delayed scaling keeps numbers.
bool remembersMagnitudes(const plan::Program &program) {
  for (const plan::Parameter *parameter : plan::orEmpty(program.parameters()))
    for (const plan::State *state : plan::orEmpty(parameter->states()))
      if (state->part()->is_number())
        return true;
  return false;
}
} // namespace

std::string productsText(const plan::Program &program, const Listing &listing) {
  std::vector<Products> list = products(program, listing);
  if (std::none_of(list.begin(), list.end(),
                   [](const Products &one) { return one.isFloat8; }))
    return "";
  Table table({"product", "multiplies", ">instructions", ">flops", "FP8"});
  for (const Products &one : list)
    table.add({one.name, one.types, absl::StrCat(one.instructions),
               countText(one.flops),
               one.isFloat8     ? "yes"
               : one.fitsFloat8 ? "no: of no linear layer"
                                : "no: not all sizes are multiples of 16"});
  return absl::StrCat("\nProducts (precision.matmul = \"fp8\"; each operand is "
                      "scaled by its largest magnitude of now",
                      remembersMagnitudes(program)
                          ? ", but activations and gradients by that of the "
                            "steps before"
                          : "",
                      ")\n", table.render());
}

} // namespace meshwork::explain
