// Parameters of several programs: one global tensor, of which ranks of all of
// them hold blocks.
#include "absl/container/flat_hash_map.h"
#include "runtime/core/PlanCheckInternal.h"
#include "runtime/core/Shards.h"
#include <algorithm>
#include <set>

namespace meshwork::runtime {
namespace {

template <typename T>
bool same(const flatbuffers::Vector<T> *a, const flatbuffers::Vector<T> *b) {
  return std::equal(orEmpty(a).begin(), orEmpty(a).end(), orEmpty(b).begin(),
                    orEmpty(b).end());
}

/// The axes of each dim; none stands for as many empty lists.
bool sameSharding(const plan::Sharded *a, const plan::Sharded *b) {
  if (viewOf(a) == plan::noView || viewOf(b) == plan::noView)
    return viewOf(a) == viewOf(b);
  static const flatbuffers::Vector<flatbuffers::Offset<plan::AxisList>> *none =
      nullptr;
  const auto &x = orEmpty(a->dims() ? a->dims() : none),
             &y = orEmpty(b->dims() ? b->dims() : none);
  for (uint32_t i = 0; i < std::max(x.size(), y.size()); ++i)
    if (!same(i < x.size() ? x.Get(i)->axes() : nullptr,
              i < y.size() ? y.Get(i)->axes() : nullptr))
      return false;
  return true;
}

bool agree(const plan::Parameter &a, const plan::Parameter &b) {
  return same(a.shape(), b.shape()) && same(a.file_shape(), b.file_shape()) &&
         a.init() == b.init() && a.init_a() == b.init_a() &&
         a.init_b() == b.init_b() && sameSharding(&masterOf(a), &masterOf(b)) &&
         sameSharding(a.gradient(), b.gradient());
}

/// What is known of one name.
struct Tensor {
  const plan::Parameter *parameter;
  uint32_t program; // the first that has it
  std::set<std::vector<int64_t>> begins;
  int64_t held = 0; // elements in blocks that differ
};

uint32_t coordinate(const plan::Plan &plan, uint32_t rank, uint32_t axis) {
  for (uint32_t i = plan.mesh()->size() - 1; i > axis; --i)
    rank /= plan.mesh()->Get(i)->size();
  return rank % plan.mesh()->Get(axis)->size();
}

void addPart(const plan::Plan &plan, uint32_t rank, const plan::Sharded &part,
             Tensor &tensor) {
  Part held = partOf(plan, tensor.parameter->shape(), part, [&](uint32_t axis) {
    return coordinate(plan, rank, axis);
  });
  for (Block &block : held.blocks()) {
    int64_t elements = 1;
    for (int64_t size : block.extent)
      elements *= size;
    if (tensor.begins.insert(std::move(block.begin)).second)
      tensor.held += elements;
  }
}

int64_t elementsOf(const plan::Parameter &parameter) {
  int64_t elements = 1;
  for (int64_t size : orEmpty(parameter.shape()))
    elements *= size;
  return elements;
}
} // namespace

absl::Status checkSharedParameters(const plan::Plan &plan) {
  const auto &programs = *plan.program_of_rank();
  if (programs.size() == 1) // Every coordinate runs it, so nothing is missing.
    return absl::OkStatus();
  absl::flat_hash_map<std::string, Tensor> tensors;
  for (uint32_t rank = 0; rank < programs.size(); ++rank)
    for (const plan::Parameter *parameter :
         orEmpty(plan.programs()->Get(programs.Get(rank))->parameters())) {
      Tensor &tensor =
          tensors
              .try_emplace(parameter->name()->str(),
                           Tensor{parameter, programs.Get(rank), {}})
              .first->second;
      if (tensor.parameter != parameter &&
          !agree(*tensor.parameter, *parameter))
        return bad("parameter ", quote(parameter->name()), ": programs ",
                   tensor.program, " and ", programs.Get(rank),
                   " disagree on its shape, init or sharding");
      addPart(plan, rank, masterOf(*parameter), tensor);
    }
  for (const auto &[name, tensor] : tensors)
    if (tensor.held != elementsOf(*tensor.parameter))
      return bad("parameter ", quote(tensor.parameter->name()), ": ranks hold ",
                 tensor.held, " of its ", elementsOf(*tensor.parameter),
                 " elements");
  return absl::OkStatus();
}

} // namespace meshwork::runtime
