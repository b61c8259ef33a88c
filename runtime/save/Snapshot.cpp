#include "runtime/save/Snapshot.h"
#include "lib/Plan/Checked.h"
#include "runtime/save/GlobalTensors.h"

namespace meshwork::runtime {
using plan::Block;
using plan::elementsOf;
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
  snapshot.all = plan::savedTensors(plan);
  snapshot.own = plan::ownBoxes(plan, snapshot.all, rank.rank());
  snapshot.places = {0};
  std::vector<BoxToWrite> boxes = snapshot.toWrite();
  MESHWORK_RETURN_IF_ERROR(checkBoxes(boxes));
  for (const BoxToWrite &box : boxes)
    snapshot.places.push_back(snapshot.places.back() + box.bytes());
  if (copies)
    MESHWORK_RETURN_IF_ERROR(snapshot.takeMemory());
  return snapshot;
}

absl::Status Snapshot::takeMemory() {
  absl::StatusOr<Arena> arena = Arena::create(places.back());
  MESHWORK_RETURN_IF_ERROR(arena.status());
  copy = *std::move(arena);
  for (size_t i = 0; i < own.size(); ++i) {
    // What a device gives the host comes a box at a time.
    int64_t all = elementsOf(own[i].block), place = 0;
    uint64_t width = (places[i + 1] - places[i]) / static_cast<uint64_t>(all);
    for (const Block &block :
         plan::piecesOf(own[i].block, rank->isOnHost() ? pieceElements : all)) {
      pieces.push_back(
          {i, block, places[i] + static_cast<uint64_t>(place) * width});
      place += elementsOf(block);
    }
  }
  copying->begun = copying->done = pieces.size();
  return absl::OkStatus();
}

std::vector<BoxToWrite> Snapshot::toWrite() const {
  std::vector<BoxToWrite> boxes;
  for (const plan::OwnBox &box : own) {
    const plan::SavedTensor &tensor = all[box.tensor];
    const plan::SavedState &state = tensor.states[box.state];
    boxes.push_back({tensor.parameter->name()->str(), state.name,
                     plan::storedType(state), box.block.begin,
                     box.block.extent});
  }
  return boxes;
}

absl::StatusOr<Snapshot::Source>
Snapshot::sourceOf(const plan::OwnBox &box) const {
  absl::StatusOr<HostView> host = rank->toHostBeside(box.view);
  MESHWORK_RETURN_IF_ERROR(host.status());
  Strided part =
      inPartShape(host->tensor, box.shape, rank->view(box.view).contiguous);
  return Source{*std::move(host), std::move(part)};
}

void Snapshot::begin() {
  absl::Status settled = rank->settle();
  size_t first = settled.ok() ? 0 : pieces.size();
  std::lock_guard<std::mutex> lock(copying->mutex);
  copying->done = first;
  copying->status = std::move(settled);
  copying->begun = first;
}

absl::Status Snapshot::copyPiece(const Piece &piece) const {
  absl::StatusOr<Source> source = sourceOf(own[piece.box]);
  MESHWORK_RETURN_IF_ERROR(source.status());
  pack(source->part, piece.block, copy->data() + piece.place);
  return absl::OkStatus();
}

bool Snapshot::isCopied() const {
  std::lock_guard<std::mutex> lock(copying->mutex);
  return copying->done == pieces.size();
}

absl::Status Snapshot::finish() {
  Copying &all = *copying;
  for (size_t i = all.begun++; i < pieces.size(); i = all.begun++) {
    absl::Status status = copyPiece(pieces[i]);
    std::lock_guard<std::mutex> lock(all.mutex);
    all.status.Update(status);
    ++all.done;
    all.changed.notify_all();
  }
  std::unique_lock<std::mutex> lock(all.mutex);
  all.changed.wait(lock, [&] { return all.done == pieces.size(); });
  return all.status;
}

absl::Status Snapshot::produce(size_t box, WriteBytes write) const {
  if (copy)
    return write(copy->data() + places[box], places[box + 1] - places[box]);
  absl::StatusOr<Source> source = sourceOf(own[box]);
  MESHWORK_RETURN_IF_ERROR(source.status());
  std::vector<std::byte> buffer;
  for (const Block &piece : plan::piecesOf(own[box].block, pieceElements)) {
    buffer.resize(
        static_cast<size_t>(elementsOf(piece) * source->part.width()));
    pack(source->part, piece, buffer.data());
    MESHWORK_RETURN_IF_ERROR(write(buffer.data(), buffer.size()));
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
