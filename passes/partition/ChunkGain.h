// What products in chunks gain, by lib/Cost, before there are instructions.
#pragma once

#include "lib/Cost/Times.h"
#include "passes/partition/ChunkedPair.h"

namespace meshwork::partition {

/// Of a pair, in seconds.
struct ChunkGain {
  double whole = 0;        // the collective, then the products
  double chunked = 0;      // in chunks, with their copies
  bool takesCores = false; // that multiply: then nothing is hidden
  double saved() const { return takesCores ? 0 : whole - chunked; }
};

/// One chunk travels while another one is multiplied. With c chunks this takes
/// max(m - b, 0) + (c - 1) max(m, p) + p: m and p are of one chunk, b of the
/// products beside.
ChunkGain gainOf(const ChunkedPair &pair, const cost::Times &times,
                 mesh::MeshAttr mesh);

/// For `meshwork explain`: what `chunks` save, or why it was left whole.
std::string textOf(const ChunkGain &gain, int64_t chunks, bool isDone);

} // namespace meshwork::partition
