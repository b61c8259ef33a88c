// Device code that is part of the runtime: PTX that the build made and, where
// it had NVIDIA's assembler, machine code of one architecture.
//
//   constexpr char ptx[] =
//   #include MESHWORK_BOXES_PTX // a literal that the build has written
//       ;
//   std::unique_ptr<PtxModule> code = *PtxModule::load(driver, {ptx},
//   "collectives"); Function moveBoxes = *code->find("moveBoxes");
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/device/cuda/Driver.h"
#include <memory>

namespace meshwork::runtime::cuda {

struct DeviceCode {
  const char *ptx; // ends with a zero
  /// Loads at once and runs as it was tested; empty, or older than the driver
  /// reads: the driver compiles the PTX.
  absl::Span<const unsigned char> cubin = {};
};

/// Loaded for the context that is current then.
class PtxModule {
public:
  /// `ofWhat` is for messages: "loading the code of collectives ...".
  static absl::StatusOr<std::unique_ptr<PtxModule>>
  load(const Driver &driver, const DeviceCode &code, absl::string_view ofWhat);
  PtxModule(const PtxModule &) = delete;
  ~PtxModule();

  absl::StatusOr<Function> find(const char *kernel) const;
  /// What the kernel takes once it is machine code; `attribute` is one of
  /// functionAttribute.
  absl::StatusOr<int> read(int attribute, Function kernel) const;

private:
  explicit PtxModule(const Driver &driver) : driver(driver) {}

  const Driver &driver;
  Module module = nullptr;
};

} // namespace meshwork::runtime::cuda
