#include "runtime/comm/Strided.h"
#include <algorithm>
#include <cstring>
#include <tuple>

namespace meshwork::runtime {
namespace {

template <typename T>
void copyElements(const std::byte *src, int64_t srcStride, std::byte *dst,
                  int64_t dstStride, int64_t count) {
  const T *from = reinterpret_cast<const T *>(src);
  T *to = reinterpret_cast<T *>(dst);
  for (int64_t i = 0; i < count; ++i)
    to[i * dstStride] = from[i * srcStride];
}
} // namespace

int64_t Strided::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Box::Box(const std::vector<int64_t> &sizes,
         const std::vector<int64_t> &srcStrides,
         const std::vector<int64_t> &dstStrides, int64_t srcOffset,
         int64_t dstOffset)
    : srcOffset(srcOffset), dstOffset(dstOffset) {
  std::vector<Dim> all;
  for (size_t i = 0; i < sizes.size(); ++i) {
    count *= sizes[i];
    if (sizes[i] > 1)
      all.push_back({sizes[i], srcStrides[i], dstStrides[i]});
  }
  // Writes that follow each other cost less than reads that do.
  std::sort(all.begin(), all.end(), [](const Dim &a, const Dim &b) {
    return std::tie(a.dstStride, a.srcStride) >
           std::tie(b.dstStride, b.srcStride);
  });
  for (const Dim &dim : all) {
    Dim *outer = dims.empty() ? nullptr : &dims.back();
    if (outer && outer->srcStride == dim.size * dim.srcStride &&
        outer->dstStride == dim.size * dim.dstStride)
      *outer = {outer->size * dim.size, dim.srcStride, dim.dstStride};
    else
      dims.push_back(dim);
  }
  if (dims.empty())
    dims.push_back({1, 1, 1});
}

bool Box::isInPlace(const std::byte *src, const std::byte *dst,
                    int64_t width) const {
  return src + srcOffset * width == dst + dstOffset * width &&
         std::all_of(dims.begin(), dims.end(), [](const Dim &dim) {
           return dim.size == 1 || dim.srcStride == dim.dstStride;
         });
}

void Box::forEachRun(int64_t begin, int64_t end,
                     absl::FunctionRef<void(const Run &)> visit) const {
  const Dim &inner = dims.back();
  while (begin < end) {
    int64_t row = begin / inner.size, column = begin % inner.size;
    Run run{srcOffset + column * inner.srcStride,
            dstOffset + column * inner.dstStride,
            std::min(inner.size - column, end - begin), inner.srcStride,
            inner.dstStride};
    for (size_t i = dims.size() - 1; i-- > 0;) {
      int64_t at = row % dims[i].size;
      row /= dims[i].size;
      run.src += at * dims[i].srcStride;
      run.dst += at * dims[i].dstStride;
    }
    visit(run);
    begin += run.count;
  }
}

void copyRun(const std::byte *src, int64_t srcStride, std::byte *dst,
             int64_t dstStride, int64_t count, int64_t width) {
  if (srcStride == 1 && dstStride == 1)
    std::memcpy(dst, src, static_cast<size_t>(count * width));
  else if (width == 4)
    copyElements<uint32_t>(src, srcStride, dst, dstStride, count);
  else if (width == 2)
    copyElements<uint16_t>(src, srcStride, dst, dstStride, count);
  else
    copyElements<uint8_t>(src, srcStride, dst, dstStride, count);
}

void zeroRun(std::byte *dst, int64_t dstStride, int64_t count, int64_t width) {
  if (dstStride == 1) {
    std::memset(dst, 0, static_cast<size_t>(count * width));
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    std::memset(dst + i * dstStride * width, 0, static_cast<size_t>(width));
}

} // namespace meshwork::runtime
