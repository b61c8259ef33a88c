// A kernel ready to run: instructions decoded once, device functions inlined,
// every operand an offset into a warp's register file. Constants and special
// registers are registers too, so an instruction reads all of its operands in
// one way.
#pragma once

#include "test/Support/Emulator/ptx/Syntax.h"

#include <array>
#include <memory>
#include <optional>

namespace meshwork::ptx {

struct Warp;
struct Instruction;
using Mask = uint32_t; // a bit for each lane
inline constexpr unsigned numLanes = 32;
inline constexpr Mask allLanes = ~Mask(0);
/// Runs one instruction for the lanes of `active`, which is not empty.
using Handler = void (*)(Warp &warp, const Instruction &instruction,
                         Mask active);
inline constexpr uint32_t noRegister = ~uint32_t(0);

/// How the warp's loop treats an instruction.
enum class Flow : uint8_t {
  plain,   // the handler does everything
  branch,  // active lanes go on at `target`
  indexed, // ... at targets[target + value of r[0]]
  gather,  // first waits for all lanes of the mask in register `together`
  barrier, // ... for other warps: id r[0], threads r[1], see Control.cpp
  phase,   // lanes stay here until their mbarrier's is complete, Mbarriers.h
  exit
};

struct Instruction {
  Handler run = nullptr;
  Flow flow = Flow::plain;
  bool guardNegated = false;
  uint8_t count = 0; // values of a vector, matrices, or a variant
  uint8_t extra = 0; // the meaning is the handler's
  uint32_t guard = noRegister;
  uint32_t together = noRegister;
  uint32_t target = 0;
  Space space = Space::generic;
  int64_t offset = 0, offset2 = 0; // of addresses
  /// Offsets of registers: destinations first.
  std::array<uint32_t, 18> r{};
  uint32_t statement = 0; // index into Program::statements
};

struct Parameter {
  std::string name;
  uint32_t offset = 0, bytes = 0;
};

enum class Special : uint8_t {
  tidX,
  tidY,
  tidZ,
  ntidX,
  ntidY,
  ntidZ,
  ctaidX,
  ctaidY,
  ctaidZ,
  nctaidX,
  nctaidY,
  nctaidZ,
  laneId,
  warpId,
  numWarps,
  smId,
  numSms,
  gridId,
  lanesEqual,
  lanesLess,
  lanesLessOrEqual,
  lanesGreater,
  lanesGreaterOrEqual,
  sharedBytes,
  dynamicSharedBytes,
  zero,
  one
};

struct SpecialRegister {
  Special what;
  uint32_t offset;
  uint8_t bits;
};
struct ConstantRegister {
  uint64_t value;
  uint32_t offset;
  uint8_t bits;
};

struct Program {
  std::string name;
  std::vector<Instruction> code;
  std::vector<uint32_t> targets; // of indexed branches
  /// Registers of instructions with more than Instruction::r holds.
  std::vector<uint32_t> registers;
  bool usesAsyncProxy = false; // wgmma or bulk copies
  std::vector<Statement> statements;
  std::vector<ConstantRegister> constants;
  std::vector<SpecialRegister> specials;
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  uint32_t registerFileBytes = 0; // of a warp
  uint32_t localBytes = 0;        // of a lane
  uint32_t staticSharedEnd = 0;   // address; dynamic shared memory follows
  uint32_t dynamicSharedBegin = 0;
  uint32_t requiredThreads[3] = {};
  uint32_t maxThreads = 0;
};

/// Windows of the generic address space; a global address is an address of
/// this process, which never has these upper bits.
namespace window {
inline constexpr uint64_t shared = 0x4100'0000'0000'0000,
                          local = 0x4200'0000'0000'0000,
                          param = 0x4300'0000'0000'0000,
                          mask = 0xff00'0000'0000'0000;
}
/// The first addresses of shared and local memory are of nobody, so that a
/// null pointer faults.
inline constexpr uint32_t sharedBegin = 1024, localBegin = 64;

} // namespace meshwork::ptx
