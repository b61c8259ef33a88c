// Runs every instruction of a plan on a GPU and, from the same inputs, on the
// CPU, and compares what they write. For a plan that has code for both
// (`meshwork compile --with-cpu-code`). The run goes on with the CPU's results,
// so one wrong instruction shows as one. It goes on after a difference, tells
// of all that differ, and fails at its end.
#pragma once

#include "runtime/device/cpu/CpuExecutor.h"
#include <map>
#include <mutex>
#include <string>

namespace meshwork::runtime {

/// How far results of one kind of instruction were from the CPU's.
struct Deviation {
  uint64_t instructions = 0; // compared
  double worst = 0;          // share of what is allowed
  std::string where;         // of the worst
};

class ComparingDevice : public Device {
public:
  /// failedPrecondition when the plan has no code for the CPU.
  static absl::StatusOr<std::unique_ptr<Device>>
  open(std::unique_ptr<Device> tested, const plan::Plan &plan);

  absl::StatusOr<uint64_t> checkMemory(const std::vector<CoreShare> &cores,
                                       uint32_t ranksHere) override;
  absl::StatusOr<std::unique_ptr<Executor>>
  makeExecutor(const ExecutorSetup &setup) override;
  /// A line for each kind of instruction, then one for each result that
  /// differs, the worst first.
  std::string summary() const override;
  /// internal where results differ, with the worst of them.
  absl::Status verdict() const override;
  void note(const std::string &kind, double share, const std::string &where);

private:
  ComparingDevice(std::unique_ptr<Device> tested,
                  std::unique_ptr<KernelLibrary> kernels)
      : tested(std::move(tested)), kernels(std::move(kernels)) {}

  std::unique_ptr<Device> tested;
  std::unique_ptr<KernelLibrary> kernels;
  mutable std::mutex mutex;
  std::map<std::string, Deviation> deviations;
  std::map<std::string, double> wrong; // results, the worst of all steps
};

} // namespace meshwork::runtime
