// What a step is given: the tokens of all its samples, and its numbers. Made of
// a seed, for one rank and for all alike.
#pragma once

#include "passes/interpreter/Tensor.h"
#include "passes/verify/RankState.h"
#include <map>
#include <optional>

namespace meshwork::verify {

struct StepData {
  /// Of `samples` sequences: ids, targets, documents of a few tokens, and what
  /// the launcher makes of where these begin.
  StepData(int64_t samples, int64_t sequence, int64_t vocabulary,
           uint32_t seed);

  /// [samples, sequence], by the kinds of inputs that have a number for each
  /// token.
  std::map<plan::InputKind, interpreter::Tensor> rows;
  double seed = 11, step = 3, learningRate = 0.125;

  /// What the samples [first, first + count) have of an input; nothing where
  /// the step has no such input. Target counts are those of the whole step, for
  /// each place of a microbatch of `count` samples.
  std::optional<interpreter::Tensor> input(plan::InputKind kind, int64_t first,
                                           int64_t count) const;
  /// How many targets of a sample are within the document of their token.
  int64_t innerTargets(int64_t sample) const;
  int64_t samples() const;

private:
  interpreter::Tensor targetCounts(int64_t count) const;
};

/// Gives a rank what the launcher gives it: once, each step, and before an
/// action that begins a microbatch.
class RankInputs {
public:
  RankInputs(const plan::Plan &plan, const runtime::Mesh &mesh,
             RankState &state, const StepData &data)
      : plan(plan), mesh(mesh), state(state), data(data) {}

  absl::Status giveOnce();
  absl::Status giveStep();
  absl::Status giveMicrobatch(uint32_t action);

private:
  int64_t firstSample(uint32_t microbatch) const;
  absl::Status write(const plan::Input &input, const runtime::Where &where,
                     std::vector<double> values);
  std::vector<double> rowsOf(const plan::Input &input, int64_t first) const;
  std::vector<double> targetCounts() const;
  std::vector<double> randomWords(uint32_t microbatch) const;

  const plan::Plan &plan;
  const runtime::Mesh &mesh;
  RankState &state;
  const StepData &data;
};

} // namespace meshwork::verify
