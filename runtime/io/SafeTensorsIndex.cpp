// model.safetensors.index.json: an object with weight_map (tensor -> file
// name); anything may stand beside it.
#include <absl/container/flat_hash_set.h>
#include <absl/strings/str_cat.h>

#include "lib/Text/JsonHandler.h"
#include "runtime/io/SafeTensorsHeader.h"

namespace meshwork::runtime {
namespace {

constexpr int maxDepth = 64;

class IndexHandler : public JsonHandler {
public:
  std::vector<std::pair<std::string, std::string>> map;
  bool found = false;

  bool null() { return other("null"); }
  bool boolean(bool) { return other("a boolean"); }
  bool number_integer(number_integer_t) { return other("a number"); }
  bool number_unsigned(number_unsigned_t) { return other("a number"); }
  bool number_float(number_float_t, const string_t &) {
    return other("a number");
  }
  bool binary(binary_t &) { return other("binary data"); }
  bool start_array(std::size_t) { return other("an array") && deeper(); }
  bool end_array() { return shallower(); }

  bool string(string_t &value) {
    if (!inMap)
      return other("a string");
    map.back().second = std::move(value);
    return true;
  }

  bool start_object(std::size_t) {
    if (depth == 1 && atMap) {
      inMap = found = true;
      atMap = false;
    } else if (depth > 0 && !other("an object")) {
      return false;
    }
    return deeper();
  }

  bool end_object() {
    if (inMap && depth == 2)
      inMap = false;
    return shallower();
  }

  bool key(string_t &name) {
    if (depth == 1)
      return rootKey(name);
    if (!inMap)
      return true;
    if (!names.insert(name).second)
      return fail(absl::StrCat("maps ", quote(name), " twice"));
    map.emplace_back(name, std::string());
    return true;
  }

private:
  bool rootKey(const string_t &name) {
    if (!rootKeys.insert(name).second)
      return fail(absl::StrCat("has key ", quote(name), " twice"));
    atMap = name == "weight_map";
    return true;
  }

  /// A value outside the map is ignored, elsewhere it is out of place.
  bool other(const char *what) {
    if (depth == 0)
      return fail(absl::StrCat("found ", what, ", expected an object"));
    if (inMap)
      return fail(absl::StrCat("maps ", quote(map.back().first), " to ", what,
                               ", expected a file name"));
    if (atMap && depth == 1)
      return fail(
          absl::StrCat("has ", what, " as \"weight_map\", expected an object"));
    return true;
  }

  bool deeper() {
    return ++depth <= maxDepth ||
           fail(absl::StrCat("nests deeper than ", maxDepth));
  }
  bool shallower() { return --depth >= 0; }

  int depth = 0;
  bool atMap = false, inMap = false;
  absl::flat_hash_set<std::string> rootKeys, names;
};

} // namespace

absl::StatusOr<std::vector<std::pair<std::string, std::string>>>
parseSafeTensorsIndex(std::string_view json) {
  IndexHandler handler;
  if (absl::Status status = parseJson(json, handler); !status.ok())
    return status;
  if (!handler.found)
    return absl::DataLossError(
        "has no \"weight_map\", an object from tensor to file name");
  return std::move(handler.map);
}

} // namespace meshwork::runtime
