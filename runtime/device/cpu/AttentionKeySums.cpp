#include "runtime/device/cpu/AttentionKeySums.h"

#include <algorithm>

namespace meshwork::runtime::cpu {
namespace {

/// Products that add to rows far apart are slower, and they overwrite what is
/// beside a row.
bool isItsOwnSums(const HeadTensor &result, const AttentionShape &shape) {
  return result.tensor.dtype == DType::f32 && result.ld() == shape.d &&
         shape.d == shape.paddedD();
}

struct Keys {
  int64_t first, count;
};

Keys keysOf(const AttentionShape &shape, BlockRange blocks) {
  int64_t first = blocks.first * shape.keys.block;
  return {first,
          std::min(blocks.end * shape.keys.block, shape.sequence) - first};
}

} // namespace

KeySums::Scratch KeySums::takeScratch(const AttentionShape &shape,
                                      const GradOperands &ops, Carver &carver) {
  auto take = [&](const HeadTensor &result) -> float * {
    if (isItsOwnSums(result, shape))
      return nullptr;
    return carver.take<float>(shape.sequence * shape.paddedD());
  };
  return {take(ops.dk), take(ops.dv)};
}

KeySums::KeySums(const AttentionShape &shape, const GradOperands &ops,
                 std::byte *arena, const Scratch &scratch, int64_t sample,
                 int64_t kvHead)
    : shape(shape), keys(resultOf(ops.dk, scratch.dk, arena, sample, kvHead)),
      values(resultOf(ops.dv, scratch.dv, arena, sample, kvHead)) {}

KeySums::Result KeySums::resultOf(const HeadTensor &tensor, float *scratch,
                                  std::byte *arena, int64_t sample,
                                  int64_t kvHead) const {
  std::byte *to = tensor.at(arena, sample, 0, kvHead);
  if (scratch)
    return {scratch, to, &tensor};
  return {reinterpret_cast<float *>(to), nullptr, &tensor};
}

void KeySums::clear(BlockRange keyBlocks) const {
  int64_t count = keysOf(shape, keyBlocks).count * shape.paddedD();
  std::fill_n(dk(keyBlocks.first), count, 0.0f);
  std::fill_n(dv(keyBlocks.first), count, 0.0f);
}

void KeySums::round(BlockRange keyBlocks) const {
  Keys range = keysOf(shape, keyBlocks);
  for (const Result &result : {keys, values}) {
    if (!result.to)
      continue;
    const Tensor &tensor = result.tensor->tensor;
    int64_t ld = result.tensor->ld();
    auto *round = tensor.dtype == DType::bf16 ? attentionKernels().roundBf16
                                              : attentionKernels().roundF32;
    round(result.sumsOf(shape, keyBlocks.first), shape.paddedD(), nullptr,
          range.count, shape.d, result.to + range.first * ld * tensor.bytes(),
          ld);
  }
}

} // namespace meshwork::runtime::cpu
