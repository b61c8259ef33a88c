#include "runtime/device/cuda/PtxModule.h"
#include "absl/strings/str_cat.h"
#include "runtime/StatusMacros.h"
#include <string>

namespace meshwork::runtime::cuda {

absl::StatusOr<std::unique_ptr<PtxModule>>
PtxModule::load(const Driver &driver, const char *text,
                absl::string_view ofWhat) {
  constexpr size_t logBytes = 4096;
  std::unique_ptr<PtxModule> made(new PtxModule(driver));
  std::string log(logBytes, '\0');
  int options[] = {jitOption::errorLogBuffer, jitOption::errorLogBufferBytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
  Result result = driver.moduleLoad(&made->module, text, 2, options, values);
  MESHWORK_RETURN_IF_ERROR(driver.check(
      result, absl::StrCat("loading the code of ", ofWhat, " (PTX)",
                           log[0] ? ": " : "", log.c_str())));
  return made;
}

PtxModule::~PtxModule() {
  if (module)
    (void)driver.moduleUnload(module);
}

absl::StatusOr<Function> PtxModule::find(const char *kernel) const {
  Function function = nullptr;
  MESHWORK_RETURN_IF_ERROR(
      driver.check(driver.moduleGetFunction(&function, module, kernel),
                   absl::StrCat("finding the kernel \"", kernel, "\"")));
  return function;
}

} // namespace meshwork::runtime::cuda
