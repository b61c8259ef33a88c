// A log that outlives a run: numbered lines are appended, and none is lost.
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

  /// What was appended is durable after this; nothing to do for a pipe.
  absl::Status sync() const;

  /// Before a run repeats what an earlier one has logged. A line's number
  /// follows `beginning`. Lines at the end of a regular file that have the
  /// number `from` or more move to replacedPath(), durably; tells how many.
  /// Numbers rise towards the end; where one does not, another run has ended.
  /// A line that was cut off goes too.
  absl::StatusOr<uint64_t> takeOff(uint64_t from);
  /// "metrics.jsonl.replaced"
  std::string replacedPath() const { return path + ".replaced"; }

private:
  static absl::StatusOr<LineLog>
  openWith(const std::string &path, std::string_view beginning, int moreFlags);
  absl::Status checkBeginning(uint64_t size);
  std::optional<uint64_t> numberOf(std::string_view line) const;
  size_t tailOf(std::string_view text, uint64_t from) const;
  absl::StatusOr<std::string> readTail(uint64_t from) const;
  absl::Status keepReplaced(std::string_view lines) const;
  absl::Status cutOff(uint64_t bytes);
  absl::Status failed(const char *what) const;

  FileDescriptor descriptor;
  std::string path, beginning;
  bool isRegular = false;
  bool endsInLine = false; // an earlier run was killed in its last line
};

} // namespace meshwork::runtime
