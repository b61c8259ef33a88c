// The numbers of a row's largest elements, the same as on the CPU.
//
// A warp takes a row, and finds one choice after the other: of what comes
// behind the last choice each lane looks for the best of its part, then the
// lanes agree. So nothing is kept but the last choice, and a row may have any
// length; it is read from the cache after the first time.
#include "passes/codegen/gpu/library/Warp.h"

namespace meshwork {
namespace {
/// An element's place in the order, the larger the earlier: by its value, of
/// which a NaN's is the largest, then by its number, the lower first. 0 is
/// none, ~0 before all.
using Place = u64;

__device__ inline Place placeOf(float value, i64 number) {
  u32 bits = __builtin_bit_cast(u32, value), magnitude = bits & 0x7fffffffu;
  u32 key = magnitude > 0x7f800000u ? ~0u - 1
            : bits > 0x80000000u    ? 0x80000000u - magnitude
                                    : 0x80000000u + magnitude;
  return static_cast<u64>(key) << 32 | ~static_cast<u32>(number);
}
__device__ inline u32 numberOf(Place place) { return ~static_cast<u32>(place); }

__device__ inline Place firstOfWarp(Place place) {
  for (i32 step = lanes / 2; step > 0; step /= 2) {
    Place other =
        static_cast<u64>(exchange(static_cast<u32>(place >> 32), step)) << 32 |
        exchange(static_cast<u32>(place), step);
    place = other > place ? other : place;
  }
  return place;
}

struct Row {
  const float *scores;
  i64 experts, groups;
  bool addsTwo;

  __device__ i64 size() const { return experts / groups; }
  __device__ Place placeOfExpert(i64 e) const { return placeOf(scores[e], e); }

  __device__ Place placeOfGroup(i64 group) const {
    Place first = 0, second = 0;
    for (i64 e = group * size(); e < (group + 1) * size(); ++e) {
      Place here = placeOfExpert(e);
      second = here > first ? first : here > second ? here : second;
      first = here > first ? here : first;
    }
    float score = scores[numberOf(first)];
    return placeOf(addsTwo ? score + scores[numberOf(second)] : score, group);
  }

  /// The best group behind `last`, of all lanes.
  __device__ Place nextGroup(Place last, i64 lane) const {
    Place best = 0;
    for (i64 group = lane; group < groups; group += lanes) {
      Place here = placeOfGroup(group);
      best = here < last && here > best ? here : best;
    }
    return firstOfWarp(best);
  }

  /// The best expert behind `last`, in groups from `bound` on.
  __device__ Place nextExpert(Place last, Place bound, i64 lane) const {
    Place best = 0;
    auto look = [&](i64 e) {
      Place here = placeOfExpert(e);
      best = here < last && here > best ? here : best;
    };
    if (groups == 1)
      for (i64 e = lane; e < experts; e += lanes)
        look(e);
    else
      for (i64 group = lane; group < groups; group += lanes)
        if (placeOfGroup(group) >= bound)
          for (i64 e = group * size(); e < (group + 1) * size(); ++e)
            look(e);
    return firstOfWarp(best);
  }
};
} // namespace

/// choices[r, i] = number of the i-th largest of scores[r, e], e < experts, for
/// r < rows, i < k, in the `kept` best of `groups`; -1 where valid[r] is 0. A
/// block has `warps` rows; strides in elements.
DEVICE_FUNCTION void meshwork_top_k(const float *scores, const float *valid,
                                    i32 *choices, i64 hasValid, i64 warps,
                                    i64 rows, i64 experts, i64 k,
                                    i64 scoreStride, i64 choiceStride,
                                    i64 groups, i64 kept, i64 addsTwo) {
  i64 lane = threadInBlock() % lanes,
      at = blockInGrid() * warps + threadInBlock() / lanes;
  if (at >= rows)
    return;
  choices += at * choiceStride;
  bool isPadding = hasValid && valid[at] == 0;
  Row row = {scores + at * scoreStride, experts, groups, addsTwo != 0};
  Place bound = ~0ull, last = ~0ull;
  for (i64 i = 0; groups > 1 && !isPadding && i < kept; ++i)
    bound = row.nextGroup(bound, lane);
  for (i64 i = 0; i < k; ++i) {
    if (!isPadding)
      last = row.nextExpert(last, bound, lane);
    if (lane == 0)
      choices[i] = isPadding ? -1 : static_cast<i32>(numberOf(last));
  }
}

} // namespace meshwork
