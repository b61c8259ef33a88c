// A line of expect.collectives: how often ranks may meet.
//
//   KIND[(AXIS, ...)] <= | == | >= N [per layer | per microbatch | per step]
//   no KIND[(AXIS, ...)]
// and then, for either, [in forward | backward | update].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwork::spec {

struct CollectiveBudget {
  enum class Compare { atMost, equal, atLeast };
  enum class Per { step, microbatch, layer };
  std::string text;              // as written
  std::string place;             // where: "spec.toml:20:16"
  std::string kind;              // all_reduce, all_gather, ...
  std::vector<std::string> axes; // that a collective has at least; none: any
  Compare compare = Compare::equal;
  uint64_t count = 0;
  Per per = Per::step;
  std::string phase; // forward, backward, update; "" for all

  bool allows(uint64_t found, uint64_t units) const;
};

/// Nothing, and why in `error`, when `text` is no budget.
std::optional<CollectiveBudget> parseBudget(std::string_view text,
                                            std::string &error);

} // namespace meshwork::spec
