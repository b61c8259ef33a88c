#include "lib/Explain/Names.h"
#include "absl/strings/str_cat.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/Why.h"
#include "lib/Plan/FileForms.h"
#include "lib/Plan/SavedTensors.h"
#include "lib/Plan/Views.h"
#include "lib/Spec/Diagnostic.h"
#include "meshwork/Text/Counted.h"
#include <set>
#include <vector>

namespace meshwork::explain {
namespace {
using plan::orEmpty;
using NameSet = std::set<std::string>;

NameSet parameterNames(const plan::Plan &plan) {
  NameSet names;
  for (const plan::Program *program : *plan.programs())
    for (const plan::Parameter *parameter : orEmpty(program->parameters()))
      if (parameter->name())
        names.insert(parameter->name()->str());
  return names;
}

NameSet bufferNames(const plan::Plan &plan) {
  NameSet names;
  for (const plan::Program *program : *plan.programs())
    for (const plan::Buffer *buffer : orEmpty(program->buffers()))
      if (buffer->name())
        names.insert(buffer->name()->str());
  return names;
}

/// "mlp.weight" ends "h.0.mlp.weight", and not "h.0.other_mlp.weight".
bool endsAtBoundary(std::string_view name, std::string_view end) {
  if (end.empty() || !name.ends_with(end) || name.size() == end.size())
    return false;
  char before = name[name.size() - end.size() - 1];
  return before == '.' || before == ' ' || before == '/';
}

bool isGlob(std::string_view query) {
  return query.find_first_of("*?") != std::string_view::npos;
}

std::vector<std::string> matches(const NameSet &names, std::string_view query) {
  bool glob = isGlob(query);
  std::vector<std::string> found;
  for (const std::string &name : names)
    if (glob ? matchesGlob(query, name) : endsAtBoundary(name, query))
      found.push_back(name);
  return found;
}

std::string listText(const std::vector<std::string> &names) {
  constexpr size_t shown = 6;
  std::string text;
  for (size_t i = 0; i < names.size() && i < shown; ++i)
    absl::StrAppend(&text, i ? ", " : "", clean(names[i]));
  if (names.size() > shown)
    absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return text;
}

absl::Status unknown(const NameSet &parameters, const NameSet &others,
                     std::string_view query) {
  std::vector<std::string> all(parameters.begin(), parameters.end()), similar;
  all.insert(all.end(), others.begin(), others.end());
  for (const std::string &name : all)
    if (!query.empty() && name.find(query) != std::string::npos)
      similar.push_back(name);
  std::string hint = similar.empty()
                         ? suggestion(query, all)
                         : absl::StrCat("; it is part of ", listText(similar));
  if (hint.empty())
    hint = absl::StrCat("; parameters are ",
                        listText({parameters.begin(), parameters.end()}));
  return absl::InvalidArgumentError(absl::StrCat(
      "no parameter, value or buffer is called ", quote(query), hint));
}

/// The parameter that a tensor in files is a part of.
std::optional<std::string> ownerOf(const plan::Plan &plan,
                                   std::string_view file) {
  for (const plan::Parameter *parameter : plan::distinctParameters(plan)) {
    if (orEmpty(parameter->files()).size() == 0)
      continue;
    for (const plan::FilePieceT &piece : plan::writtenForm(*parameter))
      if (plan::numberOf(piece, file))
        return parameter->name()->str();
  }
  return std::nullopt;
}
} // namespace

bool matchesGlob(std::string_view pattern, std::string_view name) {
  // On a mismatch the last '*' takes one character more; earlier ones never
  // need to.
  size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() &&
               (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

absl::StatusOr<std::vector<std::string>> findNames(const plan::Plan &plan,
                                                   std::string_view query) {
  NameSet parameters = parameterNames(plan), buffers = bufferNames(plan);
  Why why(plan);
  NameSet values(why.names().begin(), why.names().end());
  std::string whole(query);
  if (auto owner = ownerOf(plan, query); owner && !parameters.count(whole))
    return std::vector<std::string>{*owner};
  std::vector<std::string> found;
  for (const NameSet *names : {&parameters, &values, &buffers}) {
    if (!whole.empty() && names->count(whole))
      return std::vector<std::string>{whole};
    if (found.empty())
      found = matches(*names, query);
  }
  if (found.size() == 1 || (!found.empty() && isGlob(query)))
    return found;
  values.merge(buffers);
  if (found.empty())
    return unknown(parameters, values, query);
  return absl::InvalidArgumentError(absl::StrCat(
      quote(query), " means ", counted(found.size(), "value"), ": ",
      listText(found), "; name one of them, or all with a pattern, like ",
      quote("*" + std::string(query))));
}

} // namespace meshwork::explain
