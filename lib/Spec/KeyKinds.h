// Kinds of keys: what most keys share. Internal to lib/Spec.
#pragma once

#include "lib/Spec/Keys.h"
#include "lib/Spec/Words.h"

namespace meshwork::spec {

using Strings = std::vector<std::string>;

/// `"a", "b" or "c"`.
std::string listed(const Strings &choices);

/// The values of target.arch that mean something for a device.
Strings architectures(Device device);

/// A needed whole number from 1 to 2^31 - 1.
Key count(const char *section, const char *name, uint32_t &(*field)(Spec &));

/// A whole number from `least` to `most`; not printed where `show` has none.
Key wholeNumber(const char *section, const char *name, uint32_t least,
                uint32_t most, std::function<void(Spec &, uint32_t)> store,
                std::function<std::optional<uint32_t>(const Spec &)> show);

/// A finite number; not printed where `show` has none.
Key number(const char *section, const char *name, const char *expected,
           bool (*legal)(double), std::function<void(Spec &, double)> store,
           std::function<std::optional<double>(const Spec &)> show);

/// true or false, stored as 1 or 0; not printed where `show` has none.
Key onOrOff(const char *section, const char *name,
            std::function<void(Spec &, double)> store,
            std::function<std::optional<double>(const Spec &)> show);

/// For messages, of a size without bounds.
inline constexpr const char *anySize =
    R"(a size with its unit like "20 GiB" (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB))";

/// A size with its unit, from `least` to `most` bytes; not printed where `show`
/// has none.
Key size(const char *section, const char *name, const char *expected,
         uint64_t least, uint64_t most,
         std::function<void(Spec &, uint64_t)> store,
         std::function<std::optional<uint64_t>(const Spec &)> show);

/// Keys of sections: [mesh], [batch] and [shard]; [zero], [context] and
/// [pipeline]; [experts]; [offload]; [optimizer], and its groups.
void addMeshKeys(std::vector<Key> &keys);
void addParallelKeys(std::vector<Key> &keys);
void addExpertKeys(std::vector<Key> &keys);
void addOffloadKeys(std::vector<Key> &keys);
void addOptimizerKeys(std::vector<Key> &keys);
void addGroupKeys(std::vector<Key> &keys);

/// One of `choices`; `store` and `show` may be empty for a key without a place.
Key choice(const char *section, const char *name, Strings choices,
           std::function<void(Spec &, const std::string &)> store,
           std::function<std::string(const Spec &)> show);

/// One of an enumeration's words.
template <typename E>
Key word(const char *section, const char *name, E &(*field)(Spec &)) {
  Strings choices;
  for (const Word<E> &one : words<E>())
    choices.push_back(one.text);
  return choice(
      section, name, std::move(choices),
      [field](Spec &spec, const std::string &text) {
        field(spec) = *readWord<E>(text);
      },
      [field](const Spec &spec) -> std::string {
        return wordOf(field(const_cast<Spec &>(spec)));
      });
}

/// A key of each table of an array of tables.
struct Column {
  std::string name;
  bool isNeeded;
  /// "expected ..." where the value is none that it takes, else "".
  std::string (*expected)(const Value &);
};
/// Of tables with these columns; `names` lists them for messages: "name and
/// dims". Adds unknown keys, values that do not fit, and keys that are missing.
void addTableMistakes(const Value &table, const std::vector<Column> &columns,
                      const std::string &names, std::vector<Mistake> &to);

/// A choice of which this version obeys only `supported`.
Key onlyOne(const char *section, const char *name, Strings choices,
            std::string supported);

/// A key that is only checked.
Key checked(const char *section, const char *name, const char *expected,
            bool (*legal)(const Value &));

/// `key`, which this version never obeys; `instead` is the way out.
Key refused(Key key, const char *instead);

} // namespace meshwork::spec
