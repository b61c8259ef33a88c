// A box of a tensor between global and shared memory, as TMA moves it.
#pragma once

#include "test/Support/Emulator/ptx/Addresses.h"

namespace meshwork::ptx {

/// Shared memory as TMA and wgmma read it. Throws a Fault when a warp wrote
/// there and executed no fence.proxy.async since.
const std::byte *asyncReadAt(Warp &warp, uint64_t address, uint32_t bytes,
                             unsigned lane);

/// Elements outside of the tensor become zeros. No race is looked for: the
/// access was that of the copy's begin.
void loadBox(Warp &warp, unsigned lane, const TensorMap &map,
             const Coordinates &at, uint32_t to);
/// The box's rows, dense and without swizzle.
std::vector<std::byte> readBox(Warp &warp, unsigned lane, const TensorMap &map,
                               uint32_t from);
/// Elements outside of the tensor are dropped.
void writeBox(Warp &warp, unsigned lane, const TensorMap &map,
              const Coordinates &at, const std::vector<std::byte> &box);

} // namespace meshwork::ptx
