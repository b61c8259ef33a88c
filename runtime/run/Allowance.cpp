#include "runtime/run/Allowance.h"
#include "absl/functional/function_ref.h"
#include "runtime/machine/Bf16.h"
#include "runtime/machine/Float8.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

namespace meshwork::runtime {
using plan::ViewInfo;
namespace {

double element(plan::DType type, const std::byte *at) {
  if (type == plan::DType::bf16) {
    uint16_t bits;
    std::memcpy(&bits, at, sizeof(bits));
    return static_cast<double>(fromBf16(bits));
  }
  if (plan::isFloat8(type))
    return static_cast<double>(fromFloat8(type, std::to_integer<uint8_t>(*at)));
  if (type == plan::DType::i8)
    return std::to_integer<int8_t>(*at);
  if (type == plan::DType::i32) {
    int32_t value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  float value;
  std::memcpy(&value, at, sizeof(value));
  return static_cast<double>(value);
}

/// Calls visit(offset in bytes) for each element of `row` of the view's rows,
/// which lie along its last dim.
void forEachOfRow(const ViewInfo &view, int64_t row,
                  absl::FunctionRef<void(int64_t)> visit) {
  if (view.shape.empty())
    return visit(0);
  int64_t unit = static_cast<int64_t>(plan::sizeOf(view.dtype)), offset = 0;
  size_t last = view.shape.size() - 1;
  for (size_t dim = last; dim-- > 0; row /= view.shape[dim])
    offset += row % view.shape[dim] * view.strides[dim] * unit;
  for (int64_t i = 0; i < view.shape[last]; ++i)
    visit(offset + i * view.strides[last] * unit);
}

/// `ofRow(row)` of all rows, `joined` to one.
double overRows(const ViewInfo &view, ThreadTeam &team,
                absl::FunctionRef<double(int64_t)> ofRow,
                absl::FunctionRef<double(double, double)> joined) {
  int64_t rows = 1;
  for (size_t dim = 0; dim + 1 < view.shape.size(); ++dim)
    rows *= view.shape[dim];
  std::vector<double> parts(static_cast<size_t>(team.size()), 0);
  team.parallelFor(rows, [&](int64_t begin, int64_t end, int thread) {
    double &part = parts[static_cast<size_t>(thread)];
    for (int64_t row = begin; row < end; ++row)
      part = joined(part, ofRow(row));
  });
  double all = 0;
  for (double part : parts)
    all = joined(all, part);
  return all;
}

struct Allowance {
  double ofItself, ofAll;
};
Allowance allowance(plan::DType type, bool inexact) {
  if (type == plan::DType::i32)
    return {0, 0};
  if (type == plan::DType::bf16)
    return {0x1p-6, 0.03};
  if (plan::isFloat8(type)) // One place of the last bit.
    return {type == plan::DType::e4m3 ? 0x1p-3 : 0x1p-2, 0.03};
  if (type == plan::DType::i8) // One step of 127.
    return {0x1p-6, 0.01};
  return inexact ? Allowance{0x1p-9, 0.01} : Allowance{0x1p-15, 1e-4};
}

double share(double expected, double got, double allowed) {
  if (std::isnan(expected) || std::isnan(got))
    return std::isnan(expected) && std::isnan(got) ? 0 : HUGE_VAL;
  double off = std::abs(expected - got);
  return expected == got ? 0 : allowed > 0 ? off / allowed : HUGE_VAL;
}
} // namespace

double shareOfAllowance(const ViewInfo &view,
                        absl::Span<const std::byte> expected,
                        absl::Span<const std::byte> got, bool inexact,
                        ThreadTeam &team) {
  auto wanted = [&](int64_t at) {
    return element(view.dtype, &expected[static_cast<size_t>(at)]);
  };
  auto squares = [&](int64_t row) {
    double sum = 0;
    forEachOfRow(view, row, [&](int64_t at) {
      double value = wanted(at);
      sum += std::isfinite(value) ? value * value : 0;
    });
    return sum;
  };
  double all = overRows(view, team, squares, std::plus<double>()) /
               static_cast<double>(view.elements);
  double columns =
      view.shape.empty() ? 1 : static_cast<double>(view.shape.back());
  Allowance part = allowance(view.dtype, inexact);
  auto most = [&](int64_t row) {
    double worst = 0, rms = std::sqrt(std::max(all, squares(row) / columns));
    forEachOfRow(view, row, [&](int64_t at) {
      double value = wanted(at);
      worst = std::max(
          worst,
          share(value, element(view.dtype, &got[static_cast<size_t>(at)]),
                part.ofItself * std::abs(value) + part.ofAll * rms));
    });
    return worst;
  };
  return overRows(view, team, most,
                  [](double a, double b) { return std::max(a, b); });
}

void joinMaxima(const ViewInfo &view, absl::Span<std::byte> bytes) {
  if (view.shape.empty())
    return;
  ViewInfo part = view;
  part.shape.remove_prefix(1);
  part.strides.remove_prefix(1);
  int64_t unit = static_cast<int64_t>(plan::sizeOf(view.dtype)),
          step = view.strides.front() * unit;
  auto at = [&](int64_t place) { return &bytes[static_cast<size_t>(place)]; };
  auto join = [&](int64_t first) {
    int64_t largest = first, end = first + view.shape.front() * step;
    for (int64_t i = first; i != end; i += step)
      if (double value = element(view.dtype, at(i));
          std::isnan(value) || value > element(view.dtype, at(largest)))
        largest = i;
    std::vector<std::byte> value(at(largest), at(largest) + unit);
    for (int64_t i = first; i != end; i += step)
      std::copy(value.begin(), value.end(), at(i));
  };
  int64_t columns = part.shape.empty() ? 1 : part.shape.back();
  for (int64_t row = 0; row < view.elements / view.shape.front() / columns;
       ++row)
    forEachOfRow(part, row, join);
}

} // namespace meshwork::runtime
