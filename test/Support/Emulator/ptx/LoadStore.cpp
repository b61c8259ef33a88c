#include "test/Support/Emulator/ptx/Addresses.h"

namespace meshwork::ptx {
namespace {

template <class T> void load(Warp &warp, const Instruction &i, Mask active) {
  unsigned count = i.count;
  Pointers from = resolve(warp, i.space, addressesOf(warp, i), active,
                          count * sizeof(T), Access::read);
  for (unsigned c = 0; c < count; ++c) {
    T *to = warp.at<T>(i.r[1 + c]);
    eachLane(active, [&](unsigned lane) {
      std::memcpy(to + lane, from[lane] + c * sizeof(T), sizeof(T));
    });
  }
}
template <class T> void store(Warp &warp, const Instruction &i, Mask active) {
  unsigned count = i.count;
  Pointers to = resolve(warp, i.space, addressesOf(warp, i), active,
                        count * sizeof(T), Access::write);
  for (unsigned c = 0; c < count; ++c) {
    const T *from = warp.at<T>(i.r[1 + c]);
    eachLane(active, [&](unsigned lane) {
      std::memcpy(to[lane] + c * sizeof(T), from + lane, sizeof(T));
    });
  }
}
/// A kernel's parameter by its name: the same for every lane, always there.
template <class T>
void loadParameter(Warp &warp, const Instruction &i, Mask active) {
  const std::byte *from = warp.block->launch->parameters + i.offset;
  for (unsigned c = 0; c < i.count; ++c) {
    T value;
    std::memcpy(&value, from + c * sizeof(T), sizeof(T));
    alignas(64) T values[numLanes];
    std::fill(values, values + numLanes, value);
    writeLanes(warp.at<T>(i.r[1 + c]), values, active);
  }
}

#define MESHWORK_PICK_WIDTH(type, F)                                           \
  (bitsOf(type) == 8    ? F<uint8_t>                                           \
   : bitsOf(type) == 16 ? F<uint16_t>                                          \
   : bitsOf(type) == 32 ? F<uint32_t>                                          \
                        : F<uint64_t>)

/// Values of `{a, b}` at operand `at`, as many as .v2, .v4 or .v8 says.
std::vector<Operand> takeVector(Line &line, size_t at) {
  size_t count = line.take("v2")   ? 2
                 : line.take("v4") ? 4
                 : line.take("v8") ? 8
                                   : 1;
  std::vector<Operand> items = line.items(at);
  if (items.size() != count)
    line.fail("the vector has another number of values");
  return items;
}

/// The space that is written, made certain by a variable's own.
void checkSpace(Line &line, Space written, const Line::Address &address) {
  bool fits = written == Space::generic || address.space == Space::generic ||
              written == address.space ||
              (written == Space::param && address.space == Space::local);
  if (!fits)
    line.fail("the variable is in another state space");
}

void decodeLd(Line &line) {
  takeOrderAndCaches(line);
  Space space = takeSpace(line);
  std::vector<Operand> items = takeVector(line, 0);
  Type type = line.type();
  Line::Address address = line.address(line.operand(1));
  checkSpace(line, space, address);
  std::array<uint32_t, 8> to{};
  for (size_t c = 0; c < items.size(); ++c)
    to[c] = line.dest(items[c], type);
  if (line.numOperands() == 3) // what to keep in the cache
    line.source(2, Type::b64);
  Instruction &i = line.emit(MESHWORK_PICK_WIDTH(type, load), {});
  setAddress(line, i, address, space);
  i.count = uint8_t(items.size());
  std::copy(to.begin(), to.end(), i.r.begin() + 1);
  if (address.space == Space::param) {
    const std::string &name = line.operand(1).name;
    i.offset += int64_t(line.decoder.symbol(name).address);
    uint64_t end = uint64_t(i.offset) + items.size() * bitsOf(type) / 8;
    if (i.offset < 0 || end > line.decoder.program.parameterBytes)
      line.fail("reads beyond the parameters");
    i.run = MESHWORK_PICK_WIDTH(type, loadParameter);
  }
}
void decodeSt(Line &line) {
  takeOrderAndCaches(line);
  Space space = takeSpace(line);
  std::vector<Operand> items = takeVector(line, 1);
  Type type = line.type();
  Line::Address address = line.address(line.operand(0));
  checkSpace(line, space, address);
  std::array<uint32_t, 8> from{};
  for (size_t c = 0; c < items.size(); ++c)
    from[c] = line.source(items[c], type);
  if (line.numOperands() == 3)
    line.source(2, Type::b64);
  Instruction &i = line.emit(MESHWORK_PICK_WIDTH(type, store), {});
  setAddress(line, i, address, space);
  i.count = uint8_t(items.size());
  std::copy(from.begin(), from.end(), i.r.begin() + 1);
}

/// Caches are not modelled; the address may be anything, as on the hardware.
void decodePrefetch(Line &line) {
  takeSpace(line);
  if (!line.takePrefix("L1") && !line.takePrefix("L2"))
    line.fail("a cache level is missing");
  line.takePrefix("evict_");
  line.address(line.operand(0));
}

} // namespace

std::span<const Opcode> memoryOpcodes() {
  static constexpr Opcode list[] = {{"ld", decodeLd},
                                    {"ldu", decodeLd},
                                    {"st", decodeSt},
                                    {"prefetch", decodePrefetch},
                                    {"prefetchu", decodePrefetch}};
  return list;
}

} // namespace meshwork::ptx
