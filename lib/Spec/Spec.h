// The spec: how a model is trained and spread over ranks, as a user writes it
// in TOML. README.md lists every key.
//
//   spec::Result result = spec::parse(text, "spec.toml", {"batch.micro=8"});
//   if (!result.spec) { print textOf(result.diagnostics); exit 78; }
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/Spec/Budget.h"
#include "lib/Spec/Diagnostic.h"
#include "meshwork/Plan/Ranges.h"

namespace meshwork::spec {

// Words.h has what each is called.
enum class Type { f32, bf16 };
enum class Device { cpu, cuda };
enum class Rounding { nearest, stochastic };
/// Of sums between ranks: that of the ranks, or what the transport likes best.
enum class ReductionOrder { fixed, any };
/// What an operand in 8 bits is scaled by: its largest magnitude as it is, or
/// of the steps before.
enum class Scaling { current, delayed };
/// How often weights are rounded to 8 bits; `byCount`, "auto", goes by how many
/// microbatches a step has, and by ZeRO.
enum class WeightCasts { byCount, step, microbatch };
/// From what keeps most to what computes most again; `offload` keeps what
/// `selective` does, in the host's memory. `byBudget`, "auto", picks one of
/// them for each layer.
enum class Recompute { none, selective, offload, full, byBudget };
/// Of what may help or not: `useful`, "auto", is where it should help.
enum class When { useful, always, never };
/// How tokens reach experts of other ranks; `byCost`, "auto", is chosen when a
/// model is compiled.
enum class Exchange { byCost, gathered, allToAll };
/// What makes a router choose experts evenly: one product of shares and scores
/// for all layers, one for each, or nothing.
enum class Balance { ofModel, ofLayer, none };

struct Experts {
  /// Room of an expert for choices of a group of sequences, by how many it gets
  /// when all are chosen evenly; none, "dropless": for all.
  std::optional<double> capacity;
  /// Sequences, one behind the other, over which capacity and balance are
  /// counted.
  uint32_t group = 1;
  Exchange exchange = Exchange::byCost;
  /// Slots of a rank for each other rank's tokens, by how many an even choice
  /// needs; infinite, "worst": one for each token.
  double bound = 1.25;
  Balance balance = Balance::ofModel;
  /// What these losses are multiplied with; none: as the model says, and 0 of
  /// the router's z-loss.
  std::optional<double> balanceCoefficient, zCoefficient;
  /// What a step adds to the bias by which an expert is chosen, or takes from
  /// it; none: nothing.
  std::optional<double> biasRate;
};

/// How ranks with parts of a sequence compute attention; `byCost`, "auto", is
/// what lib/Cost estimates to be faster.
enum class Context { byCost, gathered, ulysses, ring };

struct Axis {
  std::string name;
  uint32_t size = 1;
};

/// How the ranks along one axis that splits a sequence compute attention.
struct AxisContext {
  std::string axis;
  Context method; // not `byCost`
};

/// A logical dim and the mesh axes that split it, major first.
struct ShardRule {
  std::string dim;
  std::vector<std::string> axes;
};

/// The sharding of one parameter, or of all that a glob matches.
struct TensorPin {
  std::string name;  // may hold * ? [..]
  std::string dims;  // as Shardy writes it: [{"tp"}, {?}]
  std::string place; // where it is written: "spec.toml:12:1"
};

/// What becomes of a gathered weight between its uses; `byCost`, "auto", is
/// what takes least time of what fits.
enum class Gathered { free, keep, byCost };

/// How often gradients of weights that are kept in parts are reduced.
enum class Reduce { microbatch, step, byCost };

/// What gathered weights travel as: in precision.compute, or rounded to 8 bits.
enum class WeightType { compute, fp8, int8 };
/// What gradients are while they are reduced; `precision`: as they are kept.
enum class GradientType { precision, int8, int4 };

/// How far state is split over ranks that would hold copies.
struct Zero {
  uint32_t stage = 0; // 1: optimizer, 2: and gradients, 3: and weights
  std::vector<std::string> axes;      // empty in stage 0 only
  Gathered gathered = Gathered::free; // stage 3
  /// Stage 3: those of `axes` that a gathered weight stays split over. Over the
  /// others it is gathered once a step. Empty: it is gathered for each use.
  std::vector<std::string> inner;
  /// From stage 2 on. `step`: until then a rank keeps whole gradients.
  Reduce reduce = Reduce::microbatch;
  WeightType weights = WeightType::compute;         // stage 3
  GradientType gradients = GradientType::precision; // from stage 1 on
  uint32_t gradientBlock = 256; // elements with one scale, at most
  bool gradientError = false;   // a step tells what rounding them changed

  /// Axes that a weight is gathered over once a step.
  std::vector<std::string> gatheredOnce() const;
  /// Whether some key is "auto" that means something in this stage.
  bool hasChoice() const;
};

struct Batch {
  uint32_t global = 0; // sequences per optimizer step
  /// Sequences per microbatch and data-parallel rank; 0: "auto", until the
  /// compiler has chosen.
  uint32_t micro = 0;
  uint32_t sequence = 0;          // tokens
  bool separateDocuments = false; // attention stays within each
  bool restartPositions = false;  // they begin anew with each
  bool documentEndLoss = true;    // the target of each one's last token counts
};

/// Parameters that the optimizer treats in a way of their own: those whose
/// names in files a glob matches, of several groups the first.
struct OptimizerGroup {
  std::string name;       // a glob
  double rate = 1;        // times the learning rate
  double weightDecay = 1; // times the decay that they have without it
  std::string place;      // for messages
};

struct Optimizer {
  std::string kind = "adamw";
  /// By key, all that lib/Optimizer says `kind` takes.
  std::map<std::string, double, std::less<>> settings;
  double clipGradNorm = 1.0; // of the global gradient; 0 does not clip
  std::vector<OptimizerGroup> groups;
};

struct Overlap {
  When collectives = When::useful; // run beside the computation
  When matmul = When::never; // products in chunks beside their collectives
  uint32_t chunks = 4;       // of each such product
  uint64_t bucketBytes = 25 << 20; // of gradients that travel together, at most
};

/// What lies in the host's memory and is brought when it is used.
struct Offload {
  bool optimizer = false; // masters of bf16 weights, and what it keeps
  /// Whether Recompute::byBudget may choose `offload`.
  bool activations = false;
  /// States that travel together have so many bytes, or are one larger state.
  uint64_t windowBytes = 16 << 20;
  std::optional<uint64_t> hostBytes; // of a rank; a plan above does not compile
};

/// How layers are shared out over ranks, and in which order these work.
struct Pipeline {
  std::string axis;              // of the mesh; "" without stages
  std::string schedule = "1f1b"; // by name: see lib/Schedules
  uint32_t virtualStages = 0;    // of each rank; 0: the schedule's own
  std::vector<int64_t> layers;   // of each virtual stage; none: "auto"
  /// What "auto" plans with; empty, and 0, until that is known. Never printed:
  /// a plan carries what its user asked for. Picoseconds of F, I, W and of the
  /// transfer to the next stage, for one virtual stage after the other.
  std::vector<int64_t> times;
  /// The most microbatches that a rank keeps, counted in virtual stages; 0:
  /// any.
  uint32_t kept = 0;
  /// What "auto" chose for `layers`, where balanced ones need too much memory;
  /// none: they do not. Never printed either.
  std::vector<int64_t> fittedLayers;
};

/// A ring is written out hop by hop, and a hop says who sends to whom: a longer
/// one would make plans of 100 MB and more.
constexpr uint64_t longestRing = 1024;

/// A checked spec; every invariant README.md names holds.
struct Spec {
  std::vector<Axis> mesh; // outermost first
  Batch batch;
  std::vector<ShardRule> shard; // defaults included
  std::vector<TensorPin> pins;
  /// How the parts of a sequence that `sequence` splits lie.
  layout::DimLayout sequenceLayout = layout::DimLayout::block;
  /// One method for all axes that split the sequence; of a table, the one
  /// beside "ulysses".
  Context context = Context::byCost;
  std::vector<AxisContext> contextOfAxis; // a table; empty: there is none
  Experts experts;
  Pipeline pipeline;
  Zero zero;
  Type compute = Type::bf16;   // weights and activations; masters are f32
  Type gradients = Type::bf16; // default: f32 sums of several microbatches,
                               // else as compute
  Rounding rounding = Rounding::nearest;                 // of bf16 weights
  ReductionOrder reductionOrder = ReductionOrder::fixed; // of sums in bf16
  bool fp8 = false; // products of linear layers multiply in 8 bits
  Scaling scaling = Scaling::current; // of these
  WeightCasts weightCasts = WeightCasts::byCount;
  Recompute recompute = Recompute::selective;
  /// What "auto" chose, one for each layer; empty until it has. Never printed:
  /// a plan carries what its user asked for.
  std::vector<Recompute> recomputeOfLayers;
  Overlap overlap;
  Offload offload;
  Optimizer optimizer;
  Device device = Device::cpu;
  /// cpu: native | x86-64-v3 | x86-64-v4; cuda: native | sm_80 | sm_90a |
  /// sm_100. A GPU's native is all of them: the machine that compiles may have
  /// none.
  std::string arch = "native";
  /// The machine that time is estimated for: a name, the path of a machine file
  /// or what one holds (lib/Cost); "": the rough one of `device`.
  std::string machine;
  /// Small kernels side by side in one launch; useful on a GPU.
  When mergeLaunches = When::useful;
  /// By products, where that saves memory traffic; useful of bf16 on a GPU.
  When epilogues = When::useful;
  std::optional<uint64_t> memoryPerRankBytes; // a plan above does not compile
  std::vector<CollectiveBudget> collectives; // nor one that breaks one of these

  uint32_t numRanks() const;
  /// Whether several ranks share a dim by a rule of its own.
  bool splits(const std::string &dim) const;
  /// Axes whose ranks exchange heads, where others do something else.
  std::vector<std::string> exchangedAxes() const;
  /// Ranks that a part of the sequence's keys goes through in a ring.
  uint64_t ringRanks() const;
  /// Ranks that split the batch.
  uint32_t dataParallel() const;
  /// Ranks along the pipeline's axis; 1 without.
  uint32_t stageRanks() const;
  /// Per optimizer step: global / (micro * dataParallel()), a whole number; 0
  /// while `micro` is not chosen.
  uint32_t microbatches() const;
  /// Whether FP8 copies of weights are made once a step and kept through it.
  bool castsWeightsPerStep() const;
  /// Whether activations of some layer may lie in the host's memory.
  bool mayOffloadActivations() const;
};

/// "2.9 %": how far a sum of `count` gradients, rounded to bf16 after each, may
/// lie from the exact one: 2^-9 of the sum each time but the first, all of it
/// at most.
std::string percentOfBf16Sum(uint32_t count);

/// Keys that go by how much memory a rank may need, with what is wrong with
/// them where nothing says how much that is.
std::map<std::string, std::string> withoutBudget(const Spec &spec);

struct Result {
  std::optional<Spec> spec; // absent when a diagnostic is an error
  Diagnostics diagnostics;  // in the order of the text
  std::map<std::string, std::string>
      origins; // key -> "spec.toml:3:5", "--set ..."
};

/// Reads `text`; `filename` is for messages. `overrides` are
/// "section.key=value" with a TOML value, or a string without its quotes; the
/// last of a key wins. Finds all mistakes of the text, except that a syntax
/// error hides what follows.
Result parse(std::string_view text, const std::string &filename,
             const std::vector<std::string> &overrides = {});

/// The whole spec as TOML, defaults included; parse() gives the same spec back.
std::string print(const Spec &spec);

/// One key's value as print() shows it; nothing for a key that it leaves out.
std::optional<std::string> valueOf(const Spec &spec, const std::string &key);

/// The same, with a comment at each key that tells where its value comes from.
std::string printWithOrigins(const Result &result);

} // namespace meshwork::spec
