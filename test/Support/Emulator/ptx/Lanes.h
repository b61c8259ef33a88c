// Handlers from plain functions: lanes<&f> applies f to each lane, whatever
// its types; a function that returns bool writes a predicate.
#pragma once

#include "test/Support/Emulator/ptx/Decoder.h"
#include "test/Support/Emulator/ptx/Values.h"
#include "test/Support/Emulator/ptx/Warp.h"

#include <tuple>
#include <type_traits>
#include <utility>

namespace meshwork::ptx {

/// Writes the lanes of `active`.
template <class T> inline void writeLanes(T *to, const T *values, Mask active) {
  if (active == allLanes) {
    std::memcpy(to, values, numLanes * sizeof(T));
    return;
  }
  for (unsigned l = 0; l < numLanes; ++l)
    to[l] = active >> l & 1 ? values[l] : to[l];
}

template <auto F, class R, class... A, size_t... I>
inline void applyToLanes(Warp &warp, const Instruction &i, Mask active,
                         std::index_sequence<I...>) {
  std::tuple<const A *...> from{warp.at<A>(i.r[I + 1])...};
  if constexpr (std::is_same_v<R, bool>) {
    Mask result = 0;
    for (unsigned l = 0; l < numLanes; ++l)
      result |= Mask(F(std::get<I>(from)[l]...)) << l;
    warp.setPredicate(i.r[0], result, active);
  } else {
    alignas(64) R result[numLanes];
    for (unsigned l = 0; l < numLanes; ++l)
      result[l] = F(std::get<I>(from)[l]...);
    writeLanes(warp.at<R>(i.r[0]), result, active);
  }
}

template <auto F, class R, class... A> constexpr Handler lanesOf(R (*)(A...)) {
  return [](Warp &warp, const Instruction &i, Mask active) {
    applyToLanes<F, R, A...>(warp, i, active, std::index_sequence_for<A...>());
  };
}
/// r[0] = F(r[1], r[2], ...) in each lane.
template <auto F> constexpr Handler lanes = lanesOf<F>(F);

/// Whole-warp instructions wait for every lane.
inline void setWholeWarp(Line &line, Instruction &i) {
  i.flow = Flow::gather;
  i.together = line.decoder.constant(allLanes, 32);
}

template <class T> struct TypesOf;
#define MESHWORK_PTX_TYPES(T, ...)                                             \
  template <> struct TypesOf<T> {                                              \
    static bool match(Type type) {                                             \
      for (Type known : {__VA_ARGS__})                                         \
        if (type == known)                                                     \
          return true;                                                         \
      return false;                                                            \
    }                                                                          \
  }
MESHWORK_PTX_TYPES(uint8_t, Type::u8, Type::b8);
MESHWORK_PTX_TYPES(int8_t, Type::s8);
MESHWORK_PTX_TYPES(uint16_t, Type::u16, Type::b16);
MESHWORK_PTX_TYPES(int16_t, Type::s16);
MESHWORK_PTX_TYPES(uint32_t, Type::u32, Type::b32);
MESHWORK_PTX_TYPES(int32_t, Type::s32);
MESHWORK_PTX_TYPES(uint64_t, Type::u64, Type::b64);
MESHWORK_PTX_TYPES(int64_t, Type::s64);
MESHWORK_PTX_TYPES(Half, Type::f16);
MESHWORK_PTX_TYPES(Bf16, Type::bf16);
MESHWORK_PTX_TYPES(float, Type::f32);
MESHWORK_PTX_TYPES(double, Type::f64);
MESHWORK_PTX_TYPES(Pair<Half>, Type::f16x2);
MESHWORK_PTX_TYPES(Pair<Bf16>, Type::bf16x2);
MESHWORK_PTX_TYPES(Pair<float>, Type::f32x2);
#undef MESHWORK_PTX_TYPES

/// select.operator()<T>() for the T among Ts that stands for `type`.
template <class... Ts, class F> Handler pick(Line &line, Type type, F select) {
  Handler handler = nullptr;
  ((TypesOf<Ts>::match(type) ? void(handler = select.template operator()<Ts>())
                             : void()),
   ...);
  if (!handler)
    line.fail("type ." + std::string(nameOf(type)) + " is not modelled here");
  return handler;
}

} // namespace meshwork::ptx
