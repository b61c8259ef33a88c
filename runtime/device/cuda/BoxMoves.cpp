#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/BoxTable.h"
#include <cstring>

namespace meshwork::runtime::cuda {
namespace {
constexpr char ptx[] =
#include MESHWORK_BOXES_PTX
    ;
// Tables lie one after the other.
static_assert(sizeof(BoxChunk) % 8 == 0 && sizeof(BoxMove) % 8 == 0 &&
              sizeof(BoxDim) % 8 == 0);
} // namespace

absl::StatusOr<std::shared_ptr<BoxKernels>>
BoxKernels::load(const Driver &driver) {
  auto kernels = std::make_shared<BoxKernels>(driver);
  MESHWORK_ASSIGN_OR_RETURN(kernels->code,
                            PtxModule::load(driver, {ptx}, "collectives"));
  MESHWORK_ASSIGN_OR_RETURN(kernels->moveBoxes,
                            kernels->code->find("moveBoxes"));
  return kernels;
}

absl::StatusOr<std::unique_ptr<BoxMoves>>
BoxMoves::create(std::shared_ptr<BoxKernels> kernels, size_t bytes) {
  const Driver &driver = kernels->driver;
  std::unique_ptr<BoxMoves> moves(new BoxMoves(std::move(kernels)));
  if (bytes > 0)
    MESHWORK_RETURN_IF_ERROR(
        driver.check(driver.memoryAllocate(&moves->memory, bytes),
                     absl::StrCat("taking ", bytes,
                                  " bytes for the tables of a collective")));
  return moves;
}

BoxMoves::~BoxMoves() {
  if (memory)
    (void)kernels->driver.memoryFree(memory);
}

absl::Status BoxMoves::set(const BoxTable &table, Stream stream) {
  host.resize(table.bytes());
  size_t at = 0;
  auto place = [&](const auto &rows) {
    DevicePtr begin = memory + at;
    size_t bytes = rows.size() * sizeof(rows[0]);
    if (bytes > 0)
      std::memcpy(host.data() + at, rows.data(), bytes);
    at += bytes;
    return begin;
  };
  chunks = place(table.chunks);
  moves = place(table.moves);
  dims = place(table.dims);
  addresses = place(table.addresses);
  blocks = static_cast<unsigned>(table.chunks.size());
  if (host.empty())
    return absl::OkStatus();
  const Driver &driver = kernels->driver;
  return driver.check(
      driver.copyToDevice(memory, host.data(), host.size(), stream),
      "copying the tables of a collective");
}

absl::Status BoxMoves::enqueue(Stream stream) const {
  if (blocks == 0)
    return absl::OkStatus();
  DevicePtr values[] = {chunks, moves, dims, addresses};
  void *parameters[] = {&values[0], &values[1], &values[2], &values[3]};
  const Driver &driver = kernels->driver;
  return driver.check(driver.launchKernel(kernels->moveBoxes, blocks, 1, 1,
                                          boxThreads, 1, 1, 0, stream,
                                          parameters, nullptr),
                      "launching \"moveBoxes\"");
}

} // namespace meshwork::runtime::cuda
