// Runs a plan, as `meshwork-run` does: all ranks in this process, or under MPI
// the one that this process is.
//
//   meshwork::runtime::RunOptions options;
//   options.plan = "model.mwplan";
//   options.data = "train.bin";
//   options.steps = 100;
//   absl::Status status = meshwork::runtime::run(options);
#pragma once

#include "absl/status/status.h"
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace meshwork::plan {
struct Plan;
}

namespace meshwork::runtime {

struct LearningRate {
  enum class Shape { constant, cosine, linear, warmupStableDecay };
  Shape shape = Shape::constant;
  double rate = 3e-4;
  double minimum = 0; // where a decay ends
  uint64_t warmupSteps = 0;
  /// Steps, warmup included, of which the last has `minimum`; 0: all of the
  /// run.
  uint64_t decaySteps = 0;
  /// Of warmupStableDecay: those between warmup and decay, with `rate`.
  uint64_t stableSteps = 0;
};

struct RunOptions {
  std::string plan;
  /// Sources of tokens: files, folders, patterns. None when steps is 0.
  std::vector<std::string> data;
  std::string dataWeights;      // "": by windows; else "0.7,0.3"
  std::string order = "random"; // | "epochs"
  std::string samples;   // "" or "windows" | "documents": whole ones, packed
  std::string dataType;  // "" | "u16" | "u32", for raw token files
  std::string tokenizer; // "" | "bytes", for text
  /// The token that each document in `data` begins with, or the one that each
  /// ends with. Only for a plan that separates documents; it needs one of the
  /// two, or a Megatron index.
  std::optional<uint32_t> documentBegin, documentEnd;
  /// Sources of tokens that are evaluated, read from their beginnings.
  std::vector<std::string> evalData;
  /// Instead: this share of the windows of each file of `data`, its last ones,
  /// which training then does not read.
  double heldOut = 0;
  std::optional<uint32_t> evalEvery; // steps; else at the end alone
  std::optional<uint32_t> evalSteps; // of an evaluation; else all windows
  bool evaluate = false; // the weights as they are, without any step
  uint64_t steps = 0;    // of the run, those before a resume included
  /// "NEXT.mwplan@STEP": that plan takes the steps from STEP on.
  std::vector<std::string> then;
  /// Of a plan that follows another: no checkpoint before it is one of its own.
  uint64_t beginsWith = 0;
  uint32_t ranks = 0; // 0: as many as the plan has; else must be equal
  uint32_t seed = 0;
  LearningRate learningRate;
  std::string init; // safetensors to start from; "": from the seed
  /// Files of an index of `init` may be links to anywhere.
  bool followLinks = false;
  std::string resume;        // a checkpoint, a folder of them, or "auto"
  std::string save;          // safetensors to write at the end; "": none
  std::string saveGradients; // f32 gradients of the last step
  std::string checkpoint;    // folder of checkpoints; "": none are made
  std::optional<uint32_t> checkpointEvery; // steps; else at the end alone
  uint32_t keep = 2;                       // so many of the newest checkpoints
  bool keepBest = false; // and the one whose evaluation lost least
  /// Write from the states themselves while training waits, without a copy.
  bool checkpointSync = false;
  /// Times that meshwork-run starts a run again which has failed.
  uint32_t restarts = 0;
  /// Steps of the run that may make no update, since their loss or norm is not
  /// finite; one more ends it.
  uint64_t skipBadSteps = 0;
  std::string metrics;      // JSON lines, one a step
  std::string tensorboard;  // a folder, for a file of events
  std::string trace;        // Chrome trace
  uint64_t traceSteps = 20; // the first steps of the run that are traced
  bool profile = false;     // a table of time per instruction, on stdout
  std::string profileJson;
  /// Steps between lines; else there is one each ten seconds off a terminal,
  /// where no bar is.
  std::optional<uint32_t> logEvery;
  double timeoutSeconds = 60; // for a rank, or a GPU's work
  int threads = 0;            // per rank; 0: cores divided by ranks
  bool pin = true;
  double peakTflops = 0;    // of all ranks together, for mfu; 0: unknown
  bool measurePeak = false; // finds it with a matmul on each rank
  /// What to take for `peakTflops` where nothing is given; may be empty, and
  /// give 0.
  std::function<double(const plan::Plan &)> peakOfPlan;
  /// A warning where ranks are on other hosts than the plan was made for, ""
  /// where they are not; `hosts` has each rank's. May be empty.
  std::function<std::string(const plan::Plan &,
                            const std::vector<std::string> &hosts)>
      warningOfHosts;
  bool shareGpu = false;    // all ranks of this machine on one GPU
  bool synchronous = false; // GPUs: wait after each instruction
  /// GPUs: time the algorithms of each product at the start and keep the
  /// fastest. Bits then depend on the timing.
  bool tuneMatmuls = false;
  /// GPUs: attention by cuDNN where it can, else as without this. The
  /// last bits of gradients then differ from run to run.
  bool cudnnAttention = false;
  /// GPUs of compute capability 9.0 run attention by kernels of the runtime
  /// that use its tensor cores' own instructions, where they can; with
  /// tuneMatmuls where they are the fastest. Bits repeat. `wgmmaAttention`:
  /// other GPUs are an error. `noWgmmaAttention`: the plan's kernels run it.
  bool wgmmaAttention = false, noWgmmaAttention = false;
  /// Ranks with a GPU each: thread blocks that a collective beside the
  /// computation may take, which products leave free; 0: as many as NCCL likes.
  int ncclMaxCtas = 0;
  /// Ranks with a GPU each: NCCL reads and writes the plan's memory in place.
  bool ncclRegister = false;
  bool compareCpu = false;   // GPUs: every instruction against the CPU's
  bool validateOnly = false; // check the plan and the machine, run nothing
  bool dryRun = false;       // so, and tell where each rank would run
  bool isQuiet = false;      // no progress on stdout
  /// How ranks run: all in this process, one a process, or as the environment
  /// tells that a launcher started this one.
  enum class Transport { automatic, threads, mpi };
  Transport transport = Transport::automatic;
  /// By which others reach this process, without MPI: the first interface whose
  /// name begins so. Empty: that of NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME,
  /// else the one that leads to rank 0.
  std::string interface;
  /// When it becomes the number of a signal, the run ends after the step in
  /// progress and writes what was asked for. The result is then `cancelled`,
  /// with exit code 128 + that number, unless it was the last step. May be
  /// null.
  const std::atomic<int> *stop = nullptr;
  /// With each change a checkpoint is made after the step in progress. May be
  /// null.
  const std::atomic<int> *saveNow = nullptr;
};

/// Loads, checks, trains, saves. Some failures leave good weights: a loss or
/// gradient norm is not finite, or metrics or samples cannot be written or
/// read. Then the run first writes what was asked for, with the weights of the
/// last good step, and returns the failure after that. Progress goes to stdout.
/// `exitCodeOf` turns the result into an exit code. When a rank hangs, its
/// thread is left behind: a process should then end without waiting for threads
/// (std::_Exit).
absl::Status run(const RunOptions &options);

/// Leaves at once, without waiting for threads, with the exit code of `status`.
/// Where it is a failure of one of several processes, ends all of them.
[[noreturn]] void endProcess(const absl::Status &status);

} // namespace meshwork::runtime
