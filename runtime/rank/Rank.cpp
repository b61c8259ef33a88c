#include "runtime/rank/Rank.h"
#include "lib/Plan/Checked.h"
#include <algorithm>
#include <cmath>

namespace meshwork::runtime {

absl::StatusOr<std::unique_ptr<Rank>> Rank::create(const RankSetup &setup) {
  absl::StatusOr<RankProgram> program =
      RankProgram::create(setup.plan, setup.rank, setup.mesh);
  MESHWORK_RETURN_IF_ERROR(program.status());
  std::unique_ptr<Rank> rank(new Rank(setup, std::move(*program)));
  RankProgram &its = rank->ofPlan;
  if (setup.evaluates)
    its.evaluation = plan::evaluationOf(its.program, its.table, its.views);
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      setup.device.makeExecutor(
          {rank->ofPlan, setup.mesh, setup.transport, setup.cores});
  MESHWORK_RETURN_IF_ERROR(executor.status());
  rank->executor = std::move(*executor);
  MESHWORK_RETURN_IF_ERROR(rank->writeParts());
  MESHWORK_RETURN_IF_ERROR(rank->makeReadouts());
  return rank;
}

absl::StatusOr<HostView> Rank::toHost(uint32_t view, const Where &where) const {
  return toHost(view, ofPlan.placeIn(where, view), &Executor::read);
}

absl::StatusOr<HostView> Rank::toHostBeside(uint32_t view) const {
  return toHost(view, ofPlan.placeIn({}, view), &Executor::readBeside);
}

absl::StatusOr<HostView> Rank::toHost(uint32_t view, uint64_t place,
                                      Read read) const {
  HostView host;
  if (std::byte *arena = executor->hostArena()) {
    host.tensor = ofPlan.strided(view, arena + place);
    return host;
  }
  host.copy.resize(ofPlan.views[view].spanBytes);
  MESHWORK_RETURN_IF_ERROR((*executor.*read)(place, absl::MakeSpan(host.copy)));
  host.tensor = ofPlan.strided(view, host.copy.data());
  return host;
}

absl::Status Rank::writeBack(uint32_t view, const HostView &from) {
  if (isOnHost())
    return absl::OkStatus();
  return executor->write(ofPlan.places[view], from.copy);
}

plan::Part Rank::partOf(const plan::Parameter &parameter,
                        const plan::Sharded &part) const {
  return plan::partOf(setup.plan, parameter.shape(), part,
                      [this](uint32_t axis) {
                        return setup.mesh.coordinate(setup.rank, axis);
                      });
}

uint32_t Rank::numChannels() const {
  uint32_t most = 0;
  for (uint32_t list = 0; list < table().lists().size(); ++list)
    for (const plan::Instruction *instruction : plan::listOf(program(), list))
      most = std::max(most, instruction->channel());
  return most;
}

absl::Status Rank::runOnce() {
  uint32_t once = table().onceList();
  return once == plan::ActionTable::none ? absl::OkStatus()
                                         : executor->run({once}, nullptr);
}

absl::Status Rank::runAction(uint32_t action, uint32_t begin, uint32_t end,
                             InstructionObserver *observer) {
  const plan::Action &one = table().actions()[action];
  return executor->run({one.list(), action, one.microbatch(), begin, end,
                        currentStep, evaluated.has_value()},
                       observer);
}

absl::Status Rank::runToLook(uint64_t step, double learningRate,
                             InstructionObserver *observer) {
  currentStep = step;
  evaluated.reset();
  inputStatus = absl::OkStatus();
  MESHWORK_RETURN_IF_ERROR(writeScalars(step, learningRate));
  MESHWORK_RETURN_IF_ERROR(writeTargetCounts());
  MESHWORK_RETURN_IF_ERROR(runActions(observer));
  return startReadouts();
}

absl::Status Rank::runEvaluation(const Windows &windows) {
  evaluated.emplace(windows);
  inputStatus = absl::OkStatus();
  MESHWORK_RETURN_IF_ERROR(writeTargetCounts());
  MESHWORK_RETURN_IF_ERROR(runActions(nullptr));
  return startReadouts();
}

absl::Status Rank::runActions(InstructionObserver *observer) {
  uint32_t last = static_cast<uint32_t>(table().actions().size()) - 1;
  for (uint32_t action = 0; action <= last; ++action) {
    if (table().beginsMicrobatch(action))
      MESHWORK_RETURN_IF_ERROR(loadBatch(action));
    // An action without instructions still waits for transfers.
    bool runs =
        !evaluated || ofPlan.evaluation.runs(table().actions()[action].list());
    MESHWORK_RETURN_IF_ERROR(runAction(action, 0,
                                       !runs           ? 0
                                       : action < last ? UINT32_MAX
                                                       : lookAt,
                                       observer));
  }
  return absl::OkStatus();
}

absl::Status Rank::startReadouts() {
  MESHWORK_RETURN_IF_ERROR(lossReadout->start(placeOf(plan::ResultKind::loss)));
  MESHWORK_RETURN_IF_ERROR(
      normReadout->start(placeOf(plan::ResultKind::grad_norm)));
  for (auto [metric, readout] : metricReadouts)
    MESHWORK_RETURN_IF_ERROR(readout->start(ofPlan.places[metric->view()]));
  std::optional<uint64_t> saturated = placeOf(plan::ResultKind::saturated);
  return saturated ? saturatedReadout->start(saturated) : absl::OkStatus();
}

absl::StatusOr<Rank::Look> Rank::look() {
  Look found;
  found.input = inputStatus;
  found.hasTargets = numTargets > 0;
  float norm = 0, saturated = 0;
  MESHWORK_ASSIGN_OR_RETURN(found.loss, lossReadout->wait());
  MESHWORK_ASSIGN_OR_RETURN(norm, normReadout->wait());
  if (placeOf(plan::ResultKind::grad_norm))
    found.gradNorm = norm;
  if (placeOf(plan::ResultKind::saturated)) {
    MESHWORK_ASSIGN_OR_RETURN(saturated, saturatedReadout->wait());
    found.saturated = saturated;
  }
  for (auto [metric, readout] : metricReadouts) {
    absl::StatusOr<absl::Span<const float>> values = readout->waitForAll();
    MESHWORK_RETURN_IF_ERROR(values.status());
    const auto &shape = ofPlan.views[metric->view()].shape;
    found.metrics.push_back({metric->name()->str(),
                             {shape.begin(), shape.end()},
                             {values->begin(), values->end()}});
  }
  return found;
}

bool Rank::Look::isFinite() const {
  return std::isfinite(loss) && (!gradNorm || std::isfinite(*gradNorm));
}

absl::Status Rank::runUpdate(InstructionObserver *observer) {
  MESHWORK_RETURN_IF_ERROR(
      runAction(static_cast<uint32_t>(table().actions().size()) - 1, lookAt,
                UINT32_MAX, observer));
  ++numUpdates;
  return skipUpdate();
}

absl::Status Rank::skipUpdate() {
  return endReadout(currentStep).start(std::nullopt);
}

} // namespace meshwork::runtime
