// The distinct kernels of a program: layers of one shape share theirs.
#include "passes/schedule/Kernels.h"

#include "dialects/transformer/Facts.h"
#include "passes/codegen/KernelEmitter.h"

using namespace mlir;

namespace meshwork::schedule {

static ArrayAttr stridesOf(Builder &builder, ArrayRef<Place> places) {
  return builder.getArrayAttr(
      llvm::map_to_vector(places, [&](const Place &place) -> Attribute {
        return builder.getDenseI64ArrayAttr(place.strides);
      }));
}

namespace {
/// What a kernel is made of, as words that are equal exactly where two kernels
/// are. Attributes, types and names are unique in a context, so their addresses
/// stand for them; a value is the number of its definition; every list begins
/// with its length. Printing kernels to compare them as texts took a tenth of
/// the compilation of deep models.
class Identity {
public:
  Identity(transformer::FusedOp op, ArrayAttr strides) {
    add(strides.getAsOpaquePointer());
    define(op.getInputs());
    addOperation(op);
  }
  std::vector<uintptr_t> take() { return std::move(words); }

private:
  void add(const void *unique) {
    words.push_back(reinterpret_cast<uintptr_t>(unique));
  }
  void addTypes(TypeRange types) {
    words.push_back(types.size());
    for (Type type : types)
      add(type.getAsOpaquePointer());
  }
  /// Of a value that stands twice the last place counts, as in a clone.
  void define(ValueRange values) {
    addTypes(values.getTypes());
    for (Value value : values)
      numbers.insert_or_assign(value, ++defined);
  }
  void addAttributes(Operation *op) {
    add(op->getPropertiesAsAttribute().getAsOpaquePointer());
    size_t count = words.size();
    words.push_back(0);
    for (NamedAttribute named : op->getDiscardableAttrs())
      if (!transformer::isFact(named.getName())) {
        add(named.getName().getAsOpaquePointer());
        add(named.getValue().getAsOpaquePointer());
        ++words[count];
      }
  }
  void addOperation(Operation *op) {
    add(op->getName().getAsOpaquePointer());
    addAttributes(op);
    words.push_back(op->getNumOperands());
    for (Value value : op->getOperands())
      words.push_back(numbers.at(value));
    define(op->getResults());
    words.push_back(op->getNumRegions());
    for (Region &region : op->getRegions())
      addRegion(region);
  }
  void addRegion(Region &region) {
    words.push_back(llvm::range_size(region));
    for (Block &block : region) {
      define(block.getArguments());
      words.push_back(llvm::range_size(block));
      for (Operation &op : block)
        addOperation(&op);
    }
  }

  std::vector<uintptr_t> words;
  DenseMap<Value, uintptr_t> numbers;
  uintptr_t defined = 0;
};
} // namespace

static func::FuncOp buildKernel(ModuleOp module, transformer::FusedOp op,
                                ArrayAttr strides) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto type =
      builder.getFunctionType(op.getInputs().getTypes(), op.getResultTypes());
  auto function = func::FuncOp::create(builder, op.getLoc(), "kernel", type);
  function.setPrivate();
  function->setAttr(stridesName, strides);
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToStart(block);
  IRMapping mapping;
  mapping.map(op.getInputs(), block->getArguments());
  Operation *clone = builder.clone(*op, mapping);
  transformer::dropFacts(clone);
  func::ReturnOp::create(builder, op.getLoc(), clone->getResults());
  return function;
}

Kernel Kernels::add(transformer::FusedOp op, ArrayRef<Place> places) {
  Builder builder(module.getContext());
  ArrayAttr strides = stridesOf(builder, places);
  auto [entry, isNew] = known.try_emplace(Identity(op, strides).take());
  Kernel &kernel = entry->second;
  if (isNew) {
    kernel = {buildKernel(module, op, strides),
              static_cast<int64_t>(codegen::countFlops(op)),
              static_cast<int64_t>(codegen::countItems(op))};
    kernel.function.setName(("kernel_" + Twine(known.size() - 1)).str());
  }
  return kernel;
}

} // namespace meshwork::schedule
