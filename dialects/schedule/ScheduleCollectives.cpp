// Verifiers of collectives and of waits for them.
#include "dialects/schedule/Views.h"

using namespace mlir;

namespace meshwork::schedule {
namespace {
constexpr int64_t maxChannels = 8; // Plan.fbs

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce ||
         kind == CollectiveKind::reduce_scatter;
}

LogicalResult verifyDims(CollectiveOp op, const Transfer &part) {
  CollectiveKind kind = op.getKind();
  int64_t rank = Strided(part.src).rank();
  bool hasDim = kind != CollectiveKind::all_reduce &&
                kind != CollectiveKind::permute,
       hasToDim = kind == CollectiveKind::all_to_all;
  for (auto [name, dim, isThere] : {std::tuple("dim", part.dim, hasDim),
                                    std::tuple("to_dim", part.toDim, hasToDim)})
    if (isThere ? dim < 0 || dim >= rank : dim != 0)
      return op.emitOpError()
             << "(C3) has " << name << " " << dim << " of "
             << part.src.getType() << ", expected "
             << (isThere ? "one of its dims" : "0, since there is none");
  return success();
}

/// How many ranks there are is not known here; plans are checked with it.
LogicalResult verifyShapes(CollectiveOp op, const Transfer &part) {
  CollectiveKind kind = op.getKind();
  bool exchanges = kind == CollectiveKind::all_to_all && part.dim != part.toDim;
  Strided src(part.src), dst(part.dst);
  for (int64_t dim = 0; dim < src.rank(); ++dim) {
    int64_t in = src.shape[dim], out = dst.shape[dim];
    bool brings = (kind == CollectiveKind::all_gather && dim == part.dim) ||
                  (exchanges && dim == part.dim),
         leaves = (kind == CollectiveKind::reduce_scatter && dim == part.dim) ||
                  (exchanges && dim == part.toDim);
    if ((in < out && !brings) || (in > out && !leaves))
      return op.emitOpError()
             << "(C4) moves " << src.type << " to " << dst.type << ", expected "
             << (brings   ? "no fewer elements"
                 : leaves ? "no more elements"
                          : "as many elements")
             << " in dim " << dim;
  }
  return success();
}

LogicalResult verifyPart(CollectiveOp op, const Transfer &part) {
  Strided src(part.src), dst(part.dst);
  if (src.element() != dst.element() || src.rank() != dst.rank())
    return op.emitOpError() << "(C2) moves " << src.type << " to " << dst.type
                            << ", expected one element type and as many dims";
  if (reduces(op.getKind()) && !src.isWideFloat())
    return op.emitOpError()
           << "(C2) reduces " << src.type << ", expected f32 or bf16";
  if (failed(verifyDims(op, part)))
    return failure();
  return verifyShapes(op, part);
}
} // namespace

SmallVector<Transfer> CollectiveOp::getParts() {
  SmallVector<Transfer> parts;
  for (auto [src, dst, dim, toDim] :
       llvm::zip_equal(getInputs(), getOutputs(), getDims(), getToDims()))
    parts.push_back({src, dst, dim, toDim});
  return parts;
}

LogicalResult CollectiveOp::verify() {
  size_t count = getInputs().size();
  if (getAxes().empty() || count == 0 || getOutputs().size() != count ||
      getDims().size() != count || getToDims().size() != count)
    return emitOpError() << "(C1) has " << getAxes().size() << " axes, "
                         << count << " inputs, " << getOutputs().size()
                         << " outputs, " << getDims().size() << " dims and "
                         << getToDims().size()
                         << " to_dims, expected one or more, and as many";
  for (const Transfer &part : getParts())
    if (failed(verifyPart(*this, part)))
      return failure();
  ArrayRef<int64_t> sources = getSources();
  auto isIndex = [&](int64_t source) {
    return source >= -1 && source < static_cast<int64_t>(sources.size());
  };
  if ((getKind() == CollectiveKind::permute) == sources.empty() ||
      !llvm::all_of(sources, isIndex))
    return emitOpError()
           << "(C5) has the sources [" << sources
           << "], expected an index, or -1, for each rank of a permute, "
              "and none of others";
  if (!reduces(getKind()) && getReduction() != Reduction::sum)
    return emitOpError() << "(C6) is " << stringifyCollectiveKind(getKind())
                         << " with the reduction "
                         << stringifyReduction(getReduction())
                         << ", expected sum, since it reduces nothing";
  auto channel = static_cast<int64_t>(getChannel());
  if (channel < 0 || channel > maxChannels)
    return emitOpError() << "(C7) has channel " << channel << ", expected 0 to "
                         << maxChannels;
  if (getAnyOrder() &&
      (!reduces(getKind()) || getReduction() != Reduction::sum))
    return emitOpError() << "(C8) is " << stringifyCollectiveKind(getKind())
                         << " " << stringifyReduction(getReduction())
                         << " in any order, expected all_reduce or "
                            "reduce_scatter, and sum";
  return success();
}

LogicalResult WaitOp::verify() {
  auto channel = static_cast<int64_t>(getChannel()),
       count = static_cast<int64_t>(getCount());
  if (channel < 1 || channel > maxChannels || count < 1)
    return emitOpError() << "(C1) waits for " << count
                         << " collectives of channel " << channel
                         << ", expected one or more of channel 1 to "
                         << maxChannels;
  return success();
}

} // namespace meshwork::schedule
