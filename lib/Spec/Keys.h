// Every key of a spec: what it takes, where it goes, how it prints.
// Internal to lib/Spec.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/Spec/Document.h"
#include "lib/Spec/Spec.h"

namespace meshwork::spec {

/// A part of a value that is wrong: where it stands, and what was found and
/// expected there.
struct Mistake {
  Location where;
  std::string text;
};

struct Key {
  std::string section, name;
  /// For messages: "a whole number from 1 to 2147483647".
  std::string expected;
  /// Stores the value; false when it is not what `expected` says. A key without
  /// a place in Spec only checks.
  std::function<bool(const Value &, Spec &)> read;
  /// TOML text of the value; nothing when it should not be printed.
  std::function<std::optional<std::string>(const Spec &)> print;
  bool required = false;
  /// What to do instead when this version cannot obey a value; "" when it can.
  std::function<std::string(const Value &)> refusal;
  /// The parts that make `read` refuse a value; empty: all of it, and
  /// `expected` says enough.
  std::function<std::vector<Mistake>(const Value &)> mistakes = {};
  /// The words that it takes, of a key that takes words.
  std::vector<std::string> choices = {};

  std::string path() const { return section + "." + name; }
};

/// All keys, in the order they print.
const std::vector<Key> &allKeys();

/// Null of an unknown one.
const Key *findKey(const std::string &path);

/// Sections, each once, in that order.
const std::vector<std::string> &allSections();

/// A TOML string and a TOML array of strings.
std::string tomlString(const std::string &text);
std::string tomlStrings(const std::vector<std::string> &texts);
/// As tomlString; a text of several lines is written so that it stays readable.
std::string tomlText(const std::string &text);

/// The strings of an array of strings; nothing for anything else.
std::optional<std::vector<std::string>> stringsOf(const Value &value);

/// Reads "dp=2": a lower-case name, '=', and 1 to 2^20. Nothing for anything
/// else, and in `expected` which part it should have been.
std::optional<Axis> parseAxis(const std::string &text, std::string &expected);

} // namespace meshwork::spec
