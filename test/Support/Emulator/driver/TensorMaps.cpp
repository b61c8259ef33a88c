// cuTensorMapEncodeTiled: only writes what the emulated kernels read.
#include "test/Support/Emulator/driver/State.h"
#include "test/Support/Emulator/ptx/TensorMap.h"

#include "absl/strings/str_cat.h"

#include <cstring>

using namespace meshwork::emulator;
namespace ptx = meshwork::ptx;

extern "C" {

Result cuTensorMapEncodeTiled(void *to, int dataType, unsigned rank,
                              uint64_t globalAddress, const uint64_t *dims,
                              const uint64_t *strideBytes, const uint32_t *box,
                              const uint32_t *elementStrides, int interleave,
                              int swizzle, int l2Promotion, int oobFill) {
  if (!state().initialized)
    return code::notInitialized;
  auto refuse = [](Result result, absl::string_view why) {
    say(absl::StrCat("cuTensorMapEncodeTiled: ", why));
    return result;
  };
  if (!to || reinterpret_cast<uint64_t>(to) % alignof(ptx::TensorMap))
    return refuse(code::invalidValue, "the map is not aligned to 64 bytes");
  absl::StatusOr<ptx::TensorMap> map = ptx::encodeTensorMap(
      {dataType, rank, globalAddress, dims, strideBytes, box, elementStrides,
       interleave, swizzle, l2Promotion, oobFill});
  if (!map.ok())
    return refuse(absl::IsUnimplemented(map.status()) ? code::notSupported
                                                      : code::invalidValue,
                  map.status().message());
  std::memcpy(to, &*map, sizeof *map);
  return code::success;
}

} // extern "C"
