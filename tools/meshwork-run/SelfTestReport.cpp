#include "tools/meshwork-run/SelfTestReport.h"
#include "meshwork/Text/Escape.h"
#include "runtime/io/Files.h"
#include "runtime/io/IoStatus.h"
#include "runtime/selftest/SelfTest.h"
#include "tools/meshwork-run/MachineFile.h"
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace meshwork {
namespace {
using Json = nlohmann::ordered_json;
using runtime::SelfTest;
constexpr int formatVersion = 1;

/// JSON has no infinity.
Json numberOf(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json linksOf(const SelfTest &test, const runtime::MovesFound &moves) {
  Json all = Json::array();
  for (const auto *links : {&moves.withinHosts, &moves.betweenHosts})
    for (const runtime::PairLink &one : *links)
      all.push_back(
          {{"ranks", {one.from, one.to}},
           {"hosts", {test.hostOfRank[one.from], test.hostOfRank[one.to]}},
           {"latency_seconds", one.latency},
           {"bytes_per_second", one.bandwidth}});
  return all;
}

Json workOf(const SelfTest &test) {
  Json all = Json::array();
  for (const runtime::WorkRates &one : test.machine.ofRanks)
    all.push_back({{"f32_flops_per_second", one.f32.products},
                   {"bf16_flops_per_second", one.bf16.products},
                   {"f32_attention_flops_per_second", one.f32.attention},
                   {"bytes_per_second", one.kernelBytes}});
  return all;
}

Json collectivesOf(const runtime::MovesFound &moves) {
  Json all = Json::array();
  for (const runtime::CollectiveCheck &one : moves.collectives)
    all.push_back({{"kind", plan::EnumNameCollectiveKind(one.kind)},
                   {"reduction", plan::EnumNameReduction(one.reduction)},
                   {"type", plan::EnumNameDType(one.dtype)},
                   {"axes", one.axes},
                   {"ranks", one.ranks},
                   {"bytes", one.bytes},
                   {"seconds", one.seconds},
                   {"wrong", one.wrong}});
  return all;
}

Json gpusOf(const SelfTest &test) {
  const runtime::GpusFound &gpus = test.gpus;
  Json work = Json::array();
  for (const runtime::GpuRates &one : gpus.work)
    work.push_back({{"f32_flops_per_second", one.f32 * 1e12},
                    {"bf16_flops_per_second", one.bf16 * 1e12},
                    {"copy_bytes_per_second", one.copyBytes}});
  return {{"name", gpus.name},
          {"not_tried", gpus.notTried},
          {"work", work},
          {"links", linksOf(test, gpus.moves)},
          {"collectives", collectivesOf(gpus.moves)}};
}

Json plansOf(const SelfTest &test) {
  Json all = Json::array();
  for (const runtime::PlanCheck &one : test.plans)
    all.push_back({{"name", one.name},
                   {"axes", one.axes},
                   {"seconds", one.seconds},
                   {"difference", numberOf(one.difference)},
                   {"tensor", one.tensor},
                   {"not_tried", one.notTried}});
  return all;
}

Json reportOf(const SelfTest &test) {
  return {{"format_version", formatVersion},
          {"meshwork", MESHWORK_VERSION},
          {"ranks", test.ranks},
          {"host_of_rank", test.hostOfRank},
          {"processes", test.areProcesses},
          {"machine", machineText(test.machine)},
          {"work", workOf(test)},
          {"links", linksOf(test, test.moves)},
          {"mesh", test.tried.mesh},
          {"collectives", collectivesOf(test.moves)},
          {"gpus", gpusOf(test)},
          {"plans", plansOf(test)},
          {"wrong", test.wrong()},
          {"slow", test.slow()}};
}

class Report : public runtime::SelfTestListener {
public:
  explicit Report(const std::string &path) : path(path) {}

  /// What cannot be written is told before minutes have passed.
  absl::Status begin() override {
    absl::StatusOr<runtime::OutputFile> opened =
        runtime::OutputFile::create(path);
    if (!opened.ok())
      return runtime::fromIo(opened.status());
    file.emplace(*std::move(opened));
    return absl::OkStatus();
  }

  void tell(const std::string &line) override {
    std::puts(printable(line).c_str());
    std::fflush(stdout);
  }

  absl::Status deliver(const SelfTest &test) override {
    if (!test.gpus.notTried.empty())
      warn("nothing between GPUs was tried: " + test.gpus.notTried);
    for (const runtime::PlanCheck &one : test.plans)
      if (!one.notTried.empty())
        warn(one.name + " was not tried: " + one.notTried);
    for (const std::string &one : test.slow())
      warn(one);
    std::string text = reportOf(test).dump(2) + "\n";
    absl::Status status = file->write(text.data(), text.size());
    if (status.ok())
      status = file->commit();
    if (status.ok())
      tell("written to " + path);
    return runtime::fromIo(status);
  }

private:
  static void warn(const std::string &line) {
    std::fprintf(stderr, "meshwork-run: warning: %s\n",
                 printable(line).c_str());
  }
  const std::string &path;
  std::optional<runtime::OutputFile> file;
};
} // namespace

absl::Status selfTestTo(const std::string &path,
                        const runtime::RunOptions &options) {
  Report report(path);
  return runtime::selfTest(options, report);
}

} // namespace meshwork
