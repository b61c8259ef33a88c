// Parameters of several programs: one global tensor, of which ranks of all of
// them hold blocks.
#include "absl/strings/str_join.h"
#include "lib/Plan/FileForms.h"
#include "lib/Plan/PlanCheckInternal.h"
#include "lib/Plan/Programs.h"
#include "lib/Plan/SameViews.h"
#include "lib/Plan/Shards.h"
#include <algorithm>
#include <map>
#include <set>

namespace meshwork::plan {
namespace {

/// The axes of each dim and their layouts; none stands for as many empty lists.
bool sameSharding(const Sharded *a, const Sharded *b) {
  if (viewOf(a) == noView || viewOf(b) == noView)
    return viewOf(a) == viewOf(b);
  static const flatbuffers::Vector<flatbuffers::Offset<AxisList>> *none =
      nullptr;
  if (a->is_number() != b->is_number())
    return false;
  const auto &x = orEmpty(a->dims() ? a->dims() : none),
             &y = orEmpty(b->dims() ? b->dims() : none);
  for (uint32_t i = 0; i < std::max(x.size(), y.size()); ++i) {
    const AxisList *one = i < x.size() ? x.Get(i) : nullptr,
                   *other = i < y.size() ? y.Get(i) : nullptr;
    if (!sameNumbers(one ? one->axes() : nullptr,
                     other ? other->axes() : nullptr) ||
        !sameNumbers(one ? one->layouts() : nullptr,
                     other ? other->layouts() : nullptr))
      return false;
  }
  return true;
}

/// Weights may lie differently: they are made from masters.
bool sameStates(const Parameter &a, const Parameter &b) {
  const auto &x = orEmpty(a.states()), &y = orEmpty(b.states());
  if (x.size() != y.size())
    return false;
  for (uint32_t i = 0; i < x.size(); ++i) {
    const State &left = *x.Get(i), &right = *y.Get(i);
    if (left.name()->string_view() != right.name()->string_view() ||
        left.role() != right.role() || left.initial() != right.initial() ||
        (left.role() != StateRole::weight &&
         !sameSharding(left.part(), right.part())))
      return false;
  }
  return true;
}

bool agree(const Parameter &a, const Parameter &b) {
  return sameNumbers(a.shape(), b.shape()) &&
         sameNumbers(a.file_shape(), b.file_shape()) && sameForms(a, b) &&
         a.init() == b.init() && a.init_a() == b.init_a() &&
         a.init_b() == b.init_b() && sameSharding(&masterOf(a), &masterOf(b)) &&
         sameStates(a, b);
}

/// What is known of one name.
struct Tensor {
  const Parameter *parameter;
  uint32_t program;                        // the first that has it
  std::set<std::vector<uint32_t>> holders; // coordinates along splitAxes
};

/// The program axes along which blocks of the tensor differ. Along the others,
/// and along axes on which programs do not depend, either all blocks are held
/// or none.
std::vector<uint32_t> splitAxes(const Plan &plan, const Parameter &parameter) {
  std::vector<uint32_t> axes;
  for (uint32_t axis : *plan.program_axes())
    for (const AxisList *dim : orEmpty(masterOf(parameter).dims()))
      for (uint32_t one : orEmpty(dim->axes()))
        if (one == axis)
          axes.push_back(axis);
  return axes;
}

/// The next list of coordinates along `axes`, row-major; false after the last.
bool advance(const Plan &plan, const std::vector<uint32_t> &axes,
             std::vector<uint32_t> &at) {
  for (size_t i = axes.size(); i-- > 0;) {
    if (++at[i] < plan.mesh()->Get(axes[i])->size())
      return true;
    at[i] = 0;
  }
  return false;
}

/// A part that nobody holds has no elements. The one with 0 along all other
/// axes begins first, so it is empty only if all others like it are.
absl::Status checkHeld(const Plan &plan, const std::string &name,
                       const Tensor &tensor) {
  std::vector<uint32_t> axes = splitAxes(plan, *tensor.parameter);
  std::vector<uint32_t> at(axes.size(), 0);
  do {
    if (tensor.holders.contains(at))
      continue;
    Part part =
        partOf(plan, tensor.parameter->shape(), masterOf(*tensor.parameter),
               [&](uint32_t axis) {
                 auto found = std::find(axes.begin(), axes.end(), axis);
                 return found == axes.end() ? 0 : at[found - axes.begin()];
               });
    if (std::vector<Block> blocks = part.blocks(); !blocks.empty())
      return bad("parameter ", quote(name),
                 ": no rank holds the block that begins at [",
                 absl::StrJoin(blocks[0].begin, ","), "]");
  } while (advance(plan, axes, at));
  return absl::OkStatus();
}

/// Notes what the ranks with coordinates `at` along program_axes hold.
absl::Status addHolder(const Plan &plan, uint32_t program,
                       const std::vector<uint32_t> &at,
                       std::map<std::string, Tensor> &tensors) {
  for (const Parameter *parameter :
       orEmpty(plan.programs()->Get(program)->parameters())) {
    Tensor &tensor = tensors
                         .try_emplace(parameter->name()->str(),
                                      Tensor{parameter, program, {}})
                         .first->second;
    if (tensor.parameter != parameter && !agree(*tensor.parameter, *parameter))
      return bad("parameter ", quote(parameter->name()), ": programs ",
                 tensor.program, " and ", program,
                 " disagree on its shape, files, init or sharding");
    std::vector<uint32_t> holder;
    for (uint32_t axis : splitAxes(plan, *parameter))
      for (uint32_t i = 0; i < at.size(); ++i)
        if (plan.program_axes()->Get(i) == axis)
          holder.push_back(at[i]);
    tensor.holders.insert(std::move(holder));
  }
  return absl::OkStatus();
}
} // namespace

absl::Status checkSharedParameters(const Plan &plan) {
  const auto &numbers = orEmpty(plan.program_numbers());
  if (numbers.size() <= 1) // Every coordinate runs it, so nothing is missing.
    return absl::OkStatus();
  std::vector<uint32_t> axes(plan.program_axes()->begin(),
                             plan.program_axes()->end());
  std::vector<uint32_t> at(axes.size(), 0);
  std::map<std::string, Tensor> tensors;
  uint32_t index = 0;
  do
    MESHWORK_RETURN_IF_ERROR(
        addHolder(plan, programNumber(plan, index++), at, tensors));
  while (advance(plan, axes, at));
  for (const auto &[name, tensor] : tensors)
    MESHWORK_RETURN_IF_ERROR(checkHeld(plan, name, tensor));
  return absl::OkStatus();
}

} // namespace meshwork::plan
