#include "runtime/rank/options/Groups.h"

namespace meshwork::runtime {
namespace {
using Shape = LearningRate::Shape;

constexpr OptionChoice shapes[] = {
    {"constant", static_cast<int>(Shape::constant)},
    {"cosine", static_cast<int>(Shape::cosine)},
    {"linear", static_cast<int>(Shape::linear)},
    {"wsd", static_cast<int>(Shape::warmupStableDecay)}};

const OptionRow trainingRows[] = {
    {.name = "--seed",
     .valueName = "N",
     .help = "Of initial weights, samples and dropout",
     .field = MESHWORK_FIELD(seed),
     .most = UINT32_MAX,
     .showsDefault = true,
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--lr",
     .valueName = "RATE",
     .help = "Learning rate",
     .field = MESHWORK_FIELD(learningRate.rate),
     .needs = "--steps",
     .showsDefault = true,
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--schedule",
     .valueName = "",
     .help = "Of the learning rate after the warmup; wsd: constant for "
             "--stable-steps, then linear",
     .field = MESHWORK_FIELD(learningRate.shape),
     .choices = shapes,
     .needs = "--steps",
     .showsDefault = true,
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--min-lr",
     .valueName = "RATE",
     .help = "Where a decay (cosine, linear, wsd) ends, at its last step",
     .field = MESHWORK_FIELD(learningRate.minimum),
     .needs = "--schedule",
     .showsDefault = true,
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--warmup-steps",
     .valueName = "N",
     .help = "Steps of linear rise",
     .field = MESHWORK_FIELD(learningRate.warmupSteps),
     .needs = "--steps",
     .showsDefault = true,
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--stable-steps",
     .valueName = "N",
     .help = "Of --schedule wsd: steps with --lr between warmup and decay",
     .field = MESHWORK_FIELD(learningRate.stableSteps),
     .least = 1,
     .needs = "--schedule",
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--decay-steps",
     .valueName = "N",
     .help = "Steps, warmup included, of which the last has --min-lr; default: "
             "--steps",
     .field = MESHWORK_FIELD(learningRate.decaySteps),
     .least = 1,
     .needs = "--schedule",
     .isShared = true,
     .decidesNumbers = true},
};
} // namespace

OptionGroup trainingOptions() { return {"Training", trainingRows}; }

} // namespace meshwork::runtime
