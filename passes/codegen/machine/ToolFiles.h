// Files of a tool that reads and writes files, in a directory of their own.
#pragma once

#include <string>
#include <vector>

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/Twine.h"

namespace meshwork::codegen {

/// The directory is removed again with what is in it.
class ToolFiles {
public:
  /// What fails leaves the reason in `error`, which outlives this.
  ToolFiles(const llvm::Twine &name, std::string &error);
  ~ToolFiles();
  ToolFiles(const ToolFiles &) = delete;
  ToolFiles &operator=(const ToolFiles &) = delete;

  /// Nothing else may be called where there is no directory.
  bool areThere() const { return !created; }
  std::string path(const llvm::Twine &name) const {
    return (directory + "/" + name).str();
  }
  bool write(const std::string &path, llvm::StringRef bytes);
  mlir::FailureOr<std::vector<char>> read(const std::string &path);

private:
  std::string &error;
  llvm::SmallString<128> directory;
  std::error_code created;
};

} // namespace meshwork::codegen
