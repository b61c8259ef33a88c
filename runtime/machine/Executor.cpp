#include "runtime/machine/Executor.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/Programs.h"
#include "lib/Plan/Shards.h"
#include "lib/Plan/Spaces.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/machine/Clock.h"
#include <algorithm>
#include <numeric>

namespace meshwork::runtime {
using plan::orEmpty;
using plan::ViewInfo;
namespace {
/// What has ended is read where it lies.
class ReadAtOnce : public Readout {
public:
  ReadAtOnce(Executor &executor, uint64_t numbers)
      : executor(executor), values(numbers) {}

  absl::Status start(std::optional<uint64_t> place) override {
    if (place)
      MESHWORK_RETURN_IF_ERROR(
          executor.read(*place, {reinterpret_cast<std::byte *>(values.data()),
                                 values.size() * sizeof(float)}));
    atNs = steadyNs();
    return absl::OkStatus();
  }
  absl::StatusOr<absl::Span<const float>> waitForAll() override {
    return absl::MakeConstSpan(values);
  }
  absl::StatusOr<int64_t> nsSince(const Readout &earlier) const override {
    return atNs - static_cast<const ReadAtOnce &>(earlier).atNs;
  }

private:
  Executor &executor;
  std::vector<float> values;
  int64_t atNs = 0;
};
} // namespace

absl::StatusOr<float> Readout::wait() {
  absl::StatusOr<absl::Span<const float>> all = waitForAll();
  MESHWORK_RETURN_IF_ERROR(all.status());
  return all->front();
}

absl::StatusOr<Readout *> Executor::addReadout(uint64_t numbers) {
  readouts.emplace_back();
  MESHWORK_ASSIGN_OR_RETURN(readouts.back(), makeReadout(numbers));
  return readouts.back().get();
}

absl::StatusOr<std::unique_ptr<Readout>>
Executor::makeReadout(uint64_t numbers) {
  return std::make_unique<ReadAtOnce>(*this, numbers);
}

/// Whether copies or transfers depend on what lives when.
static bool needsLives(const plan::Program &program) {
  const auto &buffers = orEmpty(program.buffers());
  const auto &lists = orEmpty(program.lists());
  return std::any_of(
             buffers.begin(), buffers.end(),
             [](const plan::Buffer *buffer) { return buffer->copies() > 1; }) ||
         std::any_of(lists.begin(), lists.end(), [](const plan::List *list) {
           return plan::sends(list->kind()) || plan::receives(list->kind());
         });
}

/// Of the rank so many places before this one, in the ring of their group.
static uint64_t hoppedIndex(const Mesh &mesh, uint32_t rank,
                            const plan::Shift &shift) {
  const auto &list = orEmpty(shift.axes());
  absl::Span<const uint32_t> axes(list.data(), list.size());
  uint64_t index = mesh.index(rank, axes);
  if (shift.hop() == 0)
    return index;
  uint64_t ranks = mesh.group(rank, axes).size();
  return (index + ranks - shift.hop()) % ranks;
}

absl::StatusOr<RankProgram>
RankProgram::create(const plan::Plan &plan, uint32_t rank, const Mesh &mesh) {
  const plan::Program &program =
      *plan.programs()->Get(plan::programOf(plan, rank));
  absl::StatusOr<std::vector<ViewInfo>> views =
      plan::decodeViews(plan, program);
  if (!views.ok())
    return views.status();
  plan::ActionTable table = plan::tableOf(program);
  std::vector<std::vector<uint32_t>> setting =
      plan::settingActions(program, table);
  std::optional<plan::Lives> lives; // They take time, and most plans need none.
  if (needsLives(program))
    lives.emplace(plan::livesOf(program, table));
  plan::Copies copies = lives ? lives->copies() : plan::Copies();
  plan::Transfers transfers =
      lives ? plan::transfersOf(program, table, *lives) : plan::Transfers();
  RankProgram made{plan,
                   program,
                   rank,
                   std::move(*views),
                   {},
                   {},
                   table,
                   std::move(setting),
                   std::move(copies),
                   std::move(transfers),
                   {}};
  for (uint32_t list = 0; list < made.table.lists().size(); ++list)
    made.turns.push_back(plan::repeatsOf(program, list).turns());
  for (const ViewInfo &view : made.views) {
    uint64_t shift = 0;
    if (view.shifts)
      for (const plan::Shift *one : *view.shifts)
        shift += one->bytes() * hoppedIndex(mesh, rank, *one);
    const plan::Buffer &buffer = *program.buffers()->Get(view.buffer);
    bool isCopied = buffer.copies() > 1 && lives->isTouched(view.buffer);
    if (!view.advances.empty() || isCopied)
      made.moving.push_back({static_cast<uint32_t>(made.shifts.size()),
                             isCopied ? lives->groupOf(view.buffer) : 0,
                             isCopied ? plan::bytesOfCopy(buffer) : 0});
    made.shifts.push_back(shift);
    made.places.push_back(plan::placeOf(program, buffer) + view.offset + shift);
  }
  return made;
}

/// From its first copy in the first turn.
static uint64_t movedBy(const RankProgram &program,
                        const RankProgram::Moving &one, const Where &to) {
  uint64_t bytes = program.views[one.view].advanced(to.turns);
  if (one.stride > 0)
    bytes += program.copies.copyOf(to.list, to.variant, one.group) * one.stride;
  return bytes;
}

void RankProgram::moveTo(const Where &to) {
  if (to == now)
    return;
  for (Moving &one : moving) {
    uint64_t bytes = movedBy(*this, one, to);
    shifts[one.view] += bytes - one.bytes;
    places[one.view] += bytes - one.bytes;
    one.bytes = bytes;
  }
  now = to;
}

uint64_t RankProgram::placeIn(const Where &where, uint32_t view) const {
  for (const Moving &one : moving)
    if (one.view == view)
      return places[view] - one.bytes + movedBy(*this, one, where);
  return places[view];
}

bool RankProgram::leavesOut(const ListRun &run, uint32_t at) const {
  return run.evaluates &&
         !evaluation.runs(run.list, turns[run.list][at].instruction);
}

std::string RankProgram::nameOf(uint32_t list, uint32_t at) const {
  const plan::Turn &turn = turns[list][at];
  std::string text = absl::StrCat(plan::nameOf(table.lists()[list]), "[",
                                  turn.instruction, "]");
  size_t depth = plan::repeatsOf(program, list).around(turn.instruction).size();
  for (size_t i = 0; i < depth; ++i)
    absl::StrAppend(&text, i == 0 ? " in turn " : ".", turn.turns[i]);
  return text;
}

Strided RankProgram::strided(uint32_t view, std::byte *first) const {
  const ViewInfo &info = views[view];
  return {first,
          info.dtype,
          {info.shape.begin(), info.shape.end()},
          {info.strides.begin(), info.strides.end()}};
}

/// Where a view is: an address of a device, or an offset from nothing, is no
/// pointer to add to.
static Strided viewIn(const RankProgram &program, std::byte *arena,
                      uint32_t view) {
  return program.strided(
      view, reinterpret_cast<std::byte *>(reinterpret_cast<uintptr_t>(arena) +
                                          program.places[view]));
}

PairRequest RankProgram::pairRequest(uint32_t list, const Mesh &mesh,
                                     std::byte *arena) const {
  const plan::ListShape &of = table.lists()[list];
  bool sends = plan::sends(of.kind),
       isGradient = of.kind == plan::ListKind::send_grad ||
                    of.kind == plan::ListKind::recv_grad;
  plan::TransferOf op = plan::transferOf(program, list);
  // The number of the sender's stage.
  uint32_t stage = sends ? of.stage : isGradient ? of.stage + 1 : of.stage - 1;
  const flatbuffers::String *name = plan::listOf(program, list).Get(0)->name();
  PairRequest request{sends,
                      mesh.at(rank, op.axis, op.peer),
                      2 * stage + isGradient,
                      {},
                      name ? name->str() : std::string()};
  for (uint32_t view : *op.parts)
    request.parts.push_back(viewIn(*this, arena, view));
  return request;
}

std::vector<layout::Cut> RankProgram::cutsOf(const plan::Input &input,
                                             const Mesh &mesh) const {
  uint32_t sharer = rank;
  if (input.hop() != 0) {
    std::vector<uint32_t> axes(orEmpty(input.axes()).begin(),
                               orEmpty(input.axes()).end());
    std::vector<uint32_t> ring = mesh.group(rank, axes);
    sharer = ring[(mesh.index(rank, axes) + ring.size() - input.hop()) %
                  ring.size()];
  }
  return plan::cutsOf(plan, input, [&](uint32_t axis) {
    return mesh.coordinate(sharer, axis);
  });
}

absl::Status cannotStart(const plan::Instruction &instruction) {
  return absl::FailedPreconditionError(absl::StrCat(
      plan::EnumNameOperation(instruction.op_type()), " on channel ",
      instruction.channel(),
      ": channels run collectives and copies, expected channel 0"));
}

/// The elements of a dim by place in a rank's part; -1 where there is none.
static std::vector<int32_t> positionsOf(int64_t size,
                                        const std::vector<layout::Cut> &cuts) {
  std::vector<int32_t> table(
      static_cast<size_t>(layout::storedSize(size, cuts)), -1);
  for (const layout::Range &range : layout::ranges(size, cuts))
    std::iota(table.begin() + range.offset,
              table.begin() + range.offset + range.count,
              static_cast<int32_t>(range.begin));
  return table;
}

std::vector<int32_t> RankProgram::numbersOf(const plan::Input &input,
                                            const Mesh &mesh) const {
  std::vector<layout::Cut> cuts = cutsOf(input, mesh);
  if (input.kind() == plan::InputKind::positions)
    return positionsOf(input.size(), cuts);
  std::vector<layout::Range> held = layout::ranges(input.size(), cuts);
  return {static_cast<int32_t>(input.kind() == plan::InputKind::extent
                                   ? layout::countOf(held)
                                   : held[0].begin)};
}

uint32_t RankProgram::firstSample(uint32_t microbatch, const Mesh &mesh) const {
  std::vector<uint32_t> axes(orEmpty(plan.batch_axes()).begin(),
                             orEmpty(plan.batch_axes()).end());
  uint32_t micro = plan.micro_batch();
  uint32_t shards = plan.global_batch() / micro / plan.microbatches();
  return (microbatch * shards + mesh.index(rank, axes)) * micro;
}

CollectiveRequest RankProgram::request(const plan::Instruction &collective,
                                       std::byte *arena) const {
  const plan::Collective &op = *collective.op_as_Collective();
  CollectiveRequest request;
  request.kind = op.kind();
  request.reduction = op.reduction();
  request.axes.assign(op.axes()->begin(), op.axes()->end());
  request.sources.assign(orEmpty(op.sources()).begin(),
                         orEmpty(op.sources()).end());
  request.channel = collective.channel();
  request.anyOrder = op.any_order();
  request.name = collective.name() ? collective.name()->str() : std::string();
  auto find = [&](uint32_t view) { return viewIn(*this, arena, view); };
  for (const plan::Transfer *part : *op.parts())
    request.parts.push_back({find(part->src()), find(part->dst()),
                             static_cast<size_t>(part->dim()),
                             static_cast<size_t>(part->to_dim())});
  return request;
}

} // namespace meshwork::runtime
