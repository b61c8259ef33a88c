// Whole runs of a small plan, checked against sums done here by hand.
#include "RunCase.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/io/SafeTensors.h"
#include "runtime/io/Tokens.h"
#include "runtime/machine/CoreClaims.h"
#include "runtime/rank/Schedule.h"
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {
using plan::PlanT, plan::ProgramT;

class Run : public RunCase {};

std::vector<float> tensor(const std::string &path,
                          const char *name = "wte.weight") {
  auto reader = SafeTensorsReader::open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::vector<float> values((*reader)->find(name)->numElements);
  EXPECT_TRUE((*reader)->read(name, absl::MakeSpan(values)).ok());
  return values;
}

std::vector<nlohmann::json> lines(const std::string &path) {
  std::vector<nlohmann::json> result;
  std::istringstream text(readFile(path));
  for (std::string line; std::getline(text, line);)
    result.push_back(nlohmann::json::parse(line));
  return result;
}

/// What training does, in double and without ranks: 8 samples a step.
struct ByHand {
  std::vector<double> losses;
  std::vector<float> lastGradient;
  std::vector<double> weights;

  ByHand(const std::string &text, std::vector<float> start, int steps,
         double rate)
      : weights(start.begin(), start.end()) {
    auto source = TokenSource::open({text, "", "bytes", 256, 16});
    std::vector<int32_t> tokens(16), targets(16);
    for (int step = 0; step < steps; ++step) {
      std::vector<double> counts(256);
      for (uint32_t sample = 0; sample < 8; ++sample) {
        EXPECT_TRUE(
            (*source)
                ->sample(0, {static_cast<uint64_t>(step), sample},
                         {absl::MakeSpan(tokens), absl::MakeSpan(targets)})
                .ok());
        for (int32_t token : tokens)
          ++counts[static_cast<size_t>(token)];
      }
      double loss = 0;
      lastGradient.assign(weights.size(), 0);
      for (size_t i = 0; i < weights.size(); ++i) {
        double share = counts[i / 8] / (8 * 16 * 8);
        loss += share * weights[i];
        lastGradient[i] = static_cast<float>(share);
      }
      for (size_t i = 0; i < weights.size(); ++i)
        weights[i] += rate * lastGradient[i];
      losses.push_back(loss);
    }
  }
};

// The same eight samples a step on 1, 2 and 4 ranks.
TEST_F(Run, oneTwoAndFourRanksComputeWhatIsComputedByHand) {
  options.steps = 0;
  ASSERT_TRUE(runPlan(tinyPlan({.ranks = 1, .microbatches = 4})).ok());
  ByHand expected(options.data[0], tensor(options.save), 3, 0.5);
  options.steps = 3;
  for (uint32_t ranks : {1u, 2u, 4u}) {
    options.metrics = fresh("metrics");
    options.saveGradients = temporary("gradients");
    absl::Status status =
        runPlan(tinyPlan({.ranks = ranks, .microbatches = 4 / ranks}));
    ASSERT_TRUE(status.ok()) << status;
    auto metrics = lines(options.metrics);
    ASSERT_EQ(metrics.size(), 3u);
    for (size_t step = 0; step < 3; ++step)
      EXPECT_NEAR(metrics[step]["loss"].get<double>(), expected.losses[step],
                  1e-7)
          << ranks;
    std::vector<float> weights = tensor(options.save),
                       gradient = tensor(options.saveGradients);
    for (size_t i = 0; i < weights.size(); ++i) {
      ASSERT_NEAR(weights[i], expected.weights[i], 1e-7);
      ASSERT_NEAR(gradient[i], expected.lastGradient[i], 1e-8);
    }
  }
}

TEST_F(Run, initialWeightsDependOnlyOnTheSeed) {
  options.steps = 0;
  ASSERT_TRUE(runPlan(tinyPlan({.ranks = 1})).ok());
  std::string one = readFile(options.save);
  ASSERT_TRUE(runPlan(tinyPlan({.ranks = 4})).ok());
  EXPECT_EQ(readFile(options.save), one);
  options.seed = 1;
  ASSERT_TRUE(runPlan(tinyPlan({.ranks = 1})).ok());
  EXPECT_NE(readFile(options.save), one);
}

TEST_F(Run, sameInputsSameBits) {
  for (int threads : {1, 2}) {
    options.threads = threads;
    ASSERT_TRUE(runPlan(tinyPlan({.ranks = 2})).ok());
    static std::string first;
    if (first.empty())
      first = readFile(options.save);
    EXPECT_EQ(readFile(options.save), first);
  }
}

TEST_F(Run, initReadsWhatSaveWrote) {
  ASSERT_TRUE(runPlan(tinyPlan()).ok());
  std::string trained = readFile(options.save);
  options.init = temporary("init.safetensors");
  writeFile(options.init, trained.data(), trained.size());
  options.steps = 0;
  options.seed = 99;
  ASSERT_TRUE(runPlan(tinyPlan({.ranks = 2})).ok());
  EXPECT_EQ(readFile(options.save), trained);
}

TEST_F(Run, weightsOfAnotherModelAreListed) {
  options.init = temporary("other.safetensors");
  std::vector<float> data(4);
  std::vector<TensorToWrite> tensors;
  for (int i = 0; i < 7; ++i)
    tensors.push_back({"extra" + std::to_string(i), {4}, data.data()});
  ASSERT_TRUE(writeSafeTensors(options.init, tensors).ok());
  expectExit(tinyPlan(), 65,
             "missing: \"wte.weight\"; not in the plan: \"extra0\", ");
  expectExit(tinyPlan(), 65, "\"extra4\" and 2 more");
  tensors = {{"wte.weight", {2, 2}, data.data()}};
  ASSERT_TRUE(writeSafeTensors(options.init, tensors).ok());
  expectExit(tinyPlan(), 65, "is [2,2] in the file, the plan has [256,8]");
}

TEST_F(Run, bf16WeightsAreRoundedMasters) {
  PlanT plan = tinyPlan();
  ProgramT &p = *plan.programs[0];
  p.buffers.push_back(std::make_unique<plan::BufferT>(*p.buffers[0]));
  p.buffers.back()->offset = p.arena_bytes;
  p.buffers.back()->size_bytes /= 2;
  p.arena_bytes += p.buffers.back()->size_bytes;
  p.views.push_back(std::make_unique<plan::ViewT>(*p.views[weight]));
  p.views.back()->buffer = static_cast<uint32_t>(p.buffers.size() - 1);
  p.views.back()->dtype = plan::DType::bf16;
  uint32_t rounded = static_cast<uint32_t>(p.views.size() - 1);
  keep(*p.parameters[0], "weight", rounded);
  // Looks up in the rounded weights; the result shows in the gradient view.
  opOf<plan::EmbeddingT>(*forwardOf(p)[0]).table = rounded;
  options.metrics = fresh("metrics");
  options.steps = 1;
  absl::Status status = runPlan(plan);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(runPlan(tinyPlan()).ok());
  auto both = lines(options.metrics); // a log grows
  ASSERT_EQ(both.size(), 2u);
  double inBf16 = both[0]["loss"], inF32 = both[1]["loss"];
  EXPECT_NE(inBf16, inF32);
  EXPECT_NEAR(inBf16, inF32, 0.1 / 256); // values below 0.1, 8 bits
}

TEST_F(Run, nanInAWeightStopsBeforeTheOptimizer) {
  std::vector<float> weights(256 * 8, 0.5f);
  weights['k' * 8] = NAN;
  options.init = temporary("nan.safetensors");
  std::vector<TensorToWrite> tensors = {
      {"wte.weight", {256, 8}, weights.data()}};
  ASSERT_TRUE(writeSafeTensors(options.init, tensors).ok());
  expectExit(
      tinyPlan({.ranks = 2}), 65,
      "the loss of step 0 is nan; all ranks stopped before the optimizer. "
      "parameter \"wte.weight\" of rank 0 held a NaN before the step");
}

TEST_F(Run, infinityOnOneRankIsTracedToItsInstruction) {
  PlanT plan = tinyPlan({.ranks = 4});
  plan.programs.push_back(std::make_unique<ProgramT>(*plan.programs[0]));
  setPrograms(plan, {0, 0, 1, 0});
  opOf<plan::FillT>(*onceOf(*plan.programs[1])[0]).value = INFINITY;
  expectExit(plan, 65,
             "the first is a NaN in \"loss\", written by instruction \"mean\" "
             "(Matmul, "
             "forward[1]) in microbatch 0 on rank 2");
}

TEST_F(Run, aDivergingRunNamesTheStep) {
  options.learningRate.rate = 3e38;
  PlanT plan = tinyPlan();
  opOf<plan::FillT>(*onceOf(*plan.programs[0])[0]).value = 1;
  expectExit(
      plan, 65,
      "the loss of step 1 is inf; all ranks stopped before the optimizer. "
      "parameter \"wte.weight\" of rank 0 held an infinity");
}

/// The tiny plan with a gradient of `share` for each token; in f32 it passes
/// the largest number before the loss does.
PlanT withGradients(float share, uint32_t ranks) {
  PlanT plan = tinyPlan({.ranks = ranks});
  opOf<plan::FillT>(*onceOf(*plan.programs[0])[0]).value = share;
  return plan;
}

TEST_F(Run, anInfiniteGradientChangesNoWeight) {
  options.steps = 0;
  std::string initial = saved(tinyPlan());
  options.steps = 1;
  for (uint32_t ranks : {1u, 2u, 4u}) {
    std::remove(options.save.c_str());
    options.metrics = fresh("metrics");
    expectExit(withGradients(1e38f / static_cast<float>(ranks), ranks), 65,
               "the gradient norm of step 0 is inf, its loss is ");
    expectExit(withGradients(1e38f / static_cast<float>(ranks), ranks), 65,
               "all ranks stopped before the optimizer. the gradient of "
               "\"wte.weight\" of rank 0 holds an infinity; the first is an "
               "infinity in \"wte gradient\", written by instruction ");
    EXPECT_EQ(readFile(options.save), initial) << ranks;
    auto last = lines(options.metrics).back();
    EXPECT_EQ(last["grad_norm"], "Infinity");
    EXPECT_TRUE(last["loss"].is_number());
    for (const char *unknown : {"step_ms", "tokens_per_s", "mfu"})
      EXPECT_TRUE(last[unknown].is_null()) << unknown;
    EXPECT_EQ(last["tokens"], 0);
  }
}

TEST_F(Run, squaresThatOverflowAreNotClippedToNothing) {
  expectExit(withGradients(1e30f, 2), 65,
             "every gradient is finite, but not the sum of their squares; the "
             "first is an infinity in \"gradient norm\"");
}

// What became bad later leaves the weights of the step before.
TEST_F(Run, aBadStepKeepsTheWeightsBeforeIt) {
  options.learningRate.rate = 1e36;
  options.steps = 9;
  absl::Status status = runPlan(withGradients(1, 2));
  EXPECT_EQ(exitCodeOf(status), 65) << status;
  std::string text(status.message());
  size_t at = text.find("of step ");
  ASSERT_NE(at, std::string::npos) << text;
  options.steps = std::stoull(text.substr(at + 8));
  std::string kept = readFile(options.save);
  EXPECT_EQ(saved(withGradients(1, 2)), kept) << text;
}

TEST_F(Run, metricsThatCannotBeWrittenLeaveWeights) {
  options.metrics = "/dev/full";
  for (uint32_t ranks : {1u, 2u})
    for (uint64_t steps : {1u, 100u}) {
      std::remove(options.save.c_str());
      options.steps = steps;
      expectExit(tinyPlan({.ranks = ranks}), 74, "No space left");
      EXPECT_EQ(tensor(options.save).size(), 2048u);
    }
  options.save = "/dev/full"; // and then the second
  expectExit(tinyPlan(), 73, "/dev/full");
}

// Of a file above 64 MiB not every id is looked at before the first step.
TEST_F(Run, aBadTokenOnTheWayLeavesWeights) {
  options.data = {temporary("large")};
  options.dataType = "u16";
  options.tokenizer.clear();
  std::vector<uint16_t> bad(1 << 19, 65535);
  std::ofstream file(options.data[0], std::ios::binary);
  file.seekp(1 << 20); // the second of 128 pieces, which is not looked at
  file.write(reinterpret_cast<const char *>(bad.data()), 1 << 20);
  file.seekp((128 << 20) - 2);
  file.write("\0\0", 2);
  file.close();
  options.steps = 10000;
  for (uint32_t ranks : {1u, 2u}) {
    std::remove(options.save.c_str());
    expectExit(tinyPlan({.ranks = ranks}), 65, ": token ");
    absl::Status status = runPlan(tinyPlan({.ranks = ranks}));
    EXPECT_EQ(status.message().substr(0, 5), "step ") << status;
    EXPECT_NE(status.message().find("is 65535, expected 0 to 255"),
              std::string::npos)
        << status;
    for (float value : tensor(options.save))
      ASSERT_TRUE(std::isfinite(value));
  }
  std::remove(options.data[0].c_str());
}

TEST_F(Run, stopEndsAfterTheStepAndSaves) {
  std::atomic<int> stop{SIGTERM};
  options.stop = &stop;
  options.steps = 1000000;
  options.metrics = fresh("metrics");
  std::remove(options.save.c_str());
  // Before the first step there is nothing to keep.
  expectExit(tinyPlan({.ranks = 2}), 143,
             "stopped by SIGTERM before the first step: nothing is saved");
  EXPECT_FALSE(std::ifstream(options.save).good());
}

TEST_F(Run, metricsHaveTheContractsKeys) {
  options.metrics = fresh("metrics");
  options.peakTflops = 1;
  ASSERT_TRUE(runPlan(tinyPlan({.ranks = 2})).ok());
  auto last = lines(options.metrics).back();
  std::vector<std::string> keys;
  for (const auto &[key, value] : last.items())
    keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{
                      "comm_ms", "compute_ms", "grad_norm", "idle_ms", "loss",
                      "lr", "memory_peak_bytes", "mfu", "mfu_palm", "run",
                      "step", "step_ms", "time", "tokens", "tokens_per_s"}));
  auto first = lines(options.metrics).front();
  EXPECT_EQ(last["run"], first["run"]);
  EXPECT_GE(last["time"].get<double>(), first["time"].get<double>());
  EXPECT_NEAR(last["time"].get<double>(),
              static_cast<double>(std::time(nullptr)), 60);
  EXPECT_EQ(last["step"], 2);
  EXPECT_EQ(last["tokens"], 3 * 8 * 16);
  EXPECT_GT(last["mfu"].get<double>(), 0);
  EXPECT_NEAR(last["mfu_palm"].get<double>(), 3 * last["mfu"].get<double>(),
              1e-4 * last["mfu"].get<double>());
  EXPECT_NEAR(last["compute_ms"].get<double>() + last["comm_ms"].get<double>() +
                  last["idle_ms"].get<double>(),
              last["step_ms"].get<double>(),
              1e-4 * last["step_ms"].get<double>());
}

TEST_F(Run, traceHasATrackPerRankAndStream) {
  options.trace = temporary("trace");
  options.traceSteps = 2;
  ASSERT_TRUE(runPlan(tinyPlan({.ranks = 2})).ok());
  auto trace = nlohmann::json::parse(readFile(options.trace));
  int compute = 0, moves = 0, names = 0;
  for (const auto &event : trace["traceEvents"])
    if (event["ph"] == "M")
      names += event["name"] == "thread_name";
    else if (event["ph"] == "X")
      (event["tid"] == 1 ? moves : compute) += 1;
  EXPECT_EQ(names, 6);
  EXPECT_EQ(moves, 2 * 2 * 2);             // ranks, steps, collectives
  EXPECT_EQ(compute, 2 * 2 * (3 * 2 + 2)); // three a microbatch, two in update
}

// Each instruction lies in its step, and a step ends where the next begins.
TEST_F(Run, traceHasSteps) {
  options.trace = temporary("trace");
  options.traceSteps = 2;
  ASSERT_TRUE(runPlan(tinyPlan({.ranks = 2})).ok());
  auto trace = nlohmann::json::parse(readFile(options.trace));
  std::map<std::pair<int, std::string>, std::pair<double, double>> steps;
  for (const auto &event : trace["traceEvents"])
    if (event["ph"] == "B" || event["ph"] == "E") {
      auto &[begin, end] = steps[{event["pid"], event["name"]}];
      (event["ph"] == "B" ? begin : end) = event["ts"];
    }
  ASSERT_EQ(steps.size(), 2u * 2);
  for (int rank : {0, 1})
    EXPECT_EQ((steps[{rank, "step 0"}].second),
              (steps[{rank, "step 1"}].first));
  for (const auto &event : trace["traceEvents"])
    if (event["ph"] == "X") {
      auto [begin, end] =
          steps[{event["pid"], "step " + event["args"]["step"].dump()}];
      double from = event["ts"], length = event["dur"];
      EXPECT_GE(from, begin - 0.002) << event;
      EXPECT_LE(from + length, end + 0.002) << event;
    }
}

TEST_F(Run, profileCountsEveryInstruction) {
  options.profileJson = temporary("profile");
  options.profile = true;
  ASSERT_TRUE(runPlan(tinyPlan({.ranks = 2})).ok());
  auto rows =
      nlohmann::json::parse(readFile(options.profileJson))["instructions"];
  ASSERT_EQ(rows.size(), 7u);
  for (const auto &row : rows) {
    EXPECT_EQ(row["calls_per_step"], row["phase"] == "forward" ? 2 : 1);
    EXPECT_GT(row["ms_per_step"].get<double>(), 0);
    EXPECT_EQ(row.contains("product"), row["operation"] == "Matmul");
    if (row["name"] == "mean")
      EXPECT_EQ(row["product"],
                nlohmann::json::parse(
                    R"({"batch":1,"m":1,"n":1,"k":256,"lhs":"f32","rhs":"f32",
                        "dst":"f32","lhs_transposed":false,
                        "rhs_transposed":false,"dst_transposed":false,
                        "bias":false,"epilogue":"none",
                        "adds":"after_first"})"));
  }
}

TEST_F(Run, refusesWhatCannotWork) {
  options.save = "/absent/folder/out.safetensors";
  expectExit(tinyPlan(), 73, "/absent/folder");
  options.save.clear();
  options.metrics = "/absent/metrics";
  expectExit(tinyPlan(), 73, "/absent/metrics");
  options.metrics.clear();
  options.ranks = 3;
  expectExit(tinyPlan(), 64, "-n is 3, the plan is for 1 rank");
  options.ranks = 0;
  options.data = {temporary("absent")};
  expectExit(tinyPlan(), 66, "absent");
  options.data.clear();
  expectExit(tinyPlan(), 64, "--data is needed");
  options.steps = 0;
  options.saveGradients = temporary("g");
  expectExit(tinyPlan(), 64, "at least one step");
  options.saveGradients.clear();
  options.timeoutSeconds = 0;
  expectExit(tinyPlan(), 64, "--timeout is 0, expected a number from 0.001");
  options.timeoutSeconds = 60;
  options.learningRate.minimum = 0.1;
  expectExit(tinyPlan(), 64, "--min-lr is given, but --schedule constant");
  options.learningRate.minimum = 0;
  options.learningRate.decaySteps = 2;
  expectExit(tinyPlan(), 64, "--decay-steps is given, but");
  options.learningRate.shape = LearningRate::Shape::linear;
  EXPECT_TRUE(runPlan(tinyPlan()).ok());
}

TEST_F(Run, refusesGradientsThatAreNotKept) {
  options.saveGradients = temporary("g");
  PlanT plan = tinyPlan();
  ProgramT &program = *plan.programs[0];
  for (const auto &state : program.parameters[0]->states)
    if (state->role == plan::StateRole::gradient)
      program.buffers[program.views[state->part->view]->buffer]->persistent =
          false;
  expectExit(plan, 65, "does not keep the gradient of \"wte.weight\"");
}

TEST_F(Run, refusesAnotherMachine) {
  PlanT plan = tinyPlan();
  plan.cpu_features = {"sse2", "quantum", "amx-quantum"};
  expectExit(plan, 69, "lacks \"quantum\", \"amx-quantum\"");
  plan.cpu_features = {"sse2", "sse3", "cx8", "64bit", "fxsr"};
  EXPECT_TRUE(runPlan(plan).ok());
  expectExit(tinyGpuPlan(), 69, "cuda");
}

TEST_F(Run, refusesWhatDoesNotFitInMemory) {
  PlanT plan = tinyPlan({.ranks = 4});
  plan.programs[0]->arena_bytes = uint64_t{1} << 50;
  expectExit(plan, 71, "needs 4096.0 TiB (4 ranks of up to 1024.0 TiB each)");
  plan.programs[0]->arena_bytes = ~uint64_t{0};
  expectExit(plan, 65, "64 bits");
}

TEST_F(Run, growsByWhatWasPlanned) {
  PlanT plan = tinyPlan({.ranks = 2});
  plan.programs[0]->arena_bytes = 128u << 20;
  options.metrics = fresh("metrics");
  absl::Status status = runPlan(plan);
  ASSERT_TRUE(status.ok()) << status;
  double planned = 2.0 * (128u << 20);
  double first = lines(options.metrics).front()["memory_peak_bytes"];
  double last = lines(options.metrics).back()["memory_peak_bytes"];
  EXPECT_GE(last, planned);
  // Threads' stacks and the allocator, not training: the first step has it all.
  EXPECT_LT(last, planned + (16u << 20));
  EXPECT_LT(last - first, 1u << 20);
}

TEST_F(Run, measuresThePeak) {
  options.measurePeak = true;
  options.metrics = fresh("metrics");
  options.steps = 1;
  ASSERT_TRUE(runPlan(tinyPlan()).ok());
  EXPECT_TRUE(lines(options.metrics)[0]["mfu"].is_number());
}

TEST(Schedule, shapes) {
  LearningRate lr{LearningRate::Shape::cosine, 1.0, 0.1, 4, 15};
  EXPECT_DOUBLE_EQ(learningRateAt(lr, 0), 0.25);
  EXPECT_DOUBLE_EQ(learningRateAt(lr, 3), 1.0);
  EXPECT_DOUBLE_EQ(learningRateAt(lr, 4), 1.0);
  EXPECT_DOUBLE_EQ(learningRateAt(lr, 9), 0.55);
  EXPECT_DOUBLE_EQ(learningRateAt(lr, 14), 0.1); // the last of 15 steps
  EXPECT_DOUBLE_EQ(learningRateAt(lr, 1000), 0.1);
  lr.shape = LearningRate::Shape::linear;
  EXPECT_DOUBLE_EQ(learningRateAt(lr, 6), 0.82);
  lr.shape = LearningRate::Shape::warmupStableDecay;
  lr.stableSteps = 5;
  EXPECT_DOUBLE_EQ(learningRateAt(lr, 3), 1.0);
  EXPECT_DOUBLE_EQ(learningRateAt(lr, 9), 1.0);
  EXPECT_DOUBLE_EQ(learningRateAt(lr, 10), 0.82); // 4, 5 and 6 steps
  EXPECT_DOUBLE_EQ(learningRateAt(lr, 14), 0.1);
  EXPECT_DOUBLE_EQ(learningRateAt(lr, 1000), 0.1);
  lr.shape = LearningRate::Shape::constant;
  EXPECT_DOUBLE_EQ(learningRateAt(lr, 1000), 1.0);
}

TEST_F(Run, aDecayEndsAtTheLastStepWithTheLeastRate) {
  options.learningRate = {LearningRate::Shape::cosine, 1.0, 0.25, 1, 0};
  options.metrics = fresh("metrics");
  absl::Status status = runPlan(tinyPlan());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(lines(options.metrics).back()["lr"], 0.25);
  // It would fall to the least at once.
  options.learningRate.warmupSteps = options.learningRate.decaySteps = 2;
  expectExit(tinyPlan(), 64, "--decay-steps is 2, with 2 --warmup-steps");
  // A run that ends in its warmup comes to no decay: a warning, also with the
  // number of steps that is the default.
  options.learningRate.warmupSteps = 10;
  for (uint64_t decay : {0, 3}) {
    options.learningRate.decaySteps = decay;
    testing::internal::CaptureStderr();
    EXPECT_TRUE(runPlan(tinyPlan()).ok());
    EXPECT_NE(testing::internal::GetCapturedStderr().find(
                  "--warmup-steps is 10, and the run has 3 steps: the learning "
                  "rate never reaches --lr"),
              std::string::npos);
  }
}

TEST(Cores, areDealtInBlocks) {
  std::vector<int> cpus = {2, 3, 5, 7, 8};
  auto shares = shareCores(cpus, 2, 0, true);
  EXPECT_EQ(shares[0].threads, 2);
  EXPECT_EQ(shares[0].cpus, (std::vector<int>{2, 3}));
  EXPECT_EQ(shares[1].cpus, (std::vector<int>{5, 7}));
  EXPECT_TRUE(shareCores(cpus, 2, 0, false)[0].cpus.empty());
  EXPECT_TRUE(shareCores(cpus, 2, 3, true)[1].cpus.empty());
  EXPECT_EQ(shareCores(cpus, 9, 0, true)[8].threads, 1);
  EXPECT_TRUE(shareCores(cpus, 9, 0, true)[8].cpus.empty());
}

// Numbers that no machine has.
TEST(Cores, areClaimedByOneRunOnly) {
  std::vector<int> cpus = {90001, 90002, 90003, 90004};
  CoreClaims second;
  {
    CoreClaims first;
    auto shares = first.share(cpus, 2, 1, true);
    EXPECT_EQ(pinnedCpus(shares), (std::vector<int>{90001, 90003}));
    // The rest is free.
    EXPECT_EQ(pinnedCpus(second.share(cpus, 2, 1, true)),
              (std::vector<int>{90002, 90004}));
    EXPECT_FALSE(second.areTooFew());
    CoreClaims third;
    shares = third.share(cpus, 2, 0, true);
    EXPECT_TRUE(pinnedCpus(shares).empty());
    EXPECT_EQ(shares[1].threads, 2);
    EXPECT_TRUE(third.areTooFew());
    EXPECT_TRUE(third.claim({}));
  }
  EXPECT_TRUE(second.claim({90001, 90003})); // given back
}

} // namespace
} // namespace meshwork::runtime::test
