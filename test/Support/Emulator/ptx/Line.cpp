#include "test/Support/Emulator/ptx/Lanes.h"

#include "absl/strings/str_cat.h"

namespace meshwork::ptx {
namespace {

/// Keeps the low bits of each lane, or extends them.
template <class To, class From> To resize(From value) { return To(value); }

template <class To> Handler resizeFrom(unsigned bits, bool isSigned) {
  switch (bits) {
  case 8:
    return isSigned ? lanes<&resize<To, int8_t>> : lanes<&resize<To, uint8_t>>;
  case 16:
    return isSigned ? lanes<&resize<To, int16_t>>
                    : lanes<&resize<To, uint16_t>>;
  case 32:
    return isSigned ? lanes<&resize<To, int32_t>>
                    : lanes<&resize<To, uint32_t>>;
  default:
    return lanes<&resize<To, uint64_t>>;
  }
}
Handler resizer(unsigned to, unsigned from, bool isSigned) {
  switch (to) {
  case 8:
    return resizeFrom<uint8_t>(from, isSigned);
  case 16:
    return resizeFrom<uint16_t>(from, isSigned);
  case 32:
    return resizeFrom<uint32_t>(from, isSigned);
  default:
    return resizeFrom<uint64_t>(from, isSigned);
  }
}

uint64_t bitsFor(const Number &number, Type type) {
  if (number.kind != Number::Kind::f64)
    return number.bits;
  double value = std::bit_cast<double>(number.bits);
  return bitsOf(type) == 64 ? number.bits
                            : std::bit_cast<uint32_t>(float(value));
}

bool isSignedInteger(Type type) {
  return type >= Type::s8 && type <= Type::s64;
}

} // namespace

void Line::fail(std::string text) const {
  throw DecodeError{
      absl::StrCat("line ", statement.line, ": ", text, ": ", statement.text)};
}

bool Line::take(std::string_view modifier) {
  for (size_t i = 0; i < taken.size(); ++i)
    if (!taken[i] && statement.modifiers[i] == modifier)
      return taken[i] = true;
  return false;
}
int Line::takeOneOf(std::span<const std::string_view> modifiers) {
  for (size_t i = 0; i < modifiers.size(); ++i)
    if (take(modifiers[i]))
      return int(i);
  return -1;
}
bool Line::takePrefix(std::string_view prefix) {
  for (size_t i = 0; i < taken.size(); ++i)
    if (!taken[i] && statement.modifiers[i].starts_with(prefix))
      return taken[i] = true;
  return false;
}
Type Line::typeIfAny() {
  for (size_t i = 0; i < taken.size(); ++i) {
    Type type = typeNamed(statement.modifiers[i]);
    if (taken[i] || type == Type::none)
      continue;
    taken[i] = true;
    return type;
  }
  return Type::none;
}
Type Line::type() {
  Type found = typeIfAny();
  if (found == Type::none)
    fail("a type that is modelled is missing");
  return found;
}

const Operand &Line::operand(size_t i) const {
  if (i >= statement.operands.size())
    fail(absl::StrCat("operand ", i + 1, " is missing"));
  return statement.operands[i];
}
std::vector<Operand> Line::items(size_t i) const {
  const Operand &found = operand(i);
  return found.kind == Operand::Kind::list ? found.items
                                           : std::vector<Operand>{found};
}
uint64_t Line::integer(size_t i) const {
  const Operand &found = operand(i);
  if (found.kind != Operand::Kind::number ||
      found.number.kind != Number::Kind::integer)
    fail(absl::StrCat("operand ", i + 1, " is no integer"));
  return found.number.bits;
}

uint32_t Line::source(const Operand &operand, Type type) {
  unsigned bits = bitsOf(type);
  if (operand.kind == Operand::Kind::number)
    return decoder.constant(bits == 1 ? (operand.number.bits ? allLanes : 0)
                                      : bitsFor(operand.number, type),
                            bits == 1 ? 32 : bits);
  if (operand.kind != Operand::Kind::name)
    fail("an operand is neither a register nor a number");
  if (operand.name == "WARP_SZ")
    return decoder.constant(numLanes, bits);
  Register found = decoder.registerNamed(operand.name);
  if (found.offset == noRegister) {
    try {
      return decoder.addressConstant(operand.name, operand.offset, bits);
    } catch (const DecodeError &error) {
      fail(error.text);
    }
  }
  if (found.bits == bits)
    return found.offset;
  if (found.bits < bits || bits == 1)
    fail(absl::StrCat("register ", operand.name, " has ", found.bits,
                      " bits, expected ", bits));
  uint32_t narrow = scratch(type);
  emit(resizer(bits, found.bits, false), {narrow, found.offset});
  return narrow;
}

uint32_t Line::dest(const Operand &operand, Type type) {
  if (operand.kind == Operand::Kind::sink)
    return scratch(type);
  if (operand.kind != Operand::Kind::name)
    fail("a destination is no register");
  unsigned bits = bitsOf(type);
  Register found = decoder.registerNamed(operand.name);
  if (found.offset == noRegister || found.bits < bits ||
      (bits == 1 && found.bits != 1))
    fail(absl::StrCat("destination ", operand.name, " has ", found.bits,
                      " bits, expected ", bits));
  if (found.bits == bits)
    return found.offset;
  uint32_t narrow = scratch(type);
  widenings.push_back({narrow, found.offset, type, found.bits});
  return narrow;
}

uint32_t Line::destPredicate(const std::string &name) {
  if (name.empty() || name == "_")
    return noRegister;
  Register found = decoder.registerNamed(name);
  if (found.bits != 1)
    fail("'" + name + "' is no predicate");
  return found.offset;
}

uint32_t Line::scratch(Type type) {
  return decoder.allocate(bitsOf(type)).offset;
}

Instruction &Line::emit(Handler handler,
                        std::initializer_list<uint32_t> registers, Flow flow) {
  Instruction instruction;
  instruction.run = handler;
  instruction.flow = flow;
  instruction.statement = decoder.currentStatement;
  if (!statement.guard.empty()) {
    Register guard = decoder.registerNamed(statement.guard);
    if (guard.bits != 1)
      fail("guard '" + statement.guard + "' is no predicate");
    instruction.guard = guard.offset;
    instruction.guardNegated = statement.guardNegated;
  }
  std::copy(registers.begin(), registers.end(), instruction.r.begin());
  decoder.program.code.push_back(instruction);
  return decoder.program.code.back();
}

Line::Address Line::address(const Operand &operand) {
  if (!operand.items.empty())
    fail("only tensor copies take coordinates");
  return tensorAddress(operand);
}
Line::Address Line::tensorAddress(const Operand &operand) {
  if (operand.kind != Operand::Kind::address)
    fail("an operand is no address");
  if (operand.name.empty())
    return {decoder.constant(operand.number.bits, 64), true, operand.offset,
            Space::generic};
  Register base = decoder.registerNamed(operand.name);
  if (base.offset != noRegister) {
    if (base.bits != 32 && base.bits != 64)
      fail("the address is in a register of another width than 32 or 64");
    return {base.offset, base.bits == 64, operand.offset, Space::generic};
  }
  try {
    Space space = decoder.symbol(operand.name).space;
    return {decoder.addressConstant(operand.name, 0, 64), true, operand.offset,
            space};
  } catch (const DecodeError &error) {
    fail(error.text);
  }
}

void Line::finish() {
  for (const Widening &each : widenings)
    emit(resizer(each.bits, bitsOf(each.type), isSignedInteger(each.type)),
         {each.to, each.from});
  for (size_t i = 0; i < taken.size(); ++i)
    if (!taken[i])
      fail("modifier ." + statement.modifiers[i] + " is not modelled");
}

} // namespace meshwork::ptx
