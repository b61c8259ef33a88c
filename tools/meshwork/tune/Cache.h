// What earlier searches found, in one file: bodies and specs that were compiled
// without code, by all that they depend on. A line of the file is a key, a
// hash of the result, and the result. Lines that are damaged count as absent.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace meshwork::tune {

/// The key of a result: a hash of this program's own file and of `content`,
/// which tells what is compiled, for what and how.
std::string cacheKey(const std::string &content);

class Cache {
public:
  /// `path` "": what is found is known until the end alone.
  explicit Cache(std::string path) : path(std::move(path)) {}

  /// Reads the file, if there is one. What was not written by this class is
  /// refused, so that it is not written over. Messages go to stderr; an exit
  /// code.
  int read();
  /// Writes it, if anything is new; as read().
  int write();

  /// Null: not known.
  const std::string *find(const std::string &key) const;
  void add(const std::string &key, const std::string &result);

private:
  std::string path;
  std::map<std::string, std::string> results;
  bool isChanged = false;
};

} // namespace meshwork::tune
