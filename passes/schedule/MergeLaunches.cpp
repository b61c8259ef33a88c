// Groups of launches become one launch each. LaunchGroups.cpp decides which.
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/Transformer.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/codegen/KernelEmitter.h"
#include "passes/schedule/DelaySums.h"
#include "passes/schedule/Kernels.h"
#include "passes/schedule/LaunchGroups.h"
#include "passes/schedule/Passes.h"
#include <map>

using namespace mlir;
namespace meshwork::schedule {
#define GEN_PASS_DEF_MERGELAUNCHESPASS
#include "passes/schedule/Passes.h.inc"
namespace {

/// Functions of merged launches and of fills, one for all that are equal.
class Functions {
public:
  explicit Functions(ModuleOp module) : module(module) {}

  func::FuncOp find(StringRef name) {
    func::FuncOp &function = named[name];
    if (!function)
      function = module.lookupSymbol<func::FuncOp>(name);
    return function;
  }

  int64_t countStreams(Operation *op) {
    auto launch = dyn_cast<LaunchOp>(op);
    if (!launch)
      return 0;
    auto [known, isNew] = streams.try_emplace(launch.getKernel(), 0);
    if (isNew)
      if (func::FuncOp function = find(launch.getKernel()))
        function.walk([&](transformer::DrawOpInterface) { ++known->second; });
    return known->second;
  }

  /// Whether a kernel adds chunks up, and reduces nothing else.
  bool addsChunks(LaunchOp launch) {
    auto [known, isNew] = sums.try_emplace(launch.getKernel(), false);
    if (isNew)
      if (func::FuncOp function = find(launch.getKernel())) {
        SmallVector<transformer::ReduceOp> reductions;
        function.walk(
            [&](transformer::ReduceOp op) { reductions.push_back(op); });
        known->second =
            !reductions.empty() && llvm::all_of(reductions, overChunks);
      }
    return known->second;
  }

  /// The function that consists of `words`, which `build` makes if it is the
  /// first; its name is `prefix` and a number. Types, attributes and functions
  /// are unique, so their addresses stand for them.
  func::FuncOp of(const std::vector<uintptr_t> &words, StringRef prefix,
                  function_ref<func::FuncOp()> build) {
    func::FuncOp &function = known[words];
    if (!function) {
      function = build();
      function.setName((prefix + Twine(numbers[prefix]++)).str());
    }
    return function;
  }

  /// The kernel of a fill: a cluster that reads nothing.
  func::FuncOp ofFill(FillOp op) {
    auto memory = cast<MemRefType>(op.getDst().getType());
    MLIRContext *context = module.getContext();
    auto element = transformer::DimsAttr::get(context, {"element"});
    auto type = transformer::namedType(memory.getShape(), element,
                                       memory.getElementType());
    FloatAttr value = FloatAttr::get(Float32Type::get(context), op.getValue());
    return of({wordOf(type), wordOf(value)}, "filled_",
              [&] { return buildFill(op.getLoc(), type, value); });
  }

  static uintptr_t wordOf(auto unique) {
    return reinterpret_cast<uintptr_t>(unique.getAsOpaquePointer());
  }

  /// A function at the end of the module, with `b` in it.
  func::FuncOp begin(ImplicitLocOpBuilder &b, TypeRange inputs,
                     TypeRange results) {
    b.setInsertionPointToEnd(module.getBody());
    auto function =
        func::FuncOp::create(b, "function", b.getFunctionType(inputs, results));
    function.setPrivate();
    b.setInsertionPointToStart(function.addEntryBlock());
    return function;
  }

private:
  func::FuncOp buildFill(mlir::Location loc, RankedTensorType type,
                         FloatAttr value) {
    MLIRContext *context = module.getContext();
    auto none = transformer::DimsAttr::get(context, ArrayRef<StringAttr>());
    ImplicitLocOpBuilder b(loc, context);
    func::FuncOp function = begin(b, {}, type);
    function->setAttr(stridesName,
                      b.getArrayAttr({b.getDenseI64ArrayAttr({1})}));
    auto fused = transformer::FusedOp::create(b, TypeRange{type}, ValueRange(),
                                              none, transformer::dimsOf(type));
    func::ReturnOp::create(b, fused->getResults());
    b.setInsertionPointToEnd(&fused.getBody().emplaceBlock());
    Value filled = transformer::buildMap(
        b, b.getLoc(), type, {},
        [&](ImplicitLocOpBuilder &inner, ValueRange) -> Value {
          return arith::ConstantOp::create(inner, value);
        });
    transformer::YieldOp::create(b, filled);
    return function;
  }

  static bool overChunks(transformer::ReduceOp op) {
    return op.getDims() == transformer::chunkDims(op.getContext());
  }

  ModuleOp module;
  std::map<std::vector<uintptr_t>, func::FuncOp> known; // by what it is
  llvm::StringMap<func::FuncOp> named;                  // by name
  llvm::StringMap<int64_t> numbers, streams;            // by prefix; by name
  llvm::StringMap<bool> sums;                           // by name
};

/// A launch or fill as a part of a merged one.
struct Part {
  Operation *op;
  func::FuncOp kernel;
  int64_t items;
  SmallVector<unsigned> reads = {}; // of the merged launch's views
};

class Merger {
public:
  Merger(const LaunchGroup &group, const Uses &uses, Functions &functions)
      : at(group.at), members(group.members), uses(uses), functions(functions),
        loc(FusedLoc::get(at->getContext(),
                          llvm::map_to_vector(members, [](Operation *op) {
                            return op->getLoc();
                          }))) {}

  /// Adds the launch; the members are still there.
  void run() {
    for (Operation *op : members)
      addPart(op);
    for (Part &part : parts)
      for (auto [view, use, type] : // the reads, which come first
           llvm::zip(part.op->getOperands(), uses[part.op],
                     part.kernel.getArgumentTypes()))
        part.reads.push_back(addRead(view, use, type));
    for (Part &part : parts)
      for (auto [view, type] :
           llvm::zip_equal(cast<InstructionOpInterface>(part.op).getWrites(),
                           part.kernel.getResultTypes())) {
        views.push_back(view);
        results.push_back(type);
      }
    launch(functions.of(words(), "merged_", [&] { return build(); }));
  }

private:
  void addPart(Operation *op) {
    if (auto launch = dyn_cast<LaunchOp>(op)) {
      parts.push_back({op, functions.find(launch.getKernel()),
                       static_cast<int64_t>(launch.getItems())});
      return;
    }
    func::FuncOp kernel = functions.ofFill(cast<FillOp>(op));
    auto fused = *kernel.getOps<transformer::FusedOp>().begin();
    parts.push_back(
        {op, kernel, static_cast<int64_t>(codegen::countItems(fused))});
  }

  /// What several parts read alike, like the learning rate, is read once.
  unsigned addRead(Value view, const Use &use, Type type) {
    auto [known, isNew] =
        numbers.try_emplace(std::pair(use.view, type), views.size());
    if (isNew) {
      views.push_back(view);
      inputs.push_back(type);
    }
    return known->second;
  }

  func::FuncOp build() {
    ImplicitLocOpBuilder b(loc, members.front()->getContext());
    func::FuncOp function = functions.begin(b, inputs, results);
    SmallVector<Value> returned;
    for (const Part &part : parts) {
      SmallVector<Value> operands =
          llvm::map_to_vector(part.reads, [&](unsigned read) -> Value {
            return function.getArgument(read);
          });
      llvm::append_range(
          returned,
          func::CallOp::create(b, part.kernel, operands).getResults());
    }
    func::ReturnOp::create(b, returned);
    return function;
  }

  /// Kernels say what their parts return; every list begins with its length.
  std::vector<uintptr_t> words() const {
    std::vector<uintptr_t> found = {inputs.size()};
    for (Type input : inputs)
      found.push_back(Functions::wordOf(input));
    for (const Part &part : parts) {
      found.push_back(Functions::wordOf(part.kernel));
      found.push_back(part.reads.size());
      llvm::append_range(found, part.reads);
    }
    return found;
  }

  void launch(func::FuncOp function) {
    OpBuilder builder(at);
    int64_t flops = 0, bytes = 0, items = 0;
    for (Operation *member : members) {
      auto op = cast<InstructionOpInterface>(member);
      flops += static_cast<int64_t>(op.getFlops());
      bytes += static_cast<int64_t>(op.getBytes());
    }
    for (const Part &part : parts)
      items += part.items;
    SmallVector<Value> copies;
    for (Value view : views)
      copies.push_back(builder.clone(*view.getDefiningOp())->getResult(0));
    StringRef first = cast<InstructionOpInterface>(members.front()).getSource();
    auto merged = LaunchOp::create(
        builder, loc,
        builder.getStringAttr(first + ", and " + Twine(members.size() - 1) +
                              " more like it"),
        builder.getI64IntegerAttr(flops), builder.getI64IntegerAttr(bytes),
        FlatSymbolRefAttr::get(function), builder.getI64IntegerAttr(items),
        builder.getI64IntegerAttr(static_cast<int64_t>(results.size())),
        copies);
    auto layer = transformer::layerOf(members.front());
    if (llvm::all_of(members, [&](Operation *op) {
          return transformer::layerOf(op) == layer;
        }))
      transformer::setLayer(merged, layer);
  }

  using Read = std::pair<const plan::ViewInfo *, Type>;
  Operation *at;
  ArrayRef<Operation *> members;
  const Uses &uses;
  Functions &functions;
  mlir::Location loc;
  std::vector<Part> parts;
  llvm::DenseMap<Read, unsigned> numbers; // of views that are read
  SmallVector<Value> views; // what parts read, then what they write
  SmallVector<Type> inputs, results;
};

struct MergeLaunchesPass : impl::MergeLaunchesPassBase<MergeLaunchesPass> {
  using MergeLaunchesPassBase::MergeLaunchesPassBase;

  void runOnOperation() override {
    if (!checkOptions())
      return signalPassFailure();
    Functions functions(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(mergeProgram(program, functions)))
        return signalPassFailure();
  }

private:
  LogicalResult mergeProgram(ProgramOp program, Functions &functions) {
    PackedProgram tables(program, PackedProgram::Part::views);
    FailureOr<Uses> uses = Uses::of(program, tables);
    if (failed(uses))
      return failure();
    program.walk([&](Operation *op) {
      if (isa<ListOp, RepeatOp>(op))
        merge(op->getRegion(0).front(), *uses, functions);
    });
    return success();
  }

  bool checkOptions() {
    for (auto [name, value, least] :
         {std::tuple("operands", operands.getValue(), 1),
          std::tuple("max-new-bytes", maxNewBytes.getValue(), 0),
          std::tuple("max-held-bytes", maxHeldBytes.getValue(), 0)})
      if (value < least) {
        getOperation().emitError()
            << name << " is " << value << ", expected at least " << least;
        return false;
      }
    return true;
  }

  void merge(Block &block, const Uses &uses, Functions &functions) {
    delaySums(block, uses, maxHeldBytes,
              [&](LaunchOp launch) { return functions.addsChunks(launch); });
    std::vector<SmallVector<Operation *>> runs(1);
    for (Operation &op : block)
      if (isa<LaunchOp, FillOp>(op))
        runs.back().push_back(&op);
      else if (isInstruction(&op) && !runs.back().empty())
        runs.emplace_back();
    for (ArrayRef<Operation *> run : runs)
      mergeRun(run, uses, functions);
  }

  void mergeRun(ArrayRef<Operation *> run, const Uses &uses,
                Functions &functions) {
    std::vector<LaunchGroup> groups =
        groupLaunches(run, uses, {operands, maxNewBytes}, [&](Operation *op) {
          return functions.countStreams(op);
        });
    SmallVector<Operation *> merged; // Others may go in front of them.
    for (const LaunchGroup &group : groups) {
      Operation *first = group.members.front();
      if (group.members.size() > 1) {
        Merger(group, uses, functions).run();
        llvm::append_range(merged, group.members);
      } else if (first != group.at) {
        moveInstruction(first, first->getBlock(), group.at);
      }
    }
    for (Operation *op : merged)
      erase(op);
  }

  static void erase(Operation *op) {
    llvm::SetVector<Value> views(op->operand_begin(), op->operand_end());
    op->erase();
    for (Value view : views)
      if (view.use_empty())
        view.getDefiningOp()->erase();
  }
};
} // namespace
} // namespace meshwork::schedule
