// Which list of a plan an action of a table runs; the one table of both.
#pragma once

#include "lib/Schedules/Table.h"
#include "meshwork/Plan/Plan.h"

#include <iterator>
#include <optional>
#include <utility>

namespace meshwork::schedules {

inline constexpr std::pair<Kind, plan::ListKind> listKinds[] = {
    {Kind::forward, plan::ListKind::forward},
    {Kind::backward, plan::ListKind::backward},
    {Kind::inputGrad, plan::ListKind::input_grad},
    {Kind::weightGrad, plan::ListKind::weight_grad},
    {Kind::sendForward, plan::ListKind::send},
    {Kind::recvForward, plan::ListKind::recv},
    {Kind::sendBackward, plan::ListKind::send_grad},
    {Kind::recvBackward, plan::ListKind::recv_grad}};

/// Nothing for what is no list of a microbatch.
inline std::optional<Kind> kindOf(plan::ListKind list) {
  for (const auto &[kind, own] : listKinds)
    if (own == list)
      return kind;
  return std::nullopt;
}
static_assert(
    [] {
      for (size_t at = 0; at < std::size(listKinds); ++at)
        if (listKinds[at].first != static_cast<Kind>(at))
          return false;
      return true;
    }(),
    "listKindOf takes the entries in the order of Kind");

/// Each kind has one.
inline plan::ListKind listKindOf(Kind action) {
  return listKinds[static_cast<size_t>(action)].second;
}

} // namespace meshwork::schedules
