// A rank's instructions, bound to its memory.
#include "runtime/core/Checked.h"
#include "runtime/core/Rank.h"

namespace meshwork::runtime {
namespace {

const Instructions &instructionsOf(const plan::Program &program, Phase phase) {
  switch (phase) {
  case Phase::once:
    return orEmpty(program.once());
  case Phase::step:
    return orEmpty(program.step());
  case Phase::microbatch:
    return orEmpty(program.microbatch());
  case Phase::update:
    break;
  }
  return orEmpty(program.update());
}

} // namespace

/// Where this rank finds each view, from its buffer's place on.
void Rank::placeViews() {
  shifts.assign(views.size(), 0);
  for (size_t i = 0; i < views.size(); ++i) {
    if (!views[i].shifts)
      continue;
    for (const plan::Shift *shift : *views[i].shifts) {
      const auto &axes = orEmpty(shift->axes());
      shifts[i] += shift->bytes() *
                   setup.mesh.index(setup.rank, {axes.data(), axes.size()});
    }
  }
}

std::byte *Rank::data(uint32_t view) const {
  const ViewInfo &info = views[view];
  return arena.data() + ofPlan.buffers()->Get(info.buffer)->offset() +
         info.offset + shifts[view];
}

Strided Rank::strided(uint32_t view) const {
  const ViewInfo &info = views[view];
  return {data(view),
          info.dtype,
          {info.shape.begin(), info.shape.end()},
          {info.strides.begin(), info.strides.end()}};
}

Block Rank::block(const plan::Parameter &parameter,
                  const plan::Sharded &part) const {
  return blockOf(setup.plan, parameter.shape(), part, [this](uint32_t axis) {
    return setup.mesh.coordinate(setup.rank, axis);
  });
}

Channel &Rank::channel(uint32_t number) {
  if (channels.size() < number)
    channels.resize(number);
  std::unique_ptr<Channel> &found = channels[number - 1];
  if (!found)
    found = std::make_unique<Channel>(setup.cores.cpus);
  return *found;
}

absl::Status Rank::bind(Phase phase, const PrepareContext &context) {
  const Instructions &sources = instructionsOf(ofPlan, phase);
  std::vector<BoundInstruction> &bound = lists[static_cast<size_t>(phase)];
  bound.reserve(sources.size());
  for (const plan::Instruction *source : sources) {
    absl::StatusOr<BoundInstruction> one = bindOne(*source, context);
    if (!one.ok())
      return absl::Status(one.status().code(),
                          absl::StrCat("instruction ", quote(source->name()),
                                       ": ", one.status().message()));
    bound.push_back(std::move(*one));
  }
  return absl::OkStatus();
}

absl::StatusOr<BoundInstruction> Rank::bindOne(const plan::Instruction &source,
                                               const PrepareContext &context) {
  BoundInstruction bound;
  bound.source = &source;
  if (const plan::Wait *wait = source.op_as_Wait()) {
    bound.wait = wait;
    return bound;
  }
  if (const plan::Collective *op = source.op_as_Collective()) {
    absl::StatusOr<std::unique_ptr<PreparedCollective>> collective =
        bindCollective(source);
    MESHWORK_RETURN_IF_ERROR(collective.status());
    bound.collective = std::move(*collective);
    bound.channel = op->channel();
    bound.lastMicrobatch = op->last_microbatch();
    if (bound.channel > 0)
      channel(bound.channel); // Its thread starts here, not in a step.
    return bound;
  }
  absl::StatusOr<std::unique_ptr<Executable>> compute =
      prepare(source, context);
  MESHWORK_RETURN_IF_ERROR(compute.status());
  bound.compute = std::move(*compute);
  return bound;
}

absl::StatusOr<std::unique_ptr<PreparedCollective>>
Rank::bindCollective(const plan::Instruction &source) {
  const plan::Collective &op = *source.op_as_Collective();
  CollectiveRequest request;
  request.kind = op.kind();
  request.reduction = op.reduction();
  request.axes.assign(op.axes()->begin(), op.axes()->end());
  request.sources.assign(orEmpty(op.sources()).begin(),
                         orEmpty(op.sources()).end());
  request.channel = op.channel();
  request.name = source.name() ? source.name()->str() : std::string();
  for (const plan::Transfer *part : *op.parts())
    request.parts.push_back({strided(part->src()), strided(part->dst()),
                             static_cast<size_t>(part->dim()),
                             static_cast<size_t>(part->to_dim())});
  return setup.transport.prepare(setup.rank, std::move(request));
}

} // namespace meshwork::runtime
