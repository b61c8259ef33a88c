#include "runtime/rank/Report.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "meshwork/Text/Escape.h"
#include "runtime/io/IoStatus.h"
#include "runtime/machine/Clock.h"
#include "runtime/machine/Memory.h"
#include "runtime/rank/Json.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <random>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace meshwork::runtime {
namespace {
constexpr double redrawMs = 100, lineMs = 10000;

std::string rateText(double perSecond) {
  return perSecond >= 1e4 ? absl::StrFormat("%.1fk", perSecond / 1e3)
                          : absl::StrFormat("%.0f", perSecond);
}

/// What is no number has a sign bit, which printf shows.
double withoutSign(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

std::string durationText(double seconds) {
  uint64_t s = static_cast<uint64_t>(seconds + 0.5);
  return s >= 3600
             ? absl::StrFormat("%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60)
             : absl::StrFormat("%d:%02d", s / 60, s % 60);
}

/// Of a moment in seconds since 1970, where this machine is.
std::string clockText(double seconds) {
  auto moment = static_cast<std::time_t>(seconds);
  std::tm local = {};
  ::localtime_r(&moment, &local);
  return absl::StrFormat("%02d:%02d:%02d", local.tm_hour, local.tm_min,
                         local.tm_sec);
}

std::string normText(const StepReport &r) {
  return absl::StrCat(
      r.gradNorm ? absl::StrFormat("  norm %.4g", withoutSign(*r.gradNorm))
                 : std::string(),
      r.saturated.value_or(0) > 0
          ? absl::StrFormat("  %.0f saturated in FP8", *r.saturated)
          : std::string(),
      absl::StrJoin(r.metrics, "", [](std::string *to, const Metric &one) {
        if (one.shape.empty()) // Others are too long for a line.
          absl::StrAppendFormat(to, "  %s %.4g", one.name,
                                withoutSign(one.values[0]));
      }));
}

/// Arrays in arrays, as the shape says; takes what it writes from `values`.
std::string jsonArray(absl::Span<const int64_t> shape,
                      absl::Span<const float> &values) {
  if (shape.empty()) {
    float value = values.front();
    values.remove_prefix(1);
    return jsonNumber(value, 9);
  }
  std::string text = "[";
  for (int64_t i = 0; i < shape[0]; ++i)
    absl::StrAppend(&text, i ? "," : "", jsonArray(shape.subspan(1), values));
  return text + "]";
}

std::string jsonMetrics(const StepReport &r) {
  return absl::StrJoin(r.metrics, "", [](std::string *to, const Metric &one) {
    absl::Span<const float> values = one.values;
    absl::StrAppend(to, ",\"", one.name, "\":", jsonArray(one.shape, values));
  });
}
} // namespace

/// The second at which it began, and what tells it from others of that second.
static std::string newRun() {
  auto now = static_cast<std::time_t>(wallSeconds());
  std::tm utc = {};
  ::gmtime_r(&now, &utc);
  return absl::StrFormat("%04d%02d%02dT%02d%02d%02d-%08x", utc.tm_year + 1900,
                         utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                         utc.tm_sec, std::random_device()());
}

Reporter::Reporter(const plan::Plan &plan, ReportOptions given, MetricLogs to)
    : options(given),
      tokensPerStep(uint64_t{plan.global_batch()} * plan.sequence()),
      flopsPerStep(plan.model_flops_per_step()),
      palmFlopsPerStep(plan.palm_flops_per_step()),
      onGpu(plan.device() != plan::Device::cpu), run(newRun()),
      logs(std::move(to)),
      terminal(!options.plainLines && ::isatty(STDOUT_FILENO) == 1) {}

absl::Status Reporter::startAt(const Progress &at) {
  tokensBefore = at.tokens;
  if (at.step >= options.steps) // nothing is repeated
    return absl::OkStatus();
  if (logs.events)
    if (absl::Status purged = logs.events->purgeFrom(at.step); !purged.ok())
      return fromIo(purged);
  return logs.lines ? takeLinesOff(at.step) : absl::OkStatus();
}

absl::Status Reporter::takeLinesOff(uint64_t step) {
  absl::StatusOr<uint64_t> taken = logs.lines->takeOff(step);
  if (!taken.ok())
    return fromIo(taken.status());
  if (*taken > 0)
    note(absl::StrCat("metrics: ", *taken, " lines from step ", step,
                      " on are of a past that the run leaves, and now in ",
                      quote(logs.lines->replacedPath())));
  return absl::OkStatus();
}

void Reporter::syncMetrics() {
  absl::Status synced = logs.lines ? logs.lines->sync() : absl::OkStatus();
  if (logs.events)
    synced.Update(logs.events->sync());
  if (!synced.ok())
    warn(std::string(synced.message()));
}

std::optional<double> Reporter::mfu(double flops, double stepMs) const {
  if (options.peakTflops <= 0 || stepMs <= 0 || flops <= 0)
    return std::nullopt;
  return flops / (stepMs * 1e9 * options.peakTflops);
}

std::string Reporter::mfuText(double stepMs) const {
  std::optional<double> own = mfu(flopsPerStep, stepMs),
                        palm = mfu(palmFlopsPerStep, stepMs);
  return absl::StrCat(
      own ? absl::StrFormat("  mfu %.1f%%", 100 * *own) : std::string(),
      palm ? absl::StrFormat(" (PaLM's %.1f%%)", 100 * *palm) : std::string());
}

absl::Status Reporter::onStep(const StepReport &report) {
  std::lock_guard<std::mutex> lock(mutex);
  if (stepsSeen++ == 0) {
    recentMs = report.stepMs;
  }
  if (!report.isSkipped) {
    if (!seesLoss)
      firstLoss = report.loss;
    lastLoss = report.loss;
    seesLoss = true;
  }
  tokensSeen += tokensOf(report);
  totalMs += report.stepMs;
  recentMs += 0.2 * (report.stepMs - recentMs);
  if (absl::Status status = writeMetrics(report); !status.ok())
    return status;
  if (isLineDue(report))
    showLine(report);
  if (terminal && !options.isQuiet)
    showBar(report);
  return absl::OkStatus();
}

void Reporter::onRefusedStep(const StepReport &report) {
  // What cannot be written takes nothing from the error that is told.
  writeMetrics(report).IgnoreError();
}

absl::Status Reporter::writeMetrics(const StepReport &r) {
  return logs.lines || logs.events ? writeLine(metricsLine(r))
                                   : absl::OkStatus();
}

absl::Status Reporter::writeLine(const std::string &line) {
  absl::Status written =
      logs.lines ? logs.lines->append(line) : absl::OkStatus();
  if (logs.events)
    written.Update(logs.events->append(line));
  return fromIo(written);
}

std::string Reporter::metricsLine(const StepReport &r) const {
  bool timed = r.stepMs > 0;
  auto time = [&](double value) {
    return jsonNumber(timed ? std::optional(value) : std::nullopt, 6);
  };
  uint64_t peak = peakResidentBytes();
  return absl::StrFormat(
      "%s%d,\"loss\":%s,\"grad_norm\":%s,\"lr\":%s,\"tokens\":%d,"
      "\"tokens_per_s\":%s,\"step_ms\":%s,\"compute_ms\":%s,\"comm_ms\":%s,"
      "\"idle_ms\":%s,\"mfu\":%s,\"mfu_palm\":%s,\"memory_peak_bytes\":%d%s%s%"
      "s,\"time\":%.3f,\"run\":\"%s\"}",
      metricsBegin, r.step, jsonNumber(r.loss, 9), jsonNumber(r.gradNorm, 9),
      jsonNumber(r.learningRate, 9), tokensBefore + tokensSeen,
      time(static_cast<double>(tokensOf(r)) / r.stepMs * 1e3), time(r.stepMs),
      time(r.computeMs), time(r.commMs), time(r.idleMs),
      jsonNumber(mfu(flopsPerStep, r.stepMs), 6),
      jsonNumber(mfu(palmFlopsPerStep, r.stepMs), 6),
      peak > options.baseBytes ? peak - options.baseBytes : 0,
      r.saturated ? absl::StrFormat(",\"fp8_saturated\":%.0f", *r.saturated)
                  : std::string(),
      jsonMetrics(r), r.isSkipped ? ",\"skipped\":true" : "", wallSeconds(),
      run);
}

/// A line of its own in the metrics.
absl::Status Reporter::onEvaluation(const EvaluationReport &r) {
  note(absl::StrFormat(
      "%sevaluation loss %.6f, perplexity %.4g, of %.0f targets in %s",
      options.steps > 0 ? absl::StrFormat("step %d: ", r.step) : "",
      withoutSign(r.loss), withoutSign(std::exp(r.loss)), r.targets,
      r.ms < 1e4 ? absl::StrFormat("%.1f ms", r.ms)
                 : durationText(r.ms / 1e3)));
  return writeLine(absl::StrFormat(
      "%s%d,\"eval_loss\":%s,\"eval_targets\":%.0f,\"eval_ms\":%s,"
      "\"time\":%.3f,\"run\":\"%s\"}",
      metricsBegin, r.step, jsonNumber(r.loss, 9), r.targets,
      jsonNumber(r.ms, 6), wallSeconds(), run));
}

bool Reporter::isLineDue(const StepReport &r) {
  if (options.isQuiet || (terminal && !options.logEvery))
    return false;
  bool isDue = options.logEvery ? r.step % *options.logEvery == 0
                                : totalMs - lineAtMs >= lineMs;
  if (isDue) // by time: each ten seconds of steps
    lineAtMs = totalMs;
  return isDue || r.step + 1 == options.steps;
}

/// With what the process holds now, and how long the rest of the run will take.
std::string Reporter::speedText(const StepReport &r, double ms) const {
  return absl::StrFormat(
      "%s tokens/s%s  %s  eta %s",
      rateText(static_cast<double>(tokensOf(r)) / ms * 1e3), mfuText(ms),
      bytesText(residentBytes()),
      durationText(recentMs / 1e3 *
                   static_cast<double>(options.steps - r.step - 1)));
}

void Reporter::showBar(const StepReport &r) {
  bool last = r.step + 1 == options.steps;
  if (!last && totalMs - shownAtMs < redrawMs)
    return;
  shownAtMs = totalMs;
  constexpr uint64_t width = 12;
  uint64_t filled = (r.step + 1) * width / options.steps;
  std::string line = absl::StrFormat(
      "step %d/%d [%s%s] loss %.4f%s  lr %.3g  %s", r.step, options.steps,
      std::string(filled, '#'), std::string(width - filled, '.'),
      withoutSign(r.loss), normText(r), r.learningRate, speedText(r, recentMs));
  // A line that wraps could not be drawn over.
  winsize window = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
    line.resize(std::min<size_t>(line.size(), window.ws_col - 1));
  std::printf("\r%s\x1b[K", line.c_str());
  std::fflush(stdout);
  barShown = true;
}

void Reporter::showLine(const StepReport &r) {
  std::printf("%sstep %llu/%llu  loss %.6f%s  lr %.3g  %.1f ms  %s  %s\n",
              std::exchange(barShown, false) ? "\r\x1b[K" : "",
              static_cast<unsigned long long>(r.step),
              static_cast<unsigned long long>(options.steps),
              withoutSign(r.loss), normText(r).c_str(), r.learningRate,
              r.stepMs, speedText(r, r.stepMs).c_str(),
              clockText(wallSeconds()).c_str());
  std::fflush(stdout);
}

/// The bar is drawn again by the next step.
void Reporter::note(const std::string &line) {
  std::lock_guard<std::mutex> lock(mutex);
  if (options.isQuiet)
    return;
  std::printf("%s%s\n", barShown ? "\r\x1b[K" : "", printable(line).c_str());
  std::fflush(stdout);
  barShown = false;
}

void Reporter::warn(const std::string &line) {
  std::lock_guard<std::mutex> lock(mutex);
  std::fprintf(stderr, "%smeshwork-run: warning: %s\n", barShown ? "\n" : "",
               printable(line).c_str());
  barShown = false;
}

void Reporter::finish() {
  if (options.isQuiet)
    return;
  if (barShown)
    std::printf("\n");
  uint64_t peak = peakResidentBytes();
  if (stepsSeen > 0)
    std::printf(
        "%llu steps in %s, loss %.4f -> %.4f, %s tokens/s%s\n",
        static_cast<unsigned long long>(stepsSeen),
        durationText(totalMs / 1e3).c_str(), withoutSign(firstLoss),
        withoutSign(lastLoss),
        rateText(static_cast<double>(tokensSeen) / totalMs * 1e3).c_str(),
        mfuText(totalMs / static_cast<double>(stepsSeen)).c_str());
  std::printf("memory: planned %s for arenas and scratch%s, peak growth "
              "measured %s resident%s: with what libraries take, without pages "
              "that were never touched\n",
              bytesText(options.plannedBytes).c_str(), onGpu ? " on GPUs" : "",
              bytesText(peak > options.baseBytes ? peak - options.baseBytes : 0)
                  .c_str(),
              onGpu ? " on the host" : "");
  std::fflush(stdout);
}

} // namespace meshwork::runtime
