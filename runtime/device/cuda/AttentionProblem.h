// Attention, or its gradient, as others than the plan's kernels are told of it.
#pragma once

#include "meshwork/Plan/Ranges.h"
#include "runtime/device/cuda/DriverApi.h"
#include <array>
#include <vector>

namespace meshwork::runtime::cuda {

/// [batch, heads, rows, d], strides in elements, d dense.
struct AttentionTensor {
  std::array<int64_t, 4> dims, strides;
  bool isF32 = false; // else bf16; of results alone
};

struct AttentionProblem {
  AttentionTensor q, k, v, out;
  AttentionTensor dout, dq, dk, dv; // of the gradient
  int64_t lseStrides[2] = {0, 0};   // of sample and head; rows are dense
  float scale = 1;
  bool causal = false; // query i sees key j when j <= i
  int64_t window = 0;  // and when i - j < window; 0: unlimited
  // And when j >= documents[i], which another tensor gives.
  bool documents = false;
  // Which tokens of the sequence the rows of q and of k are, where ranks share
  // them, and how many keys it has; nothing where rows are all tokens in order.
  std::vector<layout::Range> queries, keys;
  int64_t totalKeys = 0;

  int64_t samples() const { return q.dims[0]; }
  int64_t heads() const { return q.dims[1]; }
  int64_t kvHeads() const { return k.dims[1]; }
  int64_t rows() const { return q.dims[2]; }    // of queries
  int64_t columns() const { return k.dims[2]; } // rows of keys
  int64_t headDim() const { return q.dims[3]; }
};

/// Where its tensors begin; 0: there is none.
struct AttentionPlaces {
  DevicePtr q, k, v, out, lse, documents;
  DevicePtr dout, dq, dk, dv; // of the gradient
};

} // namespace meshwork::runtime::cuda
