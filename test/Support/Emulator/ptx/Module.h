// A PTX module that this process can run.
//
//   absl::StatusOr<std::unique_ptr<ptx::Module>> module =
//       ptx::Module::parse(text);
//   absl::Status status = (*module)->launch("scale", {.grid = {8},
//       .block = {128}}, parameterBytes, memory);
//
// A module holds its variables (.global, .const): they keep their values from
// launch to launch.
#pragma once

#include "test/Support/Emulator/ptx/Launch.h"

#include "absl/status/statusor.h"

#include <map>
#include <memory>
#include <span>
#include <string_view>

namespace meshwork::ptx {

struct Shape {
  Dim3 grid = {}, block = {};
  uint32_t sharedBytes = 0; // dynamic
  unsigned numThreads = 1;  // of this process
  /// A warp that runs more is stopped; 0: no limit.
  uint64_t maxInstructions = 4'000'000'000;
  /// Blocks [first, end) of the grid run, the others do not: of grids that are
  /// too large to run whole.
  uint64_t firstBlock = 0, endBlock = UINT64_MAX;
};

/// invalidArgument when the device could not launch it so.
absl::Status checkShape(const Program &program, const Shape &shape);

class Module {
public:
  /// Reads and decodes all kernels and functions. An error names the line and
  /// its text.
  static absl::StatusOr<std::unique_ptr<Module>> parse(std::string_view text);

  int architecture() const { return architecture_; }      // 80 of sm_80
  int version() const { return version_; }                // 88 of 8.8
  bool onlyThisDevice() const { return onlyThisDevice_; } // the a of sm_90a
  /// Null when there is no such kernel.
  const Program *kernel(std::string_view name) const;
  std::vector<std::string> kernels() const;
  /// Where a variable of the module is; an empty range when there is none.
  Range variable(std::string_view name) const;

  /// `parameters`: the kernel's parameter space, Program::parameters says
  /// where each is. invalidArgument: the shape is wrong; outOfRange: an illegal
  /// address; failedPrecondition: another fault.
  absl::Status launch(std::string_view name, const Shape &shape,
                      std::span<const std::byte> parameters, Memory &memory,
                      Counts *counts = nullptr) const;

private:
  Module() = default;
  absl::Status allocateVariables(const ModuleSyntax &syntax);
  class WithVariables;
  struct Storage {
    std::unique_ptr<uint64_t[]> words;
    Range range;
  };

  int architecture_ = 0, version_ = 0;
  bool onlyThisDevice_ = false;
  std::map<std::string, Program, std::less<>> programs;
  std::map<std::string, Storage, std::less<>> variables;
};

} // namespace meshwork::ptx
