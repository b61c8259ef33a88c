#include "runtime/comm/PairLane.h"
#include <chrono>

namespace meshwork::runtime {
namespace {
using Clock = std::chrono::steady_clock;
/// How often one that waits tells others of it.
constexpr auto slice = std::chrono::milliseconds(100);

int64_t nsSince(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() -
                                                              begin)
      .count();
}

bool sameShapes(const std::vector<Strided> &a, const std::vector<Strided> &b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i)
    same = a[i].dtype == b[i].dtype && a[i].shape == b[i].shape;
  return same;
}
} // namespace

uint64_t PairLane::start(const Side &side) {
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t number = started[side.sends]++;
  if (number == first + meetings.size())
    meetings.emplace_back();
  (side.sends ? at(number).sender : at(number).receiver) = &side;
  changed.notify_all();
  return number;
}

absl::StatusOr<const PairLane::Side *> PairLane::finish(const Side &side,
                                                        uint64_t number,
                                                        Move move,
                                                        CommTimes &times) {
  auto begin = Clock::now();
  std::unique_lock<std::mutex> lock(mutex);
  absl::Status status = meet(side, number, lock);
  times.waitNs += nsSince(begin);
  if (!status.ok())
    return status;
  begin = Clock::now();
  if (at(number).state == Meeting::State::waits) {
    at(number).mover = &side;
    status = run(at(number), move, lock);
  }
  times.moveNs += nsSince(begin);
  const Side *mover = at(number).mover;
  ++at(number).left;
  while (!meetings.empty() && meetings.front().left == 2) {
    meetings.pop_front();
    ++first;
  }
  if (!status.ok())
    return status;
  return mover;
}

/// Until both are here and nobody moves it, or it is done.
absl::Status PairLane::meet(const Side &side, uint64_t number,
                            std::unique_lock<std::mutex> &lock) {
  auto isReady = [&] {
    const Meeting &its = at(number);
    return its.state == Meeting::State::done ||
           (its.state == Meeting::State::waits && its.sender && its.receiver);
  };
  PeerWait wait(host, side.rank, {true, side.what, {side.peer}});
  while (!changed.wait_for(lock, slice,
                           [&] { return isReady() || failure.isSet(); })) {
    lock.unlock(); // Who is at fault is a question to others.
    absl::Status late = wait.check(timeout);
    lock.lock();
    if (!late.ok() && !isReady())
      return late;
  }
  // A rank that comes late must not touch the memory of peers that gave up.
  bool isOver = at(number).state == Meeting::State::done;
  return isOver || !failure.isSet() ? absl::OkStatus() : failure.status();
}

absl::Status PairLane::run(Meeting &meeting, Move move,
                           std::unique_lock<std::mutex> &lock) {
  const Side &from = *meeting.sender, &to = *meeting.receiver;
  meeting.state = Meeting::State::moves;
  lock.unlock();
  absl::Status status =
      sameShapes(from.parts, to.parts)
          ? move(from, to)
          : absl::InternalError(absl::StrCat(from.what, " of rank ", from.rank,
                                             " and ", to.what, " of rank ",
                                             to.rank, " have other shapes"));
  lock.lock();
  meeting.state = Meeting::State::done;
  changed.notify_all();
  return status;
}

void PairLane::wake() {
  {
    std::lock_guard<std::mutex> lock(mutex); // nobody is between look and sleep
  }
  changed.notify_all();
}

} // namespace meshwork::runtime
