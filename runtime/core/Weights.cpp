#include "runtime/core/Weights.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/core/Checked.h"
#include "runtime/core/IoStatus.h"
#include "runtime/io/Files.h"

namespace meshwork::runtime {
namespace {
/// Values that one rank holds as they stand in the file, where the host can
/// write them from.
const float *asInFile(const GlobalTensor &tensor, StatePart part,
                      LocalRanks ranks) {
  if (tensor.holders.size() != 1 || !ranks[tensor.holders[0].rank])
    return nullptr;
  const Rank &rank = *ranks[tensor.holders[0].rank];
  uint32_t view = partOf(*tensor.parameter, part).view();
  const ViewInfo &info = rank.view(view);
  bool same = &rank.program() == tensor.program && info.contiguous &&
              info.dtype == plan::DType::f32 &&
              tensor.holders[0].block.shape == tensor.holders[0].block.extent;
  if (!same || !rank.isOnHost())
    return nullptr;
  return reinterpret_cast<const float *>(rank.toHost(view)->tensor.data);
}
} // namespace

std::vector<uint64_t> fileShape(const plan::Parameter &parameter) {
  return {orEmpty(parameter.file_shape()).begin(),
          orEmpty(parameter.file_shape()).end()};
}

absl::Status saveState(const std::string &path, StatePart part,
                       const plan::Plan &plan, const Mesh &mesh,
                       LocalRanks ranks, BlockExchange *exchange) {
  std::vector<GlobalTensor> tensors = globalTensors(plan, mesh, part);
  if (!ranks[0]) {
    for (const GlobalTensor &tensor : tensors)
      MESHWORK_RETURN_IF_ERROR(assemble(tensor, part, ranks, exchange, {}));
    return absl::OkStatus();
  }
  std::vector<TensorToWrite> writes;
  for (const GlobalTensor &tensor : tensors)
    writes.push_back({tensor.parameter->name()->str(),
                      fileShape(*tensor.parameter),
                      asInFile(tensor, part, ranks),
                      [&, at = &tensor](absl::Span<float> out) {
                        return assemble(*at, part, ranks, exchange, out);
                      }});
  return fromIo(writeSafeTensors(path, writes));
}

absl::Status checkGradientsKept(const plan::Plan &plan) {
  for (const plan::Program *program : *plan.programs()) {
    uint64_t end = 0;
    for (const Instructions *list :
         {&orEmpty(program->once()), &orEmpty(program->step()),
          &orEmpty(program->microbatch()), &orEmpty(program->update())})
      end += list->size();
    for (const plan::Parameter *parameter : orEmpty(program->parameters())) {
      const plan::Buffer *buffer = nullptr;
      if (viewOf(parameter->gradient()) != plan::noView)
        buffer = program->buffers()->Get(
            program->views()->Get(viewOf(parameter->gradient()))->buffer());
      if (!buffer ||
          (!buffer->persistent() && uint64_t{buffer->last_use()} + 1 < end))
        return withExitCode(
            absl::NotFoundError(absl::StrCat(
                "--save-gradients: the plan does not keep the gradient of ",
                quote(parameter->name()), " to the end of a step")),
            ExitCode::badData);
    }
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
