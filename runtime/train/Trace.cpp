// Chrome's trace event format: "X" (complete) events of instructions, "B" and
// "E" (begin, end) of steps, "s" and "f" (flow) from a send to its receive.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/PlanOrder.h"
#include "runtime/io/Files.h"
#include "runtime/io/IoStatus.h"
#include "runtime/rank/Json.h"
#include "runtime/rank/Recorder.h"
#include <algorithm>
#include <map>
#include <utility>

namespace meshwork::runtime {
namespace {

/// Transfers are under way beside each other, those of one list mostly not.
constexpr uint32_t firstTransferTrack = 100, stepTrack = 99;

bool moves(plan::ListKind kind) {
  return plan::sends(kind) || plan::receives(kind);
}

void appendTrackNames(std::string &json, const Rank &of) {
  uint32_t rank = of.rank(), channels = of.numChannels();
  const std::vector<plan::ListShape> &lists = of.table().lists();
  auto name = [&](const char *kind, int track, const std::string &text) {
    absl::StrAppend(&json, "{\"ph\":\"M\",\"name\":\"", kind,
                    "\",\"pid\":", rank, ",\"tid\":", track,
                    ",\"args\":{\"name\":\"", text, "\"}},\n");
  };
  name("process_name", 0, absl::StrCat("rank ", rank));
  name("thread_name", stepTrack, "steps");
  name("thread_name", 0, "computation");
  name("thread_name", 1, "communication");
  for (uint32_t channel = 1; channel <= channels; ++channel)
    name("thread_name", 1 + static_cast<int>(channel),
         absl::StrCat("channel ", channel));
  for (uint32_t list = 0; list < lists.size(); ++list)
    if (moves(lists[list].kind))
      name("thread_name", static_cast<int>(firstTransferTrack + list),
           plan::nameOf(lists[list]));
}

uint32_t trackOf(const Rank &rank, const TraceEvent &event,
                 const plan::Instruction &source) {
  if (moves(rank.table().lists()[event.list].kind))
    return firstTransferTrack + event.list;
  bool isBeside = source.op_as_Collective() || source.channel() > 0;
  return isBeside ? 1 + source.channel() : 0;
}

void appendEvent(std::string &json, const Rank &rank, const TraceEvent &event,
                 int64_t originNs) {
  const plan::Instruction &source = rank.instruction(event.list, event.index);
  uint32_t track = trackOf(rank, event, source);
  absl::StrAppendFormat(
      &json,
      "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":%"
      "s,"
      "\"cat\":\"%s\",\"args\":{\"step\":%d,\"microbatch\":%d,\"action\":\"%"
      "s\",\"instruction\":%d",
      rank.rank(), track, static_cast<double>(event.beginNs - originNs) / 1e3,
      static_cast<double>(event.endNs - event.beginNs) / 1e3,
      jsonString(source.name()), plan::EnumNameOperation(source.op_type()),
      event.step, event.microbatch,
      plan::textOf(rank.table().lists()[event.list], event.microbatch),
      event.index);
  if (track != 0)
    absl::StrAppendFormat(&json, ",\"wait_us\":%.3f",
                          static_cast<double>(event.waitNs) / 1e3);
  json += "}},\n";
}

std::string timeText(int64_t ns) {
  return absl::StrFormat("%.3f", static_cast<double>(ns) / 1e3);
}

/// A name that both sides of a transfer give it: step, who sends what of which
/// microbatch, and to whom.
std::string flowName(const Rank &rank, const TraceEvent &event) {
  const plan::Instruction &source = rank.instruction(event.list, event.index);
  plan::ListShape list = rank.table().lists()[event.list];
  auto peerOf = [&](const auto &op) {
    return rank.mesh().at(rank.rank(), op.axis(), op.peer());
  };
  uint32_t from = rank.rank(), to = 0;
  if (const plan::Send *send = source.op_as_Send()) {
    to = peerOf(*send);
  } else {
    to = std::exchange(from, peerOf(*source.op_as_Receive()));
    plan::Counterpart sender = plan::counterpartOf(list);
    list = {sender.kind, static_cast<uint32_t>(sender.stage)};
  }
  return absl::StrCat("step ", event.step, ", ",
                      plan::textOf(list, event.microbatch), ", ", from, " to ",
                      to);
}

/// An arrow begins where a send does and ends in the end of its receive, which
/// may have begun long before the send.
void appendFlow(std::string &json, const Rank &rank, const TraceEvent &event,
                int64_t originNs) {
  bool sends = plan::sends(rank.table().lists()[event.list].kind);
  int64_t at = sends ? event.beginNs : std::max(event.beginNs, event.endNs - 1);
  absl::StrAppend(&json, "{\"ph\":\"", sends ? "s" : "f\",\"bp\":\"e",
                  "\",\"pid\":", rank.rank(),
                  ",\"tid\":", firstTransferTrack + event.list,
                  ",\"ts\":", timeText(at - originNs),
                  ",\"cat\":\"transfer\",\"name\":\"transfer\",\"id\":\"",
                  flowName(rank, event), "\"},\n");
}

/// When the rank began a step, by its events, and when the last one ended.
void appendSteps(std::string &json, const Rank &rank,
                 const std::vector<TraceEvent> &events, int64_t originNs) {
  std::map<uint64_t, int64_t> begins;
  int64_t lastEnd = originNs;
  for (const TraceEvent &event : events) {
    auto [known, isNew] = begins.try_emplace(event.step, event.beginNs);
    known->second = std::min(known->second, event.beginNs);
    lastEnd = std::max(lastEnd, event.endNs);
  }
  for (auto step = begins.begin(); step != begins.end(); ++step) {
    auto next = std::next(step);
    int64_t end = next == begins.end() ? lastEnd : next->second;
    for (auto [phase, ns] : {std::pair{"B", step->second}, {"E", end}})
      absl::StrAppend(&json, "{\"ph\":\"", phase, "\",\"pid\":", rank.rank(),
                      ",\"tid\":", stepTrack,
                      ",\"ts\":", timeText(ns - originNs), ",\"name\":\"step ",
                      step->first, "\"},\n");
  }
}
} // namespace

int64_t traceOrigin(const Recorders &recorders) {
  int64_t origin = INT64_MAX;
  for (const auto &recorder : recorders)
    if (recorder) // They are in the order of their ends.
      for (const TraceEvent &event : recorder->events())
        origin = std::min(origin, event.beginNs);
  return origin;
}

std::string traceText(const Ranks &ranks, const Recorders &recorders,
                      int64_t originNs) {
  std::string json;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (!ranks[r])
      continue;
    appendTrackNames(json, *ranks[r]);
    const std::vector<TraceEvent> &events = recorders[r]->events();
    appendSteps(json, *ranks[r], events, originNs);
    for (const TraceEvent &event : events) {
      appendEvent(json, *ranks[r], event, originNs);
      if (moves(ranks[r]->table().lists()[event.list].kind))
        appendFlow(json, *ranks[r], event, originNs);
    }
  }
  return json;
}

absl::Status writeTrace(const std::string &path, const plan::Plan &plan,
                        absl::Span<const std::string> texts) {
  absl::StatusOr<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return fromIo(file.status());
  auto write = [&](const std::string &text) {
    return fromIo(file->write(text.data(), text.size()));
  };
  MESHWORK_RETURN_IF_ERROR(write(
      absl::StrCat("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"plan\":",
                   jsonString(plan.source_hash()), "},\"traceEvents\":[\n")));
  for (const std::string &text : texts)
    MESHWORK_RETURN_IF_ERROR(write(text));
  // The format allows no comma after the last event; this one is a name.
  MESHWORK_RETURN_IF_ERROR(write(
      "{\"ph\":\"M\",\"name\":\"trace_end\",\"pid\":0,\"tid\":0,\"args\":{}"
      "}\n]}\n"));
  return fromIo(file->commit());
}

} // namespace meshwork::runtime
