#include "test/Support/Emulator/ptx/TensorMap.h"

#include "absl/strings/str_cat.h"

namespace meshwork::ptx {
namespace {

// Numbers of cuda.h.
constexpr int dataTypeF32 = 7, dataTypeBf16 = 9, swizzleNone = 0,
              swizzle128B = 3, lastSwizzle = 6, lastPromotion = 3,
              lastDataType = 15;

template <class... Text> absl::Status invalid(const Text &...text) {
  return absl::InvalidArgumentError(absl::StrCat(text...));
}
template <class... Text> absl::Status notModelled(const Text &...text) {
  return absl::UnimplementedError(absl::StrCat(text..., " is not modelled"));
}
bool within(int value, int last) { return value >= 0 && value <= last; }

absl::Status checkModes(const TensorMapRequest &r) {
  if (!within(r.dataType, lastDataType) || !within(r.swizzle, lastSwizzle) ||
      !within(r.l2Promotion, lastPromotion) || !within(r.interleave, 2) ||
      !within(r.oobFill, 1))
    return invalid("a data type or mode that does not exist");
  if (r.dataType != dataTypeF32 && r.dataType != dataTypeBf16)
    return notModelled("data type ", r.dataType);
  if (r.swizzle != swizzleNone && r.swizzle != swizzle128B)
    return notModelled("swizzle ", r.swizzle);
  if (r.interleave || r.oobFill)
    return notModelled("interleaving or filling with NaN");
  return absl::OkStatus();
}

absl::Status checkDim(const TensorMapRequest &r, unsigned dim) {
  uint64_t extent = r.globalDim[dim];
  if (extent == 0 || extent > 1ull << 32)
    return invalid("dim ", dim, " has ", extent, " elements");
  if (r.boxDim[dim] == 0 || r.boxDim[dim] > 256)
    return invalid("the box has ", r.boxDim[dim], " elements in dim ", dim);
  if (r.elementStrides[dim] == 0 || r.elementStrides[dim] > 8)
    return invalid("element stride ", r.elementStrides[dim]);
  if (r.elementStrides[dim] != 1)
    return notModelled("element stride ", r.elementStrides[dim]);
  if (dim == 0)
    return absl::OkStatus();
  uint64_t stride = r.globalStrides[dim - 1];
  if (stride % 16 || stride >= 1ull << 40)
    return invalid("the stride of dim ", dim, " is ", stride, " bytes");
  return absl::OkStatus();
}

absl::Status check(const TensorMapRequest &r, uint64_t elementBytes) {
  if (r.rank < 1 || r.rank > TensorMap::maxRank)
    return invalid(r.rank, " dims");
  if (!r.globalDim || !r.boxDim || !r.elementStrides ||
      (r.rank > 1 && !r.globalStrides))
    return invalid("a list is null");
  if (r.globalAddress == 0 || r.globalAddress % 16)
    return invalid("the address is null or not aligned to 16 bytes");
  for (unsigned dim = 0; dim < r.rank; ++dim)
    if (absl::Status status = checkDim(r, dim); !status.ok())
      return status;
  uint64_t rowBytes = r.boxDim[0] * elementBytes;
  if (rowBytes % 16)
    return invalid("a row of the box has ", rowBytes,
                   " bytes, expected a multiple of 16");
  if (r.swizzle == swizzle128B && rowBytes > 128)
    return invalid("a row of the box has ", rowBytes,
                   " bytes, at most 128 with SWIZZLE_128B");
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<TensorMap> encodeTensorMap(const TensorMapRequest &r) {
  if (absl::Status status = checkModes(r); !status.ok())
    return status;
  uint64_t elementBytes = r.dataType == dataTypeBf16 ? 2 : 4;
  if (absl::Status status = check(r, elementBytes); !status.ok())
    return status;
  TensorMap map;
  map.magic = TensorMap::magicNumber;
  map.address = r.globalAddress;
  map.rank = uint8_t(r.rank);
  map.swizzled = r.swizzle == swizzle128B;
  for (unsigned dim = 0; dim < r.rank; ++dim) {
    map.dims[dim] = r.globalDim[dim];
    map.strides[dim] = dim ? r.globalStrides[dim - 1] : elementBytes;
    map.box[dim] = uint16_t(r.boxDim[dim]);
  }
  return map;
}

} // namespace meshwork::ptx
