// Registration.
#include "dialects/transformer/Transformer.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"

using namespace mlir;
using namespace meshwork::transformer;

#include "dialects/transformer/TransformerDialect.cpp.inc"

namespace {
/// Prints the dims of a tensor as an alias: types stay readable.
struct TransformerAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    auto dims = dyn_cast<DimsAttr>(attr);
    if (!dims || dims.getNames().empty())
      return AliasResult::NoAlias;
    llvm::interleave(
        dims.getNames(), os, [&](StringAttr name) { os << name.getValue(); },
        "_");
    return AliasResult::OverridableAlias;
  }
};
} // namespace

void TransformerDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/transformer/TransformerOps.cpp.inc"
      >();
  registerAttributes();
  addInterfaces<TransformerAsmInterface>();
}
