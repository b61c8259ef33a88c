#include "runtime/io/Init.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <string_view>

#include <Random123/philox.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

// The library's logf, sinf and cosf differ between machines and do not
// vectorize. Those below are sums of exactly rounded operations: every machine
// and vector width gives the same bits. For that the compiler must not fuse a
// multiply with an add.
#pragma clang fp contract(off)

namespace meshwork::runtime {
namespace {

constexpr uint64_t wordsPerBlock = 4;
constexpr size_t chunkWords = 1024; // stays in the first-level cache

void fillWords(InitStream stream, uint64_t firstBlock, uint32_t *words,
               size_t numBlocks) {
  philox4x32_key_t key = {{static_cast<uint32_t>(stream.seed),
                           static_cast<uint32_t>(stream.seed >> 32)}};
  for (size_t i = 0; i < numBlocks; ++i) {
    uint64_t block = firstBlock + i;
    philox4x32_ctr_t counter = {{static_cast<uint32_t>(block),
                                 static_cast<uint32_t>(block >> 32),
                                 static_cast<uint32_t>(stream.nameHash),
                                 static_cast<uint32_t>(stream.nameHash >> 32)}};
    philox4x32_ctr_t random = philox4x32_R(10, counter, key);
    std::copy_n(random.v, wordsPerBlock, words + i * wordsPerBlock);
  }
}

/// Natural logarithm for 2^-32 <= x <= 1: x = 2^e m with m in [sqrt(1/2),
/// sqrt(2)), ln m = 2 artanh((m - 1) / (m + 1)) by its series; the first term
/// left out is below 1e-9.
inline float logarithm(float x) {
  constexpr uint32_t rootHalf = 0x3f3504f3u; // bits of sqrt(1/2)
  uint32_t bits = std::bit_cast<uint32_t>(x) - rootHalf;
  int32_t exponent = static_cast<int32_t>(bits) >> 23;
  float m = std::bit_cast<float>((bits & 0x007fffffu) + rootHalf);
  float s = (m - 1.0f) / (m + 1.0f);
  float s2 = s * s;
  float series =
      1.0f + s2 * (1.0f / 3 + s2 * (1.0f / 5 + s2 * (1.0f / 7 + s2 / 9)));
  return static_cast<float>(exponent) * std::numbers::ln2_v<float> +
         2.0f * s * series;
}

/// Two standard normals from two words.
inline void boxMuller(uint32_t radiusWord, uint32_t angleWord, float &first,
                      float &second) {
  // Signed conversion is the one every vector unit has: w = 2 (w >> 1) + (w &
  // 1).
  float u = (static_cast<float>(static_cast<int32_t>(radiusWord >> 1)) * 2.0f +
             static_cast<float>(static_cast<int32_t>(radiusWord & 1)) + 1.0f) *
            0x1p-32f;
  float radius = std::sqrt(-2.0f * logarithm(u));
  // A word is a fraction of a turn: the nearest quarter turn and the rest, in
  // [-pi/4, pi/4), come out exactly in integers.
  uint32_t quarter = (angleWord + (1u << 29)) >> 30;
  int32_t rest = static_cast<int32_t>(angleWord - (quarter << 30));
  float x = static_cast<float>(rest) *
            static_cast<float>(std::numbers::pi / 2147483648.0);
  float x2 = x * x;
  float sine =
      x * (1.0f + x2 * (-1.0f / 6 +
                        x2 * (1.0f / 120 + x2 * (-1.0f / 5040 + x2 / 362880))));
  float cosine =
      1.0f + x2 * (-0.5f + x2 * (1.0f / 24 + x2 * (-1.0f / 720 + x2 / 40320)));
  bool odd = quarter & 1;
  float c = odd ? sine : cosine, s = odd ? cosine : sine;
  first = radius * (((quarter + 1) & 2) ? -c : c);
  second = radius * ((quarter & 2) ? -s : s);
}

void normals(const uint32_t *words, float *out, size_t count, float mean,
             float deviation) {
  for (size_t i = 0; i < count; i += 2) {
    float first, second;
    boxMuller(words[i], words[i + 1], first, second);
    out[i] = mean + deviation * first;
    out[i + 1] = mean + deviation * second;
  }
}

void uniforms(const uint32_t *words, float *out, size_t count, float low,
              float high) {
  float width = high - low;
  for (size_t i = 0; i < count; ++i)
    out[i] =
        low + width * (static_cast<float>(static_cast<int32_t>(words[i] >> 8)) *
                       0x1p-24f);
}

} // namespace

uint64_t hashOfName(std::string_view tensor) {
  return XXH3_64bits(tensor.data(), tensor.size());
}

void initialize(const plan::Parameter &parameter, InitStream stream,
                absl::Span<float> out, uint64_t firstElement) {
  if (parameter.init() == plan::InitKind::constant) {
    std::fill(out.begin(), out.end(), parameter.init_a());
    return;
  }
  uint32_t words[chunkWords];
  float values[chunkWords];
  size_t done = 0;
  while (done < out.size()) {
    uint64_t element = firstElement + done;
    // Only the first chunk can start inside a block.
    uint64_t skip = element % wordsPerBlock;
    size_t count = std::min<size_t>(chunkWords - skip, out.size() - done);
    size_t numBlocks = (skip + count + wordsPerBlock - 1) / wordsPerBlock;
    fillWords(stream, element / wordsPerBlock, words, numBlocks);
    if (parameter.init() == plan::InitKind::normal)
      normals(words, values, numBlocks * wordsPerBlock, parameter.init_a(),
              parameter.init_b());
    else
      uniforms(words, values, numBlocks * wordsPerBlock, parameter.init_a(),
               parameter.init_b());
    std::copy_n(values + skip, count, out.data() + done);
    done += count;
  }
}

} // namespace meshwork::runtime
