#include "lib/Explain/Context.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/Listing.h"
#include "lib/Plan/Axes.h"
#include "lib/Plan/Views.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Plan/Ranges.h"
#include <algorithm>
#include <set>

namespace meshwork::explain {
namespace {
using plan::orEmpty;
constexpr uint64_t shownRanks = 64;

/// What says which queries attention has, or null.
const plan::Input *positionsOf(const plan::Program &program,
                               const plan::AttentionPart &part) {
  if (part.positions() == plan::noView)
    return nullptr;
  uint32_t buffer = program.views()->Get(part.positions())->buffer();
  for (const plan::Input *input : orEmpty(program.inputs()))
    if (input->kind() == plan::InputKind::positions &&
        program.views()->Get(input->view())->buffer() == buffer)
      return input;
  return nullptr;
}

layout::DimLayout layoutOf(const plan::Input &input, uint32_t axis) {
  return input.layouts() && axis < input.layouts()->size()
             ? input.layouts()->Get(axis)
             : layout::DimLayout::block;
}

/// What the rank at `place` among those of the input's axes has.
std::vector<layout::Range> rangesAt(const plan::Plan &plan,
                                    const plan::Input &input, uint64_t place) {
  std::vector<layout::Cut> cuts;
  uint64_t behind = plan::groupSize(plan, input.axes());
  for (uint32_t i = 0; i < input.axes()->size(); ++i) {
    uint64_t size = plan.mesh()->Get(input.axes()->Get(i))->size();
    behind /= size;
    layout::addCut(cuts, {static_cast<int64_t>(size),
                          static_cast<int64_t>(place / behind % size),
                          layoutOf(input, i)});
  }
  return layout::ranges(input.size(), cuts);
}

/// Blocks of `block` by `block` that queries [begin, begin + count) touch.
uint64_t blocksOf(const plan::AttentionPart &part, int64_t size, int64_t block,
                  const layout::Range &range) {
  uint64_t sum = 0;
  int64_t end = range.begin + range.count;
  for (int64_t query = range.begin; query < end;) {
    int64_t last = std::min(end, (query / block + 1) * block) - 1;
    int64_t firstKey =
        part.window() > 0 ? std::max<int64_t>(0, query - part.window() + 1) : 0;
    int64_t lastKey = part.causal() ? last : size - 1;
    sum += static_cast<uint64_t>(lastKey / block - firstKey / block + 1);
    query = last + 1;
  }
  return sum;
}

std::string splitText(const plan::Plan &plan, const plan::Input &input) {
  std::string text;
  for (uint32_t i = 0; i < input.axes()->size(); ++i)
    absl::StrAppend(&text, i ? ", " : "",
                    clean(plan.mesh()->Get(input.axes()->Get(i))->name()),
                    layout::suffixOf(layoutOf(input, i)));
  return text;
}

SharedAttention describe(const plan::Plan &plan,
                         const plan::AttentionPart &part,
                         const plan::Input &input) {
  SharedAttention shared;
  shared.method = part.key_positions() == plan::noView ? "gathered" : "ring";
  shared.axes = splitText(plan, input);
  shared.ranks = plan::groupSize(plan, input.axes());
  int64_t size = input.size(), chunks = static_cast<int64_t>(std::min<uint64_t>(
                                   2 * shared.ranks, input.size()));
  int64_t block = (size + chunks - 1) / chunks;
  shared.block = static_cast<uint64_t>(block);
  for (uint64_t i = 0; i < std::min(shared.ranks, shownRanks); ++i) {
    uint64_t &blocks = shared.blocksOfRank.emplace_back(0);
    for (const layout::Range &range : rangesAt(plan, input, i))
      blocks += blocksOf(part, size, block, range);
  }
  return shared;
}
} // namespace

std::vector<SharedAttention> sharedAttention(const plan::Plan &plan,
                                             const plan::Program &program) {
  std::vector<SharedAttention> list;
  std::set<std::tuple<bool, int64_t, const plan::Input *>> known;
  Listing listing(program);
  for (uint64_t i = 0; i < listing.size(); ++i) {
    const plan::Attention *op = listing[i].op_as_Attention();
    if (!op)
      continue;
    const plan::AttentionPart &part = *op->part();
    const plan::Input *input = positionsOf(program, part);
    if (input && input->axes() &&
        known.insert({part.causal(), part.window(), input}).second)
      list.push_back(describe(plan, part, *input));
  }
  return list;
}

std::string sharedAttentionText(const plan::Plan &plan,
                                const plan::Program &program) {
  std::string text;
  for (const SharedAttention &one : sharedAttention(plan, program))
    absl::StrAppend(
        &text, "\nAttention over sequences that ", one.axes,
        " splits: ", one.method, "; blocks of ", one.block, " by ", one.block,
        " that the ranks' queries see: ", absl::StrJoin(one.blocksOfRank, ", "),
        one.ranks > one.blocksOfRank.size()
            ? absl::StrCat(" and ", one.ranks - one.blocksOfRank.size(),
                           " more ranks")
            : "",
        "\n");
  return text;
}

} // namespace meshwork::explain
