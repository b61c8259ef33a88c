// The distinct kernels of a program: layers of one shape share theirs.
#include "passes/schedule/Kernels.h"

#include "dialects/transformer/Facts.h"

using namespace mlir;

namespace meshwork::schedule {

static ArrayAttr stridesOf(Builder &builder, ArrayRef<Place> places) {
  return builder.getArrayAttr(
      llvm::map_to_vector(places, [&](const Place &place) -> Attribute {
        return builder.getDenseI64ArrayAttr(place.strides);
      }));
}

FlatSymbolRefAttr Kernels::add(transformer::FusedOp op,
                               ArrayRef<Place> places) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto type =
      builder.getFunctionType(op.getInputs().getTypes(), op.getResultTypes());
  auto function = func::FuncOp::create(builder, op.getLoc(), "kernel", type);
  function.setPrivate();
  function->setAttr(stridesName, stridesOf(builder, places));
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToStart(block);
  IRMapping mapping;
  mapping.map(op.getInputs(), block->getArguments());
  Operation *clone = builder.clone(*op, mapping);
  transformer::dropFacts(clone);
  func::ReturnOp::create(builder, op.getLoc(), clone->getResults());

  std::string text;
  llvm::raw_string_ostream stream(text);
  function.print(stream, OpPrintingFlags().useLocalScope());
  auto [entry, isNew] = known.try_emplace(text, function);
  if (!isNew)
    function.erase();
  else
    function.setName(("kernel_" + Twine(known.size() - 1)).str());
  return FlatSymbolRefAttr::get(module.getContext(), entry->second.getName());
}

} // namespace meshwork::schedule
