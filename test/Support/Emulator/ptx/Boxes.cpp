#include "test/Support/Emulator/ptx/Boxes.h"

#include "absl/strings/str_format.h"

#include <algorithm>

namespace meshwork::ptx {
namespace {

constexpr uint32_t chunkBytes = 16; // what a swizzle keeps together

/// A row of the box: of its bytes [begin, end) are inside of the tensor.
struct Row {
  uint32_t offset; // in the dense box
  uint64_t global; // address of its first byte, even if that is outside
  uint32_t begin, end;
};

/// The row with this index in the dims but the innermost.
Row rowOf(const TensorMap &map, const Coordinates &at, uint32_t index) {
  Row row{index * map.rowBytes(), map.address, 0, 0};
  bool inside = true;
  for (unsigned d = 1; d < map.rank; ++d) {
    int64_t x = int64_t(at[d]) + index % map.box[d];
    index /= map.box[d];
    inside &= x >= 0 && uint64_t(x) < map.dims[d];
    row.global += uint64_t(x) * map.strides[d];
  }
  row.global += uint64_t(int64_t(at[0])) * map.strides[0];
  int64_t last = int64_t(map.dims[0]) - at[0];
  int64_t begin = std::clamp<int64_t>(-int64_t(at[0]), 0, map.box[0]);
  int64_t end = std::clamp<int64_t>(last, begin, map.box[0]);
  if (inside) {
    row.begin = uint32_t(begin) * uint32_t(map.strides[0]);
    row.end = uint32_t(end) * uint32_t(map.strides[0]);
  }
  return row;
}

template <class F>
void eachRow(const TensorMap &map, const Coordinates &at, F f) {
  uint32_t numRows = map.boxBytes() / map.rowBytes();
  for (uint32_t index = 0; index < numRows; ++index)
    f(rowOf(map, at, index));
}

uint32_t placeOf(const TensorMap &map, uint32_t address) {
  return map.swizzled ? swizzle128(address) : address;
}

} // namespace

const std::byte *asyncReadAt(Warp &warp, uint64_t address, uint32_t bytes,
                             unsigned lane) {
  const std::byte *at = sharedAt(warp, address, bytes, lane, Access::read);
  const Block &block = *warp.block;
  for (uint64_t a = address; a < address + bytes; a += 4) {
    uint32_t last = block.genericWrites.last(uint32_t(a));
    unsigned writer = GenericWrites::warpOf(last);
    if (last == GenericWrites::none ||
        block.warps[writer].proxyFences != GenericWrites::fencesOf(last))
      continue;
    throw Fault{Fault::Kind::asynchronous,
                absl::StrFormat("shared address 0x%x was written by warp %u "
                                "without a fence.proxy.async after it",
                                a, writer),
                int(lane)};
  }
  return at;
}

void loadBox(Warp &warp, unsigned lane, const TensorMap &map,
             const Coordinates &at, uint32_t to) {
  std::vector<std::byte> bytes(map.rowBytes());
  std::byte *shared = warp.block->shared.data();
  eachRow(map, at, [&](const Row &row) {
    std::fill(bytes.begin(), bytes.end(), std::byte(0));
    if (row.begin < row.end)
      std::memcpy(&bytes[row.begin],
                  globalAt(warp, row.global + row.begin, row.end - row.begin,
                           lane, Access::read),
                  row.end - row.begin);
    for (uint32_t c = 0; c < bytes.size(); c += chunkBytes)
      std::memcpy(shared + placeOf(map, to + row.offset + c), &bytes[c],
                  chunkBytes);
  });
}

std::vector<std::byte> readBox(Warp &warp, unsigned lane, const TensorMap &map,
                               uint32_t from) {
  std::vector<std::byte> box(map.boxBytes());
  for (uint32_t c = 0; c < box.size(); c += chunkBytes)
    std::memcpy(&box[c],
                asyncReadAt(warp, placeOf(map, from + c), chunkBytes, lane),
                chunkBytes);
  return box;
}

void writeBox(Warp &warp, unsigned lane, const TensorMap &map,
              const Coordinates &at, const std::vector<std::byte> &box) {
  eachRow(map, at, [&](const Row &row) {
    if (row.begin < row.end)
      std::memcpy(globalAt(warp, row.global + row.begin, row.end - row.begin,
                           lane, Access::write),
                  &box[row.offset + row.begin], row.end - row.begin);
  });
}

} // namespace meshwork::ptx
