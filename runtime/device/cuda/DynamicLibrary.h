// A library that is opened when it is needed, and found incomplete at once.
#pragma once

#include "absl/strings/str_join.h"
#include <dlfcn.h>
#include <string>
#include <vector>

namespace meshwork::runtime::cuda {

class DynamicLibrary {
public:
  /// Opens the first of `names` that can be; it stays open.
  explicit DynamicLibrary(const std::vector<const char *> &names)
      : tried(absl::StrJoin(names, " or ")) {
    for (const char *name : names) {
      if (isOpen())
        break;
      handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (!isOpen())
        reasons.push_back(::dlerror());
    }
  }

  bool isOpen() const { return handle != nullptr; }
  /// "cannot open libx.so.1 or libx.so (libx.so.1: cannot open ...)".
  std::string whyNot() const {
    return "cannot open " + tried + " (" + absl::StrJoin(reasons, "; ") + ")";
  }

  template <typename Function> void find(Function &to, const char *symbol) {
    void *address = ::dlsym(handle, symbol);
    if (!address && missing.empty())
      missing = symbol;
    to = reinterpret_cast<Function>(address);
  }
  /// The first symbol that `find` did not find; empty when it found all.
  const std::string &firstMissing() const { return missing; }

private:
  void *handle = nullptr;
  std::string tried, missing;
  std::vector<std::string> reasons;
};

} // namespace meshwork::runtime::cuda
