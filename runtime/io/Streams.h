// stdin, stdout and stderr of a tool.
#pragma once

#include <string_view>

#include <absl/status/status.h>

namespace meshwork::runtime {

/// For the start of a tool, before it opens a file. Gives each of the three
/// streams that is closed a place where reads and writes fail, since the next
/// file opened would take its number. Makes a limit on the size of files an
/// error of the write, and a lack of memory a message and exit code 71.
void startTool();

/// Writes to stdout to the last byte; kUnavailable when that fails.
absl::Status writeOut(std::string_view text);

} // namespace meshwork::runtime
