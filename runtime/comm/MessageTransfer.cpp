#include "runtime/comm/MessageTransfer.h"
#include <chrono>

namespace meshwork::runtime {
namespace {

int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::vector<Strided> withGaps(const std::vector<Strided> &parts) {
  std::vector<Strided> found;
  for (const Strided &part : parts)
    if (!isDense(part))
      found.push_back(part);
  return found;
}

TensorCopies copiesOf(bool sends, const std::vector<Strided> &mine) {
  std::vector<Strided> dense = packed(mine, nullptr);
  return sends ? TensorCopies(mine, dense) : TensorCopies(dense, mine);
}
} // namespace

MessageTransfer::MessageTransfer(World &world, PairRequest of)
    : world(world), request(std::move(of)), what(request.describe()),
      mine(withGaps(request.parts)), copies(copiesOf(request.sends, mine)) {
  staging.resize(packedBytes(mine));
  staged = packed(mine, staging.data());
  size_t next = 0;
  for (const Strided &part : request.parts)
    travels.push_back(next < mine.size() && mine[next] == part ? staged[next++]
                                                               : part);
  pending.reserve(travels.size());
}

absl::Status MessageTransfer::start(ParallelFor parallel) {
  if (request.sends)
    copies.run(mine, staged, parallel);
  world.setUnderWay(1);
  for (const Strided &part : travels) {
    auto bytes = static_cast<size_t>(part.elements() * part.width());
    int tag = static_cast<int>(request.lane);
    absl::Status status = request.sends
                              ? world.send(World::transferLane, request.peer,
                                           part.data, bytes, pending, tag)
                              : world.receive(World::transferLane, request.peer,
                                              part.data, bytes, pending, tag);
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status MessageTransfer::finish(ParallelFor parallel, CommTimes &times) {
  int64_t begin = nowNs();
  absl::Status status = world.wait(World::transferLane, pending, what);
  world.setUnderWay(-1);
  int64_t came = nowNs();
  times.waitNs += came - begin;
  if (status.ok() && !request.sends)
    copies.run(staged, mine, parallel);
  times.moveNs += nowNs() - came;
  return status;
}

} // namespace meshwork::runtime
