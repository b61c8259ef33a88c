#include "tools/meshwork/tune/Search.h"

#include "lib/Cost/OfSpec.h"
#include "tools/meshwork/driver/search/Better.h"
#include "tools/meshwork/tune/Cost.h"
#include "tools/meshwork/tune/Costing.h"
#include "tools/meshwork/tune/Frontier.h"
#include "tools/meshwork/tune/Meter.h"

#include <algorithm>

namespace meshwork::tune {
namespace {

class Search {
public:
  Search(Specs &specs, const Facts &facts, const AxisSizes &axes,
         const SearchOptions &options, Cache &cache)
      : specs(specs), facts(facts), options(options),
        space(specs, facts, axes, options.ranks, options.global),
        results(options.processes, cache) {}

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
  struct Task {
    enum Kind { ofBody, ofSplit, ofSketch, ofChoice, ofUsual } kind = ofChoice;
    size_t which = 0; // body, choice of the frontier, or usual one
    Choice choice = {};
    uint32_t global = 0; // sequences of a step
    double bound = 0, bytes = 0;
  };

  /// Of so many ranks, what any choice says of the keys that are none.
  std::optional<spec::Spec> plainSpec() {
    std::optional<spec::Spec> spec = specs.ofOneSequence().spec;
    if (spec) {
      spec->mesh = {{"dp", options.ranks}};
      spec->batch.global = options.global;
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
                     specs.fixedValue("precision.gradients") != nullptr},
        found.limit);
    frontier->add(space);
    found.choices = frontier->size();
    for (const auto &first : {frontier->roots(), frontier->rootSketches()})
      for (const Frontier::Next &next : first)
        start(next);
    startUsual(cost::machineOf(plain).ranksPerNode);
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

  /// Above this nothing is wanted.
  double mostSeconds() const { return best * (1 + options.within); }

  bool start(const Frontier::Next &next) {
    bool isBody = next.kind == Frontier::Next::body;
    if (!isBody && isUsual(next.choice))
      return false;
    Task task{kindOf(next), next.which,
              next.choice,  isBody ? next.global : options.global,
              next.bound,   next.bytes};
    std::string why = startTask(task);
    if (!why.empty() && isBody) // Its choices tell why themselves.
      frontier->note(next.which, nullptr);
    else if (!why.empty() && task.kind != Task::ofSplit)
      found.refused[why] += sameAs(next.choice);
    return why.empty();
  }

  static Task::Kind kindOf(const Frontier::Next &next) {
    switch (next.kind) {
    case Frontier::Next::body:
      return Task::ofBody;
    case Frontier::Next::splitSketch:
      return Task::ofSplit;
    case Frontier::Next::sketch:
      return Task::ofSketch;
    case Frontier::Next::whole:
      break;
    }
    return Task::ofChoice;
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
        results.start(tasks.size() - 1, contentOf(task.kind, *result.spec),
                      [&] { return resultOf(task, *result.spec); });
    return isStarted ? "" : "no process for it";
  }

  static bool isSketch(Task::Kind kind) {
    return kind == Task::ofSplit || kind == Task::ofSketch;
  }

  std::string resultOf(const Task &task, const spec::Spec &spec) const {
    if (task.kind == Task::ofBody)
      return toJson(measureBody(facts, spec, options.ranks));
    if (isSketch(task.kind))
      return toJson(sketchOf(facts, task.choice, spec));
    return toJson(costOf(facts.text, spec));
  }

  /// All that a result depends on, beside the program.
  std::string contentOf(Task::Kind kind, const spec::Spec &spec) const {
    std::string what = kind == Task::ofBody
                           ? "body among " + std::to_string(options.ranks)
                       : isSketch(kind) ? "sketch"
                                        : "spec";
    return what + "\n" + specs.settledText(spec) + "\n" + facts.text;
  }

  static std::string firstError(const Diagnostics &diagnostics) {
    for (const Diagnostic &one : diagnostics)
      if (one.severity == Severity::error)
        return one.message;
    return "refused";
  }

  //===-- what is usual, and what stands for others -------------------------//

  void startUsual(uint32_t ranksPerNode) {
    for (Space::Usual &one : space.usual(ranksPerNode)) {
      found.usual.push_back({one.name, std::nullopt, ""});
      if (one.choices.empty())
        found.usual.back().why = "outside of what --axis and --fixed leave";
      pending.push_back(std::move(one.choices));
      tryUsual(pending.size() - 1);
    }
  }

  /// The first choice of a usual one that is left, if a spec may say it. What
  /// is too large by its bound is left out while another one may fit.
  void tryUsual(size_t which) {
    std::vector<Choice> &left = pending[which];
    while (!left.empty()) {
      Choice choice = left.front();
      left.erase(left.begin());
      if (!frontier->mayFit(choice) &&
          std::any_of(left.begin(), left.end(), [&](const Choice &other) {
            return frontier->mayFit(other);
          }))
        continue;
      std::string why = startTask({Task::ofUsual, which, choice, options.global,
                                   frontier->secondsOf(choice)});
      if (why.empty())
        return;
      if (!found.usual[which].row)
        found.usual[which].why = why;
    }
  }

  bool isUsual(const Choice &choice) const {
    return std::any_of(tasks.begin(), tasks.end(), [&](const Task &task) {
      return task.kind == Task::ofUsual && task.choice == choice;
    });
  }

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
      start({Frontier::Next::whole, 0, choice});
    while (!meter.isInterrupted() && !results.isIdle())
      noteOne();
  }

  /// Choices that are refused with this one.
  size_t sameAs(const Choice &choice) const {
    return frontier->unlayered() == choice ? frontier->numUnlayered() : 1;
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
    else if (isSketch(task.kind))
      noteSketch(task, sketchFromJson(one->result));
    else
      noteChoice(task, costedFromJson(one->result));
    tellProgress();
    return true;
  }

  void noteBody(size_t which, const Body &body) {
    ++found.bodies;
    size_t refused = frontier->note(which, &body);
    if (refused > 0)
      found.refused[body.why] += refused;
  }

  void noteSketch(const Task &task, const Sketch &sketch) {
    ++found.sketches;
    if (task.kind == Task::ofSplit)
      frontier->noteSplit(task.which, sketch);
    else
      frontier->note(task.which, task.bound, &sketch);
  }

  void noteChoice(const Task &task, const Costed &costed) {
    Row row{task.choice, costed, task.bound, task.bytes, std::nullopt, ""};
    ++found.compiled;
    if (costed.status == Costed::done) {
      if (fits(costed)) {
        best = std::min(best, costed.seconds);
        found.rows.push_back(row);
      } else if (!found.nearest || isBetter(costed, found.nearest->costed))
        found.nearest = row;
    } else if (costed.status == Costed::refused)
      found.refused[costed.why] +=
          task.kind == Task::ofChoice ? sameAs(task.choice) : 1;
    else
      found.broken.push_back(nameOf(task.choice) + ": " + costed.why);
    if (task.kind == Task::ofUsual)
      noteUsual(task.which, row);
  }

  bool fits(const Costed &costed) const {
    return found.limit == 0 || costed.bytes <= found.limit;
  }

  bool isBetter(const Costed &a, const Costed &b) const {
    return driver::isBetter(
        a, b, found.limit == 0 ? std::nullopt : std::optional(found.limit));
  }

  /// The first that fits, else the one that needs least.
  void noteUsual(size_t which, const Row &row) {
    UsualRow &usual = found.usual[which];
    bool isDone = row.costed.status == Costed::done;
    if (isDone && (!usual.row || isBetter(row.costed, usual.row->costed)))
      usual.row = row;
    else if (!isDone && !usual.row)
      usual.why = row.costed.why;
    if (!isDone || !fits(row.costed))
      tryUsual(which);
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
      found.bound = std::min(bound, best);
    }
    if (found.bound == Frontier::infinity)
      found.bound = 0;
    std::sort(found.rows.begin(), found.rows.end(),
              [&](const Row &a, const Row &b) {
                return isBetter(a.costed, b.costed);
              });
    meter.clear();
  }

  Specs &specs;
  const Facts &facts;
  const SearchOptions &options;
  Space space;
  Costing results;
  Meter meter;
  Found found;
  std::optional<Frontier> frontier;
  std::vector<Task> tasks;
  std::vector<std::vector<Choice>> pending; // of usual ones
  double best = Frontier::infinity;         // seconds
};
} // namespace

Found search(Specs &specs, const Facts &facts, const AxisSizes &axes,
             const SearchOptions &options, Cache &cache) {
  return Search(specs, facts, axes, options, cache).run();
}

} // namespace meshwork::tune
