// ldmatrix, stmatrix, movmatrix and mma. Which lane holds which element:
// PTX ISA 8.8, 9.7.14.5.
#include "test/Support/Emulator/ptx/Addresses.h"

namespace meshwork::ptx {
namespace {

/// An 8x8 matrix of 16 bits: two neighbours of a row in each lane, or with
/// .trans of a column.
struct Tile {
  uint16_t element[8][8];
};
void tileToLanes(const Tile &tile, bool transposed, uint32_t *lanes) {
  for (unsigned l = 0; l < numLanes; ++l) {
    unsigned row = l / 4, column = l % 4 * 2;
    uint32_t low =
        transposed ? tile.element[column][row] : tile.element[row][column];
    uint32_t high = transposed ? tile.element[column + 1][row]
                               : tile.element[row][column + 1];
    lanes[l] = low | high << 16;
  }
}
Tile tileFromLanes(const uint32_t *lanes, bool transposed) {
  Tile tile;
  for (unsigned l = 0; l < numLanes; ++l) {
    unsigned row = l / 4, column = l % 4 * 2;
    for (unsigned k = 0; k < 2; ++k) {
      uint16_t value = uint16_t(lanes[l] >> (16 * k));
      (transposed ? tile.element[column + k][row]
                  : tile.element[row][column + k]) = value;
    }
  }
  return tile;
}

/// Bit 2 of `extra`: transposed. Rows of matrix m: addresses of lanes 8m on.
Pointers rowsOf(Warp &warp, const Instruction &i, Access access) {
  LaneAddresses addresses = addressesOf(warp, i);
  Mask rows = i.count == 4 ? allLanes : (Mask(1) << (8 * i.count)) - 1;
  return resolve(warp, i.space, addresses, rows, 16, access);
}
void loadMatrices(Warp &warp, const Instruction &i, Mask) {
  Pointers rows = rowsOf(warp, i, Access::read);
  for (unsigned m = 0; m < i.count; ++m) {
    Tile tile;
    for (unsigned row = 0; row < 8; ++row)
      std::memcpy(tile.element[row], rows[8 * m + row], 16);
    tileToLanes(tile, i.extra & 4, warp.at<uint32_t>(i.r[1 + m]));
  }
}
void storeMatrices(Warp &warp, const Instruction &i, Mask) {
  Pointers rows = rowsOf(warp, i, Access::write);
  for (unsigned m = 0; m < i.count; ++m) {
    Tile tile = tileFromLanes(warp.at<uint32_t>(i.r[1 + m]), i.extra & 4);
    for (unsigned row = 0; row < 8; ++row)
      std::memcpy(rows[8 * m + row], tile.element[row], 16);
  }
}
void transposeMatrix(Warp &warp, const Instruction &i, Mask) {
  Tile tile = tileFromLanes(warp.at<uint32_t>(i.r[1]), true);
  tileToLanes(tile, false, warp.at<uint32_t>(i.r[0]));
}

void decodeMatrices(Line &line, size_t list, size_t addressAt, Handler run) {
  if (!line.take("sync") || !line.take("aligned") || !line.take("m8n8"))
    line.fail(".sync.aligned.m8n8 is missing");
  size_t count = line.take("x1")   ? 1
                 : line.take("x2") ? 2
                 : line.take("x4") ? 4
                                   : 0;
  bool transposed = line.take("trans");
  Space space = takeSpace(line);
  std::vector<Operand> items = line.items(list);
  if (line.type() != Type::b16 || items.size() != count)
    line.fail("expected .b16 and as many registers as matrices");
  Line::Address address = line.address(line.operand(addressAt));
  std::array<uint32_t, 4> r{};
  for (size_t m = 0; m < count; ++m)
    r[m] = list == 0 ? line.dest(items[m], Type::b32)
                     : line.source(items[m], Type::b32);
  Instruction &i = line.emit(run, {});
  setAddress(line, i, address, space);
  setWholeWarp(line, i);
  i.count = uint8_t(count);
  i.extra |= transposed ? 4 : 0;
  std::copy(r.begin(), r.end(), i.r.begin() + 1);
}
void decodeLdmatrix(Line &line) { decodeMatrices(line, 0, 1, loadMatrices); }
void decodeStmatrix(Line &line) { decodeMatrices(line, 1, 0, storeMatrices); }
void decodeMovmatrix(Line &line) {
  for (const char *part : {"sync", "aligned", "m8n8", "trans", "b16"})
    if (!line.take(part))
      line.fail("only .sync.aligned.m8n8.trans.b16 exists");
  Instruction &i = line.emit(
      transposeMatrix, {line.dest(0, Type::b32), line.source(1, Type::b32)});
  setWholeWarp(line, i);
}

// mma: D (16x8) = A (16xK) B (Kx8) + C, K = `count`, all products exact, the
// sum of each element a chain of f32 sums in the order of k.

struct Tf32 {
  uint32_t bits;
  explicit operator float() const { // the low 13 bits are not looked at
    return std::bit_cast<float>(bits & ~0x1fffu);
  }
};
/// Element n of a fragment whose 32-bit registers begin at r[first].
template <class T>
float element(Warp &warp, const Instruction &i, unsigned first, unsigned n,
              unsigned lane) {
  constexpr unsigned perRegister = 4 / sizeof(T);
  const T *values = warp.at<T>(i.r[first + n / perRegister]);
  return float(values[lane * perRegister + n % perRegister]);
}

struct Place {
  unsigned row, column;
};
/// Where element n of A in a lane is; `width`: neighbours in a register.
Place placeInA(unsigned lane, unsigned n, unsigned width) {
  unsigned group = lane / 4, inGroup = lane % 4;
  unsigned block = n / width; // row halves first, then column halves
  return {group + 8 * (block & 1),
          inGroup * width + n % width + (block / 2) * 4 * width};
}
Place placeInB(unsigned lane, unsigned n, unsigned width) {
  unsigned group = lane / 4, inGroup = lane % 4;
  return {inGroup * width + n % width + (n / width) * 4 * width, group};
}

struct Fragments {
  float a[16][16], b[16][8], d[16][8];
};
template <class T>
void readInputs(Warp &warp, const Instruction &i, unsigned firstA,
                Fragments &f) {
  constexpr unsigned width = 4 / sizeof(T);
  unsigned k = i.count, numA = 16 * k / numLanes, numB = 8 * k / numLanes;
  for (unsigned lane = 0; lane < numLanes; ++lane) {
    for (unsigned n = 0; n < numA; ++n) {
      Place at = placeInA(lane, n, width);
      f.a[at.row][at.column] = element<T>(warp, i, firstA, n, lane);
    }
    for (unsigned n = 0; n < numB; ++n) {
      Place at = placeInB(lane, n, width);
      f.b[at.row][at.column] =
          element<T>(warp, i, firstA + numA / width, n, lane);
    }
  }
}
void multiply(Fragments &f, unsigned k) {
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned step = 0; step < k; ++step)
      for (unsigned column = 0; column < 8; ++column)
        f.d[row][column] =
            __builtin_fmaf(f.a[row][step], f.b[step][column], f.d[row][column]);
}
/// r: D, A, B, C. Sum is float (4 registers) or Half (2 registers).
template <class T, class Sum>
void multiplyAdd(Warp &warp, const Instruction &i, Mask) {
  constexpr unsigned perRegister = 4 / sizeof(Sum), numSums = 4 / perRegister;
  constexpr unsigned width = 4 / sizeof(T);
  unsigned k = i.count;
  unsigned firstC = numSums + 24 * k / numLanes / width;
  Fragments f;
  readInputs<T>(warp, i, numSums, f);
  auto eachSum = [&](auto visit) {
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (unsigned n = 0; n < 4; ++n)
        visit(lane, n, f.d[lane / 4 + n / 2 * 8][lane % 4 * 2 + n % 2]);
  };
  eachSum([&](unsigned lane, unsigned n, float &value) {
    value = element<Sum>(warp, i, firstC, n, lane);
  });
  multiply(f, k);
  eachSum([&](unsigned lane, unsigned n, float &value) {
    Sum *to = warp.at<Sum>(i.r[n / perRegister]);
    to[lane * perRegister + n % perRegister] = Sum(canonical(value));
  });
}

struct Product {
  unsigned k;
  Type input, sum;
  Handler run;
};
constexpr Product products[] = {
    {16, Type::bf16, Type::f32, multiplyAdd<Bf16, float>},
    {16, Type::f16, Type::f32, multiplyAdd<Half, float>},
    {16, Type::f16, Type::f16, multiplyAdd<Half, Half>},
    {8, Type::bf16, Type::f32, multiplyAdd<Bf16, float>},
    {8, Type::f16, Type::f32, multiplyAdd<Half, float>},
    {8, Type::f16, Type::f16, multiplyAdd<Half, Half>},
    {8, Type::tf32, Type::f32, multiplyAdd<Tf32, float>},
    {4, Type::tf32, Type::f32, multiplyAdd<Tf32, float>}};

const Product &takeProduct(Line &line) {
  bool m16n8k16 = line.take("m16n8k16"), m16n8k8 = line.take("m16n8k8");
  bool m16n8k4 = !m16n8k16 && !m16n8k8 && line.take("m16n8k4");
  unsigned k = m16n8k16 ? 16 : m16n8k8 ? 8 : m16n8k4 ? 4 : 0;
  Type d = line.type(), a = line.type(), b = line.type(), c = line.type();
  for (const Product &each : products)
    if (each.k == k && each.input == a && a == b && each.sum == c && c == d)
      return each;
  line.fail("this shape and these types are not modelled");
}

void decodeMma(Line &line) {
  for (const char *part : {"sync", "aligned", "row", "col"})
    if (!line.take(part))
      line.fail("only .sync.aligned with .row.col is modelled");
  const Product &product = takeProduct(line);
  unsigned width = product.input == Type::tf32 ? 1 : 2;
  size_t sums = product.sum == Type::f32 ? 4 : 2;
  size_t expected[] = {sums, 16 * product.k / numLanes / width,
                       8 * product.k / numLanes / width, sums};
  std::array<uint32_t, 18> r{};
  size_t next = 0;
  for (size_t part = 0; part < 4; ++part) {
    std::vector<Operand> items = line.items(part);
    if (items.size() != expected[part])
      line.fail("a fragment has another number of registers");
    for (const Operand &item : items)
      r[next++] =
          part == 0 ? line.dest(item, Type::b32) : line.source(item, Type::b32);
  }
  Instruction &i = line.emit(product.run, {});
  i.r = r;
  i.count = uint8_t(product.k);
  setWholeWarp(line, i);
}

} // namespace

std::span<const Opcode> matrixOpcodes() {
  static constexpr Opcode list[] = {{"ldmatrix", decodeLdmatrix},
                                    {"stmatrix", decodeStmatrix},
                                    {"movmatrix", decodeMovmatrix},
                                    {"mma", decodeMma}};
  return list;
}

} // namespace meshwork::ptx
