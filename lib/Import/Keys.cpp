#include "lib/Import/Keys.h"

#include "lib/Import/KeyLists.h"

namespace meshwork::importer {
namespace {

bool isNeutral(const MathKey &key, const Json &value) {
  if (value.kind == Json::Kind::null)
    return true;
  switch (key.kind) {
  case Json::Kind::boolean:
    return value.kind == Json::Kind::boolean && !value.boolean;
  case Json::Kind::integer:
  case Json::Kind::number:
    return value.isNumber() && value.number == key.neutral;
  case Json::Kind::array:
  case Json::Kind::object:
    return value.kind == key.kind && value.items.empty();
  default:
    return false;
  }
}

std::string neutralText(const MathKey &key) {
  switch (key.kind) {
  case Json::Kind::boolean:
    return "false";
  case Json::Kind::integer:
  case Json::Kind::number:
    return key.neutral == 0 ? "0" : "1";
  case Json::Kind::array:
  case Json::Kind::object:
    return "nothing in it";
  default:
    return "null";
  }
}

} // namespace

void checkOtherKeys(Config &config, std::string_view harmless) {
  constexpr size_t mostNamed = 50; // A wrong file has any number of them.
  const std::vector<std::string> readKeys = config.lookedFor();
  size_t unknown = 0;
  for (const std::string &key : config.unread()) {
    if (isHarmless(key) || isWordOf(harmless, key))
      continue;
    const Json *value = config.find(key);
    const MathKey *math = findMathKey(key);
    if (math && !isNeutral(*math, *value))
      config.error(key, "found " + value->found() +
                            ", which changes the mathematics and is not "
                            "supported for this model_type; expected " +
                            neutralText(*math));
    else if (!math && ++unknown <= mostNamed)
      config.error(key, "unknown key, which may change the mathematics; take "
                        "it out if it does not" +
                            suggestion(key, readKeys));
  }
  if (unknown > mostNamed)
    config.error("...",
                 std::to_string(unknown - mostNamed) + " more unknown keys");
}

} // namespace meshwork::importer
