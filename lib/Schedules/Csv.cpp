#include "lib/Schedules/Csv.h"
#include "lib/Schedules/CsvParts.h"
#include "lib/Schedules/Live.h"

#include "absl/strings/str_cat.h"
#include "meshwork/Text/Counted.h"

#include <limits>

namespace meshwork::schedules {

std::string text(const Action &action) {
  std::string result = std::to_string(action.stage);
  result += letters(action.kind);
  return result + std::to_string(action.microbatch);
}

namespace {

void appendGroup(std::string &to, const std::vector<Action> &row, size_t begin,
                 size_t end) {
  bool computes = true;
  to += '(';
  for (size_t at = begin; at < end; ++at) {
    absl::StrAppend(&to, at == begin ? "" : ";", text(row[at]));
    computes &= isCompute(row[at].kind);
  }
  to += computes ? ")OVERLAP_F_B" : ")BATCH";
}

void appendRow(std::string &to, const std::vector<Action> &row) {
  for (size_t at = 0, end = 0; at < row.size(); at = end) {
    end = endOfGroup(row, at);
    to += at == 0 ? "" : ",";
    if (end - at == 1)
      to += text(row[at]);
    else
      appendGroup(to, row, at, end);
  }
  to += '\n';
}

/// Takes what stands before `separator`, and the separator, from `text`.
std::string_view takeUntil(std::string_view &text, char separator) {
  size_t end = text.find(separator);
  std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return taken;
}

std::string_view withoutQuotes(std::string_view cell) {
  cell = trimmed(cell);
  if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
    cell = trimmed(cell.substr(1, cell.size() - 2));
  return cell;
}

class Reader {
public:
  Reader(std::string_view name) : errors(name) {}
  size_t passedOver = 0;

  absl::StatusOr<Table> read(std::string_view text) {
    readRows(text);
    if (errors.none())
      complete(result, errors);
    if (!errors.none())
      return errors.status();
    return std::move(result.table);
  }

private:
  CsvErrors errors;
  CsvTable result;

  void readRows(std::string_view text) {
    if (text.starts_with(
            "\xef\xbb\xbf")) // the mark that some editors begin with
      text.remove_prefix(3);
    text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    if (text.empty())
      return errors.add("found no action, expected a line for each rank");
    for (int32_t rank = 0; !text.empty(); ++rank) {
      if (rank == maxCsvRanks)
        return errors.add(
            absl::StrCat("found more than ", maxCsvRanks, " lines (ranks)"));
      readRow(takeUntil(text, '\n'));
    }
  }

  void readRow(std::string_view line) {
    size_t rank = result.table.ranks.size();
    std::vector<Action> &row = result.table.ranks.emplace_back();
    std::vector<uint32_t> &cells = result.cells.emplace_back();
    for (uint32_t at = 0; !line.empty(); ++at) {
      if (at == std::numeric_limits<uint32_t>::max())
        return errors.add(rank, at, "found too many cells");
      readOne(withoutQuotes(takeUntil(line, ',')), rank, at);
      cells.resize(row.size(), at);
    }
    if (row.empty() && errors.none())
      errors.add(rank, 0, "found no action, expected those of a rank");
  }

  void readOne(std::string_view cell, size_t rank, uint32_t at) {
    if (cell.empty())
      return;
    std::vector<Action> &row = result.table.ranks[rank];
    size_t before = row.size();
    std::string wrong = readCell(cell, row, passedOver);
    if (wrong.empty())
      return;
    row.resize(before);
    if (errors.full())
      return errors.add(wrong);
    std::string legal = legalAfter(row);
    errors.add(rank, at,
               legal.empty() ? wrong : wrong + "; legal here: " + legal);
  }
};

} // namespace

std::string csv(const Table &table) {
  std::string result;
  for (const std::vector<Action> &row : table.ranks)
    appendRow(result, row);
  return result;
}

absl::StatusOr<Table> parseCsv(std::string_view text, std::string_view name,
                               std::string *note) {
  Reader reader(name);
  absl::StatusOr<Table> table = reader.read(text);
  if (note && reader.passedOver > 0)
    *note = absl::StrCat(
        "passed over ", counted(reader.passedOver, "action"),
        " on parameters (GATHER, FREE, REDUCE and PyTorch's words for them): a "
        "plan places these itself");
  return table;
}

} // namespace meshwork::schedules
