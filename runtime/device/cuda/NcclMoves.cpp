#include "runtime/device/cuda/NcclMoves.h"
#include <algorithm>

namespace meshwork::runtime::cuda {
namespace {
using Kind = plan::CollectiveKind;
constexpr uint64_t slotAlignment = 256;

/// Whether the box's elements, in its order, are one run on this side.
bool isDense(const Box &box, int64_t Box::Dim::*stride) {
  const std::vector<Box::Dim> &dims = box.orderedDims();
  int64_t expected = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i].size != 1 && dims[i].*stride != expected)
      return false;
    expected *= dims[i].size;
  }
  return true;
}
bool isDense(const Box &box) {
  return isDense(box, &Box::Dim::srcStride) &&
         isDense(box, &Box::Dim::dstStride);
}

bool sumsNatively(const CollectiveRequest &request, uint32_t ranks) {
  return request.reduction == plan::Reduction::max || ranks <= 2 ||
         request.anyOrder ||
         std::all_of(request.parts.begin(), request.parts.end(),
                     [](const TransferRequest &part) {
                       return part.src.dtype == plan::DType::f32 ||
                              part.src.dtype == plan::DType::i32; // exact
                     });
}

/// Block i of the side that holds all blocks begins at i times the size of a
/// block, and blocks fill it.
bool isBlock(const Move &move, int64_t first, int64_t other, uint32_t i,
             int64_t count) {
  return isDense(move.box) && move.box.elements() == count &&
         first == i * count && other == 0;
}

bool gathersNatively(const CollectiveRequest &request, uint32_t ranks) {
  std::vector<Move> moves = movesOf(request, 0, ranks);
  for (const Move &move : moves)
    if (move.kind != Move::Kind::copy ||
        !isBlock(move, move.box.firstInDst(), move.box.firstInSrc(),
                 move.source, request.parts[move.part].src.elements()))
      return false;
  return moves.size() == request.parts.size() * ranks; // none is empty
}

bool scattersNatively(const CollectiveRequest &request, uint32_t ranks) {
  for (uint32_t i = 0; i < ranks; ++i)
    for (const Move &move : movesOf(request, i, ranks))
      if (move.kind != Move::Kind::reduce ||
          !isBlock(move, move.box.firstInSrc(), move.box.firstInDst(), i,
                   request.parts[move.part].dst.elements()))
        return false;
  return true;
}

bool reducesNatively(const CollectiveRequest &request, uint32_t ranks) {
  std::vector<Move> moves = movesOf(request, 0, ranks);
  return std::all_of(moves.begin(), moves.end(),
                     [](const Move &move) { return isDense(move.box); });
}

DevicePtr addressOf(const Strided &tensor, int64_t element) {
  return reinterpret_cast<DevicePtr>(tensor.data) +
         static_cast<DevicePtr>(element * tensor.width());
}

class Planner {
public:
  Planner(const CollectiveRequest &request, uint32_t index, uint32_t ranks,
          DevicePtr staging)
      : request(request), me(index), ranks(ranks), staging(staging) {
    for (uint32_t i = 0; i < ranks; ++i)
      moves.push_back(movesOf(request, i, ranks));
  }

  NcclMessages run() {
    for (uint32_t step = 1; step < ranks; ++step)
      sendTo((me + step) % ranks); // Not all to the same one first.
    for (const Move &move : moves[me])
      fill(move);
    return std::move(result);
  }

private:
  const TransferRequest &partOf(const Move &move) const {
    return request.parts[move.part];
  }
  int64_t widthOf(const Move &move) const { return partOf(move).src.width(); }

  /// The elements of a move that `target` fills, or reduces for all.
  std::pair<int64_t, int64_t> rangeOf(const Move &move, uint32_t target) const {
    int64_t count = move.box.elements();
    return request.kind == Kind::all_reduce ? shareOf(count, target, ranks)
                                            : std::pair(int64_t{0}, count);
  }

  DevicePtr newSlot(int64_t elements, int64_t width) {
    DevicePtr slot = staging + result.stagingBytes;
    auto bytes = static_cast<uint64_t>(elements * width);
    result.stagingBytes +=
        (bytes + slotAlignment - 1) / slotAlignment * slotAlignment;
    return slot;
  }

  void addMessage(std::vector<NcclMessage> &to, bool isSent, uint32_t peer,
                  DevicePtr address, int64_t count, const Move &move) {
    if (count > 0)
      to.push_back({isSent, peer, address, static_cast<uint64_t>(count),
                    partOf(move).src.dtype});
  }

  /// My elements of a move, dense: in place or packed before the swap.
  DevicePtr mine(const Move &move, int64_t begin, int64_t end) {
    const Strided &src = partOf(move).src;
    if (isDense(move.box, &Box::Dim::srcStride))
      return addressOf(src, move.box.firstInSrc() + begin);
    DevicePtr slot = newSlot(end - begin, src.width());
    result.pack.copy({move.box, begin, end, BoxSide::src, BoxSide::packed},
                     src.width(), addressOf(src, 0), slot);
    return slot;
  }

  void sendTo(uint32_t target) {
    for (const Move &move : moves[target]) {
      if (move.kind == Move::Kind::zero ||
          (move.kind == Move::Kind::copy && move.source != me))
        continue;
      auto [begin, end] = rangeOf(move, target);
      if (begin < end)
        addMessage(result.swap, true, target, mine(move, begin, end),
                   end - begin, move);
    }
  }

  void fill(const Move &move) {
    switch (move.kind) {
    case Move::Kind::copy:
      return move.source == me ? copyOwn(move) : receive(move);
    case Move::Kind::reduce:
      return reduce(move);
    case Move::Kind::zero:
      result.unpack.zero({move.box, 0, move.box.elements()}, widthOf(move),
                         addressOf(partOf(move).dst, 0));
    }
  }

  void copyOwn(const Move &move) {
    const TransferRequest &part = partOf(move);
    if (!move.box.isInPlace(part.src.data, part.dst.data, part.src.width()))
      result.unpack.copy({move.box, 0, move.box.elements()}, widthOf(move),
                         addressOf(part.src, 0), addressOf(part.dst, 0));
  }

  void receive(const Move &move) {
    int64_t count = move.box.elements();
    addMessage(result.swap, false, move.source,
               theirs(move, 0, count, result.unpack), count, move);
  }

  /// Where to receive elements of dst: there, or packed and then unpacked by
  /// `table`.
  DevicePtr theirs(const Move &move, int64_t begin, int64_t end,
                   BoxTable &table) {
    const Strided &dst = partOf(move).dst;
    if (isDense(move.box, &Box::Dim::dstStride))
      return addressOf(dst, move.box.firstInDst() + begin);
    DevicePtr slot = newSlot(end - begin, dst.width());
    table.copy({move.box, begin, end, BoxSide::packed, BoxSide::dst},
               dst.width(), slot, addressOf(dst, 0));
    return slot;
  }

  void reduce(const Move &move) {
    auto [begin, end] = rangeOf(move, me);
    bool spreads = request.kind == Kind::all_reduce;
    // Spread where it is received, so that one place serves both.
    DevicePtr share = 0;
    if (begin < end) {
      std::vector<DevicePtr> sources;
      for (uint32_t i = 0; i < ranks; ++i)
        sources.push_back(sourceOf(move, i, begin, end));
      share = spreads ? theirs(move, begin, end, result.unpackSpread)
                      : addressOf(partOf(move).dst, 0);
      result.unpack.reduce({move.box, begin, end, BoxSide::packed,
                            spreads ? BoxSide::packed : BoxSide::dst},
                           partOf(move).src.dtype, request.reduction, sources,
                           {&share, 1});
    }
    if (spreads)
      spread(move, share);
  }

  DevicePtr sourceOf(const Move &move, uint32_t i, int64_t begin, int64_t end) {
    if (i == me)
      return mine(move, begin, end);
    DevicePtr slot = newSlot(end - begin, widthOf(move));
    addMessage(result.swap, false, i, slot, end - begin, move);
    return slot;
  }

  /// My share of the result to all, theirs to me.
  void spread(const Move &move, DevicePtr share) {
    auto [begin, end] = rangeOf(move, me);
    for (uint32_t step = 1; step < ranks; ++step) {
      uint32_t peer = (me + step) % ranks;
      addMessage(result.spread, true, peer, share, end - begin, move);
      auto [first, last] = rangeOf(move, peer);
      if (first < last)
        addMessage(result.spread, false, peer,
                   theirs(move, first, last, result.unpackSpread), last - first,
                   move);
    }
  }

  const CollectiveRequest &request;
  uint32_t me, ranks;
  DevicePtr staging;
  std::vector<std::vector<Move>> moves; // of each index
  NcclMessages result;
};
} // namespace

NcclCall callOf(const CollectiveRequest &request, uint32_t ranks) {
  if (request.kind == Kind::all_gather && gathersNatively(request, ranks))
    return NcclCall::allGather;
  bool sums = (request.kind == Kind::all_reduce ||
               request.kind == Kind::reduce_scatter) &&
              sumsNatively(request, ranks);
  if (sums && request.kind == Kind::all_reduce &&
      reducesNatively(request, ranks))
    return NcclCall::allReduce;
  if (sums && request.kind == Kind::reduce_scatter &&
      scattersNatively(request, ranks))
    return NcclCall::reduceScatter;
  return NcclCall::messages;
}

NcclMessages messagesOf(const CollectiveRequest &request, uint32_t index,
                        uint32_t ranks, DevicePtr staging) {
  return Planner(request, index, ranks, staging).run();
}

} // namespace meshwork::runtime::cuda
