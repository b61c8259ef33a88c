// What actions take, as a user writes it down:
//
//   forward = 18.5              # the same for all virtual stages
//   input_grad = [18.1, 20.4]   # or one for each
//   weight_grad = 9.3
//   transfer = 0.6              # over each edge between stages; 0 without it
#ifndef MESHWORK_LIB_SCHEDULES_COSTFILE_H
#define MESHWORK_LIB_SCHEDULES_COSTFILE_H

#include "lib/Schedules/Table.h"
#include "lib/Spec/Diagnostic.h"

#include <optional>
#include <string>
#include <string_view>

namespace meshwork::schedules {

/// No time is longer: sums of them stay finite.
constexpr double longestTime = 1e15;

struct CostsResult {
  std::optional<Costs> costs;
  Diagnostics diagnostics;
};

/// Reads TOML for a pipeline of `stages` virtual stages. A list has one time
/// for each; that of transfers may end with the last edge, one less.
CostsResult readCosts(std::string_view text, const std::string &filename,
                      size_t stages);

/// F, I and W take 1, transfers no time.
Costs unitCosts(size_t stages);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_COSTFILE_H
