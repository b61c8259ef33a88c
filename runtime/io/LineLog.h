// A log that outlives a run: lines are appended, nothing is ever cut off it.
//
//   absl::StatusOr<LineLog> log = LineLog::open("metrics.jsonl", "{\"step\":");
//   status = log->append("{\"step\":0,\"loss\":5.5}");
#pragma once

#include "runtime/io/Files.h"

namespace meshwork::runtime {

class LineLog {
public:
  /// A regular file must be absent, empty, or a log of earlier runs: it then
  /// starts with `beginning`, as every line should. A pipe or a device is
  /// written as it is. kFailedPrecondition when it is none of these.
  static absl::StatusOr<LineLog> open(const std::string &path,
                                      std::string_view beginning);

  /// Writes the line and a newline, or nothing: what part of a line did reach a
  /// regular file is taken back. kUnavailable when it cannot.
  absl::Status append(std::string_view line);

private:
  absl::Status checkBeginning(std::string_view beginning, uint64_t size);

  FileDescriptor descriptor;
  std::string path;
  bool isRegular = false;
  bool endsInLine = false; // an earlier run was killed in its last line
};

} // namespace meshwork::runtime
