#include "test/Emulator/ptx/Decoder.h"
#include "test/Emulator/ptx/Lanes.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <unordered_map>

namespace meshwork::ptx {
namespace {

constexpr uint64_t alignTo(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

const std::unordered_map<std::string_view, Decode> &opcodes() {
  static const auto *const all = [] {
    auto *map = new std::unordered_map<std::string_view, Decode>;
    for (auto list :
         {integerOpcodes(), bitOpcodes(), floatOpcodes(), compareOpcodes(),
          convertOpcodes(), moveOpcodes(), memoryOpcodes(), atomicOpcodes(),
          copyOpcodes(), exchangeOpcodes(), matrixOpcodes(), controlOpcodes()})
      for (const Opcode &opcode : list)
        map->emplace(opcode.name, opcode.decode);
    return map;
  }();
  return *all;
}

struct SpecialName {
  std::string_view name;
  Special what;
  unsigned bits = 32;
};
constexpr SpecialName specialNames[] = {
    {"%tid.x", Special::tidX},
    {"%tid.y", Special::tidY},
    {"%tid.z", Special::tidZ},
    {"%ntid.x", Special::ntidX},
    {"%ntid.y", Special::ntidY},
    {"%ntid.z", Special::ntidZ},
    {"%ctaid.x", Special::ctaidX},
    {"%ctaid.y", Special::ctaidY},
    {"%ctaid.z", Special::ctaidZ},
    {"%nctaid.x", Special::nctaidX},
    {"%nctaid.y", Special::nctaidY},
    {"%nctaid.z", Special::nctaidZ},
    {"%laneid", Special::laneId},
    {"%warpid", Special::warpId},
    {"%nwarpid", Special::numWarps},
    {"%smid", Special::smId},
    {"%nsmid", Special::numSms},
    {"%gridid", Special::gridId, 64},
    {"%lanemask_eq", Special::lanesEqual},
    {"%lanemask_lt", Special::lanesLess},
    {"%lanemask_le", Special::lanesLessOrEqual},
    {"%lanemask_gt", Special::lanesGreater},
    {"%lanemask_ge", Special::lanesGreaterOrEqual},
    {"%total_smem_size", Special::sharedBytes},
    {"%dynamic_smem_size", Special::dynamicSharedBytes},
    // A block is a cluster of its own.
    {"%cluster_ctarank", Special::zero},
    {"%cluster_nctarank", Special::one},
    {"%cluster_ctaid.x", Special::zero},
    {"%cluster_ctaid.y", Special::zero},
    {"%cluster_ctaid.z", Special::zero},
    {"%cluster_nctaid.x", Special::one},
    {"%cluster_nctaid.y", Special::one},
    {"%cluster_nctaid.z", Special::one},
};

/// Local copy of a parameter: r[0] to, r[1] from (local addresses), bytes.
void copyLocal(Warp &warp, const Instruction &i, Mask active) {
  uint32_t size = warp.block->launch->program->localBytes;
  eachLane(active, [&](unsigned lane) {
    std::byte *local = warp.local + size_t(lane) * size;
    std::memcpy(local + i.r[0], local + i.r[1], size_t(i.offset));
  });
}

} // namespace

Decoder::Decoder(const ModuleSyntax &module, const FunctionSyntax &kernel,
                 const VariableAddresses &addresses)
    : module(module), kernel(kernel), addresses(addresses) {
  program.name = kernel.name;
  program.localBytes = localBegin;
  program.staticSharedEnd = sharedBegin;
  program.maxThreads = kernel.maxThreads;
  std::copy(kernel.requiredThreads, kernel.requiredThreads + 3,
            program.requiredThreads);
}

Program Decoder::run() {
  scopes.push_back({&kernel, {}, {}, {}, std::nullopt});
  if (kernel.isKernel)
    declareParameters();
  else
    beginFunction();
  body(kernel);
  if (scopes.back().end)
    place(*scopes.back().end);
  scopes.pop_back();
  finish();
  return std::move(program);
}

/// A function on its own: nobody runs it, but all of it must be known.
void Decoder::beginFunction() {
  scopes.back().end = newLabel();
  for (const auto *list : {&kernel.parameters, &kernel.results})
    for (const Variable &variable : *list)
      scopes.back().variables[variable.name] = allocateVariable(variable);
}

void Decoder::declareParameters() {
  for (const Variable &variable : kernel.parameters) {
    uint32_t begin =
        uint32_t(alignTo(program.parameterBytes, variable.alignment));
    program.parameters.push_back(
        {variable.name, begin, uint32_t(variable.bytes)});
    program.parameterBytes = begin + uint32_t(variable.bytes);
    scopes.back().variables[variable.name] = {Space::param, begin};
  }
}

void Decoder::body(const FunctionSyntax &function) {
  for (const Variable &variable : function.variables)
    scopes.back().variables[variable.name] = allocateVariable(variable);
  for (const Statement &each : function.body)
    statement(each);
}

void Decoder::statement(const Statement &statement) {
  if (statement.isLabel()) {
    uint32_t id = label(statement.operands[0].name);
    if (labelTargets[id] != noRegister)
      throw DecodeError{absl::StrCat("line ", statement.line, ": label '",
                                     statement.operands[0].name,
                                     "' is there twice")};
    return place(id);
  }
  currentStatement = uint32_t(program.statements.size());
  program.statements.push_back(statement);
  Line line(*this, statement);
  auto found = opcodes().find(statement.opcode);
  if (found == opcodes().end())
    line.fail("this instruction is not modelled");
  found->second(line);
  line.finish();
}

Decoder::Symbol Decoder::allocateVariable(const Variable &variable) {
  uint64_t alignment = std::max<uint64_t>(variable.alignment, 1);
  if (variable.space == Space::shared) {
    if (variable.unsized) {
      dynamicAlignment = std::max(dynamicAlignment, uint32_t(alignment));
      return {Space::shared, 0, true};
    }
    uint32_t begin = uint32_t(alignTo(program.staticSharedEnd, alignment));
    program.staticSharedEnd = begin + uint32_t(variable.bytes);
    return {Space::shared, begin};
  }
  // .param of a call is memory of the lane, as .local.
  uint32_t begin = uint32_t(alignTo(program.localBytes, alignment));
  program.localBytes = begin + uint32_t(variable.bytes);
  return {Space::local, begin};
}

Decoder::Symbol Decoder::symbol(const std::string &name) {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    if (auto it = scope->variables.find(name); it != scope->variables.end())
      return it->second;
    break; // an inlined function does not see its caller's variables
  }
  if (auto it = sharedOfModule.find(name); it != sharedOfModule.end())
    return it->second;
  for (const Variable &variable : module.variables) {
    if (variable.name != name)
      continue;
    if (variable.space == Space::shared)
      return sharedOfModule[name] = allocateVariable(variable);
    auto address = addresses.find(name);
    if (address == addresses.end())
      throw DecodeError{"'" + name + "' is defined in no module"};
    return {variable.space, address->second};
  }
  throw DecodeError{"'" + name + "' is no register, variable or number"};
}

Register Decoder::allocate(unsigned bits) {
  if (bits > 1) {
    uint32_t begin = program.registerFileBytes;
    program.registerFileBytes += std::max(64u, numLanes * bits / 8);
    return {begin, uint8_t(bits)};
  }
  if (predicatesLeft == 0) {
    predicateBlock = program.registerFileBytes;
    program.registerFileBytes += 64;
    predicatesLeft = 64 / sizeof(Mask);
  }
  return {predicateBlock + uint32_t(sizeof(Mask)) * --predicatesLeft, 1};
}

uint32_t Decoder::constant(uint64_t value, unsigned bits) {
  if (bits < 64)
    value &= (1ull << bits) - 1;
  auto [it, added] = constants.try_emplace({value, bits}, 0);
  if (added) {
    it->second = allocate(bits).offset;
    program.constants.push_back({value, it->second, uint8_t(bits)});
  }
  return it->second;
}

Register Decoder::specialRegister(const std::string &name) {
  for (const SpecialName &special : specialNames) {
    if (special.name != name)
      continue;
    auto [it, added] = specials.try_emplace(special.what);
    if (added) {
      it->second = allocate(special.bits);
      program.specials.push_back(
          {special.what, it->second.offset, uint8_t(special.bits)});
    }
    return it->second;
  }
  return {};
}

Register Decoder::registerNamed(const std::string &name) {
  Scope &scope = scopes.back();
  if (auto it = scope.registers.find(name); it != scope.registers.end())
    return it->second;
  size_t digits = name.find_last_not_of("0123456789") + 1;
  unsigned number = 0;
  bool numbered = absl::SimpleAtoi(name.substr(digits), &number);
  for (const RegisterRange &range : scope.function->registers) {
    bool found = range.count ? numbered && number < range.count &&
                                   name.compare(0, digits, range.prefix) == 0
                             : range.prefix == name;
    if (found)
      return scope.registers[name] = allocate(bitsOf(range.type));
  }
  return specialRegister(name);
}

uint32_t Decoder::addressConstant(const std::string &name, int64_t offset,
                                  unsigned bits) {
  Symbol found = symbol(name);
  if (!found.dynamicShared)
    return constant(found.address + uint64_t(offset), bits);
  uint32_t at = allocate(bits).offset;
  dynamicConstants.push_back(program.constants.size());
  program.constants.push_back({uint64_t(offset), at, uint8_t(bits)});
  return at;
}

uint32_t Decoder::newLabel() {
  labelTargets.push_back(noRegister);
  return uint32_t(labelTargets.size() - 1);
}
uint32_t Decoder::label(const std::string &name) {
  auto [it, added] = scopes.back().labels.try_emplace(name, 0);
  if (added)
    it->second = newLabel();
  return it->second;
}
void Decoder::place(uint32_t label) {
  labelTargets[label] = uint32_t(program.code.size());
}
std::optional<uint32_t> Decoder::returnLabel() const {
  return scopes.back().end;
}

uint32_t Decoder::indexedTargets(const std::string &name) {
  auto it = scopes.back().function->branchTargets.find(name);
  if (it == scopes.back().function->branchTargets.end())
    throw DecodeError{"'" + name + "' is no list of branch targets"};
  uint32_t begin = uint32_t(program.targets.size());
  program.targets.push_back(uint32_t(it->second.size()));
  for (const std::string &target : it->second)
    program.targets.push_back(label(target));
  return begin;
}

void Decoder::call(Line &line, const std::string &name,
                   const std::vector<Operand> &results,
                   const std::vector<Operand> &arguments) {
  auto it = module.functions.find(name);
  if (it == module.functions.end() || !it->second.hasBody)
    line.fail("function '" + name + "' has no body in this module");
  const FunctionSyntax &callee = it->second;
  for (const Scope &scope : scopes)
    if (scope.function == &callee)
      line.fail("'" + name + "' calls itself; recursion is not modelled");
  if (callee.parameters.size() != arguments.size() ||
      callee.results.size() != results.size())
    line.fail("'" + name + "' takes another number of parameters");
  Scope inner{&callee, {}, {}, {}, newLabel()};
  auto copy = [&](const Variable &variable, const Operand &outer, bool in) {
    Symbol there = symbol(outer.name);
    Symbol here = inner.variables.count(variable.name)
                      ? inner.variables[variable.name]
                      : inner.variables[variable.name] =
                            allocateVariable(variable);
    uint32_t to = uint32_t(in ? here.address : there.address);
    uint32_t from = uint32_t(in ? there.address : here.address);
    line.emit(copyLocal, {to, from}).offset = int64_t(variable.bytes);
  };
  for (size_t i = 0; i < arguments.size(); ++i)
    copy(callee.parameters[i], arguments[i], true);
  for (const Variable &result : callee.results)
    inner.variables[result.name] = allocateVariable(result);
  uint32_t caller = currentStatement;
  scopes.push_back(std::move(inner));
  body(callee);
  place(*scopes.back().end);
  inner = std::move(scopes.back());
  scopes.pop_back();
  currentStatement = caller;
  for (size_t i = 0; i < results.size(); ++i)
    copy(callee.results[i], results[i], false);
}

void Decoder::finish() {
  // Falling off the end returns.
  currentStatement = uint32_t(program.statements.size());
  Statement last;
  last.line = kernel.line;
  last.text = "(end)";
  program.statements.push_back(last);
  Instruction end;
  end.flow = Flow::exit;
  end.statement = currentStatement;
  program.code.push_back(end);
  auto resolve = [&](uint32_t &label) {
    label = labelTargets[label];
    if (label == noRegister)
      throw DecodeError{absl::StrCat("line ", kernel.line, ": kernel '",
                                     kernel.name,
                                     "' branches to a label it lacks")};
  };
  for (Instruction &i : program.code)
    if (i.flow == Flow::branch)
      resolve(i.target);
  for (size_t i = 0; i < program.targets.size();) {
    size_t end = i + 1 + program.targets[i];
    for (++i; i < end; ++i)
      resolve(program.targets[i]);
  }
  program.dynamicSharedBegin =
      uint32_t(alignTo(program.staticSharedEnd, dynamicAlignment));
  for (size_t i : dynamicConstants)
    program.constants[i].value += program.dynamicSharedBegin;
  program.localBytes = uint32_t(alignTo(program.localBytes, 64));
}

absl::StatusOr<Program> decode(const ModuleSyntax &module,
                               const FunctionSyntax &kernel,
                               const VariableAddresses &addresses) {
  try {
    return Decoder(module, kernel, addresses).run();
  } catch (const DecodeError &error) {
    return absl::InvalidArgumentError(error.text);
  }
}

} // namespace meshwork::ptx
