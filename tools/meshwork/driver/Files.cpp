#include "tools/meshwork/driver/Files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "lib/Text/FileKind.h"
#include "runtime/io/Files.h"
#include "runtime/io/HubFolder.h"
#include "runtime/io/IoStatus.h"
#include "runtime/io/Streams.h"

namespace meshwork::driver {
namespace {

absl::Status tooLong(const std::string &path, uint64_t bytes, uint64_t most) {
  return absl::DataLossError(absl::StrCat(quote(path), ": has ", bytes,
                                          " bytes or more, at most ", most,
                                          " are read"));
}

absl::StatusOr<std::string> readIn(uint64_t most) {
  std::string text;
  char buffer[1 << 16];
  while (text.size() <= most) {
    ssize_t got = ::read(STDIN_FILENO, buffer, sizeof(buffer));
    if (got < 0 && errno != EINTR)
      return absl::UnavailableError(
          absl::StrCat("cannot read stdin: ", std::strerror(errno)));
    if (got == 0)
      return text;
    text.append(buffer, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  return tooLong("-", text.size(), most);
}

absl::StatusOr<std::string> contents(absl::StatusOr<runtime::InputFile> file,
                                     uint64_t most = maxTextBytes) {
  if (!file.ok())
    return file.status();
  if (file->size() > most)
    return tooLong(file->path(), file->size(), most);
  std::string text(file->size(), '\0');
  absl::Status status = file->readAt(0, text.data(), text.size());
  return status.ok() ? absl::StatusOr<std::string>(std::move(text)) : status;
}

absl::StatusOr<std::string> readWhole(const std::string &path, uint64_t most) {
  if (path == "-")
    return readIn(most);
  return contents(runtime::InputFile::open(path), most);
}

bool isFolder(const std::string &path) {
  std::error_code none;
  return std::filesystem::is_directory(path, none);
}

constexpr char configName[] = "config.json";

std::optional<std::string> orReport(absl::StatusOr<std::string> text,
                                    int &code) {
  code = text.ok() ? ok : report(runtime::fromIo(text.status()));
  return text.ok() ? std::optional(std::move(*text)) : std::nullopt;
}

/// Where nothing is kept nothing has to be written, and no device be replaced.
bool isNowhere(const std::string &path) { return path == "/dev/null"; }

} // namespace

/// "meshwork: error: ...", at once and whole.
static void tell(const char *severity, const std::string &message) {
  std::string text = absl::StrCat(program_invocation_short_name, severity,
                                  printable(message), "\n");
  std::fwrite(text.data(), 1, text.size(), stderr);
}

int report(const absl::Status &status) {
  tell(": error: ", std::string(status.message()));
  return runtime::exitCodeOf(status);
}

void warn(const std::string &text) { tell(": warning: ", text); }

std::optional<std::string> readFile(const std::string &path, int &code,
                                    uint64_t most) {
  return orReport(readWhole(path, most), code);
}

std::string modelFile(const std::string &model) {
  if (!isFolder(model))
    return model;
  return absl::StrCat(runtime::modelFolder(model).value_or(model), "/",
                      configName);
}

static absl::StatusOr<std::string> readConfigIn(const std::string &model) {
  auto folder = runtime::modelFolder(model);
  if (!folder.ok())
    return folder.status();
  auto config = runtime::InputFile::openInFolder(
      *folder, configName, {.howToAllow = "name the config.json itself"});
  if (absl::IsNotFound(config.status()))
    return absl::DataLossError(absl::StrCat(
        quote(*folder), " is a folder without a ", configName,
        " that can be read, expected a model, or the folder of a repository of "
        "Hugging Face",
        runtime::otherWeightsIn(*folder)));
  return contents(std::move(config));
}

static absl::StatusOr<std::string> readNamedModel(const std::string &model) {
  auto text = readWhole(model, maxTextBytes);
  if (absl::IsNotFound(text.status()))
    return absl::NotFoundError(
        absl::StrCat(text.status().message(), runtime::hubNameHint(model)));
  return text;
}

/// An error where the text is known to be no model.
static absl::Status checkKind(const std::string &path,
                              const std::string &text) {
  using Group = FileKind::Group;
  auto kind = kindOf(std::string_view(text).substr(0, kindBytes), text.size());
  if (!kind || kind->group == Group::text || kind->group == Group::json)
    return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(quote(path), ": is ", kind->name, adviceForConfig(*kind)));
}

std::optional<std::string> readModel(const std::string &model, int &code) {
  auto text = isFolder(model) ? readConfigIn(model) : readNamedModel(model);
  if (text.ok())
    if (absl::Status kind = checkKind(modelFile(model), *text); !kind.ok())
      text = kind;
  return orReport(std::move(text), code);
}

/// A stream that two options want.
static absl::Status checkStreams(const std::vector<runtime::FileUse> &uses) {
  const runtime::FileUse *first[2] = {};
  for (const runtime::FileUse &use : uses) {
    if (use.path != "-")
      continue;
    const runtime::FileUse *&other = first[use.isWritten];
    if (other)
      return absl::InvalidArgumentError(absl::StrCat(
          other->role, " and ", use.role, " are both \"-\", which is ",
          use.isWritten ? "stdout" : "stdin", ": name a file for one of them"));
    other = &use;
  }
  return absl::OkStatus();
}

int checkUses(std::vector<runtime::FileUse> uses) {
  if (absl::Status status = checkStreams(uses); !status.ok())
    return report(status);
  std::erase_if(uses,
                [](const runtime::FileUse &use) { return use.path == "-"; });
  uses.push_back({"standard output", "/dev/stdout"});
  uses.push_back({"standard error", "/dev/stderr"});
  absl::Status status = runtime::checkFileUses(uses);
  return status.ok() ? ok : report(status);
}

int checkOutput(const std::string &path) {
  if (path == "-" || isNowhere(path))
    return ok;
  auto file = runtime::OutputFile::create(path);
  return file.ok() ? ok : report(runtime::fromIo(file.status()));
}

int writeFile(const std::string &path, std::string_view content,
              runtime::OutputLink link) {
  if (path == "-")
    return writeOut(content);
  absl::Status status = isNowhere(path)
                            ? absl::OkStatus()
                            : runtime::writeWhole(path, content, link);
  return status.ok() ? ok : report(runtime::fromIo(status));
}

int writeOut(std::string_view content) {
  absl::Status status = runtime::writeOut(content);
  return status.ok() ? ok : report(runtime::fromIo(status));
}

} // namespace meshwork::driver
