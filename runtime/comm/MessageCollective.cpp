#include "runtime/comm/MessageCollective.h"
#include "absl/container/inlined_vector.h"
#include "runtime/comm/Reduce.h"
#include <algorithm>
#include <chrono>

namespace meshwork::runtime {
namespace {
using Kind = plan::CollectiveKind;

/// Slices are packed and summed by threads in pieces of at most this many
/// elements.
constexpr int64_t chunkElements = 16384;
constexpr size_t alignment = 64;

int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
} // namespace

MessageCollective::MessageCollective(World &world,
                                     MessageTransport::Staging &buffers,
                                     std::vector<uint32_t> group,
                                     uint32_t myIndex, CollectiveRequest mine)
    : world(world), staging(buffers), members(std::move(group)), index(myIndex),
      ranks(static_cast<uint32_t>(members.size())), request(std::move(mine)),
      what(request.describe()), reduces(request.kind == Kind::all_reduce ||
                                        request.kind == Kind::reduce_scatter) {
  for (uint32_t i = 0; i < ranks; ++i)
    moves.push_back(movesOf(request, i, ranks));
  for (uint32_t i = 0; i < ranks; ++i) {
    sends.push_back(needs(moves[i], i, index));
    receives.push_back(needs(moves[index], index, i));
  }
  arrange();
  pending.reserve(4 * size_t{ranks});
}

/// The share of index `owner` in an all_reduce; all of a box otherwise.
std::pair<int64_t, int64_t> MessageCollective::share(int64_t n,
                                                     uint32_t owner) const {
  if (request.kind != Kind::all_reduce)
    return {0, n};
  return shareOf(n, owner, ranks);
}

/// What `target` needs of `source`'s tensors, in the order in which it travels.
MessageCollective::Message MessageCollective::needs(const std::vector<Move> &of,
                                                    uint32_t target,
                                                    uint32_t source) const {
  Message message;
  for (const Move &move : of) {
    if (move.kind == Move::Kind::zero ||
        (move.kind == Move::Kind::copy && move.source != source))
      continue;
    auto [begin, end] = share(move.box.elements(), target);
    size_t width = static_cast<size_t>(request.parts[move.part].src.width());
    for (int64_t at = begin; at < end; at += chunkElements) {
      int64_t last = std::min(end, at + chunkElements);
      message.slices.push_back({move.part, &move.box, at, last, message.bytes});
      message.bytes += static_cast<size_t>(last - at) * width;
    }
    message.bytes = (message.bytes + 3) / 4 * 4; // A part may be narrower.
  }
  return message;
}

void MessageCollective::arrange() {
  size_t sendBytes = 0, receiveBytes = 0;
  auto place = [](Message &message, size_t &total) {
    message.at = total;
    total += (message.bytes + alignment - 1) / alignment * alignment;
  };
  for (uint32_t i = 0; i < ranks; ++i) {
    place(sends[i], sendBytes);
    place(receives[i], receiveBytes);
  }
  if (staging.send.size() < sendBytes)
    staging.send.resize(sendBytes);
  if (staging.receive.size() < receiveBytes)
    staging.receive.resize(receiveBytes);
}

absl::Status MessageCollective::run(ParallelFor parallel, CommTimes &times) {
  int64_t start = nowNs();
  waitedNs = 0;
  for (uint32_t i = 0; i < ranks; ++i)
    if (i != index || reduces)
      pack(sends[i], staging.send.data(), parallel);
  absl::Status status =
      swap(sends, staging.send.data(), receives, staging.receive.data());
  if (!status.ok())
    return status;
  moveOwn(parallel);
  if (reduces)
    reduce(parallel);
  for (uint32_t i = 0; i < ranks && !reduces; ++i)
    if (i != index)
      unpack(receives[i], staging.receive.data(), parallel);
  if (request.kind == Kind::all_reduce)
    status = spread(parallel);
  times.waitNs += waitedNs;
  times.moveNs += nowNs() - start - waitedNs;
  return status;
}

/// Sends `out` to each peer and receives `in` from it.
absl::Status MessageCollective::swap(const std::vector<Message> &out,
                                     const std::byte *from,
                                     const std::vector<Message> &in,
                                     std::byte *to) {
  int64_t start = nowNs();
  pending.clear();
  for (uint32_t i = 0; i < ranks; ++i) {
    if (i == index)
      continue;
    absl::Status status = world.receive(request.channel, members[i],
                                        to + in[i].at, in[i].bytes, pending);
    if (!status.ok())
      return status;
  }
  for (uint32_t step = 1; step < ranks; ++step) {
    uint32_t i = (index + step) % ranks; // Not all to the same one first.
    absl::Status status = world.send(request.channel, members[i],
                                     from + out[i].at, out[i].bytes, pending);
    if (!status.ok())
      return status;
  }
  absl::Status status = world.wait(request.channel, pending, what);
  waitedNs += nowNs() - start;
  return status;
}

void MessageCollective::pack(const Message &message, std::byte *memory,
                             ParallelFor parallel) {
  parallel(static_cast<int64_t>(message.slices.size()),
           [&](int64_t begin, int64_t end) {
             for (int64_t k = begin; k < end; ++k) {
               const Slice &slice = message.slices[static_cast<size_t>(k)];
               const Strided &src = request.parts[slice.part].src;
               std::byte *to = memory + message.at + slice.at;
               slice.box->forEachRun(slice.begin, slice.end, [&](const Run &r) {
                 copyRun(src.data + r.src * src.width(), r.srcStride, to, 1,
                         r.count, src.width());
                 to += r.count * src.width();
               });
             }
           });
}

void MessageCollective::unpack(const Message &message, const std::byte *memory,
                               ParallelFor parallel) {
  parallel(static_cast<int64_t>(message.slices.size()),
           [&](int64_t begin, int64_t end) {
             for (int64_t k = begin; k < end; ++k) {
               const Slice &slice = message.slices[static_cast<size_t>(k)];
               const Strided &dst = request.parts[slice.part].dst;
               const std::byte *from = memory + message.at + slice.at;
               slice.box->forEachRun(slice.begin, slice.end, [&](const Run &r) {
                 copyRun(from, 1, dst.data + r.dst * dst.width(), r.dstStride,
                         r.count, dst.width());
                 from += r.count * dst.width();
               });
             }
           });
}

/// Copies from this rank's own sources, and zeros.
void MessageCollective::moveOwn(ParallelFor parallel) {
  const std::vector<Move> &mine = moves[index];
  parallel(static_cast<int64_t>(mine.size()), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const Move &move = mine[static_cast<size_t>(k)];
      const Strided &src = request.parts[move.part].src,
                    &dst = request.parts[move.part].dst;
      int64_t width = dst.width();
      bool copies = move.kind == Move::Kind::copy && move.source == index &&
                    !move.box.isInPlace(src.data, dst.data, width);
      if (!copies && move.kind != Move::Kind::zero)
        continue;
      move.box.forEachRun(0, move.box.elements(), [&](const Run &r) {
        std::byte *to = dst.data + r.dst * width;
        if (copies)
          copyRun(src.data + r.src * width, r.srcStride, to, r.dstStride,
                  r.count, width);
        else
          zeroRun(to, r.dstStride, r.count, width);
      });
    }
  });
}

/// Sums what came, and this rank's own, in the order of group index. What an
/// all_reduce sums up stays packed where this rank's own share was.
void MessageCollective::reduce(ParallelFor parallel) {
  const Message &own = sends[index];
  bool spreads = request.kind == Kind::all_reduce;
  parallel(static_cast<int64_t>(own.slices.size()), [&](int64_t begin,
                                                        int64_t end) {
    absl::InlinedVector<const std::byte *, 16> sources(ranks);
    for (int64_t k = begin; k < end; ++k) {
      const Slice &slice = own.slices[static_cast<size_t>(k)];
      const Strided &dst = request.parts[slice.part].dst;
      for (uint32_t i = 0; i < ranks; ++i)
        sources[i] = (i == index ? staging.send.data() + own.at
                                 : staging.receive.data() + receives[i].at) +
                     slice.at;
      auto sum = [&](std::byte *to, int64_t stride, int64_t count) {
        reduceRun(dst.dtype, request.reduction, sources, 1, {&to, 1}, stride,
                  count);
        for (const std::byte *&source : sources)
          source += count * dst.width();
      };
      if (spreads)
        sum(staging.send.data() + own.at + slice.at, 1,
            slice.end - slice.begin);
      else
        slice.box->forEachRun(slice.begin, slice.end, [&](const Run &r) {
          sum(dst.data + r.dst * dst.width(), r.dstStride, r.count);
        });
    }
  });
}

/// The second half of an all_reduce: this rank's share of the sum to all, and
/// theirs to where their sources were packed.
absl::Status MessageCollective::spread(ParallelFor parallel) {
  std::vector<Message> mine(ranks,
                            Message{{}, sends[index].bytes, sends[index].at});
  absl::Status status =
      swap(mine, staging.send.data(), sends, staging.send.data());
  for (uint32_t i = 0; status.ok() && i < ranks; ++i)
    unpack(sends[i], staging.send.data(), parallel);
  return status;
}

} // namespace meshwork::runtime
