// Starts collectives, and copies from and to the host's memory, as early as
// pays and waits as late as data allows.
//
// Everything else keeps its order. A collective that brings more than it takes
// (a gather), or as much (a permute), starts just early enough to be there when
// needed. At most two start ahead, so that little memory waits. A permute of
// what was just computed or received starts at once. A collective that leaves
// less (a sum) starts as soon as its operands are there. If an instruction only
// adds the sum to a state, it moves behind the time when the sum should be
// done. Waits are put in last (OverlapWaits.cpp), so order alone is optimized
// and cannot break the meaning.
#include "passes/schedule/Overlap.h"

#include "dialects/mesh/Mesh.h"
#include "mlir/IR/Builders.h"
#include "passes/analysis/TimesOn.h"
#include "passes/schedule/Passes.h"
#include <map>
#include <numeric>

using namespace mlir;
namespace meshwork::schedule {
#define GEN_PASS_DEF_OVERLAPPASS
#include "passes/schedule/Passes.h.inc"
namespace {

constexpr int64_t maxChannels = 8; // Plan.fbs
/// Estimates are rough: this much longer is hidden, if it can be.
constexpr double margin = 1.5;
constexpr int64_t mostAhead = 2; // gathers

int64_t bytesOf(ValueRange views) {
  int64_t sum = 0;
  for (Value view : views) {
    auto type = cast<MemRefType>(view.getType());
    sum += type.getNumElements() * (type.getElementTypeBitWidth() / 8);
  }
  return sum;
}
/// Whether one of its views lies in the host's memory.
bool reachesHost(Operation *instruction) {
  return llvm::any_of(instruction->getOperands(),
                      [](Value view) { return bufferOf(view).getOnHost(); });
}

/// What may run on a channel: collectives, and copies from and to the host's
/// memory.
bool movesData(Operation *op) {
  return isa<CollectiveOp>(op) || (isa<CopyOp>(op) && reachesHost(op));
}

/// What brings as much or more than it takes: its result waits in memory from
/// the start to the use. So does a hop of a ring, and what comes from the host.
bool isPrefetch(Operation *op) {
  if (auto copy = dyn_cast<CopyOp>(op))
    return bufferOf(copy.getSrc()).getOnHost();
  auto collective = cast<CollectiveOp>(op);
  return collective.getKind() == CollectiveKind::permute ||
         bytesOf(collective.getOutputs()) > bytesOf(collective.getInputs());
}

/// Channels, one for each set of axes, or the host, and direction: a gather
/// must not stand in line behind gradients that nobody waits for.
class Channels {
public:
  int64_t of(Operation *op) {
    auto collective = dyn_cast<CollectiveOp>(op);
    const void *over =
        collective ? collective.getAxesAttr().getAsOpaquePointer() : nullptr;
    int64_t &number = numbers[{over, isPrefetch(op)}];
    number = number ? number : std::min<int64_t>(numbers.size(), maxChannels);
    return number;
  }

private:
  std::map<std::pair<const void *, bool>, int64_t>
      numbers; // looked up only, so addresses order nothing
};

/// One list. Places are indices in the old order: an instruction at place k
/// runs in front of what does not move and was number k.
class ListOverlap {
public:
  ListOverlap(ListOp of, const OverlapSettings &settings, Channels &channels)
      : block(of.getBody().front()), settings(settings), channels(channels),
        list(stepsOf(of)), count(list.size()),
        isUpdate(of.getKind() == ListKind::update) {
    for (auto [i, op] : llvm::enumerate(list))
      for (const Use &use : settings.uses[op]) {
        auto &users = usersOf[use.buffer];
        if (users.empty() || users.back() != static_cast<int64_t>(i))
          users.push_back(i);
      }
    place.resize(count);
    std::iota(place.begin(), place.end(), 0);
    moves.assign(count, false);
  }

  void run() {
    findMovable();
    measure();
    for (int64_t i = first; i < count; ++i)
      if (movesData(list[i]) && moves[i] && !isPrefetch(list[i]))
        placeSum(i, list[i]);
    placeGathers();
    reorder();
    insertWaits(block, settings.uses, list);
  }

private:
  int64_t firstConflictAfter(int64_t i) const {
    int64_t next = llvm::is_contained(results, i) ? firstCopy : count;
    for (Value operand : list[i]->getOperands())
      for (int64_t j : usersOf.lookup(bufferOf(operand)))
        if (j > i && (j >= next || settings.uses.conflict(list[j], list[i]))) {
          next = std::min(next, j);
          break;
        }
    return next;
  }

  /// The first place that operands allow: behind all that conflicts, wherever
  /// it was moved to. Of equal places the old order holds.
  int64_t earliest(int64_t i) const {
    int64_t from = isa<CopyOp>(list[i]) ? allKnown() : first;
    for (Value operand : list[i]->getOperands())
      for (int64_t j : usersOf.lookup(bufferOf(operand)))
        if (int64_t behind = moves[j] ? place[j] : j + 1;
            j < i && behind > from && settings.uses.conflict(list[j], list[i]))
          from = behind;
    return from;
  }

  bool writesResult(Operation *op) const {
    return llvm::any_of(settings.uses[op], [](Use use) {
      return use.isWritten && use.buffer.getKind() == BufferKind::results;
    });
  }

  /// Where the update writes results. All of them stay in front of the first
  /// copy of a state: a step that is no good ends there, with nothing under
  /// way.
  void findResults() {
    firstCopy = count;
    if (!isUpdate)
      return;
    for (auto [i, op] : llvm::enumerate(list)) {
      if (isa<CopyOp>(op))
        firstCopy = std::min<int64_t>(firstCopy, i);
      else if (writesResult(op) && firstCopy == count)
        results.push_back(i);
    }
  }

  /// The first place behind all results, wherever they were moved to.
  int64_t allKnown() const {
    int64_t from = first;
    for (int64_t i : results)
      from = std::max(from, moves[i] ? place[i] : i + 1);
    return from;
  }

  /// What moves data, and what only takes in the result of a sum. Nothing
  /// starts before the loss is known in @update, and no state moves before all
  /// results are. What other programs take part in stays: each decides by its
  /// own times, and channels have its own numbers.
  void findMovable() {
    findResults();
    for (auto [i, op] : llvm::enumerate(list)) {
      if (!movesData(op))
        continue;
      auto collective = dyn_cast<CollectiveOp>(op);
      if (collective && collective.getMakesLoss()) {
        first = i + 1;
        continue;
      }
      if (collective && meetsOtherPrograms(collective))
        continue;
      moves[i] = true;
      int64_t next = firstConflictAfter(i);
      if (collective && !isPrefetch(op) && next < count &&
          isa<LaunchOp>(list[next]) &&
          settings.seconds(list[next]) < settings.seconds(op))
        moves[next] = true;
    }
  }

  /// Seconds of what does not move, up to each place.
  void measure() {
    time.resize(count + 1);
    for (int64_t i = 0; i < count; ++i)
      time[i + 1] = time[i] + (moves[i] ? 0 : settings.seconds(list[i]));
  }

  int64_t placeAtTime(double t, int64_t from, int64_t to) const {
    return std::clamp<int64_t>(std::lower_bound(time.begin(), time.end(), t) -
                                   time.begin(),
                               from, std::max(from, to));
  }

  void placeSum(int64_t i, Operation *op) {
    int64_t from = earliest(i), next = firstConflictAfter(i), until = next;
    bool hasFollower = next < count && moves[next] && isa<LaunchOp>(list[next]);
    double &free = freeAt[channels.of(op)];
    double begin = std::max(time[from], free),
           end = begin + margin * settings.seconds(op);
    if (hasFollower)
      until = placeAtTime(end, std::max(next, from), firstConflictAfter(next));
    if (!settings.pays(op, time[until] - time[from]))
      return;
    free = end;
    setChannel(op);
    place[i] = from;
    if (hasFollower)
      place[next] = std::max(until, place[next]);
  }

  void setChannel(Operation *op) {
    if (auto copy = dyn_cast<CopyOp>(op))
      return copy.setChannel(channels.of(op));
    cast<CollectiveOp>(op).setChannel(channels.of(op));
  }

  bool isHop(int64_t i) const {
    auto op = dyn_cast<CollectiveOp>(list[i]);
    return op && op.getKind() == CollectiveKind::permute;
  }

  /// What sends on what a hop before it brings starts no earlier than the
  /// computation with that: it would wait, and the computation with it.
  int64_t passesOnFrom(int64_t i) const {
    int64_t from = first;
    for (Value operand : list[i]->getOperands())
      for (int64_t j : usersOf.lookup(bufferOf(operand)))
        if (isHop(i) && j < i && isHop(j) &&
            settings.uses.conflict(list[j], list[i]))
          from = std::max(from, firstUse(j));
    return from;
  }

  /// The first that computes with the results of a hop.
  int64_t firstUse(int64_t hop) const {
    int64_t next = count;
    for (Value operand : list[hop]->getOperands())
      for (int64_t j : usersOf.lookup(bufferOf(operand)))
        if (j > hop && j < next && !isHop(j) &&
            settings.uses.conflict(list[j], list[hop]))
          next = j;
    return next;
  }

  /// From the last to the first, so that each is there when the next one
  /// starts.
  void placeGathers() {
    llvm::DenseMap<int64_t, double> busyFrom;
    SmallVector<std::tuple<int64_t, Operation *, int64_t>> all;
    for (int64_t i = first; i < count; ++i)
      if (movesData(list[i]) && moves[i] && isPrefetch(list[i]))
        all.emplace_back(i, list[i], firstConflictAfter(i));
    llvm::DenseMap<int64_t, SmallVector<int64_t>> needs;
    for (auto &[i, op, next] : all)
      needs[channels.of(op)].push_back(next);
    for (auto &[i, op, next] : llvm::reverse(all)) {
      int64_t channel = channels.of(op);
      needs[channel].pop_back(); // Its own.
      ArrayRef<int64_t> before = needs[channel];
      int64_t ahead =
          before.size() < mostAhead ? 0 : before[before.size() - mostAhead];
      int64_t made = std::max(earliest(i), passesOnFrom(i)),
              from = std::min(std::max(made, ahead), i),
              until = std::max(i, std::min(next, count));
      auto [busy, isNew] = busyFrom.try_emplace(channel, time[until]);
      double latest =
          std::min(time[until], busy->second) - margin * settings.seconds(op);
      int64_t at = std::clamp<int64_t>(
          std::upper_bound(time.begin(), time.end(), latest) - time.begin() - 1,
          from, i);
      if (isHop(i) && made > first)
        at = from; // Its peer may be late.
      if (!settings.pays(op, time[until] - time[at]))
        continue;
      busy->second = time[at];
      setChannel(op);
      place[i] = at;
    }
  }

  void reorder() {
    SmallVector<int64_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](int64_t a, int64_t b) {
      return std::tuple(place[a], !moves[a], a) <
             std::tuple(place[b], !moves[b], b);
    });
    SmallVector<Operation *> sorted =
        llvm::map_to_vector(order, [&](int64_t i) { return list[i]; });
    for (Operation *op : sorted)
      moveInstruction(op, &block, nullptr);
    list = std::move(sorted);
  }

  Block &block;
  const OverlapSettings &settings;
  Channels &channels;
  SmallVector<Operation *> list;
  int64_t count, first = 0;
  const bool isUpdate;
  SmallVector<int64_t> results; // of the step; see findResults
  int64_t firstCopy = 0;
  llvm::DenseMap<Operation *, SmallVector<int64_t>> usersOf; // by buffer
  std::vector<int64_t> place;
  std::vector<bool> moves;
  std::vector<double> time;
  std::map<int64_t, double> freeAt; // by channel
};

struct OverlapPass : impl::OverlapPassBase<OverlapPass> {
  using OverlapPassBase::OverlapPassBase;

  void runOnOperation() override {
    mesh::MeshAttr mesh = mesh::meshOf(getOperation());
    if (mode == spec::When::never || !mesh)
      return;
    cost::Times times =
        analysis::timesOn(machine, mesh::meshOf(getOperation()));
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(overlap(program, times)))
        return signalPassFailure();
  }

private:
  LogicalResult overlap(ProgramOp program, const cost::Times &times) {
    PackedProgram tables(program);
    FailureOr<Uses> uses = Uses::of(program, tables);
    if (failed(uses))
      return failure();
    OverlapSettings settings{mode == spec::When::always, *tables,
                             Costs(times, program, *tables), *uses};
    moveGradientSums(program, settings);
    Channels channels;
    for (ListOp list : listsOf(program))
      if (list.getKind() != ListKind::once && list.getKind() != ListKind::step)
        ListOverlap(list, settings, channels).run();
    return success();
  }
};
} // namespace
} // namespace meshwork::schedule
