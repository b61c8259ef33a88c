#include "passes/codegen/Narrow.h"

using namespace mlir;
namespace meshwork::codegen {

Value fromNarrow(OpBuilder &b, Location loc, Value stored, Type element) {
  return transformer::isF8(element) ? fromFloat8(b, loc, stored, element)
                                    : fromInt8(b, loc, stored);
}

Value toNarrow(OpBuilder &b, Location loc, Value value, Type element) {
  return transformer::isF8(element) ? toFloat8(b, loc, value, element)
                                    : toInt8(b, loc, value);
}

} // namespace meshwork::codegen
