#include "test/Support/Emulator/ptx/Decoder.h"
#include "test/Support/Emulator/ptx/Lanes.h"

#include "absl/strings/str_cat.h"

#include <unordered_map>

namespace meshwork::ptx {
namespace {

const std::unordered_map<std::string_view, Decode> &opcodes() {
  static const auto *const all = [] {
    auto *map = new std::unordered_map<std::string_view, Decode>;
    for (auto list :
         {integerOpcodes(), bitOpcodes(), floatOpcodes(), compareOpcodes(),
          convertOpcodes(), moveOpcodes(), memoryOpcodes(), atomicOpcodes(),
          copyOpcodes(), mbarrierOpcodes(), exchangeOpcodes(), matrixOpcodes(),
          wgmmaOpcodes(), controlOpcodes()})
      for (const Opcode &opcode : list)
        map->emplace(opcode.name, opcode.decode);
    return map;
  }();
  return *all;
}

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
