// Numbers and tables for people.
#pragma once

#include "absl/types/span.h"
#include "meshwork/Plan/Plan.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace meshwork::explain {

/// "1.50 GiB", "12.0 KiB", "640 B".
std::string bytesText(uint64_t bytes);
/// "1.50 GiB = 1610612736 bytes", "640 bytes".
std::string exactBytesText(uint64_t bytes);
/// "124.44 M", "1.25 k", "640": powers of 1000.
std::string countText(double count);
/// "42.0 %"; "-" of nothing.
std::string percentText(uint64_t part, uint64_t whole);
/// A string of the plan, made safe for a terminal; `missing` when there is
/// none.
std::string clean(const flatbuffers::String *text,
                  std::string_view missing = "-");
std::string clean(std::string_view text);

/// "f32[4,128]"
std::string typeText(plan::DType dtype, absl::Span<const int64_t> shape);

/// a + b, or the largest number when that does not fit: costs in a plan are
/// what its writer says, and no sum of them may wrap around.
inline uint64_t saturatingAdd(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}
inline uint64_t saturatingMul(uint64_t a, uint64_t b) {
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/// Columns aligned by their widest cell, two blanks apart, indented by two.
class Table {
public:
  /// A title that starts with '>' makes a column of numbers, aligned right.
  explicit Table(std::vector<std::string> titles);
  void add(std::vector<std::string> row); // as many cells as titles
  bool empty() const { return rows.empty(); }
  std::string render() const;

private:
  std::vector<bool> right;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

} // namespace meshwork::explain
