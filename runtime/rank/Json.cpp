#include "runtime/rank/Json.h"
#include <nlohmann/json.hpp>

namespace meshwork::runtime {

std::string jsonString(const flatbuffers::String *text) {
  using nlohmann::json;
  return json(text ? text->str() : std::string())
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace meshwork::runtime
