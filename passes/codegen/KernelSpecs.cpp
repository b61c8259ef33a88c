#include "passes/codegen/KernelSpecs.h"

#include <numeric>

#include "dialects/schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {
/// Buffers begin at multiples of this (PlanArena.cpp).
constexpr int64_t bufferAlignment = 64;

class Collector {
public:
  explicit Collector(ModuleOp module) : module(module) {}

  KernelSpecs run() {
    for (auto function : module.getOps<func::FuncOp>())
      addCluster(function);
    llvm::StringSet<> called;
    for (auto function : module.getOps<func::FuncOp>())
      addMerged(function, called);
    llvm::StringSet<> launched;
    module.walk([&](schedule::LaunchOp launch) {
      launched.insert(launch.getKernel());
      noteAlignments(launch);
    });
    std::vector<LaunchSpec> merged = std::move(specs.launches);
    specs.launches.clear();
    for (auto [i, cluster] : llvm::enumerate(specs.clusters))
      if (launched.contains(cluster.symbol) || !called.contains(cluster.symbol))
        specs.launches.push_back(alone(i));
    llvm::move(merged, std::back_inserter(specs.launches));
    return std::move(specs);
  }

private:
  LaunchSpec alone(size_t i) { return launchOf(specs.clusters[i], i); }

  void addCluster(func::FuncOp function) {
    auto strides = function->getAttrOfType<ArrayAttr>("schedule.strides");
    auto fused = llvm::to_vector(function.getOps<transformer::FusedOp>());
    if (!strides || fused.size() != 1)
      return;
    KernelSpec spec{fused[0], {}, {}, function.getName().str()};
    for (auto [i, attr] : llvm::enumerate(strides)) {
      Layout layout{
          SmallVector<int64_t>(cast<DenseI64ArrayAttr>(attr).asArrayRef()),
          bufferAlignment};
      (i < fused[0].getInputs().size() ? spec.inputs : spec.results)
          .push_back(layout);
    }
    clusters[spec.symbol] = specs.clusters.size();
    specs.clusters.push_back(std::move(spec));
  }

  /// Operands of the function, then what it returns.
  void addMerged(func::FuncOp function, llvm::StringSet<> &called) {
    auto calls = llvm::to_vector(function.getOps<func::CallOp>());
    if (calls.empty())
      return;
    llvm::DenseMap<Value, unsigned> numbers;
    for (Value argument : function.getArguments())
      numbers.try_emplace(argument, numbers.size());
    for (Value result :
         function.getBody().front().getTerminator()->getOperands())
      numbers.try_emplace(result, numbers.size());
    LaunchSpec launch{function.getName().str(), numbers.size(), {}};
    for (func::CallOp call : calls) {
      called.insert(call.getCallee());
      LaunchPart part{clusters.at(call.getCallee()), {}};
      for (Value operand : call.getOperands())
        part.args.push_back(numbers.at(operand));
      for (Value result : call.getResults())
        part.args.push_back(numbers.at(result));
      launch.parts.push_back(std::move(part));
    }
    places[launch.symbol] = specs.launches.size();
    specs.launches.push_back(std::move(launch));
  }

  void noteAlignments(schedule::LaunchOp op) {
    auto merged = places.find(op.getKernel());
    if (merged != places.end()) {
      for (const LaunchPart &part : specs.launches[merged->second].parts)
        noteAlignments(op, part);
      return;
    }
    auto cluster = clusters.find(op.getKernel());
    if (cluster != clusters.end())
      noteAlignments(op, alone(cluster->second).parts.front());
  }

  void noteAlignments(schedule::LaunchOp op, const LaunchPart &part) {
    KernelSpec &spec = specs.clusters[part.cluster];
    for (auto [arg, layout] : llvm::zip_equal(
             part.args, llvm::concat<Layout>(spec.inputs, spec.results)))
      layout.alignBytes =
          std::gcd(layout.alignBytes, alignmentOfView(op.getArgs()[arg]));
  }

  ModuleOp module;
  KernelSpecs specs; // of launches: the merged ones, until all are known
  llvm::StringMap<size_t> clusters, places;
};
} // namespace

LaunchSpec launchOf(const KernelSpec &cluster, size_t index) {
  LaunchSpec launch{
      cluster.symbol, cluster.inputs.size() + cluster.results.size(), {}};
  launch.parts.push_back(
      {index, llvm::to_vector(llvm::seq<unsigned>(0, launch.numArgs))});
  return launch;
}

uint64_t countItems(const LaunchSpec &launch, const KernelSpecs &specs) {
  uint64_t items = 0;
  for (const LaunchPart &part : launch.parts)
    items += countItems(specs.clusters[part.cluster].op);
  return items;
}

static uint64_t spanBytes(Type type, const Layout &layout) {
  auto tensor = cast<RankedTensorType>(type);
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(tensor.getShape(), layout.strides))
    last += (size - 1) * stride;
  return static_cast<uint64_t>(last + 1) * tensor.getElementTypeBitWidth() / 8;
}

SmallVector<uint64_t> argBytesOf(const LaunchSpec &launch,
                                 const KernelSpecs &specs) {
  SmallVector<uint64_t> bytes(launch.numArgs);
  for (const LaunchPart &part : launch.parts) {
    const KernelSpec &cluster = specs.clusters[part.cluster];
    transformer::FusedOp op = cluster.op;
    for (auto [arg, type, layout] : llvm::zip_equal(
             part.args,
             llvm::concat<const Type>(op.getInputs().getTypes(),
                                      op.getResultTypes()),
             llvm::concat<const Layout>(cluster.inputs, cluster.results)))
      bytes[arg] = std::max(bytes[arg], spanBytes(type, layout));
  }
  return bytes;
}

int64_t alignmentOfView(Value view) {
  auto op = view.getDefiningOp<schedule::ViewOp>();
  if (!op)
    return bufferAlignment;
  int64_t bytes = std::gcd<int64_t>(bufferAlignment, op.getOffset());
  if (auto shifts = op.getShifts())
    for (auto shift : shifts->getAsRange<schedule::ShiftAttr>())
      bytes = std::gcd<int64_t>(bytes, shift.getBytes());
  for (int64_t advance : op.getAdvances().value_or(ArrayRef<int64_t>()))
    bytes = std::gcd(bytes, advance);
  return bytes;
}

KernelSpecs kernelSpecsOf(ModuleOp module) {
  KernelSpecs specs = Collector(module).run();
  if (!specs.clusters.empty())
    return specs;
  module.walk([&](transformer::FusedOp op) {
    size_t index = specs.clusters.size();
    specs.clusters.push_back(
        contiguousSpec(op, "kernel_" + std::to_string(index)));
    specs.launches.push_back(launchOf(specs.clusters.back(), index));
  });
  return specs;
}

} // namespace meshwork::codegen
