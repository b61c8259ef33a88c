#include "passes/verify/Meetings.h"

#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "passes/interpreter/Blocks.h"
#include <algorithm>

namespace meshwork::verify {
using interpreter::Tensor;

bool Channels::areEmpty() const {
  return std::all_of(waiting.begin(), waiting.end(),
                     [](const auto &queue) { return queue.empty(); });
}

namespace {
using interpreter::blockOf;
using interpreter::combined;
using interpreter::joined;
using Tensors = std::vector<Tensor>;

/// What member `index` gets of one part; `dst` is what its view is like.
Tensor resultOf(const plan::Collective &op, const plan::Transfer &part,
                const Tensors &sources, size_t index,
                absl::Span<const int64_t> dst) {
  int64_t dim = part.dim(), to = part.to_dim();
  auto at = static_cast<int64_t>(index);
  switch (op.kind()) {
  case plan::CollectiveKind::all_reduce:
    return combined(sources, op.reduction());
  case plan::CollectiveKind::all_gather:
    return joined(sources, dim, dst[dim]);
  case plan::CollectiveKind::reduce_scatter:
    return blockOf(combined(sources, op.reduction()), dim, at * dst[dim],
                   dst[dim]);
  case plan::CollectiveKind::all_to_all: {
    int64_t size =
        dim == to ? dst[to] / static_cast<int64_t>(sources.size()) : dst[to];
    Tensors blocks;
    for (const Tensor &source : sources)
      blocks.push_back(blockOf(source, to, at * size, size));
    return joined(blocks, dim, dst[dim]);
  }
  case plan::CollectiveKind::permute: {
    uint32_t from = op.sources()->Get(static_cast<uint32_t>(index));
    return from < sources.size() ? sources[from]
                                 : Tensor(sources[0].getShape().vec());
  }
  }
  return sources[0];
}

/// Whether ranks that meet mean the same.
absl::Status checkAlike(const Arrival &first, const Arrival &other) {
  auto differ = [&](const char *what) {
    return absl::DataLossError(
        absl::StrCat("meets ", plan::quote(other.instruction->name()),
                     " of another rank, which has another ", what));
  };
  const plan::Collective &a = first.op(), &b = other.op();
  if (a.kind() != b.kind() || a.reduction() != b.reduction())
    return differ("kind");
  if (first.parts.size() != other.parts.size())
    return differ("number of parts");
  for (size_t i = 0; i < first.parts.size(); ++i) {
    const Arrival::Part &x = first.parts[i], &y = other.parts[i];
    if (x.src.info->shape != y.src.info->shape ||
        x.dst.info->shape != y.dst.info->shape ||
        x.src.info->dtype != y.src.info->dtype)
      return differ("shape or type");
    const plan::Transfer &p = *a.parts()->Get(i), &q = *b.parts()->Get(i);
    if (p.dim() != q.dim() || p.to_dim() != q.to_dim())
      return differ("dim");
  }
  return absl::OkStatus();
}

/// The members' sources of one part.
absl::StatusOr<Tensors> read(const std::vector<RankState *> &members,
                             const std::vector<const Arrival *> &arrivals,
                             uint32_t part) {
  Tensors sources;
  for (size_t i = 0; i < members.size(); ++i) {
    absl::StatusOr<Tensor> values =
        members[i]->read(arrivals[i]->parts[part].src);
    if (!values.ok())
      return values.status();
    sources.push_back(std::move(*values));
  }
  return sources;
}

uint32_t microbatchOf(const RankState &rank, const Passing &passing) {
  return rank.tables().table.actions()[passing.action].microbatch();
}
} // namespace

absl::Status meet(const std::vector<RankState *> &members,
                  const std::vector<const Arrival *> &arrivals) {
  const plan::Collective &op = arrivals[0]->op();
  for (const Arrival *other : arrivals)
    MESHWORK_RETURN_IF_ERROR(checkAlike(*arrivals[0], *other));
  for (uint32_t part = 0; part < op.parts()->size(); ++part) {
    absl::StatusOr<Tensors> sources = read(members, arrivals, part);
    if (!sources.ok())
      return sources.status();
    for (size_t i = 0; i < members.size(); ++i) {
      const PlacedView &dst = arrivals[i]->parts[part].dst;
      MESHWORK_RETURN_IF_ERROR(
          members[i]->write(dst, resultOf(op, *op.parts()->Get(part), *sources,
                                          i, dst.info->shape)));
    }
  }
  return absl::OkStatus();
}

absl::Status pass(RankState &sender, const Passing &sent, RankState &receiver,
                  const Passing &received) {
  uint32_t microbatch = microbatchOf(sender, sent),
           expected = microbatchOf(receiver, received);
  if (microbatch != expected)
    return absl::DataLossError(absl::StrCat(
        "sends microbatch ", microbatch, " to a rank that expects ", expected));
  if (sent.parts.size() != received.parts.size())
    return absl::DataLossError(absl::StrCat("sends ", sent.parts.size(),
                                            " views to a rank that expects ",
                                            received.parts.size()));
  for (size_t i = 0; i < sent.parts.size(); ++i) {
    absl::StatusOr<Tensor> values = sender.read(sent.parts[i]);
    if (!values.ok())
      return values.status();
    MESHWORK_RETURN_IF_ERROR(receiver.write(received.parts[i], *values));
  }
  return absl::OkStatus();
}

} // namespace meshwork::verify
