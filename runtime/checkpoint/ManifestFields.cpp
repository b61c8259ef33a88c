// Which keys objects have, where their values go, and how an error tells of it.
#include "runtime/checkpoint/ManifestHandler.h"

namespace meshwork::runtime::manifest {
namespace {
constexpr Field rootFields[] = {{"format", Field::text},
                                {"version", Field::number},
                                {"producer", Field::text},
                                {"step", Field::number},
                                {"updates", Field::number},
                                {"samples", Field::number},
                                {"tokens", Field::number, none, true},
                                {"eval_loss", Field::text, none, true},
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
                                  {"files", Field::list, pieces, true},
                                  {"states", Field::list, states}};
constexpr Field pieceFields[] = {{"name", Field::text},
                                 {"counted", Field::list, pieceCounted},
                                 {"begin", Field::list, pieceBegin},
                                 {"extent", Field::list, pieceExtent},
                                 {"shape", Field::list, pieceShape}};
constexpr Field stateFields[] = {{"name", Field::text},
                                 {"dtype", Field::text},
                                 {"boxes", Field::list, boxes}};

} // namespace

absl::Span<const Field> fieldsOf(Kind kind) {
  switch (kind) {
  case root:
    return rootFields;
  case file:
    return fileFields;
  case tensor:
    return tensorFields;
  case piece:
    return pieceFields;
  case state:
    return stateFields;
  default:
    return {};
  }
}

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
  case pieces:
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
  case pieceCounted:
  case pieceBegin:
  case pieceExtent:
  case pieceShape:
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
         : pending->name == "tokens"  ? &progress.tokens
                                      : &progress.samples;
}

std::string *ManifestHandler::textField() {
  if (!pending || pending->what != Field::text)
    return nullptr;
  if (kind() == file)
    return &manifest.files.back().name;
  if (kind() == tensor)
    return &lastTensor().name;
  if (kind() == piece)
    return &lastPiece().pattern;
  if (kind() == state)
    return pending->name == "name" ? &lastState().name : &lastState().dtype;
  return pending->name == "format"      ? &format
         : pending->name == "producer"  ? &manifest.producer
         : pending->name == "eval_loss" ? &manifest.evalLoss
                                        : &ownHash;
}

std::vector<int64_t> *ManifestHandler::numbersHere() {
  switch (kind()) {
  case shape:
    return &lastTensor().shape;
  case fileShape:
    return &lastTensor().fileShape;
  case pieceCounted:
    return &counted;
  case pieceBegin:
    return &lastPiece().begin;
  case pieceExtent:
    return &lastPiece().extent;
  case pieceShape:
    return &lastPiece().shape;
  case boxBegin:
    return &lastBox().begin;
  case boxExtent:
    return &lastBox().extent;
  default:
    return nullptr;
  }
}

} // namespace meshwork::runtime::manifest
