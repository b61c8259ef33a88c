// Device code that is part of the runtime, as PTX that the build made.
//
//   MESHWORK_PTX(meshworkBoxesPtx, MESHWORK_BOXES_PTX) // at file scope
//   std::unique_ptr<PtxModule> code =
//       *PtxModule::load(driver, meshworkBoxesPtx, "collectives");
//   Function moveBoxes = *code->find("moveBoxes");
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/cuda/Driver.h"
#include <memory>

/// `symbol` is the text of a file, which a literal names, and a zero.
#define MESHWORK_PTX(symbol, file)                                             \
  asm(".pushsection .rodata\n"                                                 \
      ".hidden " #symbol "\n"                                                  \
      ".global " #symbol "\n" #symbol ":\n"                                    \
      ".incbin \"" file "\"\n"                                                 \
      ".byte 0\n"                                                              \
      ".popsection\n");                                                        \
  extern "C" const char symbol[];

namespace meshwork::runtime::cuda {

/// Loaded for the context that is current then.
class PtxModule {
public:
  /// `ofWhat` is for messages: "loading the code of collectives ...".
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
