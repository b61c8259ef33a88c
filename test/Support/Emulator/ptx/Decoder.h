// From the syntax of a kernel to a Program. Each instruction class has a file
// with its handlers and a table of what decodes it (xxxOpcodes below).
#pragma once

#include "test/Support/Emulator/ptx/Program.h"

#include "absl/status/statusor.h"

#include <functional>
#include <map>
#include <span>

namespace meshwork::ptx {

struct DecodeError {
  std::string text; // without the line
};

struct Register {
  uint32_t offset = noRegister;
  uint8_t bits = 0; // 1: a predicate
};

/// Where module variables of the spaces global and const live.
using VariableAddresses = std::map<std::string, uint64_t>;

/// `kernel` may be a function, to learn whether all of it is modelled.
absl::StatusOr<Program> decode(const ModuleSyntax &module,
                               const FunctionSyntax &kernel,
                               const VariableAddresses &addresses);

constexpr uint64_t alignTo(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

class Decoder;

/// One statement while it is decoded. Takes modifiers one by one; what nobody
/// took is an error, so nothing that is written is ignored.
class Line {
public:
  Line(Decoder &decoder, const Statement &statement)
      : decoder(decoder), statement(statement),
        taken(statement.modifiers.size()) {}

  bool take(std::string_view modifier);
  /// Takes the first modifier that is one of these; else returns -1.
  int takeOneOf(std::span<const std::string_view> modifiers);
  bool takePrefix(std::string_view prefix); // .L1::..., any one
  Type type();      // takes the next type, an error if there is none
  Type typeIfAny(); // none if there is none
  void finish();    // after all: checks that everything was taken
  [[noreturn]] void fail(std::string text) const;

  size_t numOperands() const { return statement.operands.size(); }
  const Operand &operand(size_t i) const;
  /// Offsets of registers whose lanes have the width of the type. A wider
  /// register is narrowed first (sources) or extended after (destinations).
  uint32_t source(const Operand &operand, Type type);
  uint32_t source(size_t i, Type type) { return source(operand(i), type); }
  uint32_t dest(const Operand &operand, Type type);
  uint32_t dest(size_t i, Type type) { return dest(operand(i), type); }
  uint32_t destPredicate(const std::string &name); // noRegister for _
  uint32_t scratch(Type type);
  /// Operands of `{a, b}`, or the operand itself.
  std::vector<Operand> items(size_t i) const;
  uint64_t integer(size_t i) const; // an immediate

  Instruction &emit(Handler handler, std::initializer_list<uint32_t> registers,
                    Flow flow = Flow::plain);
  /// Address operand: gives its base register and offset to the instruction
  /// and says which space the name it holds is in (generic: it is a register).
  struct Address {
    uint32_t base;
    bool wide; // 64 bits
    int64_t offset;
    Space space;
  };
  Address address(const Operand &operand);
  /// The same of `[map, {x, y}]`; the coordinates are operand.items[0].
  Address tensorAddress(const Operand &operand);

  Decoder &decoder;
  const Statement &statement;

private:
  struct Widening {
    uint32_t from, to;
    Type type;
    unsigned bits;
  };
  std::vector<bool> taken;
  std::vector<Widening> widenings;
};

using Decode = void (*)(Line &line);
struct Opcode {
  std::string_view name;
  Decode decode;
};
std::span<const Opcode> integerOpcodes();  // Integer.cpp
std::span<const Opcode> bitOpcodes();      // Bits.cpp
std::span<const Opcode> floatOpcodes();    // Float.cpp
std::span<const Opcode> compareOpcodes();  // Compare.cpp
std::span<const Opcode> convertOpcodes();  // Convert.cpp
std::span<const Opcode> moveOpcodes();     // Move.cpp
std::span<const Opcode> memoryOpcodes();   // LoadStore.cpp
std::span<const Opcode> atomicOpcodes();   // Atomics.cpp
std::span<const Opcode> copyOpcodes();     // AsyncCopies.cpp
std::span<const Opcode> mbarrierOpcodes(); // Mbarriers.cpp
std::span<const Opcode> exchangeOpcodes(); // Exchange.cpp
std::span<const Opcode> matrixOpcodes();   // Matrix.cpp
std::span<const Opcode> wgmmaOpcodes();    // Wgmma.cpp
std::span<const Opcode> controlOpcodes();  // Control.cpp

class Decoder {
public:
  Decoder(const ModuleSyntax &module, const FunctionSyntax &kernel,
          const VariableAddresses &addresses);
  Program run();

  // For Line and Control.cpp:
  Register allocate(unsigned bits);
  uint32_t constant(uint64_t value, unsigned bits);
  /// A register, a special register, or nothing.
  Register registerNamed(const std::string &name);
  struct Symbol {
    Space space;
    uint64_t address;
    bool dynamicShared = false; // the address is not known yet
  };
  Symbol symbol(const std::string &name);
  uint32_t addressConstant(const std::string &name, int64_t offset,
                           unsigned bits);
  uint32_t label(const std::string &name); // to be resolved: an id
  uint32_t indexedTargets(const std::string &name);
  void call(Line &line, const std::string &function,
            const std::vector<Operand> &results,
            const std::vector<Operand> &arguments);
  /// The label behind an inlined function's body; nothing in the kernel.
  std::optional<uint32_t> returnLabel() const;

  Program program;
  uint32_t currentStatement = 0;

private:
  /// The kernel, or a function that is inlined.
  struct Scope {
    const FunctionSyntax *function;
    std::map<std::string, Register> registers;
    std::map<std::string, Symbol> variables;
    std::map<std::string, uint32_t> labels;
    std::optional<uint32_t> end;
  };
  void body(const FunctionSyntax &function);
  void statement(const Statement &statement);
  void declareParameters();
  void beginFunction();
  Symbol allocateVariable(const Variable &variable);
  Register specialRegister(const std::string &name);
  uint32_t newLabel();
  void place(uint32_t label);
  void finish();

  const ModuleSyntax &module;
  const FunctionSyntax &kernel;
  const VariableAddresses &addresses;
  std::vector<Scope> scopes;
  std::map<std::string, Symbol> sharedOfModule;
  std::map<std::pair<uint64_t, unsigned>, uint32_t> constants;
  std::map<Special, Register> specials;
  std::vector<uint32_t> labelTargets;
  /// Constants that count from the begin of dynamic shared memory.
  std::vector<size_t> dynamicConstants;
  uint32_t predicateBlock = 0, predicatesLeft = 0;
  uint32_t dynamicAlignment = 16;
};

} // namespace meshwork::ptx
