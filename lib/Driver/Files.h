// Files of the command line.
#pragma once

#include <optional>
#include <string>

namespace meshwork::driver {

/// Exit codes, as in sysexits(3).
enum Exit {
  ok = 0,
  usage = 64,
  badData = 65,
  noInput = 66,
  internal = 70,
  cannotCreate = 73,
  badSpec = 78
};

/// The contents of a file of at most `maxBytes`, or nothing after a message.
/// "-" is stdin. `code` gets noInput or badData.
std::optional<std::string> readFile(const std::string &path, uint64_t maxBytes,
                                    int &code);

/// Writes a whole file or nothing: a temporary beside it, renamed. "-" is
/// stdout. Prints a message and returns cannotCreate when it cannot.
int writeFile(const std::string &path, const char *data, size_t size);

} // namespace meshwork::driver
