// Moves of boxes as the kernel moveBoxes (kernels/Boxes.cu) reads them, and the
// memory that holds them.
//
//   BoxTable table;
//   table.copy(box, 0, box.elements(), width, from, to);
//   auto moves = BoxMoves::create(kernels, table.bytes());   // once, allocates
//   status = (*moves)->set(table, stream);                   // addresses known
//   status = (*moves)->enqueue(stream);                      // each time
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/comm/Strided.h"
#include "runtime/device/cuda/PtxModule.h"
#include "runtime/device/cuda/kernels/Boxes.h"
#include <memory>
#include <vector>

namespace meshwork::runtime::cuda {

/// The side of a box that a move reads or writes: elements where the box's src
/// or dst has them, or one after the other in the box's order.
enum class BoxSide : uint8_t { src, dst, packed };

class BoxTable {
public:
  /// Elements [begin, end) of a box. An address is that of the tensor, or, of a
  /// packed side, of element `begin`.
  struct Part {
    const Box &box;
    int64_t begin, end;
    BoxSide from = BoxSide::src, to = BoxSide::dst;
  };
  /// `width` is 2 or 4 bytes an element.
  void copy(const Part &part, int64_t width, DevicePtr from, DevicePtr to);
  void zero(const Part &part, int64_t width, DevicePtr to);
  /// As reduceRun (runtime/comm/Reduce.h), bit for bit. All sources, and all
  /// targets, have the same strides.
  void reduce(const Part &part, plan::DType dtype, plan::Reduction reduction,
              absl::Span<const DevicePtr> from, absl::Span<const DevicePtr> to);

  bool isEmpty() const { return chunks.empty(); }
  /// Of all tables together. Does not depend on addresses.
  size_t bytes() const;

private:
  friend class BoxMoves;
  void add(const Part &part, BoxCode code, int64_t width,
           absl::Span<const DevicePtr> from, absl::Span<const DevicePtr> to);

  std::vector<BoxChunk> chunks;
  std::vector<BoxMove> moves;
  std::vector<BoxDim> dims;
  std::vector<DevicePtr> addresses;
};

/// The kernel, loaded for the current context; one for all of it.
class BoxKernels {
public:
  static absl::StatusOr<std::shared_ptr<BoxKernels>> load(const Driver &driver);
  explicit BoxKernels(const Driver &driver) : driver(driver) {}
  BoxKernels(const BoxKernels &) = delete;

  const Driver &driver;
  Function moveBoxes = nullptr;

private:
  std::unique_ptr<PtxModule> code;
};

/// A table in the device's memory.
class BoxMoves {
public:
  static absl::StatusOr<std::unique_ptr<BoxMoves>>
  create(std::shared_ptr<BoxKernels> kernels, size_t bytes);
  BoxMoves(const BoxMoves &) = delete;
  ~BoxMoves();

  /// Puts the table's way to the device into `stream`; it has no more bytes
  /// than were asked for. Once.
  absl::Status set(const BoxTable &table, Stream stream);
  /// Puts the moves into `stream`; nothing when the table is empty.
  absl::Status enqueue(Stream stream) const;

private:
  explicit BoxMoves(std::shared_ptr<BoxKernels> kernels)
      : kernels(std::move(kernels)) {}

  std::shared_ptr<BoxKernels> kernels;
  DevicePtr memory = 0;
  std::vector<std::byte> host; // while it is copied
  unsigned blocks = 0;
  DevicePtr chunks = 0, moves = 0, dims = 0, addresses = 0;
};

} // namespace meshwork::runtime::cuda
