// Where SEND and RECV stand.
//
// A value moves when its producer ends. On either rank the transfer is posted
// before the first work that ends later: the sender's next, and what the
// receiver is at just then. So each rank posts its transfers in the order of
// these times, which is one order for all of them.
#include "lib/Schedules/Live.h"
#include "lib/Schedules/LowerParts.h"

#include <algorithm>
#include <tuple>

namespace meshwork::schedules {
namespace {

struct Transfer {
  double time = 0;
  /// Tells transfers of one time apart.
  Action send;
  Action receive;
  int32_t from = 0, to = 0;

  bool operator<(const Transfer &other) const {
    auto key = [](const Transfer &one) {
      return std::tuple(one.time, one.send.microbatch, one.send.stage,
                        one.send.kind);
    };
    return key(*this) < key(other);
  }
};

std::vector<Transfer> listTransfers(const Table &table,
                                    const Timeline &timeline) {
  std::vector<Transfer> all;
  auto add = [&](const Action &action, double time, Kind send, Kind receive,
                 int32_t to) {
    if (to < 0 || to >= static_cast<int32_t>(table.rankOf.size()))
      return;
    int32_t from = table.rankOf[static_cast<size_t>(action.stage)],
            rank = table.rankOf[static_cast<size_t>(to)];
    if (from != rank)
      all.push_back({time,
                     {send, action.stage, action.microbatch},
                     {receive, to, action.microbatch},
                     from,
                     rank});
  };
  for (size_t rank = 0; rank < table.ranks.size(); ++rank)
    for (size_t at = 0; at < table.ranks[rank].size(); ++at) {
      const Action &action = table.ranks[rank][at];
      double end = timeline.spans[rank][at].end;
      if (action.kind == Kind::forward)
        add(action, end, Kind::sendForward, Kind::recvForward,
            action.stage + 1);
      else if (action.kind == Kind::backward || action.kind == Kind::inputGrad)
        add(action, end, Kind::sendBackward, Kind::recvBackward,
            action.stage - 1);
    }
  std::sort(all.begin(), all.end());
  return all;
}

/// Goes through a rank's actions as times pass.
class Cursor {
public:
  Cursor(const std::vector<Action> &row,
         const std::vector<Timeline::Span> &spans)
      : row(row), spans(spans) {}

  /// The first work that ends after `time`; times must not fall.
  size_t at(double time) {
    while (next < row.size() && spans[next].end <= time)
      next = endOfGroup(row, next);
    return next;
  }

private:
  const std::vector<Action> &row;
  const std::vector<Timeline::Span> &spans;
  size_t next = 0;
};

} // namespace

Additions transfersOf(const Table &table, const Timeline &timeline) {
  std::vector<Cursor> cursors;
  for (size_t rank = 0; rank < table.ranks.size(); ++rank)
    cursors.emplace_back(table.ranks[rank], timeline.spans[rank]);
  Additions additions(table.ranks.size());
  for (const Transfer &transfer : listTransfers(table, timeline))
    for (auto [rank, action] : {std::pair(transfer.from, &transfer.send),
                                std::pair(transfer.to, &transfer.receive)}) {
      auto at = static_cast<size_t>(rank);
      additions[at].push_back({cursors[at].at(transfer.time), *action});
    }
  return additions;
}

} // namespace meshwork::schedules
