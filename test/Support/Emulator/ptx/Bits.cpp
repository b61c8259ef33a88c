#include "test/Support/Emulator/ptx/Lanes.h"

#include <algorithm>

namespace meshwork::ptx {
namespace {

template <class T> T bitAnd(T a, T b) { return a & b; }
template <class T> T bitOr(T a, T b) { return a | b; }
template <class T> T bitXor(T a, T b) { return a ^ b; }
template <class T> T bitNot(T a) { return T(~a); }
template <class T> T logicalNot(T a) { return a == 0; }
/// Amounts beyond the width shift everything out.
template <class T> T shiftLeft(T a, uint32_t n) {
  return n < 8 * sizeof(T) ? T(a << (n & (8 * sizeof(T) - 1))) : T(0);
}
template <class T> T shiftRight(T a, uint32_t n) {
  return T(a >> std::min<uint32_t>(n, 8 * sizeof(T) - 1)) &
         T(std::is_signed_v<T> || n < 8 * sizeof(T) ? -1 : 0);
}
template <class T> uint32_t ones(T a) { return uint32_t(std::popcount(a)); }
template <class T> uint32_t zeros(T a) { return uint32_t(std::countl_zero(a)); }
template <class T> T reversed(T a) {
  T result = 0;
  for (unsigned bit = 0; bit < 8 * sizeof(T); ++bit)
    result |= T(a >> bit & 1) << (8 * sizeof(T) - 1 - bit);
  return result;
}
/// The highest bit that differs from the sign.
template <class T> uint32_t highestBit(T a) {
  using U = std::make_unsigned_t<T>;
  U bits = U(std::is_signed_v<T> && a < 0 ? ~a : a);
  return bits ? uint32_t(8 * sizeof(T) - 1 - std::countl_zero(bits)) : ~0u;
}
template <class T> T extractBits(T a, uint32_t from, uint32_t count) {
  using U = std::make_unsigned_t<T>;
  constexpr uint32_t width = 8 * sizeof(T);
  uint32_t position = from & 255, length = count & 255;
  if (length == 0)
    return 0;
  uint32_t top = std::min(position + length - 1, width - 1);
  bool sign = std::is_signed_v<T> && (U(a) >> top & 1);
  U shifted = position < width ? U(U(a) >> position) : U(0);
  U mask = length < width ? U(U(1) << length) - 1 : U(-1);
  U kept = position <= top ? U(top - position + 1) : U(0);
  U valid = kept < width ? U((U(1) << kept) - 1) : U(-1);
  return T((shifted & mask & valid) | (sign ? U(~valid) : U(0)));
}
template <class T> T insertBits(T a, T b, uint32_t from, uint32_t count) {
  constexpr uint32_t width = 8 * sizeof(T);
  uint32_t position = from & 255, length = count & 255;
  if (position >= width || length == 0)
    return b;
  T mask = length < width ? T((T(1) << length) - 1) : T(-1);
  mask = T(mask << position);
  return T((b & ~mask) | (T(a << position) & mask));
}
template <bool left, bool wrap>
uint32_t funnel(uint32_t low, uint32_t high, uint32_t amount) {
  unsigned n = wrap ? amount & 31 : std::min(amount, 32u);
  uint64_t both = uint64_t(high) << 32 | low;
  return uint32_t(left ? (both << n) >> 32 : both >> n);
}
uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    uint32_t select = selector >> (4 * i) & 15;
    uint32_t byte = bytes >> (8 * (select & 7)) & 255;
    if (select & 8)
      byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}
void lookUp3(Warp &warp, const Instruction &i, Mask active) {
  const uint32_t *a = warp.at<uint32_t>(i.r[1]), *b = warp.at<uint32_t>(i.r[2]),
                 *c = warp.at<uint32_t>(i.r[3]);
  alignas(64) uint32_t result[numLanes] = {};
  for (unsigned bit = 0; bit < 8; ++bit)
    if (i.extra >> bit & 1)
      for (unsigned l = 0; l < numLanes; ++l)
        result[l] |= (bit & 4 ? a[l] : ~a[l]) & (bit & 2 ? b[l] : ~b[l]) &
                     (bit & 1 ? c[l] : ~c[l]);
  writeLanes(warp.at<uint32_t>(i.r[0]), result, active);
}

enum class Logic { bitAnd, bitOr, bitXor, bitNot };
template <Logic op>
void predicates(Warp &warp, const Instruction &i, Mask active) {
  Mask a = warp.predicate(i.r[1]), b = warp.predicate(i.r[2]);
  warp.setPredicate(i.r[0],
                    op == Logic::bitAnd   ? a & b
                    : op == Logic::bitOr  ? a | b
                    : op == Logic::bitXor ? a ^ b
                                          : ~a,
                    active);
}

#define MESHWORK_PICK_BITS(line, type, F)                                      \
  pick<uint16_t, uint32_t, uint64_t>(line, type,                               \
                                     []<class T>() { return lanes<&F<T>>; })

template <Logic op> void decodeLogic(Line &line) {
  Type type = line.type();
  uint32_t to = line.dest(0, type), a = line.source(1, type);
  uint32_t b = op == Logic::bitNot ? a : line.source(2, type);
  Handler handler = predicates<op>;
  if (type != Type::pred) {
    if constexpr (op == Logic::bitAnd)
      handler = MESHWORK_PICK_BITS(line, type, bitAnd);
    else if constexpr (op == Logic::bitOr)
      handler = MESHWORK_PICK_BITS(line, type, bitOr);
    else if constexpr (op == Logic::bitXor)
      handler = MESHWORK_PICK_BITS(line, type, bitXor);
    else
      handler = MESHWORK_PICK_BITS(line, type, bitNot);
  }
  line.emit(handler, {to, a, b});
}
void decodeCnot(Line &line) {
  Type type = line.type();
  line.emit(MESHWORK_PICK_BITS(line, type, logicalNot),
            {line.dest(0, type), line.source(1, type)});
}
void decodeShl(Line &line) {
  Type type = line.type();
  line.emit(
      MESHWORK_PICK_BITS(line, type, shiftLeft),
      {line.dest(0, type), line.source(1, type), line.source(2, Type::u32)});
}
void decodeShr(Line &line) {
  Type type = line.type();
  Handler handler =
      pick<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>(
          line, type, []<class T>() { return lanes<&shiftRight<T>>; });
  line.emit(handler, {line.dest(0, type), line.source(1, type),
                      line.source(2, Type::u32)});
}
void decodeShf(Line &line) {
  bool left = line.take("l"), wrap = line.take("wrap");
  if ((!left && !line.take("r")) || (!wrap && !line.take("clamp")))
    line.fail(".l or .r, .wrap or .clamp are missing");
  Handler handler =
      left
          ? (wrap ? lanes<&funnel<true, true>> : lanes<&funnel<true, false>>)
          : (wrap ? lanes<&funnel<false, true>> : lanes<&funnel<false, false>>);
  Type type = line.type();
  line.emit(handler, {line.dest(0, type), line.source(1, type),
                      line.source(2, type), line.source(3, type)});
}
void decodeCount(Line &line, Type type, Handler handler) {
  line.emit(handler, {line.dest(0, Type::u32), line.source(1, type)});
}
void decodePopc(Line &line) {
  Type type = line.type();
  decodeCount(line, type, pick<uint32_t, uint64_t>(line, type, []<class T>() {
                return lanes<&ones<T>>;
              }));
}
void decodeClz(Line &line) {
  Type type = line.type();
  decodeCount(line, type, pick<uint32_t, uint64_t>(line, type, []<class T>() {
                return lanes<&zeros<T>>;
              }));
}
void decodeBfind(Line &line) {
  Type type = line.type();
  decodeCount(line, type,
              pick<uint32_t, int32_t, uint64_t, int64_t>(
                  line, type, []<class T>() { return lanes<&highestBit<T>>; }));
}
void decodeBrev(Line &line) {
  Type type = line.type();
  Handler handler = pick<uint32_t, uint64_t>(
      line, type, []<class T>() { return lanes<&reversed<T>>; });
  line.emit(handler, {line.dest(0, type), line.source(1, type)});
}
void decodeBfe(Line &line) {
  Type type = line.type();
  Handler handler = pick<uint32_t, int32_t, uint64_t, int64_t>(
      line, type, []<class T>() { return lanes<&extractBits<T>>; });
  line.emit(handler, {line.dest(0, type), line.source(1, type),
                      line.source(2, Type::u32), line.source(3, Type::u32)});
}
void decodeBfi(Line &line) {
  Type type = line.type();
  Handler handler = pick<uint32_t, uint64_t>(
      line, type, []<class T>() { return lanes<&insertBits<T>>; });
  line.emit(handler,
            {line.dest(0, type), line.source(1, type), line.source(2, type),
             line.source(3, Type::u32), line.source(4, Type::u32)});
}
void decodePrmt(Line &line) {
  Type type = line.type();
  line.emit(lanes<&permute>, {line.dest(0, type), line.source(1, type),
                              line.source(2, type), line.source(3, type)});
}
void decodeLop3(Line &line) {
  Type type = line.type();
  uint32_t to = line.dest(0, type), a = line.source(1, type),
           b = line.source(2, type), c = line.source(3, type);
  line.emit(lookUp3, {to, a, b, c}).extra = uint8_t(line.integer(4));
}

} // namespace

std::span<const Opcode> bitOpcodes() {
  static constexpr Opcode list[] = {{"and", decodeLogic<Logic::bitAnd>},
                                    {"or", decodeLogic<Logic::bitOr>},
                                    {"xor", decodeLogic<Logic::bitXor>},
                                    {"not", decodeLogic<Logic::bitNot>},
                                    {"cnot", decodeCnot},
                                    {"shl", decodeShl},
                                    {"shr", decodeShr},
                                    {"shf", decodeShf},
                                    {"popc", decodePopc},
                                    {"clz", decodeClz},
                                    {"bfind", decodeBfind},
                                    {"brev", decodeBrev},
                                    {"bfe", decodeBfe},
                                    {"bfi", decodeBfi},
                                    {"prmt", decodePrmt},
                                    {"lop3", decodeLop3}};
  return list;
}

} // namespace meshwork::ptx
