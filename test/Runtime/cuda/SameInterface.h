// Compares functions as the runtime declares them with those of NVIDIA's
// headers: as many parameters, each of the same size and register class.
// Handles and enums have types of their own on both sides.
#pragma once

#include <type_traits>

namespace meshwork::runtime {

template <typename A, typename B> constexpr bool isPassedAlike() {
  if constexpr (std::is_void_v<A> || std::is_void_v<B>)
    return std::is_void_v<A> == std::is_void_v<B>;
  else
    return sizeof(A) == sizeof(B) &&
           std::is_floating_point_v<A> == std::is_floating_point_v<B> &&
           std::is_class_v<A> == std::is_class_v<B>;
}

template <typename A, typename B> struct SameInterface : std::false_type {};
template <typename A, typename... As, typename B, typename... Bs>
  requires(sizeof...(As) == sizeof...(Bs))
struct SameInterface<A (*)(As...), B (*)(Bs...)>
    : std::bool_constant<isPassedAlike<A, B>() &&
                         (isPassedAlike<As, Bs>() && ...)> {};

} // namespace meshwork::runtime
