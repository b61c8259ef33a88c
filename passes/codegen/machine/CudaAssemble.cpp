// PTX to a cubin by ptxas.
#include <cstdlib>

#include "passes/codegen/machine/CudaCode.h"
#include "passes/codegen/machine/ToolFiles.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {

bool canRun(const llvm::Twine &path) {
  return llvm::sys::fs::can_execute(path);
}

/// The first lib/python*/site-packages of `root` that has the package.
std::string findInPython(StringRef root) {
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at(root + "/lib", error), end;
       at != end && !error; at.increment(error)) {
    if (!llvm::sys::path::filename(at->path()).starts_with("python"))
      continue;
    for (const char *packages : {"/site-packages", "/dist-packages"})
      if (std::string path =
              at->path() + packages + "/nvidia/cuda_nvcc/bin/ptxas";
          canRun(path))
        return path;
  }
  return "";
}

std::string readText(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// The number before `unit` in `line`, or 0.
int64_t numberBefore(StringRef line, StringRef unit) {
  size_t end = line.find(unit);
  if (end == StringRef::npos)
    return 0;
  StringRef digits = line.take_front(end).rtrim();
  digits = digits.take_back(digits.size() -
                            (digits.find_last_not_of("0123456789") + 1));
  int64_t number = 0;
  digits.getAsInteger(10, number);
  return number;
}

std::vector<KernelResources> readResources(StringRef report) {
  std::vector<KernelResources> resources;
  SmallVector<StringRef> lines;
  report.split(lines, '\n');
  for (StringRef line : lines) {
    if (line.contains("Compiling entry function '")) {
      resources.emplace_back();
      resources.back().kernel =
          line.split("function '").second.split('\'').first.str();
    } else if (!resources.empty() && line.contains("spill stores")) {
      resources.back().spillBytes = numberBefore(line, "bytes spill stores") +
                                    numberBefore(line, "bytes spill loads");
    } else if (!resources.empty() && line.contains("Used ")) {
      resources.back().registers = numberBefore(line, "registers");
    }
  }
  return resources;
}
} // namespace

std::string findPtxas(StringRef named) {
  if (!named.empty())
    return named.str();
  if (auto path = llvm::sys::findProgramByName("ptxas"))
    return *path;
  if (canRun("/usr/local/cuda/bin/ptxas"))
    return "/usr/local/cuda/bin/ptxas";
  for (const char *root :
       {std::getenv("VIRTUAL_ENV"), std::getenv("CONDA_PREFIX"),
        const_cast<char *>("/usr/local")})
    if (root)
      if (std::string path = findInPython(root); !path.empty())
        return path;
  return "";
}

FailureOr<CudaBinary> assemblePtx(StringRef ptx, const CudaTarget &target,
                                  StringRef ptxas, std::string &error) {
  ToolFiles files("meshwork-ptxas", error);
  std::string source = files.path("kernels.ptx"),
              binary = files.path("kernels.cubin"),
              report = files.path("report");
  if (!files.areThere() || !files.write(source, ptx))
    return failure();
  std::string arch = "-arch=" + target.arch;
  SmallVector<StringRef> arguments = {ptxas, arch, "-v", source, "-o", binary};
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(report),
                                          StringRef(report)};
  std::string failureText;
  int status = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt,
                                         redirects, /*SecondsToWait=*/600,
                                         /*MemoryLimit=*/0, &failureText);
  if (status != 0) {
    error = ptxas.str() + ": " +
            (failureText.empty() ? readText(report) : failureText);
    return failure();
  }
  FailureOr<std::vector<char>> cubin = files.read(binary);
  if (failed(cubin))
    return failure();
  return CudaBinary{std::move(*cubin), readResources(readText(report))};
}

} // namespace meshwork::codegen
