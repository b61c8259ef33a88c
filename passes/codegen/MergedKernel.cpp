// One function for a launch of several clusters: it gives each the items of the
// range that are its own, and its arguments.
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/codegen/KernelBuilder.h"
#include "passes/codegen/KernelSpecs.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {

class MergedKernel {
public:
  MergedKernel(const LaunchSpec &launch, ArrayRef<KernelSpec> clusters,
               ModuleOp module)
      : launch(launch), clusters(clusters), module(module),
        builder(module.getContext()),
        loc(FusedLoc::get(
            module.getContext(),
            llvm::map_to_vector(
                launch.parts, [&](const LaunchPart &part) -> Location {
                  return transformer::FusedOp(clusters[part.cluster].op)
                      .getLoc();
                }))) {}

  void emit() {
    auto pointer = LLVM::LLVMPointerType::get(module.getContext());
    size_t most = 0;
    for (const LaunchPart &part : launch.parts)
      most = std::max(most, part.args.size());
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(module.getContext()),
        {pointer, builder.getI64Type(), builder.getI64Type()});
    builder.setInsertionPointToEnd(module.getBody());
    auto function = LLVM::LLVMFuncOp::create(builder, loc, launch.symbol, type);
    Block *entry = function.addEntryBlock(builder);
    builder.setInsertionPointToEnd(entry);
    args = entry->getArgument(0);
    partArgs = LLVM::AllocaOp::create(builder, loc, pointer, pointer,
                                      number(static_cast<int64_t>(most)));
    int64_t first = 0;
    for (const LaunchPart &part : launch.parts)
      first += emitPart(part, entry, first);
    LLVM::ReturnOp::create(builder, loc, ValueRange());
  }

private:
  Value number(int64_t value) {
    return constantOf(builder, loc, builder.getI64Type(), value);
  }

  Value entryOf(OpBuilder &b, Value array, int64_t index) {
    return LLVM::GEPOp::create(b, loc, array.getType(), array.getType(), array,
                               LLVM::GEPArg(static_cast<int32_t>(index)));
  }

  /// Calls the cluster with what of [begin, end) is its own, if anything.
  /// Returns how many items it has.
  int64_t emitPart(const LaunchPart &part, Block *entry, int64_t first) {
    const KernelSpec &cluster = clusters[part.cluster];
    auto items = static_cast<int64_t>(countItems(cluster.op));
    auto ofPart = [&](Value item) -> Value {
      return arith::SubIOp::create(builder, loc, item, number(first));
    };
    Value begin = arith::MaxSIOp::create(
        builder, loc, ofPart(entry->getArgument(1)), number(0));
    Value end = arith::MinSIOp::create(
        builder, loc, ofPart(entry->getArgument(2)), number(items));
    Value any = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                      begin, end);
    auto call = [&](OpBuilder &b, Location) {
      for (auto [i, arg] : llvm::enumerate(part.args)) {
        Value address =
            LLVM::LoadOp::create(b, loc, args.getType(), entryOf(b, args, arg));
        LLVM::StoreOp::create(b, loc, address,
                              entryOf(b, partArgs, static_cast<int64_t>(i)));
      }
      LLVM::CallOp::create(
          b, loc, module.lookupSymbol<LLVM::LLVMFuncOp>(cluster.symbol),
          ValueRange{partArgs, begin, end});
      scf::YieldOp::create(b, loc);
    };
    scf::IfOp::create(builder, loc, any, call);
    return items;
  }

  const LaunchSpec &launch;
  ArrayRef<KernelSpec> clusters;
  ModuleOp module;
  OpBuilder builder;
  Location loc;
  Value args, partArgs; // pointers to pointers
};
} // namespace

LogicalResult emitKernels(const KernelSpecs &specs, ModuleOp module,
                          const CpuTarget &target) {
  for (const KernelSpec &cluster : specs.clusters)
    if (failed(emitKernel(cluster, module, target)))
      return failure();
  for (const LaunchSpec &launch : specs.launches)
    if (launch.parts.size() > 1)
      MergedKernel(launch, specs.clusters, module).emit();
  return success();
}

} // namespace meshwork::codegen
