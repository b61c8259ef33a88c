// What can be wrong with a request.
#include <algorithm>

#include "lib/Sharding/Steps.h"

namespace meshwork::sharding {
namespace {

// Sums of the bytes of a few steps stay below 2^63.
constexpr int64_t maxBytes = int64_t{1} << 58;

/// Ranks of all axes that either sharding names.
int64_t namedRanks(const Mesh &mesh, const Sharding &a, const Sharding &b) {
  std::vector<char> named(mesh.axes.size(), false);
  for (const Sharding *sharding : {&a, &b}) {
    for (AxisId axis : sharding->partial)
      named[axis] = true;
    for (const std::vector<AxisId> &axes : sharding->dims)
      for (AxisId axis : axes)
        named[axis] = true;
  }
  int64_t ranks = 1;
  for (AxisId axis = 0; axis < mesh.axes.size(); ++axis)
    ranks *= named[axis] ? mesh.axes[axis].size : 1;
  return ranks;
}

/// No step sends more than twice the whole tensor, padded in one dim to a
/// multiple of the ranks; this must stay countable.
std::string checkSize(const std::vector<int64_t> &shape, int64_t elementBytes,
                      int64_t ranks) {
  if (elementBytes < 1)
    return "found elements of " + std::to_string(elementBytes) +
           " bytes, expected 1 or more";
  __int128 bytes = elementBytes;
  int64_t shortest = INT64_MAX;
  for (int64_t size : shape) {
    if (bytes <= maxBytes)
      bytes *= std::max<int64_t>(size, 1);
    shortest = std::min(shortest, std::max<int64_t>(size, 1));
  }
  if (bytes <= maxBytes && !shape.empty())
    bytes += bytes / shortest * ranks;
  if (bytes > maxBytes)
    return "the tensor, padded to " + std::to_string(ranks) +
           " ranks, is larger than 2^58 bytes; use a smaller tensor or mesh";
  return "";
}

std::string checkPartial(const Mesh &mesh, const Sharding &from,
                         const Sharding &to) {
  for (AxisId axis : to.partial)
    if (std::find(from.partial.begin(), from.partial.end(), axis) ==
        from.partial.end())
      return "the target is partial over \"" + mesh.axes[axis].name +
             "\", where the source " + from.text(mesh) +
             " is not; no step makes a value partial";
  if (!to.partial.empty() && from.reduction != to.reduction)
    return "found a partial sum on one side and a partial max on the other, "
           "expected the same kind of reduction: " +
           from.text(mesh) + " and " + to.text(mesh);
  return "";
}

} // namespace

std::string checkRequest(const Mesh &mesh, const std::vector<int64_t> &shape,
                         int64_t elementBytes, const Sharding &from,
                         const Sharding &to) {
  std::string error = check(mesh);
  if (error.empty() && !(error = check(mesh, shape, from)).empty())
    error = "source: " + error;
  if (error.empty() && !(error = check(mesh, shape, to)).empty())
    error = "target: " + error;
  if (error.empty())
    error = checkSize(shape, elementBytes, namedRanks(mesh, from, to));
  return error.empty()
             ? checkPartial(mesh, normalized(mesh, from), normalized(mesh, to))
             : error;
}

} // namespace meshwork::sharding
