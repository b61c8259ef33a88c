// The f32 sums of dk and dv of one sample and key head, over its query heads
// and their blocks.
#pragma once

#include "runtime/device/cpu/AttentionGradProducts.h"

namespace meshwork::runtime::cpu {

class KeySums {
public:
  /// What of a workspace takeScratch() took; null for results that are their
  /// own sums.
  struct Scratch {
    float *dk, *dv; // [keys, shape.paddedD()]
  };
  static Scratch takeScratch(const AttentionShape &shape,
                             const GradOperands &ops, Carver &carver);

  KeySums(const AttentionShape &shape, const GradOperands &ops,
          std::byte *arena, const Scratch &scratch, int64_t sample,
          int64_t kvHead);

  /// Of the block's first key.
  float *dk(int64_t keyBlock) const { return keys.sumsOf(shape, keyBlock); }
  float *dv(int64_t keyBlock) const { return values.sumsOf(shape, keyBlock); }
  void clear(BlockRange keyBlocks) const;
  /// Writes the sums to results in another type or layout.
  void round(BlockRange keyBlocks) const;

private:
  struct Result {
    float *sums;
    std::byte *to; // null when `sums` are the result
    const HeadTensor *tensor;

    float *sumsOf(const AttentionShape &shape, int64_t keyBlock) const {
      return sums + keyBlock * shape.keys.block * shape.paddedD();
    }
  };
  Result resultOf(const HeadTensor &tensor, float *scratch, std::byte *arena,
                  int64_t sample, int64_t kvHead) const;

  const AttentionShape &shape;
  Result keys, values;
};

} // namespace meshwork::runtime::cpu
