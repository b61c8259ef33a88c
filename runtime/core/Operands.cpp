#include "runtime/core/Operands.h"
#include "meshwork/Plan/Frame.h"

namespace meshwork::runtime {
namespace {
using Visit = absl::FunctionRef<void(const Operand &)>;

void in(Visit visit, uint32_t view, const char *role) {
  visit({view, role, true, false});
}
void out(Visit visit, uint32_t view, const char *role) {
  visit({view, role, false, true});
}
/// With `after_first_microbatch` the first microbatch overwrites, so what was
/// there before does not matter.
void accumulated(Visit visit, uint32_t view, const char *role,
                 plan::Accumulate mode) {
  visit({view, role, mode == plan::Accumulate::yes, true});
}
void dropout(Visit visit, const plan::Dropout *dropout) {
  if (dropout)
    in(visit, dropout->random(), "dropout.random");
  if (dropout && dropout->first_head() != plan::noView)
    in(visit, dropout->first_head(), "dropout.first_head");
}
void documents(Visit visit, uint32_t documents) {
  if (documents != plan::noView)
    in(visit, documents, "documents");
}

void visitLaunch(const plan::Launch &op, Visit visit) {
  uint32_t count = op.args() ? op.args()->size() : 0;
  for (uint32_t i = 0; i < count; ++i)
    if (i + op.num_outputs() < count)
      in(visit, op.args()->Get(i), "args");
    else
      out(visit, op.args()->Get(i), "args (output)");
}
void visitMatmul(const plan::Matmul &op, Visit visit) {
  in(visit, op.lhs(), "lhs");
  in(visit, op.rhs(), "rhs");
  if (op.lhs_scale() != plan::noView)
    in(visit, op.lhs_scale(), "lhs_scale");
  if (op.rhs_scale() != plan::noView)
    in(visit, op.rhs_scale(), "rhs_scale");
  if (op.bias() != plan::noView)
    in(visit, op.bias(), "bias");
  if (op.aux() != plan::noView)
    visit({op.aux(), "aux", op.epilogue() == plan::Epilogue::gelu_grad,
           op.epilogue() != plan::Epilogue::gelu_grad});
  accumulated(visit, op.dst(), "dst", op.accumulate());
}
void visitAttention(const plan::Attention &op, Visit visit) {
  in(visit, op.q(), "q");
  in(visit, op.k(), "k");
  in(visit, op.v(), "v");
  documents(visit, op.documents());
  dropout(visit, op.dropout());
  out(visit, op.out(), "out");
  out(visit, op.lse(), "lse");
}
void visitAttentionGrad(const plan::AttentionGrad &op, Visit visit) {
  in(visit, op.q(), "q");
  in(visit, op.k(), "k");
  in(visit, op.v(), "v");
  in(visit, op.out(), "out");
  in(visit, op.lse(), "lse");
  in(visit, op.dout(), "dout");
  documents(visit, op.documents());
  dropout(visit, op.dropout());
  out(visit, op.dq(), "dq");
  out(visit, op.dk(), "dk");
  out(visit, op.dv(), "dv");
}
void visitCollective(const plan::Collective &op, Visit visit) {
  if (!op.parts())
    return;
  for (const plan::Transfer *part : *op.parts()) {
    if (part->src() == part->dst()) {
      visit({part->src(), "src and dst", true, true});
      continue;
    }
    in(visit, part->src(), "src");
    out(visit, part->dst(), "dst");
  }
}
} // namespace

void forEachOperand(const plan::Instruction &instruction, Visit visit) {
  switch (instruction.op_type()) {
  case plan::Operation::NONE:
    return;
  case plan::Operation::Launch:
    return visitLaunch(*instruction.op_as_Launch(), visit);
  case plan::Operation::Matmul:
    return visitMatmul(*instruction.op_as_Matmul(), visit);
  case plan::Operation::Attention:
    return visitAttention(*instruction.op_as_Attention(), visit);
  case plan::Operation::AttentionGrad:
    return visitAttentionGrad(*instruction.op_as_AttentionGrad(), visit);
  case plan::Operation::Embedding: {
    const plan::Embedding &op = *instruction.op_as_Embedding();
    in(visit, op.table(), "table");
    in(visit, op.ids(), "ids");
    if (op.first_row() != plan::noView)
      in(visit, op.first_row(), "first_row");
    return out(visit, op.out(), "out");
  }
  case plan::Operation::EmbeddingGrad: {
    const plan::EmbeddingGrad &op = *instruction.op_as_EmbeddingGrad();
    in(visit, op.ids(), "ids");
    in(visit, op.dout(), "dout");
    if (op.first_row() != plan::noView)
      in(visit, op.first_row(), "first_row");
    return accumulated(visit, op.dtable(), "dtable", op.accumulate());
  }
  case plan::Operation::RotaryTable: {
    const plan::RotaryTable &op = *instruction.op_as_RotaryTable();
    out(visit, op.cos(), "cos");
    return out(visit, op.sin(), "sin");
  }
  case plan::Operation::Fill:
    return out(visit, instruction.op_as_Fill()->dst(), "dst");
  case plan::Operation::CopyBlock: {
    const plan::CopyBlock &op = *instruction.op_as_CopyBlock();
    in(visit, op.src(), "src");
    in(visit, op.first(), "first");
    return out(visit, op.dst(), "dst");
  }
  case plan::Operation::Collective:
    return visitCollective(*instruction.op_as_Collective(), visit);
  case plan::Operation::Wait:
    return;
  }
}

} // namespace meshwork::runtime
