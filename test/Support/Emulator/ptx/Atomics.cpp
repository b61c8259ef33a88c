#include "test/Support/Emulator/ptx/Addresses.h"

#include <algorithm>

namespace meshwork::ptx {
namespace {

template <class T>
using Bits =
    std::conditional_t<sizeof(T) == 2, uint16_t,
                       std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

/// Replaces *at by f(*at); returns what was there. Blocks may run on several
/// threads of this process.
template <class T, class F> T update(std::byte *at, F f) {
  auto *bits = reinterpret_cast<Bits<T> *>(at);
  Bits<T> old = __atomic_load_n(bits, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(
      bits, &old, std::bit_cast<Bits<T>>(f(std::bit_cast<T>(old))), false,
      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
  return std::bit_cast<T>(old);
}

struct AtomicAdd {
  template <class T> static T of(T a, T b) {
    if constexpr (isPair<T>)
      return {of(a.low, b.low), of(a.high, b.high)};
    else if constexpr (isNarrowFloat<T>)
      return T(canonical(float(a) + float(b)));
    else if constexpr (std::is_integral_v<T>)
      return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
    else
      return canonical(a + b);
  }
};
struct AtomicMin {
  template <class T> static T of(T a, T b) { return std::min(a, b); }
};
struct AtomicMax {
  template <class T> static T of(T a, T b) { return std::max(a, b); }
};
struct AtomicAnd {
  template <class T> static T of(T a, T b) { return a & b; }
};
struct AtomicOr {
  template <class T> static T of(T a, T b) { return a | b; }
};
struct AtomicXor {
  template <class T> static T of(T a, T b) { return a ^ b; }
};
struct AtomicExchange {
  template <class T> static T of(T, T b) { return b; }
};
struct AtomicIncrement {
  template <class T> static T of(T a, T b) { return a >= b ? T(0) : T(a + 1); }
};
struct AtomicDecrement {
  template <class T> static T of(T a, T b) {
    return a == 0 || a > b ? b : T(a - 1);
  }
};

/// r[1..]: values before, r[1 + count..]: operands.
template <class Op, class T>
void atomic(Warp &warp, const Instruction &i, Mask active) {
  unsigned count = i.count;
  Pointers at = resolve(warp, i.space, addressesOf(warp, i), active,
                        count * sizeof(T), Access::atomic);
  // f32 sums in global memory flush subnormals (PTX ISA 8.8, atom).
  bool flushes = std::is_same_v<Op, AtomicAdd> && i.space != Space::shared;
  for (unsigned c = 0; c < count; ++c) {
    T *before = warp.at<T>(i.r[1 + c]);
    const T *operand = warp.at<T>(i.r[1 + count + c]);
    eachLane(active, [&](unsigned lane) {
      T value = operand[lane];
      before[lane] = update<T>(at[lane] + c * sizeof(T), [&](T old) {
        if constexpr (std::is_same_v<T, float>)
          if (flushes)
            return flush(Op::of(flush(old), flush(value)));
        return Op::of(old, value);
      });
    });
  }
}
/// r[1] before, r[2] compared with, r[3] new value.
template <class T>
void compareAndSwap(Warp &warp, const Instruction &i, Mask active) {
  Pointers at = resolve(warp, i.space, addressesOf(warp, i), active, sizeof(T),
                        Access::atomic);
  const T *expected = warp.at<T>(i.r[2]), *value = warp.at<T>(i.r[3]);
  T result[numLanes] = {};
  eachLane(active, [&](unsigned lane) {
    result[lane] = update<T>(at[lane], [&](T old) {
      return old == expected[lane] ? value[lane] : old;
    });
  });
  writeLanes(warp.at<T>(i.r[1]), result, active);
}

enum Op {
  add,
  min,
  max,
  bitAnd,
  bitOr,
  bitXor,
  exchange,
  increment,
  decrement,
  cas
};
constexpr std::string_view opNames[] = {"add", "min",  "max", "and", "or",
                                        "xor", "exch", "inc", "dec", "cas"};

template <class Op, class... Ts> Handler atomicOf(Line &line, Type type) {
  return pick<Ts...>(line, type,
                     []<class T>() -> Handler { return atomic<Op, T>; });
}
Handler handlerOf(Line &line, int op, Type type) {
  switch (op) {
  case add:
    return atomicOf<AtomicAdd, uint32_t, int32_t, uint64_t, int64_t, float,
                    double, Half, Bf16, Pair<Half>, Pair<Bf16>>(line, type);
  case min:
    return atomicOf<AtomicMin, uint32_t, int32_t, uint64_t, int64_t>(line,
                                                                     type);
  case max:
    return atomicOf<AtomicMax, uint32_t, int32_t, uint64_t, int64_t>(line,
                                                                     type);
  case bitAnd:
    return atomicOf<AtomicAnd, uint32_t, uint64_t>(line, type);
  case bitOr:
    return atomicOf<AtomicOr, uint32_t, uint64_t>(line, type);
  case bitXor:
    return atomicOf<AtomicXor, uint32_t, uint64_t>(line, type);
  case exchange:
    return atomicOf<AtomicExchange, uint32_t, uint64_t>(line, type);
  case increment:
    return atomicOf<AtomicIncrement, uint32_t>(line, type);
  case decrement:
    return atomicOf<AtomicDecrement, uint32_t>(line, type);
  default:
    return pick<uint16_t, uint32_t, uint64_t>(
        line, type, []<class T>() -> Handler { return compareAndSwap<T>; });
  }
}

/// `first`: the operand of the address; before it stands the result.
void decodeAtomic(Line &line, size_t first) {
  takeOrderAndCaches(line);
  Space space = takeSpace(line);
  int op = line.takeOneOf(opNames);
  line.take("noftz");
  if (op < 0)
    line.fail("no operation that is modelled");
  if (!line.take("v2") && !line.take("v4"))
    line.take("v8");
  Type type = line.type();
  Line::Address address = line.address(line.operand(first));
  std::vector<Operand> values = line.items(first + 1);
  size_t count = values.size();
  if (count > 8 || (first && line.items(0).size() != count))
    line.fail("the vectors have other numbers of values");
  std::array<uint32_t, 16> r{};
  for (size_t c = 0; c < count; ++c) {
    r[c] = first ? line.dest(line.items(0)[c], type) : line.scratch(type);
    r[count + c] = line.source(values[c], type);
  }
  if (op == cas)
    r[2] = line.source(first + 2, type);
  Instruction &i = line.emit(handlerOf(line, op, type), {});
  setAddress(line, i, address, space);
  i.count = uint8_t(count);
  std::copy(r.begin(), r.end(), i.r.begin() + 1);
}
void decodeAtom(Line &line) { decodeAtomic(line, 1); }
void decodeRed(Line &line) { decodeAtomic(line, 0); }

} // namespace

std::span<const Opcode> atomicOpcodes() {
  static constexpr Opcode list[] = {{"atom", decodeAtom}, {"red", decodeRed}};
  return list;
}

} // namespace meshwork::ptx
