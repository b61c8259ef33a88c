// Whether two patterns can name the same tensor. Names are looked up, not
// compared in pairs: a name is of a pattern if it becomes its text when one of
// its numbers is replaced by the mark. Two patterns that count different parts
// of a name may meet if they become one text when both parts are replaced.
#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "lib/Plan/FileForms.h"
#include <algorithm>
#include <map>

namespace meshwork::plan {
namespace {
/// Part of a name between dots that is a number.
struct Number {
  size_t begin, length;
  int64_t value;
};

bool isNumber(std::string_view part) {
  return !part.empty() && part.size() < 11 &&
         (part.size() == 1 || part[0] != '0') &&
         std::all_of(
             part.begin(), part.end(),
             [](char c) { return c >= '0' && c <= '9'; });
}

/// A name with more of them is of no pattern.
std::vector<Number> numbersIn(std::string_view name) {
  std::vector<Number> numbers;
  for (size_t begin = 0;
       begin < name.size() && numbers.size() < size_t{mostNameParts};) {
    size_t end = std::min(name.find('.', begin), name.size());
    Number number{begin, end - begin, 0};
    std::string_view part = name.substr(begin, end - begin);
    if (isNumber(part) && absl::SimpleAtoi(std::string(part), &number.value))
      numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

std::string marked(std::string_view name, const Number &number) {
  std::string text(name);
  return text.replace(number.begin, number.length, numberMark);
}

/// Numbers of patterns of one text, which do not meet.
class Runs {
public:
  /// Some entry that has one of the numbers.
  std::optional<size_t> find(int64_t first, int64_t end) const {
    auto after = runs.lower_bound(end);
    if (after == runs.begin() || std::prev(after)->second.end <= first)
      return std::nullopt;
    return std::prev(after)->second.entry;
  }
  /// Runs that meet become one.
  void add(int64_t first, int64_t end, size_t entry) {
    for (auto at = runs.lower_bound(first);
         at != runs.end() && at->first < end;) {
      end = std::max(end, at->second.end);
      at = runs.erase(at);
    }
    auto after = runs.lower_bound(first);
    if (after != runs.begin() && std::prev(after)->second.end > first)
      std::prev(after)->second.end =
          std::max(std::prev(after)->second.end, end);
    else
      runs[first] = {end, entry};
  }

private:
  struct Run {
    int64_t end;
    size_t entry;
  };
  std::map<int64_t, Run> runs; // by the first number
};

using Found = std::optional<size_t>;

/// Names that are written, or those that are read alone.
class NameSet {
public:
  void add(const PieceNames &piece, size_t entry) {
    if (piece.count == 0)
      plain.try_emplace(piece.pattern, entry);
    else
      counted[piece.pattern].add(piece.first, piece.first + piece.count, entry);
  }
  Found find(const PieceNames &piece) const {
    return piece.count == 0
               ? findName(piece.pattern)
               : findRun(piece.pattern, piece.first, piece.first + piece.count);
  }

private:
  Found findRun(const std::string &text, int64_t first, int64_t end) const {
    auto found = counted.find(text);
    return found == counted.end() ? Found() : found->second.find(first, end);
  }
  Found findName(const std::string &name) const {
    if (auto found = plain.find(name); found != plain.end())
      return found->second;
    if (counted.empty())
      return Found();
    for (const Number &number : numbersIn(name))
      if (Found found =
              findRun(marked(name, number), number.value, number.value + 1))
        return found;
    return Found();
  }

  absl::flat_hash_map<std::string, size_t> plain;
  absl::flat_hash_map<std::string, Runs> counted;
};

/// Patterns by their text with one more number replaced, and which part of it
/// is the one that they count.
class Crossings {
public:
  /// An entry that counts another part of the same text.
  Found add(const PieceNames &piece, size_t entry) {
    size_t own = piece.pattern.find(numberMark);
    for (const Number &number : numbersIn(piece.pattern)) {
      bool isBefore = number.begin < own;
      auto [known, isNew] = seen.try_emplace(marked(piece.pattern, number),
                                             Seen{isBefore, entry});
      if (!isNew && known->second.isBefore != isBefore)
        return known->second.entry;
    }
    return Found();
  }

private:
  struct Seen {
    bool isBefore; // the replaced number stands before the counted one
    size_t entry;
  };
  absl::flat_hash_map<std::string, Seen> seen;
};
} // namespace

PieceNames namesOf(const FilePieceT &piece, bool isWritten) {
  return {piece.pattern, piece.first, piece.counted < 0 ? 0 : tensorsOf(piece),
          isWritten};
}

void addNames(const std::vector<FileForm> &forms,
              std::vector<PieceNames> &names) {
  for (size_t i = 0; i < forms.size(); ++i)
    for (const FilePieceT &piece : forms[i])
      names.push_back(namesOf(piece, i == 0));
}

std::optional<SameName> findSameName(absl::Span<const PieceNames> names) {
  NameSet written, readAlone;
  Crossings crossings;
  // Names are looked up among patterns, so patterns come first.
  for (bool isName : {false, true})
    for (size_t i = 0; i < names.size(); ++i) {
      const PieceNames &piece = names[i];
      if ((piece.count == 0) != isName)
        continue;
      Found found = written.find(piece);
      if (!found && piece.isWritten)
        found = readAlone.find(piece);
      if (!found && !isName)
        found = crossings.add(piece, i);
      if (found)
        return SameName{*found, i};
      (piece.isWritten ? written : readAlone).add(piece, i);
    }
  return std::nullopt;
}

} // namespace meshwork::plan
