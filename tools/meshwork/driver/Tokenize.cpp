#include "tools/meshwork/driver/Tokenize.h"

#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Text/Escape.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace meshwork::driver {
namespace {
namespace fs = std::filesystem;

/// In share beside bin, wherever the tools are.
fs::path program() {
  std::error_code none;
  fs::path self = fs::read_symlink("/proc/self/exe", none);
  return self.parent_path().parent_path() / "share" / "meshwork" /
         "text_to_tokens.py";
}

int fail(const std::string &text) {
  std::fprintf(stderr, "meshwork tokenize: error: %s\n", text.c_str());
  return static_cast<int>(runtime::ExitCode::unavailable);
}
} // namespace

int tokenize(const TokenizeOptions &options) {
  const char *given = std::getenv("MESHWORK_PYTHON");
  std::string python = given && *given ? given : "python3",
              script = program().string();
  std::error_code none;
  if (!fs::is_regular_file(script, none))
    return fail(quote(script) + " is missing, which comes with the tools; "
                                "keep bin and share together");
  std::vector<std::string> words = {python, script, "-o", options.output,
                                    "--field=" + options.field};
  if (!options.endOfDocument.empty())
    words.push_back("--end-of-document=" + options.endOfDocument);
  if (!options.prompt.empty())
    words.insert(words.end(),
                 {"--prompt=" + options.prompt, "--answer=" + options.answer});
  words.insert(words.end(), {"--", options.tokenizer});
  words.insert(words.end(), options.text.begin(), options.text.end());
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(arguments[0], arguments.data());
  return fail("cannot run " + quote(python) + ": " + std::strerror(errno) +
              "; MESHWORK_PYTHON names the Python to run");
}

} // namespace meshwork::driver
