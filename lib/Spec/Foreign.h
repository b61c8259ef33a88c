// Words of other tools for what a spec says, and what to write here instead.
// Internal to lib/Spec.
#pragma once

#include <span>
#include <string>

#include "lib/Spec/Keys.h"

namespace meshwork::spec {

/// A key that no spec has. `word` is its path ("mesh.tp"), or the last part
/// that it has in any table ("tensor_model_parallel_size").
struct ForeignKey {
  const char *word;
  /// A line of a spec, `mesh.axes = ["tp=2"]`; an option of meshwork-run,
  /// `--lr`; or empty, where `note` says all.
  const char *write;
  const char *note = "";
};

/// A value that `key` does not take, in letters of any case.
struct ForeignValue {
  const char *key;
  const char *word;
  /// TOML text of the value; empty where `note` says all.
  const char *write;
  const char *note = "";
};

std::span<const ForeignKey> foreignKeys();
std::span<const ForeignValue> foreignValues();

/// `; write mesh.axes = ["tp=8"]` where 8 stands behind the word, or nothing of
/// a word that none of the tools has.
std::string hintOfKey(const std::string &path, const Value &value);
std::string hintOfValue(const std::string &key, const Value &value);

/// Letters and digits alone, in lower case: "Interleaved-1F1B" and
/// "interleaved_1f1b" are one word.
std::string plainOf(std::string_view word);

} // namespace meshwork::spec
