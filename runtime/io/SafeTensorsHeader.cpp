// The grammar of a header: a state machine over JSON events.
#include "runtime/io/SafeTensorsHeader.h"

#include <utility>

#include <absl/container/flat_hash_set.h>
#include <absl/strings/str_cat.h>

#include "lib/Text/JsonHandler.h"

namespace meshwork::runtime {
namespace {

class HeaderHandler : public JsonHandler {
public:
  std::vector<TensorEntry> entries;

  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("a boolean"); }
  bool number_integer(number_integer_t value) {
    return unexpected(absl::StrCat("the number ", value));
  }
  bool number_float(number_float_t, const string_t &text) {
    return unexpected(absl::StrCat("the number ", text.substr(0, 40)));
  }
  bool binary(binary_t &) { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) {
    if (place == Place::shape)
      entries.back().info.shape.push_back(value);
    else if (place == Place::offsets && offsets.size() < 2)
      offsets.push_back(value);
    else
      return unexpected(absl::StrCat("the number ", value));
    return true;
  }

  bool string(string_t &value) {
    if (place == Place::metadata)
      return true;
    if (place != Place::dtype)
      return unexpected(absl::StrCat("the string ", quote(value)));
    entries.back().info.dtype = std::move(value);
    place = Place::tensor;
    return true;
  }

  bool start_object(std::size_t) {
    if (place == Place::start)
      place = Place::root;
    else if (place == Place::entry)
      place = Place::tensor;
    else if (place == Place::metadataValue)
      place = Place::metadata;
    else
      return unexpected("an object");
    return true;
  }

  bool key(string_t &name) {
    if (place == Place::root)
      return startEntry(name);
    if (place == Place::metadata) {
      if (metadataKeys.insert(name).second)
        return true;
      return fail(
          absl::StrCat("has key ", quote(name), " twice in \"__metadata__\""));
    }
    return tensorKey(name);
  }

  bool end_object() {
    if (place == Place::tensor)
      return endEntry();
    place = place == Place::metadata ? Place::root : Place::end;
    return true;
  }

  bool start_array(std::size_t) {
    if (place == Place::shapeValue)
      place = Place::shape;
    else if (place == Place::offsetsValue)
      place = Place::offsets;
    else
      return unexpected("an array");
    return true;
  }

  bool end_array() {
    place = Place::tensor;
    return true;
  }

private:
  enum class Place {
    start,
    root,
    entry,
    tensor,
    dtype,
    shapeValue,
    shape,
    offsetsValue,
    offsets,
    metadataValue,
    metadata,
    end
  };

  const char *expectedHere() const {
    switch (place) {
    case Place::start:
      return "an object of tensors";
    case Place::entry:
      return "an object with dtype, shape and data_offsets";
    case Place::dtype:
      return "a type name as dtype";
    case Place::shapeValue:
      return "an array as shape";
    case Place::shape:
      return "whole numbers from 0 to 2^64 - 1 in shape";
    case Place::offsetsValue:
      return "an array as data_offsets";
    case Place::offsets:
      return "two whole numbers from 0 to 2^64 - 1 in data_offsets";
    case Place::metadataValue:
      return "an object as \"__metadata__\"";
    case Place::metadata:
      return "only strings in \"__metadata__\"";
    default:
      return "a key";
    }
  }

  bool unexpected(std::string found) {
    std::string where;
    if (place != Place::start && !entries.empty() && place != Place::metadata &&
        place != Place::metadataValue)
      where = absl::StrCat("tensor ", quote(entries.back().name), ": ");
    return fail(
        absl::StrCat(where, "found ", found, ", expected ", expectedHere()));
  }

  bool startEntry(string_t &name) {
    if (!names.insert(name).second)
      return fail(absl::StrCat("has the name ", quote(name), " twice"));
    if (name == "__metadata__") {
      place = Place::metadataValue;
      return true;
    }
    if (!isPrintableName(name))
      return fail(absl::StrCat("has a tensor named ", quote(name),
                               ", expected a name that is not empty and has no "
                               "control characters"));
    entries.emplace_back().name = name;
    offsets.clear();
    seen[0] = seen[1] = seen[2] = false;
    place = Place::entry;
    return true;
  }

  bool tensorKey(const string_t &name) {
    constexpr const char *keys[] = {"dtype", "shape", "data_offsets"};
    constexpr Place places[] = {Place::dtype, Place::shapeValue,
                                Place::offsetsValue};
    for (int i = 0; i < 3; ++i) {
      if (name != keys[i])
        continue;
      if (std::exchange(seen[i], true))
        return fail(absl::StrCat("tensor ", quote(entries.back().name),
                                 ": has key ", quote(name), " twice"));
      place = places[i];
      return true;
    }
    return fail(absl::StrCat("tensor ", quote(entries.back().name),
                             ": has key ", quote(name),
                             ", expected dtype, shape and data_offsets"));
  }

  bool endEntry() {
    TensorEntry &entry = entries.back();
    if (!seen[0] || !seen[1] || offsets.size() != 2)
      return fail(absl::StrCat("tensor ", quote(entry.name),
                               ": expected dtype, shape and data_offsets with "
                               "two numbers"));
    entry.begin = offsets[0];
    entry.end = offsets[1];
    place = Place::root;
    return true;
  }

  Place place = Place::start;
  bool seen[3] = {};
  std::vector<uint64_t> offsets;
  absl::flat_hash_set<std::string> names, metadataKeys;
};

} // namespace

absl::StatusOr<std::vector<TensorEntry>>
parseSafeTensorsHeader(std::string_view text, uint64_t dataBytes) {
  if (text.empty() || text.front() != '{')
    return absl::DataLossError(absl::StrCat(
        "starts with ", quote(text.substr(0, 1)), ", expected '{'"));
  HeaderHandler handler;
  if (absl::Status status = parseJson(text, handler); !status.ok())
    return status;
  std::vector<TensorEntry> entries = std::move(handler.entries);
  if (absl::Status status = checkEntries(entries, dataBytes); !status.ok())
    return status;
  return entries;
}

} // namespace meshwork::runtime
