#include "lib/Import/Json.h"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

namespace meshwork::importer {
namespace {

constexpr size_t maxBytes = 16 << 20, maxDepth = 64;

/// Where byte `offset` (0-based) of `text` is.
Location placeOf(std::string_view text, size_t offset,
                 const std::string &filename) {
  std::string_view before = text.substr(0, offset);
  size_t lineStart = before.rfind('\n');
  size_t column =
      lineStart == std::string_view::npos ? offset : offset - lineStart - 1;
  return {
      filename,
      static_cast<uint32_t>(std::count(before.begin(), before.end(), '\n')) + 1,
      static_cast<uint32_t>(column) + 1};
}

/// Builds the tree from nlohmann's events; a callback that returns false ends
/// it.
class Builder {
public:
  using json = nlohmann::json;

  Builder(std::string_view text, const std::string &filename,
          Diagnostics &diagnostics)
      : text(text), filename(filename), diagnostics(diagnostics) {}

  Json root;

  bool null() { return add({}); }
  bool boolean(bool value) {
    Json node;
    node.kind = Json::Kind::boolean;
    node.boolean = value;
    return add(std::move(node));
  }
  bool number_integer(json::number_integer_t value) {
    Json node;
    node.kind = Json::Kind::integer;
    node.integer = value;
    node.number = static_cast<double>(value);
    return add(std::move(node));
  }
  bool number_unsigned(json::number_unsigned_t value) {
    if (value > INT64_MAX)
      return fail(whole, std::to_string(value));
    return number_integer(static_cast<int64_t>(value));
  }
  bool number_float(json::number_float_t value, const std::string &digits) {
    // The parser turns whole numbers that do not fit into floating point.
    if (digits.find_first_of(".eE") == std::string::npos)
      return fail(whole, digits);
    Json node;
    node.kind = Json::Kind::number;
    node.number = value;
    return add(std::move(node));
  }
  bool string(std::string &value) {
    Json node;
    node.kind = Json::Kind::string;
    node.text = std::move(value);
    return add(std::move(node));
  }
  bool binary(json::binary_t &) { return fail("has binary data", ""); }

  bool start_object(std::size_t) { return open(Json::Kind::object); }
  bool start_array(std::size_t) { return open(Json::Kind::array); }
  bool end_object() {
    refuseEqualKeys(stack.back().keys);
    return close();
  }
  bool end_array() { return close(); }

  bool key(std::string &name) {
    stack.back().keys.push_back(std::move(name));
    return true;
  }

  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &problem) {
    std::string_view what = problem.what();
    // Its own name and position stand before the first ": ".
    size_t detail = what.find(": ");
    if (detail != std::string_view::npos)
      what.remove_prefix(detail + 2);
    size_t offset = std::min(position == 0 ? 0 : position - 1, text.size());
    error(placeOf(text, offset, filename), "is not JSON: " + quote(what));
    return false;
  }

private:
  static constexpr const char *whole =
      "has a whole number that does not fit 64 bits: ";

  void error(Location where, std::string message) {
    diagnostics.push_back(
        {Severity::error, std::move(where), std::move(message)});
  }
  bool fail(const char *message, const std::string &digits) {
    error({filename, 0, 0}, message + digits.substr(0, 40));
    return false;
  }
  void refuseEqualKeys(const std::vector<std::string> &keys) {
    std::vector<std::string_view> sorted(keys.begin(), keys.end());
    std::sort(sorted.begin(), sorted.end());
    auto equal = std::adjacent_find(sorted.begin(), sorted.end());
    if (equal != sorted.end())
      error({filename, 0, 0},
            "has key " + quote(*equal) + " twice in one object; keep one");
  }
  bool add(Json node) {
    if (stack.empty())
      root = std::move(node);
    else
      stack.back().items.push_back(std::move(node));
    return true;
  }
  bool open(Json::Kind kind) {
    if (stack.size() >= maxDepth)
      return fail("nests deeper than 64 levels", "");
    stack.emplace_back().kind = kind;
    return true;
  }
  bool close() {
    Json node = std::move(stack.back());
    stack.pop_back();
    return add(std::move(node));
  }

  std::string_view text;
  const std::string &filename;
  Diagnostics &diagnostics;
  std::vector<Json> stack;
};

} // namespace

std::string Json::found() const {
  switch (kind) {
  case Kind::null:
    return "null";
  case Kind::boolean:
    return boolean ? "true" : "false";
  case Kind::integer:
    return std::to_string(integer);
  case Kind::number: {
    char digits[32];
    auto end = std::to_chars(digits, digits + sizeof(digits), number);
    return {digits, end.ptr};
  }
  case Kind::string:
    return quote(text);
  case Kind::array:
    return "an array";
  case Kind::object:
    return "an object";
  }
  return "";
}

Json parseJson(std::string_view text, const std::string &filename,
               Diagnostics &diagnostics) {
  auto refuse = [&](Location where, std::string message) {
    diagnostics.push_back(
        {Severity::error, std::move(where), std::move(message)});
    return Json();
  };
  if (text.size() > maxBytes)
    return refuse({filename, 0, 0},
                  "is " + std::to_string(text.size()) +
                      " bytes, expected a configuration of at "
                      "most 16777216");
  if (text.starts_with("\xef\xbb\xbf"))
    return refuse({filename, 1, 1},
                  "starts with a byte order mark; save it as UTF-8 without");
  // The parser takes a zero byte for the end and would ignore all after it.
  if (size_t zero = text.find('\0'); zero != std::string_view::npos)
    return refuse(placeOf(text, zero, filename), "is not JSON: a zero byte");
  size_t before = diagnostics.size();
  Builder builder(text, filename, diagnostics);
  nlohmann::json::sax_parse(text, &builder);
  return diagnostics.size() == before ? std::move(builder.root) : Json();
}

std::string compactJson(std::string_view text) {
  std::string compact;
  bool isInString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"')
      isInString = !isInString;
    bool isSpace = std::string_view(" \t\r\n").find(text[i]) != text.npos;
    if (isInString || !isSpace)
      compact += text[i];
    if (isInString && text[i] == '\\' && i + 1 < text.size())
      compact += text[++i];
  }
  return compact;
}

std::string memberText(std::string_view text, const std::string &key) {
  return nlohmann::ordered_json::parse(text).at(key).dump();
}

} // namespace meshwork::importer
