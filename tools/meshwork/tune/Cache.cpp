#include "tools/meshwork/tune/Cache.h"

#include "runtime/checkpoint/HashedFile.h"
#include "tools/meshwork/driver/Files.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <fstream>
#include <iterator>

#include <sys/stat.h>

namespace meshwork::tune {
namespace {

using driver::ok;
using runtime::hashText;

constexpr llvm::StringLiteral firstLine = "# meshwork tune: results, format 1";

/// Another build may compile otherwise and cost otherwise.
const std::string &ownHash() {
  static const std::string hash = [] {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    return hashText(std::string(std::istreambuf_iterator<char>(file), {}));
  }();
  return hash;
}

bool exists(const std::string &path) {
  struct stat unused;
  return ::stat(path.c_str(), &unused) == 0;
}
} // namespace

std::string cacheKey(const std::string &content) {
  return hashText(ownHash() + "\n" + content);
}

int Cache::read() {
  if (path.empty() || !exists(path))
    return ok;
  int code = ok;
  std::optional<std::string> text = driver::readFile(path, code);
  if (!text)
    return code;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(*text).split(lines, '\n');
  if (!text->empty() && lines.front() != firstLine)
    return driver::report(absl::DataLossError(
        "--cache: " + quote(path) + " does not begin with " + quote(firstLine) +
        ": tune did not write it, and leaves it as it is; "
        "name another file"));
  for (llvm::StringRef line : lines) {
    auto [key, rest] = line.split(' ');
    auto [hash, result] = rest.split(' ');
    if (hashText(key.str() + result.str()) == hash)
      results[key.str()] = result.str();
  }
  return ok;
}

int Cache::write() {
  if (path.empty() || !isChanged)
    return ok;
  std::string text = firstLine.str() + "\n";
  for (const auto &[key, result] : results)
    text += key + " " + hashText(key + result) + " " + result + "\n";
  isChanged = false;
  return driver::writeFile(path, text);
}

const std::string *Cache::find(const std::string &key) const {
  auto found = results.find(key);
  return found == results.end() ? nullptr : &found->second;
}

void Cache::add(const std::string &key, const std::string &result) {
  isChanged |= results.emplace(key, result).second;
}

} // namespace meshwork::tune
