// Inputs and results, by what each says of itself.
#include "absl/strings/ascii.h"
#include "lib/Plan/CheckOperandsParts.h"
#include <algorithm>

namespace meshwork::plan {
namespace {
using Kind = InputKind;

absl::Status checkBase(const Input &input, const char *name) {
  bool isCorrection = input.kind() == Kind::bias_correction;
  if (isCorrection ? input.base() >= 0 && input.base() < 1 : input.base() == 0)
    return absl::OkStatus();
  return misfit("C4", name, " has the base ", input.base(), ", expected ",
                isCorrection ? "one from 0 to below 1" : "none");
}

absl::Status checkSplitOf(const Input &input, const char *name) {
  bool isTable = input.kind() == Kind::positions;
  if (!isOfPart(input.kind()))
    return input.size() == 0 && input.hop() == 0 &&
                   (isOfTokens(input.kind()) ||
                    orEmpty(input.axes()).size() == 0)
               ? absl::OkStatus()
               : misfit("C2", name,
                        " has axes, a size or a hop, which only a coordinate, "
                        "extent or positions have");
  if (input.size() < 1)
    return misfit("C2", name, " has the size ", input.size(),
                  ", expected a positive number");
  if (!isTable && input.hop() != 0)
    return misfit("C2", name, " has the hop ", input.hop(), ", expected none");
  return isTable || orEmpty(input.layouts()).size() == 0
             ? absl::OkStatus()
             : misfit("C3", name,
                      " is of parts with layouts, expected blocks; other parts "
                      "have positions");
}

absl::Status expectForm(const ViewInfo &view, const char *name, DType dtype,
                        size_t dims) {
  return view.dtype == dtype && view.shape.size() == dims
             ? absl::OkStatus()
             : bad(name, " is ", describe(view), ", expected ",
                   EnumNameDType(dtype), " of ", dims,
                   dims == 1 ? " dim" : " dims");
}

absl::Status checkForm(Kind kind, const ViewInfo &view, const char *name) {
  if (!view.contiguous)
    return bad(name, " is not contiguous");
  if (isOfTokens(kind))
    return expectForm(view, name, DType::i32, 2);
  switch (kind) {
  case Kind::positions:
    return expectForm(view, name, DType::i32, 1);
  case Kind::target_counts:
    return expectForm(view, name, DType::f32, 1);
  case Kind::random:
  case Kind::update_random:
    return expectView(view, name, DType::i32, {3});
  case Kind::coordinate:
  case Kind::extent:
    return expectNumber(view, name, DType::i32);
  default:
    return expectNumber(view, name, DType::f32);
  }
}
} // namespace

absl::Status checkInput(const Input &input, const ViewInfo &view) {
  const char *name = EnumNameInputKind(input.kind());
  MESHWORK_RETURN_IF_ERROR(checkBase(input, name));
  MESHWORK_RETURN_IF_ERROR(checkSplitOf(input, name));
  return ruled("C1", checkForm(input.kind(), view, name));
}

bool isStateName(const flatbuffers::String *name) {
  return name && name->size() > 0 && name->size() <= 32 &&
         absl::ascii_islower(name->c_str()[0]) &&
         std::all_of(name->begin(), name->end(), [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
         });
}

absl::Status checkResult(const Result &result, const ViewInfo &view) {
  const char *kind = EnumNameResultKind(result.kind());
  bool isMetric = result.kind() == ResultKind::metric;
  if (isMetric ? !isStateName(result.name()) : result.name() != nullptr)
    return misfit("C2", kind, " is called ",
                  result.name() ? quote(result.name()) : "nothing",
                  isMetric ? ", expected at most 32 lower-case letters, digits "
                             "and _, a letter first"
                           : ", expected no name");
  if (!isMetric)
    return ruled("C1", expectNumber(view, kind, DType::f32));
  return view.dtype == DType::f32 && view.contiguous
             ? absl::OkStatus()
             : misfit("C1", kind, " is ", describe(view),
                      ", expected f32 without gaps");
}

} // namespace meshwork::plan
