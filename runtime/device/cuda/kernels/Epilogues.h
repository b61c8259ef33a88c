// What the kernels of Epilogues.cu are told: the one header that the host's and
// the device's compiler share, so it includes nothing. Each takes its struct by
// value.
#pragma once

namespace meshwork::runtime::cuda {

/// Numbers in memory, f32 or bf16; strides in elements.
struct EpilogueTensor {
  unsigned long long address; // 0: none
  long long strides[3];
  int isBf16;
};

enum class FinishCode : int {
  bias,        // dst += bias
  gelu,        // dst = gelu(x) and aux = x, x = dst + bias
  geluGradient // dst *= gelu'(aux)
};

/// finishProduct: dst holds [batch, rows, columns] sums. A unit is `width`
/// neighbours of a row: one, or where all tensors allow it 16 bytes of them.
struct FinishTask {
  FinishCode code;
  int width;
  long long units, unitsPerRow, rows;
  EpilogueTensor dst, aux, bias;
};

/// addUp: to[i] = sum_k from[i, k], in f32 and in one order; `from` has strides
/// for i and k.
struct AddUpTask {
  long long count, depth;
  int isDenseAlongSum;
  EpilogueTensor from, to;
};

inline constexpr int finishThreads = 256; // of a block
inline constexpr int addUpWidth = 32; // sums of a block, and threads of each

} // namespace meshwork::runtime::cuda
