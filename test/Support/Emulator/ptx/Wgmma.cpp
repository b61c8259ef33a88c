#include "test/Support/Emulator/ptx/Wgmma.h"

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace meshwork::ptx {
namespace {

constexpr unsigned warpsOfGroup = 4;

[[noreturn]] void fault(std::string text) {
  throw Fault{Fault::Kind::asynchronous, std::move(text)};
}

/// What any warp of the warpgroup has issued so far.
std::vector<PendingProduct> &productsOfGroup(Warp &warp) {
  auto &groups = warp.block->groupProducts;
  size_t index = warp.index / warpsOfGroup;
  groups.resize(std::max(groups.size(), index + 1));
  return groups[index];
}

void fenceProducts(Warp &warp, const Instruction &, Mask) {
  warp.productsFenced = true;
}

/// A descriptor or scale is one of the whole warpgroup; here, of the warp.
uint64_t uniform(Warp &warp, uint32_t offset) {
  const uint64_t *values = warp.at<uint64_t>(offset);
  for (unsigned lane = 1; lane < numLanes; ++lane)
    if (values[lane] != values[0])
      fault("lanes have different descriptors");
  return values[0];
}

/// The four warps of a warpgroup execute the same products.
void checkSameInGroup(Warp &warp, const PendingProduct &product) {
  std::vector<PendingProduct> &all = productsOfGroup(warp);
  size_t index = warp.productsIssued++;
  if (index == all.size())
    all.push_back(product);
  else if (all[index] != product)
    fault("another warp of the warpgroup executes another product, or the same "
          "with other descriptors, scale-d or groups");
}

void begin(Warp &warp, const Instruction &i, Mask active) {
  size_t lastWarp = warp.index / warpsOfGroup * warpsOfGroup + warpsOfGroup;
  if (active != allLanes || lastWarp > warp.block->warps.size())
    fault("the warp is in no warpgroup of 128 threads");
  if (!warp.productsFenced)
    fault("no wgmma.fence before the first product");
  PendingProduct product;
  product.pc = warp.current.pc;
  product.group = warp.productCommits;
  if (!(i.extra & wgmma::aInRegisters))
    product.a = uniform(warp, i.r[0]);
  product.b = uniform(warp, i.r[1]);
  Mask accumulates = warp.predicate(i.r[2]);
  if (accumulates && accumulates != allLanes)
    fault("lanes have different values of scale-d");
  product.accumulates = accumulates;
  checkSameInGroup(warp, product);
  warp.products.push_back(product);
}

void commit(Warp &warp, const Instruction &, Mask) { ++warp.productCommits; }

/// All groups but the last `target` ones, in order.
void wait(Warp &warp, const Instruction &i, Mask) {
  const Instruction *code = warp.block->launch->program->code.data();
  uint32_t here = warp.current.pc;
  size_t done = 0;
  for (const PendingProduct &product : warp.products) {
    if (int64_t(product.group) >=
        int64_t(warp.productCommits) - int64_t(i.target))
      break;
    warp.current.pc = product.pc; // of a fault
    multiply(warp, code[product.pc], product);
    ++done;
  }
  warp.current.pc = here;
  warp.products.erase(warp.products.begin(),
                      warp.products.begin() + ptrdiff_t(done));
}

/// Read and written later, so a register must have the width of the value.
uint32_t exactRegister(Line &line, const Operand &operand) {
  Register found = line.decoder.registerNamed(operand.name);
  if (operand.kind != Operand::Kind::name || found.bits != 32)
    line.fail("expected registers of 32 bits");
  return found.offset;
}
void appendRegisters(Line &line, size_t at, size_t count) {
  std::vector<Operand> items = line.items(at);
  if (items.size() != count)
    line.fail("a fragment has another number of registers");
  for (const Operand &item : items)
    line.decoder.program.registers.push_back(exactRegister(line, item));
}

/// N of m64nNk16.
unsigned takeColumns(Line &line) {
  for (const std::string &modifier : line.statement.modifiers) {
    absl::string_view text = modifier;
    unsigned n = 0;
    if (absl::ConsumePrefix(&text, "m64n") &&
        absl::ConsumeSuffix(&text, "k16") && absl::SimpleAtoi(text, &n) &&
        n >= 8 && n <= 256 && n % 8 == 0 && line.take(modifier))
      return n;
  }
  line.fail("only m64nNk16 with N = 8, 16, ... 256 is modelled");
}
bool takeNegative(Line &line, size_t at) {
  uint64_t scale = line.integer(at);
  if (scale != 1 && scale != ~uint64_t(0))
    line.fail("a scale is neither 1 nor -1");
  return scale != 1;
}
bool takeTransposed(Line &line, size_t at) {
  uint64_t value = line.integer(at);
  if (value > 1)
    line.fail("a transposition is neither 0 nor 1");
  return value;
}

uint8_t takeImmediates(Line &line, bool aInRegisters) {
  if (line.numOperands() != (aInRegisters ? 7 : 8))
    line.fail("another number of operands is not modelled");
  bool aTransposed = !aInRegisters && takeTransposed(line, 6);
  bool bTransposed = takeTransposed(line, aInRegisters ? 6 : 7);
  return uint8_t((aInRegisters ? wgmma::aInRegisters : 0) |
                 (aTransposed ? wgmma::aTransposed : 0) |
                 (bTransposed ? wgmma::bTransposed : 0) |
                 (takeNegative(line, 4) ? wgmma::aNegative : 0) |
                 (takeNegative(line, 5) ? wgmma::bNegative : 0));
}

void decodeProduct(Line &line) {
  unsigned n = takeColumns(line);
  if (line.type() != Type::f32 || line.type() != Type::bf16 ||
      line.type() != Type::bf16)
    line.fail("only .f32.bf16.bf16 is modelled");
  uint32_t first = uint32_t(line.decoder.program.registers.size());
  bool aInRegisters = line.operand(1).kind == Operand::Kind::list;
  appendRegisters(line, 0, n / 2);
  if (aInRegisters)
    appendRegisters(line, 1, 4);
  uint32_t a = aInRegisters ? noRegister : line.source(1, Type::b64);
  uint32_t b = line.source(2, Type::b64);
  if (line.operand(3).negated)
    line.fail("scale-d is negated");
  uint32_t accumulates = line.source(3, Type::pred);
  uint8_t extra = takeImmediates(line, aInRegisters);
  Instruction &i = line.emit(begin, {a, b, accumulates});
  i.count = uint8_t(n / 8);
  i.extra = extra;
  i.target = first;
  setWholeWarp(line, i);
}

void decodeWgmma(Line &line) {
  line.decoder.program.usesAsyncProxy = true;
  bool fence = line.take("fence"), product = line.take("mma_async"),
       commits = line.take("commit_group"), waits = line.take("wait_group");
  if (!line.take("sync") || !line.take("aligned"))
    line.fail(".sync.aligned is missing");
  if (product)
    return decodeProduct(line);
  if (!fence && !commits && !waits)
    line.fail("this wgmma is not modelled");
  uint32_t groups = waits ? uint32_t(line.integer(0)) : 0;
  Instruction &i = line.emit(fence     ? fenceProducts
                             : commits ? commit
                                       : wait,
                             {});
  i.target = groups;
  setWholeWarp(line, i);
}

void nothing(Warp &, const Instruction &, Mask) {}
/// Registers are not counted here.
void decodeSetmaxnreg(Line &line) {
  if (!line.take("inc") && !line.take("dec"))
    line.fail(".inc or .dec is missing");
  if (!line.take("sync") || !line.take("aligned") || line.type() != Type::u32)
    line.fail(".sync.aligned.u32 is missing");
  uint64_t count = line.integer(0);
  if (count < 24 || count > 256 || count % 8)
    line.fail("expected 24 to 256 registers, a multiple of 8");
  setWholeWarp(line, line.emit(nothing, {}));
}

} // namespace

void checkProductsDone(Warp &warp) {
  if (warp.products.empty())
    return;
  warp.current.pc = warp.products.front().pc;
  fault("the warp ends without a wgmma.wait_group for this product");
}

void checkProductsAgree(Block &block, const Warp *&running) {
  for (Warp &warp : block.warps) {
    if (block.groupProducts.empty())
      return;
    const std::vector<PendingProduct> &all = productsOfGroup(warp);
    if (warp.productsIssued == all.size())
      continue;
    running = &warp;
    warp.current.pc = all[warp.productsIssued].pc;
    fault("the warp has ended and did not execute this product, other warps of "
          "its warpgroup did");
  }
}

std::span<const Opcode> wgmmaOpcodes() {
  static constexpr Opcode list[] = {{"wgmma", decodeWgmma},
                                    {"setmaxnreg", decodeSetmaxnreg}};
  return list;
}

} // namespace meshwork::ptx
