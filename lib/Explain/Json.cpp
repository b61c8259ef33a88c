// The machine's form: README.md holds the meaning of each key.
#include "absl/strings/str_cat.h"
#include "lib/Explain/Choices.h"
#include "lib/Explain/Classes.h"
#include "lib/Explain/Collectives.h"
#include "lib/Explain/Context.h"
#include "lib/Explain/Explain.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/HostUse.h"
#include "lib/Explain/MeasuredJson.h"
#include "lib/Explain/Memory.h"
#include "lib/Explain/Pipeline.h"
#include "lib/Explain/Schedule.h"
#include "lib/Explain/Summary.h"
#include "lib/Explain/Unread.h"
#include "lib/Explain/WholeStep.h"
#include "lib/Plan/Boxes.h"
#include "lib/Plan/Views.h"
#include "meshwork/Text/Counted.h"
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace meshwork::explain {
namespace {
using Json = nlohmann::ordered_json;
/// Longer lists of actions are refused: a plan of a few bytes may claim four
/// thousand million microbatches.
constexpr uint64_t mostMicrobatches = uint64_t{1} << 20;
/// Rises when a reader of the keys that there are would be misled. New keys
/// leave it as it is.
constexpr int formatVersion = 1;

/// The most of each over all programs.
struct Most {
  std::array<uint64_t, numBufferKinds> ofKind{};
  uint64_t workspace = 0, peak = 0;
  void add(const MemoryUse &use) {
    for (size_t i = 0; i < numBufferKinds; ++i)
      ofKind[i] = std::max(ofKind[i], use.mostOfKind[i]);
    peak = std::max(peak, saturatingAdd(use.arenaBytes, use.libraryBytes));
    // What has no key of its own is scratch as well: inputs, tables, results.
    uint64_t rest = use.libraryBytes;
    for (auto kind : {plan::BufferKind::workspace, plan::BufferKind::input,
                      plan::BufferKind::constants, plan::BufferKind::results})
      rest = saturatingAdd(rest, use.mostOfKind[static_cast<size_t>(kind)]);
    workspace = std::max(workspace, rest);
  }
};

/// A whole number where it is one that a double holds exactly.
Json flops(double count) {
  bool exact = count >= 0 && count <= 0x1p53 && std::floor(count) == count;
  return exact ? Json(static_cast<uint64_t>(count)) : Json(count);
}

Json memoryOf(const Most &most) {
  Json object;
  for (auto kind : {plan::BufferKind::weights, plan::BufferKind::gradients,
                    plan::BufferKind::optimizer, plan::BufferKind::activations,
                    plan::BufferKind::communication})
    object[plan::EnumNameBufferKind(kind)] =
        most.ofKind[static_cast<size_t>(kind)];
  object["workspace"] = most.workspace;
  object["peak"] = most.peak;
  return object;
}

/// The most of all programs, and where there are several that of each.
Json memory(const plan::Plan &plan) {
  Most most;
  Json each = Json::array();
  for (const plan::Program *program : *plan.programs()) {
    MemoryUse use = measureMemory(*program, Listing(*program));
    Most own;
    own.add(use);
    most.add(use);
    each.push_back(memoryOf(own));
  }
  Json object = memoryOf(most);
  if (each.size() > 1)
    object["stages"] = std::move(each);
  return object;
}

Json host(const plan::Plan &plan) {
  HostUse most = mostHostUse(plan);
  return {{"bytes", most.kept},
          {"to_device_bytes_per_step", most.toDevice},
          {"to_host_bytes_per_step", most.back}};
}

Json mesh(const plan::Plan &plan) {
  Json axes = Json::array();
  for (const plan::Axis *axis : plan::orEmpty(plan.mesh()))
    axes.push_back({{"axis", axis->name() ? axis->name()->str() : ""},
                    {"size", axis->size()}});
  return axes;
}

/// Of several programs each says whose it is.
Json collectives(const plan::Plan &plan) {
  Json list = Json::array();
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    const plan::Program &program = *plan.programs()->Get(i);
    for (const Traffic &t : traffic(plan, program, Listing(program))) {
      list.push_back({{"kind", t.kind},
                      {"axis", t.axis},
                      {"phase", t.phase},
                      {"count", t.count},
                      {"bytes_sent_per_rank", t.bytesSentPerRank},
                      {"cause", t.cause},
                      {"annotations", t.annotations}});
      if (plan.programs()->size() > 1)
        list.back()["program"] = i;
    }
  }
  return list;
}

/// Those of all programs, in their order.
Json attention(const plan::Plan &plan) {
  Json list = Json::array();
  for (const plan::Program *program : *plan.programs())
    for (const SharedAttention &one : sharedAttention(plan, *program))
      list.push_back({{"method", one.method},
                      {"axes", one.axes},
                      {"block", one.block},
                      {"blocks_of_rank", one.blocksOfRank}});
  return list;
}

/// Of all programs, whose number each has.
Json unread(const plan::Plan &plan) {
  Json list = Json::array();
  for (uint32_t i = 0; i < plan.programs()->size(); ++i)
    for (const plan::Buffer *buffer : unreadStores(*plan.programs()->Get(i)))
      list.push_back({{"program", i},
                      {"value", buffer->name() ? buffer->name()->str() : ""},
                      {"bytes", buffer->size_bytes()}});
  return list;
}

Json orNull(std::optional<double> value) {
  return value ? Json(*value) : Json();
}

double milliseconds(double seconds) { return seconds * 1e3; }

Json estimate(const plan::Plan &plan) {
  std::optional<WholeStep> whole = wholeStep(plan);
  if (!whole)
    return {{"error", textOf(machineOf(plan).diagnostics)}};
  const Estimate &one = whole->estimate.programs[whole->estimate.longest];
  Json lists = Json::array(), kinds = Json::array(), exposed = Json::object();
  for (const Estimate::OfList &list : one.lists)
    lists.push_back({{"list", list.name},
                     {"runs", list.runs},
                     {"ms", milliseconds(list.seconds)}});
  for (const Estimate::OfKind &kind : one.kinds)
    kinds.push_back(
        {{"operation", kind.kind}, {"ms", milliseconds(kind.seconds)}});
  for (const auto &[axes, seconds] : *whole->exposed)
    exposed[axes] = milliseconds(seconds);
  StepEstimate processes =
      estimateStep(plan, whole->machine, cost::Ranks::processes);
  return {{"machine", whole->machine.name},
          {"step_ms", milliseconds(whole->estimate.step.seconds)},
          {"processes_step_ms", milliseconds(processes.step.seconds)},
          {"tokens_per_second", whole->tokensPerSecond},
          {"mfu", whole->mfu > 0 ? Json(whole->mfu) : Json()},
          {"exposed_ms", exposed},
          {"bubble_fraction", orNull(whole->bubble)},
          {"idle_fraction", orNull(whole->idle)},
          {"lists", lists},
          {"operations", kinds}};
}

std::string textOfJson(const Json &object) {
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}
} // namespace

std::string estimateJson(const plan::Plan &plan) {
  return textOfJson({{"format_version", formatVersion},
                     {"memory_per_rank_bytes", memory(plan)},
                     {"host_memory_per_rank", host(plan)},
                     {"choices", choicesJson(plan)},
                     {"estimate", estimate(plan)}});
}

Json summaryJson(const plan::Plan &plan, const Measured *measured) {
  Json object;
  object["format_version"] = formatVersion;
  object["ranks"] = numRanks(plan);
  object["mesh"] = mesh(plan);
  object["programs"] = plan.programs()->size();
  object["parameters"] = plan.parameter_count();
  object["flops_per_step"] = flops(plan.model_flops_per_step());
  object["memory_per_rank_bytes"] = memory(plan);
  object["host_memory_per_rank"] = host(plan);
  object["checkpoint_copy_bytes_per_rank"] = plan::mostSavedBytes(plan);
  object["collectives"] = collectives(plan);
  object["choices"] = choicesJson(plan);
  object["shared_attention"] = attention(plan);
  object["unread_stores"] = unread(plan);
  IdleTime idle = idleTime(plan);
  object["bubble_fraction"] = orNull(idle.bubble);
  object["idle_fraction"] = orNull(idle.idle);
  object["estimate"] = estimate(plan);
  if (measured)
    object["measured"] = measuredJson(*measured);
  object["spec"] = plan.spec() ? plan.spec()->str() : "";
  return object;
}

absl::StatusOr<std::string> json(const plan::Plan &plan,
                                 const Measured *measured) {
  if (plan.microbatches() > mostMicrobatches)
    return absl::ResourceExhaustedError(
        absl::StrCat("a step has ", counted(plan.microbatches(), "microbatch"),
                     "; the list of its actions is "
                     "written for at most ",
                     mostMicrobatches, ": compile with a larger batch.micro"));
  auto classes = rankClasses(plan);
  if (!classes.ok())
    return classes.status();
  Json object = summaryJson(plan, measured);
  object["schedule"] = actions(plan);
  object["rank_classes"] = *std::move(classes);
  return textOfJson(object);
}

} // namespace meshwork::explain
