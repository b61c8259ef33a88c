#include "runtime/device/cuda/BoxTable.h"
#include <algorithm>

namespace meshwork::runtime::cuda {
namespace {
/// What one block moves: some iterations of all its threads, and enough blocks
/// for all multiprocessors in boxes of some megabytes.
constexpr int64_t chunkBytes = 16 << 10;
/// The widest unit.
constexpr int64_t wideBytes = 16;

/// The code for units of 16 bytes. Narrow ones are `code` itself.
BoxCode widened(BoxCode code) {
  switch (code) {
  case BoxCode::zero1:
  case BoxCode::zero2:
  case BoxCode::zero4:
    return BoxCode::zero16;
  case BoxCode::copy1:
  case BoxCode::copy2:
  case BoxCode::copy4:
    return BoxCode::copy16;
  case BoxCode::sumF32:
    return BoxCode::sumF32x4;
  case BoxCode::sumBf16:
    return BoxCode::sumBf16x8;
  case BoxCode::maxF32:
    return BoxCode::maxF32x4;
  case BoxCode::maxBf16:
    return BoxCode::maxBf16x8;
  case BoxCode::sumI32:
    return BoxCode::sumI32x4;
  case BoxCode::maxI32:
    return BoxCode::maxI32x4;
  default:
    return code;
  }
}

BoxCode codeOf(int64_t width, BoxCode one, BoxCode two, BoxCode four) {
  return width == 1 ? one : width == 2 ? two : four;
}

struct Layout {
  std::vector<BoxDim> dims;
  int64_t fromFirst = 0, toFirst = 0; // elements before the box's first one
};

Layout layoutOf(const BoxTable::Part &part) {
  Layout layout;
  const std::vector<Box::Dim> &dims = part.box.orderedDims();
  layout.dims.resize(dims.size());
  int64_t packed = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    auto strideOn = [&](BoxSide side) {
      return side == BoxSide::packed ? packed
             : side == BoxSide::src  ? dims[i].srcStride
                                     : dims[i].dstStride;
    };
    layout.dims[i] = {dims[i].size, strideOn(part.from), strideOn(part.to)};
    packed *= dims[i].size;
  }
  auto firstOn = [&](BoxSide side) {
    return side == BoxSide::packed ? -part.begin
           : side == BoxSide::src  ? part.box.firstInSrc()
                                   : part.box.firstInDst();
  };
  layout.fromFirst = firstOn(part.from);
  layout.toFirst = firstOn(part.to);
  return layout;
}

/// Whether `count` elements side by side are one unit everywhere.
bool canWiden(const BoxTable::Part &part, const Layout &layout, int64_t count) {
  const BoxDim &inner = layout.dims.back();
  bool can = inner.sourceStride == 1 && inner.targetStride == 1 &&
             inner.size % count == 0 && part.begin % count == 0 &&
             part.end % count == 0;
  for (size_t i = 0; i + 1 < layout.dims.size(); ++i)
    can = can && layout.dims[i].sourceStride % count == 0 &&
          layout.dims[i].targetStride % count == 0;
  return can;
}

void widen(Layout &layout, int64_t count) {
  for (BoxDim &dim : layout.dims)
    dim.sourceStride /= count, dim.targetStride /= count;
  BoxDim &inner = layout.dims.back();
  inner = {inner.size / count, 1, 1};
}
} // namespace

void BoxTable::add(const Part &part, BoxCode code, int64_t width,
                   absl::Span<const DevicePtr> from,
                   absl::Span<const DevicePtr> to) {
  if (part.begin == part.end)
    return;
  Layout layout = layoutOf(part);
  auto firstAddress = static_cast<int>(addresses.size());
  bool aligned = true;
  auto addAddress = [&](DevicePtr base, int64_t first) {
    addresses.push_back(base + static_cast<DevicePtr>(first * width));
    aligned = aligned && addresses.back() % wideBytes == 0;
  };
  for (DevicePtr address : from)
    addAddress(address, layout.fromFirst);
  for (DevicePtr address : to)
    addAddress(address, layout.toFirst);
  int64_t unit = 1; // elements
  if (aligned && canWiden(part, layout, wideBytes / width)) {
    unit = wideBytes / width;
    widen(layout, unit);
    code = widened(code);
  }
  auto move = static_cast<int64_t>(moves.size());
  moves.push_back({code, static_cast<int>(dims.size()),
                   static_cast<int>(layout.dims.size()), firstAddress,
                   static_cast<int>(from.size()), static_cast<int>(to.size())});
  dims.insert(dims.end(), layout.dims.begin(), layout.dims.end());
  int64_t step = chunkBytes / (width * unit), end = part.end / unit;
  for (int64_t at = part.begin / unit; at < end; at += step)
    chunks.push_back({at, std::min(end, at + step), move});
}

void BoxTable::copy(const Part &part, int64_t width, DevicePtr from,
                    DevicePtr to) {
  add(part, codeOf(width, BoxCode::copy1, BoxCode::copy2, BoxCode::copy4),
      width, {&from, 1}, {&to, 1});
}

void BoxTable::zero(const Part &part, int64_t width, DevicePtr to) {
  // Nothing is read; the strides of dst on both sides do not hinder.
  Part alone{part.box, part.begin, part.end, part.to, part.to};
  add(alone, codeOf(width, BoxCode::zero1, BoxCode::zero2, BoxCode::zero4),
      width, {}, {&to, 1});
}

void BoxTable::reduce(const Part &part, plan::DType dtype,
                      plan::Reduction reduction,
                      absl::Span<const DevicePtr> from,
                      absl::Span<const DevicePtr> to) {
  bool sums = reduction == plan::Reduction::sum;
  if (dtype == plan::DType::bf16)
    add(part, sums ? BoxCode::sumBf16 : BoxCode::maxBf16, 2, from, to);
  else if (dtype == plan::DType::i32)
    add(part, sums ? BoxCode::sumI32 : BoxCode::maxI32, 4, from, to);
  else
    add(part, sums ? BoxCode::sumF32 : BoxCode::maxF32, 4, from, to);
}

size_t BoxTable::bytes() const {
  return chunks.size() * sizeof(BoxChunk) + moves.size() * sizeof(BoxMove) +
         dims.size() * sizeof(BoxDim) + addresses.size() * sizeof(DevicePtr);
}

} // namespace meshwork::runtime::cuda
