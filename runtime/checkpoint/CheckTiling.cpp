// Whether boxes tile a tensor, in time n log n for n boxes.
//
// A box is the sum, over all points, of signs at its corners: + at its begin,
// and the sign changes with each dim in which a corner stands at the end. Boxes
// hold each element once exactly if the signs at their corners add up to those
// of the tensor, seen as one box.
#include "runtime/checkpoint/CheckManifest.h"
#include "runtime/io/Files.h"
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <algorithm>

namespace meshwork::runtime {
namespace {
constexpr uint64_t maxCorners = uint64_t{1} << 23;

struct Corner {
  uint64_t point; // row-major among the points of the dims that are split
  int64_t sign;
};

/// A dim that some box does not span.
struct SplitDim {
  size_t dim;
  uint64_t stride;
};

bool splits(const std::vector<StoredBox> &boxes, size_t dim, int64_t size) {
  return std::any_of(boxes.begin(), boxes.end(), [&](const StoredBox &box) {
    return box.extent[dim] != size;
  });
}

/// Nothing where its points cannot be counted.
std::optional<std::vector<SplitDim>>
splitDims(const std::vector<int64_t> &shape,
          const std::vector<StoredBox> &boxes) {
  std::vector<SplitDim> dims;
  std::optional<uint64_t> points = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    if (!splits(boxes, dim, shape[dim]))
      continue;
    dims.push_back({dim, *points});
    points = checkedMultiply(*points, static_cast<uint64_t>(shape[dim]) + 1);
    if (!points)
      return std::nullopt;
  }
  return dims;
}

void addCorners(const std::vector<SplitDim> &dims,
                const std::vector<int64_t> &begin,
                const std::vector<int64_t> &extent, int64_t sign,
                std::vector<Corner> &to) {
  for (uint64_t ends = 0; ends < uint64_t{1} << dims.size(); ++ends) {
    Corner corner{0, sign};
    for (size_t i = 0; i < dims.size(); ++i) {
      bool atEnd = ends >> i & 1;
      int64_t at = begin[dims[i].dim] + (atEnd ? extent[dims[i].dim] : 0);
      corner.point += static_cast<uint64_t>(at) * dims[i].stride;
      corner.sign = atEnd ? -corner.sign : corner.sign;
    }
    to.push_back(corner);
  }
}

/// At the first point with a sum, all that come before are held once.
absl::Status notOnce(size_t numDims, const std::vector<SplitDim> &dims,
                     const Corner &sum) {
  std::vector<uint64_t> index(numDims, 0);
  uint64_t rest = sum.point;
  for (size_t i = dims.size(); i-- > 0;) {
    index[dims[i].dim] = rest / dims[i].stride;
    rest %= dims[i].stride;
  }
  return absl::DataLossError(absl::StrCat("element [",
                                          absl::StrJoin(index, ","), "] is in ",
                                          sum.sign + 1, " boxes, expected 1"));
}
} // namespace

absl::Status checkTiling(const std::vector<int64_t> &shape,
                         const std::vector<StoredBox> &boxes) {
  std::optional<std::vector<SplitDim>> dims = splitDims(shape, boxes);
  if (!dims || boxes.size() >= maxCorners >> dims->size())
    return absl::DataLossError(absl::StrCat(
        "has ", boxes.size(),
        " boxes in too many dims, or is too large, to be checked"));
  std::vector<Corner> corners;
  corners.reserve((boxes.size() + 1) << dims->size());
  addCorners(*dims, std::vector<int64_t>(shape.size(), 0), shape, -1, corners);
  for (const StoredBox &box : boxes)
    addCorners(*dims, box.begin, box.extent, 1, corners);
  std::sort(corners.begin(), corners.end(),
            [](const Corner &a, const Corner &b) { return a.point < b.point; });
  for (size_t i = 0; i < corners.size();) {
    Corner sum{corners[i].point, 0};
    for (; i < corners.size() && corners[i].point == sum.point; ++i)
      sum.sign += corners[i].sign;
    if (sum.sign != 0)
      return notOnce(shape.size(), *dims, sum);
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
