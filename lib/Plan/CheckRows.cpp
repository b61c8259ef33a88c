// How views of rows must lie, for the checks that ask for such.
#include "lib/Plan/CheckOperandsParts.h"
#include "lib/Plan/Overlap.h"

namespace meshwork::plan {
namespace {

absl::Status checkPair(const Operands &c, const char *rule, Named one,
                       Named other) {
  const ViewInfo &a = c.views[one.view], &b = c.views[other.view];
  if (a.buffer != b.buffer || !mayShareBytes(a, b))
    return absl::OkStatus();
  return misfit(rule, one.role, " and ", other.role, " share bytes of buffer ",
                c.nameOf(a.buffer), ", expected what is written to lie apart");
}

/// Dims [first, last) as one of stride `stride`, or of any when that is 0.
bool isRun(const ViewInfo &view, size_t first, size_t last, int64_t stride) {
  for (size_t dim = last; dim-- > first;) {
    if (view.shape[dim] == 1)
      continue; // Places no element.
    if (stride != 0 && view.strides[dim] != stride)
      return false;
    // The shape and strides of a view have been multiplied when it was decoded.
    stride = view.strides[dim] * view.shape[dim];
  }
  return true;
}
} // namespace

absl::Status checkApart(const Operands &c, const char *rule,
                        std::initializer_list<Named> read,
                        std::initializer_list<Named> written) {
  for (const Named *one = written.begin(); one != written.end(); ++one) {
    for (Named other : read)
      if (other.view != noView)
        MESHWORK_RETURN_IF_ERROR(checkPair(c, rule, *one, other));
    for (const Named *other = written.begin(); other != one; ++other)
      MESHWORK_RETURN_IF_ERROR(checkPair(c, rule, *one, *other));
  }
  return absl::OkStatus();
}

absl::Status expectRows(const ViewInfo &found, const char *role, size_t dims) {
  size_t all = found.shape.size();
  if (isRun(found, 0, dims, 0) && isRun(found, dims, all, 1))
    return absl::OkStatus();
  return bad(role, " is ", describe(found),
             ", expected dense rows at one stride");
}

absl::Status expectDense(const ViewInfo &found, const char *role) {
  return found.contiguous
             ? absl::OkStatus()
             : bad(role, " is ", describe(found), " with gaps, expected none");
}

absl::Status expectNumbers(const ViewInfo &found, const char *role) {
  if (found.dtype != DType::i32)
    return bad(role, " is ", describe(found), ", expected i32");
  return expectDense(found, role);
}

absl::Status expectChoices(const ViewInfo &choices, const ViewInfo &places,
                           const char *role) {
  MESHWORK_RETURN_IF_ERROR(expectNumbers(choices, "choices"));
  MESHWORK_RETURN_IF_ERROR(expectView(places, role, DType::i32, choices.shape));
  MESHWORK_RETURN_IF_ERROR(expectDense(places, role));
  if (choices.shape.empty())
    return bad("choices have no dims, expected [tokens...,k]");
  return choices.elements <= INT32_MAX
             ? absl::OkStatus()
             : bad("there are ", choices.elements,
                   " choices, expected fewer than 2^31");
}

} // namespace meshwork::plan
