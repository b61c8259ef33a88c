#include "runtime/train/ProfileShapes.h"
#include "absl/strings/str_format.h"
#include "meshwork/Plan/Frame.h"

namespace meshwork::runtime {
using plan::ViewInfo;
namespace {
const char *text(bool value) { return value ? "true" : "false"; }

/// Elements of a column follow each other in memory, those of a row do not.
bool isTransposed(const ViewInfo &matrix) {
  return matrix.strides[2] != 1 && matrix.strides[1] == 1;
}

/// [m, k] times [k, n], as often as `batch` says.
struct Product {
  int64_t batch, m, n, k;
  const ViewInfo &lhs, &rhs, &dst;
  bool lhsTransposed, rhsTransposed;
  bool bias = false;
  plan::Epilogue epilogue = plan::Epilogue::none;
  plan::Accumulate adds = plan::Accumulate::no;
};

std::string text(const Product &of) {
  return absl::StrFormat(
      ",\"product\":{\"batch\":%d,\"m\":%d,\"n\":%d,\"k\":%d,\"lhs\":\"%s\","
      "\"rhs\":\"%s\",\"dst\":\"%s\",\"lhs_transposed\":%s,\"rhs_transposed\":"
      "%s,\"dst_transposed\":%s,\"bias\":%s,\"epilogue\":\"%s\",\"adds\":\"%s\""
      "}",
      of.batch, of.m, of.n, of.k, plan::EnumNameDType(of.lhs.dtype),
      plan::EnumNameDType(of.rhs.dtype), plan::EnumNameDType(of.dst.dtype),
      text(of.lhsTransposed), text(of.rhsTransposed),
      text(of.dst.shape.size() == 3 && isTransposed(of.dst)), text(of.bias),
      plan::EnumNameEpilogue(of.epilogue), plan::EnumNameAccumulate(of.adds));
}

std::string product(const Rank &rank, const plan::Matmul &op) {
  const ViewInfo &lhs = rank.view(op.lhs()), &rhs = rank.view(op.rhs()),
                 &dst = rank.view(op.dst());
  return text({dst.shape[0], dst.shape[1], dst.shape[2], lhs.shape[2], lhs, rhs,
               dst, isTransposed(lhs), isTransposed(rhs),
               op.bias() != plan::noView, op.epilogue(), op.accumulate()});
}

// Products of experts are told as the one product of as many rows.

std::string product(const Rank &rank, const plan::GroupedProduct &op) {
  const ViewInfo &lhs = rank.view(op.lhs()), &rhs = rank.view(op.rhs()),
                 &out = rank.view(op.out());
  return text({1, lhs.shape[0], out.shape[1], lhs.shape[1], lhs, rhs, out,
               /*lhsTransposed=*/false, isTransposed(rhs)});
}

std::string product(const Rank &rank, const plan::GroupedGradient &op) {
  const ViewInfo &lhs = rank.view(op.lhs()), &rhs = rank.view(op.rhs()),
                 &dst = rank.view(op.dst());
  return text({1, lhs.shape[1], rhs.shape[1], lhs.shape[0], lhs, rhs, dst,
               /*lhsTransposed=*/true, /*rhsTransposed=*/false,
               /*bias=*/false, plan::Epilogue::none, op.accumulate()});
}

template <typename Op> std::string attention(const Rank &rank, const Op &op) {
  const ViewInfo &q = rank.view(op.q()), &k = rank.view(op.k());
  const plan::AttentionPart &part = *op.part();
  return absl::StrFormat(
      ",\"attention\":{\"batch\":%d,\"queries\":%d,\"keys\":%d,\"heads\":%d,"
      "\"kv_heads\":%d,\"head_dim\":%d,\"type\":\"%s\",\"causal\":%s,"
      "\"window\":%d,\"dropout\":%s,\"documents\":%s}",
      q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3],
      plan::EnumNameDType(q.dtype), text(part.causal()), part.window(),
      text(part.dropout() != nullptr), text(part.documents() != plan::noView));
}
} // namespace

std::string shapeMembers(const Rank &rank, const plan::Instruction &source) {
  if (const plan::Matmul *op = source.op_as_Matmul())
    return product(rank, *op);
  if (const plan::GroupedProduct *op = source.op_as_GroupedProduct())
    return product(rank, *op);
  if (const plan::GroupedGradient *op = source.op_as_GroupedGradient())
    return product(rank, *op);
  if (const plan::Attention *op = source.op_as_Attention())
    return attention(rank, *op);
  if (const plan::AttentionGrad *op = source.op_as_AttentionGrad())
    return attention(rank, *op);
  return "";
}

} // namespace meshwork::runtime
