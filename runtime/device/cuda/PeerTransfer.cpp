#include "runtime/device/cuda/PeerTransfer.h"
#include "lib/Plan/StatusMacros.h"

namespace meshwork::runtime::cuda {

absl::StatusOr<std::unique_ptr<PeerTransfer>>
PeerTransfer::create(std::shared_ptr<BoxKernels> kernels, PairLane &lane,
                     uint32_t rank, PairRequest request) {
  std::unique_ptr<PeerTransfer> made(
      new PeerTransfer(std::move(kernels), lane));
  Side &side = made->side;
  side.rank = rank;
  side.peer = request.peer;
  side.sends = request.sends;
  side.what = request.describe();
  side.parts = std::move(request.parts);
  const Driver &driver = made->kernels->driver;
  for (Event *event : {&side.ready, &side.done})
    MESHWORK_RETURN_IF_ERROR(
        driver.check(driver.eventCreate(event, eventDisableTiming),
                     "making an event of a transfer"));
  return made;
}

PeerTransfer::~PeerTransfer() {
  for (Event event : {side.ready, side.done})
    if (event)
      (void)kernels->driver.eventDestroy(event);
}

absl::Status PeerTransfer::start(Stream stream, CommTimes &) {
  MESHWORK_RETURN_IF_ERROR(
      kernels->driver.check(kernels->driver.eventRecord(side.ready, stream),
                            "recording an event of a transfer"));
  number = lane.start(side);
  return absl::OkStatus();
}

absl::Status PeerTransfer::finish(Stream stream, CommTimes &times) {
  auto move = [&](const PairLane::Side &from, const PairLane::Side &to) {
    return copy(static_cast<const Side &>(from), static_cast<const Side &>(to),
                stream);
  };
  const PairLane::Side *mover = nullptr;
  MESHWORK_ASSIGN_OR_RETURN(mover, lane.finish(side, number, move, times));
  if (mover == &side)
    return absl::OkStatus();
  return kernels->driver.check(
      kernels->driver.streamWaitEvent(
          stream, static_cast<const Side *>(mover)->done, 0),
      "waiting for a peer's event");
}

absl::Status PeerTransfer::copy(const Side &from, const Side &to,
                                Stream stream) {
  const Driver &driver = kernels->driver;
  const Side &other = side.sends ? to : from;
  MESHWORK_RETURN_IF_ERROR(
      driver.check(driver.streamWaitEvent(stream, other.ready, 0),
                   "waiting for a peer's event"));
  std::unique_ptr<BoxMoves> &moves = tables[&other];
  if (!moves) {
    BoxTable table;
    std::vector<Box> boxes;
    boxes.reserve(from.parts.size());
    for (size_t i = 0; i < from.parts.size(); ++i) {
      const Strided &src = from.parts[i], &dst = to.parts[i];
      const Box &box =
          boxes.emplace_back(src.shape, src.strides, dst.strides, 0, 0);
      table.copy({box, 0, box.elements()}, src.width(),
                 reinterpret_cast<DevicePtr>(src.data),
                 reinterpret_cast<DevicePtr>(dst.data));
    }
    MESHWORK_ASSIGN_OR_RETURN(moves, BoxMoves::create(kernels, table.bytes()));
    MESHWORK_RETURN_IF_ERROR(moves->set(table, stream));
  }
  MESHWORK_RETURN_IF_ERROR(moves->enqueue(stream));
  return driver.check(driver.eventRecord(side.done, stream),
                      "recording an event of a transfer");
}

} // namespace meshwork::runtime::cuda
