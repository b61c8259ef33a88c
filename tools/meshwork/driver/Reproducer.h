// What repeats a compilation that failed.
#pragma once

#include <set>
#include <string>

#include "mlir/Pass/PassManager.h"
#include "tools/meshwork/driver/Compile.h"

namespace meshwork::driver {

/// The texts that a compilation begins with.
struct CompileTexts {
  std::string spec, model;
};

/// Where a failed phase is written.
std::string reproducerPath(const CompileOptions &options);

/// That, and what leaveReproducer may write beside it.
std::set<std::string> reproducerPaths(const CompileOptions &options);

/// Writes what a phase that fails leaves to reproducerPath, whole or not at
/// all.
mlir::ReproducerStreamFactory reproducerTo(const CompileOptions &options);

/// stderr goes nowhere while this lives.
class Silence {
public:
  Silence();
  ~Silence();
  Silence(const Silence &) = delete;
  Silence &operator=(const Silence &) = delete;

private:
  int stderrBefore;
};

/// Of an error inside the compiler: writes model and spec beside each other and
/// prints the line that repeats it all.
void leaveReproducer(const CompileOptions &options, const CompileTexts &texts);

} // namespace meshwork::driver
