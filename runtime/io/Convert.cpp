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

} // namespace

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
