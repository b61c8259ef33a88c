// Operands of cp.async.bulk: more than Instruction::r holds, and three
// addresses. They lie in Program::registers.
#pragma once

#include "test/Support/Emulator/ptx/Addresses.h"

namespace meshwork::ptx {

/// An address operand of one lane.
struct LaneAddress {
  uint32_t base = 0;
  bool wide = false;
  int64_t offset = 0;
  uint64_t of(Warp &warp, unsigned lane) const {
    uint64_t value =
        wide ? warp.at<uint64_t>(base)[lane] : warp.at<uint32_t>(base)[lane];
    return value + uint64_t(offset);
  }
};

struct BulkRegisters {
  /// `global`: of the tensor map, or of the bytes.
  LaneAddress shared, global, mbarrier;
  unsigned rank = 0;
  const uint32_t *coordinates = nullptr; // offsets of registers
  uint32_t bytes = noRegister;
};
BulkRegisters registersOf(const Warp &warp, const Instruction &i);

// Handlers, BulkCopies.cpp.
void beginTensorLoad(Warp &warp, const Instruction &i, Mask active);
void beginLoad(Warp &warp, const Instruction &i, Mask active);
void beginStore(Warp &warp, const Instruction &i, Mask active);
void commitStores(Warp &warp, const Instruction &i, Mask active);
void waitForStores(Warp &warp, const Instruction &i, Mask active);

} // namespace meshwork::ptx
