// What names in PTX stand for: variables and where they lie, registers,
// numbers.
#include "test/Support/Emulator/ptx/Decoder.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace meshwork::ptx {
namespace {

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

} // namespace

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

} // namespace meshwork::ptx
