// Chrome's trace event format, "X" (complete) events.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/core/Checked.h"
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
  const plan::Instruction &source = rank.instruction(event.list, event.index);
  const plan::Collective *moves = source.op_as_Collective();
  absl::StrAppendFormat(
      &json,
      "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":%"
      "s,"
      "\"cat\":\"%s\",\"args\":{\"step\":%d,\"microbatch\":%d",
      rank.rank(), moves ? 1 + moves->channel() : 0,
      static_cast<double>(event.beginNs - originNs) / 1e3,
      static_cast<double>(event.endNs - event.beginNs) / 1e3,
      jsonString(source.name()), plan::EnumNameOperation(source.op_type()),
      event.step, event.microbatch);
  if (moves)
    absl::StrAppendFormat(&json, ",\"wait_us\":%.3f",
                          static_cast<double>(event.waitNs) / 1e3);
  json += "}},\n";
}
} // namespace

int64_t traceOrigin(const Recorders &recorders) {
  int64_t origin = INT64_MAX;
  for (const auto &recorder : recorders)
    if (recorder && !recorder->events().empty())
      origin = std::min(origin, recorder->events().front().beginNs);
  return origin;
}

std::string traceText(const Ranks &ranks, const Recorders &recorders,
                      int64_t originNs) {
  std::string json;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (!ranks[r])
      continue;
    appendTrackNames(json, ranks[r]->rank(), ranks[r]->numChannels());
    for (const TraceEvent &event : recorders[r]->events())
      appendEvent(json, *ranks[r], event, originNs);
  }
  return json;
}

absl::Status writeTrace(const std::string &path,
                        absl::Span<const std::string> texts) {
  absl::StatusOr<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return fromIo(file.status());
  auto write = [&](const std::string &text) {
    return fromIo(file->write(text.data(), text.size()));
  };
  MESHWORK_RETURN_IF_ERROR(
      write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"));
  for (const std::string &text : texts)
    MESHWORK_RETURN_IF_ERROR(write(text));
  // The format allows no comma after the last event; this one is a name.
  MESHWORK_RETURN_IF_ERROR(write(
      "{\"ph\":\"M\",\"name\":\"trace_end\",\"pid\":0,\"tid\":0,\"args\":{}"
      "}\n]}\n"));
  return fromIo(file->commit());
}

} // namespace meshwork::runtime
