#include "passes/codegen/gpu/LibraryKernels.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {

/// What two kernels with the same code have in common.
std::string keyOf(const DeviceCall &call, size_t numPointers) {
  std::string key;
  llvm::raw_string_ostream stream(key);
  stream << call.function << " " << numPointers << " " << call.grid << " "
         << call.block << " " << call.sharedBytes;
  for (const DeviceArgument &argument : call.arguments)
    stream << " " << int(argument.kind) << ":" << argument.integer << ":"
           << llvm::bit_cast<uint32_t>(argument.number);
  return key;
}

class Emitter {
public:
  explicit Emitter(gpu::GPUModuleOp module)
      : module(module), context(module.getContext()) {}

  uint32_t kernelOf(const DeviceCall &call, size_t numPointers, Location loc) {
    auto [function, isNew] = functions.try_emplace(keyOf(call, numPointers));
    if (isNew)
      function->second = emit(call, numPointers, loc);
    std::string key = function->second;
    for (uint32_t stream : call.streams)
      key += " " + std::to_string(stream);
    auto [place, isFirst] = places.try_emplace(key, library.kernels.size());
    if (isFirst)
      library.kernels.push_back({function->second,
                                 static_cast<int64_t>(numPointers), call.grid,
                                 call.block, call.sharedBytes, call.streams});
    return place->second;
  }

  LibraryKernels library;

private:
  std::string emit(const DeviceCall &call, size_t numPointers, Location loc) {
    std::string name = nameOf(call.function);
    gpu::GPUFuncOp function = addKernel(call, name, numPointers, loc);
    ImplicitLocOpBuilder builder(loc, context);
    builder.setInsertionPointToStart(&function.getBody().front());
    SmallVector<Value> values;
    for (const DeviceArgument &argument : call.arguments)
      values.push_back(valueOf(builder, function, numPointers, argument));
    LLVM::LLVMFuncOp callee = declare(call.function, values, loc);
    LLVM::CallOp::create(builder, callee, values);
    gpu::ReturnOp::create(builder);
    return name;
  }

  /// "meshwork_fill" has the kernels fill_0, fill_1, ...
  std::string nameOf(StringRef function) {
    function.consume_front("meshwork_");
    return (function + "_" + Twine(numbers[function]++)).str();
  }

  gpu::GPUFuncOp addKernel(const DeviceCall &call, StringRef name,
                           size_t numPointers, Location loc) {
    auto pointer = LLVM::LLVMPointerType::get(context, 1);
    SmallVector<Type> types(numPointers, pointer);
    types.append({IntegerType::get(context, 32), pointer});
    types.append(call.streams.size(), IntegerType::get(context, 32));
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto function = gpu::GPUFuncOp::create(
        builder, loc, name, FunctionType::get(context, types, {}));
    function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                      builder.getUnitAttr());
    function.setKnownBlockSizeAttr(
        builder.getDenseI32ArrayAttr({static_cast<int32_t>(call.block), 1, 1}));
    function.setKnownGridSizeAttr(
        builder.getDenseI32ArrayAttr({static_cast<int32_t>(call.grid), 1, 1}));
    if (call.blocksAtOnce)
      function->setAttr(
          NVVM::NVVMDialect::getMinctasmAttrName(),
          builder.getI32IntegerAttr(static_cast<int32_t>(call.blocksAtOnce)));
    return function;
  }

  Value valueOf(ImplicitLocOpBuilder &builder, gpu::GPUFuncOp function,
                size_t numPointers, const DeviceArgument &argument) {
    auto generic = LLVM::LLVMPointerType::get(context);
    auto pointer = [&](unsigned i) -> Value {
      return LLVM::AddrSpaceCastOp::create(builder, generic,
                                           function.getArgument(i));
    };
    switch (argument.kind) {
    case DeviceArgument::pointer:
      return pointer(argument.integer);
    case DeviceArgument::null:
      return LLVM::ZeroOp::create(builder, generic);
    case DeviceArgument::adds:
      return function.getArgument(numPointers);
    case DeviceArgument::workspace:
      return pointer(numPointers + 1);
    case DeviceArgument::stream:
      return LLVM::ZExtOp::create(
          builder, builder.getI64Type(),
          function.getArgument(numPointers + 2 + argument.integer));
    case DeviceArgument::integer64:
      return LLVM::ConstantOp::create(
          builder, builder.getI64IntegerAttr(argument.integer));
    case DeviceArgument::number32:
      return LLVM::ConstantOp::create(builder,
                                      builder.getF32FloatAttr(argument.number));
    }
    llvm_unreachable("all kinds are there");
  }

  LLVM::LLVMFuncOp declare(StringRef name, ValueRange values, Location loc) {
    if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
      return known;
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                            llvm::to_vector(values.getTypes()));
    return LLVM::LLVMFuncOp::create(builder, loc, name, type);
  }

  gpu::GPUModuleOp module;
  MLIRContext *context;
  llvm::StringMap<std::string> functions; // by what they do
  llvm::StringMap<uint32_t> places, numbers;
};
} // namespace

FailureOr<LibraryKernels> emitLibraryKernels(ModuleOp schedule,
                                             gpu::GPUModuleOp module) {
  Emitter emitter(module);
  bool allEmitted = true;
  schedule.walk([&](Operation *op) {
    if (!hasDeviceCalls(op))
      return;
    FailureOr<DeviceCalls> calls = deviceCallsOf(op);
    allEmitted &= succeeded(calls);
    if (failed(calls))
      return;
    SmallVector<uint32_t> &kernels = emitter.library.ofInstruction[op];
    for (const DeviceCall &call : calls->calls)
      kernels.push_back(
          emitter.kernelOf(call, calls->operands.size(), op->getLoc()));
  });
  if (!allEmitted)
    return failure();
  return std::move(emitter.library);
}

} // namespace meshwork::codegen
