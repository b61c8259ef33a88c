// Files and messages of the command line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Text/Escape.h"
#include "runtime/io/FileUses.h"
#include "runtime/io/Files.h"

namespace meshwork::driver {

/// Exit codes of the compiler's tools.
enum Exit : int {
  ok = static_cast<int>(runtime::ExitCode::ok),
  usage = static_cast<int>(runtime::ExitCode::usage),
  badData = static_cast<int>(runtime::ExitCode::badData),
  noInput = static_cast<int>(runtime::ExitCode::noInput),
  internal = static_cast<int>(runtime::ExitCode::internal),
  noResources = static_cast<int>(runtime::ExitCode::noResources),
  cannotCreate = static_cast<int>(runtime::ExitCode::cannotCreate),
  inputOutput = static_cast<int>(runtime::ExitCode::inputOutput),
  badSpec = static_cast<int>(runtime::ExitCode::config)
};

/// Of every text that is read: no model and no spec comes near.
inline constexpr uint64_t maxTextBytes = uint64_t{64} << 20;

/// Prints "meshwork: error: ..." with the name of the program, and returns the
/// exit code for `status`, which is not ok.
int report(const absl::Status &status);

/// Prints "meshwork: warning: ..." with the name of the program.
void warn(const std::string &text);

/// The contents of a regular file, or of stdin for "-", of at most
/// `most`; nothing after a message. `code` gets the exit code.
std::optional<std::string> readFile(const std::string &path, int &code,
                                    uint64_t most = maxTextBytes);

/// `model`, or the config.json in it when it is a folder: a repository of
/// Hugging Face, or one in the cache of the Hub, or a snapshot there.
std::string modelFile(const std::string &model);

/// As readFile, of what modelFile tells. In a folder that somebody else has
/// made, config.json may lead to nothing outside of it
/// (InputFile::openInFolder).
std::optional<std::string> readModel(const std::string &model, int &code);

/// Refuses one file in two of these roles, if one of them writes it. Also
/// refuses to write where stdout or stderr goes to. "-" is stdin or stdout, and
/// may stand in one role of each. Prints a message; returns an exit code. To be
/// called before any of them is created.
int checkUses(std::vector<runtime::FileUse> uses);

/// Whether `path` can be created, before much work is done for it. Creates
/// nothing. Prints a message when not; returns an exit code.
int checkOutput(const std::string &path);

/// Writes a whole file, or leaves what is there; "-" is stdout. Prints a
/// message when it cannot; returns an exit code.
int writeFile(const std::string &path, std::string_view content,
              runtime::OutputLink link = runtime::OutputLink::followed);

/// As writeFile to "-".
int writeOut(std::string_view content);

} // namespace meshwork::driver
