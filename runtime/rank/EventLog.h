// The metrics of a run as TensorBoard reads them: a file of events in a folder,
// a new one for each run.
//
//   auto log = EventLog::createIn("runs/a");
//   status = (*log)->append(R"({"step":0,"loss":5.5,"time":1.5})");
#pragma once

#include "runtime/io/RecordLog.h"
#include <memory>

namespace meshwork::runtime {

class EventLog {
public:
  /// Makes the folder where it is not there. The file's name is behind those of
  /// all event files in it, since TensorBoard reads them in the order of names.
  /// kFailedPrecondition when it cannot be created.
  static absl::StatusOr<std::unique_ptr<EventLog>>
  createIn(const std::string &folder);

  /// Before a run that goes on at `step`: those of earlier files from there on
  /// are not shown any more.
  absl::Status purgeFrom(uint64_t step);

  /// A line of the metrics. Each number in it becomes a scalar of that name at
  /// the line's `step` and `time`; one in an array has its place behind the
  /// name: "expert_load/2/0". kUnavailable when it cannot be written.
  absl::Status append(std::string_view line);

  absl::Status sync() const { return records.sync(); }

private:
  explicit EventLog(RecordLog records) : records(std::move(records)) {}

  RecordLog records;
};

} // namespace meshwork::runtime
