#include "passes/sharding/DimRoles.h"

#include "dialects/transformer/StepFunctions.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::sharding {

DimRoles::DimRoles(ModuleOp module) {
  func::FuncOp microbatch = functionOf(module, StepFunction::microbatch);
  if (!microbatch)
    return;
  microbatch.walk([&](FactorOpInterface op) {
    for (const Factor &factor : op.getFactors())
      if (factor.role != Factor::none)
        add(factor.name, factor.role);
  });
  if (microbatch.getNumArguments() == 0)
    return;
  Factor::Role ofTokens[] = {Factor::samples, Factor::tokens};
  auto names = dimsOf(microbatch.getArgument(0)).getNames();
  for (auto [name, role] : llvm::zip(names, ofTokens))
    add(name, role);
}

bool DimRoles::has(StringRef dim, Factor::Role role) const {
  return roles.lookup(dim) & 1u << role;
}

bool DimRoles::any(Factor::Role role) const {
  return llvm::any_of(roles,
                      [&](const auto &dim) { return dim.second & 1u << role; });
}

bool DimRoles::isCounted(StringRef dim) const {
  return has(dim, Factor::samples) || has(dim, Factor::heads) ||
         has(dim, Factor::keyHeads) || has(dim, Factor::experts);
}

} // namespace meshwork::sharding
