#include "test/Support/Emulator/ptx/BulkDecode.h"

#include "test/Support/Emulator/ptx/BulkCopies.h"

namespace meshwork::ptx {
namespace {

constexpr unsigned numAddresses = 3; // shared, global, mbarrier

/// In Program::registers: base, width and offset of each address, the rank,
/// the coordinates. r[0]: the number of bytes.
void append(std::vector<uint32_t> &list, const Line::Address &address) {
  list.push_back(address.base);
  list.push_back(address.wide);
  list.push_back(uint32_t(address.offset));
}
LaneAddress read(const uint32_t *list) {
  return {list[0], list[1] != 0, int32_t(list[2])};
}

struct Operands {
  Line::Address shared, global, mbarrier{};
  std::vector<uint32_t> coordinates = {};
  uint32_t bytes = noRegister;
};
void emitBulk(Line &line, Handler run, const Operands &operands) {
  std::vector<uint32_t> &list = line.decoder.program.registers;
  uint32_t begin = uint32_t(list.size());
  for (const Line::Address *address :
       {&operands.shared, &operands.global, &operands.mbarrier})
    append(list, *address);
  list.push_back(uint32_t(operands.coordinates.size()));
  list.insert(list.end(), operands.coordinates.begin(),
              operands.coordinates.end());
  line.emit(run, {operands.bytes}).target = begin;
}

unsigned takeRank(Line &line) {
  static constexpr std::string_view ranks[] = {"2d", "3d", "4d", "5d"};
  int index = line.takeOneOf(ranks);
  if (index < 0)
    line.fail("only .2d to .5d are modelled");
  return unsigned(index) + 2;
}

/// `[map, {x, y}]` at operand `at`.
void readTensor(Line &line, size_t at, unsigned rank, Operands &to) {
  const Operand &tensor = line.operand(at);
  to.global = line.tensorAddress(tensor);
  if (!to.global.wide)
    line.fail("the address of a tensor map has 64 bits");
  if (tensor.items.size() != 1 || tensor.items[0].items.size() != rank)
    line.fail("the tensor has another number of coordinates");
  for (const Operand &coordinate : tensor.items[0].items)
    to.coordinates.push_back(line.source(coordinate, Type::s32));
}

void expect(Line &line, std::initializer_list<const char *> modifiers,
            size_t numOperands) {
  for (const char *modifier : modifiers)
    if (!line.take(modifier))
      line.fail(std::string(".") + modifier + " is missing");
  if (line.numOperands() != numOperands)
    line.fail("another number of operands is not modelled");
}

constexpr char signals[] = "mbarrier::complete_tx::bytes";

void decodeTensor(Line &line) {
  unsigned rank = takeRank(line);
  line.take("tile");
  Operands operands;
  if (line.take("bulk_group")) {
    expect(line, {"global", "shared::cta"}, 2);
    readTensor(line, 0, rank, operands);
    operands.shared = line.address(line.operand(1));
    return emitBulk(line, beginStore, operands);
  }
  expect(line, {"shared::cluster", "global", signals}, 3);
  operands.shared = line.address(line.operand(0));
  readTensor(line, 1, rank, operands);
  operands.mbarrier = line.address(line.operand(2));
  emitBulk(line, beginTensorLoad, operands);
}

void decodePlain(Line &line) {
  expect(line, {"shared::cluster", "global", signals}, 4);
  Operands operands;
  operands.shared = line.address(line.operand(0));
  operands.global = line.address(line.operand(1));
  operands.bytes = line.source(2, Type::u32);
  operands.mbarrier = line.address(line.operand(3));
  emitBulk(line, beginLoad, operands);
}

} // namespace

BulkRegisters registersOf(const Warp &warp, const Instruction &i) {
  const uint32_t *list = &warp.block->launch->program->registers[i.target];
  BulkRegisters r;
  r.shared = read(list);
  r.global = read(list + 3);
  r.mbarrier = read(list + 6);
  r.rank = list[3 * numAddresses];
  r.coordinates = list + 3 * numAddresses + 1;
  r.bytes = i.r[0];
  return r;
}

void decodeBulk(Line &line) {
  line.decoder.program.usesAsyncProxy = true;
  if (line.take("commit_group")) {
    line.emit(commitStores, {});
  } else if (line.take("wait_group")) {
    bool onlyRead = line.take("read");
    uint32_t groups = uint32_t(line.integer(0));
    Instruction &i = line.emit(waitForStores, {});
    i.target = groups;
    i.extra = onlyRead;
  } else if (line.take("tensor")) {
    decodeTensor(line);
  } else {
    decodePlain(line);
  }
}

} // namespace meshwork::ptx
