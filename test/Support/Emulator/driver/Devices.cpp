// cuInit, devices, the primary context, names of errors.
#include "test/Support/Emulator/driver/State.h"

#include "absl/strings/str_cat.h"

#include <cstring>

using namespace meshwork::emulator;

namespace {

struct ErrorText {
  Result error;
  const char *name, *text;
};
constexpr ErrorText errorTexts[] = {
    {code::success, "CUDA_SUCCESS", "no error"},
    {code::invalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {code::outOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {code::notInitialized, "CUDA_ERROR_NOT_INITIALIZED",
     "initialization error"},
    {code::noDevice, "CUDA_ERROR_NO_DEVICE", "no device is there"},
    {code::invalidDevice, "CUDA_ERROR_INVALID_DEVICE",
     "invalid device ordinal"},
    {code::invalidImage, "CUDA_ERROR_INVALID_IMAGE",
     "device kernel image is invalid"},
    {code::invalidContext, "CUDA_ERROR_INVALID_CONTEXT",
     "invalid device context"},
    {code::noBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is there for this device"},
    {code::invalidPtx, "CUDA_ERROR_INVALID_PTX", "the PTX is invalid"},
    {code::unsupportedPtxVersion, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the PTX is of a newer version than the driver"},
    {code::invalidHandle, "CUDA_ERROR_INVALID_HANDLE",
     "invalid resource handle"},
    {code::notFound, "CUDA_ERROR_NOT_FOUND", "symbol not found"},
    {code::notReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {code::illegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access"},
    {code::launchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out"},
    {code::misalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS",
     "misaligned address"},
    {code::launchFailed, "CUDA_ERROR_LAUNCH_FAILED",
     "unspecified launch failure"},
    {code::notSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {code::captureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted while a stream is captured"},
    {code::captureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "the capture failed by an error before"},
    {code::captureMerge, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "two captures would be joined"},
    {code::captureUnmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "the capture did not begin in this stream"},
    {code::captureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "the capture has work that was not joined to the first stream"},
    {code::captureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "a dependency on work that is not captured"},
    {code::capturedEvent, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event of a captured stream"},
    {code::captureWrongThread, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "the capture was begun by another thread"},
};
const ErrorText *find(Result error) {
  for (const ErrorText &each : errorTexts)
    if (each.error == error)
      return &each;
  return nullptr;
}

/// A context's handle is its device's state.
DeviceState *findDevice(Device device) {
  State &all = state();
  return device >= 0 && size_t(device) < all.devices.size()
             ? &all.devices[size_t(device)]
             : nullptr;
}
DeviceState *findContext(Context context) {
  for (DeviceState &device : state().devices)
    if (reinterpret_cast<Context>(&device) == context && device.references > 0)
      return &device;
  return nullptr;
}

/// The last reference is gone: all of the context's objects go.
void destroyContext(DeviceState &device) {
  synchronize(device);
  auto ofDevice = [&](const auto &object) { return &object.device == &device; };
  std::vector<std::shared_ptr<StreamState>> streams;
  {
    std::lock_guard lock(state().mutex);
    streams.swap(device.streams);
  }
  for (const std::shared_ptr<StreamState> &stream : streams)
    stream->close();
  state().streams.removeIf(ofDevice);
  state().events.removeIf(ofDevice);
  state().functions.removeIf(
      [&](const FunctionState &f) { return f.module->device == &device; });
  state().modules.removeIf(
      [&](const ModuleState &module) { return module.device == &device; });
  if (size_t bytes = state().memory.releaseAll(device.ordinal))
    say(absl::StrCat(bytes, " bytes of device ", device.ordinal,
                     " were not freed when its context ended"));
  device.error = code::success;
}

} // namespace

extern "C" {

Result cuInit(unsigned flags) {
  if (flags != 0)
    return code::invalidValue;
  if (state().devices.empty())
    return code::noDevice;
  state().initialized = true;
  return code::success;
}
Result cuDriverGetVersion(int *version) {
  if (!version)
    return code::invalidValue;
  *version = state().settings.driver;
  return code::success;
}
Result cuGetErrorName(Result error, const char **text) {
  const ErrorText *found = find(error);
  *text = found ? found->name : nullptr;
  return found ? code::success : code::invalidValue;
}
Result cuGetErrorString(Result error, const char **text) {
  const ErrorText *found = find(error);
  *text = found ? found->text : nullptr;
  return found ? code::success : code::invalidValue;
}
Result cuDeviceGetCount(int *count) {
  if (!state().initialized)
    return code::notInitialized;
  *count = state().settings.devices;
  return code::success;
}
Result cuDeviceGet(Device *device, int ordinal) {
  if (!state().initialized)
    return code::notInitialized;
  if (!findDevice(ordinal))
    return code::invalidDevice;
  *device = ordinal;
  return code::success;
}
Result cuDeviceGetName(char *name, int length, Device device) {
  if (!findDevice(device))
    return code::invalidDevice;
  if (!name || length < 1)
    return code::invalidValue;
  std::snprintf(name, size_t(length), "Meshwork emulator");
  return code::success;
}
/// Zeros, and the number among all devices of the machine.
Result cuDeviceGetUuid_v2(Uuid *uuid, Device device) {
  if (!findDevice(device))
    return code::invalidDevice;
  *uuid = {static_cast<unsigned char>(findDevice(device)->numberHere)};
  return code::success;
}
Result cuDeviceGetAttribute(int *value, int attribute, Device device) {
  if (!findDevice(device))
    return code::invalidDevice;
  const Settings &settings = state().settings;
  switch (attribute) {
  case attribute::maxThreadsPerBlock:
    *value = 1024;
    return code::success;
  case attribute::clockRateKhz:
    *value = 1000000;
    return code::success;
  case attribute::multiprocessors:
    *value = 4;
    return code::success;
  case attribute::computeMajor:
    *value = settings.major;
    return code::success;
  case attribute::computeMinor:
    *value = settings.minor;
    return code::success;
  case attribute::maxSharedBytesOptIn:
    *value = int(settings.sharedOptIn());
    return code::success;
  default:
    say(absl::StrCat("device attribute ", attribute, " is not modelled"));
    return code::invalidValue;
  }
}
Result cuDevicePrimaryCtxRetain(Context *context, Device device) {
  if (!state().initialized)
    return code::notInitialized;
  DeviceState *found = findDevice(device);
  if (!found)
    return code::invalidDevice;
  std::lock_guard lock(state().mutex);
  ++found->references;
  *context = reinterpret_cast<Context>(found);
  return code::success;
}
Result cuDevicePrimaryCtxRelease_v2(Device device) {
  DeviceState *found = findDevice(device);
  if (!found)
    return code::invalidDevice;
  bool last = false;
  {
    std::lock_guard lock(state().mutex);
    if (found->references == 0)
      return code::invalidContext;
    last = --found->references == 0;
  }
  if (last)
    destroyContext(*found);
  return code::success;
}
Result cuCtxSetCurrent(Context context) {
  if (!state().initialized)
    return code::notInitialized;
  DeviceState *found = context ? findContext(context) : nullptr;
  if (context && !found)
    return code::invalidContext;
  setCurrent(found);
  return code::success;
}
Result cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  DeviceState *device;
  if (Result failed = current(device))
    return failed;
  *least = 0;
  *greatest = greatestPriority;
  return code::success;
}

} // extern "C"
