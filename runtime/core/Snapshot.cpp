#include "runtime/core/Snapshot.h"
#include "runtime/core/Checked.h"
#include "runtime/core/GlobalTensors.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {
constexpr int64_t pieceElements = int64_t{1} << 20;

/// Cuts `block` into blocks of at most pieceElements that follow each other in
/// its row-major order.
absl::Status
forEachPiece(const Block &block, size_t dim,
             absl::FunctionRef<absl::Status(const Block &)> visit) {
  int64_t row = 1;
  for (size_t i = dim + 1; i < block.extent.size(); ++i)
    row *= block.extent[i];
  if (dim >= block.extent.size())
    return visit(block);
  int64_t step = std::max<int64_t>(1, pieceElements / row);
  for (int64_t at = 0; at < block.extent[dim]; at += step) {
    Block piece = block;
    piece.begin[dim] += at;
    piece.offset[dim] += at;
    piece.extent[dim] = std::min(step, block.extent[dim] - at);
    MESHWORK_RETURN_IF_ERROR(row <= pieceElements
                                 ? visit(piece)
                                 : forEachPiece(piece, dim + 1, visit));
  }
  return absl::OkStatus();
}

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
  for (const BoxToWrite &box : snapshot.toWrite())
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
                     state.dtype == plan::DType::f32 ? "F32" : "BF16",
                     box.block.begin, box.block.extent});
  }
  return boxes;
}

absl::Status Snapshot::packed(const OwnBox &box, std::byte *to) const {
  absl::StatusOr<HostView> host = rank->toHost(box.view);
  MESHWORK_RETURN_IF_ERROR(host.status());
  pack(inPartShape(host->tensor, box.shape, rank->view(box.view).contiguous),
       box.block, to);
  return absl::OkStatus();
}

absl::Status Snapshot::take() {
  for (size_t i = 0; copy && i < own.size(); ++i)
    MESHWORK_RETURN_IF_ERROR(packed(own[i], copy->data() + places[i]));
  return absl::OkStatus();
}

absl::Status Snapshot::produce(size_t box, WriteBytes write) const {
  if (copy)
    return write(copy->data() + places[box], places[box + 1] - places[box]);
  const OwnBox &one = own[box];
  absl::StatusOr<HostView> host = rank->toHost(one.view);
  MESHWORK_RETURN_IF_ERROR(host.status());
  Strided part =
      inPartShape(host->tensor, one.shape, rank->view(one.view).contiguous);
  std::vector<std::byte> buffer;
  return forEachPiece(one.block, 0, [&](const Block &piece) {
    int64_t elements = 1;
    for (int64_t size : piece.extent)
      elements *= size;
    buffer.resize(static_cast<size_t>(elements * part.width()));
    pack(part, piece, buffer.data());
    return write(buffer.data(), buffer.size());
  });
}

} // namespace meshwork::runtime
