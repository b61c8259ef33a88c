#include "tools/meshwork/tune/Search.h"

#include "lib/Cost/OfSpec.h"
#include "tools/meshwork/tune/Bodies.h"
#include "tools/meshwork/tune/BodyBound.h"
#include "tools/meshwork/tune/Cost.h"
#include "tools/meshwork/tune/Meter.h"
#include "tools/meshwork/tune/Workers.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace meshwork::tune {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class Search {
public:
  Search(Specs &specs, const Facts &facts, const AxisSizes &axes,
         const SearchOptions &options)
      : specs(specs), facts(facts), options(options),
        space(specs, facts, axes, options.ranks, options.global),
        workers(options.processes), bodies(options.global) {}

  Found run() {
    list();
    startUsual();
    while (!meter.isInterrupted() && (startNext() || !workers.isIdle()))
      if (std::optional<Workers::Finished> one = workers.wait())
        note(*one);
    tryUnlayered();
    tryNearest();
    finish();
    return std::move(found);
  }

private:
  struct Task {
    enum Kind { ofBody, ofChoice, ofUsual } kind = ofChoice;
    size_t which = 0; // body, choice, or usual one
    Choice choice = {};
    double bound = 0;
  };
  /// What is looked at next; the least bound first.
  struct Node {
    double bound;
    bool isBody;
    size_t which;
    bool isTight = true; // of a choice: its schedule has been simulated
    bool operator>(const Node &other) const {
      return std::tie(bound, isBody, which) >
             std::tie(other.bound, other.isBody, other.which);
    }
  };

  /// All choices, by their bodies.
  void list() {
    std::optional<spec::Spec> plain = plainSpec();
    if (!plain)
      return;
    Bound::Given given{specs.fixedValue("pipeline.layers") != nullptr,
                       specs.fixedValue("precision.gradients") != nullptr};
    bounds.emplace(*plain, facts, given);
    ofBodies.emplace(*bounds, *plain, facts, given);
    machine = cost::machineOf(*plain);
    if (std::optional<cost::MemoryLimit> limit = cost::memoryLimit(*plain)) {
      found.limit = limit->bytes;
      found.limitFrom = limit->from;
    }
    choices = space.all();
    found.choices = choices.size();
    for (size_t i = 0; i < choices.size(); ++i)
      if (stagesOf(choices[i]) > static_cast<uint64_t>(facts.layers))
        unlayered.push_back(i);
      else if (fitsByBound(i, bounds->bytes(choices[i])))
        bodies.add(choices[i], i);
    bodies.findRoots();
    isStarted.assign(bodies.size(), false);
    for (const Choice &choice : choices) {
      parts.push_back(ofBodies->partOf(choice));
      besides.push_back(ofBodies->secondsBeside(choice));
    }
    for (size_t i = 0; i < bodies.size(); ++i)
      nodes.push({boundOfBody(i), true, i});
    for (size_t which : bodies.roots())
      start(which, 0);
  }

  /// Of its choices that may fit; infinite where none may.
  double boundOfBody(size_t which) {
    double least = infinity;
    Bodies::Seconds seconds = bodies.rankSeconds(which);
    for (size_t member : bodies[which].members)
      if (double bytes = leastBytes(which, member);
          found.limit == 0 || bytes <= static_cast<double>(found.limit))
        least = std::min(least,
                         std::max(bounds->seconds(choices[member]),
                                  seconds.of(choices[member]) * parts[member] +
                                      besides[member]));
    return least;
  }

  /// Of a choice of the body, by what other bodies tell of it.
  double leastBytes(size_t which, size_t member) {
    return ofBodies->bytes(choices[member], bodies.keptOfLayer(which));
  }

  /// Of so many ranks, what any choice says of the keys that are none.
  std::optional<spec::Spec> plainSpec() {
    std::optional<spec::Spec> spec = specs.ofOneSequence().spec;
    if (spec) {
      spec->mesh = {{"dp", options.ranks}};
      spec->batch.global = options.global;
    }
    return spec;
  }

  bool fitsByBound(size_t which, double least) {
    if (found.limit == 0 || least <= static_cast<double>(found.limit))
      return true;
    ++found.tooLarge;
    smallest = std::min(smallest, {least, which});
    return false;
  }

  /// Choices that are refused with this one.
  size_t sameAs(size_t which) const {
    bool isFirst = !unlayered.empty() && unlayered.front() == which;
    return isFirst ? unlayered.size() : 1;
  }

  /// What has more stages than layers is refused for that, as one of it is.
  void tryUnlayered() {
    if (unlayered.empty() || meter.isInterrupted())
      return;
    startChoice({0, false, unlayered.front()});
    while (!meter.isInterrupted() && !workers.isIdle())
      if (std::optional<Workers::Finished> one = workers.wait())
        note(*one);
  }

  /// Where nothing fits, what has the least bound of its bytes says by how
  /// much.
  void tryNearest() {
    if (!found.rows.empty() || smallest.first == infinity)
      return;
    startChoice({0, false, smallest.second});
    while (!meter.isInterrupted() && !workers.isIdle())
      if (std::optional<Workers::Finished> one = workers.wait())
        note(*one);
  }

  bool fits(const Costed &costed) const {
    return found.limit == 0 || costed.bytes <= found.limit;
  }

  /// Above this nothing is wanted.
  double mostSeconds() const {
    return best == infinity ? infinity : best * (1 + options.within);
  }

  void startUsual() {
    for (Space::Usual &one : space.usual(machine.ranksPerNode)) {
      found.usual.push_back({one.name, std::nullopt, ""});
      if (one.choices.empty())
        found.usual.back().why = "outside of what --axis and --fixed leave";
      pending.push_back(std::move(one.choices));
      tryUsual(pending.size() - 1);
    }
  }

  /// The first choice of a usual one that is left, if a spec may say it.
  void tryUsual(size_t which) {
    std::vector<Choice> &left = pending[which];
    while (!left.empty()) {
      Choice choice = left.front();
      left.erase(left.begin());
      std::string why = startTask(
          {Task::ofUsual, which, choice, bounds ? bounds->seconds(choice) : 0});
      if (why.empty())
        return;
      if (!found.usual[which].row)
        found.usual[which].why = why;
    }
  }

  /// Why it is not compiled; empty: it is.
  std::string startTask(const Task &task) {
    spec::Result result = task.kind == Task::ofBody
                              ? specs.of(task.choice, bodies[task.which].global)
                              : specs.of(task.choice);
    if (!result.spec)
      return firstError(result.diagnostics);
    while (workers.isFull())
      if (std::optional<Workers::Finished> one = workers.wait())
        note(*one);
      else if (meter.isInterrupted())
        return "interrupted";
    tasks.push_back(task);
    bool isStarted = workers.start(tasks.size() - 1, [&] {
      return task.kind == Task::ofBody
                 ? toJson(measureBody(facts, *result.spec, options.ranks))
                 : toJson(costOf(facts.text, *result.spec));
    });
    return isStarted ? "" : "no process for it";
  }

  static std::string firstError(const Diagnostics &diagnostics) {
    for (const Diagnostic &one : diagnostics)
      if (one.severity == Severity::error)
        return one.message;
    return "refused";
  }

  bool isUsual(const Choice &choice) const {
    return std::any_of(tasks.begin(), tasks.end(), [&](const Task &task) {
      return task.kind == Task::ofUsual && task.choice == choice;
    });
  }

  using Nodes = std::priority_queue<Node, std::vector<Node>, std::greater<>>;
  bool isWanted(const Nodes &queue) const {
    return !queue.empty() && queue.top().bound < mostSeconds();
  }

  /// Fills the workers; whether something was started. Bodies and choices take
  /// turns, so that an early Ctrl-C finds something good.
  bool startNext() {
    bool isAny = false;
    while (!workers.isFull() && !meter.isInterrupted() &&
           (isWanted(nodes) || isWanted(ready))) {
      isTurnOfChoices = !isTurnOfChoices;
      bool isChoice = isWanted(ready) && (isTurnOfChoices || !isWanted(nodes));
      Nodes &queue = isChoice ? ready : nodes;
      Node node = queue.top();
      queue.pop();
      isAny |= isChoice ? startChoice(node) : startBody(node);
      tellProgress();
    }
    return isAny;
  }

  /// What other bodies told since then may have raised its bound.
  bool startBody(const Node &node) {
    if (double bound = boundOfBody(node.which); bound > node.bound) {
      if (bound == infinity)
        for (size_t member : bodies[node.which].members)
          fitsByBound(member, leastBytes(node.which, member));
      else
        nodes.push({bound, true, node.which});
      return false;
    }
    return !isStarted[node.which] && start(node.which, node.bound);
  }

  bool start(size_t which, double bound) {
    isStarted[which] = true;
    std::string why =
        startTask({Task::ofBody, which, bodies[which].body, bound});
    if (!why.empty()) // Not of its choices: they tell why themselves.
      addChoices(which, nullptr);
    return why.empty();
  }

  bool startChoice(const Node &node) {
    const Choice &choice = choices[node.which];
    if (isUsual(choice) || (!node.isTight && refine(node)))
      return false;
    std::string why =
        startTask({Task::ofChoice, node.which, choice, node.bound});
    if (!why.empty())
      found.refused[why] += sameAs(node.which);
    return why.empty();
  }

  /// Whether its own table tells more than was known.
  bool refine(Node node) {
    const Choice &choice = choices[node.which];
    const Body &body = *bodies[bodies.of(choice)].measured;
    node.isTight = true;
    node.bound = std::max(node.bound, ofBodies->simulated(choice, body));
    ready.push(node);
    return true;
  }

  /// Choices of a body, which may be unknown.
  void addChoices(size_t which, const Body *body) {
    for (size_t member : bodies[which].members) {
      const Choice &choice = choices[member];
      if (!body)
        ready.push({bounds->seconds(choice), false, member});
      else if (fitsByBound(member, ofBodies->bytes(choice, *body)))
        ready.push(
            {ofBodies->seconds(choice, *body), false, member, choice.pp == 1});
    }
  }

  void note(const Workers::Finished &finished) {
    Task task = tasks[finished.task];
    if (task.kind == Task::ofBody)
      noteBody(task.which, bodyFromJson(finished.result));
    else
      noteChoice(task, costedFromJson(finished.result));
    tellProgress();
  }

  /// What refuses a body refuses its choices: heads that ranks do not divide,
  /// say.
  void noteBody(size_t which, const Body &body) {
    ++found.bodies;
    bodies.note(which, body);
    if (body.status == Costed::refused)
      found.refused[body.why] += bodies[which].members.size();
    else
      addChoices(which, body.status == Costed::done ? &body : nullptr);
  }

  void noteChoice(const Task &task, const Costed &costed) {
    Row row{task.choice, costed, task.bound};
    ++found.compiled;
    if (costed.status == Costed::done) {
      if (fits(costed)) {
        best = std::min(best, costed.seconds);
        found.rows.push_back(row);
      } else if (!found.nearest || costed.bytes < found.nearest->costed.bytes)
        found.nearest = row;
    } else if (costed.status == Costed::refused)
      found.refused[costed.why] +=
          task.kind == Task::ofChoice ? sameAs(task.which) : 1;
    else
      found.broken.push_back(nameOf(task.choice) + ": " + costed.why);
    if (task.kind == Task::ofUsual)
      noteUsual(task.which, row);
  }

  /// The first that fits, else the one that needs least.
  void noteUsual(size_t which, const Row &row) {
    UsualRow &usual = found.usual[which];
    bool isDone = row.costed.status == Costed::done;
    if (isDone && (!usual.row || row.costed.bytes < usual.row->costed.bytes))
      usual.row = row;
    else if (!isDone && !usual.row)
      usual.why = row.costed.why;
    if (!isDone || !fits(row.costed))
      tryUsual(which);
  }

  void tellProgress() {
    size_t seen = found.compiled + found.tooLarge;
    meter.tell(seen, found.choices, best == infinity ? 0 : best);
  }

  void finish() {
    found.isInterrupted = meter.isInterrupted();
    found.bound = best;
    for (Nodes *queue : {&nodes, &ready})
      for (; !queue->empty(); queue->pop()) {
        const Node &top = queue->top();
        found.bound = std::min(found.bound, top.bound);
        found.tooSlow += top.isBody ? bodies[top.which].members.size() : 1;
      }
    if (found.bound == infinity)
      found.bound = 0;
    std::sort(found.rows.begin(), found.rows.end(),
              [](const Row &a, const Row &b) {
                return std::pair(a.costed.seconds, a.costed.bytes) <
                       std::pair(b.costed.seconds, b.costed.bytes);
              });
    meter.clear();
  }

  Specs &specs;
  const Facts &facts;
  const SearchOptions &options;
  Space space;
  Workers workers;
  Meter meter;
  Found found;
  std::optional<Bound> bounds;
  std::optional<BodyBound> ofBodies;
  cost::Machine machine;
  std::vector<Choice> choices;
  std::vector<double> parts, besides; // of each (BodyBound::partOf)
  std::vector<size_t> unlayered;      // have more stages than the model layers
  Bodies bodies;
  std::vector<bool> isStarted; // by body
  Nodes nodes, ready;          // bodies; choices whose body is known
  bool isTurnOfChoices = false;
  std::vector<Task> tasks;
  std::vector<std::vector<Choice>> pending; // of usual ones
  std::pair<double, size_t> smallest{infinity, 0};
  double best = infinity;
};
} // namespace

Found search(Specs &specs, const Facts &facts, const AxisSizes &axes,
             const SearchOptions &options) {
  return Search(specs, facts, axes, options).run();
}

} // namespace meshwork::tune
