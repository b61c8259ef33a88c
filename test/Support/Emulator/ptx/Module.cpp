#include "test/Support/Emulator/ptx/Module.h"

#include "test/Support/Emulator/ptx/Decoder.h"
#include "test/Support/Emulator/ptx/Parser.h"

#include "absl/strings/str_cat.h"

namespace meshwork::ptx {

/// Global memory and the module's own variables.
class Module::WithVariables : public Memory {
public:
  WithVariables(const Module &module, const Memory &memory)
      : module(module), memory(memory) {}
  Range find(uint64_t address) const override {
    for (const auto &[name, storage] : module.variables)
      if (storage.range.covers(address, 1))
        return storage.range;
    return memory.find(address);
  }
  std::string describe(uint64_t address) const override {
    for (const auto &[name, storage] : module.variables)
      if (address + 256 >= storage.range.begin &&
          address < storage.range.end + 256)
        return absl::StrCat("next to variable ", name, " of ",
                            storage.range.end - storage.range.begin, " bytes");
    return memory.describe(address);
  }

private:
  const Module &module;
  const Memory &memory;
};

absl::Status Module::allocateVariables(const ModuleSyntax &syntax) {
  constexpr uint64_t alignment = 256;
  for (const Variable &variable : syntax.variables) {
    if (variable.space == Space::shared)
      continue;
    if (variable.external || variable.unsized)
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", variable.line, ": variable '", variable.name,
          "' is defined in another module; modules are not linked"));
    Storage storage;
    storage.words =
        std::make_unique<uint64_t[]>((variable.bytes + 2 * alignment) / 8);
    uint64_t begin = reinterpret_cast<uint64_t>(storage.words.get());
    begin = (begin + alignment - 1) / alignment * alignment;
    storage.range = {begin, begin + variable.bytes};
    if (!variable.initial.empty())
      std::memcpy(reinterpret_cast<void *>(begin), variable.initial.data(),
                  variable.initial.size());
    variables[variable.name] = std::move(storage);
  }
  for (const Variable &variable : syntax.variables)
    for (const Variable::Pointer &pointer : variable.pointers) {
      auto to = variables.find(pointer.name);
      if (to == variables.end())
        return absl::InvalidArgumentError(
            absl::StrCat("line ", variable.line, ": variable '", variable.name,
                         "' points to '", pointer.name, "', which is none"));
      uint64_t value = to->second.range.begin + uint64_t(pointer.added);
      uint64_t at = variables[variable.name].range.begin + pointer.offset;
      std::memcpy(reinterpret_cast<void *>(at), &value, sizeof value);
    }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Module>> Module::parse(std::string_view text) {
  absl::StatusOr<ModuleSyntax> syntax = parseModule(text);
  if (!syntax.ok())
    return syntax.status();
  std::unique_ptr<Module> module(new Module);
  module->architecture_ = syntax->architecture;
  module->version_ = syntax->version;
  module->onlyThisDevice_ = syntax->onlyThisDevice;
  if (absl::Status status = module->allocateVariables(*syntax); !status.ok())
    return status;
  VariableAddresses addresses;
  for (const auto &[name, storage] : module->variables)
    addresses[name] = storage.range.begin;
  for (const auto &[name, function] : syntax->functions) {
    if (!function.hasBody)
      continue;
    absl::StatusOr<Program> program = decode(*syntax, function, addresses);
    if (!program.ok())
      return program.status();
    if (function.isKernel)
      module->programs.emplace(name, *std::move(program));
  }
  return module;
}

const Program *Module::kernel(std::string_view name) const {
  auto it = programs.find(name);
  return it == programs.end() ? nullptr : &it->second;
}
std::vector<std::string> Module::kernels() const {
  std::vector<std::string> names;
  for (const auto &[name, program] : programs)
    names.push_back(name);
  return names;
}
Range Module::variable(std::string_view name) const {
  auto it = variables.find(name);
  return it == variables.end() ? Range() : it->second.range;
}

absl::Status checkShape(const Program &program, const Shape &shape) {
  const Dim3 &block = shape.block;
  auto wrong = [&](auto... text) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", program.name, ": ", text...));
  };
  if (shape.grid.volume() == 0 || block.volume() == 0)
    return wrong("an extent of the grid or the block is 0");
  if (shape.grid.x > 0x7fffffff || shape.grid.y > 65535 || shape.grid.z > 65535)
    return wrong("the grid is larger than 2147483647 x 65535 x 65535");
  if (block.volume() > 1024 || block.z > 64)
    return wrong(block.volume(), " threads a block, at most 1024, 64 of z");
  if (program.maxThreads && block.volume() > program.maxThreads)
    return wrong(block.volume(), " threads a block, .maxntid says ",
                 program.maxThreads);
  const uint32_t *needed = program.requiredThreads;
  if (needed[0] &&
      (block.x != needed[0] || block.y != needed[1] || block.z != needed[2]))
    return wrong("block ", block.x, "x", block.y, "x", block.z,
                 ", .reqntid says ", needed[0], "x", needed[1], "x", needed[2]);
  return absl::OkStatus();
}

absl::Status Module::launch(std::string_view name, const Shape &shape,
                            std::span<const std::byte> parameters,
                            Memory &memory, Counts *counts) const {
  const Program *program = kernel(name);
  if (!program)
    return absl::NotFoundError(
        absl::StrCat("no kernel '", std::string(name), "'"));
  if (absl::Status status = checkShape(*program, shape); !status.ok())
    return status;
  if (parameters.size() != program->parameterBytes)
    return absl::InvalidArgumentError(absl::StrCat(
        "kernel ", program->name, ": ", parameters.size(),
        " bytes of parameters, expected ", program->parameterBytes));
  WithVariables all(*this, memory);
  Counts ignored;
  Launch launch{
      program,           shape.grid, shape.block,           shape.sharedBytes,
      parameters.data(), &all,       shape.maxInstructions, shape.firstBlock,
      shape.endBlock};
  return runGrid(launch, shape.numThreads, counts ? *counts : ignored);
}

} // namespace meshwork::ptx
