// The text of a PTX module as data: names are not resolved, instructions not
// understood (Decoder.h does that). Written by parseModule (Parser.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace meshwork::ptx {

/// b: bits without a meaning; x2: two values packed into one register.
enum class Type : uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  bf16,
  tf32,
  f32,
  f64,
  f16x2,
  bf16x2,
  f32x2,
  e4m3x2,
  e5m2x2
};
Type typeNamed(std::string_view name); // none if it is no type
std::string_view nameOf(Type type);
unsigned bitsOf(Type type); // 1 for pred

/// A number as written: 0f and 0d give the bits of a float, a decimal with a
/// point a double.
struct Number {
  enum class Kind : uint8_t { integer, f32, f64 } kind = Kind::integer;
  uint64_t bits = 0;
};

/// `%r1`, `!%p1`, `%r1|%p1`, `7`, `[name+4]`, `{%r1, %r2}`, `(param0)`, `_`.
struct Operand {
  enum class Kind : uint8_t { name, number, address, list, sink } kind;
  explicit Operand(Kind kind, std::string name = {})
      : kind(kind), name(std::move(name)) {}
  std::string name; // also the base of an address; empty: `number` is the base
  std::string second; // after `|`; `_` if it is not wanted
  bool negated = false;
  Number number;
  int64_t offset = 0;
  std::vector<Operand> items;
};

/// `@!%p1 ld.global.nc.b32 %r1, [%rd1];`, or a label: opcode ":" and one name.
struct Statement {
  int line = 0;
  std::string guard; // empty: none
  bool guardNegated = false;
  std::string opcode;                 // ld
  std::vector<std::string> modifiers; // global, nc, b32
  std::vector<Operand> operands;
  std::string text; // for messages

  bool isLabel() const { return opcode == ":"; }
};

enum class Space : uint8_t { generic, global, shared, local, constant, param };

/// `.shared .align 16 .b8 tile[4096];`, also a parameter.
struct Variable {
  std::string name;
  Space space = Space::global;
  Type type = Type::b8;
  uint64_t alignment = 1;
  uint64_t bytes = 0;
  bool unsized = false; // .extern .shared: as long as the launch says
  bool external = false;
  std::vector<std::byte> initial; // may be shorter: zeros follow
  /// Addresses in the initial value: {offset in it, variable, added}.
  struct Pointer {
    uint64_t offset;
    std::string name;
    int64_t added;
  };
  std::vector<Pointer> pointers;
  int line = 0;
};

/// `.reg .b32 %r<9>`: %r0 to %r8; count 0 is a single register.
struct RegisterRange {
  std::string prefix;
  unsigned count = 0;
  Type type = Type::none;
};

struct FunctionSyntax {
  std::string name;
  bool isKernel = false;
  bool hasBody = false;
  std::vector<Variable> results, parameters;
  std::vector<RegisterRange> registers;
  std::vector<Variable> variables; // .local, .shared, .param of the body
  std::map<std::string, std::vector<std::string>> branchTargets;
  std::vector<Statement> body;
  uint32_t requiredThreads[3] = {}; // .reqntid
  uint32_t maxThreads = 0;          // .maxntid, its product
  int line = 0;
};

struct ModuleSyntax {
  int architecture = 0;        // 80 of sm_80
  bool onlyThisDevice = false; // the "a" of sm_90a
  int version = 0;             // 88 of 8.8
  std::map<std::string, FunctionSyntax> functions;
  std::vector<Variable> variables;
};

} // namespace meshwork::ptx
