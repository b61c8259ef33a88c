#include "passes/verify/StepData.h"

#include "lib/Plan/StatusMacros.h"
#include <cmath>
#include <random>

namespace meshwork::verify {
using interpreter::Tensor;
using plan::InputKind;

namespace {
/// Where each token's document begins.
Tensor documentsOf(int64_t samples, int64_t sequence, std::mt19937 &random) {
  Tensor begins({samples, sequence});
  for (int64_t i = 0; i < begins.size(); ++i) {
    int64_t position = i % sequence;
    bool isNew = position == 0 || random() % 4 == 0;
    begins[i] = isNew ? static_cast<double>(position) : begins[i - 1];
  }
  return begins;
}

Tensor positionsIn(const Tensor &begins) {
  Tensor positions = begins;
  for (int64_t i = 0; i < begins.size(); ++i)
    positions[i] = static_cast<double>(i % begins.getDimSize(1)) - begins[i];
  return positions;
}

/// Without those that begin another document. Of the token behind a sample only
/// the launcher knows; here every other sample ends with its document.
Tensor innerTargetsOf(const Tensor &targets, const Tensor &begins) {
  Tensor inner = targets;
  int64_t sequence = begins.getDimSize(1);
  for (int64_t i = 0; i < inner.size(); ++i) {
    int64_t next = (i + 1) % sequence;
    bool ends = next == 0 ? i / sequence % 2 == 0
                          : begins[i + 1] == static_cast<double>(next);
    if (ends)
      inner[i] = -1;
  }
  return inner;
}
} // namespace

StepData::StepData(int64_t samples, int64_t sequence, int64_t vocabulary,
                   uint32_t seed) {
  std::mt19937 random(seed);
  auto ids = [&] {
    Tensor tensor({samples, sequence});
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor[i] = static_cast<double>(random() % vocabulary);
    return tensor;
  };
  rows[InputKind::tokens] = ids();
  rows[InputKind::targets] = ids();
  Tensor begins = documentsOf(samples, sequence, random);
  rows[InputKind::documents] = begins;
  rows[InputKind::document_positions] = positionsIn(begins);
  rows[InputKind::inner_targets] =
      innerTargetsOf(rows[InputKind::targets], begins);
}

int64_t StepData::samples() const {
  return rows.at(InputKind::tokens).getDimSize(0);
}

int64_t StepData::innerTargets(int64_t sample) const {
  const Tensor &targets = rows.at(InputKind::inner_targets);
  int64_t sequence = targets.getDimSize(1), count = 0;
  for (int64_t i = 0; i < sequence; ++i)
    count += targets[sample * sequence + i] >= 0;
  return count;
}

/// Samples [first, first + count).
static Tensor rowsFrom(const Tensor &all, int64_t first, int64_t count) {
  int64_t sequence = all.getDimSize(1);
  Tensor rows({count, sequence});
  for (int64_t i = 0; i < rows.size(); ++i)
    rows[i] = all[first * sequence + i];
  return rows;
}

Tensor StepData::targetCounts(int64_t count) const {
  Tensor counts(std::vector<int64_t>{count});
  for (int64_t sample = 0; sample < samples(); ++sample)
    counts[sample % count] += static_cast<double>(innerTargets(sample));
  return counts;
}

std::optional<Tensor> StepData::input(InputKind kind, int64_t first,
                                      int64_t count) const {
  if (kind == InputKind::target_counts)
    return targetCounts(count);
  auto all = rows.find(kind);
  if (all == rows.end())
    return std::nullopt;
  return rowsFrom(all->second, first, count);
}

int64_t RankInputs::firstSample(uint32_t microbatch) const {
  return state.tables().firstSample(microbatch, mesh);
}

absl::Status RankInputs::write(const plan::Input &input,
                               const runtime::Where &where,
                               std::vector<double> values) {
  auto size = static_cast<int64_t>(values.size());
  return state.write(state.viewIn(where, input.view()),
                     Tensor({size}, std::move(values)));
}

absl::Status RankInputs::giveOnce() {
  for (const plan::Input *input : plan::orEmpty(state.program().inputs()))
    if (plan::isOfPart(input->kind())) {
      std::vector<int32_t> numbers = state.tables().numbersOf(*input, mesh);
      MESHWORK_RETURN_IF_ERROR(
          write(*input, {}, {numbers.begin(), numbers.end()}));
    }
  return absl::OkStatus();
}

std::vector<double> RankInputs::targetCounts() const {
  std::vector<double> counts(plan.micro_batch());
  for (uint32_t m = 0; m < plan.microbatches(); ++m)
    for (uint32_t k = 0; k < plan.micro_batch(); ++k)
      counts[k] += static_cast<double>(data.innerTargets(firstSample(m) + k));
  return counts;
}

std::vector<double> RankInputs::randomWords(uint32_t microbatch) const {
  return {data.seed, data.step, static_cast<double>(firstSample(microbatch))};
}

absl::Status RankInputs::giveStep() {
  for (const plan::Input *input : plan::orEmpty(state.program().inputs())) {
    std::vector<double> values;
    if (input->kind() == InputKind::learning_rate)
      values = {data.learningRate};
    else if (input->kind() == InputKind::bias_correction)
      values = {1 - std::pow(double{input->base()}, data.step + 1)};
    else if (input->kind() == InputKind::target_counts)
      values = targetCounts();
    else if (input->kind() == InputKind::update_random)
      values = randomWords(plan.microbatches() - 1);
    else
      continue;
    MESHWORK_RETURN_IF_ERROR(write(*input, {}, std::move(values)));
  }
  return absl::OkStatus();
}

/// The rank's samples from `first` on, of each the tokens that it has.
std::vector<double> RankInputs::rowsOf(const plan::Input &input,
                                       int64_t first) const {
  const Tensor &all = data.rows.at(input.kind());
  int64_t sequence = all.getDimSize(1);
  std::vector<layout::Cut> cuts = state.tables().cutsOf(input, mesh);
  int64_t stored = layout::storedSize(sequence, cuts);
  std::vector<double> own(plan.micro_batch() * stored);
  for (int64_t k = 0; k < plan.micro_batch(); ++k)
    for (const layout::Range &range : layout::ranges(sequence, cuts))
      for (int64_t i = 0; i < range.count; ++i)
        own[k * stored + range.offset + i] =
            all[(first + k) * sequence + range.begin + i];
  return own;
}

absl::Status RankInputs::giveMicrobatch(uint32_t action) {
  const runtime::RankProgram &tables = state.tables();
  const plan::Action &begun = tables.table.actions()[action];
  runtime::Where where{begun.list(), tables.copies.variantOf(action)};
  for (const plan::Input *input : plan::orEmpty(state.program().inputs())) {
    if (!plan::isOfMicrobatch(input->kind()))
      continue;
    std::vector<double> values =
        input->kind() == InputKind::random
            ? randomWords(begun.microbatch())
            : rowsOf(*input, firstSample(begun.microbatch()));
    MESHWORK_RETURN_IF_ERROR(write(*input, where, std::move(values)));
  }
  return absl::OkStatus();
}

} // namespace meshwork::verify
