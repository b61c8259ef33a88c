#include "runtime/io/Convert.h"

#include <bit>
#include <cstring>

namespace meshwork::runtime {
namespace {

template <typename T> T load(const unsigned char *from, uint64_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

void fromF32(const unsigned char *from, uint64_t count, float *to) {
  std::memcpy(to, from, count * sizeof(float));
}

void fromF64(const unsigned char *from, uint64_t count, float *to) {
  for (uint64_t i = 0; i < count; ++i)
    to[i] = static_cast<float>(load<double>(from, i));
}

void fromBf16(const unsigned char *from, uint64_t count, float *to) {
  for (uint64_t i = 0; i < count; ++i)
    to[i] = std::bit_cast<float>(uint32_t{load<uint16_t>(from, i)} << 16);
}

/// Exponent and fraction move to f32's places. What f16 calls exponent 31 is
/// f32's 255; a zero exponent is fraction * 2^-24, exact in f32.
void fromF16(const unsigned char *from, uint64_t count, float *to) {
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t half = load<uint16_t>(from, i);
    uint32_t sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
    float value;
    if (magnitude >= 0x7c00u)
      value = std::bit_cast<float>(0x7f800000u | (magnitude & 0x3ffu) << 13);
    else if (magnitude >= 0x400u)
      value = std::bit_cast<float>((magnitude << 13) + (112u << 23));
    else
      value = static_cast<float>(magnitude) * 0x1p-24f;
    to[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
  }
}

template <typename T> void store(T value, unsigned char *to, uint64_t index) {
  std::memcpy(to + index * sizeof(T), &value, sizeof(T));
}

void toF32(const float *from, uint64_t count, unsigned char *to) {
  std::memcpy(to, from, count * sizeof(float));
}

/// Half of the last place kept is added, less one where that place is even. A
/// NaN would be carried into infinity, so it keeps its upper bits and is quiet.
void toBf16(const float *from, uint64_t count, unsigned char *to) {
  for (uint64_t i = 0; i < count; ++i) {
    auto bits = std::bit_cast<uint32_t>(from[i]);
    bool isNan = (bits & 0x7fffffffu) > 0x7f800000u;
    uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    store(static_cast<uint16_t>((isNan ? bits | 0x400000u : rounded) >> 16), to,
          i);
  }
}

/// The magnitude, as f16 without its sign.
uint32_t f16Of(uint32_t magnitude) {
  if (magnitude > 0x7f800000u) // NaN
    return 0x7e00u | (magnitude >> 13 & 0x3ffu);
  if (magnitude >= 0x477ff000u) // 65520, half way to 2^16
    return 0x7c00u;
  // Below 2^-14 the last place is 2^-24, as that of 0.5 in f32 is.
  constexpr float half = 0.5f;
  if (magnitude < 0x38800000u)
    return std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + half) -
           std::bit_cast<uint32_t>(half);
  return (magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23)) >> 13;
}

void toF16(const float *from, uint64_t count, unsigned char *to) {
  for (uint64_t i = 0; i < count; ++i) {
    auto bits = std::bit_cast<uint32_t>(from[i]);
    store(static_cast<uint16_t>((bits >> 16 & 0x8000u) |
                                f16Of(bits & 0x7fffffffu)),
          to, i);
  }
}

} // namespace

std::optional<FloatWriter> writerOfFloats(std::string_view dtype) {
  if (dtype == "F32")
    return FloatWriter{sizeof(float), toF32};
  if (dtype == "F16")
    return FloatWriter{sizeof(uint16_t), toF16};
  if (dtype == "BF16")
    return FloatWriter{sizeof(uint16_t), toBf16};
  return std::nullopt;
}

Converter converterToFloat(std::string_view dtype) {
  if (dtype == "F32")
    return fromF32;
  if (dtype == "F16")
    return fromF16;
  if (dtype == "BF16")
    return fromBf16;
  return dtype == "F64" ? fromF64 : nullptr;
}

} // namespace meshwork::runtime
