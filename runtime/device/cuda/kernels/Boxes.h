// What moveBoxes (Boxes.cu) reads, in tables in the device's memory: the one
// header that the host's and the device's compiler share, so it includes
// nothing.
#pragma once

namespace meshwork::runtime::cuda {

/// What a move does with units of this many bytes. Sources are summed in their
/// order, in f32, and the result is rounded once; i32 in 32 bits.
enum class BoxCode : int {
  zero1,
  zero2,
  zero4,
  zero16,
  copy1,
  copy2,
  copy4,
  copy16,
  sumF32,   // one element
  sumF32x4, // 16 bytes
  sumBf16,
  sumBf16x8,
  maxF32,
  maxF32x4,
  maxBf16,
  maxBf16x8,
  sumI32,
  sumI32x4,
  maxI32,
  maxI32x4
};

/// Sizes and strides in units.
struct BoxDim {
  long long size, sourceStride, targetStride;
};

/// One box: its dims, outermost first, and its addresses, sources first.
struct BoxMove {
  BoxCode code;
  int firstDim, numDims;
  int firstAddress, numSources, numTargets;
};

/// Units [begin, end) of a move's box, in row-major order of its dims: the work
/// of one block.
struct BoxChunk {
  long long begin, end;
  long long move;
};

inline constexpr int boxThreads = 256; // of a block

} // namespace meshwork::runtime::cuda
