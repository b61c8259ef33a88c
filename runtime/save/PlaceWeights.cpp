// Values of parameters, from a file or from the seed, into the blocks that a
// rank holds. What is past a tensor's end stays zero, as the arena starts.
#include "absl/algorithm/container.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/FileForms.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/io/Init.h"
#include "runtime/io/IoStatus.h"
#include "runtime/machine/Bf16.h"
#include "runtime/save/PlaceBlocks.h"
#include "runtime/save/Weights.h"
#include <algorithm>

namespace meshwork::runtime {
using plan::Block;
using plan::orEmpty;
namespace {
constexpr int64_t chunkElements = 1 << 16;
constexpr int64_t bufferElements = 4096; // on a thread's stack

/// Values of elements of one tensor in files, in row-major order.
using Source =
    absl::FunctionRef<absl::Status(uint64_t first, absl::Span<float> out)>;

/// Reads ahead: rows of a shard may be short and close together.
class FileSource {
public:
  FileSource(const SafeTensorsReader &file, std::string tensor)
      : file(file), name(std::move(tensor)),
        elements(file.find(name)->numElements) {}

  absl::Status read(uint64_t begin, absl::Span<float> out) {
    if (begin < first || begin + out.size() > first + window.size()) {
      first = begin;
      window.resize(std::min<uint64_t>(
          elements - begin, std::max<uint64_t>(out.size(), chunkElements)));
      absl::Status status = file.readRange(name, begin, absl::MakeSpan(window));
      MESHWORK_RETURN_IF_ERROR(fromIo(status));
    }
    std::copy_n(window.begin() + static_cast<int64_t>(begin - first),
                out.size(), out.begin());
    return absl::OkStatus();
  }

private:
  const SafeTensorsReader &file;
  std::string name;
  uint64_t elements, first = 0;
  std::vector<float> window;
};

/// Elements [begin, end) of the box, whose source is the tensor in files.
absl::Status fill(const Box &box, int64_t begin, int64_t end, const Strided &to,
                  Source source) {
  absl::Status status;
  float values[bufferElements];
  box.forEachRun(begin, end, [&](const Run &whole) {
    for (int64_t at = 0; at < whole.count && status.ok();
         at += bufferElements) {
      Run run = whole;
      run.count = std::min(bufferElements, whole.count - at);
      run.src += at * whole.srcStride;
      run.dst += at * whole.dstStride;
      if (run.srcStride == 1)
        status = source(static_cast<uint64_t>(run.src),
                        {values, static_cast<size_t>(run.count)});
      else
        for (int64_t i = 0; i < run.count && status.ok(); ++i)
          status = source(static_cast<uint64_t>(run.src + i * run.srcStride),
                          {values + i, 1});
      if (status.ok())
        storeRun(values, 1, to, run);
    }
  });
  return status;
}

absl::Status fillBox(Rank &rank, const Strided &to, const plan::FileBox &inFile,
                     const plan::Parameter &parameter,
                     const SafeTensorsReader *file, uint64_t seed) {
  Box box(inFile.block.extent, inFile.strides, to.strides, inFile.first,
          offsetOf(to.strides, inFile.block.offset));
  std::string tensor = plan::tensorName(*inFile.piece, inFile.number);
  if (file) {
    FileSource source(*file, std::move(tensor));
    return fill(box, 0, box.elements(), to,
                [&](uint64_t at, absl::Span<float> out) {
                  return source.read(at, out);
                });
  }
  InitStream stream{seed, hashOfName(tensor)};
  int64_t chunks = (box.elements() + chunkElements - 1) / chunkElements;
  rank.team().parallelFor(chunks, [&](int64_t begin, int64_t end, int) {
    // The seed's values cannot fail.
    (void)fill(box, begin * chunkElements,
               std::min(box.elements(), end * chunkElements), to,
               [&](uint64_t at, absl::Span<float> out) {
                 initialize(parameter, stream, out, at);
                 return absl::OkStatus();
               });
  });
  return absl::OkStatus();
}

absl::Status place(Rank &rank, const plan::Parameter &parameter,
                   const plan::Sharded &part, const SafeTensorsReader *file,
                   uint64_t seed) {
  plan::FileForm form = plan::writtenForm(parameter);
  return placeBlocks(
      rank, parameter, part, [&](const Strided &to, const Block &block) {
        for (const plan::FileBox &box : plan::fileBoxes(form, block))
          MESHWORK_RETURN_IF_ERROR(
              fillBox(rank, to, box, parameter, file, seed));
        return absl::OkStatus();
      });
}

} // namespace

absl::Status placeInitial(Rank &rank, const plan::Parameter &parameter,
                          const plan::State &state) {
  if (state.initial() == 0) // as the arena starts
    return absl::OkStatus();
  return placeBlocks(rank, parameter, *state.part(),
                     [&](const Strided &to, const Block &block) {
                       Box box(block.extent, rowMajor(block.extent), to.strides,
                               0, offsetOf(to.strides, block.offset));
                       return fill(box, 0, box.elements(), to,
                                   [&](uint64_t, absl::Span<float> out) {
                                     absl::c_fill(out, state.initial());
                                     return absl::OkStatus();
                                   });
                     });
}

absl::Status placeBlocks(
    Rank &rank, const plan::Parameter &parameter, const plan::Sharded &part,
    absl::FunctionRef<absl::Status(const Strided &, const Block &)> fillOne) {
  absl::StatusOr<HostView> host = rank.toHost(part.view());
  MESHWORK_RETURN_IF_ERROR(host.status());
  plan::Part held = rank.partOf(parameter, part);
  Strided to =
      inPartShape(host->tensor, held.shape, rank.view(part.view()).contiguous);
  for (const Block &block : held.blocks())
    MESHWORK_RETURN_IF_ERROR(fillOne(to, block));
  return rank.writeBack(part.view(), *host);
}

void storeRun(const float *values, int64_t stride, const Strided &to,
              const Run &run) {
  if (to.dtype == plan::DType::f32)
    return copyRun(reinterpret_cast<const std::byte *>(values), stride,
                   to.data + run.dst * 4, run.dstStride, run.count, 4);
  uint16_t *bits = reinterpret_cast<uint16_t *>(to.data) + run.dst;
  for (int64_t i = 0; i < run.count; ++i)
    bits[i * run.dstStride] = toBf16(values[i * stride]);
}

absl::Status placeWeights(Rank &rank, const SafeTensorsReader *file,
                          uint64_t seed) {
  for (const plan::Parameter *parameter :
       orEmpty(rank.program().parameters())) {
    const plan::Sharded &master = plan::masterOf(*parameter);
    MESHWORK_RETURN_IF_ERROR(place(rank, *parameter, master, file, seed));
    for (const plan::State *state : orEmpty(parameter->states()))
      if (state->role() == plan::StateRole::optimizer)
        MESHWORK_RETURN_IF_ERROR(placeInitial(rank, *parameter, *state));
      else if (state->role() == plan::StateRole::weight &&
               state->part()->view() != master.view())
        MESHWORK_RETURN_IF_ERROR(
            place(rank, *parameter, *state->part(), file, seed));
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
