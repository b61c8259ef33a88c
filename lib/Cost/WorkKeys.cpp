// Keys of what computes, and of what keeps it.
#include "lib/Cost/KeyMakers.h"

#include "lib/Spec/TomlFile.h"

#include <charconv>

namespace meshwork::cost {
namespace {

constexpr uint32_t leastTile = 8, mostTile = 4096;
constexpr size_t mostTiles = 16;

/// Those that are like `other` print nothing.
void addRatesBeside(std::vector<Key> &keys, const std::string &section,
                    Rates rates, Rates other) {
  size_t first = keys.size();
  addRates(keys, section, rates, false);
  for (size_t i = first; i < keys.size(); ++i)
    keys[i].print = [=, type = i - first, print = keys[i].print](
                        const Machine &m) -> std::optional<std::string> {
      bool isOwn =
          (m.*rates)[type] != 0 && (m.*rates)[type] != (m.*other)[type];
      return isOwn ? print(m) : std::nullopt;
    };
}

/// "256x128"
std::optional<Tile> readTile(const std::string &text) {
  Tile tile;
  const char *end = text.data() + text.size();
  auto rows = std::from_chars(text.data(), end, tile.rows);
  if (rows.ec != std::errc() || rows.ptr == end || *rows.ptr != 'x')
    return std::nullopt;
  auto columns = std::from_chars(rows.ptr + 1, end, tile.columns);
  auto isSize = [](uint32_t size) {
    return size >= leastTile && size <= mostTile;
  };
  if (columns.ec != std::errc() || columns.ptr != end || !isSize(tile.rows) ||
      !isSize(tile.columns))
    return std::nullopt;
  return tile;
}

bool readTiles(const spec::Value &value, Machine &machine) {
  if (value.kind != spec::Value::Kind::array || value.items.empty() ||
      value.items.size() > mostTiles)
    return false;
  for (const spec::Value &item : value.items) {
    std::optional<Tile> tile = item.kind == spec::Value::Kind::string
                                   ? readTile(item.text)
                                   : std::nullopt;
    if (!tile)
      return false;
    machine.products.tiles.push_back(*tile);
  }
  return true;
}

/// Without blanks, which part keys in one line.
std::optional<std::string> printTiles(const Machine &machine) {
  std::string text;
  for (const Tile &tile : machine.products.tiles)
    text += (text.empty() ? "[\"" : ",\"") + std::to_string(tile.rows) + "x" +
            std::to_string(tile.columns) + "\"";
  return text.empty() ? std::nullopt : std::optional(text + "]");
}

void addProducts(std::vector<Key> &keys) {
  keys.push_back(count(
      "products.multiprocessors", false, 1 << 16,
      [](Machine &m) -> uint32_t & { return m.products.multiprocessors; }));
  keys.push_back({"products.tiles",
                  R"(1 to 16 tiles of 8 to 4096, like ["256x128", "64x64"])",
                  false, readTiles, printTiles});
  keys.push_back(numberBeside(
      0, "products.half_tile", 0, 4096, "rows x columns / (rows + columns)",
      [](Machine &m) -> double & { return m.products.halfTile; }));
  keys.push_back(
      numberBeside(0, "products.begin", 0, 1e6, "bytes of a row of an operand",
                   [](Machine &m) -> double & { return m.products.begin; }));
}

/// A figure that is like another prints nothing.
Key beside(Key key, double Machine::*figure, double Machine::*other) {
  key.print =
      [=, print = key.print](const Machine &m) -> std::optional<std::string> {
    return m.*figure == m.*other ? std::nullopt : print(m);
  };
  return key;
}

void addAttention(std::vector<Key> &keys) {
  addRates(keys, "attention.", &Machine::attention, false);
  keys.push_back(
      numberBeside(0, "attention.half_head", 0, 1e6, "elements of a head",
                   [](Machine &m) -> double & { return m.halfHead; }));
  keys.push_back(
      numberBeside(0, "attention.half_keys", 0, 1e9, "keys that a query sees",
                   [](Machine &m) -> double & { return m.halfKeys; }));
  addRatesBeside(keys, "attention.backward.", &Machine::gradient,
                 &Machine::attention);
  keys.push_back(beside(
      number("attention.backward.half_head", false, 0, 1e6,
             "elements of a head",
             [](Machine &m) -> double & { return m.halfHeadOfGradient; }),
      &Machine::halfHeadOfGradient, &Machine::halfHead));
  keys.push_back(beside(
      number("attention.backward.half_keys", false, 0, 1e9,
             "keys that a query sees",
             [](Machine &m) -> double & { return m.halfKeysOfGradient; }),
      &Machine::halfKeysOfGradient, &Machine::halfKeys));
}
} // namespace

void addWorkKeys(std::vector<Key> &keys) {
  addRates(keys, "flops.", &Machine::flops, true);
  keys.push_back(number("flops.half_size", false, 0, 1e15, "flops",
                        [](Machine &m) -> double & { return m.halfSize; }));
  addAttention(keys);
  addRatesBeside(keys, "peak.", &Machine::peak, &Machine::flops);
  addProducts(keys);
  keys.push_back(number("memory.bandwidth", true, 1e6, 1e18, "bytes a second",
                        [](Machine &m) -> double & { return m.memory; }));
  keys.push_back(number("memory.kernels", false, 1e6, 1e18, "bytes a second",
                        [](Machine &m) -> double & { return m.kernels; }));
  keys.push_back(number("memory.capacity", false, 0, 1e18, "bytes",
                        [](Machine &m) -> double & { return m.capacity; }));
  keys.push_back(number("launch.overhead", false, 0, 1, "seconds",
                        [](Machine &m) -> double & { return m.launch; }));
  keys.push_back(number("launch.hand_over", false, 0, 1, "seconds",
                        [](Machine &m) -> double & { return m.handOver; }));
  keys.push_back(
      numberBeside(0, "host.instruction", 0, 1, "seconds",
                   [](Machine &m) -> double & { return m.hostInstruction; }));
}

} // namespace meshwork::cost
