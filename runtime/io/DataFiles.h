// Which files an argument of --data names. Internal to runtime/io and
// runtime/train.
#pragma once

#include <string>
#include <vector>

#include <absl/status/statusor.h>

namespace meshwork::runtime {

/// The files of one source, by name. `path` is a file, or the prefix of a
/// Megatron pair. It may be a folder: its files that end in .bin, or with
/// `isText` in .txt. Or a pattern with *, ? or [ that names match. Of tokens
/// with an index or a mask the tokens alone. An error says what was looked for
/// in vain.
absl::StatusOr<std::vector<std::string>> dataFiles(const std::string &path,
                                                   bool isText);

/// "a_000003.bin": of ascending names that count on (a_000002.bin,
/// a_000004.bin), the first that is missing; else "".
std::string missingShard(const std::vector<std::string> &files);

} // namespace meshwork::runtime
