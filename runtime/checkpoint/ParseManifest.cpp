// The grammar of a manifest: a state machine over JSON events. Objects have all
// their keys, once each, in any order but for what a later one is checked by.
#include "runtime/checkpoint/CheckManifest.h"
#include "runtime/checkpoint/HashedFile.h"
#include "runtime/io/JsonHandler.h"
#include "runtime/io/SafeTensorsHeader.h"
#include <absl/strings/str_join.h>
#include <absl/types/span.h>

namespace meshwork::runtime {
namespace {
enum Kind : uint8_t {
  root,
  options,
  files,
  file,
  hashes,
  tensors,
  tensor,
  shape,
  fileShape,
  states,
  state,
  boxes,
  box,
  boxBegin,
  boxExtent,
  none
};

struct Field {
  std::string_view name;
  enum What : uint8_t { text, number, list, object } what;
  Kind kind = none; // of what a list or an object holds
};

constexpr Field rootFields[] = {{"format", Field::text},
                                {"version", Field::number},
                                {"producer", Field::text},
                                {"step", Field::number},
                                {"updates", Field::number},
                                {"samples", Field::number},
                                {"options", Field::object, options},
                                {"files", Field::list, files},
                                {"tensors", Field::list, tensors},
                                {"xxh3_128", Field::text}};
constexpr Field fileFields[] = {{"name", Field::text},
                                {"bytes", Field::number},
                                {"hashes", Field::list, hashes}};
constexpr Field tensorFields[] = {{"name", Field::text},
                                  {"shape", Field::list, shape},
                                  {"file_shape", Field::list, fileShape},
                                  {"states", Field::list, states}};
constexpr Field stateFields[] = {{"name", Field::text},
                                 {"dtype", Field::text},
                                 {"boxes", Field::list, boxes}};

absl::Span<const Field> fieldsOf(Kind kind) {
  switch (kind) {
  case root:
    return rootFields;
  case file:
    return fileFields;
  case tensor:
    return tensorFields;
  case state:
    return stateFields;
  default:
    return {};
  }
}

class ManifestHandler : public JsonHandler {
public:
  Manifest manifest;

  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("a boolean"); }
  bool binary(binary_t &) { return unexpected("binary data"); }
  bool number_integer(number_integer_t value) {
    return unexpected(absl::StrCat("the number ", value));
  }
  bool number_float(number_float_t, const string_t &text) {
    return unexpected(absl::StrCat("the number ", text.substr(0, 40)));
  }
  bool number_unsigned(number_unsigned_t value);
  bool string(string_t &value);
  bool key(string_t &name);
  bool start_object(std::size_t);
  bool end_object();
  bool start_array(std::size_t);
  bool end_array();
  /// Of another release, and for all that is known not damaged.
  bool isOfOtherVersion() const {
    return version != 0 && version != manifestVersion;
  }

private:
  struct Frame {
    Kind kind;
    uint32_t seen = 0; // bits of keys; items of a box
  };

  Kind kind() const { return stack.empty() ? none : stack.back().kind; }
  bool unexpected(const std::string &found);
  std::string where() const;
  std::string expected() const;
  uint64_t *numberField();
  std::string *textField();
  std::vector<int64_t> *numbersHere();
  bool boxNumber(uint64_t value);
  bool open(Kind inner);

  StoredTensor &lastTensor() { return manifest.tensors.back(); }
  StoredState &lastState() { return lastTensor().states.back(); }
  StoredBox &lastBox() { return lastState().boxes.back(); }

  std::vector<Frame> stack;
  const Field *pending = nullptr; // the key whose value comes
  std::string optionName, format, ownHash;
  uint64_t version = 0;
};

std::string ManifestHandler::where() const {
  for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) {
    if (frame->kind == file)
      return absl::StrCat("file ", quote(manifest.files.back().name), ": ");
    if (frame->kind == tensor)
      return absl::StrCat("tensor ", quote(manifest.tensors.back().name), ": ");
  }
  return "";
}

std::string ManifestHandler::expected() const {
  constexpr const char *whats[] = {"a string", "a whole number from 0 on",
                                   "a list", "an object"};
  if (pending)
    return absl::StrCat(whats[pending->what], " as ", quote(pending->name));
  switch (kind()) {
  case none:
    return "an object";
  case files:
  case tensors:
  case states:
    return "objects in the list";
  case options:
    return "a string as each option";
  case hashes:
    return "strings in \"hashes\"";
  case boxes:
    return "a list as each box";
  case box:
    return "[file, offset, [begins], [extents]] as a box";
  case shape:
  case fileShape:
  case boxBegin:
  case boxExtent:
    return "whole numbers from 0 to 2^63 - 1";
  default:
    return "a key";
  }
}

bool ManifestHandler::unexpected(const std::string &found) {
  return fail(
      absl::StrCat(where(), "found ", found, ", expected ", expected()));
}

uint64_t *ManifestHandler::numberField() {
  if (!pending || pending->what != Field::number)
    return nullptr;
  if (kind() == file)
    return &manifest.files.back().bytes;
  Progress &progress = manifest.progress;
  if (pending->name == "version")
    return &version;
  return pending->name == "step"      ? &progress.step
         : pending->name == "updates" ? &progress.updates
                                      : &progress.samples;
}

std::string *ManifestHandler::textField() {
  if (!pending || pending->what != Field::text)
    return nullptr;
  if (kind() == file)
    return &manifest.files.back().name;
  if (kind() == tensor)
    return &lastTensor().name;
  if (kind() == state)
    return pending->name == "name" ? &lastState().name : &lastState().dtype;
  return pending->name == "format"     ? &format
         : pending->name == "producer" ? &manifest.producer
                                       : &ownHash;
}

std::vector<int64_t> *ManifestHandler::numbersHere() {
  switch (kind()) {
  case shape:
    return &lastTensor().shape;
  case fileShape:
    return &lastTensor().fileShape;
  case boxBegin:
    return &lastBox().begin;
  case boxExtent:
    return &lastBox().extent;
  default:
    return nullptr;
  }
}

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
  if (to == &version && version != manifestVersion)
    return fail(absl::StrCat(
        "has version ", version, ", this release reads ", manifestVersion,
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
    if (!(stack.back().seen >> i & 1))
      return fail(
          absl::StrCat(where(), "lacks the key ", quote(fields[i].name)));
  stack.pop_back();
  return true;
}

bool ManifestHandler::end_array() {
  if (kind() == box && stack.back().seen != 4)
    return unexpected(absl::StrCat("a box of ", stack.back().seen, " items"));
  stack.pop_back();
  return true;
}

/// The text before the line with its hash, when they fit.
absl::StatusOr<std::string_view> hashedPart(std::string_view text) {
  std::string_view body = text;
  if (body.ends_with('\n'))
    body.remove_suffix(1);
  size_t line = body.rfind('\n');
  if (line == std::string_view::npos)
    return absl::DataLossError(
        "does not end in a line with its own hash; it was cut off");
  std::string_view last = body.substr(line + 1);
  body = body.substr(0, line + 1);
  std::string right = absl::StrCat("\"xxh3_128\":\"", hashText(body), "\"}");
  if (last != right)
    return absl::DataLossError(
        absl::StrCat("its last line is ", quote(last.substr(0, 60)),
                     ", expected ", quote(right), " for its ", body.size(),
                     " bytes before: it was cut off or changed"));
  return body;
}
} // namespace

absl::StatusOr<Manifest> parseManifest(std::string_view text) {
  if (absl::Status status = hashedPart(text).status(); !status.ok())
    return status;
  ManifestHandler handler;
  if (absl::Status status = parseJson(text, handler); !status.ok())
    return handler.isOfOtherVersion()
               ? absl::UnimplementedError(status.message())
               : status;
  if (absl::Status status = checkManifest(handler.manifest); !status.ok())
    return status;
  return std::move(handler.manifest);
}

} // namespace meshwork::runtime
