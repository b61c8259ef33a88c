// A kernel of one cluster or of several. Blocks of several clusters lie one
// after the other in the grid: each finds its part by a search over where parts
// begin, which is the same way for all of its threads. Parts that are equal,
// like the updates of equal layers, share code and differ in pointers and
// streams.
#include <map>

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "passes/codegen/gpu/BlockKernel.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;
namespace {

/// What parts that are equal have in common.
struct Code {
  Walk walk;
  SmallVector<int64_t> baseBytes;
  Geometry geometry;
  SmallVector<DrawOpInterface> draws = {};
  Block *entry = nullptr; // takes pointers, streams and the block's number
};

SmallVector<DrawOpInterface> drawsOf(FusedOp op) {
  SmallVector<DrawOpInterface> draws;
  op.getBody().walk([&](DrawOpInterface draw) { draws.push_back(draw); });
  return draws;
}

/// Equal for clusters that differ in streams alone.
std::string keyOf(const KernelSpec &spec) {
  std::string key;
  llvm::raw_string_ostream stream(key);
  OwningOpRef<FusedOp> copy(FusedOp(spec.op).clone());
  for (DrawOpInterface draw : drawsOf(*copy))
    draw->setAttr("stream", IntegerAttr::get(
                                IntegerType::get(draw->getContext(), 32), 0));
  copy->print(stream, OpPrintingFlags().useLocalScope());
  for (const Layout &layout :
       llvm::concat<const Layout>(spec.inputs, spec.results)) {
    stream << " " << layout.alignBytes;
    for (int64_t stride : layout.strides)
      stream << "," << stride;
  }
  return key;
}

class Emitter {
public:
  Emitter(const LaunchSpec &launch, gpu::GPUModuleOp module)
      : launch(launch), module(module), builder(module.getContext()) {}

  FailureOr<GpuKernel> run(ArrayRef<KernelSpec> clusters) {
    GpuKernel kernel{launch.symbol, launch.symbol, {}, {}};
    for (const LaunchPart &part : launch.parts) {
      FailureOr<Code *> code = codeOf(clusters[part.cluster]);
      if (failed(code))
        return failure();
      partCodes.push_back(*code);
      kernel.parts.push_back((*code)->geometry);
      for (DrawOpInterface draw : drawsOf(clusters[part.cluster].op))
        kernel.streams.push_back(static_cast<int32_t>(draw.getStream()));
    }
    if (kernel.grid() > INT32_MAX)
      return partCodes.front()->walk.op.emitOpError()
             << "is launched with others in " << kernel.grid()
             << " blocks, expected fewer than 2^31 on a GPU";
    addFunction(kernel);
    addShared();
    emit(kernel);
    return kernel;
  }

private:
  FailureOr<Code *> codeOf(const KernelSpec &spec) {
    auto &code = codes[launch.parts.size() > 1 ? keyOf(spec) : ""];
    if (code)
      return code.get();
    FailureOr<Walk> walk = planWalk(spec);
    if (failed(walk))
      return failure();
    putStoredRowLast(*walk);
    SmallVector<int64_t> baseBytes = baseAlignments(spec);
    FailureOr<Geometry> geometry = chooseGeometry(*walk, baseBytes);
    if (failed(geometry))
      return failure();
    code = std::make_unique<Code>(Code{*walk, baseBytes, *geometry});
    code->draws = drawsOf(code->walk.op);
    return code.get();
  }

  Location loc() { return partCodes.front()->walk.op.getLoc(); }

  void addFunction(const GpuKernel &kernel) {
    MLIRContext *context = module.getContext();
    SmallVector<Type> types(launch.numArgs,
                            LLVM::LLVMPointerType::get(context, 1));
    types.append(kernel.streams.size(), IntegerType::get(context, 32));
    builder.setInsertionPointToEnd(module.getBody());
    function = gpu::GPUFuncOp::create(builder, loc(), launch.symbol,
                                      FunctionType::get(context, types, {}));
    function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                      builder.getUnitAttr());
    threads = kernel.block();
    function.setKnownBlockSizeAttr(
        builder.getDenseI32ArrayAttr({static_cast<int32_t>(threads), 1, 1}));
    function.setKnownGridSizeAttr(builder.getDenseI32ArrayAttr(
        {static_cast<int32_t>(kernel.grid()), 1, 1}));
  }

  /// One for all parts: a block runs one of them.
  void addShared() {
    int64_t bytes = 0;
    for (auto &[key, code] : codes)
      bytes = std::max(bytes, code->geometry.sharedBytes);
    if (!bytes)
      return;
    builder.setInsertionPointToStart(module.getBody());
    auto type = LLVM::LLVMArrayType::get(builder.getF32Type(), bytes / 4);
    sharedName = "shared_" + launch.symbol;
    auto global = LLVM::GlobalOp::create(
        builder, loc(), type, /*isConstant=*/false, LLVM::Linkage::Internal,
        sharedName, Attribute(), /*alignment=*/16, /*addrSpace=*/3);
    Block *block = builder.createBlock(&global.getInitializerRegion());
    builder.setInsertionPointToEnd(block);
    Value undefined = LLVM::UndefOp::create(builder, loc(), type);
    LLVM::ReturnOp::create(builder, loc(), undefined);
  }

  void emit(const GpuKernel &kernel) {
    Block *entry = &function.getBody().front();
    builder.setInsertionPointToStart(entry);
    Value block = arith::IndexCastOp::create(
        builder, loc(), builder.getI32Type(),
        gpu::BlockIdOp::create(builder, loc(), gpu::Dimension::x));
    int64_t first = 0;
    size_t stream = launch.numArgs;
    for (Code *code : partCodes) {
      firstBlocks.push_back(first);
      firstStreams.push_back(stream);
      first += code->geometry.grid();
      stream += code->draws.size();
    }
    if (launch.parts.size() == 1)
      return emitCode(*partCodes.front(), entry, operandsOf(0), block);
    for (auto &[key, code] : codes)
      addEntry(*code);
    search(entry, block, 0, launch.parts.size());
    for (auto &[key, code] : codes)
      emitCode(*code, enter(*code), code->entry->getArguments().drop_back(),
               code->entry->getArguments().back());
  }

  /// Pointers and streams.
  SmallVector<Value> operandsOf(size_t part) {
    SmallVector<Value> operands = llvm::map_to_vector(
        launch.parts[part].args,
        [&](unsigned arg) -> Value { return function.getArgument(arg); });
    for (size_t i = 0; i < partCodes[part]->draws.size(); ++i)
      operands.push_back(function.getArgument(firstStreams[part] + i));
    return operands;
  }

  void addEntry(Code &code) {
    code.entry = addBlock();
    auto pointer = LLVM::LLVMPointerType::get(module.getContext(), 1);
    for (size_t i = 0; i < code.baseBytes.size(); ++i)
      code.entry->addArgument(pointer, loc());
    for (size_t i = 0; i < code.draws.size() + 1; ++i)
      code.entry->addArgument(builder.getI32Type(), loc());
  }

  Block *addBlock() {
    auto *block = new Block;
    function.getBody().push_back(block);
    return block;
  }

  Value number(int64_t value) {
    return arith::ConstantOp::create(
        builder, loc(), builder.getI32IntegerAttr(static_cast<int32_t>(value)));
  }

  /// Ends `at` by a way to the part among [begin, end) that has the block.
  void search(Block *at, Value block, size_t begin, size_t end) {
    builder.setInsertionPointToEnd(at);
    if (end - begin == 1) {
      SmallVector<Value> operands = operandsOf(begin);
      operands.push_back(arith::SubIOp::create(builder, loc(), block,
                                               number(firstBlocks[begin])));
      cf::BranchOp::create(builder, loc(), partCodes[begin]->entry, operands);
      return;
    }
    size_t middle = begin + (end - begin) / 2;
    Block *low = addBlock(), *high = addBlock();
    Value isLow =
        arith::CmpIOp::create(builder, loc(), arith::CmpIPredicate::slt, block,
                              number(firstBlocks[middle]));
    cf::CondBranchOp::create(builder, loc(), isLow, low, high);
    search(low, block, begin, middle);
    search(high, block, middle, end);
  }

  /// Where the threads that the code has go on.
  Block *enter(const Code &code) {
    if (code.geometry.block() == threads)
      return code.entry;
    builder.setInsertionPointToEnd(code.entry);
    Value thread = arith::IndexCastOp::create(
        builder, loc(), builder.getI32Type(),
        gpu::ThreadIdOp::create(builder, loc(), gpu::Dimension::x));
    Value has = arith::CmpIOp::create(builder, loc(), arith::CmpIPredicate::slt,
                                      thread, number(code.geometry.block()));
    Block *inside = addBlock(), *outside = addBlock();
    cf::CondBranchOp::create(builder, loc(), has, inside, outside);
    builder.setInsertionPointToEnd(outside);
    gpu::ReturnOp::create(builder, loc());
    return inside;
  }

  void emitCode(Code &code, Block *entry, ValueRange operands, Value block) {
    Value shared;
    builder.setInsertionPointToEnd(entry);
    if (code.geometry.sharedBytes)
      shared = LLVM::AddressOfOp::create(
          builder, loc(), LLVM::LLVMPointerType::get(module.getContext(), 3),
          sharedName);
    size_t pointers = code.baseBytes.size();
    BlockKernel(code.walk, code.geometry, code.baseBytes)
        .build({entry, operands.take_front(pointers),
                operands.drop_front(pointers), block, shared, threads},
               code.draws);
  }

  const LaunchSpec &launch;
  gpu::GPUModuleOp module;
  OpBuilder builder;
  gpu::GPUFuncOp function;
  llvm::MapVector<std::string, std::unique_ptr<Code>,
                  std::map<std::string, unsigned>>
      codes;                        // by what equal parts have in common
  SmallVector<Code *> partCodes;    // of each part
  SmallVector<int64_t> firstBlocks; // of each part
  SmallVector<size_t> firstStreams; // of each part, among the arguments
  std::string sharedName;
  int64_t threads = 0; // of a block of the launch
};
} // namespace

FailureOr<GpuKernel> emitGpuKernel(const LaunchSpec &launch,
                                   ArrayRef<KernelSpec> clusters,
                                   gpu::GPUModuleOp module) {
  return Emitter(launch, module).run(clusters);
}

} // namespace meshwork::codegen
