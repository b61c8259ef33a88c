#include "passes/schedule/HostCopies.h"

using namespace mlir;
namespace meshwork::schedule {

BufferOp makeBuffer(OpBuilder &builder, Location loc, const Twine &name,
                    BufferKind kind, int64_t bytes, bool onHost,
                    bool persistent) {
  auto type = MemRefType::get({bytes}, builder.getI8Type());
  auto flag = [&](bool isSet) {
    return isSet ? builder.getUnitAttr() : UnitAttr();
  };
  return BufferOp::create(builder, loc, type, builder.getStringAttr(name),
                          BufferKindAttr::get(builder.getContext(), kind),
                          flag(persistent), flag(onHost), IntegerAttr(),
                          IntegerAttr());
}

/// The largest type of whose elements these are a whole number.
static Type wordOf(OpBuilder &builder, int64_t bytes) {
  if (bytes % 4 == 0)
    return builder.getI32Type();
  return bytes % 2 == 0 ? Type(builder.getBF16Type()) : builder.getI8Type();
}

CopyOp copyBytes(OpBuilder &builder, Location loc, StringRef name,
                 int64_t bytes, Value from, Value to) {
  Type word = wordOf(builder, bytes);
  auto type =
      MemRefType::get({bytes * 8 / word.getIntOrFloatBitWidth()}, word,
                      StridedLayoutAttr::get(builder.getContext(), 0, {1}));
  auto whole = [&](Value buffer) -> Value {
    return ViewOp::create(builder, loc, type, buffer,
                          builder.getI64IntegerAttr(0), ArrayAttr());
  };
  Value src = whole(from), dst = whole(to);
  auto i64 = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
  return CopyOp::create(builder, loc, builder.getStringAttr(name), i64(0),
                        i64(2 * bytes), i64(0), src, dst);
}

Value viewLike(OpBuilder &builder, ViewOp view, Value buffer, int64_t begin) {
  auto offset = static_cast<int64_t>(view.getOffset()) + begin;
  return ViewOp::create(builder, view.getLoc(), view.getType(), buffer,
                        builder.getI64IntegerAttr(offset), view.getShiftsAttr(),
                        view.getAdvancesAttr());
}

} // namespace meshwork::schedule
