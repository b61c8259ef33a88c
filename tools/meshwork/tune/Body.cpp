#include "tools/meshwork/tune/Body.h"

#include "tools/meshwork/tune/Cost.h"

#include <algorithm>

namespace meshwork::tune {
namespace {

bool isSingle(const Choice &choice, uint32_t global) {
  return choice.dataParallel() * choice.micro >= global;
}
} // namespace

Choice bodyOf(const Choice &choice) {
  Choice body = choice;
  body.pp = body.dp = 1;
  body.zeroStage = 0;
  body.gathered = body.reduce = body.schedule = {};
  body.virtualStages = 0;
  return body;
}

uint32_t globalOfBody(const Choice &choice, uint32_t global) {
  return choice.ep * choice.micro * (isSingle(choice, global) ? 1 : 2);
}

namespace {
/// Of `layers` layers, of which few and more were compiled.
class Extended {
public:
  Extended(const Compiled &few, const Compiled &more, int64_t layers)
      : few(few), more(more), layers(layers) {}

  /// What one layer adds.
  template <typename Of> double slope(Of of) const {
    return std::max(0.0, of(more) - of(few)) / (moreLayers - fewLayers);
  }
  template <typename Of> double whole(Of of) const {
    return of(more) + slope(of) * static_cast<double>(layers - moreLayers);
  }

private:
  const Compiled &few, &more;
  int64_t layers;
};

double forwardOf(const Compiled &one) { return one.forward; }
double backwardOf(const Compiled &one) { return one.backward; }
double exposedOf(const Compiled &one) { return one.exposed; }
double updateOf(const Compiled &one) { return one.update; }
double passingBytes(const Compiled &one) {
  return static_cast<double>(one.costed.bytes) -
         static_cast<double>(one.storedBytes);
}
} // namespace

Body measureBody(const Facts &facts, const spec::Spec &spec, uint32_t ranks) {
  bool isEven = !facts.shallow.empty();
  Compiled more = compileWith(
      isEven ? facts.shallow.at(moreLayers) : facts.text, spec, ranks);
  Body body{more.costed.status, more.costed.why};
  body.forward = more.forward;
  body.backward = more.backward;
  body.exposed = more.exposed;
  body.update = more.update;
  if (!isEven || body.status != Costed::done)
    return body;
  Compiled few = compileWith(facts.shallow.at(fewLayers), spec, ranks);
  Extended of(few, more, facts.layers);
  body.isEven = true;
  body.forward = of.whole(forwardOf);
  body.backward = of.whole(backwardOf);
  body.exposed = std::min(of.whole(exposedOf), body.seconds());
  body.update = of.whole(updateOf);
  body.forwardOfLayer = of.slope(forwardOf);
  body.backwardOfLayer = of.slope(backwardOf);
  body.updateOfLayer = of.slope(updateOf);
  body.keptOfLayer = of.slope(passingBytes);
  body.otherBytes =
      std::max(0.0, passingBytes(more) - moreLayers * body.keptOfLayer);
  return body;
}

} // namespace meshwork::tune
