// What a rank is given before instructions run, and what it gives at the end.
#include "lib/Plan/Checked.h"
#include "lib/Plan/Look.h"
#include "lib/Plan/Shards.h"
#include "runtime/io/IoStatus.h"
#include "runtime/rank/Rank.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace meshwork::runtime {
using plan::cutsOf;
using plan::orEmpty;

/// Inputs and results have no gaps (checkPlan).
template <typename T>
absl::Status Rank::write(uint32_t view, absl::Span<const T> values,
                         const Where &where) {
  return executor->write(ofPlan.placeIn(where, view),
                         {reinterpret_cast<const std::byte *>(values.data()),
                          values.size() * sizeof(T)});
}

std::vector<layout::Cut> Rank::cutsOf(const plan::Input &input) const {
  return ofPlan.cutsOf(input, setup.mesh);
}

absl::Status Rank::writeParts() {
  for (const plan::Input *input : orEmpty(program().inputs()))
    if (plan::isOfPart(input->kind()))
      MESHWORK_RETURN_IF_ERROR(
          write<int32_t>(input->view(), ofPlan.numbersOf(*input, setup.mesh)));
  return absl::OkStatus();
}

uint32_t Rank::firstSample(uint32_t microbatch) const {
  return ofPlan.firstSample(microbatch, setup.mesh);
}

/// Dropout drops nothing of a sample before the first.
absl::Status Rank::writeRandom(plan::InputKind kind, uint32_t microbatch,
                               const Where &where) {
  const plan::Input *random = inputOf(kind);
  uint32_t triple[3] = {setup.seed, static_cast<uint32_t>(currentStep),
                        evaluated ? UINT32_MAX : firstSample(microbatch)};
  return random ? write<uint32_t>(random->view(), triple, where)
                : absl::OkStatus();
}

/// Of the action's microbatch, to the copies that it and later ones use.
absl::Status Rank::loadBatch(uint32_t action) {
  const plan::Action &begun = table().actions()[action];
  Where where{begun.list(), ofPlan.copies.variantOf(action)};
  uint32_t first = firstSample(begun.microbatch());
  MESHWORK_RETURN_IF_ERROR(
      writeRandom(plan::InputKind::random, begun.microbatch(), where));
  // Collectives wait for this rank, whose look will tell of it.
  inputStatus.Update(readSamples(first));
  for (const auto &[kind, ids] : batch)
    MESHWORK_RETURN_IF_ERROR(write<int32_t>(inputOf(kind)->view(), ids, where));
  return absl::OkStatus();
}

absl::Status Rank::readSample(uint32_t number, SampleRows &to) const {
  SampleNumber of{currentStep, number};
  const TokenSource *from = setup.tokens;
  if (evaluated) {
    from = &evaluated->from;
    of.ofRun = std::min(evaluated->first + number, evaluated->last);
  } else {
    uint64_t steps = currentStep - start.step;
    of.ofRun = start.samples + steps * setup.plan.global_batch() + number;
  }
  absl::Status status = from->sample(setup.seed, of, to.spans());
  return status.ok() ? status : fromIo(status);
}

absl::Status Rank::readSamples(uint32_t first) {
  std::vector<const plan::Input *> wanted;
  for (const plan::Input *input : orEmpty(program().inputs()))
    if (plan::isOfTokens(input->kind()))
      wanted.push_back(input);
  if (wanted.empty())
    return absl::OkStatus();
  FileWork work(setup.transport, setup.rank, "it reads samples");
  SampleRows sample(setup.plan);
  for (uint32_t k = 0; k < setup.plan.micro_batch(); ++k) {
    MESHWORK_RETURN_IF_ERROR(readSample(first + k, sample));
    for (const plan::Input *input : wanted)
      keepOwn(*input, sample.of(input->kind()), k);
  }
  return absl::OkStatus();
}

/// What this rank has of a sequence becomes row `k` of the input.
void Rank::keepOwn(const plan::Input &input,
                   const std::vector<int32_t> &sequence, size_t k) {
  std::vector<layout::Cut> cuts = cutsOf(input);
  auto size = static_cast<int64_t>(sequence.size());
  auto stored = static_cast<size_t>(layout::storedSize(size, cuts));
  std::vector<int32_t> &to = batch[input.kind()];
  to.resize(stored * setup.plan.micro_batch());
  for (const layout::Range &range : layout::ranges(size, cuts))
    std::copy_n(sequence.begin() + range.begin, range.count,
                to.begin() + static_cast<int64_t>(k * stored) + range.offset);
}

static bool leavesTargetsOut(const plan::Plan &plan) {
  for (const plan::Program *program : *plan.programs())
    for (const plan::Input *input : orEmpty(program->inputs()))
      if (input->kind() == plan::InputKind::target_counts)
        return true;
  return false;
}

/// Of all samples that the rank has in the step. They are read again with
/// their microbatches: keeping them would take memory that grows with these.
absl::Status Rank::writeTargetCounts() {
  const plan::Input *input = inputOf(plan::InputKind::target_counts);
  if (!input) { // Other stages of a pipeline may count them.
    numTargets = leavesTargetsOut(setup.plan)
                     ? 0
                     : uint64_t{setup.plan.microbatches()} *
                           setup.plan.micro_batch() * setup.plan.sequence();
    return absl::OkStatus();
  }
  FileWork work(setup.transport, setup.rank, "it counts targets");
  SampleRows sample(setup.plan);
  std::vector<uint64_t> counts(setup.plan.micro_batch());
  for (uint32_t m = 0; m < setup.plan.microbatches(); ++m)
    for (uint32_t k = 0; k < setup.plan.micro_batch(); ++k) {
      absl::Status status = readSample(firstSample(m) + k, sample);
      if (status.ok())
        counts[k] += sample.innerTargets();
      inputStatus.Update(status);
    }
  numTargets = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  return write<float>(input->view(),
                      std::vector<float>(counts.begin(), counts.end()));
}

const plan::Input *Rank::inputOf(plan::InputKind kind) const {
  for (const plan::Input *input : orEmpty(program().inputs()))
    if (input->kind() == kind)
      return input;
  return nullptr;
}

absl::Status Rank::writeScalars(uint64_t step, double learningRate) {
  MESHWORK_RETURN_IF_ERROR(writeRandom(plan::InputKind::update_random,
                                       setup.plan.microbatches() - 1, {}));
  double t = static_cast<double>(numUpdates) + 1;
  for (const plan::Input *input : orEmpty(program().inputs())) {
    double value = learningRate;
    // base^t in double: 1 - 0.999f^t loses most of its bits in single
    // precision.
    if (input->kind() == plan::InputKind::bias_correction)
      value = 1 - std::pow(double{input->base()}, t);
    else if (input->kind() != plan::InputKind::learning_rate)
      continue;
    float rounded[] = {static_cast<float>(value)};
    MESHWORK_RETURN_IF_ERROR(write<float>(input->view(), rounded));
  }
  return absl::OkStatus();
}

std::optional<uint64_t> Rank::placeOf(plan::ResultKind kind) const {
  for (const plan::Result *result : orEmpty(program().results()))
    if (result->kind() == kind)
      return ofPlan.places[result->view()];
  return std::nullopt;
}

absl::Status Rank::makeReadouts() {
  lookAt = plan::lookPoint(program(), ofPlan.views);
  for (Readout **one : {&lossReadout, &normReadout, &saturatedReadout,
                        &endReadouts[0], &endReadouts[1]})
    MESHWORK_ASSIGN_OR_RETURN(*one, executor->addReadout());
  for (const plan::Result *result : orEmpty(program().results()))
    if (result->kind() == plan::ResultKind::metric) {
      auto numbers =
          static_cast<uint64_t>(ofPlan.views[result->view()].elements);
      metricReadouts.emplace_back(result, nullptr);
      MESHWORK_ASSIGN_OR_RETURN(metricReadouts.back().second,
                                executor->addReadout(numbers));
    }
  return absl::OkStatus();
}

/// As the end of the step before the first.
absl::Status Rank::startClock() {
  Readout &before = endReadout(start.step + 1);
  MESHWORK_RETURN_IF_ERROR(before.start(std::nullopt));
  return before.wait().status();
}

absl::Status Rank::restartClock(uint64_t step) {
  executor->takeTimes();
  executor->takeMostTurns();
  MESHWORK_RETURN_IF_ERROR(endReadout(step).start(std::nullopt));
  return endReadout(step).wait().status();
}

absl::StatusOr<int64_t> Rank::end(uint64_t step) {
  MESHWORK_RETURN_IF_ERROR(endReadout(step).wait().status());
  return endReadout(step).nsSince(endReadout(step + 1));
}

} // namespace meshwork::runtime
