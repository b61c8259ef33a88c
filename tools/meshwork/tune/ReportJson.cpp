#include "tools/meshwork/tune/Report.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace meshwork::tune {
namespace json = llvm::json;

static json::Object objectOf(const Row &row) {
  json::Object settings, exposed;
  for (const auto &[key, value] : settingsOf(row.choice)) {
    llvm::Expected<json::Value> parsed = json::parse(value);
    settings[key] =
        parsed ? std::move(*parsed) : json::Value(json::fixUTF8(value));
    if (!parsed)
      llvm::consumeError(parsed.takeError());
  }
  const Costed &costed = row.costed;
  for (const auto &[axes, seconds] : costed.exposed)
    exposed[axes] = seconds * 1e3;
  json::Object object{
      {"name", json::fixUTF8(nameOf(row.choice))},
      {"settings", std::move(settings)},
      {"step_ms", costed.seconds * 1e3},
      {"bound_ms", row.bound * 1e3},
      {"bound_bytes", row.boundOfBytes},
      {"tokens_per_second", costed.tokensPerSecond},
      {"mfu", costed.mfu > 0 ? json::Value(costed.mfu) : nullptr},
      {"memory_per_rank_bytes", static_cast<int64_t>(costed.bytes)},
      {"host_memory_per_rank_bytes", static_cast<int64_t>(costed.hostBytes)},
      {"exposed_ms", std::move(exposed)},
      {"bubble_fraction", costed.bubble}};
  if (row.measured)
    object["measured_ms"] =
        *row.measured > 0 ? json::Value(*row.measured * 1e3) : nullptr;
  return object;
}

static json::Object objectOf(const UsualRow &usual, uint64_t limit) {
  json::Object object{{"name", usual.name}};
  if (usual.row) {
    object["spec"] = objectOf(*usual.row);
    object["fits"] = limit == 0 || usual.row->costed.bytes <= limit;
  } else
    object["why"] = json::fixUTF8(usual.why);
  return object;
}

static json::Object objectOf(uint32_t ranks, const Found &found) {
  json::Array best, usual, broken;
  json::Object refused;
  for (const Row &row : found.rows)
    best.push_back(objectOf(row));
  for (const UsualRow &one : found.usual)
    usual.push_back(objectOf(one, found.limit));
  for (const std::string &one : found.broken)
    broken.push_back(json::fixUTF8(one));
  for (const auto &[why, count] : found.refused)
    refused[json::fixUTF8(why)] = static_cast<int64_t>(count);
  return json::Object{{"ranks", ranks},
                      {"best", std::move(best)},
                      {"usual", std::move(usual)},
                      {"bound_ms", found.bound * 1e3},
                      {"choices", static_cast<int64_t>(found.choices)},
                      {"compiled", static_cast<int64_t>(found.compiled)},
                      {"bodies", static_cast<int64_t>(found.bodies)},
                      {"sketches", static_cast<int64_t>(found.sketches)},
                      {"cached", static_cast<int64_t>(found.cached)},
                      {"too_slow", static_cast<int64_t>(found.tooSlow)},
                      {"too_large", static_cast<int64_t>(found.tooLarge)},
                      {"refused", std::move(refused)},
                      {"broken", std::move(broken)},
                      {"interrupted", found.isInterrupted}};
}

std::string jsonOf(const std::vector<std::pair<uint32_t, Found>> &all) {
  json::Array found, left(Space::leftOut());
  for (const auto &[ranks, one] : all)
    found.push_back(objectOf(ranks, one));
  json::Value whole = json::Object{{"format_version", 1},
                                   {"found", std::move(found)},
                                   {"not_tried", std::move(left)}};
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv("{0:2}\n", whole);
  return text;
}

} // namespace meshwork::tune
