// How nested blocks of a dim relate to flat ones. Private to this folder.
#pragma once

#include <cstdint>

namespace meshwork::sharding {

inline int64_t ceilDiv(int64_t size, int64_t parts) {
  return size / parts + (size % parts != 0);
}

/// Whether splitting `parent` into blocks of `block`, and each of these into
/// `numInner` of `inner`, puts all blocks where one flat split would put them:
/// block k begins at k * inner. True when the inner blocks fill the outer one,
/// or when only the first outer block holds anything. For three and more levels
/// it must hold for each pair of neighbours.
inline bool nestsFlat(int64_t parent, int64_t block, int64_t numInner,
                      int64_t inner) {
  return block == numInner * inner || parent <= block;
}

} // namespace meshwork::sharding
