// What the stand-in keeps behind the library's handles.
#pragma once

#include "runtime/device/cuda/BlasLtApi.h"
#include <vector>

namespace meshwork::runtime::cuda::blas {

struct HandleObject {};

struct MatmulDescObject {
  int computeType = 0, scaleType = 0;
  int32_t transposeA = plain, transposeB = plain;
  uint32_t epilogue = epilogue::none;
  const void *bias = nullptr; // read, or where sums go
  int32_t biasType = -1;      // that of d
  void *aux = nullptr;        // of a GELU: written, or read by the gradient
  int64_t auxLd = 0;
  int32_t auxType = -1; // that of d
  const float *scaleA = nullptr, *scaleB = nullptr;
  int8_t fastAccumulation = 0; // of 8 bits; sums are exact here all the same
  int32_t multiprocessors = 0; // to count on; 0: all
};

inline bool addsBias(uint32_t epilogue) {
  return epilogue == epilogue::bias || epilogue == epilogue::geluBias ||
         epilogue == epilogue::geluAuxBias;
}
inline bool addsUp(uint32_t epilogue) {
  return epilogue == epilogue::sumA || epilogue == epilogue::sumB;
}
inline bool hasAux(uint32_t epilogue) {
  return epilogue == epilogue::geluAux || epilogue == epilogue::geluAuxBias ||
         epilogue == epilogue::geluGradient;
}
inline bool isGelu(uint32_t epilogue) {
  return hasAux(epilogue) || epilogue == epilogue::gelu ||
         epilogue == epilogue::geluBias;
}

inline bool isFloat8(int type) {
  return type == dataType::e4m3 || type == dataType::e5m2;
}

struct MatrixLayoutObject {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0;
  int32_t batch = 1;
  int64_t batchStride = 0;

  size_t width() const {
    return isFloat8(type) ? 1 : type == dataType::bf16 ? 2 : 4;
  }
  /// From the first element to behind the last one.
  size_t bytes() const;
};

struct PreferenceObject {
  uint64_t workspaceBytes = 0;
  uint32_t reductionSchemes = 7;
  uint32_t alignments[4] = {256, 256, 256, 256}; // of a, b, c, d
};

/// What a heuristic's result says, in the 64 bytes of an Algorithm.
struct Proposal {
  uint64_t magic, problem; // a hash of the layouts and the description
  uint64_t workspaceBytes;
  uint32_t alignments[4];
  uint32_t splits; // parts of the sum over k
  uint32_t isSlow;
};

/// success, or why the library would refuse the problem.
Status checkProblem(const MatmulDescObject *desc, const MatrixLayoutObject *a,
                    const MatrixLayoutObject *b, const MatrixLayoutObject *c,
                    const MatrixLayoutObject *d);
uint64_t hashOf(const MatmulDescObject &desc, const MatrixLayoutObject &a,
                const MatrixLayoutObject &b, const MatrixLayoutObject &d);

/// One product in a stream; a copy of everything it needs.
struct Product {
  MatmulDescObject desc;
  MatrixLayoutObject aLayout, bLayout, dLayout;
  const void *a, *b, *c;
  void *d;
  float *workspace;
  float alpha, beta;
  Proposal proposal;

  /// Computes it, or fails the stream's device.
  void run() const;

private:
  bool isReadable() const;
  size_t biasBytes() const; // that the epilogue reads or writes
  float scale() const;      // what sums are multiplied with
  template <typename In, typename Out> void compute() const;
  template <typename T>
  void addUp(const std::vector<float> &left, const std::vector<float> &right,
             uint64_t depth) const;
  void sum(std::vector<float> &sums, uint64_t rows, const float *left,
           const float *right, uint64_t depth) const;
  template <typename Out>
  void finish(const float *sums, uint64_t rows, uint64_t firstRow,
              const Out *from, Out *aux, Out *to) const;
};

} // namespace meshwork::runtime::cuda::blas
