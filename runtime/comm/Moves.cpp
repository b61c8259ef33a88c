#include "runtime/comm/Moves.h"
#include "meshwork/Plan/Frame.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {
using Kind = plan::CollectiveKind;

class Planner {
public:
  Planner(const CollectiveRequest &request, uint32_t index, uint32_t ranks)
      : request(request), index(index), ranks(ranks) {}

  std::vector<Move> run() {
    for (part = 0; part < request.parts.size(); ++part) {
      const Strided &src = request.parts[part].src;
      switch (request.kind) {
      case Kind::all_reduce:
        add(Move::Kind::reduce, 0, src.shape, 0, 0);
        break;
      case Kind::permute:
        if (uint32_t source = request.sources[index]; source == plan::noSource)
          add(Move::Kind::zero, 0, src.shape, 0, 0);
        else
          add(Move::Kind::copy, source, src.shape, 0, 0);
        break;
      case Kind::all_gather:
        gather();
        break;
      case Kind::reduce_scatter:
        scatter();
        break;
      case Kind::all_to_all:
        exchange();
        break;
      }
    }
    return std::move(moves);
  }

private:
  const TransferRequest &now() const { return request.parts[part]; }

  void add(Move::Kind kind, uint32_t source, const std::vector<int64_t> &sizes,
           int64_t srcOffset, int64_t dstOffset) {
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end())
      return;
    moves.push_back({kind, source, part,
                     Box(sizes, now().src.strides, now().dst.strides, srcOffset,
                         dstOffset)});
  }

  /// Elements of block `i` along a dim of `size`.
  static int64_t lengthOf(int64_t i, int64_t block, int64_t size) {
    return std::clamp<int64_t>(size - i * block, 0, block);
  }

  /// Zeros in dst from `filled` on along `dim`.
  void pad(size_t dim, int64_t filled) {
    std::vector<int64_t> sizes = now().dst.shape;
    sizes[dim] -= filled;
    add(Move::Kind::zero, 0, sizes, 0, filled * now().dst.strides[dim]);
  }

  void gather() {
    const Strided &src = now().src, &dst = now().dst;
    size_t dim = now().dim;
    int64_t block = src.shape[dim];
    std::vector<int64_t> sizes = src.shape;
    for (uint32_t j = 0; j < ranks; ++j) {
      sizes[dim] = lengthOf(j, block, dst.shape[dim]);
      add(Move::Kind::copy, j, sizes, 0, j * block * dst.strides[dim]);
    }
  }

  void scatter() {
    const Strided &src = now().src, &dst = now().dst;
    size_t dim = now().dim;
    int64_t block = dst.shape[dim];
    std::vector<int64_t> sizes = dst.shape;
    sizes[dim] = lengthOf(index, block, src.shape[dim]);
    add(Move::Kind::reduce, 0, sizes, index * block * src.strides[dim], 0);
    pad(dim, sizes[dim]);
  }

  void exchange() {
    const Strided &src = now().src, &dst = now().dst;
    size_t dim = now().dim, toDim = now().toDim;
    bool within = dim == toDim; // Both keep their shape.
    int64_t block = within ? src.shape[dim] / ranks : src.shape[dim];
    int64_t toBlock = within ? block : dst.shape[toDim];
    std::vector<int64_t> sizes = src.shape;
    sizes[toDim] = lengthOf(index, toBlock, src.shape[toDim]);
    int64_t from = index * toBlock * src.strides[toDim];
    for (uint32_t j = 0; j < ranks; ++j) {
      sizes[dim] = lengthOf(j, block, dst.shape[dim]);
      add(Move::Kind::copy, j, sizes, from, j * block * dst.strides[dim]);
    }
    if (!within)
      pad(toDim, sizes[toDim]);
  }

  const CollectiveRequest &request;
  uint32_t index, ranks, part = 0;
  std::vector<Move> moves;
};
} // namespace

std::pair<int64_t, int64_t> shareOf(int64_t count, uint32_t index,
                                    uint32_t ranks) {
  constexpr int64_t unit = 32;
  auto cut = [&](int64_t i) {
    return i == ranks ? count : count * i / ranks / unit * unit;
  };
  return {cut(index), cut(int64_t{index} + 1)};
}

bool isSameCollective(const CollectiveRequest &a, const CollectiveRequest &b) {
  auto alike = [](const Strided &x, const Strided &y) {
    return x.dtype == y.dtype && x.shape == y.shape && x.strides == y.strides;
  };
  bool same = a.kind == b.kind && a.reduction == b.reduction &&
              a.sources == b.sources && a.parts.size() == b.parts.size();
  for (size_t i = 0; same && i < a.parts.size(); ++i) {
    const TransferRequest &x = a.parts[i], &y = b.parts[i];
    same = x.dim == y.dim && x.toDim == y.toDim && alike(x.src, y.src) &&
           alike(x.dst, y.dst);
  }
  return same;
}

std::vector<Move> movesOf(const CollectiveRequest &request, uint32_t index,
                          uint32_t ranks) {
  return Planner(request, index, ranks).run();
}

} // namespace meshwork::runtime
