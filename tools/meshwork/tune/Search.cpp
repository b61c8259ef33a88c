#include "tools/meshwork/tune/Search.h"

#include "lib/Cost/OfSpec.h"
#include "tools/meshwork/tune/Costing.h"
#include "tools/meshwork/tune/Frontier.h"
#include "tools/meshwork/tune/Meter.h"
#include "tools/meshwork/tune/Task.h"
#include "tools/meshwork/tune/Usual.h"

#include <algorithm>

namespace meshwork::tune {
namespace {

class Search {
public:
  Search(Specs &specs, const Facts &facts, const Models &models,
         const AxisSizes &axes, const SearchOptions &options, Cache &cache)
      : specs(specs), facts(facts), models(models), options(options),
        space(specs, facts, axes, options.ranks, options.global,
              options.hasHost),
        results(options.processes, cache), usual(found, useOfUsual()) {}

  Found run() {
    if (std::optional<spec::Spec> plain = plainSpec())
      list(*plain);
    while (!meter.isInterrupted() && (startNext() || !results.isIdle()))
      noteOne();
    if (frontier)
      tryOdd();
    finish();
    return std::move(found);
  }

private:
  /// Of so many ranks, what any choice says of the keys that are none.
  std::optional<spec::Spec> plainSpec() {
    std::optional<spec::Spec> spec = specs.ofOneSequence().spec;
    if (spec) {
      spec->mesh = {{"dp", options.ranks}};
      spec->batch.global = options.global;
      specs.readFixed(*spec);
    }
    return spec;
  }

  /// All choices, what is usual, and the bodies that tell most.
  void list(const spec::Spec &plain) {
    if (std::optional<cost::MemoryLimit> limit = cost::memoryLimit(plain)) {
      found.limit = limit->bytes;
      found.limitFrom = limit->from;
    }
    frontier.emplace(
        plain, facts,
        Bound::Given{specs.fixedValue("pipeline.layers") != nullptr,
                     specs.fixedValue("precision.gradients") != nullptr,
                     specs.leaveOpen()},
        found.limit);
    frontier->add(space);
    found.choices = frontier->size();
    found.unused = unusedKeys(specs, space);
    for (const auto &first : {frontier->roots(), frontier->rootSketches()})
      for (const Frontier::Next &next : first)
        start(next);
    usual.start(space.usual());
  }

  //===-- what is started ---------------------------------------------------//

  /// Fills the processes; whether something was started.
  bool startNext() {
    bool isAny = false;
    while (frontier && !results.isFull() && !meter.isInterrupted()) {
      std::optional<Frontier::Next> next = frontier->next(mostSeconds());
      if (!next)
        break;
      isAny |= start(*next);
      tellProgress();
    }
    return isAny;
  }

  /// Bounds above this are of nothing that is wanted. Some may be too high, as
  /// far as that of a choice was that is compiled.
  double mostSeconds() const { return best * (1 + options.within) * doubt; }

  bool start(const Frontier::Next &next) {
    bool isBody = next.kind == Frontier::Next::body;
    bool isStages = next.kind == Frontier::Next::stages;
    Task task{kindOf(next), next.which,
              next.choice,  isBody ? next.global : options.global,
              next.bound,   next.bytes};
    if (!isBody && !isStages && usual.has(next.choice)) {
      noteSame(task);
      return false;
    }
    std::string why = startTask(task);
    if (!why.empty() && isBody) // Its choices tell why themselves.
      frontier->note(next.which, nullptr);
    else if (!why.empty() && isStages)
      frontier->noteStages(next.which, next.bound, nullptr);
    else if (!why.empty() && task.kind != Task::ofSplit)
      noteRefused(task, why);
    return why.empty();
  }

  /// Why it is not compiled; empty: it is.
  std::string startTask(const Task &task) {
    bool isBody = task.kind == Task::ofBody;
    spec::Result result =
        isBody ? specs.ofBody(task.choice, task.global) : specs.of(task.choice);
    if (!result.spec)
      return firstError(result.diagnostics);
    while (results.isFull())
      if (!noteOne() && meter.isInterrupted())
        return "interrupted";
    tasks.push_back(task);
    bool isStarted =
        results.start(tasks.size() - 1, contentOf(task, *result.spec),
                      [&] { return resultOf(task, *result.spec); });
    return isStarted ? "" : "no process for it";
  }

  Usual::Use useOfUsual() {
    return {[&](const Choice &choice) { return frontier->mayFit(choice); },
            [&](size_t which, const Choice &choice) {
              return startTask({Task::ofUsual, which, choice, options.global,
                                frontier->secondsOf(choice)});
            }};
  }

  std::string contentOf(const Task &task, const spec::Spec &spec) const {
    return tune::contentOf(task, specs.settledText(spec), facts, options.ranks);
  }

  std::string resultOf(const Task &task, const spec::Spec &spec) const {
    return tune::resultOf(task, spec, facts, models, options.ranks);
  }

  static std::string firstError(const Diagnostics &diagnostics) {
    for (const Diagnostic &one : diagnostics)
      if (one.severity == Severity::error)
        return one.message;
    return "refused";
  }

  /// As a usual one it is compiled anyway.
  void noteSame(const Task &task) {
    auto same = [&] {
      return std::find_if(usualDone.begin(), usualDone.end(),
                          [&](auto &one) { return one.first == task.choice; });
    };
    if (task.kind == Task::ofSplit || task.which == Frontier::none)
      return;
    while (same() == usualDone.end())
      if (!noteOne())
        return;
    frontier->noteWhole(task.which, same()->second);
  }

  //===-- what stands for others --------------------------------------------//

  /// What has more stages than layers is refused for that, as one of it is.
  /// Where nothing fits, what has the least bound of its bytes says by how
  /// much.
  void tryOdd() {
    if (frontier->unlayered())
      tryAlone(*frontier->unlayered());
    if (found.rows.empty() && frontier->smallest())
      tryAlone(*frontier->smallest());
  }

  void tryAlone(const Choice &choice) {
    if (!meter.isInterrupted())
      start({Frontier::Next::whole, Frontier::none, choice});
    while (!meter.isInterrupted() && !results.isIdle())
      noteOne();
  }

  /// Others are refused with this one.
  void noteRefused(const Task &task, const std::string &why) {
    if (task.kind != Task::ofUsual && task.which != Frontier::none)
      frontier->noteRefused(task.which, why);
    else
      found.refused[why] +=
          frontier->unlayered() == task.choice ? frontier->numUnlayered() : 1;
  }

  //===-- what ends ---------------------------------------------------------//

  /// Waits for one; whether there was one.
  bool noteOne() {
    std::optional<Workers::Finished> one = results.wait();
    if (!one)
      return false;
    Task task = tasks[one->task];
    if (task.kind == Task::ofBody)
      noteBody(task.which, bodyFromJson(one->result));
    else if (task.isSketch())
      noteSketch(task, sketchFromJson(one->result));
    else if (task.kind == Task::ofBalanced)
      noteBalanced(task, costedFromJson(one->result));
    else
      noteChoice(task, costedFromJson(one->result));
    tellProgress();
    return true;
  }

  void noteBody(size_t which, const Body &body) {
    ++found.bodies;
    frontier->note(which, &body);
  }

  void noteSketch(const Task &task, const Sketch &sketch) {
    ++found.sketches;
    if (task.kind == Task::ofSplit)
      frontier->noteSplit(task.which, sketch);
    else if (task.kind == Task::ofStages)
      frontier->noteStages(task.which, task.bound, &sketch);
    else
      frontier->note(task.which, task.bound, &sketch);
  }

  /// What does not fit so may have a place with other layers.
  void noteBalanced(const Task &task, const Costed &costed) {
    if (costed.status == Costed::done)
      frontier->noteBalanced(task.which, costed);
    if (costed.status != Costed::done || found.fits(costed))
      noteChoice(task, costed);
    else
      ++found.sketches;
  }

  void noteChoice(const Task &task, const Costed &costed) {
    Row row{task.choice, costed, task.bound, task.bytes, std::nullopt, ""};
    ++found.compiled;
    bool isShort = costed.status == Costed::done &&
                   (!found.fits(costed) || costed.isUneven);
    if (task.kind == Task::ofUsual)
      usualDone.emplace_back(task.choice, isShort);
    else if (costed.status != Costed::refused && task.which != Frontier::none)
      frontier->noteWhole(task.which, isShort);
    if (costed.status == Costed::done) {
      doubt = std::max(doubt, row.bound / costed.seconds);
      if (found.fits(costed)) {
        best = std::min(best, costed.seconds);
        found.rows.push_back(row);
      } else if (!found.nearest || found.isBetter(row, *found.nearest))
        found.nearest = row;
    } else if (costed.status == Costed::refused)
      noteRefused(task, costed.why);
    else
      found.broken.push_back(nameOf(task.choice) + ": " + costed.why);
    if (task.kind == Task::ofUsual)
      usual.note(task.which, row);
  }

  void tellProgress() {
    size_t seen = found.compiled + frontier->tooLarge();
    meter.tell(seen, found.choices, best == Frontier::infinity ? 0 : best);
  }

  void finish() {
    found.isInterrupted = meter.isInterrupted();
    found.cached = results.fromCache();
    if (frontier) {
      auto [left, bound] = frontier->left();
      found.tooSlow = left;
      found.tooLarge = frontier->tooLarge();
      for (const auto &[why, many] : frontier->refused())
        found.refused[why] += many;
      found.bound = std::min(bound / doubt, best);
    }
    if (found.bound == Frontier::infinity)
      found.bound = 0;
    std::sort(found.rows.begin(), found.rows.end(),
              [&](const Row &a, const Row &b) { return found.isBetter(a, b); });
    meter.clear();
  }

  Specs &specs;
  const Facts &facts;
  const Models &models;
  const SearchOptions &options;
  Space space;
  Costing results;
  Meter meter;
  Found found;
  Usual usual;
  std::optional<Frontier> frontier;
  std::vector<Task> tasks;
  /// Of usual ones that are compiled, and whether they are short of memory.
  std::vector<std::pair<Choice, bool>> usualDone;
  double best = Frontier::infinity; // seconds
  double doubt = 1; // the highest bound, by the seconds that it is a bound of
};
} // namespace

Found search(Specs &specs, const Facts &facts, const Models &models,
             const AxisSizes &axes, const SearchOptions &options,
             Cache &cache) {
  return Search(specs, facts, models, axes, options, cache).run();
}

} // namespace meshwork::tune
