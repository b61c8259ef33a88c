// What a rank is given before instructions run, and what it gives at the end.
#include "runtime/core/Checked.h"
#include "runtime/core/IoStatus.h"
#include "runtime/core/Rank.h"
#include "runtime/core/Shards.h"
#include <cstring>

namespace meshwork::runtime {

void Rank::writeCoordinates() {
  for (const plan::Input *input : orEmpty(ofPlan.inputs())) {
    bool isExtent = input->kind() == plan::InputKind::extent;
    if (!isExtent && input->kind() != plan::InputKind::coordinate)
      continue;
    BlockOfDim block = blockOfDim(
        setup.plan, input->size(), input->axes(), [this](uint32_t axis) {
          return setup.mesh.coordinate(setup.rank, axis);
        });
    auto value = static_cast<int32_t>(isExtent ? block.extent : block.begin);
    std::memcpy(data(input->view()), &value, sizeof(value));
  }
}

absl::Status Rank::loadBatch(uint64_t step, uint32_t microbatch) {
  const plan::Plan &plan = setup.plan;
  std::vector<uint32_t> axes(orEmpty(plan.batch_axes()).begin(),
                             orEmpty(plan.batch_axes()).end());
  uint32_t micro = plan.micro_batch();
  uint32_t shards = plan.global_batch() / micro / plan.microbatches();
  uint32_t first =
      (microbatch * shards + setup.mesh.index(setup.rank, axes)) * micro;
  if (const plan::Input *random = input(plan::InputKind::random)) {
    uint32_t triple[3] = {setup.seed, static_cast<uint32_t>(step), first};
    std::memcpy(data(random->view()), triple, sizeof(triple));
  }
  const plan::Input *tokens = input(plan::InputKind::tokens);
  const plan::Input *targets = input(plan::InputKind::targets);
  if (!tokens && !targets)
    return absl::OkStatus();
  size_t length = plan.sequence();
  std::vector<int32_t> unused(tokens && targets ? 0 : length);
  for (uint32_t k = 0; k < micro; ++k) {
    auto row = [&](const plan::Input *to) {
      int32_t *start =
          to ? reinterpret_cast<int32_t *>(data(to->view())) + k * length
             : unused.data();
      return absl::Span<int32_t>(start, length);
    };
    absl::Status status = setup.tokens->sample(setup.seed, step, first + k,
                                               row(tokens), row(targets));
    if (!status.ok())
      return fromIo(status);
  }
  return absl::OkStatus();
}

const plan::Input *Rank::input(plan::InputKind kind) const {
  for (const plan::Input *input : orEmpty(ofPlan.inputs()))
    if (input->kind() == kind)
      return input;
  return nullptr;
}

const plan::Result *Rank::result(plan::ResultKind kind) const {
  for (const plan::Result *result : orEmpty(ofPlan.results()))
    if (result->kind() == kind)
      return result;
  return nullptr;
}

void Rank::writeScalar(plan::InputKind kind, float value) {
  if (const plan::Input *to = input(kind))
    std::memcpy(data(to->view()), &value, sizeof(value));
}

float Rank::loss() const {
  float value;
  std::memcpy(&value, data(result(plan::ResultKind::loss)->view()),
              sizeof(value));
  return value;
}

std::optional<float> Rank::gradNorm() const {
  const plan::Result *from = result(plan::ResultKind::grad_norm);
  if (!from)
    return std::nullopt;
  float value;
  std::memcpy(&value, data(from->view()), sizeof(value));
  return value;
}

} // namespace meshwork::runtime
