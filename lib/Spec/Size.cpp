#include "lib/Spec/Size.h"

#include <charconv>
#include <cmath>

namespace meshwork::spec {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit units[] = {
    {"B", 1},        {"kB", 1e3},     {"KB", 1e3},     {"MB", 1e6},
    {"GB", 1e9},     {"TB", 1e12},    {"KiB", 1024.0}, {"MiB", 0x1p20},
    {"GiB", 0x1p30}, {"TiB", 0x1p40},
};

} // namespace

std::optional<uint64_t> parseSize(std::string_view text) {
  double number;
  const char *end = text.data() + text.size();
  auto [rest, error] =
      std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc())
    return std::nullopt;
  std::string_view unit(rest, static_cast<size_t>(end - rest));
  while (!unit.empty() && unit.front() == ' ')
    unit.remove_prefix(1);
  for (const Unit &known : units) {
    if (unit != known.name)
      continue;
    double bytes = std::floor(number * known.bytes);
    if (!(bytes >= 1) || bytes >= 0x1p63)
      return std::nullopt;
    return static_cast<uint64_t>(bytes);
  }
  return std::nullopt;
}

} // namespace meshwork::spec
