// Kernels of sm_90a for tests of mbarriers, TMA and wgmma.
//
// Registers: %out, %in (pointers), %map (generic address of the parameter's
// tensor map), %tile (dynamic shared memory, aligned to 1024 bytes), %bar (64
// bytes for mbarriers), %thread, %lane, %warp. Scratch registers: %rd0 to
// %rd19, %r0 to %r39, %f0 to %f159, %p0 to %p7.
#pragma once

#include "test/Emulator/Snippet.h"
#include "test/Support/Emulator/ptx/TensorMap.h"

#include "absl/strings/str_replace.h"

namespace meshwork::ptx {

inline std::string hopperText(const std::string &body) {
  return absl::StrCat(R"(
.version 8.6 .target sm_90a .address_size 64
.extern .shared .align 1024 .b8 tiles[];
.visible .entry k(.param .u64 pout, .param .u64 pin, .param .align 64 .b8 pmap[128])
{
  .shared .align 8 .b8 bars[64];
  .reg .b64 %out, %in, %map, %rd<20>; .reg .b32 %tile, %bar, %thread, %lane, %warp;
  .reg .b32 %r<40>; .reg .f32 %f<160>; .reg .pred %p<8>;
  ld.param.b64 %out, [pout]; ld.param.b64 %in, [pin];
  mov.b64 %map, pmap; cvta.param.u64 %map, %map;
  mov.u32 %tile, tiles; mov.u32 %bar, bars; mov.u32 %thread, %tid.x;
  mov.u32 %lane, %laneid; shr.u32 %warp, %thread, 5;
)",
                      body, "\nret;\n}\n");
}

template <class Out, class In>
absl::Status runHopper(const std::string &body, unsigned threads,
                       uint32_t sharedBytes, const Buffer<Out> &out,
                       const Buffer<In> &in, const TensorMap &map = {}) {
  Kernels kernels = Kernels::fromText(hopperText(body));
  return kernels.launch(
      "k", {.grid = {}, .block = {threads}, .sharedBytes = sharedBytes}, out,
      in, map);
}

/// Waits until the phase of an mbarrier is complete; `label` is unique.
inline std::string waitFor(const std::string &mbarrier,
                           const std::string &parity,
                           const std::string &label) {
  return absl::StrCat(label, ": mbarrier.try_wait.parity.shared::cta.b64 %p7, ",
                      "[", mbarrier, "], ", parity, ";\n@!%p7 bra ", label,
                      ";\n");
}

/// %rd`to` = a descriptor, the matrix at an offset of %tile.
inline std::string setDescriptor(unsigned to, uint64_t descriptor,
                                 unsigned offset) {
  return absl::StrCat("add.u32 %r0, %tile, ", offset,
                      "; shr.u32 %r0, %r0, 4; cvt.u64.u32 %rd", to, ", %r0; ",
                      "or.b64 %rd", to, ", %rd", to, ", ", descriptor, ";\n");
}
inline std::string registerList(unsigned count) {
  std::string list;
  for (unsigned i = 0; i < count; ++i)
    absl::StrAppend(&list, i ? ", " : "", "%f", i);
  return list;
}
/// %rd0 = address of row lane / 4 + 16 * warp, column lane % 4 * 2 of a matrix.
inline std::string addressOfFragment(const char *base, unsigned rowBytes,
                                     unsigned elementBytes) {
  return absl::StrCat("shr.u32 %r0, %lane, 2; mad.lo.u32 %r0, %warp, 16, %r0;\n"
                      "and.b32 %r1, %lane, 3; mul.lo.u32 %r1, %r1, ",
                      2 * elementBytes, ";\nmad.lo.u32 %r0, %r0, ", rowBytes,
                      ", %r1; cvt.u64.u32 %rd0, %r0; add.s64 %rd0, ", base,
                      ", %rd0;\n");
}
/// D of wgmma, in %f0 on, to `out`: 64 rows of f32.
inline std::string storeSums(unsigned columns) {
  std::string text = addressOfFragment("%out", columns * 4, 4);
  for (unsigned i = 0; i < columns / 2; i += 2)
    absl::StrAppend(&text, "st.global.v2.f32 [%rd0+",
                    i / 4 * 32 + i % 4 / 2 * 8 * columns * 4, "], {%f", i,
                    ", %f", i + 1, "};\n");
  return text;
}

/// A map of a bf16 tensor of two dims with 128-byte swizzle.
inline TensorMap mapOf(const Buffer<uint16_t> &tensor, uint64_t columns,
                       uint64_t rows, uint64_t rowBytes, uint32_t boxColumns,
                       uint32_t boxRows) {
  uint64_t dims[] = {columns, rows}, strides[] = {rowBytes};
  uint32_t box[] = {boxColumns, boxRows}, ones[] = {1, 1};
  absl::StatusOr<TensorMap> map = encodeTensorMap(
      {9, 2, tensor.address(), dims, strides, box, ones, 0, 3, 2, 0});
  EXPECT_TRUE(map.ok()) << map.status();
  return map.ok() ? *map : TensorMap();
}

} // namespace meshwork::ptx
