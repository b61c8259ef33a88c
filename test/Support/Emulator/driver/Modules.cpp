// Modules, functions and launches.
#include "test/Support/Emulator/driver/State.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

using namespace meshwork::emulator;
namespace ptx = meshwork::ptx;

namespace {

/// CUDA 11.8 brought 7.8, 12.0 8.0, 13.0 9.0 (PTX ISA, "Release Notes").
int newestPtxVersion() {
  int cuda = state().settings.driver / 10; // 1108 for 11.8
  return (cuda / 100 - 4) * 10 + cuda % 100;
}
constexpr size_t sharedByDefault = 48 << 10;

/// Where the caller wants the error's text.
void writeLog(const std::string &text, unsigned numOptions, const int *options,
              void *const *values) {
  char *buffer = nullptr;
  size_t size = 0;
  for (unsigned i = 0; i < numOptions; ++i) {
    if (options[i] == jitOption::errorLogBuffer)
      buffer = static_cast<char *>(values[i]);
    if (options[i] == jitOption::errorLogBufferBytes)
      size = reinterpret_cast<size_t>(values[i]);
  }
  if (buffer && size)
    std::snprintf(buffer, size, "%s", text.c_str());
}

/// A cubin is for the hardware; PTX above the device cannot run on it, an "a"
/// architecture on no other.
bool runsHere(const ptx::Module &module) {
  const Settings &settings = state().settings;
  int device = settings.major * 10 + settings.minor;
  return module.onlyThisDevice() ? module.architecture() == device
                                 : module.architecture() <= device;
}

Result loadModule(DeviceState &device, std::string_view text,
                  std::shared_ptr<ModuleState> &to, std::string &log) {
  constexpr std::string_view elf = "\x7f"
                                   "ELF";
  if (text.starts_with(elf)) {
    log = "the emulator runs PTX; this is a cubin";
    return code::noBinaryForGpu;
  }
  absl::StatusOr<std::unique_ptr<ptx::Module>> parsed =
      ptx::Module::parse(text);
  if (!parsed.ok()) {
    log = std::string(parsed.status().message());
    return code::invalidPtx;
  }
  const ptx::Module &module = **parsed;
  if (module.version() > newestPtxVersion()) {
    log = absl::StrCat("PTX version ", module.version() / 10, ".",
                       module.version() % 10, ", the newest known is ",
                       newestPtxVersion() / 10, ".", newestPtxVersion() % 10);
    return code::unsupportedPtxVersion;
  }
  if (!runsHere(module)) {
    log =
        absl::StrCat("PTX for sm_", module.architecture(),
                     module.onlyThisDevice() ? "a" : "", ", the device is sm_",
                     state().settings.major, state().settings.minor);
    return code::noBinaryForGpu;
  }
  to = std::make_shared<ModuleState>();
  to->device = &device;
  to->module = *std::move(parsed);
  return code::success;
}

size_t staticShared(const ptx::Program &program) {
  return program.dynamicSharedBegin - ptx::sharedBegin;
}

/// Only ptxas knows; where a kernel says how many threads a block has, ptxas
/// may use all that they share, and does where they hand registers over.
int registersOf(const ptx::Program &program) {
  constexpr unsigned all = 65536, unit = 8, most = 255;
  return program.maxThreads
             ? int(std::min(most, all / program.maxThreads / unit * unit))
             : 32;
}

Result errorOf(const absl::Status &status) {
  switch (status.code()) {
  case absl::StatusCode::kOutOfRange:
    return code::illegalAddress;
  case absl::StatusCode::kDeadlineExceeded:
    return code::launchTimeout;
  default:
    return code::launchFailed;
  }
}

void runKernel(const FunctionState &function, const ptx::Shape &shape,
               const std::vector<std::byte> &parameters) {
  DeviceState &device = *function.module->device;
  if (device.error != code::success)
    return;
  DeviceView memory(state().memory, device.ordinal);
  absl::Status status = function.module->module->launch(
      function.program->name, shape, parameters, memory);
  if (!status.ok())
    failRunning(errorOf(status), std::string(status.message()));
}

Result refuse(const FunctionState &function, const std::string &why) {
  say(absl::StrCat("launch of ", function.program->name, ": ", why));
  return code::invalidValue;
}

Result checkLaunch(const FunctionState &function, const ptx::Shape &shape,
                   void **parameters, void **extra) {
  const ptx::Program &program = *function.program;
  if (absl::Status status = ptx::checkShape(program, shape); !status.ok())
    return refuse(function, std::string(status.message()));
  size_t fixed = staticShared(program);
  size_t allowed = function.maxDynamicShared ? fixed + function.maxDynamicShared
                                             : sharedByDefault;
  if (fixed + shape.sharedBytes > allowed)
    return refuse(function,
                  absl::StrCat(fixed, " + ", shape.sharedBytes,
                               " bytes of shared memory, allowed are ", allowed,
                               "; cuFuncSetAttribute allows more"));
  if (extra)
    return code::notSupported;
  if (!program.parameters.empty() && !parameters)
    return refuse(function, "no parameters");
  for (size_t p = 0; p < program.parameters.size(); ++p)
    if (!parameters[p])
      return refuse(function, absl::StrCat("parameter ", p, " is null"));
  return code::success;
}

} // namespace

extern "C" {

Result cuModuleLoadDataEx(Module *handle, const void *image,
                          unsigned numOptions, int *options, void **values) {
  DeviceState *device;
  if (Result failed = currentForUnsafeCall(device))
    return failed;
  if (!handle || !image)
    return code::invalidValue;
  std::shared_ptr<ModuleState> module;
  std::string log;
  Result loaded =
      loadModule(*device, static_cast<const char *>(image), module, log);
  writeLog(log, numOptions, options, values);
  if (loaded == code::success)
    *handle = static_cast<Module>(state().modules.add(module));
  return loaded;
}
Result cuModuleUnload(Module handle) {
  std::shared_ptr<ModuleState> module = state().modules.remove(handle);
  if (!module)
    return code::invalidHandle;
  state().functions.removeIf(
      [&](const FunctionState &f) { return f.module == module; });
  return code::success;
}
Result cuModuleGetFunction(Function *handle, Module moduleHandle,
                           const char *name) {
  DeviceState *device;
  if (Result failed = current(device))
    return failed;
  std::shared_ptr<ModuleState> module = state().modules.find(moduleHandle);
  if (!module)
    return code::invalidHandle;
  if (!handle || !name)
    return code::invalidValue;
  const ptx::Program *program = module->module->kernel(name);
  if (!program)
    return code::notFound;
  auto function = std::make_shared<FunctionState>();
  function->module = module;
  function->program = program;
  *handle = static_cast<Function>(state().functions.add(function));
  return code::success;
}
Result cuFuncGetAttribute(int *value, int attribute, Function handle) {
  std::shared_ptr<FunctionState> function = state().functions.find(handle);
  if (!function)
    return code::invalidHandle;
  const ptx::Program &program = *function->program;
  switch (attribute) {
  case 0: // threads
    *value = program.maxThreads ? int(program.maxThreads) : 1024;
    return code::success;
  case 1: // static shared memory
    *value = int(staticShared(program));
    return code::success;
  case functionAttribute::localBytes:
    *value = int(program.localBytes - ptx::localBegin);
    return code::success;
  case functionAttribute::registers:
    *value = registersOf(program);
    return code::success;
  case functionAttribute::maxDynamicSharedBytes:
    *value = function->maxDynamicShared
                 ? int(function->maxDynamicShared)
                 : int(sharedByDefault - staticShared(program));
    return code::success;
  default:
    return code::invalidValue;
  }
}
Result cuFuncSetAttribute(Function handle, int attribute, int value) {
  std::shared_ptr<FunctionState> function = state().functions.find(handle);
  if (!function)
    return code::invalidHandle;
  if (attribute != functionAttribute::maxDynamicSharedBytes || value < 0)
    return code::invalidValue;
  if (staticShared(*function->program) + size_t(value) >
      state().settings.sharedOptIn())
    return refuse(*function, absl::StrCat(value, " bytes of shared memory are "
                                                 "more than a block can have"));
  function->maxDynamicShared = uint32_t(value);
  return code::success;
}
Result cuLaunchKernel(Function handle, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned sharedBytes,
                      Stream streamHandle, void **parameters, void **extra) {
  DeviceState *device;
  if (Result failed = current(device))
    return failed;
  std::shared_ptr<FunctionState> function = state().functions.find(handle);
  std::shared_ptr<StreamState> stream = state().streams.find(streamHandle);
  if (!function || !stream || &stream->device != function->module->device)
    return code::invalidHandle;
  ptx::Shape shape;
  shape.grid = {gridX, gridY, gridZ};
  shape.block = {blockX, blockY, blockZ};
  shape.sharedBytes = sharedBytes;
  shape.numThreads = state().settings.threads;
  shape.maxInstructions = state().settings.instructions;
  if (Result failed = checkLaunch(*function, shape, parameters, extra))
    return failed;
  const ptx::Program &program = *function->program;
  std::vector<std::byte> bytes(program.parameterBytes);
  for (size_t p = 0; p < program.parameters.size(); ++p)
    std::memcpy(bytes.data() + program.parameters[p].offset, parameters[p],
                program.parameters[p].bytes);
  return enqueue(*stream, [function, shape, bytes = std::move(bytes)] {
    runKernel(*function, shape, bytes);
  });
}

} // extern "C"
