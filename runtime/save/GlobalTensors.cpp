#include "runtime/save/GlobalTensors.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/Programs.h"
#include "runtime/machine/Bf16.h"
#include <set>

namespace meshwork::runtime {
using plan::orEmpty;
namespace {

const plan::Parameter *find(const plan::Program &program,
                            const std::string &name) {
  for (const plan::Parameter *parameter : orEmpty(program.parameters()))
    if (parameter->name()->str() == name)
      return parameter;
  return nullptr;
}

/// Copies a box into f32.
void copyAsF32(const Strided &from, const Box &box, float *to) {
  box.forEachRun(0, box.elements(), [&](const Run &run) {
    const std::byte *src = from.data + run.src * from.width();
    std::byte *dst = reinterpret_cast<std::byte *>(to + run.dst);
    if (from.dtype == plan::DType::f32)
      return copyRun(src, run.srcStride, dst, run.dstStride, run.count, 4);
    auto *bits = reinterpret_cast<const uint16_t *>(src);
    for (int64_t i = 0; i < run.count; ++i)
      to[run.dst + i * run.dstStride] = fromBf16(bits[i * run.srcStride]);
  });
}

/// The part that a block lies in, as a rank holds it.
struct Held {
  HostView host;
  Strided part;
};

absl::StatusOr<Held> held(const Rank &rank, const Holder &holder,
                          const std::string &name, StatePart part) {
  uint32_t view = savedPart(*find(rank.program(), name), part).view();
  absl::StatusOr<HostView> host = rank.toHost(view);
  MESHWORK_RETURN_IF_ERROR(host.status());
  Strided inShape =
      inPartShape(host->tensor, holder.shape, rank.view(view).contiguous);
  return Held{std::move(*host), std::move(inShape)};
}

std::vector<float> packed(const Strided &from, const plan::Block &block) {
  Box box(block.extent, from.strides, rowMajor(block.extent),
          offsetOf(from.strides, block.offset), 0);
  std::vector<float> values(static_cast<size_t>(box.elements()));
  copyAsF32(from, box, values.data());
  return values;
}
} // namespace

const plan::Sharded &savedPart(const plan::Parameter &parameter,
                               StatePart part) {
  return part == StatePart::master
             ? plan::masterOf(parameter)
             : *plan::statePart(parameter, plan::StateRole::gradient);
}

std::vector<int64_t> rowMajor(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

int64_t offsetOf(const std::vector<int64_t> &strides,
                 const std::vector<int64_t> &index) {
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i)
    offset += strides[i] * index[i];
  return offset;
}

Strided inPartShape(Strided view, const std::vector<int64_t> &shape,
                    bool contiguous) {
  if (contiguous)
    view.strides = rowMajor(shape);
  view.shape = shape;
  return view;
}

std::vector<GlobalTensor> globalTensors(const plan::Plan &plan,
                                        const Mesh &mesh, StatePart part) {
  std::vector<GlobalTensor> tensors;
  absl::flat_hash_map<std::string, size_t> known;
  std::vector<std::set<std::vector<int64_t>>> seen; // where blocks begin
  for (uint32_t rank = 0; rank < mesh.numRanks(); ++rank) {
    uint32_t program = plan::programOf(plan, rank);
    for (const plan::Parameter *parameter :
         orEmpty(plan.programs()->Get(program)->parameters())) {
      auto [at, isNew] =
          known.try_emplace(parameter->name()->str(), tensors.size());
      if (isNew) {
        tensors.push_back({plan.programs()->Get(program), parameter, {}});
        seen.emplace_back();
      }
      plan::Part held = plan::partOf(
          plan, parameter->shape(), savedPart(*parameter, part),
          [&](uint32_t axis) { return mesh.coordinate(rank, axis); });
      for (plan::Block &block : held.blocks())
        if (seen[at->second].insert(block.begin).second)
          tensors[at->second].holders.push_back(
              {rank, std::move(block), held.shape});
    }
  }
  return tensors;
}

absl::Status assemble(const GlobalTensor &tensor, StatePart part,
                      LocalRanks ranks, BlockExchange *exchange,
                      absl::Span<float> out) {
  const auto &shape = orEmpty(tensor.parameter->shape());
  std::vector<int64_t> strides = rowMajor({shape.begin(), shape.end()});
  std::string name = tensor.parameter->name()->str();
  for (const Holder &holder : tensor.holders) {
    const Rank *rank = ranks[holder.rank].get();
    absl::StatusOr<Held> from = Held();
    if (rank)
      from = held(*rank, holder, name, part);
    MESHWORK_RETURN_IF_ERROR(from.status());
    if (rank && ranks[0]) {
      copyAsF32(from->part,
                Box(holder.block.extent, from->part.strides, strides,
                    offsetOf(from->part.strides, holder.block.offset),
                    offsetOf(strides, holder.block.begin)),
                out.data());
      continue;
    }
    if (!rank && !ranks[0])
      continue; // Between two other processes.
    std::vector<int64_t> order = rowMajor(holder.block.extent);
    Box box(holder.block.extent, order, strides, 0,
            offsetOf(strides, holder.block.begin));
    std::vector<float> values(static_cast<size_t>(box.elements()));
    if (rank)
      values = packed(from->part, holder.block);
    MESHWORK_RETURN_IF_ERROR(
        exchange->toRoot(holder.rank, absl::MakeSpan(values)));
    if (!rank)
      copyAsF32({reinterpret_cast<std::byte *>(values.data()), plan::DType::f32,
                 holder.block.extent, order},
                box, out.data());
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
