#include "lib/Plan/Views.h"
#include "absl/strings/str_join.h"
#include "lib/Plan/Axes.h"
#include "lib/Plan/CheckOperandsParts.h"
#include "lib/Plan/Copies.h"
#include <algorithm>
#include <array>
#include <optional>

namespace meshwork::plan {
namespace {
constexpr uint32_t maxDims = 8, maxShifts = 16;

template <typename T>
absl::Span<const T> spanOf(const flatbuffers::Vector<T> *vector) {
  if (!vector || vector->size() == 0)
    return {};
  return {vector->data(), vector->size()};
}

/// Elements and the distance from the first to the last one, checked.
absl::Status measure(ViewInfo &view) {
  uint64_t elements = 1, last = 0, step = 0;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] < 1 || view.strides[i] < 1)
      return bad("dim ", i, " has size ", view.shape[i], " and stride ",
                 view.strides[i], ", expected positive ones");
    if (!checkedMul(elements, view.shape[i], elements) ||
        !checkedMul(view.shape[i] - 1, view.strides[i], step) ||
        !checkedAdd(last, step, last))
      return bad("its size in elements does not fit 64 bits");
  }
  uint64_t bytes = 0;
  if (!checkedAdd(last, 1, last) ||
      !checkedMul(last, sizeOf(view.dtype), bytes) || bytes >> 62)
    return bad("its size in bytes does not fit 62 bits");
  view.elements = static_cast<int64_t>(elements);
  view.spanBytes = bytes;
  view.contiguous = last == elements;
  return absl::OkStatus();
}

/// Distinct indices must be distinct bytes: two threads may write them.
/// Ordered by stride, each dim must step over all of the faster ones; that is
/// sufficient, and every permuted or sliced dense tensor satisfies it.
absl::Status checkNoSelfOverlap(ViewInfo &view) {
  std::array<size_t, maxDims> order;
  size_t count = 0;
  for (size_t i = 0; i < view.shape.size(); ++i)
    if (view.shape[i] > 1)
      order[count++] = i;
  std::sort(order.begin(), order.begin() + count, [&](size_t a, size_t b) {
    return view.strides[a] < view.strides[b];
  });
  uint64_t covered = 1;
  for (size_t i = 0; i < count; ++i) {
    size_t dim = order[i];
    if (static_cast<uint64_t>(view.strides[dim]) < covered)
      return bad("dim ", dim, " has stride ", view.strides[dim],
                 ", smaller than the ", covered, " elements it steps over");
    covered += (view.shape[dim] - 1) * view.strides[dim];
    view.contiguous &= i == 0 || order[i] < order[i - 1];
  }
  return absl::OkStatus();
}

/// What its sizes and strides alone say.
absl::Status checkAlone(ViewInfo &view) {
  if (view.shape.size() > maxDims || view.strides.size() != view.shape.size())
    return bad("it has ", view.shape.size(), " sizes and ", view.strides.size(),
               " strides, expected as many, at most ", maxDims);
  MESHWORK_RETURN_IF_ERROR(measure(view));
  return checkNoSelfOverlap(view);
}

/// The largest coordinates give the largest sum: shifts are not negative.
absl::Status measureShifts(const Plan &plan, ViewInfo &view) {
  if (!view.shifts)
    return absl::OkStatus();
  if (view.shifts->size() > maxShifts)
    return bad("it has ", view.shifts->size(), " shifts, expected at most ",
               maxShifts);
  for (const Shift *shift : *view.shifts) {
    MESHWORK_RETURN_IF_ERROR(checkAxes(plan, shift->axes()));
    if (shift->bytes() % sizeOf(view.dtype) != 0)
      return bad("it is shifted by ", shift->bytes(),
                 " bytes, expected a multiple of its element");
    uint64_t furthest = 0, ranks = groupSize(plan, shift->axes());
    if (shift->hop() >= ranks)
      return bad("it hops ", shift->hop(), " of ", ranks,
                 " ranks, expected fewer than there are");
    if (!checkedMul(ranks - 1, shift->bytes(), furthest) ||
        !checkedAdd(view.reach, furthest, view.reach))
      return bad("its shifts do not fit 64 bits");
  }
  return absl::OkStatus();
}

/// How far they lead depends on the repeats around each use (PlanCheckUses).
absl::Status checkAdvances(const ViewInfo &view) {
  if (view.advances.size() > maxRepeats)
    return bad("it has ", view.advances.size(), " advances, expected at most ",
               maxRepeats);
  for (uint64_t advance : view.advances)
    if (advance % sizeOf(view.dtype) != 0)
      return bad("it advances by ", advance,
                 " bytes, expected a multiple of its element");
  return absl::OkStatus();
}

absl::Status decode(const Plan &plan, const Program &program, const View &from,
                    ViewInfo &view) {
  if (from.buffer() >= orEmpty(program.buffers()).size())
    return bad("buffer ", from.buffer(), " does not exist, there are ",
               orEmpty(program.buffers()).size());
  if (from.dtype() > DType::MAX)
    return bad("unknown element type ", static_cast<int>(from.dtype()));
  if (!isAligned(from.shape()) || !isAligned(from.strides()) ||
      !isAligned(from.advances()))
    return bad("its sizes, strides or advances are not aligned to 8 bytes");
  view = {from.buffer(),
          from.offset(),
          from.dtype(),
          spanOf(from.shape()),
          spanOf(from.strides()),
          0,
          0,
          false,
          from.shifts() && from.shifts()->size() > 0 ? from.shifts() : nullptr,
          0,
          spanOf(from.advances()),
          from.updated()};
  MESHWORK_RETURN_IF_ERROR(checkAlone(view));
  MESHWORK_RETURN_IF_ERROR(measureShifts(plan, view));
  MESHWORK_RETURN_IF_ERROR(checkAdvances(view));
  const Buffer &buffer = *program.buffers()->Get(view.buffer);
  return checkInBuffer(view, bytesOfCopy(buffer), quote(buffer.name()));
}

/// Past its last byte on any rank, in the last turn of repeats around it:
/// shifts and advances are not negative. Nothing where 64 bits do not hold it.
std::optional<uint64_t> endOf(const ViewInfo &view,
                              absl::Span<const RepeatShape> around) {
  uint64_t end = 0, step = 0;
  bool fits = checkedAdd(view.offset, view.spanBytes, end) &&
              checkedAdd(end, view.reach, end);
  for (size_t i = 0; i < std::min(view.advances.size(), around.size()); ++i)
    fits = fits &&
           checkedMul(view.advances[i], around[i].times - uint64_t{1}, step) &&
           checkedAdd(end, step, end);
  return fits ? std::optional(end) : std::nullopt;
}
} // namespace

uint64_t ViewInfo::advanced(const Turns &turns) const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < advances.size(); ++i)
    bytes += turns[i] * advances[i];
  return bytes;
}

absl::StatusOr<ViewInfo> viewAlone(const ViewT &from) {
  ViewInfo view{};
  view.buffer = from.buffer;
  view.offset = from.offset;
  view.dtype = from.dtype;
  view.shape = from.shape;
  view.strides = from.strides;
  view.advances = from.advances;
  MESHWORK_RETURN_IF_ERROR(ruled("C1", checkAlone(view)));
  MESHWORK_RETURN_IF_ERROR(ruled("C3", checkAdvances(view)));
  return view;
}

absl::Status checkInBuffer(const ViewInfo &view, uint64_t bytes,
                           const std::string &name) {
  if (std::optional<uint64_t> end = endOf(view, {}); !end || *end > bytes)
    return misfit(
        "C1", describe(view), " at offset ", view.offset,
        view.reach > 0 ? absl::StrCat(", shifted by up to ", view.reach, ",")
                       : std::string(),
        " needs ", view.spanBytes, " bytes, buffer ", name, " has ", bytes);
  return view.offset % sizeOf(view.dtype) == 0
             ? absl::OkStatus()
             : misfit("C1", "offset ", view.offset,
                      " is not a multiple of its element");
}

absl::Status checkInTurns(const ViewInfo &view, uint64_t bytes,
                          const std::string &name,
                          const std::vector<RepeatShape> &around) {
  if (view.advances.size() > around.size())
    return misfit("C3", "advances in ", view.advances.size(),
                  " repeats, but is used in ", around.size());
  std::optional<uint64_t> end = endOf(view, around);
  return end && *end <= bytes
             ? absl::OkStatus()
             : misfit("C3", "leaves buffer ", name, " of ", bytes,
                      " bytes in its last turn: ", describe(view),
                      " at offset ", view.offset);
}

absl::StatusOr<std::vector<ViewInfo>> decodeViews(const Plan &plan,
                                                  const Program &program) {
  std::vector<ViewInfo> views(orEmpty(program.views()).size());
  for (uint32_t i = 0; i < views.size(); ++i)
    if (absl::Status status =
            decode(plan, program, *program.views()->Get(i), views[i]);
        !status.ok())
      return bad("view ", i, ": ", status.message());
  return views;
}

std::string describe(const ViewInfo &view) {
  return absl::StrCat(EnumNameDType(view.dtype), "[",
                      absl::StrJoin(view.shape, ","), "]");
}

std::string quote(const flatbuffers::String *text) {
  return quote(text ? std::string_view(text->c_str(), text->size())
                    : std::string_view());
}

} // namespace meshwork::plan
