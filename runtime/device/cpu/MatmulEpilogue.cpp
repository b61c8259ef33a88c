#include "runtime/device/cpu/MatmulEpilogue.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/machine/Bf16.h"
#include <algorithm>
#include <cmath>
#include <cstring>

namespace meshwork::runtime::cpu {
namespace {

float load(const Tensor &tensor, const std::byte *base, int64_t element) {
  if (tensor.dtype == DType::bf16)
    return fromBf16(reinterpret_cast<const uint16_t *>(base)[element]);
  return reinterpret_cast<const float *>(base)[element];
}

void store(const Tensor &tensor, std::byte *base, int64_t element,
           float value) {
  if (tensor.dtype == DType::bf16)
    reinterpret_cast<uint16_t *>(base)[element] = toBf16(value);
  else
    reinterpret_cast<float *>(base)[element] = value;
}

constexpr float geluScale = 0.7978845608f, geluCube = 0.044715f;
/// From here on tanh is 1 to the last bit. Unbounded, x^2 overflows and the
/// derivative is 0 * inf. A NaN of x is in x itself.
float squareOf(float x) { return std::min(x * x, 100.0f); }
float tanhOf(float x) {
  return std::tanh(x * geluScale * (1 + geluCube * squareOf(x)));
}
float gelu(float x) { return 0.5f * x * (1 + tanhOf(x)); }
float geluGradient(float x) {
  float t = tanhOf(x);
  return 0.5f * (1 + t) +
         0.5f * x * (1 - t * t) * geluScale * (1 + 3 * geluCube * squareOf(x));
}
} // namespace

uint32_t MatmulEpilogue::productOf(const plan::Matmul &op) {
  bool keepsInput =
      op.epilogue() == plan::Epilogue::gelu && op.aux() != plan::noView;
  return keepsInput ? op.aux() : op.dst();
}

absl::StatusOr<MatmulEpilogue>
MatmulEpilogue::of(const plan::Matmul &op, const ProgramOnRank &program) {
  MatmulEpilogue epilogue;
  epilogue.kind = op.epilogue();
  epilogue.hasAux = op.aux() != plan::noView;
  MESHWORK_ASSIGN_OR_RETURN(epilogue.dst, tensorOf(program, op.dst(), "dst"));
  if (epilogue.hasAux)
    MESHWORK_ASSIGN_OR_RETURN(epilogue.aux, tensorOf(program, op.aux(), "aux"));
  if (epilogue.kind == plan::Epilogue::sum_lhs)
    MESHWORK_ASSIGN_OR_RETURN(epilogue.summed,
                              tensorOf(program, op.lhs(), "lhs"));
  if (epilogue.kind == plan::Epilogue::sum_rhs) {
    MESHWORK_ASSIGN_OR_RETURN(epilogue.summed,
                              tensorOf(program, op.rhs(), "rhs"));
    std::swap(epilogue.summed.shape[1], epilogue.summed.shape[2]);
    std::swap(epilogue.summed.strides[1], epilogue.summed.strides[2]);
  }
  return epilogue;
}

void MatmulEpilogue::run(ThreadTeam &team, std::byte *arena) const {
  if (kind == plan::Epilogue::gelu || kind == plan::Epilogue::gelu_grad)
    applyGelu(team, arena);
  else if (kind != plan::Epilogue::none)
    addUp(team, arena);
}

void MatmulEpilogue::applyGelu(ThreadTeam &team, std::byte *arena) const {
  const Tensor &input = hasAux ? aux : dst;
  const std::byte *from = input.in(arena);
  std::byte *to = dst.in(arena);
  bool isGradient = kind == plan::Epilogue::gelu_grad;
  int64_t columns = dst.shape[2];
  team.parallelFor(dst.shape[1], [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t i = 0; i < columns; ++i) {
        int64_t at = row * dst.strides[1] + i * dst.strides[2];
        float x =
            load(input, from, row * input.strides[1] + i * input.strides[2]);
        store(dst, to, at,
              isGradient ? load(dst, to, at) * geluGradient(x) : gelu(x));
      }
  });
}

/// In f64: a sum of tens of thousands, whose order then matters little.
void MatmulEpilogue::addUp(ThreadTeam &team, std::byte *arena) const {
  constexpr int64_t block = 64; // neighbours are read together
  const std::byte *from = summed.in(arena);
  std::byte *to = aux.in(arena);
  int64_t count = summed.shape[1], depth = summed.shape[2];
  team.parallelFor((count + block - 1) / block, [&](int64_t begin, int64_t end,
                                                    int) {
    for (int64_t first = begin * block; first < end * block; first += block) {
      int64_t last = std::min(first + block, count);
      double sums[block] = {};
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t i = first; i < last; ++i)
          sums[i - first] +=
              load(summed, from, i * summed.strides[1] + k * summed.strides[2]);
      for (int64_t i = first; i < last; ++i)
        store(aux, to, i * aux.strides[0], static_cast<float>(sums[i - first]));
    }
  });
}

} // namespace meshwork::runtime::cpu
