// Chrome's trace event format, "X" (complete) events.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/core/IoStatus.h"
#include "runtime/core/Json.h"
#include "runtime/core/Recorder.h"
#include "runtime/io/Files.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {

void appendTrackNames(std::string &json, uint32_t rank, uint32_t channels) {
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
}

void appendEvent(std::string &json, const Rank &rank, const TraceEvent &event,
                 int64_t originNs) {
  const BoundInstruction &bound = rank.list(event.phase)[event.index];
  bool moves = bound.collective != nullptr;
  absl::StrAppendFormat(
      &json,
      "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":%"
      "s,"
      "\"cat\":\"%s\",\"args\":{\"step\":%d,\"microbatch\":%d",
      rank.rank(), moves ? 1 + bound.channel : 0,
      static_cast<double>(event.beginNs - originNs) / 1e3,
      static_cast<double>(event.endNs - event.beginNs) / 1e3,
      jsonString(bound.source->name()),
      plan::EnumNameOperation(bound.source->op_type()), event.step,
      event.microbatch);
  if (moves)
    absl::StrAppendFormat(&json, ",\"wait_us\":%.3f",
                          static_cast<double>(event.waitNs) / 1e3);
  json += "}},\n";
}
} // namespace

absl::Status writeTrace(const std::string &path, const Ranks &ranks,
                        const Recorders &recorders) {
  absl::StatusOr<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return fromIo(file.status());
  int64_t origin = INT64_MAX;
  for (const auto &recorder : recorders)
    if (!recorder->events().empty())
      origin = std::min(origin, recorder->events().front().beginNs);
  std::string json = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (size_t r = 0; r < ranks.size(); ++r) {
    appendTrackNames(json, ranks[r]->rank(), ranks[r]->numChannels());
    for (const TraceEvent &event : recorders[r]->events()) {
      appendEvent(json, *ranks[r], event, origin);
      if (json.size() < (1u << 20))
        continue;
      if (absl::Status status = file->write(json.data(), json.size());
          !status.ok())
        return fromIo(status);
      json.clear();
    }
  }
  // The format allows no comma after the last event; this one is a name.
  json += "{\"ph\":\"M\",\"name\":\"trace_end\",\"pid\":0,\"tid\":0,\"args\":{}"
          "}\n]}\n";
  if (absl::Status status = file->write(json.data(), json.size()); !status.ok())
    return fromIo(status);
  return fromIo(file->commit());
}

} // namespace meshwork::runtime
