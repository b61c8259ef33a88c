#include "runtime/save/GlobalTensors.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/FileForms.h"
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

std::vector<float> packed(const Strided &from, const plan::Block &block) {
  Box box(block.extent, from.strides, rowMajor(block.extent),
          offsetOf(from.strides, block.offset), 0);
  std::vector<float> values(static_cast<size_t>(box.elements()));
  copyAsF32(from, box, values.data());
  return values;
}
} // namespace

static bool hasPart(const plan::Parameter &parameter, StatePart part) {
  return part == StatePart::master ||
         plan::statePart(parameter, plan::StateRole::gradient);
}

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
      if (!hasPart(*parameter, part))
        continue;
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

absl::StatusOr<const Strided *> Assembly::held(const GlobalTensor &tensor,
                                               const Holder &holder) {
  if (last != tensor.parameter)
    parts.clear();
  last = tensor.parameter;
  auto known = parts.find(holder.rank);
  if (known != parts.end())
    return &known->second.part;
  const Rank &rank = *ranks[holder.rank];
  uint32_t view =
      savedPart(*find(rank.program(), last->name()->str()), part).view();
  absl::StatusOr<HostView> host = rank.toHost(view);
  MESHWORK_RETURN_IF_ERROR(host.status());
  Strided inShape =
      inPartShape(host->tensor, holder.shape, rank.view(view).contiguous);
  Held &kept = parts[holder.rank];
  kept = {*std::move(host), std::move(inShape)};
  return &kept.part;
}

namespace {
/// A block to where it lies in a region of the tensor. `first` is its first
/// element in `from`.
void copyTo(const plan::Block &region, const plan::Block &block,
            const Strided &from, int64_t first, absl::Span<float> out) {
  std::vector<int64_t> strides = rowMajor(region.extent);
  int64_t to = offsetOf(strides, block.begin) - offsetOf(strides, region.begin);
  copyAsF32(from, Box(block.extent, from.strides, strides, first, to),
            out.data());
}
} // namespace

absl::Status Assembly::take(const GlobalTensor &tensor,
                            const plan::Block &region, absl::Span<float> out) {
  for (const Holder &holder : tensor.holders) {
    std::optional<plan::Block> block = plan::sharedBlock(holder.block, region);
    bool isHere = ranks[holder.rank] != nullptr, isRoot = ranks[0] != nullptr;
    if (!block || (!isHere && !isRoot)) // nothing, or between two others
      continue;
    const Strided *from = nullptr;
    if (isHere)
      MESHWORK_ASSIGN_OR_RETURN(from, held(tensor, holder));
    if (isHere && isRoot) {
      copyTo(region, *block, *from, offsetOf(from->strides, block->offset),
             out);
      continue;
    }
    std::vector<float> values(static_cast<size_t>(plan::elementsOf(*block)));
    if (isHere)
      values = packed(*from, *block);
    MESHWORK_RETURN_IF_ERROR(
        exchange->toRoot(holder.rank, absl::MakeSpan(values)));
    if (!isHere)
      copyTo(region, *block,
             {reinterpret_cast<std::byte *>(values.data()), plan::DType::f32,
              block->extent, rowMajor(block->extent)},
             0, out);
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
