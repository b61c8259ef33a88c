// The operands of what moves between ranks, of waits for it, and where it may
// stand.
#include "lib/Plan/Actions.h"
#include "lib/Plan/CheckOperandsParts.h"
#include "lib/Plan/Operands.h"
#include <algorithm>

namespace meshwork::plan {
namespace {
using Kind = CollectiveKind;

bool reduces(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce_scatter;
}

/// One part of a collective while it is looked at.
struct Part {
  const Operands &c;
  Kind kind;
  const Transfer &part;
  const ViewInfo &src = c.views[part.src()], &dst = c.views[part.dst()];

  absl::Status check() const {
    MESHWORK_RETURN_IF_ERROR(ruled("C2", checkTypes()));
    bool hasDim = kind != Kind::all_reduce && kind != Kind::permute;
    MESHWORK_RETURN_IF_ERROR(checkDim(part.dim(), "dim", hasDim));
    MESHWORK_RETURN_IF_ERROR(
        checkDim(part.to_dim(), "to_dim", kind == Kind::all_to_all));
    return ruled("C4", checkShapes());
  }

  absl::Status checkTypes() const {
    if (src.dtype != dst.dtype || src.shape.size() != dst.shape.size())
      return bad("src is ", describe(src), ", dst ", describe(dst),
                 ", expected one element type and as many dims");
    return !reduces(kind) || isFloat(src) || src.dtype == DType::i32
               ? absl::OkStatus()
               : bad("it reduces ", describe(src),
                     ", expected f32, bf16 or i32");
  }

  absl::Status checkDim(int32_t dim, const char *field, bool isThere) const {
    if (isThere ? dim >= 0 && static_cast<size_t>(dim) < src.shape.size()
                : dim == 0)
      return absl::OkStatus();
    return misfit("C3", field, " is ", dim, ", ",
                  isThere ? absl::StrCat("src is ", describe(src))
                          : std::string("this kind has none"));
  }

  absl::Status checkShapes() const {
    auto dim = static_cast<size_t>(part.dim());
    switch (kind) {
    case Kind::all_gather:
      return expectBlock(src, dst, dim);
    case Kind::reduce_scatter:
      return expectBlock(dst, src, dim);
    case Kind::all_to_all:
      return checkAllToAll(dim, static_cast<size_t>(part.to_dim()));
    default:
      return expectShape(dst, "dst", src.shape);
    }
  }

  /// `block` is `whole`, but for `dim`, which has the size of a block of it.
  absl::Status expectBlock(const ViewInfo &block, const ViewInfo &whole,
                           size_t dim) const {
    std::vector<int64_t> shape(whole.shape.begin(), whole.shape.end());
    shape[dim] = c.ranks ? (shape[dim] - 1) / c.ranks + 1
                         : std::min(shape[dim], block.shape[dim]);
    if (block.shape == absl::MakeSpan(shape))
      return absl::OkStatus();
    ViewInfo expected = block;
    expected.shape = shape;
    return bad("one block is ", describe(block), ", expected ",
               describe(expected), ", ",
               c.ranks ? absl::StrCat("1/", c.ranks) : std::string("a part"),
               " of dim ", dim, " of ", describe(whole));
  }

  absl::Status checkAllToAll(size_t dim, size_t toDim) const {
    if (dim == toDim) {
      if (src.shape == dst.shape &&
          (c.ranks == 0 || src.shape[dim] % c.ranks == 0))
        return absl::OkStatus();
      return bad("src is ", describe(src), ", dst ", describe(dst),
                 ", expected one shape that ",
                 c.ranks ? absl::StrCat(c.ranks, " divides")
                         : std::string("ranks divide"),
                 " in dim ", dim);
    }
    // What both would be with each split undone.
    std::vector<int64_t> whole(src.shape.begin(), src.shape.end());
    whole[dim] = dst.shape[dim];
    ViewInfo both = src;
    both.shape = whole;
    MESHWORK_RETURN_IF_ERROR(expectBlock(src, both, dim));
    return expectBlock(dst, both, toDim);
  }
};

absl::Status checkSources(const Operands &c, const Collective &op) {
  bool isPermute = op.kind() == Kind::permute;
  int64_t count = orEmpty(op.sources()).size(),
          expected = !isPermute ? 0
                     : c.ranks  ? c.ranks
                                : std::max<int64_t>(count, 1);
  if (count != expected)
    return misfit("C5", EnumNameCollectiveKind(op.kind()), " has ", count,
                  " sources, expected ",
                  isPermute ? absl::StrCat(expected, ", one for each rank")
                            : std::string("none: only permute has sources"));
  for (uint32_t source : orEmpty(op.sources()))
    if (source >= count && source != noSource)
      return misfit("C5", "permute has the source ", source, " in groups of ",
                    count);
  return absl::OkStatus();
}

absl::Status checkReduction(const Collective &op) {
  const char *kind = EnumNameCollectiveKind(op.kind());
  bool isSum = op.reduction() == Reduction::sum;
  if (!reduces(op.kind()) && !isSum)
    return misfit("C6", kind, " reduces nothing, expected the reduction sum");
  return !op.any_order() || (reduces(op.kind()) && isSum)
             ? absl::OkStatus()
             : misfit("C8", kind, " with ", EnumNameReduction(op.reduction()),
                      " in any order, expected the sum of an all_reduce or a "
                      "reduce_scatter");
}
} // namespace

absl::Status checkOp(const Operands &c, const Collective &op) {
  if (op.kind() > Kind::MAX || op.reduction() > Reduction::MAX ||
      op.pass() > Pass::MAX)
    return bad("unknown collective ", static_cast<int>(op.kind()),
               " or reduction ", static_cast<int>(op.reduction()));
  const auto &parts = orEmpty(op.parts());
  if (orEmpty(op.axes()).size() == 0 || parts.size() == 0)
    return misfit("C1", "a collective needs an axis and a part");
  MESHWORK_RETURN_IF_ERROR(checkReduction(op));
  MESHWORK_RETURN_IF_ERROR(checkSources(c, op));
  for (uint32_t i = 0; i < parts.size(); ++i)
    if (absl::Status status = Part{c, op.kind(), *parts.Get(i)}.check();
        !status.ok())
      return misfit(ruleOf(status).c_str(), "part ", i, ": ", status.message());
  return absl::OkStatus();
}

absl::Status checkOp(const Operands &, const Wait &op) {
  if (op.channel() == 0 || op.channel() > maxChannels)
    return misfit("C1", "waits for channel ", op.channel(), ", expected 1 to ",
                  maxChannels);
  return op.count() > 0 ? absl::OkStatus()
                        : misfit("C1", "waits for the first 0 of channel ",
                                 op.channel(), ", expected 1 or more");
}

template <typename Transfer>
static absl::Status checkParts(const Transfer &op) {
  return orEmpty(op.parts()).size() > 0 ? absl::OkStatus()
                                        : misfit("C1", "it has no part");
}
absl::Status checkOp(const Operands &, const Send &op) {
  return checkParts(op);
}
absl::Status checkOp(const Operands &, const Receive &op) {
  return checkParts(op);
}

absl::Status checkPlace(Operation operation, const ListShape &list) {
  bool sends = plan::sends(list.kind), receives = plan::receives(list.kind);
  if ((sends || receives) && list.size != 1)
    return misfit("C2", nameOf(list), " has ", list.size,
                  " instructions, expected one ", sends ? "send" : "receive");
  if ((operation == Operation::Send) == sends &&
      (operation == Operation::Receive) == receives)
    return absl::OkStatus();
  return misfit("C2", "is ", EnumNameOperation(operation), ", expected ",
                sends      ? "a send"
                : receives ? "a receive"
                           : "neither a send nor a receive",
                " in such a list");
}

absl::Status checkOp(const Operands &c, const Copy &op) {
  const ViewInfo &src = c.views[op.src()], &dst = c.views[op.dst()];
  MESHWORK_RETURN_IF_ERROR(
      ruled("C1", expectView(dst, "dst", src.dtype, src.shape)));
  if (!src.contiguous || !dst.contiguous)
    return misfit("C1", "copies ", describe(src), " to ", describe(dst),
                  ", expected both without gaps");
  return src.buffer != dst.buffer
             ? absl::OkStatus()
             : misfit("C2", "src and dst share buffer ", c.nameOf(src.buffer));
}

absl::Status checkChannel(const Instruction &at) {
  bool starts = !at.op_as_Wait() && !at.op_as_Repeat() && !at.op_as_Send() &&
                !at.op_as_Receive();
  uint32_t most = starts ? maxChannels : 0;
  return at.channel() <= most ? absl::OkStatus()
                              : misfit("C7", "channel ", at.channel(),
                                       ", expected at most ", most);
}

absl::Status checkInRepeat(const Instruction &at, bool areCounted) {
  if (at.op_as_Wait() && !areCounted)
    return misfit("C3", "waits inside a repeat, expected nothing to run beside "
                        "it where one around it is not counted");
  const Collective *op = at.op_as_Collective();
  bool isLastOnly = op && op->last_only(),
       runsBeside = at.channel() != 0 && !areCounted;
  if (runsBeside || isLastOnly)
    return misfit("C3", "runs on channel ", at.channel(),
                  isLastOnly ? ", in the last action only," : "",
                  " inside a repeat, expected channel 0 and every action");
  absl::Status status;
  forEachOperand(at, [&](const Operand &operand) {
    if (operand.addsUp)
      status = misfit("C3", operand.role,
                      " is set in the step's first action and added to later, "
                      "inside a repeat; expected the one or the other");
  });
  return status;
}

} // namespace meshwork::plan
