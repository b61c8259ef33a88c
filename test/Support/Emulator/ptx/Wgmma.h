// wgmma: products of a warpgroup, with operands in shared memory. Each warp
// computes its own 16 rows, at the wait for the product's group.
#pragma once

#include "test/Support/Emulator/ptx/Addresses.h"

namespace meshwork::ptx {

/// The warp ends: products that it never waited for are a Fault.
void checkProductsDone(Warp &warp);

/// The block has ended: a warp with fewer products than another one of its
/// warpgroup is a Fault.
void checkProductsAgree(Block &block, const Warp *&running);

// Of an instruction wgmma.mma_async: count is N / 8; the registers D, then
// those of A if it is in registers, begin at Program::registers[target];
// r: descriptors of A and B, predicate scale-d; bits of extra:
namespace wgmma {
inline constexpr uint8_t aInRegisters = 1, aTransposed = 2, bTransposed = 4,
                         aNegative = 8, bNegative = 16;
}
/// Reads everything now, and writes D.
void multiply(Warp &warp, const Instruction &i, const PendingProduct &product);

} // namespace meshwork::ptx
