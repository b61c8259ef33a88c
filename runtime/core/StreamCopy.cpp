#include "runtime/core/StreamCopy.h"
#include <algorithm>
#include <cstdint>
#include <cstring>

namespace meshwork::runtime {
namespace {
#if defined(__x86_64__)
constexpr size_t lineBytes = 64;
/// From as far ahead lines are asked for: the processor's own guesses end with
/// a page.
constexpr size_t aheadBytes = 4096;

using Line = float __attribute__((vector_size(lineBytes), may_alias));

/// `to` is the begin of a line.
__attribute__((always_inline)) inline void
copyLines(std::byte *to, const std::byte *from, size_t lines) {
  for (; lines > 0; --lines, to += lineBytes, from += lineBytes) {
    __builtin_prefetch(from + aheadBytes);
    Line line;
    std::memcpy(&line, from, lineBytes);
    __builtin_nontemporal_store(line, reinterpret_cast<Line *>(to));
  }
  __builtin_ia32_sfence();
}

/// A line in one store, else in four.
__attribute__((target("avx512f"))) void
copyWide(std::byte *to, const std::byte *from, size_t lines) {
  copyLines(to, from, lines);
}

void copyNarrow(std::byte *to, const std::byte *from, size_t lines) {
  copyLines(to, from, lines);
}
#endif
} // namespace

void *streamCopy(void *target, const void *source, size_t bytes) {
#if defined(__x86_64__)
  static const auto version =
      __builtin_cpu_supports("avx512f") ? copyWide : copyNarrow;
  auto *to = static_cast<std::byte *>(target);
  const auto *from = static_cast<const std::byte *>(source);
  size_t head = std::min(bytes, -reinterpret_cast<uintptr_t>(to) % lineBytes);
  std::memcpy(to, from, head);
  size_t lines = (bytes - head) / lineBytes, end = head + lines * lineBytes;
  version(to + head, from + head, lines);
  std::memcpy(to + end, from + end, bytes - end);
  return target;
#else
  return std::memcpy(target, source, bytes);
#endif
}

} // namespace meshwork::runtime
