#include "runtime/rank/EventLog.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/SaveFolder.h"
#include "runtime/io/NewFile.h"
#include "runtime/machine/Clock.h"
#include "runtime/rank/Events.pb.h"
#include "runtime/rank/Names.h"
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <unistd.h>

namespace meshwork::runtime {
namespace {
using nlohmann::json;

constexpr std::string_view nameBegin = "events.out.tfevents.";
constexpr uint64_t lastSecond = 9999999999; // names have ten digits of it

/// The second in the name of an event file; 0 of others.
uint64_t secondOf(std::string_view name) {
  uint64_t second = 0;
  if (!name.starts_with(nameBegin))
    return 0;
  name.remove_prefix(nameBegin.size());
  return absl::SimpleAtoi(std::string(name.substr(0, name.find('.'))), &second)
             ? second
             : 0;
}

/// Two runs may begin in one second, and the clock may have been set.
uint64_t nextSecond(const std::string &folder) {
  auto next = static_cast<uint64_t>(wallSeconds());
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error))
    if (uint64_t second = secondOf(at->path().filename().string());
        second < lastSecond)
      next = std::max(next, second + 1);
  return next;
}

/// A number, or the string that stands for one that is not finite.
std::optional<float> numberIn(const json &value) {
  if (value.is_number())
    return value.get<float>();
  if (value == "NaN")
    return NAN;
  if (value == "Infinity" || value == "-Infinity")
    return value == "Infinity" ? INFINITY : -INFINITY;
  return std::nullopt;
}

void addNumbers(const std::string &tag, const json &value,
                events::Summary &to) {
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i)
      addNumbers(absl::StrCat(tag, "/", i), value[i], to);
  if (std::optional<float> number = numberIn(value)) {
    events::Summary::Value &one = *to.add_value();
    one.set_tag(tag);
    one.set_simple_value(*number);
  }
}
} // namespace

absl::StatusOr<std::unique_ptr<EventLog>>
EventLog::createIn(const std::string &path) {
  absl::StatusOr<std::string> folder = outputTarget(path);
  if (!folder.ok())
    return folder.status();
  if (absl::Status made = makeSaveFolder(*folder); !made.ok())
    return made;
  auto file = RecordLog::createIn(
      *folder, absl::StrFormat("%s%010d.%s.%d", nameBegin, nextSecond(*folder),
                               hostName(), ::getpid()));
  if (!file.ok())
    return file.status();
  std::unique_ptr<EventLog> log(new EventLog(*std::move(file)));
  events::Event first;
  first.set_wall_time(wallSeconds());
  first.set_file_version("brain.Event:2");
  absl::Status written = log->records.append(first.SerializeAsString());
  return written.ok()
             ? absl::StatusOr<std::unique_ptr<EventLog>>(std::move(log))
             : written;
}

absl::Status EventLog::purgeFrom(uint64_t step) {
  events::Event event;
  event.set_wall_time(wallSeconds());
  event.set_step(static_cast<int64_t>(step));
  event.mutable_session_log()->set_status(events::SessionLog::START);
  return records.append(event.SerializeAsString());
}

absl::Status EventLog::append(std::string_view line) {
  json read = json::parse(line, nullptr, /*allow_exceptions=*/false);
  events::Event event;
  for (const auto &[name, value] : read.items())
    if (name == "step")
      event.set_step(value.get<int64_t>());
    else if (name == "time")
      event.set_wall_time(value.get<double>());
    else
      addNumbers(name, value, *event.mutable_summary());
  return records.append(event.SerializeAsString());
}

} // namespace meshwork::runtime
