#include "runtime/checkpoint/ManifestHandler.h"
#include "runtime/io/SafeTensorsHeader.h"
#include <absl/strings/str_join.h>

namespace meshwork::runtime::manifest {

bool ManifestHandler::boxNumber(uint64_t value) {
  uint32_t item = stack.back().seen++;
  if (item > 1 || (item == 0 && value > UINT32_MAX))
    return unexpected(absl::StrCat("the number ", value));
  if (item == 0)
    lastBox().file = static_cast<uint32_t>(value);
  else
    lastBox().offset = value;
  return true;
}

bool ManifestHandler::number_unsigned(number_unsigned_t value) {
  if (kind() == box)
    return boxNumber(value);
  if (std::vector<int64_t> *numbers = numbersHere()) {
    if (value > INT64_MAX || numbers->size() == maxStoredDims)
      return unexpected(absl::StrCat("the number ", value));
    numbers->push_back(static_cast<int64_t>(value));
    return true;
  }
  uint64_t *to = numberField();
  if (!to)
    return unexpected(absl::StrCat("the number ", value));
  *to = value;
  pending = nullptr;
  if (to == &version && (version == 0 || version > manifestVersion))
    return fail(absl::StrCat(
        "has version ", version, ", this release reads 1 to ", manifestVersion,
        ": use the release that wrote it, or a newer one"));
  return true;
}

bool ManifestHandler::string(string_t &value) {
  if (kind() == hashes) {
    manifest.files.back().hashes.push_back(std::move(value));
    return true;
  }
  if (kind() == options && pending) {
    manifest.options[optionName] = std::move(value);
    pending = nullptr;
    return true;
  }
  std::string *to = textField();
  if (!to)
    return unexpected(absl::StrCat("the string ", quote(value)));
  *to = std::move(value);
  pending = nullptr;
  if (to == &format && format != manifestFormat)
    return fail(absl::StrCat("has the format ", quote(format), ", expected ",
                             quote(manifestFormat)));
  return true;
}

bool ManifestHandler::key(string_t &name) {
  if (kind() == options) {
    static constexpr Field option = {"an option", Field::text};
    if (manifest.options.contains(name))
      return fail(absl::StrCat("has the option ", quote(name), " twice"));
    optionName = name;
    pending = &option;
    return true;
  }
  absl::Span<const Field> fields = fieldsOf(kind());
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name != name)
      continue;
    if (stack.back().seen >> i & 1)
      return fail(absl::StrCat(where(), "has key ", quote(name), " twice"));
    stack.back().seen |= 1u << i;
    pending = &fields[i];
    return true;
  }
  return fail(absl::StrCat(
      where(), "has key ", quote(name), ", expected ",
      absl::StrJoin(fields, ", ", [](std::string *out, const Field &field) {
        out->append(field.name);
      })));
}

bool ManifestHandler::open(Kind inner) {
  stack.push_back({inner});
  pending = nullptr;
  return true;
}

bool ManifestHandler::start_object(std::size_t) {
  if (pending && pending->what == Field::object)
    return open(pending->kind);
  if (stack.empty())
    return open(root);
  if (kind() == files) {
    manifest.files.emplace_back();
    return open(file);
  }
  if (kind() == tensors) {
    manifest.tensors.emplace_back();
    return open(tensor);
  }
  if (kind() == pieces) {
    lastTensor().files.emplace_back();
    counted.clear();
    return open(piece);
  }
  if (kind() == states) {
    lastTensor().states.emplace_back();
    return open(state);
  }
  return unexpected("an object");
}

bool ManifestHandler::start_array(std::size_t) {
  if (pending && pending->what == Field::list)
    return open(pending->kind);
  if (kind() == boxes) {
    lastState().boxes.emplace_back();
    return open(box);
  }
  if (kind() == box && (stack.back().seen == 2 || stack.back().seen == 3))
    return open(stack.back().seen++ == 2 ? boxBegin : boxExtent);
  return unexpected("a list");
}

bool ManifestHandler::end_object() {
  absl::Span<const Field> fields = fieldsOf(kind());
  for (size_t i = 0; i < fields.size(); ++i)
    if (!fields[i].isOptional && !(stack.back().seen >> i & 1))
      return fail(
          absl::StrCat(where(), "lacks the key ", quote(fields[i].name)));
  if (kind() == piece && !endPiece())
    return false;
  stack.pop_back();
  return true;
}

bool ManifestHandler::endPiece() {
  if (counted.empty())
    return true;
  if (counted.size() != 2 || counted[0] >= int64_t{maxStoredDims})
    return fail(absl::StrCat(where(), "has \"counted\" [",
                             absl::StrJoin(counted, ","),
                             "], expected [dim, first number] or []"));
  lastPiece().counted = static_cast<int32_t>(counted[0]);
  lastPiece().first = counted[1];
  return true;
}

bool ManifestHandler::end_array() {
  if (kind() == box && stack.back().seen != 4)
    return unexpected(absl::StrCat("a box of ", stack.back().seen, " items"));
  stack.pop_back();
  return true;
}

} // namespace meshwork::runtime::manifest
