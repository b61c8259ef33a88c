// Reads JSON from strangers as a stream of events (nlohmann's SAX interface):
// the tree of a hostile text would take many times the memory of the text, and
// hides duplicate keys.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <nlohmann/json.hpp>

#include "meshwork/Text/Escape.h"

namespace meshwork {

/// What the handlers share: keeps the first error. A callback that returns
/// false ends the parse.
class JsonHandler {
public:
  using json = nlohmann::json;
  using number_integer_t = json::number_integer_t;
  using number_unsigned_t = json::number_unsigned_t;
  using number_float_t = json::number_float_t;
  using string_t = json::string_t;
  using binary_t = json::binary_t;

  absl::Status status() const {
    return error.empty() ? absl::OkStatus() : absl::DataLossError(error);
  }

  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &what) {
    std::string_view text = what.what();
    size_t detail = text.find("syntax error");
    if (detail != std::string_view::npos)
      text.remove_prefix(detail);
    return fail(
        absl::StrCat("is not JSON at byte ", position, ": ", quote(text)));
  }

protected:
  bool fail(std::string text) {
    if (error.empty())
      error = std::move(text);
    return false;
  }

private:
  std::string error;
};

/// Runs `handler` over `text`; kDataLoss with what was found where.
template <typename Handler>
absl::Status parseJson(std::string_view text, Handler &handler) {
  // The parser takes a zero byte for the end and would ignore all after it.
  if (size_t zero = text.find('\0'); zero != std::string_view::npos)
    return absl::DataLossError(
        absl::StrCat("is not JSON at byte ", zero, ": a zero byte"));
  if (!nlohmann::json::sax_parse(text, &handler))
    return handler.status();
  return absl::OkStatus();
}

} // namespace meshwork
