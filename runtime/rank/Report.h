// What the user sees of a run, and the metrics file.
#pragma once

#include "absl/status/status.h"
#include "meshwork/Plan/Plan.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/io/LineLog.h"
#include "runtime/rank/EventLog.h"
#include "runtime/rank/Metric.h"
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace meshwork::runtime {

struct StepReport {
  uint64_t step; // from 0
  float loss;    // mean over the step's global tokens
  std::optional<float> gradNorm;
  double learningRate;
  // Means over ranks; the first is the sum of the others.
  double stepMs, computeMs, commMs, idleMs;
  std::optional<float> saturated = {}; // tensors, of the rank that has most
  bool isSkipped = false;              // it made no update, and the run went on
  std::optional<uint64_t> tokens = {}; // of samples that have padding: without
  std::vector<Metric> metrics = {};
};

/// What an evaluation found with the weights that a step left.
struct EvaluationReport {
  uint64_t step;
  double loss;    // mean over targets
  double targets; // so many count
  double ms;
};

/// Every line of the metrics begins so.
constexpr char metricsBegin[] = "{\"step\":";

struct ReportOptions {
  uint64_t steps;
  std::optional<uint32_t> logEvery;
  bool plainLines;       // also on a terminal: it may be a launcher's
  double peakTflops;     // 0: unknown
  uint64_t baseBytes;    // resident before arenas
  uint64_t plannedBytes; // arenas and workspaces of all ranks
  bool isQuiet = false;  // nothing on stdout
};

/// Where the numbers of steps go, beside the terminal; either may be null.
struct MetricLogs {
  std::unique_ptr<LineLog> lines;
  std::unique_ptr<EventLog> events = nullptr; // for TensorBoard
};

/// One step at a time, from any thread; notes at any time.
class Reporter {
public:
  Reporter(const plan::Plan &plan, ReportOptions options, MetricLogs logs);

  /// Before the first step of a run that resumes. Lines of the steps that it
  /// repeats leave the log, so that it has one of each (LineLog::takeOff), and
  /// TensorBoard drops them (EventLog::purgeFrom).
  absl::Status startAt(const Progress &at);
  /// Lines that were written are durable after this; warns where not.
  void syncMetrics();
  /// Known only after ranks have started.
  void setPeakTflops(double tflops) { options.peakTflops = tflops; }
  /// Lines of metrics (flushed), then the terminal. 74 when a write fails.
  absl::Status onStep(const StepReport &report);
  /// A metrics line alone, with neither times nor tokens: a step that changed
  /// no weight, since its loss or norm is not finite. The run's end tells of
  /// it.
  void onRefusedStep(const StepReport &report);
  /// A metrics line of its own, and a line. 74 when a write fails.
  absl::Status onEvaluation(const EvaluationReport &report);
  /// A line of its own.
  void note(const std::string &line);
  /// On stderr: the run goes on.
  void warn(const std::string &line);
  /// Ends the progress bar and prints the run's sums.
  void finish();

private:
  /// Of `flops` a step; nothing where the time or the peak is not known.
  std::optional<double> mfu(double flops, double stepMs) const;
  std::string mfuText(double stepMs) const;
  uint64_t tokensOf(const StepReport &report) const {
    return report.tokens.value_or(tokensPerStep);
  }
  absl::Status takeLinesOff(uint64_t step);
  absl::Status writeMetrics(const StepReport &report);
  absl::Status writeLine(const std::string &line);
  std::string metricsLine(const StepReport &report) const;
  bool isLineDue(const StepReport &report);
  std::string speedText(const StepReport &report, double ms) const;
  void showBar(const StepReport &report);
  void showLine(const StepReport &report);

  std::mutex mutex; // of what is shown
  ReportOptions options;
  uint64_t tokensPerStep, tokensBefore = 0, tokensSeen = 0;
  // Of all ranks. The model's own, with the pairs that a causal mask leaves,
  // and by PaLM's formula: 6 N + 12 L H Q T a token.
  double flopsPerStep, palmFlopsPerStep;
  bool onGpu;
  const std::string run; // its name in metrics
  MetricLogs logs;
  bool terminal, barShown = false;
  uint64_t stepsSeen = 0;
  double totalMs = 0, recentMs = 0, shownAtMs = -1e9, lineAtMs = -1e9;
  float firstLoss = 0, lastLoss = 0;
  bool seesLoss = false;
};

} // namespace meshwork::runtime
