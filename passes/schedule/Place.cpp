// A tensor in a buffer: its parts, its view, and whether two share an element.
#include "passes/schedule/Place.h"
#include "meshwork/Plan/Apart.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

int64_t elementBytes(const Place &place) {
  return place.element.getIntOrFloatBitWidth() / 8;
}

int64_t bytesOf(const Place &place) {
  return ShapedType::getNumElements(place.shape) * elementBytes(place);
}

Place blockOf(const Place &whole, int64_t dim, int64_t size, ArrayAttr axes) {
  Place part = whole;
  part.shape[dim] = size;
  part.shifts.push_back({axes, size * whole.strides[dim]});
  return part;
}

Place partOf(const Place &whole, RankedTensorType wholeType, StringAttr dim,
             int64_t offset, RankedTensorType part) {
  int64_t position = dimsOf(wholeType).find(dim);
  Place result = whole;
  result.offset += offset * whole.strides[position];
  result.shape = SmallVector<int64_t>(part.getShape());
  if (part.getRank() < wholeType.getRank())
    result.strides.erase(result.strides.begin() + position);
  return result;
}

Place splitOf(const Place &whole, int64_t dim, ArrayRef<int64_t> sizes) {
  Place result = whole;
  auto shape = result.shape.begin() + dim,
       strides = result.strides.begin() + dim;
  int64_t stride = *strides;
  SmallVector<int64_t> of(sizes.size());
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i])
    of[i] = stride;
  result.shape.insert(result.shape.erase(shape), sizes.begin(), sizes.end());
  result.strides.insert(result.strides.erase(strides), of.begin(), of.end());
  return result;
}

Place splitOf(const Place &whole, RankedTensorType wholeType, StringAttr dim,
              RankedTensorType parts) {
  int64_t position = dimsOf(wholeType).find(dim),
          count = parts.getRank() - wholeType.getRank() + 1;
  return splitOf(whole, position, parts.getShape().slice(position, count));
}

Place turnOf(const Place &whole, RankedTensorType wholeType,
             transformer::RepeatOp repeat) {
  RankedTensorType type = repeat.partOf(wholeType);
  int64_t position = dimsOf(wholeType).find(repeat.getDimAttr());
  Place result = partOf(whole, wholeType, repeat.getDimAttr(), 0, type);
  size_t depth = 0;
  for (auto outer = repeat->getParentOfType<transformer::RepeatOp>(); outer;
       outer = outer->getParentOfType<transformer::RepeatOp>())
    ++depth;
  result.advances.resize(depth, 0);
  result.advances.push_back(type.getDimSize(position) *
                            whole.strides[position]);
  return result;
}

Value viewOf(OpBuilder &builder, Location loc, const Place &place) {
  auto layout = StridedLayoutAttr::get(builder.getContext(), 0, place.strides);
  auto type = MemRefType::get(place.shape, place.element, layout);
  int64_t width = elementBytes(place);
  SmallVector<Attribute> shifts;
  for (const PlaceShift &shift : place.shifts)
    shifts.push_back(ShiftAttr::get(builder.getContext(), shift.axes,
                                    shift.elements * width, /*hop=*/0));
  SmallVector<int64_t> advances;
  for (int64_t elements : place.advances)
    advances.push_back(elements * width);
  return ViewOp::create(
      builder, loc, type, place.buffer,
      builder.getI64IntegerAttr(place.offset * width),
      shifts.empty() ? ArrayAttr() : builder.getArrayAttr(shifts),
      advances.empty() ? DenseI64ArrayAttr()
                       : builder.getDenseI64ArrayAttr(advances),
      place.updated ? builder.getUnitAttr() : UnitAttr());
}

bool mayShareBytes(const Place &a, const Place &b) {
  if (a.buffer != b.buffer)
    return false;
  if (b.offset < a.offset)
    return mayShareBytes(b, a);
  bool moveAlike = a.advances == b.advances && a.shifts == b.shifts;
  return !moveAlike || a.element != b.element ||
         !layout::apart({a.shape, a.strides}, {b.shape, b.strides},
                        b.offset - a.offset);
}

} // namespace meshwork::schedule
