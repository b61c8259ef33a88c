#include "passes/verify/SizeRules.h"

#include "lib/Plan/Float8Sizes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace meshwork::verify {
namespace {
constexpr const char *sequenceRule = "sequence",
                     *residualRule = "residual_sequence";
/// A norm over two elements, say, makes almost the same of all inputs.
constexpr int64_t telling = 5;

void addAxes(const std::vector<std::string> &more,
             std::vector<std::string> &axes) {
  for (const std::string &axis : more)
    if (!llvm::is_contained(axes, axis))
      axes.push_back(axis);
}

int64_t sizeOfAxis(const spec::Spec &spec, const std::string &name) {
  for (const spec::Axis &axis : spec.mesh)
    if (axis.name == name)
      return axis.size;
  return 1;
}
} // namespace

SizeRules::SizeRules(const ModelDims &dims, const spec::Spec &large,
                     const spec::Spec &small)
    : dims(dims), large(large), small(small),
      tokens(leastSize(large.batch.sequence, splitsOf(sequenceRule),
                       std::min<int64_t>(large.batch.sequence, telling))) {}

bool SizeRules::isOfHeads(const std::string &dim) const {
  return llvm::any_of(dims.keysOf, [&](const auto &pair) {
    return pair.first == dim || pair.second == dim;
  });
}

/// Those that may split a dim, in this order.
std::vector<std::string> SizeRules::axesOf(const std::string &dim) const {
  std::vector<std::string> axes;
  for (const spec::ShardRule &rule : large.shard) {
    bool isOfSequence = dim == sequenceRule && rule.dim == residualRule;
    if (rule.dim == dim || isOfSequence)
      addAxes(rule.axes, axes);
  }
  for (const spec::ShardRule &rule : large.shard)
    if (isOfHeads(dim) && rule.dim == sequenceRule) // exchanged for heads
      addAxes(rule.axes, axes);
  for (const spec::TensorPin &pin : large.pins)
    for (const spec::Axis &axis : large.mesh)
      if (pin.dims.find('"' + axis.name + '"') != std::string::npos)
        addAxes({axis.name}, axes);
  return axes;
}

Split SizeRules::along(Split split, const std::string &axis) const {
  return {split.before * sizeOfAxis(large, axis),
          split.after * sizeOfAxis(small, axis), split.unit};
}

/// Over all of `first`, and then over one more of `axes` after another.
void SizeRules::addPrefixes(const std::vector<std::string> &first,
                            const std::vector<std::string> &axes,
                            std::vector<Split> &splits) const {
  Split split;
  for (const std::string &axis : first)
    split = along(split, axis);
  splits.push_back(split);
  for (const std::string &axis : axes)
    if (!llvm::is_contained(first, axis))
      splits.push_back(split = along(split, axis));
}

/// By its own axes, by what ZeRO splits further, and by ZeRO alone.
std::vector<Split> SizeRules::splitsOf(const std::string &dim) const {
  std::vector<std::string> axes = axesOf(dim);
  std::vector<Split> splits;
  addPrefixes({}, axes, splits);
  addPrefixes(axes, large.zero.axes, splits);
  addPrefixes({}, large.zero.axes, splits);
  bool isZigzag =
      dim == sequenceRule && large.sequenceLayout != layout::DimLayout::block;
  for (size_t i = 0, n = splits.size(); isZigzag && i < n; ++i)
    splits.push_back({2 * splits[i].before, 2 * splits[i].after});
  if (large.fp8)
    addFloat8(dim, splits);
  return splits;
}

/// A product is in FP8 by the sizes of a rank's parts, as far as rules tell;
/// where they do not, a GPU's plan wants these sizes too.
void SizeRules::addFloat8(const std::string &dim,
                          std::vector<Split> &splits) const {
  Split whole, byRules, byPins;
  whole.unit = float8UnitOf(dim);
  byRules = byPins = whole;
  for (const spec::ShardRule &rule : large.shard)
    if (rule.dim == dim)
      for (const std::string &axis : rule.axes)
        byRules = along(byRules, axis);
  splits.push_back(byRules);
  if (large.pins.empty())
    return;
  for (const std::string &axis : axesOf(dim))
    byPins = along(byPins, axis);
  splits.push_back(byPins);
}

/// Heads stand in products beside their width, which may suffice alone.
int64_t SizeRules::float8UnitOf(const std::string &dim) const {
  auto width = dims.widthOf.find(dim);
  auto size = width == dims.widthOf.end() ? dims.sizes.end()
                                          : dims.sizes.find(width->second);
  return size == dims.sizes.end()
             ? plan::float8Unit
             : plan::float8Unit / std::gcd(plan::float8Unit, size->second);
}

int64_t SizeRules::leastOf(const std::string &dim, int64_t size) const {
  if (dims.tables.count(dim)) // as long as a sequence, or longer
    return tokens + (size > int64_t{large.batch.sequence});
  return isOfHeads(dim) ? 1 : std::min(size, telling);
}

int64_t SizeRules::sizeOf(const std::string &dim, int64_t size) const {
  int64_t found = leastSize(size, splitsOf(dim), leastOf(dim, size));
  return dims.even.count(dim) ? llvm::alignTo(found, 2) : found;
}

/// It ends within a rank's part, or as many parts further.
int64_t SizeRules::windowOf(int64_t window) const {
  int64_t before = large.batch.sequence;
  std::vector<Split> reach = {{before, tokens}};
  for (const Split &split : splitsOf(sequenceRule))
    reach.push_back({llvm::divideCeilSigned(before, split.before),
                     llvm::divideCeilSigned(tokens, split.after)});
  return leastSize(window, reach, /*least=*/2);
}

/// Query heads are a whole multiple of key heads: one, or more.
void SizeRules::fitHeads(const std::string &queries, const std::string &keys,
                         SmallSizes &sizes) const {
  auto q = dims.sizes.find(queries), k = dims.sizes.find(keys);
  if (q == dims.sizes.end() || k == dims.sizes.end() || queries == keys)
    return;
  int64_t group = q->second / k->second;
  int64_t ofKeys = sizes.dims.try_emplace(keys, k->second).first->second;
  std::vector<Split> splits = splitsOf(queries);
  splits.push_back({k->second, ofKeys});
  int64_t found =
      leastSize(q->second, splits, ofKeys * std::min<int64_t>(group, 2));
  sizes.dims[queries] = llvm::alignTo(found, ofKeys);
}

SmallSizes SizeRules::sizes() const {
  SmallSizes sizes;
  for (int64_t window : dims.windows)
    sizes.windows[window] = windowOf(window);
  for (const auto &[name, size] : dims.sizes)
    if (size > 2) // and known
      sizes.dims[name] = sizeOf(name, size);
  for (const auto &[queries, keys] : dims.keysOf)
    fitHeads(queries, keys, sizes);
  return sizes;
}

} // namespace meshwork::verify
