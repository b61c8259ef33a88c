// One cell of a table as text.
#include "lib/Schedules/Csv.h"
#include "lib/Schedules/CsvParts.h"

#include "absl/strings/str_cat.h"
#include "meshwork/Text/Escape.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace meshwork::schedules {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  size_t begin = std::min(text.find_first_not_of(space), text.size());
  return text.substr(begin, text.find_last_not_of(space) + 1 - begin);
}

namespace {

/// Spellings besides those of `letters`: PyTorch's, short and long.
constexpr std::array<std::pair<std::string_view, Kind>, 4> otherSpellings = {{
    {"FORWARD", Kind::forward},
    {"FULL_BACKWARD", Kind::backward},
    {"BACKWARD_INPUT", Kind::inputGrad},
    {"BACKWARD_WEIGHT", Kind::weightGrad},
}};

std::optional<Kind> kindOf(std::string_view word) {
  for (auto kind = Kind::forward; kind <= Kind::recvBackward;
       kind = static_cast<Kind>(static_cast<int>(kind) + 1))
    if (word == letters(kind))
      return kind;
  for (auto [spelling, kind] : otherSpellings)
    if (word == spelling)
      return kind;
  return std::nullopt;
}

/// What happens to a stage's parameters: no work of a microbatch.
bool isOfParameters(std::string_view word) {
  constexpr std::array<std::string_view, 6> words = {
      "GATHER", "FREE", "REDUCE", "UNSHARD", "RESHARD", "REDUCE_GRAD"};
  return std::ranges::find(words, word) != words.end();
}

std::string found(std::string_view cell, const std::string &expected) {
  return absl::StrCat("found ", quote(cell), ", expected ", expected);
}

/// The number that `digits` says, below `limit`.
bool readNumber(std::string_view digits, int32_t limit, int32_t &number) {
  const char *end = digits.data() + digits.size();
  auto [stopped, error] = std::from_chars(digits.data(), end, number);
  return error == std::errc() && stopped == end && number >= 0 &&
         number < limit;
}

/// `2F0` in its three parts.
struct Parts {
  std::string_view stage, kind, microbatch;

  explicit Parts(std::string_view cell) {
    stage = cell.substr(0, cell.find_first_not_of("0123456789"));
    cell.remove_prefix(stage.size());
    size_t letters = cell.find_last_not_of("0123456789") + 1;
    kind = cell.substr(0, letters);
    microbatch = cell.substr(letters);
  }
};

/// Of `2F0`, whose kind is known.
std::string readNumbers(std::string_view cell, const Parts &parts,
                        Action &action) {
  if (!readNumber(parts.stage, maxCsvStages, action.stage))
    return found(cell, absl::StrCat("a stage below ", maxCsvStages));
  if (parts.microbatch.empty())
    return found(cell, "a microbatch at its end, such as 2F0");
  if (!readNumber(parts.microbatch, maxCsvMicrobatches, action.microbatch))
    return found(cell, absl::StrCat("a microbatch below ", maxCsvMicrobatches));
  return "";
}

std::string readAction(std::string_view cell, std::vector<Action> &actions,
                       size_t &passedOver) {
  Parts parts(cell);
  if (parts.stage.empty() || parts.kind.empty())
    return found(cell, "a stage, a kind and a microbatch such as 2F0");
  if (std::optional<Kind> kind = kindOf(parts.kind))
    return readNumbers(cell, parts, actions.emplace_back(Action{*kind}));
  if (!isOfParameters(parts.kind))
    return found(cell, "a kind among F, B, I, W, SEND_F, RECV_F, SEND_B, "
                       "RECV_B");
  ++passedOver;
  int32_t unused;
  if (!readNumber(parts.stage, maxCsvStages, unused))
    return found(cell, absl::StrCat("a stage below ", maxCsvStages));
  return parts.microbatch.empty()
             ? ""
             : found(cell, "no microbatch, such as 2UNSHARD");
}

/// `(a;b)OVERLAP_F_B`, `(a;b)BATCH`.
std::string readGroup(std::string_view cell, std::vector<Action> &actions,
                      size_t &passedOver) {
  size_t close = cell.find(')');
  std::string_view word =
      close == cell.npos ? "" : trimmed(cell.substr(close + 1));
  if (word != "OVERLAP_F_B" && word != "BATCH")
    return found(cell, "(0F1;1B0)OVERLAP_F_B, or (0SEND_F1;0RECV_B0)BATCH");
  std::string_view inside = cell.substr(1, close - 1);
  size_t first = actions.size();
  for (size_t end = 0; end != inside.npos;) {
    end = inside.find(';');
    std::string wrong =
        readAction(trimmed(inside.substr(0, end)), actions, passedOver);
    if (!wrong.empty())
      return wrong;
    inside.remove_prefix(end == inside.npos ? 0 : end + 1);
  }
  for (size_t at = first; at + 1 < actions.size(); ++at)
    actions[at].withNext = true;
  return "";
}

/// How far a rank is with one stage.
struct Progress {
  int32_t nextForward = 0;
  /// Microbatches that wait for B or I, and for W.
  std::set<int32_t> forward, inputGrad;

  void add(const Action &action) {
    if (action.kind == Kind::forward) {
      nextForward = std::max(nextForward, action.microbatch + 1);
      forward.insert(action.microbatch);
    } else if (action.kind == Kind::weightGrad) {
      inputGrad.erase(action.microbatch);
    } else if (isCompute(action.kind)) {
      forward.erase(action.microbatch);
      if (action.kind == Kind::inputGrad)
        inputGrad.insert(action.microbatch);
    }
  }

  void tell(int32_t stage, std::string &to) const {
    absl::StrAppend(&to, to.empty() ? "" : ", ", stage, "F", nextForward);
    if (!forward.empty())
      absl::StrAppend(&to, ", ", stage, "B", *forward.begin(), ", ", stage, "I",
                      *forward.begin());
    if (!inputGrad.empty())
      absl::StrAppend(&to, ", ", stage, "W", *inputGrad.begin());
  }
};

} // namespace

std::string readCell(std::string_view cell, std::vector<Action> &actions,
                     size_t &passedOver) {
  if (cell.starts_with('('))
    return readGroup(cell, actions, passedOver);
  return readAction(cell, actions, passedOver);
}

std::string legalAfter(const std::vector<Action> &before) {
  constexpr size_t mostStages = 4;
  std::map<int32_t, Progress> stages;
  for (const Action &action : before)
    if (stages.size() < mostStages || stages.contains(action.stage))
      stages[action.stage].add(action);
  std::string result;
  for (const auto &[stage, progress] : stages)
    progress.tell(stage, result);
  return result;
}

} // namespace meshwork::schedules
