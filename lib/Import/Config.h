// Typed reading of a configuration's keys, remembering which were read.
// Internal to lib/Import.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/Import/Json.h"

namespace meshwork::importer {

/// Getters report what is wrong and return something legal, so that reading
/// goes on to the next problem.
class Config {
public:
  /// `prefix` is put before keys in messages, as in "rope_scaling.".
  Config(const Json &object, std::string filename, std::string prefix,
         Diagnostics &diagnostics);

  /// Null when the key is missing. Marks it as read.
  const Json *find(const std::string &key);
  /// Of two names of one thing the one that the file uses, `key` if none. An
  /// error when it has both and they differ.
  std::string either(const std::string &key, const std::string &alias);
  /// Missing or null.
  bool isNull(const std::string &key);

  /// From 1 to 2^31 - 1; an error when missing.
  int64_t size(const std::string &key);
  /// The same, or `fallback` when missing or null.
  int64_t sizeOr(const std::string &key, int64_t fallback);
  bool boolean(const std::string &key, bool fallback);
  /// Above zero and finite, or `fallback` when missing or null.
  double positive(const std::string &key, double fallback);
  /// The same; an error when missing.
  double positive(const std::string &key);
  /// 0 or above, or `fallback`.
  double notNegative(const std::string &key, double fallback);
  /// A dropout rate: 0 <= rate < 1.
  double rate(const std::string &key, double fallback);
  /// One of `choices`; the first when missing.
  std::string choice(const std::string &key,
                     const std::vector<std::string> &choices);

  void error(const std::string &key, const std::string &message);
  void warning(const std::string &key, const std::string &message);
  /// Of what is right, and easily forgotten.
  void note(const std::string &key, const std::string &message);
  /// Keys that were looked for, in the file or not.
  std::vector<std::string> lookedFor() const {
    return {read.begin(), read.end()};
  }
  /// Keys nobody has read.
  std::vector<std::string> unread() const;

private:
  void add(Severity severity, const std::string &key,
           const std::string &message);
  double numberOr(const std::string &key, double fallback, const char *expected,
                  bool (*legal)(double));
  void expected(const std::string &key, const Json &found,
                const std::string &what);

  const Json &object;
  std::string filename, prefix;
  Diagnostics &diagnostics;
  std::map<std::string_view, const Json *> members;
  std::set<std::string> read;
};

} // namespace meshwork::importer
