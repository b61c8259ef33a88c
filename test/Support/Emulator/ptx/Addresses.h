// From the address operand of an instruction to memory of this process, with
// every check of a lane's access.
#pragma once

#include "test/Support/Emulator/ptx/Lanes.h"

namespace meshwork::ptx {

/// Where each active lane reads or writes.
using Pointers = std::array<std::byte *, numLanes>;
using LaneAddresses = std::array<uint64_t, numLanes>;

/// Register r[0] plus the offset; bit 0 of `extra` says that it has 64 bits.
LaneAddresses addressesOf(Warp &warp, const Instruction &i);
/// The same of the second address of cp.async: r[1], offset2, bit 1.
LaneAddresses secondAddressesOf(Warp &warp, const Instruction &i);

/// Throws a Fault when an address is misaligned, outside of what is live, or
/// in a race. `bytes` is a power of two.
Pointers resolve(Warp &warp, Space space, const LaneAddresses &addresses,
                 Mask active, unsigned bytes, Access access);

/// The same of any number of bytes in shared memory that one lane touches.
std::byte *sharedAt(Warp &warp, uint64_t address, uint32_t bytes, unsigned lane,
                    Access access);
/// The same of global memory.
std::byte *globalAt(Warp &warp, uint64_t address, uint32_t bytes, unsigned lane,
                    Access access);

/// Puts an address operand into r[0], `offset`, `extra` and `space`.
void setAddress(Line &line, Instruction &i, const Line::Address &address,
                Space space);

/// Takes .global, .shared::cta ...; generic if none is there.
Space takeSpace(Line &line);
/// Takes what says in which order and through which cache; the emulator has
/// one order and no caches.
void takeOrderAndCaches(Line &line);

} // namespace meshwork::ptx
