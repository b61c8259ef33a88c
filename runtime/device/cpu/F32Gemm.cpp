#include "runtime/device/cpu/F32Gemm.h"

#include "runtime/device/cpu/AttentionKernels.h"

namespace meshwork::runtime::cpu {
namespace {

class F32Gemm final : public Gemm {
public:
  explicit F32Gemm(const GemmSpec &spec) : spec(spec) {}

  uint64_t scratchBytes() const override { return 0; }
  uint64_t packedBytes() const override { return 0; }
  absl::Status generate(int) override { return absl::OkStatus(); }
  void pack(int, const std::byte *, std::byte *, std::byte *) override {}
  void run(int, const std::byte *lhs, const std::byte *rhs, std::byte *dst,
           const std::byte *, std::byte *, float) override {
    multiply({.m = spec.m,
              .n = spec.n,
              .k = spec.k,
              .lhs = reinterpret_cast<const float *>(lhs),
              .lhsRow = spec.lhsTransposed ? 1 : spec.lhsLd,
              .lhsStep = spec.lhsTransposed ? spec.lhsLd : 1,
              .rhs = reinterpret_cast<const float *>(rhs),
              .rhsLd = spec.rhsLd,
              .to = reinterpret_cast<float *>(dst),
              .toLd = spec.dstLd,
              .accumulate = spec.accumulate});
  }

private:
  GemmSpec spec;
  void (*multiply)(const F32Product &) = attentionKernels().multiply;
};

} // namespace

std::unique_ptr<Gemm> createF32Gemm(const GemmSpec &spec) {
  return std::make_unique<F32Gemm>(spec);
}

} // namespace meshwork::runtime::cpu
