// One matrix product of fixed shape and layout on the calling thread, by
// oneDNN. Operations split their work into such blocks and spread them over
// the team; oneDNN itself never starts a thread, so the bits of a block depend
// on its shape alone.
//
// Where the machine has no fast bf16 product, bf16 operands pass through f32
// blockwise: the same interface, correct, at most f32 speed. So do operands of
// 8 bits, which no CPU here multiplies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "meshwork/Plan/Types.h"

namespace meshwork::runtime::cpu {

/// dst[m,n] = scale * lhs[m,k] * rhs[k,n] (+ bias[n]) (+ dst). Sums are in f32.
struct GemmSpec {
  int64_t m = 0, n = 0, k = 0;
  plan::DType type = plan::DType::f32;    // of lhs and rhs
  plan::DType rhsType = plan::DType::f32; // of rhs where type has 8 bits
  plan::DType dstType = plan::DType::f32; // f32, or type; bf16 for 8 bits
  bool lhsTransposed = false; // stored [k, m], rows lhsLd elements apart
  bool rhsTransposed = false; // stored [n, k]
  int64_t lhsLd = 0, rhsLd = 0, dstLd = 0; // elements between rows as stored
  bool hasBias = false;
  plan::DType biasType = plan::DType::f32;
  bool accumulate = false; // adds to dst
  bool packRhs = false;    // run() takes what pack() wrote
  /// Operands stay in the caches, so a panel need not be packed just before it
  /// is used. In f32, rhs must then not be transposed, and there is no bias.
  /// Rows of rhs and dst must have room for n up to a multiple of sixteen; in
  /// that room, dst is overwritten.
  bool inCache = false;
};

class Gemm {
public:
  /// Settles the algorithm; generates no code yet. Unimplemented, with the
  /// library's word, when it has no such product.
  ///   sameRhsAs  a product of the same packed rhs and other m; may be null
  static absl::StatusOr<std::unique_ptr<Gemm>>
  create(const GemmSpec &spec, const Gemm *sameRhsAs = nullptr);
  virtual ~Gemm() = default;

  /// Scratch that run() and pack() overwrite.
  virtual uint64_t scratchBytes() const = 0;
  /// Size of a packed rhs; zero when run() takes rhs as it is.
  virtual uint64_t packedBytes() const = 0;

  /// Generates code. Threads [0, threads) may then call run() at once.
  virtual absl::Status generate(int threads) = 0;
  virtual void pack(int thread, const std::byte *rhs, std::byte *packed,
                    std::byte *scratch) = 0;
  ///   scale  1 unless operands have 8 bits
  virtual void run(int thread, const std::byte *lhs, const std::byte *rhs,
                   std::byte *dst, const std::byte *bias, std::byte *scratch,
                   float scale = 1) = 0;
};

} // namespace meshwork::runtime::cpu
