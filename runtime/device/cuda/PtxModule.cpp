#include "runtime/device/cuda/PtxModule.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include <string>

namespace meshwork::runtime::cuda {

absl::StatusOr<std::unique_ptr<PtxModule>>
PtxModule::load(const Driver &driver, const DeviceCode &code,
                absl::string_view ofWhat) {
  constexpr size_t logBytes = 4096;
  std::unique_ptr<PtxModule> made(new PtxModule(driver));
  if (!code.cubin.empty() &&
      driver.moduleLoad(&made->module, code.cubin.data(), 0, nullptr,
                        nullptr) == result::success)
    return made;
  made->module = nullptr;
  std::string log(logBytes, '\0');
  int options[] = {jitOption::errorLogBuffer, jitOption::errorLogBufferBytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
  Result result =
      driver.moduleLoad(&made->module, code.ptx, 2, options, values);
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

absl::StatusOr<int> PtxModule::read(int attribute, Function kernel) const {
  int value = 0;
  MESHWORK_RETURN_IF_ERROR(
      driver.check(driver.functionGetAttribute(&value, attribute, kernel),
                   "reading an attribute of a kernel"));
  return value;
}

} // namespace meshwork::runtime::cuda
