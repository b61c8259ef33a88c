#include "passes/verify/RankState.h"
#include "lib/Plan/StatusMacros.h"

#include "absl/strings/str_cat.h"

namespace meshwork::verify {
using interpreter::Tensor;

/// Calls `visit(i, place)` for each element of a view, row-major, until it says
/// no.
template <typename Visit>
static bool forEachPlace(const PlacedView &view, Visit visit) {
  size_t rank = view.info->shape.size();
  uint64_t width = plan::bytesOf(view.info->dtype), place = view.place;
  std::vector<int64_t> index(rank, 0);
  for (int64_t i = 0; i < view.info->elements; ++i) {
    if (!visit(i, place))
      return false;
    for (size_t d = rank; d-- > 0;) {
      place += width * view.info->strides[d];
      if (++index[d] < view.info->shape[d])
        break;
      place -= width * view.info->strides[d] * view.info->shape[d];
      index[d] = 0;
    }
  }
  return true;
}

std::string PlacedView::text(const plan::Program &program) const {
  return absl::StrCat(
      plan::describe(*info), " of buffer ",
      plan::quote(program.buffers()->Get(info->buffer)->name()));
}

absl::StatusOr<RankState> RankState::create(const plan::Plan &plan,
                                            uint32_t rank,
                                            const runtime::Mesh &mesh) {
  absl::StatusOr<runtime::RankProgram> program =
      runtime::RankProgram::create(plan, rank, mesh);
  if (!program.ok())
    return program.status();
  return RankState(std::move(*program));
}

std::string RankState::nameOfBuffer(uint32_t buffer) const {
  return plan::quote(program().buffers()->Get(buffer)->name());
}

absl::Status RankState::problemAt(const PlacedView &view, uint64_t place,
                                  const char *does) const {
  Element element{view.info->dtype, view.info->buffer};
  std::string text =
      absl::StrCat(does, " ", view.text(program()), ", but byte ", place, " ");
  if (!memory.mayRead(place, element.bytes()))
    return absl::DataLossError(
        text + "is still being written by what was started before");
  if (does == std::string_view("writes"))
    return absl::DataLossError(
        text + "is still being read by what was started before");
  auto nameOf = [&](uint32_t buffer) { return nameOfBuffer(buffer); };
  return absl::DataLossError(
      absl::StrCat(text, "holds ", memory.found(place, element, nameOf)));
}

absl::StatusOr<Tensor> RankState::read(const PlacedView &view) const {
  Element element{view.info->dtype, view.info->buffer};
  Tensor values({view.info->shape.begin(), view.info->shape.end()});
  uint64_t wrong = 0;
  bool fine = forEachPlace(view, [&](int64_t i, uint64_t place) {
    wrong = place;
    const double *value = memory.find(place, element);
    if (!value || !memory.mayRead(place, element.bytes()))
      return false;
    values[i] = *value;
    return true;
  });
  if (!fine)
    return problemAt(view, wrong, "reads");
  return values;
}

absl::Status RankState::write(const PlacedView &view, const Tensor &values) {
  if (values.size() != view.info->elements)
    return absl::InternalError(absl::StrCat(
        "writes ", values.size(), " elements to ", view.text(program())));
  Element element{view.info->dtype, view.info->buffer};
  uint64_t wrong = 0;
  bool fine = forEachPlace(view, [&](int64_t i, uint64_t place) {
    wrong = place;
    if (!memory.mayWrite(place, element.bytes()))
      return false;
    memory.write(place, element, values[i]);
    return true;
  });
  return fine ? absl::OkStatus() : problemAt(view, wrong, "writes");
}

absl::Status RankState::copy(const PlacedView &from, const PlacedView &to) {
  MESHWORK_RETURN_IF_ERROR(check(from, ByteMemory::Use::reads));
  MESHWORK_RETURN_IF_ERROR(check(to, ByteMemory::Use::writes));
  uint64_t width = plan::bytesOf(from.info->dtype);
  memory.copy({from.place, from.info->buffer}, {to.place, to.info->buffer},
              static_cast<uint64_t>(from.info->elements) * width);
  return absl::OkStatus();
}

absl::Status RankState::check(const PlacedView &view,
                              ByteMemory::Use use) const {
  uint64_t wrong = 0, width = plan::bytesOf(view.info->dtype);
  bool reads = use == ByteMemory::Use::reads;
  bool fine = forEachPlace(view, [&](int64_t, uint64_t place) {
    wrong = place;
    return reads ? memory.mayRead(place, width) : memory.mayWrite(place, width);
  });
  return fine ? absl::OkStatus()
              : problemAt(view, wrong, reads ? "reads" : "writes");
}

void RankState::begin(const PlacedView &view, ByteMemory::Use use) {
  forEachPlace(view, [&](int64_t, uint64_t place) {
    memory.begin(place, plan::bytesOf(view.info->dtype), use);
    return true;
  });
}

void RankState::end(const PlacedView &view, ByteMemory::Use use) {
  forEachPlace(view, [&](int64_t, uint64_t place) {
    memory.end(place, plan::bytesOf(view.info->dtype), use);
    return true;
  });
}

} // namespace meshwork::verify
