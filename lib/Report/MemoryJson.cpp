// Memory over a step, as many columns as a picture has.
#include "lib/Explain/Format.h"
#include "lib/Explain/Memory.h"
#include "lib/Plan/Views.h"
#include "lib/Report/Parts.h"
#include <algorithm>

namespace meshwork::report {
namespace {
using explain::BytesByKind;
using explain::Listing;
using explain::MemoryUse;

/// Of all programs together, and of one.
constexpr uint64_t allColumns = 4800, mostColumns = 600, leastColumns = 24;
constexpr size_t mostLive = 10;

std::string nameOf(size_t kind) {
  return plan::EnumNameBufferKind(static_cast<plan::BufferKind>(kind));
}

/// The fullest time of each column, so that no peak is lost.
std::vector<uint64_t> timesOf(const std::vector<BytesByKind> &line,
                              uint64_t columns) {
  std::vector<uint64_t> times;
  uint64_t length = line.size();
  for (uint64_t column = 0; column < std::min(columns, length); ++column) {
    uint64_t count = std::min(columns, length);
    uint64_t best = column * length / count,
             end = (column + 1) * length / count;
    for (uint64_t time = best; time < end; ++time)
      if (explain::sumOf(line[time]) > explain::sumOf(line[best]))
        best = time;
    times.push_back(best);
  }
  return times;
}

/// The kinds that a step has, with their bytes in each column.
Json bytesJson(const std::vector<BytesByKind> &line,
               const std::vector<uint64_t> &times, const MemoryUse &use) {
  Json bytes = Json::object();
  for (size_t kind = 0; kind < explain::numBufferKinds; ++kind) {
    if (use.mostOfKind[kind] == 0)
      continue;
    Json &list = bytes[nameOf(kind)] = Json::array();
    for (uint64_t time : times)
      list.push_back(line[time][kind]);
  }
  return bytes;
}

/// [name, first column, last column] of each stretch of one list.
Json listsJson(const Listing &listing, const plan::Lives &lives,
               const std::vector<uint64_t> &times) {
  Json lists = Json::array();
  for (size_t column = 0; column < times.size() && lives.length() > 0;
       ++column) {
    const std::string &name =
        listing.phases()[lives.placeAt(times[column]).list].name;
    if (!lists.empty() && lists.back()[0] == name)
      lists.back()[2] = column;
    else
      lists.push_back(Json::array({name, column, column}));
  }
  return lists;
}

Json liveJson(const plan::Program &program, const MemoryUse &use) {
  Json live = Json::array();
  for (size_t i = 0; i < std::min(use.liveAtFullest.size(), mostLive); ++i) {
    const plan::Buffer &buffer = *program.buffers()->Get(use.liveAtFullest[i]);
    live.push_back({{"name", buffer.name() ? buffer.name()->str() : ""},
                    {"kind", plan::EnumNameBufferKind(buffer.kind())},
                    {"copies", buffer.copies()},
                    {"bytes", buffer.size_bytes()}});
  }
  return live;
}

std::string instructionAt(const Listing &listing, uint64_t index) {
  return index < listing.size()
             ? (listing[index].name() ? listing[index].name()->str() : "")
             : "";
}

Json instructionsJson(const Listing &listing, const plan::Lives &lives,
                      const std::vector<uint64_t> &times) {
  Json names = Json::array();
  for (uint64_t time : times)
    names.push_back(
        lives.length() == 0
            ? ""
            : instructionAt(listing, listing.numberOf(lives.placeAt(time))));
  return names;
}

Json mostJson(const MemoryUse &use) {
  Json most = Json::object();
  for (size_t kind = 0; kind < explain::numBufferKinds; ++kind)
    if (use.mostOfKind[kind] > 0)
      most[nameOf(kind)] = use.mostOfKind[kind];
  return most;
}

Json programJson(const plan::Plan &plan, uint32_t index, uint64_t columns) {
  const plan::Program &program = *plan.programs()->Get(index);
  Listing listing(program);
  plan::Lives lives = plan::livesOf(program, listing.table());
  std::vector<BytesByKind> line = explain::memoryOverStep(program, lives);
  std::vector<uint64_t> times = timesOf(line, columns);
  MemoryUse use = explain::measureMemory(program, listing);
  return {
      {"ranks", explain::ranksText(plan, index)},
      {"peak_bytes", explain::saturatingAdd(use.arenaBytes, use.libraryBytes)},
      {"library_bytes", use.libraryBytes},
      {"persistent_bytes", use.persistentBytes},
      {"fullest_bytes", use.fullestBytes},
      {"fullest_at", instructionAt(listing, use.fullestAt)},
      {"live_at_fullest", liveJson(program, use)},
      {"live_count", use.liveAtFullest.size()},
      {"most_bytes", mostJson(use)},
      {"bytes", bytesJson(line, times, use)},
      {"lists", listsJson(listing, lives, times)},
      {"instructions", instructionsJson(listing, lives, times)}};
}
} // namespace

Json memoryJson(const plan::Plan &plan) {
  uint32_t programs = std::min(plan.programs()->size(), mostPrograms);
  uint64_t columns =
      std::clamp(allColumns / programs, leastColumns, mostColumns);
  Json list = Json::array();
  for (uint32_t i = 0; i < programs; ++i)
    list.push_back(programJson(plan, i, columns));
  return list;
}

} // namespace meshwork::report
