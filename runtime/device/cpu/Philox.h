// Random words of dropout: Philox4x32-10, a function of the seed and of the
// element's place in the global tensor, never of the mesh or of the threads.
//
//   key      (seed, stream)
//   counter  (index low word, index high word, step, 0)
//   word     the first of the four outputs
//
// `index` is the element's row-major position in the step's global tensor. For
// attention it is ((sample * heads + head) * s + query) * s + key. There
// `sample` is the first sample of the shard plus the place in the local batch.
// The element is kept when word >= threshold, then multiplied by keep_scale.
// Generated kernels compute the same function.
// Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011.
#pragma once

#include <cstdint>

#include <Random123/philox.h>

namespace meshwork::runtime::cpu {

/// What is the same for all elements of one dropout in one step.
struct PhiloxStream {
  uint32_t seed = 0;
  uint32_t stream = 0; // hash of the op's name
  uint32_t step = 0;
};

inline uint32_t philoxWord(const PhiloxStream &stream, uint64_t index) {
  r123::Philox4x32::ctr_type counter = {{static_cast<uint32_t>(index),
                                         static_cast<uint32_t>(index >> 32),
                                         stream.step, 0}};
  r123::Philox4x32::key_type key = {{stream.seed, stream.stream}};
  return r123::Philox4x32()(counter, key)[0];
}

} // namespace meshwork::runtime::cpu
