// Device code that is part of the runtime, as PTX that the build made.
//
//   constexpr char ptx[] =
//   #include MESHWORK_BOXES_PTX // a literal that the build has written
//       ;
//   std::unique_ptr<PtxModule> code = *PtxModule::load(driver, ptx,
//   "collectives"); Function moveBoxes = *code->find("moveBoxes");
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/cuda/Driver.h"
#include <memory>

namespace meshwork::runtime::cuda {

/// Loaded for the context that is current then.
class PtxModule {
public:
  /// `ofWhat` is for messages: "loading the code of collectives ...". `text`
  /// ends with a zero.
  static absl::StatusOr<std::unique_ptr<PtxModule>>
  load(const Driver &driver, const char *text, absl::string_view ofWhat);
  PtxModule(const PtxModule &) = delete;
  ~PtxModule();

  absl::StatusOr<Function> find(const char *kernel) const;

private:
  explicit PtxModule(const Driver &driver) : driver(driver) {}

  const Driver &driver;
  Module module = nullptr;
};

} // namespace meshwork::runtime::cuda
