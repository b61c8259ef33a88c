#include "runtime/rank/options/Groups.h"

namespace meshwork::runtime {
namespace {
constexpr OptionChoice dataTypes[] = {{"u16"}, {"u32"}};
constexpr OptionChoice orders[] = {{"random"}, {"epochs"}};
constexpr OptionChoice sampleKinds[] = {{"documents"}, {"windows"}};
constexpr OptionChoice tokenizers[] = {{"bytes"}};

const OptionRow dataRows[] = {
    {.name = "--steps",
     .valueName = "N",
     .help = "Optimizer steps; 0 only places weights",
     .field = MESHWORK_FIELD(steps),
     .isShared = true},
    {.name = "--then",
     .valueName = "NEXT.mwplan@STEP",
     .help = "From this step on go on with another plan of the same model: "
             "longer sequences, a larger batch, another mesh. By way of a "
             "checkpoint. May be given several times",
     .field = MESHWORK_FIELD(then),
     .needs = "--steps"},
    {.name = "--data",
     .valueName = "FILE",
     .help = "Tokens: llm.c .bin, Megatron .bin/.idx (or their common prefix), "
             "raw ids, or text; a folder of such files, or a pattern like "
             "'shards/*.bin'. May be given several times",
     .field = MESHWORK_FIELD(data),
     .needs = "--steps",
     .isGivenByAll = true,
     .decidesNumbers = true},
    {.name = "--data-weights",
     .valueName = "W,W",
     .help = "How the samples are shared between several --data, like 0.7,0.3; "
             "default: by how many windows each has",
     .field = MESHWORK_FIELD(dataWeights),
     .needs = "--data",
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--order",
     .valueName = "",
     .help = "Of samples: from random places, or each window of the "
             "files once an epoch, shuffled",
     .field = MESHWORK_FIELD(order),
     .choices = orders,
     .needs = "--data",
     .showsDefault = true,
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--samples",
     .valueName = "",
     .help = "windows of the tokens, the default, or whole documents: as many "
             "as fit are packed, and padding counts for nothing",
     .field = MESHWORK_FIELD(samples),
     .choices = sampleKinds,
     .needs = "--data",
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--data-type",
     .valueName = "",
     .help = "Type of raw ids",
     .field = MESHWORK_FIELD(dataType),
     .choices = dataTypes,
     .needs = "--data",
     .orNeeds = "--eval-data",
     .decidesNumbers = true},
    {.name = "--tokenizer",
     .valueName = "",
     .help = "For a text: token = byte",
     .field = MESHWORK_FIELD(tokenizer),
     .choices = tokenizers,
     .needs = "--data",
     .orNeeds = "--eval-data",
     .excludes = "--data-type",
     .decidesNumbers = true},
    {.name = "--document-begin",
     .valueName = "ID",
     .help = "Token that each document begins with, for a plan that tells "
             "documents apart",
     .field = MESHWORK_FIELD(documentBegin),
     .most = UINT32_MAX,
     .needs = "--data",
     .orNeeds = "--eval-data",
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--document-end",
     .valueName = "ID",
     .help = "The same for a token that each document ends with",
     .field = MESHWORK_FIELD(documentEnd),
     .most = UINT32_MAX,
     .needs = "--data",
     .orNeeds = "--eval-data",
     .excludes = "--document-begin",
     .isShared = true,
     .decidesNumbers = true},
};

const OptionRow evaluationRows[] = {
    {.name = "--eval-data",
     .valueName = "FILE",
     .help = "Tokens, as --data: their loss is told, without dropout and "
             "without training on them. Windows one behind the other from the "
             "beginning. May be given several times",
     .field = MESHWORK_FIELD(evalData),
     .isGivenByAll = true},
    {.name = "--held-out",
     .valueName = "SHARE",
     .help = "Instead: this share of the windows of each file of --data, its "
             "last ones, like 0.01; they are not trained on",
     .field = MESHWORK_FIELD(heldOut),
     .lowest = 1e-9,
     .highest = 0.9,
     .isPositive = true,
     .needs = "--data",
     .excludes = "--eval-data",
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--eval-every",
     .valueName = "N",
     .help = "Evaluate after each N steps, and at the end; default: at the end",
     .field = MESHWORK_FIELD(evalEvery),
     .least = 1,
     .needs = "--steps",
     .isShared = true},
    {.name = "--eval-steps",
     .valueName = "K",
     .help = "Windows of an evaluation: K times batch.global; default: all",
     .field = MESHWORK_FIELD(evalSteps),
     .least = 1,
     .needs = "--eval-data",
     .orNeeds = "--held-out",
     .isShared = true},
    {.name = "--evaluate",
     .valueName = "",
     .help = "Evaluate the weights of --init or --resume, and do not train",
     .field = MESHWORK_FIELD(evaluate),
     .needs = "--eval-data",
     .excludes = "--steps",
     .isShared = true},
};
} // namespace

OptionGroup dataOptions() { return {"Data", dataRows}; }
OptionGroup evaluationOptions() { return {"Evaluation", evaluationRows}; }

} // namespace meshwork::runtime
