// A line each: "failed CODE WHY", "file NAME BYTES HASH...", "box TENSOR STATE
// FILE OFFSET BEGIN... EXTENT...".
#include "runtime/save/SaveEntries.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "lib/Plan/Checked.h"

namespace meshwork::runtime {
namespace {
using Words = std::vector<std::string>;

absl::Status wrong(absl::string_view line) {
  return absl::InternalError(absl::StrCat("a rank tells of its checkpoint: '",
                                          line.substr(0, 80), "'"));
}

bool readNumbers(const Words &words, std::vector<uint64_t> &numbers) {
  numbers.resize(words.size() - 1);
  bool good = true;
  for (size_t i = 1; i < words.size(); ++i)
    good &= absl::SimpleAtoi(words[i], &numbers[i - 1]);
  return good;
}

bool readFile(const Words &words, SaveEntries &entries) {
  StoredFile file;
  if (words.size() < 3 || !absl::SimpleAtoi(words[2], &file.bytes))
    return false;
  file.name = words[1];
  file.hashes.assign(words.begin() + 3, words.end());
  entries.files.push_back(std::move(file));
  return true;
}

bool readBox(const Words &words, SaveEntries &entries) {
  std::vector<uint64_t> numbers;
  if (words.size() < 5 || words.size() % 2 == 0 || !readNumbers(words, numbers))
    return false;
  auto dims = static_cast<int64_t>((numbers.size() - 4) / 2);
  auto first = numbers.begin() + 4;
  SaveEntries::Entry box{static_cast<uint32_t>(numbers[0]),
                         static_cast<uint32_t>(numbers[1]),
                         static_cast<uint32_t>(numbers[2]),
                         numbers[3],
                         {first, first + dims},
                         {first + dims, numbers.end()}};
  entries.boxes.push_back(std::move(box));
  return true;
}
} // namespace

std::string entriesText(const SaveEntries &entries) {
  if (!entries.status.ok())
    return absl::StrCat(
        "failed ", entries.status.raw_code(), " ",
        absl::StrReplaceAll(entries.status.message(), {{"\n", " "}}), "\n");
  std::string text;
  for (const StoredFile &file : entries.files)
    absl::StrAppend(&text, "file ", file.name, " ", file.bytes,
                    file.hashes.empty() ? "" : " ",
                    absl::StrJoin(file.hashes, " "), "\n");
  for (const SaveEntries::Entry &box : entries.boxes)
    absl::StrAppend(&text, "box ", box.tensor, " ", box.state, " ", box.file,
                    " ", box.offset, box.begin.empty() ? "" : " ",
                    absl::StrJoin(box.begin, " "), box.begin.empty() ? "" : " ",
                    absl::StrJoin(box.extent, " "), "\n");
  return text;
}

absl::StatusOr<SaveEntries> parseEntries(const std::string &text) {
  SaveEntries entries;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    Words words = absl::StrSplit(line, ' ');
    int code = 0;
    if (words[0] == "failed" && words.size() > 2 &&
        absl::SimpleAtoi(words[1], &code) && code > 0 && code < 17)
      entries.status =
          absl::Status(static_cast<absl::StatusCode>(code),
                       line.substr(words[0].size() + words[1].size() + 2));
    else if (!(words[0] == "file" && readFile(words, entries)) &&
             !(words[0] == "box" && readBox(words, entries)))
      return wrong(line);
  }
  return entries;
}

} // namespace meshwork::runtime
