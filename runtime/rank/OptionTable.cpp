#include "runtime/rank/OptionTable.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include <cstdlib>

namespace meshwork::runtime {
namespace {
using Shape = LearningRate::Shape;
using Transport = RunOptions::Transport;

#define MESHWORK_FIELD(member)                                                 \
  [](RunOptions &options) -> OptionField { return &options.member; }

constexpr OptionChoice dataTypes[] = {{"u16"}, {"u32"}};
constexpr OptionChoice orders[] = {{"random"}, {"epochs"}};
constexpr OptionChoice sampleKinds[] = {{"documents"}, {"windows"}};
constexpr OptionChoice tokenizers[] = {{"bytes"}};
constexpr OptionChoice shapes[] = {
    {"constant", static_cast<int>(Shape::constant)},
    {"cosine", static_cast<int>(Shape::cosine)},
    {"linear", static_cast<int>(Shape::linear)},
    {"wsd", static_cast<int>(Shape::warmupStableDecay)}};
constexpr OptionChoice transports[] = {
    {"auto", static_cast<int>(Transport::automatic)},
    {"mpi", static_cast<int>(Transport::mpi)},
    {"threads", static_cast<int>(Transport::threads)}};

// What is not shared may differ where machines do: paths of data and plans,
// threads, time-outs; or is of the first process alone: metrics, profiles,
// lines.
const OptionRow rows[] = {
    {.name = "--steps",
     .group = "Data",
     .valueName = "N",
     .help = "Optimizer steps; 0 only places weights",
     .field = MESHWORK_FIELD(steps),
     .isShared = true},
    {.name = "--then",
     .group = "Data",
     .valueName = "NEXT.mwplan@STEP",
     .help = "From this step on go on with another plan of the same model: "
             "longer sequences, a larger batch, another mesh. By way of a "
             "checkpoint. May be given several times",
     .field = MESHWORK_FIELD(then),
     .needs = "--steps"},
    {.name = "--data",
     .group = "Data",
     .valueName = "FILE",
     .help = "Tokens: llm.c .bin, Megatron .bin/.idx (or their common prefix), "
             "raw ids, or text; a folder of such files, or a pattern like "
             "'shards/*.bin'. May be given several times",
     .field = MESHWORK_FIELD(data),
     .needs = "--steps",
     .isGivenByAll = true,
     .decidesNumbers = true},
    {.name = "--data-weights",
     .group = "Data",
     .valueName = "W,W",
     .help = "How the samples are shared between several --data, like 0.7,0.3; "
             "default: by how many windows each has",
     .field = MESHWORK_FIELD(dataWeights),
     .needs = "--data",
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--order",
     .group = "Data",
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
     .group = "Data",
     .valueName = "",
     .help = "windows of the tokens, the default, or whole documents: as many "
             "as fit are packed, and padding counts for nothing",
     .field = MESHWORK_FIELD(samples),
     .choices = sampleKinds,
     .needs = "--data",
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--data-type",
     .group = "Data",
     .valueName = "",
     .help = "Type of raw ids",
     .field = MESHWORK_FIELD(dataType),
     .choices = dataTypes,
     .needs = "--data",
     .orNeeds = "--eval-data",
     .decidesNumbers = true},
    {.name = "--tokenizer",
     .group = "Data",
     .valueName = "",
     .help = "For a text: token = byte",
     .field = MESHWORK_FIELD(tokenizer),
     .choices = tokenizers,
     .needs = "--data",
     .orNeeds = "--eval-data",
     .excludes = "--data-type",
     .decidesNumbers = true},
    {.name = "--document-begin",
     .group = "Data",
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
     .group = "Data",
     .valueName = "ID",
     .help = "The same for a token that each document ends with",
     .field = MESHWORK_FIELD(documentEnd),
     .most = UINT32_MAX,
     .needs = "--data",
     .orNeeds = "--eval-data",
     .excludes = "--document-begin",
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--eval-data",
     .group = "Evaluation",
     .valueName = "FILE",
     .help = "Tokens, as --data: their loss is told, without dropout and "
             "without training on them. Windows one behind the other from the "
             "beginning. May be given several times",
     .field = MESHWORK_FIELD(evalData),
     .isGivenByAll = true},
    {.name = "--held-out",
     .group = "Evaluation",
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
     .group = "Evaluation",
     .valueName = "N",
     .help = "Evaluate after each N steps, and at the end; default: at the end",
     .field = MESHWORK_FIELD(evalEvery),
     .least = 1,
     .needs = "--steps",
     .isShared = true},
    {.name = "--eval-steps",
     .group = "Evaluation",
     .valueName = "K",
     .help = "Windows of an evaluation: K times batch.global; default: all",
     .field = MESHWORK_FIELD(evalSteps),
     .least = 1,
     .needs = "--eval-data",
     .orNeeds = "--held-out",
     .isShared = true},
    {.name = "--evaluate",
     .group = "Evaluation",
     .valueName = "",
     .help = "Evaluate the weights of --init or --resume, and do not train",
     .field = MESHWORK_FIELD(evaluate),
     .needs = "--eval-data",
     .excludes = "--steps",
     .isShared = true},
    {.name = "--seed",
     .group = "Training",
     .valueName = "N",
     .help = "Of initial weights, samples and dropout",
     .field = MESHWORK_FIELD(seed),
     .most = UINT32_MAX,
     .showsDefault = true,
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--lr",
     .group = "Training",
     .valueName = "RATE",
     .help = "Learning rate",
     .field = MESHWORK_FIELD(learningRate.rate),
     .needs = "--steps",
     .showsDefault = true,
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--schedule",
     .group = "Training",
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
     .group = "Training",
     .valueName = "RATE",
     .help = "Where a decay (cosine, linear, wsd) ends, at its last step",
     .field = MESHWORK_FIELD(learningRate.minimum),
     .needs = "--schedule",
     .showsDefault = true,
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--warmup-steps",
     .group = "Training",
     .valueName = "N",
     .help = "Steps of linear rise",
     .field = MESHWORK_FIELD(learningRate.warmupSteps),
     .needs = "--steps",
     .showsDefault = true,
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--stable-steps",
     .group = "Training",
     .valueName = "N",
     .help = "Of --schedule wsd: steps with --lr between warmup and decay",
     .field = MESHWORK_FIELD(learningRate.stableSteps),
     .least = 1,
     .needs = "--schedule",
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--decay-steps",
     .group = "Training",
     .valueName = "N",
     .help = "Steps, warmup included, of which the last has --min-lr; default: "
             "--steps",
     .field = MESHWORK_FIELD(learningRate.decaySteps),
     .least = 1,
     .needs = "--schedule",
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--init",
     .group = "Files",
     .valueName = "FILE",
     .help = "Start from these safetensors: a file, an index, or a folder "
             "(also one in the cache of the Hugging Face Hub); or from the "
             "weights of a checkpoint",
     .field = MESHWORK_FIELD(init),
     .isShared = true},
    {.name = "--follow-links",
     .group = "Files",
     .valueName = "",
     .help = "Read files of --init's index that are links out of its folder: "
             "only where you trust who made it",
     .field = MESHWORK_FIELD(followLinks),
     .needs = "--init",
     .isShared = true},
    {.name = "--resume",
     .group = "Files",
     .valueName = "DIR",
     .help =
         "Go on from the newest good checkpoint of this folder, or from this "
         "one; auto: from that of --checkpoint, if there is one yet",
     .field = MESHWORK_FIELD(resume),
     .isShared = true},
    {.name = "--save",
     .group = "Files",
     .valueName = "FILE",
     .help = "Write the weights at the end, f32 safetensors",
     .field = MESHWORK_FIELD(save),
     .isShared = true},
    {.name = "--save-gradients",
     .group = "Files",
     .valueName = "FILE",
     .help = "Write the last step's gradients: the mean over the step's "
             "tokens, not clipped",
     .field = MESHWORK_FIELD(saveGradients),
     .needs = "--steps",
     .isShared = true},
    {.name = "--checkpoint",
     .group = "Files",
     .valueName = "DIR",
     .help = "Keep checkpoints in this folder, which all hosts share: at the "
             "end, at a signal that ends the run, and at SIGUSR1",
     .field = MESHWORK_FIELD(checkpoint),
     .isShared = true},
    {.name = "--checkpoint-every",
     .group = "Files",
     .valueName = "N",
     .help = "Also after each N steps",
     .field = MESHWORK_FIELD(checkpointEvery),
     .least = 1,
     .needs = "--checkpoint",
     .isShared = true},
    {.name = "--keep",
     .group = "Files",
     .valueName = "K",
     .help = "Remove checkpoints older than the K newest",
     .field = MESHWORK_FIELD(keep),
     .least = 2,
     .needs = "--checkpoint",
     .showsDefault = true},
    {.name = "--keep-best",
     .group = "Files",
     .valueName = "",
     .help = "Also keep the checkpoint whose evaluation found the lowest loss",
     .field = MESHWORK_FIELD(keepBest),
     .needs = "--eval-every"},
    {.name = "--checkpoint-sync",
     .group = "Files",
     .valueName = "",
     .help = "Train on only when a checkpoint is written: takes no memory for "
             "a copy of the states (on a GPU the copy itself is never hidden)",
     .field = MESHWORK_FIELD(checkpointSync),
     .needs = "--checkpoint",
     .isShared = true},
    {.name = "--metrics",
     .group = "Files",
     .valueName = "FILE",
     .help = "Append a JSON line per step, and per evaluation, to this log",
     .field = MESHWORK_FIELD(metrics),
     .needs = "--steps",
     .orNeeds = "--evaluate"},
    {.name = "--tensorboard",
     .group = "Files",
     .valueName = "DIR",
     .help = "Write the numbers of --metrics for TensorBoard: a new file of "
             "events in this folder",
     .field = MESHWORK_FIELD(tensorboard),
     .needs = "--steps",
     .orNeeds = "--evaluate"},
    {.name = "--trace",
     .group = "Files",
     .valueName = "FILE",
     .help = "Write a Chrome trace",
     .field = MESHWORK_FIELD(trace),
     .needs = "--steps",
     .isShared = true},
    {.name = "--profile-json",
     .group = "Files",
     .valueName = "FILE",
     .help = "Write time per instruction as JSON",
     .field = MESHWORK_FIELD(profileJson),
     .needs = "--steps"},
    {.name = "--trace-steps",
     .group = "Files",
     .valueName = "N",
     .help = "Trace this many first steps",
     .field = MESHWORK_FIELD(traceSteps),
     .least = 1,
     .needs = "--trace",
     .showsDefault = true},
    {.name = "--skip-bad-steps",
     .group = "Failures",
     .valueName = "N",
     .help = "Go on after a step whose loss or gradient norm is not finite, "
             "without its update, N times in a run",
     .field = MESHWORK_FIELD(skipBadSteps),
     .needs = "--steps",
     .isShared = true},
    {.name = "--restarts",
     .group = "Failures",
     .valueName = "N",
     .help = "Start a run that fails again, from its newest checkpoint, at "
             "most N times; not under mpirun",
     .field = MESHWORK_FIELD(restarts),
     .needs = "--checkpoint"},
    {.name = "-n,--ranks",
     .group = "The machine",
     .valueName = "N",
     .help = "Must be equal to the plan's ranks",
     .field = MESHWORK_FIELD(ranks),
     .least = 1},
    {.name = "--transport",
     .group = "The machine",
     .valueName = "",
     .help = "auto (as launched), threads (all ranks here) or mpi",
     .field = MESHWORK_FIELD(transport),
     .choices = transports,
     .showsDefault = true},
    {.name = "--interface",
     .group = "The machine",
     .valueName = "NAME",
     .help = "Without MPI: other ranks reach this one by the interface NAME, "
             "written as in NCCL_SOCKET_IFNAME. Default: that variable, then "
             "GLOO_SOCKET_IFNAME, then the interface that leads to rank 0",
     .field = MESHWORK_FIELD(interface)},
    {.name = "--threads",
     .group = "The machine",
     .valueName = "N",
     .help = "Threads per rank; default: cores / ranks, of the cores that this "
             "process may use and its cgroups give it time for",
     .field = MESHWORK_FIELD(threads),
     .least = 1,
     .most = 4096},
    {.name = "--no-pin",
     .group = "The machine",
     .valueName = "",
     .help = "Leave threads to the system's scheduler",
     .field = MESHWORK_FIELD(pin)},
    {.name = "--timeout",
     .group = "The machine",
     .valueName = "SECONDS",
     .help = "Wait at most so long for a rank, or for a GPU's work to end; "
             "time that a disk takes does not count",
     .field = MESHWORK_FIELD(timeoutSeconds),
     .lowest = 1e-3,
     .highest = 1e6,
     .isPositive = true,
     .showsDefault = true},
    {.name = "--validate-only",
     .group = "The machine",
     .valueName = "",
     .help = "Check the plan and the machine, run nothing",
     .field = MESHWORK_FIELD(validateOnly),
     .isShared = true},
    {.name = "--dry-run",
     .group = "The machine",
     .valueName = "",
     .help = "As --validate-only, and print where each rank would run: its "
             "host, its cores or GPU, and which axes of the mesh cross hosts",
     .field = MESHWORK_FIELD(dryRun),
     .isShared = true},
    {.name = "--share-gpu",
     .group = "GPUs",
     .valueName = "",
     .help = "Run all ranks on one GPU: slow, to check a plan",
     .field = MESHWORK_FIELD(shareGpu),
     .isShared = true},
    {.name = "--tune-matmuls",
     .group = "GPUs",
     .valueName = "",
     .help =
         "Time each product's algorithms, and who runs attention, on a "
         "GPU and keep the fastest, for later runs too: faster, but bits may "
         "differ from run to run",
     .field = MESHWORK_FIELD(tuneMatmuls),
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--cudnn-attention",
     .group = "GPUs",
     .valueName = "",
     .help = "Run attention by cuDNN (9.11 or newer) where it can: the last "
             "bits of gradients differ from run to run",
     .field = MESHWORK_FIELD(cudnnAttention),
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--wgmma-attention",
     .group = "GPUs",
     .valueName = "",
     .help = "End the run where a GPU cannot use the kernels for compute "
             "capability 9.0 (wgmma, TMA), which run bf16 attention there by "
             "default",
     .field = MESHWORK_FIELD(wgmmaAttention),
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--no-wgmma-attention",
     .group = "GPUs",
     .valueName = "",
     .help = "Run bf16 attention by the plan's kernels on GPUs of compute "
             "capability 9.0 too",
     .field = MESHWORK_FIELD(noWgmmaAttention),
     .excludes = "--wgmma-attention",
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--nccl-max-ctas",
     .group = "GPUs",
     .valueName = "N",
     .help = "Limit each collective beside the computation to N thread blocks; "
             "products beside it leave as many multiprocessors free. Default: "
             "NCCL decides, and products count on all",
     .field = MESHWORK_FIELD(ncclMaxCtas),
     .least = 1,
     .most = 64,
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--nccl-register",
     .group = "GPUs",
     .valueName = "",
     .help = "Register the plan's memory with NCCL (2.19 or newer), which then "
             "reads and writes it in place and may use NVLink SHARP; takes up "
             "to 512 MiB more for each piece of memory",
     .field = MESHWORK_FIELD(ncclRegister),
     .isShared = true},
    {.name = "--compare-cpu",
     .group = "GPUs",
     .valueName = "",
     .help = "Run each instruction on the GPU and on the CPU from the same "
             "inputs, and compare; for plans made --with-cpu-code",
     .field = MESHWORK_FIELD(compareCpu),
     .isShared = true},
    {.name = "--synchronous",
     .group = "GPUs",
     .valueName = "",
     .help = "Wait after each instruction on a GPU: slow, names the one that "
             "fails",
     .field = MESHWORK_FIELD(synchronous),
     .isShared = true},
    {.name = "--log-every",
     .group = "What is told",
     .valueName = "N",
     .help = "Print a line after each N steps, on a terminal beside the bar; "
             "default: off a terminal the first, the last, and one each ten "
             "seconds",
     .field = MESHWORK_FIELD(logEvery),
     .least = 1,
     .needs = "--steps"},
    {.name = "--peak-tflops",
     .group = "What is told",
     .valueName = "TFLOPS",
     .help =
         "Peak of all ranks together, for mfu; default: that of the machine "
         "that the plan names (target.machine)",
     .field = MESHWORK_FIELD(peakTflops),
     .lowest = 1e-3,
     .highest = 1e9,
     .isPositive = true,
     .needs = "--steps"},
    {.name = "--measure-peak",
     .group = "What is told",
     .valueName = "",
     .help = "Measure it with a matmul on each rank",
     .field = MESHWORK_FIELD(measurePeak),
     .needs = "--steps",
     .excludes = "--peak-tflops",
     .isShared = true},
    {.name = "--profile",
     .group = "What is told",
     .valueName = "",
     .help = "Print time per instruction",
     .field = MESHWORK_FIELD(profile),
     .needs = "--steps"},
};
#undef MESHWORK_FIELD

/// A value as text; empty where it need not be given.
struct ValueText {
  const OptionRow &row;
  const OptionField defaults;

  std::string operator()(const bool *flag) const {
    return *flag == *std::get<bool *>(defaults) ? "" : "given";
  }
  /// Checkpoints of a default that did not exist are of this one.
  std::string operator()(const std::string *text) const {
    return *text == *std::get<std::string *>(defaults) ? "" : *text;
  }
  std::string operator()(const std::vector<std::string> *texts) const {
    return absl::StrJoin(*texts, ", ");
  }
  std::string operator()(const std::optional<uint32_t> *number) const {
    return *number ? absl::StrCat(**number) : "";
  }
  /// In full where six digits do not tell it.
  std::string operator()(const double *number) const {
    std::string text = absl::StrCat(*number);
    return std::strtod(text.c_str(), nullptr) == *number
               ? text
               : absl::StrFormat("%.17g", *number);
  }
  std::string operator()(const Shape *shape) const {
    return choice(static_cast<int>(*shape));
  }
  std::string operator()(const Transport *transport) const {
    return choice(static_cast<int>(*transport));
  }
  template <typename Number> std::string operator()(const Number *value) const {
    return absl::StrCat(*value);
  }
  std::string choice(int value) const {
    for (const OptionChoice &one : row.choices)
      if (one.value == value)
        return one.name;
    return "";
  }
};

/// As it could be given on a command line.
std::string asGiven(const OptionRow &row, const OptionField &field,
                    const std::string &value) {
  if (std::holds_alternative<bool *>(field))
    return row.name;
  const char *mark = std::holds_alternative<std::string *>(field) ? "\"" : "";
  return absl::StrCat(row.name, " ", mark, value, mark);
}
} // namespace

absl::Span<const OptionRow> optionTable() { return rows; }

bool isAllowed(const OptionRow &row, double value) {
  return (value == 0 && !row.isPositive) ||
         (value >= row.lowest && value <= row.highest);
}

std::string allowedNumbers(const OptionRow &row) {
  return absl::StrFormat("%sa number from %.7g to %.7g",
                         row.isPositive ? "" : "0, or ", row.lowest,
                         row.highest);
}

std::string optionValue(const OptionRow &row, const RunOptions &options) {
  RunOptions given = options, defaults;
  return std::visit(ValueText{row, row.field(defaults)}, row.field(given));
}

std::vector<std::string> sharedOptions(const RunOptions &options) {
  RunOptions given = options;
  std::vector<std::string> all;
  for (const OptionRow &row : rows) {
    std::string value = optionValue(row, options);
    if (value.empty() || !(row.isShared || row.isGivenByAll))
      continue;
    all.push_back(row.isShared ? asGiven(row, row.field(given), value)
                               : std::string(row.name));
  }
  for (const std::string &next : options.then)
    all.push_back(absl::StrCat("--then PLAN", next.substr(next.rfind('@'))));
  return all;
}

} // namespace meshwork::runtime
