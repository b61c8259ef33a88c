#include "runtime/save/Weights.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/FileForms.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/io/Files.h"
#include "runtime/io/IoStatus.h"

namespace meshwork::runtime {
using plan::orEmpty;
namespace {
uint64_t elementsOf(const std::vector<uint64_t> &shape) {
  uint64_t elements = 1;
  for (uint64_t size : shape)
    elements *= size;
  return elements;
}

/// One tensor in files.
struct Written {
  const GlobalTensor *of;
  std::string name;
  std::vector<uint64_t> shape;
  plan::Block region;
};

std::vector<Written> writtenTensors(const std::vector<GlobalTensor> &tensors) {
  std::vector<Written> written;
  for (const GlobalTensor &tensor : tensors)
    for (const plan::FilePieceT &piece : plan::writtenForm(*tensor.parameter))
      for (int64_t i = 0; i < plan::tensorsOf(piece); ++i)
        written.push_back({&tensor,
                           plan::tensorName(piece, i),
                           {piece.shape.begin(), piece.shape.end()},
                           plan::regionOf(piece, i)});
  return written;
}

/// Values that one rank holds as they stand in the file, where the host can
/// write them from.
const float *asInFile(const Written &written, StatePart part,
                      LocalRanks ranks) {
  const GlobalTensor &tensor = *written.of;
  if (tensor.holders.size() != 1 || !ranks[tensor.holders[0].rank] ||
      written.region.extent != tensor.holders[0].block.extent)
    return nullptr;
  const Rank &rank = *ranks[tensor.holders[0].rank];
  uint32_t view = savedPart(*tensor.parameter, part).view();
  const plan::ViewInfo &info = rank.view(view);
  bool same = &rank.program() == tensor.program && info.contiguous &&
              info.dtype == plan::DType::f32 &&
              tensor.holders[0].shape == tensor.holders[0].block.extent;
  if (!same || !rank.isOnHost())
    return nullptr;
  return reinterpret_cast<const float *>(rank.toHost(view)->tensor.data);
}
} // namespace

absl::Status saveState(const std::string &path, StatePart part,
                       const plan::Plan &plan, const Mesh &mesh,
                       LocalRanks ranks, BlockExchange *exchange) {
  std::vector<GlobalTensor> tensors = globalTensors(plan, mesh, part);
  std::vector<Written> written = writtenTensors(tensors);
  Assembly assembly(part, ranks, exchange);
  if (!ranks[0]) {
    for (const Written &one : written)
      MESHWORK_RETURN_IF_ERROR(assembly.take(*one.of, one.region, {}));
    return absl::OkStatus();
  }
  absl::Status moved;
  size_t next = 0; // that other processes send
  auto fetch = [&](size_t i, absl::Span<float> out) {
    next = i + 1;
    return moved = assembly.take(*written[i].of, written[i].region, out);
  };
  std::vector<TensorToWrite> writes;
  for (size_t i = 0; i < written.size(); ++i)
    writes.push_back({written[i].name, written[i].shape,
                      asInFile(written[i], part, ranks),
                      [&fetch, i](uint64_t, absl::Span<float> out) {
                        return fetch(i, out);
                      }});
  absl::Status status = fromIo(writeSafeTensors(path, writes));
  // They send to the end, whatever became of the file.
  for (std::vector<float> unused; exchange && next < written.size();) {
    MESHWORK_RETURN_IF_ERROR(moved);
    unused.resize(elementsOf(written[next].shape));
    fetch(next, absl::MakeSpan(unused)).IgnoreError();
  }
  return status;
}

absl::Status checkGradientsKept(const plan::Plan &plan) {
  for (const plan::Program *program : *plan.programs()) {
    for (const plan::Parameter *parameter : orEmpty(program->parameters())) {
      uint32_t view = plan::gradientView(*parameter);
      if (view == plan::noView) // It is not trained.
        continue;
      const plan::Buffer *buffer =
          program->buffers()->Get(program->views()->Get(view)->buffer());
      if (!buffer->persistent())
        return withExitCode(
            absl::NotFoundError(absl::StrCat(
                "--save-gradients: the plan does not keep the gradient of ",
                plan::quote(parameter->name()), " to the end of a step")),
            ExitCode::badData);
    }
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
