// Files of the command line.
#include "lib/Driver/Files.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

namespace meshwork::driver {

static llvm::raw_ostream &error() {
  return llvm::errs() << "meshwork: error: ";
}

std::optional<std::string> readFile(const std::string &path, uint64_t maxBytes,
                                    int &code) {
  uint64_t size = 0;
  llvm::sys::fs::file_status status;
  code = noInput;
  if (path != "-") {
    if (std::error_code ec = llvm::sys::fs::status(path, status)) {
      error() << "cannot read " << path << ": " << ec.message() << "\n";
      return std::nullopt;
    }
    if (llvm::sys::fs::is_directory(status)) {
      error() << "cannot read " << path
              << ": it is a folder, expected a file\n";
      return std::nullopt;
    }
    size = status.getSize();
  }
  if (size <= maxBytes) {
    auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
    if (!buffer) {
      error() << "cannot read " << path << ": " << buffer.getError().message()
              << "\n";
      return std::nullopt;
    }
    size = (*buffer)->getBufferSize();
    if (size <= maxBytes)
      return (*buffer)->getBuffer().str();
  }
  code = badData;
  error() << path << " has " << size << " bytes, at most " << maxBytes
          << " are read\n";
  return std::nullopt;
}

int writeFile(const std::string &path, const char *data, size_t size) {
  if (path == "-") {
    llvm::outs().write(data, size);
    llvm::outs().flush();
    return ok;
  }
  llvm::Error failed =
      llvm::writeToOutput(path, [&](llvm::raw_ostream &stream) {
        stream.write(data, size);
        return llvm::Error::success();
      });
  if (!failed)
    return ok;
  error() << "cannot write " << path << ": "
          << llvm::toString(std::move(failed)) << "\n";
  return cannotCreate;
}

} // namespace meshwork::driver
