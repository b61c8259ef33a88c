#include "tools/meshwork/tune/Sketch.h"

#include "tools/meshwork/tune/Cost.h"
#include "tools/meshwork/tune/Tables.h"

namespace meshwork::tune {
namespace {

Sketch begun(const Compiled &compiled) {
  Sketch sketch{compiled.costed.status, compiled.costed.why,
                compiled.costed.seconds};
  sketch.bytes = compiled.costed.bytesOfRanks;
  return sketch;
}

/// By the same shallow models as a body.
Sketch ofWeights(const Facts &facts, const Models &models,
                 const spec::Spec &spec) {
  Compiled few = compileWith(models.shallow(), spec, spec.numRanks());
  Sketch sketch = begun(few);
  for (size_t number = 0; number < facts.kinds.size(); ++number) {
    if (sketch.status != Costed::done)
      break;
    const LayerKind &kind = facts.kinds[number];
    if (kind.deeper.empty())
      continue;
    Compiled more = compileWith(models.deeper(number), spec, spec.numRanks());
    if (more.costed.status != Costed::done)
      return begun(more);
    double left = static_cast<double>(kind.layers - kind.shallow) / layersMore;
    sketch.seconds += left * (more.costed.seconds - few.costed.seconds);
    for (size_t rank = 0; rank < sketch.bytes.size(); ++rank)
      sketch.bytes[rank] += left * (more.costed.bytesOfRanks[rank] -
                                    few.costed.bytesOfRanks[rank]);
  }
  return sketch;
}

/// So many layers in each stage, which are the last of the model.
Compiled withStages(const Facts &facts, const Models &models, spec::Spec spec,
                    size_t stages, size_t layers) {
  std::set<size_t> last;
  for (size_t i = 0; i < stages * layers; ++i)
    last.insert(static_cast<size_t>(facts.layers) - 1 - i);
  spec.pipeline.fittedLayers.assign(stages, static_cast<int64_t>(layers));
  return compileWith(models.whole(), spec, spec.numRanks(), last);
}

Sketch ofPipeline(const Facts &facts, const Models &models,
                  const spec::Spec &spec, size_t stages) {
  Compiled one = withStages(facts, models, spec, stages, 1);
  Sketch sketch = begun(one);
  if (sketch.status != Costed::done)
    return sketch;
  Compiled two = withStages(facts, models, spec, stages, 2);
  if (two.costed.status != Costed::done)
    return begun(two);
  if (stages > 2)
    sketch.inner = {listsOf(one.lists, 1), listsOf(two.lists, 1)};
  sketch.ofLayer.assign(sketch.bytes.size(), 0);
  sketch.secondsOfLayer = two.costed.seconds - one.costed.seconds;
  for (size_t rank = 0; rank < sketch.bytes.size(); ++rank)
    sketch.ofLayer[rank] = two.costed.bytesOfRanks[rank] - sketch.bytes[rank];
  return sketch;
}
} // namespace

/// Without a pipeline bodies tell enough, but where weights are gathered. With
/// layers of several kinds a pipeline's stages differ. With many stages the
/// choice itself takes no longer.
bool isSketched(const Choice &choice, const Facts &facts) {
  if (facts.shallow.empty())
    return false;
  return choice.pp == 1
             ? choice.zeroStage == 3
             : facts.kinds.size() == 1 &&
                   4 * stagesOf(choice) <= static_cast<uint64_t>(facts.layers);
}

Sketch sketchOf(const Facts &facts, const Models &models, const Choice &choice,
                const spec::Spec &spec) {
  return choice.pp == 1 ? ofWeights(facts, models, spec)
                        : ofPipeline(facts, models, spec, stagesOf(choice));
}

} // namespace meshwork::tune
