#include "runtime/core/Snapshot.h"
#include "runtime/core/Checked.h"
#include "runtime/core/GlobalTensors.h"

namespace meshwork::runtime {
namespace {
constexpr int64_t pieceElements = int64_t{1} << 20;

/// Elements of `block`, row-major, to `to`.
void pack(const Strided &part, const Block &block, std::byte *to) {
  Box box(block.extent, part.strides, rowMajor(block.extent),
          offsetOf(part.strides, block.offset), 0);
  int64_t width = part.width();
  box.forEachRun(0, box.elements(), [&](const Run &run) {
    copyRun(part.data + run.src * width, run.srcStride, to + run.dst * width,
            run.dstStride, run.count, width);
  });
}
} // namespace

absl::StatusOr<Snapshot> Snapshot::create(const Rank &rank,
                                          const plan::Plan &plan, bool copies) {
  Snapshot snapshot(rank);
  snapshot.all = savedTensors(plan);
  snapshot.own = ownBoxes(plan, snapshot.all, rank.rank());
  snapshot.places = {0};
  std::vector<BoxToWrite> boxes = snapshot.toWrite();
  MESHWORK_RETURN_IF_ERROR(checkBoxes(boxes));
  for (const BoxToWrite &box : boxes)
    snapshot.places.push_back(snapshot.places.back() + box.bytes());
  if (copies) {
    absl::StatusOr<Arena> arena = Arena::create(snapshot.places.back());
    MESHWORK_RETURN_IF_ERROR(arena.status());
    snapshot.copy = *std::move(arena);
  }
  return snapshot;
}

std::vector<BoxToWrite> Snapshot::toWrite() const {
  std::vector<BoxToWrite> boxes;
  for (const OwnBox &box : own) {
    const SavedTensor &tensor = all[box.tensor];
    const SavedState &state = tensor.states[box.state];
    boxes.push_back({tensor.parameter->name()->str(), state.name,
                     storedType(state), box.block.begin, box.block.extent});
  }
  return boxes;
}

absl::StatusOr<Snapshot::Source> Snapshot::sourceOf(const OwnBox &box) const {
  absl::StatusOr<HostView> host = rank->toHost(box.view);
  MESHWORK_RETURN_IF_ERROR(host.status());
  Strided part =
      inPartShape(host->tensor, box.shape, rank->view(box.view).contiguous);
  return Source{*std::move(host), std::move(part)};
}

absl::Status Snapshot::take() {
  for (size_t i = 0; copy && i < own.size(); ++i) {
    absl::StatusOr<Source> source = sourceOf(own[i]);
    MESHWORK_RETURN_IF_ERROR(source.status());
    pack(source->part, own[i].block, copy->data() + places[i]);
  }
  return absl::OkStatus();
}

absl::Status Snapshot::produce(size_t box, WriteBytes write) const {
  if (copy)
    return write(copy->data() + places[box], places[box + 1] - places[box]);
  absl::StatusOr<Source> source = sourceOf(own[box]);
  MESHWORK_RETURN_IF_ERROR(source.status());
  std::vector<std::byte> buffer;
  for (const Block &piece : piecesOf(own[box].block, pieceElements)) {
    buffer.resize(
        static_cast<size_t>(elementsOf(piece) * source->part.width()));
    pack(source->part, piece, buffer.data());
    MESHWORK_RETURN_IF_ERROR(write(buffer.data(), buffer.size()));
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
