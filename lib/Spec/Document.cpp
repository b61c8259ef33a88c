#include "lib/Spec/Document.h"

#include <algorithm>
#include <cctype>
#include <charconv>

// The library asserts (or, with NDEBUG, assumes) that a table header starts
// with a key, which "[=" breaks; the code behind the assertion reports it
// properly.
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace meshwork::spec {
namespace {

// A spec is a page of text; this keeps a wrong file from being read for long.
constexpr size_t maxBytes = 1 << 20;

Location locationOf(const toml::source_region &region,
                    const std::string &file) {
  return {file, region.begin.line, region.begin.column};
}

std::string pathPart(std::string_view key) {
  bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
  });
  return bare ? std::string(key) : quote(key);
}

Value toValue(const toml::node &node, const std::string &file) {
  Value value;
  value.where = locationOf(node.source(), file);
  switch (node.type()) {
  case toml::node_type::boolean:
    value.kind = Value::Kind::boolean;
    value.boolean = **node.as_boolean();
    break;
  case toml::node_type::integer:
    value.kind = Value::Kind::integer;
    value.integer = **node.as_integer();
    value.number = static_cast<double>(value.integer);
    break;
  case toml::node_type::floating_point:
    value.kind = Value::Kind::number;
    value.number = **node.as_floating_point();
    break;
  case toml::node_type::string:
    value.kind = Value::Kind::string;
    value.text = **node.as_string();
    break;
  case toml::node_type::array:
    value.kind = Value::Kind::array;
    for (const toml::node &item : *node.as_array())
      value.items.push_back(toValue(item, file));
    break;
  case toml::node_type::table:
    value.kind = Value::Kind::table;
    for (const auto &[key, member] : *node.as_table()) {
      value.keys.emplace_back(key.str());
      value.items.push_back(toValue(member, file));
    }
    break;
  default:
    value.kind = Value::Kind::date;
  }
  return value;
}

void flatten(const toml::table &table, const std::string &prefix,
             const std::string &file, Document &document) {
  for (const auto &[key, node] : table) {
    std::string path = prefix + pathPart(key.str());
    Entry entry;
    entry.key = entry.value.where = locationOf(key.source(), file);
    if (const toml::table *inner = node.as_table()) {
      document[path] = std::move(entry);
      flatten(*inner, path + ".", file, document);
      continue;
    }
    entry.value = toValue(node, file);
    entry.origin = entry.value.where.text();
    document[path] = std::move(entry);
  }
}

/// The value of "key=value": TOML where it is TOML, else a string as it stands.
Value overrideValue(const std::string &text, const std::string &argument) {
  toml::parse_result parsed = toml::parse("v = " + text);
  Value value;
  if (parsed.succeeded() && parsed.table().size() == 1 &&
      parsed.table().contains("v")) {
    value = toValue(*parsed.table().get("v"), argument);
  } else {
    value.kind = Value::Kind::string;
    value.text = text;
  }
  value.where = {argument, 0, 0};
  for (Value &item : value.items)
    item.where = value.where;
  return value;
}

void applyOverride(const std::string &setting, Document &document,
                   Diagnostics &diagnostics) {
  std::string argument = "--set " + setting;
  if (std::any_of(setting.begin(), setting.end(), [](unsigned char c) {
        return c < 0x20 || c == 0x7f; // it will stand in one line of text
      }))
    argument = "--set " + quote(setting);
  size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    diagnostics.push_back(
        {Severity::error, {argument, 0, 0}, "expected section.key=value"});
    return;
  }
  std::string path = setting.substr(0, equals);
  while (!path.empty() && path.back() == ' ')
    path.pop_back();
  document[path] = {overrideValue(setting.substr(equals + 1), argument),
                    {argument, 0, 0},
                    argument};
}

} // namespace

std::string Value::found() const {
  switch (kind) {
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
  case Kind::table:
    return "a table";
  case Kind::date:
    return "a date or time";
  }
  return "";
}

Document readDocument(std::string_view text, const std::string &filename,
                      const std::vector<std::string> &overrides,
                      Diagnostics &diagnostics) {
  Document document;
  if (text.size() > maxBytes) {
    diagnostics.push_back({Severity::error,
                           {filename, 0, 0},
                           "is " + std::to_string(text.size()) +
                               " bytes, expected a spec of at most " +
                               std::to_string(maxBytes)});
    return document;
  }
  toml::parse_result parsed = toml::parse(text, filename);
  if (parsed.failed())
    diagnostics.push_back(
        {Severity::error, locationOf(parsed.error().source(), filename),
         "is not TOML: " + std::string(parsed.error().description())});
  else
    flatten(parsed.table(), "", filename, document);
  for (const std::string &setting : overrides)
    applyOverride(setting, document, diagnostics);
  return document;
}

} // namespace meshwork::spec
