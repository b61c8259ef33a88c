#include "lib/Spec/Words.h"

#include "lib/Spec/ScheduleNames.h"
#include "lib/Spec/Spec.h"

namespace meshwork::spec {

template <> std::span<const Word<Type>> words() {
  static constexpr Word<Type> list[] = {{"bf16", Type::bf16},
                                        {"f32", Type::f32}};
  return list;
}

template <> std::span<const Word<Device>> words() {
  static constexpr Word<Device> list[] = {{"cpu", Device::cpu},
                                          {"cuda", Device::cuda}};
  return list;
}

template <> std::span<const Word<Rounding>> words() {
  static constexpr Word<Rounding> list[] = {
      {"nearest", Rounding::nearest}, {"stochastic", Rounding::stochastic}};
  return list;
}

template <> std::span<const Word<ReductionOrder>> words() {
  static constexpr Word<ReductionOrder> list[] = {
      {"fixed", ReductionOrder::fixed}, {"any", ReductionOrder::any}};
  return list;
}

template <> std::span<const Word<Scaling>> words() {
  static constexpr Word<Scaling> list[] = {{"current", Scaling::current},
                                           {"delayed", Scaling::delayed}};
  return list;
}

template <> std::span<const Word<WeightCasts>> words() {
  static constexpr Word<WeightCasts> list[] = {
      {"auto", WeightCasts::byCount},
      {"step", WeightCasts::step},
      {"microbatch", WeightCasts::microbatch}};
  return list;
}

template <> std::span<const Word<Gathered>> words() {
  static constexpr Word<Gathered> list[] = {{"free", Gathered::free},
                                            {"keep", Gathered::keep},
                                            {"auto", Gathered::byCost}};
  return list;
}

template <> std::span<const Word<Reduce>> words() {
  static constexpr Word<Reduce> list[] = {{"microbatch", Reduce::microbatch},
                                          {"step", Reduce::step},
                                          {"auto", Reduce::byCost}};
  return list;
}

template <> std::span<const Word<WeightType>> words() {
  static constexpr Word<WeightType> list[] = {{"compute", WeightType::compute},
                                              {"fp8", WeightType::fp8},
                                              {"int8", WeightType::int8}};
  return list;
}

template <> std::span<const Word<GradientType>> words() {
  static constexpr Word<GradientType> list[] = {
      {"precision", GradientType::precision},
      {"int8", GradientType::int8},
      {"int4", GradientType::int4}};
  return list;
}

template <> std::span<const Word<Recompute>> words() {
  static constexpr Word<Recompute> list[] = {
      {"none", Recompute::none},
      {"selective", Recompute::selective},
      {"offload", Recompute::offload},
      {"full", Recompute::full},
      {"auto", Recompute::byBudget}};
  return list;
}

template <> std::span<const Word<When>> words() {
  static constexpr Word<When> list[] = {
      {"auto", When::useful}, {"always", When::always}, {"never", When::never}};
  return list;
}

template <> std::span<const Word<Context>> words() {
  static constexpr Word<Context> list[] = {{"gathered", Context::gathered},
                                           {"ulysses", Context::ulysses},
                                           {"ring", Context::ring},
                                           {"auto", Context::byCost}};
  return list;
}

template <> std::span<const Word<Exchange>> words() {
  static constexpr Word<Exchange> list[] = {{"auto", Exchange::byCost},
                                            {"gathered", Exchange::gathered},
                                            {"all_to_all", Exchange::allToAll}};
  return list;
}

template <> std::span<const Word<Balance>> words() {
  static constexpr Word<Balance> list[] = {{"model", Balance::ofModel},
                                           {"layer", Balance::ofLayer},
                                           {"none", Balance::none}};
  return list;
}

template <> std::span<const Word<layout::DimLayout>> words() {
  static constexpr Word<layout::DimLayout> list[] = {
      {"zigzag", layout::DimLayout::zigzag},
      {"block", layout::DimLayout::block}};
  return list;
}

template <> std::span<const Word<Schedule>> words() {
  static constexpr Word<Schedule> list[] = {
      {"gpipe", Schedule::gpipe},
      {"1f1b", Schedule::oneForwardOneBackward},
      {"interleaved-1f1b", Schedule::interleaved},
      {"zb-h1", Schedule::zbH1},
      {"zb-h2", Schedule::zbH2},
      {"zb-v", Schedule::zbV},
      {"dualpipe-v", Schedule::dualPipeV},
      {"auto", Schedule::best}};
  return list;
}

std::span<const char *const> gpuArchs() {
  static constexpr const char *list[] = {"sm_80", "sm_90a", "sm_100"};
  return list;
}

} // namespace meshwork::spec
