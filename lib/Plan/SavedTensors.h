// Which states of a plan a checkpoint keeps.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "meshwork/Plan/Plan.h"
#include <string>
#include <vector>

namespace meshwork::plan {

/// A state that training goes on from.
struct SavedState {
  std::string name; // as in a checkpoint: "weight", "first_moment"
  DType dtype;
  StateRole role;
  const Sharded *part; // in the program of the tensor
};

/// As safetensors calls it.
inline const char *storedType(const SavedState &state) {
  return state.dtype == DType::f32 ? "F32" : "BF16";
}

struct SavedTensor {
  uint32_t program; // the first that has it
  const Parameter *parameter;
  std::vector<SavedState> states;
};

/// Weights as f32 values, and what optimizers keep; bf16 weights too where
/// they are drawn at random, since a master does not tell them. In the order of
/// programs.
std::vector<SavedTensor> savedTensors(const Plan &plan);

/// Each parameter as the first program has it, in the order of programs.
std::vector<const Parameter *> distinctParameters(const Plan &plan);

using ParametersByName =
    absl::flat_hash_map<std::string_view, const Parameter *>;
/// Of each program.
std::vector<ParametersByName> parametersByName(const Plan &plan);

} // namespace meshwork::plan
