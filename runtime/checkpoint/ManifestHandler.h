// The grammar of a manifest: a state machine over JSON events. Objects have all
// their keys, once each, in any order but for what a later one is checked by;
// those that are optional at most once.
#pragma once

#include "lib/Text/JsonHandler.h"
#include "runtime/checkpoint/CheckManifest.h"
#include <absl/strings/str_cat.h>
#include <absl/types/span.h>

namespace meshwork::runtime::manifest {

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
  pieces,
  piece,
  pieceCounted,
  pieceBegin,
  pieceExtent,
  pieceShape,
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
  bool isOptional = false;
};

absl::Span<const Field> fieldsOf(Kind kind);

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
  bool isOfOtherVersion() const { return version > manifestVersion; }

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
  bool endPiece();

  StoredTensor &lastTensor() { return manifest.tensors.back(); }
  StoredState &lastState() { return lastTensor().states.back(); }
  plan::FilePieceT &lastPiece() { return lastTensor().files.back(); }
  StoredBox &lastBox() { return lastState().boxes.back(); }

  std::vector<Frame> stack;
  const Field *pending = nullptr; // the key whose value comes
  std::string optionName, format, ownHash;
  uint64_t version = 0;
  std::vector<int64_t>
      counted; // of the piece: dim and first number, or nothing
};

} // namespace meshwork::runtime::manifest
