// One GPU of this process: its context and the plan's kernels on it.
//
//   auto gpu = Gpu::open(driver, 0, plan);
//   auto function = (*gpu)->kernel(3);
#pragma once

#include "meshwork/Plan/Plan.h"
#include "runtime/device/cuda/Driver.h"
#include <memory>
#include <string>
#include <vector>

namespace meshwork::runtime::cuda {

class Gpu {
public:
  /// failedPrecondition where no image of the plan runs on it: names those
  /// there are, and what the driver said.
  static absl::StatusOr<std::unique_ptr<Gpu>>
  open(const Driver &driver, int ordinal, const plan::Plan &plan);
  /// Without a plan's code.
  static absl::StatusOr<std::unique_ptr<Gpu>> open(const Driver &driver,
                                                   int ordinal);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  const Driver &driver() const { return api; }
  /// Once in each thread that uses it.
  absl::Status makeCurrent() const;
  int ordinal() const { return number; }
  Device device() const { return handle; }
  /// "NVIDIA H100 80GB HBM3 (compute capability 9.0)".
  std::string describe() const;
  absl::StatusOr<uint64_t> freeBytes() const;

  /// Tells the plan's code from any other: "sm_90a 0123456789abcdef".
  const std::string &codeName() const { return code; }

  /// Plan.kernels, ready to launch with their shared memory.
  Function kernel(uint32_t index) const { return kernels[index]; }

private:
  Gpu(const Driver &driver, int ordinal) : api(driver), number(ordinal) {}
  absl::Status start();
  absl::Status loadCode(const plan::Plan &plan);
  absl::Status loadImage(const plan::Image &image);
  absl::Status findKernels(const plan::Plan &plan);
  absl::StatusOr<int> read(int attribute) const;

  const Driver &api;
  int number;
  Device handle = 0;
  int major = 0, minor = 0;
  std::string name, code;
  Context context = nullptr;
  Module module = nullptr;
  std::vector<Function> kernels;
};

/// Whether code for `arch` ("sm_90a") runs on compute capability major.minor
/// (CUDA programming guide). A cubin runs on its own major version from its
/// minor version on, PTX on all from there on. Code that ends in "a" runs on
/// that one alone.
bool runsOn(std::string_view arch, plan::ImageKind kind, int major, int minor);

} // namespace meshwork::runtime::cuda
