#include "tools/meshwork/driver/Reproducer.h"

#include <fcntl.h>
#include <unistd.h>

#include "passes/pipelines/SpecFiles.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/driver/Guard.h"
#include "tools/meshwork/driver/Model.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace meshwork::driver {
namespace {

/// A key whose value may be a file's path, and how such a path and the name of
/// its copy end.
struct FileKey {
  llvm::StringLiteral setting, ends, copyEnds;
};
constexpr FileKey fileKeys[] = {
    {"target.machine=", ".toml", ".machine.toml"},
    {"pipeline.schedule=", ".csv", ".schedule.csv"}};

class Reproducer : public mlir::ReproducerStream {
public:
  explicit Reproducer(const CompileOptions &options)
      : path(reproducerPath(options)),
        link(options.reproducer.empty() ? runtime::OutputLink::replaced
                                        : runtime::OutputLink::followed),
        stream(text) {}
  ~Reproducer() override { writeFile(path, text, link); }
  llvm::StringRef description() override { return path; }
  llvm::raw_ostream &os() override { return stream; }

private:
  std::string path, text;
  runtime::OutputLink link;
  llvm::raw_string_ostream stream;
};

/// Under a name that nobody gave.
int writeMadeUp(const std::string &path, std::string_view text) {
  return writeFile(path, text, runtime::OutputLink::replaced);
}

/// For a shell, in one word.
std::string word(llvm::StringRef text) {
  constexpr llvm::StringLiteral plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=";
  if (!text.empty() && text.find_first_not_of(plain) == llvm::StringRef::npos)
    return text.str();
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}
/// Copies the file that the spec names at `key` to `path`, if it names one. In
/// a process of its own: the spec may be what is at fault.
bool copyFile(const FileKey &key, const CompileOptions &options,
              const CompileTexts &texts, const std::string &path) {
  return guarded([&] {
           spec::Result result =
               spec::parse(texts.spec, options.spec, options.overrides);
           int code = badSpec; // until a file was copied
           if (result.spec)
             pipelines::resolveFiles(
                 *result.spec, result.origins, options.spec,
                 [&](const std::string &from) {
                   int opened = ok;
                   std::optional<std::string> text = readFile(from, opened);
                   if (text && llvm::StringRef(from).ends_with(key.ends))
                     code = writeMadeUp(path, *text);
                   return text;
                 });
           return code;
         }) == ok;
}
} // namespace

std::string reproducerPath(const CompileOptions &options) {
  if (!options.reproducer.empty())
    return options.reproducer;
  bool isStdout = options.output.empty() || options.output == "-";
  return (isStdout ? "meshwork" : options.output) + ".reproducer.mlir";
}

static std::string stemOf(const CompileOptions &options) {
  std::string stem = reproducerPath(options);
  if (llvm::StringRef(stem).ends_with(".mlir"))
    stem.resize(stem.size() - 5);
  return stem;
}

static const char *modelEnding(const CompileOptions &options) {
  return isConfig(options.model) ? ".json" : ".mlir";
}

std::set<std::string> reproducerPaths(const CompileOptions &options) {
  std::string stem = stemOf(options);
  std::set<std::string> paths = {reproducerPath(options), stem + ".toml",
                                 stem + modelEnding(options)};
  for (const FileKey &key : fileKeys)
    paths.insert(stem + key.copyEnds.str());
  return paths;
}

mlir::ReproducerStreamFactory reproducerTo(const CompileOptions &options) {
  return [&options](std::string &) {
    return std::make_unique<Reproducer>(options);
  };
}

Silence::Silence() : stderrBefore(::dup(STDERR_FILENO)) {
  if (int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) {
    ::dup2(nowhere, STDERR_FILENO);
    ::close(nowhere);
  }
}

Silence::~Silence() {
  if (stderrBefore >= 0) {
    ::dup2(stderrBefore, STDERR_FILENO);
    ::close(stderrBefore);
  }
}

void leaveReproducer(const CompileOptions &options, const CompileTexts &texts) {
  std::string stem = stemOf(options);
  std::string spec = stem + ".toml", model = stem + modelEnding(options);
  if (writeMadeUp(model, texts.model) != ok ||
      writeMadeUp(spec, texts.spec) != ok)
    return;
  std::string line = word(model) + " --spec " + word(spec), copies;
  std::vector<std::string> settings = options.overrides;
  for (const FileKey &key : fileKeys) {
    std::string path = stem + key.copyEnds.str();
    if (!copyFile(key, options, texts, path))
      continue;
    std::erase_if(settings, [&](llvm::StringRef setting) {
      return setting.starts_with(key.setting);
    });
    copies += " --set " + word(key.setting.str() + path);
  }
  for (const std::string &setting : settings)
    line += " --set " + word(setting);
  line += copies;
  if (!options.cpuCode.empty())
    line += " --with-cpu-code " + word(options.cpuCode);
  if (!options.compileTo.empty())
    line += " --compile-to " + word(options.compileTo);
  report(absl::InternalError(
      "this is a fault of the compiler; repeat it with: meshwork compile " +
      line + " -o " + word(stem + ".mwplan")));
}

} // namespace meshwork::driver
