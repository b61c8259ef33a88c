// Copies tensors to others of the same shapes, whatever their strides.
#pragma once

#include "runtime/comm/Transport.h"

namespace meshwork::runtime {

class TensorCopies {
public:
  /// Shapes and strides are looked at, not data.
  TensorCopies(const std::vector<Strided> &from,
               const std::vector<Strided> &to);
  /// Tensors like those of the constructor, elsewhere perhaps.
  void run(const std::vector<Strided> &from, const std::vector<Strided> &to,
           ParallelFor parallel) const;

private:
  /// Elements [begin, end) of one tensor.
  struct Chunk {
    uint32_t tensor;
    int64_t begin, end;
  };
  std::vector<Box> boxes; // by tensor
  std::vector<Chunk> chunks;
};

/// The same shapes, one behind the other from `data` on, without gaps; null
/// gives shapes and strides without a place.
std::vector<Strided> packed(const std::vector<Strided> &like, std::byte *data);
/// Whether it lies like that.
bool isDense(const Strided &tensor);
/// What they take.
size_t packedBytes(const std::vector<Strided> &tensors);

} // namespace meshwork::runtime
