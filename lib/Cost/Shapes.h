// What of an instruction's shape its time depends on. 0: not known.
#ifndef MESHWORK_LIB_COST_SHAPES_H
#define MESHWORK_LIB_COST_SHAPES_H

namespace meshwork::cost {

/// [m, k] times [k, n], `batch` times.
struct ProductShape {
  double batch = 0, m = 0, n = 0, k = 0;
  double operandBytes = 0; // of one element
  /// Of a second tensor of the result's shape, which a gelu in the product
  /// leaves behind or its gradient reads.
  double asideBytes = 0;
  bool isKnown() const { return batch > 0 && m > 0 && n > 0 && k > 0; }
};

struct AttentionShape {
  bool isGradient = false;
  double headSize = 0;
  double keys = 0; // that a query sees, in the mean
};

} // namespace meshwork::cost

#endif // MESHWORK_LIB_COST_SHAPES_H
