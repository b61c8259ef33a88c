#include "runtime/device/cuda/NcclTransfer.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/comm/TensorCopies.h"

namespace meshwork::runtime::cuda {
namespace {
constexpr uint64_t slotAlignment = 256;

uint64_t slotBytes(const Strided &part) {
  return (packedBytes({part}) + slotAlignment - 1) / slotAlignment *
         slotAlignment;
}
} // namespace

NcclTransfer::NcclTransfer(const Driver &driver, const NcclLibrary *registers,
                           NcclCommunicator &communicator, uint32_t peer,
                           PairRequest of)
    : communicator(communicator), request(std::move(of)),
      what(request.describe()), isRegistered(registers),
      staging(driver, registers) {
  for (const Strided &part : request.parts)
    messages.push_back({request.sends, peer,
                        reinterpret_cast<DevicePtr>(part.data),
                        static_cast<uint64_t>(part.elements()), part.dtype});
}

absl::Status NcclTransfer::place(const std::shared_ptr<BoxKernels> &kernels,
                                 Stream stream) {
  uint64_t bytes = 0;
  for (const Strided &part : request.parts)
    bytes += isDense(part) ? 0 : slotBytes(part);
  MESHWORK_RETURN_IF_ERROR(
      staging.allocate(bytes, "to pack what a transfer moves"));
  if (isRegistered)
    MESHWORK_RETURN_IF_ERROR(staging.registerWith(communicator));
  BoxTable packs, unpacks;
  std::vector<Box> boxes; // until the tables are set
  boxes.reserve(request.parts.size());
  DevicePtr slot = staging.address();
  for (size_t i = 0; i < request.parts.size(); ++i) {
    const Strided &part = request.parts[i];
    if (isDense(part))
      continue;
    const Strided dense = packed({part}, nullptr)[0];
    auto own = reinterpret_cast<DevicePtr>(part.data);
    const Box &box =
        request.sends
            ? boxes.emplace_back(part.shape, part.strides, dense.strides, 0, 0)
            : boxes.emplace_back(part.shape, dense.strides, part.strides, 0, 0);
    (request.sends ? packs : unpacks)
        .copy({box, 0, box.elements()}, part.width(),
              request.sends ? own : slot, request.sends ? slot : own);
    messages[i].address = slot;
    slot += slotBytes(part);
  }
  MESHWORK_ASSIGN_OR_RETURN(pack, BoxMoves::create(kernels, packs.bytes()));
  MESHWORK_ASSIGN_OR_RETURN(unpack, BoxMoves::create(kernels, unpacks.bytes()));
  MESHWORK_RETURN_IF_ERROR(pack->set(packs, stream));
  return unpack->set(unpacks, stream);
}

absl::Status NcclTransfer::start(Stream stream, CommTimes &times) {
  MESHWORK_RETURN_IF_ERROR(pack->enqueue(stream));
  MESHWORK_RETURN_IF_ERROR(
      swapMessages(&communicator, messages, stream, what, times));
  return unpack->enqueue(stream);
}

} // namespace meshwork::runtime::cuda
