// How what belongs to a parameter or a value is called, for people. What writes
// names builds them here, and what looks for them does so too: nobody takes a
// name apart.
#pragma once

#include <string>
#include <string_view>

namespace meshwork::plan {

/// What a microbatch adds to a state: "gradient of a microbatch".
inline constexpr std::string_view ofMicrobatch = " of a microbatch";

/// What a state becomes at the end of a step: "weight after the update".
inline constexpr std::string_view afterUpdate = " after the update";

/// Of what an op with a parameter read: "h.0.mlp.c_fc (input gradient)".
inline constexpr std::string_view inputGradient = "input gradient";

/// Of a checkpoint: the f32 values that training goes on from, whether the plan
/// keeps them as a master or as the weight itself.
inline constexpr char weightState[] = "weight";
/// The bf16 weights beside them, where they are rounded at random.
inline constexpr char roundedWeightState[] = "rounded_weight";

/// "wte.weight (gradient)"; of no parameter: "loss".
inline std::string stateName(std::string_view parameter,
                             std::string_view state) {
  return parameter.empty()
             ? std::string(state)
             : std::string(parameter) + " (" + std::string(state) + ")";
}

} // namespace meshwork::plan
