// CudaExecutor: instructions, bound to memory.
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/Beside.h"
#include "runtime/device/cuda/CudaExecutor.h"

namespace meshwork::runtime::cuda {

absl::StatusOr<CudaExecutor::ChannelQueue *>
CudaExecutor::channel(uint32_t number) {
  if (channels.size() < number)
    channels.resize(number);
  std::unique_ptr<ChannelQueue> &found = channels[number - 1];
  if (found)
    return found.get();
  auto made = std::make_unique<ChannelQueue>();
  MESHWORK_ASSIGN_OR_RETURN(made->queue,
                            Queue::create(cuda.gpu, owner(), /*urgent=*/true));
  MESHWORK_ASSIGN_OR_RETURN(made->begin, EventHandle::create(cuda.gpu));
  found = std::move(made);
  return found.get();
}

absl::StatusOr<std::vector<CudaExecutor::Bound>>
CudaExecutor::bind(Where where, RankProgram &program,
                   const OperationContext &context) {
  const Instructions &sources = listOf(program.program, where.list);
  std::vector<Bound> bound;
  std::vector<uint32_t> beside = channelsBeside(sources);
  OperationContext mine = context;
  for (const plan::Turn &turn : program.turns[where.list]) {
    const plan::Instruction &source = *sources.Get(turn.instruction);
    where.turns = turn.turns;
    program.moveTo(where);
    mine.multiprocessors = multiprocessorsOfProducts(beside[turn.instruction]);
    absl::StatusOr<Bound> one = bindOne(where.list, source, mine);
    if (!one.ok())
      return absl::Status(one.status().code(),
                          absl::StrCat("instruction ", quote(source.name()),
                                       ": ", one.status().message()));
    one->setsIn = program.setting[where.list][turn.instruction];
    bound.push_back(std::move(*one));
  }
  return bound;
}

absl::StatusOr<CudaExecutor::Bound>
CudaExecutor::bindOne(uint32_t list, const plan::Instruction &source,
                      const OperationContext &context) {
  Bound bound;
  bound.source = &source;
  if ((bound.wait = source.op_as_Wait()))
    return bound;
  if (source.op_as_Send() || source.op_as_Receive()) {
    MESHWORK_RETURN_IF_ERROR(bindTransfer(list, bound, context.program));
    return bound;
  }
  const plan::Collective *op = source.op_as_Collective();
  if (!op) {
    MESHWORK_ASSIGN_OR_RETURN(bound.compute, makeOperation(source, context));
    return bound;
  }
  CollectiveRequest request = context.program.request(
      source, reinterpret_cast<std::byte *>(arena.address()));
  MESHWORK_ASSIGN_OR_RETURN(
      bound.collective,
      cuda.transport.prepare(setup.program.rank, std::move(request)));
  bound.channel = op->channel();
  bound.lastOnly = op->last_only();
  if (bound.channel > 0) {
    MESHWORK_RETURN_IF_ERROR(channel(bound.channel).status());
    MESHWORK_ASSIGN_OR_RETURN(bound.ended, EventHandle::create(cuda.gpu));
  }
  return bound;
}

} // namespace meshwork::runtime::cuda
