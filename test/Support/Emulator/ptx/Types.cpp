#include "test/Support/Emulator/ptx/Syntax.h"

#include <array>

namespace meshwork::ptx {
namespace {

struct Entry {
  std::string_view name;
  unsigned bits;
};
/// In the order of Type.
constexpr std::array<Entry, 24> types = {{
    {"", 0},        {"pred", 1},   {"b8", 8},      {"b16", 16},
    {"b32", 32},    {"b64", 64},   {"u8", 8},      {"u16", 16},
    {"u32", 32},    {"u64", 64},   {"s8", 8},      {"s16", 16},
    {"s32", 32},    {"s64", 64},   {"f16", 16},    {"bf16", 16},
    {"tf32", 32},   {"f32", 32},   {"f64", 64},    {"f16x2", 32},
    {"bf16x2", 32}, {"f32x2", 64}, {"e4m3x2", 16}, {"e5m2x2", 16},
}};
static_assert(unsigned(Type::e5m2x2) + 1 == types.size());

} // namespace

Type typeNamed(std::string_view name) {
  for (size_t i = 1; i < types.size(); ++i)
    if (types[i].name == name)
      return Type(i);
  return Type::none;
}
std::string_view nameOf(Type type) { return types[unsigned(type)].name; }
unsigned bitsOf(Type type) { return types[unsigned(type)].bits; }

} // namespace meshwork::ptx
