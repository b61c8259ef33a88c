#include "passes/verify/States.h"

#include "absl/strings/str_cat.h"
#include "lib/Plan/Shards.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Plan/Frame.h"
#include "llvm/Support/xxhash.h"
#include <cmath>
#include <random>

namespace meshwork::verify {
using interpreter::Tensor;

Tensor initialState(const StateName &name, std::vector<int64_t> shape) {
  bool isWeight = name.state == "weight" || name.state == "master";
  std::string key = isWeight ? name.parameter : name.text();
  std::mt19937 random(static_cast<uint32_t>(llvm::xxh3_64bits(key)));
  double middle = shape.size() == 1 ? 1 : 0;
  double low = isWeight ? middle - 0.5 : 0, width = isWeight ? 1 : 0.01;
  Tensor tensor(std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor[i] = low + width * (random() / 0x1p32);
  return tensor;
}

namespace {
/// A state as a rank holds it.
struct Held {
  const plan::Parameter &parameter;
  const plan::State &state;
  plan::Part part; // of the whole
  StateName name;

  std::vector<int64_t> wholeShape() const {
    if (state.part()->is_number())
      return {};
    const auto &shape = plan::orEmpty(parameter.shape());
    return {shape.begin(), shape.end()};
  }
  /// Calls `visit(i, index)` for each element of the part, row-major, with its
  /// index in the whole, or null for padding.
  template <typename Visit> void forEach(Visit visit) const {
    int64_t i = 0;
    interpreter::forEachIndex(part.shape, [&](llvm::ArrayRef<int64_t> index) {
      llvm::SmallVector<int64_t> at(index);
      bool isHeld = true;
      for (size_t d = 0; d < at.size(); ++d) {
        at[d] = layout::positionOf(part.dims[d], at[d]);
        isHeld &= at[d] >= 0;
      }
      visit(i++, isHeld ? &at : nullptr);
    });
  }
};

/// Calls `visit` for each state that the rank keeps somewhere.
template <typename Visit>
absl::Status forEachState(const plan::Plan &plan, Machine &machine,
                          uint32_t rank, Visit visit) {
  const plan::Program &program = machine.rank(rank).program();
  for (const plan::Parameter *parameter : plan::orEmpty(program.parameters()))
    for (const plan::State *state : plan::orEmpty(parameter->states())) {
      if (plan::viewOf(state->part()) == plan::noView)
        continue;
      plan::Part part = plan::partOf(
          plan, parameter->shape(), *state->part(),
          [&](uint32_t axis) { return machine.coordinate(rank, axis); });
      MESHWORK_RETURN_IF_ERROR(
          visit(Held{*parameter,
                     *state,
                     std::move(part),
                     {parameter->name()->str(), state->name()->str()}}));
    }
  return absl::OkStatus();
}
} // namespace

absl::Status loadStates(const plan::Plan &plan, Machine &machine) {
  for (uint32_t rank = 0; rank < machine.numRanks(); ++rank)
    MESHWORK_RETURN_IF_ERROR(forEachState(
        plan, machine, rank, [&](const Held &held) -> absl::Status {
          if (held.state.role() == plan::StateRole::gradient)
            return absl::OkStatus();
          Tensor whole = initialState(held.name, held.wholeShape());
          Tensor part(held.part.shape);
          held.forEach([&](int64_t i, auto *index) {
            if (index)
              part[i] = whole.at(*index);
          });
          RankState &state = machine.rank(rank);
          return state.write(state.view(held.state.part()->view()), part);
        }));
  return absl::OkStatus();
}

namespace {
/// One state, or result, put together from what ranks have of it.
class Gathered {
public:
  explicit Gathered(const Tensor &expected)
      : expected(expected), found(expected.getShape().vec()),
        seen(expected.size()) {}

  void add(llvm::ArrayRef<int64_t> index, double value) {
    add(interpreter::positionOf(index, expected.getStrides()), value);
  }
  void addAll(const Tensor &values) {
    for (int64_t i = 0; i < values.size(); ++i)
      add(i, values[i]);
  }
  void addPadding(double value) { hasPadding |= value != 0; }

  double difference() const {
    return std::sqrt(error) / std::max(std::sqrt(norm), 1e-30);
  }
  std::string problem(double tolerance) const {
    if (llvm::is_contained(seen, false))
      return "no rank has element " +
             std::to_string(llvm::find(seen, false) - seen.begin());
    if (!(difference() <= tolerance))
      return absl::StrCat("differs by ", difference());
    if (copiesDiffer)
      return "copies of ranks differ in their bits";
    return hasPadding ? "padding is not zero" : "";
  }

private:
  void add(int64_t at, double value) {
    double difference = value - expected[at];
    // Of each copy; not a number is no agreement.
    error += difference * difference;
    norm += expected[at] * expected[at];
    copiesDiffer |= seen[at] && std::memcmp(&found[at], &value, sizeof value);
    found[at] = value;
    seen[at] = true;
  }

  const Tensor &expected;
  Tensor found;
  std::vector<bool> seen;
  double error = 0, norm = 0;
  bool copiesDiffer = false, hasPadding = false;
};

/// What all ranks have, compared by name.
class Comparison {
public:
  /// Of states that the plan keeps from step to step, and no others.
  Comparison(const plan::Plan &plan, const StepEnd &expected) {
    std::set<std::string> kept;
    for (const plan::Program *program : *plan.programs())
      for (const plan::Parameter *parameter :
           plan::orEmpty(program->parameters()))
        for (const plan::State *state : plan::orEmpty(parameter->states()))
          kept.insert(
              StateName{parameter->name()->str(), state->name()->str()}.text());
    numbers.emplace("loss", Tensor::scalar(expected.loss));
    if (expected.gradNorm)
      numbers.emplace("grad_norm", Tensor::scalar(*expected.gradNorm));
    for (const plan::Program *program : *plan.programs())
      for (const plan::Result *result : plan::orEmpty(program->results()))
        if (result->name())
          if (auto metric = expected.metrics.find(result->name()->str());
              metric != expected.metrics.end())
            numbers.insert(*metric);
    for (const auto &[name, whole] : expected.states)
      if (kept.count(name.text()))
        all.emplace(name.text(), whole);
    for (const auto &[name, number] : numbers)
      all.emplace(name, number);
  }

  absl::Status add(const Held &held, RankState &state) {
    auto found = all.find(held.name.text());
    if (found == all.end())
      return absl::OkStatus();
    absl::StatusOr<Tensor> part =
        state.read(state.view(held.state.part()->view()));
    MESHWORK_RETURN_IF_ERROR(part.status());
    held.forEach([&](int64_t i, auto *index) {
      if (index)
        found->second.add(*index, (*part)[i]);
      else
        found->second.addPadding((*part)[i]);
    });
    return absl::OkStatus();
  }

  absl::Status addResults(RankState &state) {
    for (const plan::Result *result :
         plan::orEmpty(state.program().results())) {
      auto found =
          all.find(result->name() ? result->name()->str()
                                  : plan::EnumNameResultKind(result->kind()));
      if (found == all.end())
        continue;
      absl::StatusOr<Tensor> value = state.read(state.view(result->view()));
      MESHWORK_RETURN_IF_ERROR(value.status());
      found->second.addAll(*value);
    }
    return absl::OkStatus();
  }

  Findings findings(double tolerance) const {
    Findings found;
    for (const auto &[name, gathered] : all) {
      ++found.compared;
      found.largest = std::max(found.largest, gathered.difference());
      if (std::string problem = gathered.problem(tolerance); !problem.empty())
        found.problems.push_back(name + ": " + problem);
    }
    return found;
  }

private:
  std::map<std::string, Tensor> numbers;
  std::map<std::string, Gathered> all;
};
} // namespace

Findings compare(const plan::Plan &plan, Machine &machine,
                 const StepEnd &expected, double tolerance) {
  Comparison comparison(plan, expected);
  for (uint32_t rank = 0; rank < machine.numRanks(); ++rank) {
    RankState &state = machine.rank(rank);
    absl::Status status =
        forEachState(plan, machine, rank, [&](const Held &held) {
          return comparison.add(held, state);
        });
    status.Update(comparison.addResults(state));
    if (!status.ok())
      return {{absl::StrCat("rank ", rank, ": ", status.message())}};
  }
  return comparison.findings(tolerance);
}

} // namespace meshwork::verify
