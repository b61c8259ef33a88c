// The options of a run, in one table. `meshwork-run --help`, what the processes
// of a run must agree on, and the table in tools/meshwork-run/README.md come
// from it.
//
//   RunOptions options;
//   for (const OptionRow &row : optionTable())
//     if (auto *text = std::get_if<std::string *>(&row.field(options)))
//       **text = ...;
#pragma once

#include "absl/types/span.h"
#include "meshwork/Runtime/Run.h"
#include <string>
#include <variant>
#include <vector>

namespace meshwork::runtime {

/// Where a value goes. A `bool` is a flag: given, it becomes the opposite of
/// its default. What goes to a list may be given several times.
using OptionField =
    std::variant<bool *, int *, uint32_t *, uint64_t *, double *, std::string *,
                 std::vector<std::string> *, std::optional<uint32_t> *,
                 LearningRate::Shape *, RunOptions::Transport *>;

/// A word that an option takes, and the enumerator that it stands for.
struct OptionChoice {
  const char *name;
  int value = 0; // not of a string, which holds the word
};

struct OptionRow {
  const char *name;      // "--steps"; "-n,--ranks"
  const char *valueName; // "N"; empty of a flag and where words are listed
  const char *help;
  OptionField (*field)(RunOptions &options);
  int64_t least = 0, most = INT32_MAX; // of whole numbers
  double lowest = 1e-30,
         highest = 3.4e38; // of other numbers: what f32 can hold
  bool isPositive = false; // of these; else 0 is one too
  absl::Span<const OptionChoice> choices = {};
  const char *needs = nullptr; // an option above, without which it does nothing
  const char *orNeeds = nullptr;  // or this one, where that is given instead
  const char *excludes = nullptr; // an option above
  bool showsDefault = false;
  /// Whether all processes of a run must be given the same.
  bool isShared = false;
  /// Whether all must be given it or none, each by its own path.
  bool isGivenByAll = false;
  /// Whether the numbers of a run depend on it, on one mesh or another: a run
  /// that resumes names it when it has changed.
  bool decidesNumbers = false;
  /// The heading of `--help` that it stands under, by options/Groups.h.
  const char *group = nullptr;
};

/// In the order of `--help`.
absl::Span<const OptionRow> optionTable();

/// The options that all processes must share, as they could be given: "--steps
/// 3", "--seed 1". Numbers always, the others where they are given; of files
/// that may lie elsewhere the option alone, of --then the step too.
std::vector<std::string> sharedOptions(const RunOptions &options);

/// Whether a number that is not whole may be given: neither NaN nor infinity,
/// nor one that would do nothing or too much.
bool isAllowed(const OptionRow &row, double value);
/// "0, or a number from 1e-30 to 3.4e+38"
std::string allowedNumbers(const OptionRow &row);

/// "0.001", of --lr; "" where it need not be given.
std::string optionValue(const OptionRow &row, const RunOptions &options);

} // namespace meshwork::runtime
