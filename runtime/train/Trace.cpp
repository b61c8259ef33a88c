// Chrome's trace event format, "X" (complete) events.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Plan/Checked.h"
#include "runtime/io/Files.h"
#include "runtime/io/IoStatus.h"
#include "runtime/rank/Json.h"
#include "runtime/rank/Recorder.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {

/// Transfers are under way beside each other, those of one list mostly not.
constexpr uint32_t firstTransferTrack = 100;

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
    for (const TraceEvent &event : recorders[r]->events())
      appendEvent(json, *ranks[r], event, originNs);
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
