#include "lib/Schedules/Faults.h"

#include "lib/Schedules/Csv.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace meshwork::schedules {

// More than a screen of them helps nobody.
constexpr size_t mostShown = 20;

void Faults::at(size_t rank, size_t position, const std::string &what) {
  add(absl::StrCat("rank ", rank, ", action ", position + 1, " (",
                   text(table.ranks[rank][position]), "): ", what));
}

void Faults::add(std::string what) {
  if (count++ < mostShown)
    first.push_back(std::move(what));
}

absl::Status Faults::status() const {
  if (none())
    return absl::OkStatus();
  std::string all = absl::StrJoin(first, "\n");
  if (count > first.size())
    absl::StrAppend(&all, "\nand ", count - first.size(), " more errors");
  return absl::InvalidArgumentError(all);
}

} // namespace meshwork::schedules
