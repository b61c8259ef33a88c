// Rows of a table by index. An id outside the table gives NaN, which the step's
// loss check reports. In a table that is a shard it gives zeros, as another
// rank holds the row. A number that says there is no row gives zeros, too.
#include "passes/codegen/gpu/library/Device.h"

namespace meshwork {

/// out[i, e] = table[ids[i] - first, e] for i < numIds, e < width. Where that
/// is no row it is the f32 with the bits `absent`. A whole table, which is no
/// shard, has no `first`. Strides in elements, tableBytes and outBytes 2 (bf16)
/// or 4 (f32); each of `threads` threads takes `vector` columns.
DEVICE_FUNCTION void meshwork_embedding(const void *table, const i32 *ids,
                                        const i32 *first, void *out,
                                        i64 hasFirst, i64 threads, i64 numIds,
                                        i64 width, i64 rows, i64 tableStride,
                                        i64 outStride, i64 tableBytes,
                                        i64 outBytes, i64 vector, i64 absent) {
  i64 vectors = width / vector,
      index = blockInGrid() * threads + threadInBlock();
  if (index >= numIds * vectors)
    return;
  i64 at = index / vectors, column = index % vectors * vector;
  i64 row = static_cast<i64>(ids[at]) - (hasFirst ? *first : 0);
  bool isThere = static_cast<u64>(row) < static_cast<u64>(rows);
  withType(tableBytes, [&](auto *tableType) {
    withType(outBytes, [&](auto *outType) {
      withWidth(vector, [&](auto w) {
        constexpr int n = decltype(w)::value;
        Vector<float, n> values =
            __builtin_bit_cast(float, static_cast<i32>(absent));
        if (isThere)
          values = load<n>(
              static_cast<decltype(tableType)>(const_cast<void *>(table)) +
              row * tableStride + column);
        store<n>(static_cast<decltype(outType)>(out) + at * outStride + column,
                 values);
      });
    });
  });
}

} // namespace meshwork
