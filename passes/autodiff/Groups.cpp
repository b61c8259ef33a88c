#include "passes/autodiff/Groups.h"

#include "dialects/transformer/FileForms.h"
#include "passes/analysis/SpecKey.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
namespace meshwork::autodiff {
using namespace transformer;

namespace {
/// A group with its glob.
struct Matcher {
  const spec::OptimizerGroup *group;
  llvm::GlobPattern glob;
  std::string key; // of the spec, for messages
  bool isUsed = false;

  InFlightDiagnostic error(mlir::Location at) const {
    return emitError(analysis::ofSpec(key, at)) << "'" << group->name << "' ";
  }
};

/// Of the tensors in files that a parameter is: how many there are, how many
/// match, and one of either kind.
struct Count {
  int64_t all = 0, matching = 0;
  std::string one, other;
};

Count countOf(ParameterOp parameter, const llvm::GlobPattern &glob) {
  Count count;
  std::vector<plan::FileForm> forms = formsOf(parameter);
  for (const plan::FilePieceT &piece : forms.front())
    for (int64_t i = 0; i < plan::tensorsOf(piece); ++i) {
      std::string name = plan::tensorName(piece, i);
      bool isMatch = glob.match(name);
      ++count.all;
      count.matching += isMatch;
      (isMatch ? count.one : count.other) = name;
    }
  return count;
}

FailureOr<bool> matches(ParameterOp parameter, Matcher &matcher) {
  Count count = countOf(parameter, matcher.glob);
  if (count.matching > 0 && count.matching < count.all)
    return matcher.error(parameter.getLoc())
           << "matches '" << count.one << "', but not '" << count.other
           << "': both are of one parameter, which is trained as one; match "
              "all "
              "of its tensors or none";
  matcher.isUsed |= count.matching > 0;
  return count.matching > 0;
}

FailureOr<std::vector<Matcher>>
matchersOf(ArrayRef<spec::OptimizerGroup> groups, mlir::Location at) {
  std::vector<Matcher> matchers;
  for (auto [i, group] : llvm::enumerate(groups)) {
    std::string key = "optimizer.groups[" + std::to_string(i) + "]";
    auto glob = llvm::GlobPattern::create(group.name);
    if (!glob)
      return emitError(analysis::ofSpec(key, at))
             << "'" << group.name
             << "' is no glob: " << llvm::toString(glob.takeError());
    matchers.push_back({&group, std::move(*glob), key});
  }
  return matchers;
}
} // namespace

FailureOr<Groups> Groups::of(ArrayRef<ParameterOp> parameters,
                             ArrayRef<spec::OptimizerGroup> given) {
  Groups groups;
  if (given.empty() || parameters.empty())
    return groups;
  ParameterOp first = parameters.front();
  mlir::Location at = first.getLoc();
  FailureOr<std::vector<Matcher>> matchers = matchersOf(given, at);
  if (failed(matchers))
    return failure();
  for (ParameterOp parameter : parameters)
    for (Matcher &matcher : *matchers) {
      FailureOr<bool> isMatch = matches(parameter, matcher);
      if (failed(isMatch))
        return failure();
      if (*isMatch)
        groups.found.try_emplace(parameter, matcher.group);
    }
  bool fine = true;
  for (const Matcher &matcher : *matchers)
    if (!matcher.isUsed) {
      matcher.error(at) << "matches no parameter that is trained; names are "
                           "those in files, like '"
                        << countOf(first, matcher.glob).other << "'";
      fine = false;
    }
  if (!fine)
    return failure();
  return groups;
}

} // namespace meshwork::autodiff
