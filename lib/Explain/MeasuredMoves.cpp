#include "lib/Explain/MeasuredMoves.h"
#include "lib/Cost/OfPlan.h"
#include "lib/Explain/Estimate.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/Listing.h"
#include "lib/Plan/Programs.h"
#include <algorithm>
#include <map>
#include <numeric>

namespace meshwork::explain {
namespace {

/// An instruction as one of those that are added up in a row; nothing of what
/// moves nothing between ranks, or not in a step.
struct Row {
  std::string kind, axis, phase;
  auto operator<=>(const Row &) const = default;
};

std::string axisOf(const plan::Plan &plan, uint32_t axis) {
  return clean(plan.mesh()->Get(axis)->name(), "?");
}

std::optional<Row> rowOf(const plan::Plan &plan, const Phase &phase,
                         const plan::Instruction &instruction) {
  if (phase.runs == 0)
    return std::nullopt;
  if (const plan::Collective *op = instruction.op_as_Collective())
    return Row{operationKind(instruction), axesText(plan, op->axes()),
               plan::EnumNamePass(op->pass())};
  bool isForward =
      phase.kind == plan::ListKind::send || phase.kind == plan::ListKind::recv;
  const char *direction = isForward ? "forward" : "backward";
  if (const plan::Send *op = instruction.op_as_Send())
    return Row{operationKind(instruction), axisOf(plan, op->axis()), direction};
  if (const plan::Receive *op = instruction.op_as_Receive())
    return Row{operationKind(instruction), axisOf(plan, op->axis()), direction};
  return std::nullopt;
}

/// One rank's in one step.
struct Sum {
  double time = 0, wait = 0, hidden = 0;
};

/// The rows of one program, in the order of their first instruction.
class Rows {
public:
  Rows(const plan::Plan &plan, uint32_t number, const cost::Times &times)
      : program(*plan.programs()->Get(number)), listing(program) {
    for (const Phase &phase : listing.phases())
      for (uint64_t i = phase.begin; i < phase.end; ++i)
        if (std::optional<Row> row = rowOf(plan, phase, listing[i]))
          planRun(number, *row, phase, i, times);
  }

  void add(const RankStep &step) {
    std::vector<Sum> own(rows.size());
    for (const RankStep::Move &move : step.moves) {
      Sum &sum = own[rowAt.at(listing.numberOf({move.list, move.instruction}))];
      sum.time += move.time;
      sum.wait += move.wait;
      sum.hidden += move.hidden;
    }
    for (size_t row = 0; row < own.size(); ++row)
      sums[row].push_back(own[row]);
  }

  std::vector<Measured::OfMoves> finish() {
    for (size_t row = 0; row < rows.size(); ++row)
      measure(sums[row], rows[row]);
    return std::move(rows);
  }

private:
  void planRun(uint32_t number, const Row &row, const Phase &phase, uint64_t i,
               const cost::Times &times) {
    auto [known, isNew] = numbers.try_emplace(row, rows.size());
    if (isNew) {
      rows.push_back({number, row.kind, row.axis, row.phase, 0, {}, 0, 0});
      sums.emplace_back();
    }
    rowAt[i] = known->second;
    const plan::Collective *op = listing[i].op_as_Collective();
    uint64_t runs = saturatingMul(op && op->last_only() ? 1 : phase.runs,
                                  listing.timesOf(i));
    Measured::OfMoves &to = rows[known->second];
    to.count = saturatingAdd(to.count, runs);
    to.times.planned += cost::secondsOfRun(times, program, listing[i]) *
                        static_cast<double>(runs);
  }

  static void measure(const std::vector<Sum> &sums, Measured::OfMoves &row) {
    std::vector<double> work, waits;
    Sum all;
    for (const Sum &sum : sums) {
      work.push_back(sum.time - sum.wait);
      waits.push_back(sum.wait);
      all.time += sum.time;
      all.hidden += sum.hidden;
    }
    if (!work.empty())
      row.times.best = 1e-6 * *std::min_element(work.begin(), work.end());
    row.times.median = 1e-6 * medianOf(work);
    row.wait = 1e-6 * medianOf(waits);
    row.isHidden = all.time > 0 ? all.hidden / all.time : 0;
  }

  const plan::Program &program;
  Listing listing;
  std::map<Row, size_t> numbers;
  std::map<uint64_t, size_t> rowAt; // of an instruction of the program
  std::vector<Measured::OfMoves> rows;
  std::vector<std::vector<Sum>> sums; // by row, then by rank and step
};
} // namespace

double meanOf(const std::vector<double> &values) {
  double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double medianOf(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

std::vector<Measured::OfMoves>
measuredMoves(const plan::Plan &plan, const cost::Machine &machine,
              const std::vector<RankStep> &steps) {
  cost::Times times = timesOn(plan, machine, cost::Ranks::threads);
  std::vector<Measured::OfMoves> all;
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    Rows rows(plan, i, times);
    for (const RankStep &step : steps)
      if (plan::programOf(plan, step.rank) == i)
        rows.add(step);
    std::vector<Measured::OfMoves> own = rows.finish();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

} // namespace meshwork::explain
