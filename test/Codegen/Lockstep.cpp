#include "test/Codegen/Lockstep.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace meshwork::codegen::test {
namespace {
float toFloat(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
uint64_t fromFloat(float value) { return std::bit_cast<uint32_t>(value); }

unsigned widthOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (isa<LLVM::LLVMPointerType, IndexType>(element))
    return 64;
  return element.getIntOrFloatBitWidth();
}
unsigned lanesOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}
uint64_t cut(uint64_t bits, unsigned width) { return width >= 64 ? bits : bits & ((uint64_t{1} << width) - 1); }
int64_t asSigned(uint64_t bits, unsigned width) {
  return width >= 64 ? static_cast<int64_t>(bits) : static_cast<int64_t>(bits << (64 - width)) >> (64 - width);
}

uint64_t roundToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::isnan(value) ? 0x7fff : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

bool compareInts(arith::CmpIPredicate predicate, uint64_t a, uint64_t b, unsigned width) {
  int64_t x = asSigned(a, width), y = asSigned(b, width);
  switch (predicate) {
  case arith::CmpIPredicate::eq: return a == b;
  case arith::CmpIPredicate::ne: return a != b;
  case arith::CmpIPredicate::slt: return x < y;
  case arith::CmpIPredicate::sle: return x <= y;
  case arith::CmpIPredicate::sgt: return x > y;
  case arith::CmpIPredicate::sge: return x >= y;
  case arith::CmpIPredicate::ult: return a < b;
  case arith::CmpIPredicate::ule: return a <= b;
  case arith::CmpIPredicate::ugt: return a > b;
  case arith::CmpIPredicate::uge: return a >= b;
  }
  return false;
}

/// The op's result for one element; none for an op that is not known.
std::optional<uint64_t> evaluate(Operation *op, ArrayRef<uint64_t> in) {
  unsigned width = widthOf(op->getResult(0).getType());
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compareInts(compare.getPredicate(), in[0], in[1], widthOf(compare.getLhs().getType()));
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    float a = toFloat(in[0]), b = toFloat(in[1]);
    if (compare.getPredicate() == arith::CmpFPredicate::OGT) return a > b;
    if (compare.getPredicate() == arith::CmpFPredicate::OLT) return a < b;
    return std::nullopt;
  }
  if (isa<arith::ExtSIOp>(op))
    return cut(asSigned(in[0], widthOf(op->getOperand(0).getType())), width);
  if (isa<arith::TruncFOp>(op))
    return roundToBf16(toFloat(in[0]));
  StringRef name = op->getName().getStringRef();
  auto f = [&](unsigned i) { return toFloat(in[i]); };
  if (getElementTypeOrSelf(op->getResult(0).getType()).isF32()) {
    std::optional<double> value = llvm::StringSwitch<std::optional<double>>(name)
        .Case("arith.addf", in.size() > 1 ? f(0) + f(1) : 0.0f)
        .Case("arith.subf", in.size() > 1 ? f(0) - f(1) : 0.0f)
        .Case("arith.mulf", in.size() > 1 ? f(0) * f(1) : 0.0f)
        .Case("arith.divf", in.size() > 1 ? f(0) / f(1) : 0.0f)
        .Case("arith.maxnumf", in.size() > 1 ? std::fmax(f(0), f(1)) : 0.0f)
        .Case("arith.minimumf", in.size() > 1 ? std::fmin(f(0), f(1)) : 0.0f)
        .Case("arith.negf", -f(0))
        .Case("math.exp", std::exp(f(0)))
        .Case("math.log", std::log(f(0)))
        .Case("math.tanh", std::tanh(f(0)))
        .Case("math.sqrt", std::sqrt(f(0)))
        .Case("math.rsqrt", 1 / std::sqrt(f(0)))
        .Default(std::nullopt);
    if (value)
      return fromFloat(static_cast<float>(*value));
  }
  uint64_t a = in[0], b = in.size() > 1 ? in[1] : 1;
  std::optional<uint64_t> value = llvm::StringSwitch<std::optional<uint64_t>>(name)
      .Case("arith.addi", a + b).Case("arith.subi", a - b).Case("arith.muli", a * b)
      .Case("arith.divui", b ? a / b : 0).Case("arith.remui", b ? a % b : 0)
      .Case("arith.andi", a & b).Case("arith.xori", a ^ b)
      .Case("arith.shli", a << (b & 63)).Case("arith.shrui", a >> (b & 63))
      .Case("arith.minsi", asSigned(a, width) < asSigned(b, width) ? a : b)
      .Cases({"arith.extui", "arith.trunci", "arith.bitcast", "arith.index_cast"}, a)
      .Case("arith.select", in.size() > 2 ? (in[0] ? in[1] : in[2]) : 0)
      .Default(std::nullopt);
  if (!value)
    return std::nullopt;
  return cut(*value, width);
}

/// A value of every thread: bits of its lanes.
struct Data {
  unsigned lanes = 1;
  std::vector<uint64_t> bits;
};
using Mask = std::vector<char>;

class Block {
public:
  Block(gpu::GPUFuncOp function, int64_t number, ArrayRef<uint64_t> arguments, ArrayRef<Memory> given)
      : function(function), number(number), given(given), threads((*function.getKnownBlockSize())[0]) {
    for (auto [argument, value] : llvm::zip_equal(function.getBody().getArguments(), arguments))
      values[argument] = Data{1, std::vector<uint64_t>(threads, value)};
  }
  std::string run() {
    runBlock(function.getBody().front(), Mask(threads, 1));
    return error;
  }

private:
  Data &define(Value value) {
    Data &data = values[value];
    data.lanes = lanesOf(value.getType());
    data.bits.resize(threads * data.lanes);
    return data;
  }
  void fail(Operation *op, const std::string &what) {
    if (!error.empty())
      return;
    llvm::raw_string_ostream stream(error);
    stream << what << ": ";
    op->print(stream, OpPrintingFlags().skipRegions());
  }
  template <typename F> void each(const Mask &mask, F body) {
    for (int64_t thread = 0; thread < threads && error.empty(); ++thread)
      if (mask[thread])
        body(thread);
  }

  SmallVector<Value> runBlock(mlir::Block &block, const Mask &mask) {
    for (Operation &op : block.without_terminator()) {
      if (!error.empty())
        return {};
      runOp(&op, mask);
    }
    return SmallVector<Value>(block.getTerminator()->getOperands());
  }

  void runOp(Operation *op, const Mask &mask) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](arith::ConstantOp constant) { setConstant(constant); })
        .Case([&](arith::MulUIExtendedOp product) { multiply(product, mask); })
        .Case([&](LLVM::UndefOp undef) { define(undef.getResult()); })
        .Case([&](LLVM::AddressOfOp address) { addressShared(address); })
        .Case([&](LLVM::GEPOp gep) { movePointer(gep, mask); })
        .Case([&](LLVM::LoadOp load) { access(load, load.getAddr(), load.getResult(), load.getAlignment().value_or(1), false, mask); })
        .Case([&](LLVM::StoreOp store) { access(store, store.getAddr(), store.getValue(), store.getAlignment().value_or(1), true, mask); })
        .Case([&](gpu::ThreadIdOp id) { Data &d = define(id.getResult()); each(Mask(threads, 1), [&](int64_t t) { d.bits[t] = t; }); })
        .Case([&](gpu::BlockIdOp id) { define(id.getResult()).bits.assign(threads, number); })
        .Case([&](gpu::BarrierOp barrier) { passBarrier(barrier, mask); })
        .Case([&](gpu::ShuffleOp exchange) { shuffle(exchange, mask); })
        .Case([&](scf::ForOp loop) { runLoop(loop, mask); })
        .Case([&](scf::IfOp branch) { runBranch(branch, mask); })
        .Case([&](vector::BroadcastOp broadcast) { pick(broadcast, broadcast.getSource(), {}, [](unsigned) { return 0; }, mask); })
        .Case([&](vector::ExtractOp extract) { int64_t at = extract.getStaticPosition()[0]; pick(extract, extract.getSource(), {}, [at](unsigned) { return at; }, mask); })
        .Case([&](vector::ShuffleOp mix) { auto order = mix.getMask(); pick(mix, mix.getV1(), mix.getV2(), [order](unsigned lane) { return order[lane]; }, mask); })
        .Case([&](vector::InsertOp insert) { insertLane(insert, mask); })
        .Case([&](vector::ReductionOp all) { reduceAnd(all, mask); })
        .Default([&](Operation *other) { runElements(other, mask); });
  }

  void setConstant(arith::ConstantOp op) {
    Data &data = define(op.getResult());
    for (unsigned lane = 0; lane < data.lanes; ++lane) {
      Attribute one = op.getValue();
      if (auto elements = dyn_cast<DenseElementsAttr>(one))
        one = elements.getValues<Attribute>()[lane];
      uint64_t bits = isa<FloatAttr>(one) ? fromFloat(cast<FloatAttr>(one).getValue().convertToFloat())
                                          : cast<IntegerAttr>(one).getValue().getZExtValue();
      for (int64_t thread = 0; thread < threads; ++thread)
        data.bits[thread * data.lanes + lane] = bits;
    }
  }

  void runElements(Operation *op, const Mask &mask) {
    Data result{lanesOf(op->getResult(0).getType()), {}};
    result.bits.resize(threads * result.lanes);
    each(mask, [&](int64_t thread) {
      for (unsigned lane = 0; lane < result.lanes; ++lane) {
        SmallVector<uint64_t, 4> in;
        for (Value operand : op->getOperands()) {
          const Data &data = values[operand];
          in.push_back(data.bits[thread * data.lanes + (data.lanes == 1 ? 0 : lane)]);
        }
        std::optional<uint64_t> value = evaluate(op, in);
        if (!value)
          return fail(op, "lockstep does not know this op");
        result.bits[thread * result.lanes + lane] = *value;
      }
    });
    values[op->getResult(0)] = std::move(result);
  }

  void multiply(arith::MulUIExtendedOp op, const Mask &mask) {
    Data &low = define(op.getLow()), &high = define(op.getHigh());
    Data l = low, h = high, a = values[op.getLhs()], b = values[op.getRhs()];
    for (size_t i = 0; i < l.bits.size(); ++i) {
      uint64_t product = a.bits[i] * b.bits[i];
      l.bits[i] = product & 0xffffffff;
      h.bits[i] = product >> 32;
    }
    values[op.getLow()] = l;
    values[op.getHigh()] = h;
  }

  template <typename F> void pick(Operation *op, Value first, Value second, F laneOf, const Mask &mask) {
    Data result{lanesOf(op->getResult(0).getType()), {}};
    result.bits.resize(threads * result.lanes);
    const Data &a = values[first];
    each(mask, [&](int64_t thread) {
      for (unsigned lane = 0; lane < result.lanes; ++lane) {
        unsigned from = laneOf(lane);
        const Data &source = from < a.lanes ? a : values[second];
        result.bits[thread * result.lanes + lane] = source.bits[thread * source.lanes + (from < a.lanes ? from : from - a.lanes)];
      }
    });
    values[op->getResult(0)] = std::move(result);
  }

  void insertLane(vector::InsertOp op, const Mask &mask) {
    Data result = values[op.getDest()];
    const Data &one = values[op.getValueToStore()];
    each(mask, [&](int64_t thread) { result.bits[thread * result.lanes + op.getStaticPosition()[0]] = one.bits[thread]; });
    values[op.getResult()] = std::move(result);
  }

  void reduceAnd(vector::ReductionOp op, const Mask &mask) {
    if (op.getKind() != vector::CombiningKind::AND)
      return fail(op, "lockstep does not know this reduction");
    Data in = values[op.getVector()];
    Data &result = define(op.getDest());
    each(mask, [&](int64_t thread) {
      auto lanes = ArrayRef(in.bits).slice(thread * in.lanes, in.lanes);
      result.bits[thread] = llvm::all_of(lanes, [](uint64_t bit) { return bit; });
    });
  }

  void passBarrier(Operation *op, const Mask &mask) {
    expectAll(op, mask);
    touched.clear();
  }

  /// Notes that the thread's warp touches shared memory; whether another one may be there at the same time.
  bool collides(uint64_t address, int64_t thread, bool isStore) {
    if (!sharedMemory.begin || address - reinterpret_cast<uint64_t>(sharedMemory.begin) >= sharedMemory.bytes)
      return false;
    uint32_t warp = uint32_t{1} << (thread / 32);
    Touch &touch = touched[address];
    (isStore ? touch.writers : touch.readers) |= warp;
    return touch.writers && ((touch.writers | touch.readers) & ((touch.writers | touch.readers) - 1));
  }

  void expectAll(Operation *op, const Mask &mask) {
    if (llvm::is_contained(mask, 0))
      fail(op, "not all threads of the block come to this");
  }

  void shuffle(gpu::ShuffleOp op, const Mask &mask) {
    expectAll(op, mask);
    if (op.getMode() != gpu::ShuffleMode::XOR)
      return fail(op, "lockstep does not know this mode");
    Data in = values[op.getValue()], offset = values[op.getOffset()];
    Data &result = define(op.getShuffleResult());
    each(mask, [&](int64_t thread) { result.bits[thread] = in.bits[thread ^ offset.bits[thread]]; });
  }

  void addressShared(LLVM::AddressOfOp op) {
    auto global = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(op, op.getGlobalNameAttr());
    size_t floats = cast<LLVM::LLVMArrayType>(global.getGlobalType()).getNumElements();
    shared.assign(floats + 4, std::nanf(""));
    char *begin = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(shared.data()) + 15) / 16 * 16);
    sharedMemory = {begin, floats * 4};
    define(op.getResult()).bits.assign(threads, reinterpret_cast<uint64_t>(begin));
  }

  void movePointer(LLVM::GEPOp op, const Mask &mask) {
    Data base = values[op.getBase()];
    uint64_t bytes = widthOf(op.getElemType()) / 8;
    Data &result = define(op.getResult());
    for (auto index : op.getIndices())
      each(mask, [&](int64_t thread) {
        int64_t step = 0;
        if (auto constant = dyn_cast<IntegerAttr>(index))
          step = constant.getInt();
        else {
          Value by = cast<Value>(index);
          step = asSigned(values[by].bits[thread], widthOf(by.getType()));
        }
        result.bits[thread] = base.bits[thread] + step * bytes;
      });
  }

  bool lies(uint64_t address, uint64_t bytes, bool isStore) {
    auto within = [&](const Memory &memory, bool grows) {
      uint64_t begin = reinterpret_cast<uint64_t>(memory.begin), end = begin + memory.bytes;
      if (grows)
        begin = begin / 16 * 16, end = (end + 15) / 16 * 16;
      return address >= begin && address + bytes <= end;
    };
    return (sharedMemory.begin && within(sharedMemory, false)) || llvm::any_of(given, [&](const Memory &m) { return within(m, !isStore); });
  }

  void access(Operation *op, Value pointer, Value value, uint64_t alignment, bool isStore, const Mask &mask) {
    if (!isStore)
      define(value);
    Data &data = values[value];
    const Data &at = values[pointer];
    uint64_t bytes = widthOf(value.getType()) / 8;
    each(mask, [&](int64_t thread) {
      uint64_t address = at.bits[thread];
      if (address % alignment)
        return fail(op, "thread " + std::to_string(thread) + " of block " + std::to_string(number) + " is not aligned to " + std::to_string(alignment));
      if (!lies(address, bytes * data.lanes, isStore))
        return fail(op, "thread " + std::to_string(thread) + " of block " + std::to_string(number) + " leaves its memory");
      for (unsigned lane = 0; lane < data.lanes; ++lane) {
        char *place = reinterpret_cast<char *>(address + lane * bytes);
        if (collides(address + lane * bytes, thread, isStore))
          return fail(op, "two warps touch shared memory without a barrier between");
        uint64_t &bits = data.bits[thread * data.lanes + lane];
        if (isStore)
          std::memcpy(place, &bits, bytes);
        else
          bits = 0, std::memcpy(&bits, place, bytes);
      }
    });
  }

  void runBranch(scf::IfOp op, const Mask &mask) {
    if (op.getNumResults())
      return fail(op, "lockstep does not know branches with results");
    Data condition = values[op.getCondition()];
    Mask taken = mask, other = mask;
    for (int64_t thread = 0; thread < threads; ++thread)
      (condition.bits[thread] ? other : taken)[thread] = 0;
    if (llvm::is_contained(taken, 1))
      runBlock(op.getThenRegion().front(), taken);
    if (!op.getElseRegion().empty() && llvm::is_contained(other, 1))
      runBlock(op.getElseRegion().front(), other);
  }

  void blend(Data &into, const Data &from, const Mask &mask) {
    each(mask, [&](int64_t thread) { std::copy_n(from.bits.begin() + thread * from.lanes, from.lanes, into.bits.begin() + thread * into.lanes); });
  }

  void runLoop(scf::ForOp op, const Mask &mask) {
    Data position = values[op.getLowerBound()], upper = values[op.getUpperBound()], step = values[op.getStep()];
    std::vector<Data> carried;
    for (Value init : op.getInitArgs())
      carried.push_back(values[init]);
    for (;;) {
      Mask turn = mask;
      for (int64_t thread = 0; thread < threads; ++thread)
        turn[thread] = mask[thread] && asSigned(position.bits[thread], 32) < asSigned(upper.bits[thread], 32);
      if (!llvm::is_contained(turn, 1) || !error.empty())
        break;
      values[op.getInductionVar()] = position;
      for (auto [argument, data] : llvm::zip_equal(op.getRegionIterArgs(), carried))
        values[argument] = data;
      SmallVector<Value> next = runBlock(*op.getBody(), turn);
      if (!error.empty())
        return;
      for (auto [data, value] : llvm::zip_equal(carried, next))
        blend(data, values[value], turn);
      for (int64_t thread = 0; thread < threads; ++thread)
        position.bits[thread] = cut(position.bits[thread] + step.bits[thread], 32);
    }
    for (auto [result, data] : llvm::zip_equal(op.getResults(), carried))
      values[result] = data;
  }

  gpu::GPUFuncOp function;
  int64_t number;
  ArrayRef<Memory> given;
  int64_t threads;
  llvm::DenseMap<Value, Data> values;
  std::vector<float> shared;
  struct Touch {
    uint32_t writers = 0, readers = 0; // warps, since the last barrier
  };
  llvm::DenseMap<uint64_t, Touch> touched;
  Memory sharedMemory{nullptr, 0};
  std::string error;
};
} // namespace

std::string runInLockstep(gpu::GPUFuncOp function, ArrayRef<uint64_t> arguments, ArrayRef<Memory> memory) {
  for (int64_t block = (*function.getKnownGridSize())[0]; block > 0; --block)
    if (std::string error = Block(function, block - 1, arguments, memory).run(); !error.empty())
      return error;
  return "";
}

} // namespace meshwork::codegen::test
