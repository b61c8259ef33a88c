#include "lib/Import/Config.h"

#include <algorithm>
#include <cmath>

namespace meshwork::importer {

Config::Config(const Json &object, std::string filename, std::string prefix,
               Diagnostics &diagnostics)
    : object(object), filename(std::move(filename)), prefix(std::move(prefix)),
      diagnostics(diagnostics) {
  for (size_t i = 0; i < object.keys.size(); ++i)
    members.emplace(object.keys[i], &object.items[i]);
}

const Json *Config::find(const std::string &key) {
  read.insert(key);
  auto found = members.find(key);
  return found == members.end() ? nullptr : found->second;
}

bool Config::isNull(const std::string &key) {
  const Json *value = find(key);
  return !value || value->kind == Json::Kind::null;
}

std::string Config::either(const std::string &key, const std::string &alias) {
  bool hasKey = !isNull(key), hasAlias = !isNull(alias);
  if (hasKey && hasAlias && find(key)->found() != find(alias)->found())
    error(alias, "found " + find(alias)->found() + ", but " + key + " is " +
                     find(key)->found() + "; they are one size, keep " + key);
  return hasAlias && !hasKey ? alias : key;
}

void Config::add(Severity severity, const std::string &key,
                 const std::string &message) {
  diagnostics.push_back(
      {severity, {filename, 0, 0}, prefix + key + ": " + message});
}

void Config::error(const std::string &key, const std::string &message) {
  add(Severity::error, key, message);
}

void Config::warning(const std::string &key, const std::string &message) {
  add(Severity::warning, key, message);
}

void Config::note(const std::string &key, const std::string &message) {
  add(Severity::note, key, message);
}

void Config::expected(const std::string &key, const Json &found,
                      const std::string &what) {
  error(key, "found " + found.found() + ", expected " + what);
}

int64_t Config::size(const std::string &key) {
  const Json *value = find(key);
  if (!value) {
    error(key, "missing, expected a whole number from 1 to 2147483647");
    return 1;
  }
  if (value->kind == Json::Kind::integer && value->integer >= 1 &&
      value->integer <= INT32_MAX)
    return value->integer;
  expected(key, *value, "a whole number from 1 to 2147483647");
  return 1;
}

int64_t Config::sizeOr(const std::string &key, int64_t fallback) {
  return isNull(key) ? fallback : size(key);
}

bool Config::boolean(const std::string &key, bool fallback) {
  if (isNull(key))
    return fallback;
  const Json *value = find(key);
  if (value->kind == Json::Kind::boolean)
    return value->boolean;
  expected(key, *value, "true or false");
  return fallback;
}

double Config::numberOr(const std::string &key, double fallback,
                        const char *what, bool (*legal)(double)) {
  if (isNull(key))
    return fallback;
  const Json *value = find(key);
  if (value->isNumber() && std::isfinite(value->number) && legal(value->number))
    return value->number;
  expected(key, *value, what);
  return fallback;
}

double Config::positive(const std::string &key, double fallback) {
  return numberOr(key, fallback, "a number above 0",
                  [](double v) { return v > 0; });
}

double Config::positive(const std::string &key) {
  if (isNull(key)) {
    error(key, "missing, expected a number above 0");
    return 1;
  }
  return positive(key, 1);
}

double Config::notNegative(const std::string &key, double fallback) {
  return numberOr(key, fallback, "a number from 0",
                  [](double v) { return v >= 0; });
}

double Config::rate(const std::string &key, double fallback) {
  return numberOr(key, fallback, "a rate from 0 to below 1",
                  [](double v) { return v >= 0 && v < 1; });
}

std::string Config::choice(const std::string &key,
                           const std::vector<std::string> &choices) {
  if (isNull(key))
    return choices.front();
  const Json *value = find(key);
  if (value->kind == Json::Kind::string &&
      std::find(choices.begin(), choices.end(), value->text) != choices.end())
    return value->text;
  std::string listed;
  for (const std::string &choice : choices)
    listed += (listed.empty() ? "" : ", ") + quote(choice);
  expected(key, *value, "one of " + listed);
  return choices.front();
}

std::vector<std::string> Config::unread() const {
  std::vector<std::string> keys;
  for (const std::string &key : object.keys)
    if (!read.contains(key))
      keys.push_back(key);
  return keys;
}

} // namespace meshwork::importer
