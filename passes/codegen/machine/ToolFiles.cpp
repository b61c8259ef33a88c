#include "passes/codegen/machine/ToolFiles.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
namespace meshwork::codegen {

ToolFiles::ToolFiles(const llvm::Twine &name, std::string &error)
    : error(error),
      created(llvm::sys::fs::createUniqueDirectory(name, directory)) {
  if (created)
    error = "cannot create a temporary directory: " + created.message();
}

ToolFiles::~ToolFiles() {
  if (!created)
    llvm::sys::fs::remove_directories(directory);
}

bool ToolFiles::write(const std::string &path, StringRef bytes) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (!code) {
    stream << bytes;
    stream.close();
    code = stream.error();
    stream.clear_error();
  }
  if (code)
    error = "cannot write " + path + ": " + code.message();
  return !code;
}

FailureOr<std::vector<char>> ToolFiles::read(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (buffer)
    return std::vector<char>((*buffer)->getBufferStart(),
                             (*buffer)->getBufferEnd());
  error = "cannot read " + path + ": " + buffer.getError().message();
  return failure();
}

} // namespace meshwork::codegen
