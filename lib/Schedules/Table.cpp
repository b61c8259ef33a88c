#include "lib/Schedules/Table.h"

#include <array>

namespace meshwork::schedules {

std::string_view letters(Kind kind) {
  constexpr std::array<std::string_view, 8> all = {
      "F", "B", "I", "W", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};
  auto which = static_cast<size_t>(kind);
  return which < all.size() ? all[which] : "?";
}

bool isCompute(Kind kind) { return kind <= Kind::weightGrad; }

double workTime(const Costs &costs, Kind kind, size_t stage) {
  switch (kind) {
  case Kind::forward:
    return costs.forward[stage];
  case Kind::backward:
    return costs.backward.empty()
               ? costs.inputGrad[stage] + costs.weightGrad[stage]
               : costs.backward[stage];
  case Kind::inputGrad:
    return costs.inputGrad[stage];
  case Kind::weightGrad:
    return costs.weightGrad[stage];
  default:
    return 0;
  }
}

} // namespace meshwork::schedules
