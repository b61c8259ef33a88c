#include "runtime/core/Rank.h"
#include "runtime/core/Checked.h"
#include "runtime/core/IoStatus.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

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

/// What the plan says this program's library calls need, or what this
/// machine's libraries say, if that is more.
absl::StatusOr<uint64_t> scratchPerThread(const plan::Program &program) {
  absl::StatusOr<uint64_t> here = workspaceBytesPerThread(program);
  if (!here.ok())
    return here;
  uint64_t bytes = 0;
  if (!checkedRoundUp(std::max(*here, program.workspace_bytes_per_thread()), 64,
                      bytes) ||
      bytes > uint64_t{1} << 40)
    return bad("its workspace of ", program.workspace_bytes_per_thread(),
               " bytes a thread is more than a tebibyte");
  return bytes;
}
} // namespace

int64_t steadyNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

absl::StatusOr<uint64_t> neededBytes(const plan::Program &program,
                                     int threads) {
  absl::StatusOr<uint64_t> scratch = scratchPerThread(program);
  if (!scratch.ok())
    return scratch;
  uint64_t bytes = 0;
  if (!checkedAdd(program.arena_bytes(),
                  *scratch * static_cast<uint64_t>(threads), bytes))
    return bad("its memory does not fit 64 bits");
  return bytes;
}

absl::Status expectWhole(const plan::Parameter &parameter) {
  for (const plan::Sharded *part :
       {parameter.weight(), parameter.master(), parameter.first_moment(),
        parameter.second_moment(), parameter.gradient()})
    if (part && part->dims())
      for (const plan::AxisList *axes : *part->dims())
        if (orEmpty(axes->axes()).size() > 0)
          return absl::UnimplementedError(
              absl::StrCat("parameter ", quote(parameter.name()),
                           " is sharded, which this version does not run"));
  return absl::OkStatus();
}

/// What the schema says and this version does not do yet.
absl::Status checkExecutable(const plan::Program &program) {
  for (const plan::View *view : orEmpty(program.views()))
    if (orEmpty(view->shifts()).size() > 0)
      return absl::UnimplementedError(
          "a view is shifted, which this version does not run");
  for (const plan::Input *input : orEmpty(program.inputs()))
    if (input->kind() == plan::InputKind::coordinate)
      return absl::UnimplementedError(
          "an input is a coordinate, which this version does not write");
  for (const plan::Parameter *parameter : orEmpty(program.parameters()))
    MESHWORK_RETURN_IF_ERROR(expectWhole(*parameter));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Rank>> Rank::create(const RankSetup &setup) {
  const auto &programs = *setup.plan.program_of_rank();
  uint32_t index = programs.Get(programs.size() == 1 ? 0 : setup.rank);
  std::unique_ptr<Rank> rank(
      new Rank(setup, *setup.plan.programs()->Get(index)));
  absl::StatusOr<std::vector<ViewInfo>> views =
      decodeViews(setup.plan, rank->ofPlan);
  MESHWORK_RETURN_IF_ERROR(views.status());
  rank->views = std::move(*views);
  MESHWORK_RETURN_IF_ERROR(checkExecutable(rank->ofPlan));
  MESHWORK_RETURN_IF_ERROR(rank->allocate());
  PrepareContext context{setup.plan,
                         rank->ofPlan,
                         rank->arena.data(),
                         rank->workspace.data(),
                         rank->workspacePerThread,
                         *rank->threads,
                         setup.kernels};
  for (Phase phase :
       {Phase::once, Phase::step, Phase::microbatch, Phase::update})
    MESHWORK_RETURN_IF_ERROR(rank->bind(phase, context));
  return rank;
}

absl::Status Rank::allocate() {
  // The team first: it pins this thread, and pages come from where it runs.
  threads = std::make_unique<ThreadTeam>(setup.cores.threads, setup.cores.cpus);
  absl::StatusOr<uint64_t> scratch = scratchPerThread(ofPlan);
  MESHWORK_RETURN_IF_ERROR(scratch.status());
  workspacePerThread = *scratch;
  absl::StatusOr<Arena> memory = Arena::create(ofPlan.arena_bytes());
  MESHWORK_RETURN_IF_ERROR(memory.status());
  arena = std::move(*memory);
  memory = Arena::create(workspacePerThread *
                         static_cast<uint64_t>(threads->size()));
  MESHWORK_RETURN_IF_ERROR(memory.status());
  workspace = std::move(*memory);
  return absl::OkStatus();
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
  BoundInstruction bound{&source, nullptr, nullptr};
  const plan::Collective *op = source.op_as_Collective();
  if (!op) {
    absl::StatusOr<std::unique_ptr<Executable>> compute =
        prepare(source, context);
    MESHWORK_RETURN_IF_ERROR(compute.status());
    bound.compute = std::move(*compute);
    return bound;
  }
  CollectiveRequest request;
  request.kind = op->kind();
  request.reduction = op->reduction();
  request.dtype = views[op->parts()->Get(0)->src()].dtype;
  request.axes.assign(op->axes()->begin(), op->axes()->end());
  for (const plan::Transfer *part : *op->parts()) {
    const ViewInfo &view = views[part->src()];
    if (op->kind() != plan::CollectiveKind::all_reduce || op->channel() != 0 ||
        part->src() != part->dst() || !view.contiguous ||
        view.dtype != request.dtype)
      return absl::UnimplementedError(
          "this version runs all_reduce in place, over contiguous views of one "
          "type, on channel 0");
    request.pieces.push_back({data(part->src()), view.elements});
  }
  request.name = source.name() ? source.name()->str() : std::string();
  absl::StatusOr<std::unique_ptr<PreparedCollective>> collective =
      setup.transport.prepare(setup.rank, std::move(request));
  MESHWORK_RETURN_IF_ERROR(collective.status());
  bound.collective = std::move(*collective);
  return bound;
}

std::byte *Rank::data(uint32_t view) const {
  const ViewInfo &info = views[view];
  return arena.data() + ofPlan.buffers()->Get(info.buffer)->offset() +
         info.offset;
}

absl::Status Rank::runList(Phase phase, uint32_t microbatch, uint32_t begin,
                           uint32_t end, InstructionObserver *observer) {
  const std::vector<BoundInstruction> &bound = list(phase);
  end = std::min(end, static_cast<uint32_t>(bound.size()));
  auto parallel = [this](int64_t items,
                         absl::FunctionRef<void(int64_t, int64_t)> body) {
    threads->parallelFor(
        items, [&](int64_t from, int64_t to, int) { body(from, to); });
  };
  for (uint32_t i = begin; i < end; ++i) {
    int64_t start = observer ? steadyNs() : 0;
    CommTimes spent;
    if (bound[i].collective) {
      if (absl::Status status = bound[i].collective->run(parallel, spent);
          !status.ok())
        return status;
      times.waitNs += spent.waitNs;
      times.moveNs += spent.moveNs;
    } else {
      bound[i].compute->run({microbatch});
    }
    if (observer)
      observer->after(phase, i, microbatch, start, steadyNs(), spent);
  }
  return absl::OkStatus();
}

absl::Status Rank::runToLoss(uint64_t step, double learningRate,
                             InstructionObserver *observer) {
  // beta^t in double: 1 - 0.999f^t loses most of its bits in single precision.
  double t = static_cast<double>(step) + 1;
  writeScalar(plan::InputKind::learning_rate, static_cast<float>(learningRate));
  writeScalar(plan::InputKind::bias_correction1,
              static_cast<float>(1 - std::pow(double{setup.plan.beta1()}, t)));
  writeScalar(plan::InputKind::bias_correction2,
              static_cast<float>(1 - std::pow(double{setup.plan.beta2()}, t)));
  MESHWORK_RETURN_IF_ERROR(runList(Phase::step, 0, 0, UINT32_MAX, observer));
  for (uint32_t m = 0; m < setup.plan.microbatches(); ++m) {
    MESHWORK_RETURN_IF_ERROR(loadBatch(step, m));
    MESHWORK_RETURN_IF_ERROR(
        runList(Phase::microbatch, m, 0, UINT32_MAX, observer));
  }
  return runList(Phase::update, 0, 0, ofPlan.loss_ready(), observer);
}

absl::Status Rank::runUpdate(InstructionObserver *observer) {
  return runList(Phase::update, 0, ofPlan.loss_ready(), UINT32_MAX, observer);
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

CommTimes Rank::takeTimes() { return std::exchange(times, CommTimes()); }

} // namespace meshwork::runtime
