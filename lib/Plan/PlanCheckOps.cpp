// Operand types and shapes of each operation, as Plan.fbs describes them.
#include "lib/Plan/Operation.h"
#include "lib/Plan/PlanCheckInternal.h"
#include <cmath>

namespace meshwork::runtime {
namespace {
using Shape = absl::Span<const int64_t>;

bool isFloat(const ViewInfo &view) { return plan::isWideFloat(view.dtype); }

absl::Status expectFloat(const ViewInfo &view, const char *role, size_t dims) {
  if (!isFloat(view) || view.shape.size() != dims)
    return bad(role, " is ", describe(view), ", expected f32 or bf16 with ",
               dims, " dims");
  return absl::OkStatus();
}

absl::Status checkAccumulate(plan::Accumulate mode) {
  if (mode > plan::Accumulate::MAX)
    return bad("unknown accumulate mode ", static_cast<int>(mode));
  return absl::OkStatus();
}

/// The code holds shapes and strides; views must reach as far as it does.
absl::Status checkSpans(const ProgramCheck &c, const plan::Launch &op,
                        const plan::Kernel &kernel) {
  const auto &spans = orEmpty(kernel.arg_bytes());
  if (spans.size() != kernel.num_args())
    return bad("kernel ", quote(kernel.symbol()), " takes ", kernel.num_args(),
               " args and tells the bytes of ", spans.size());
  for (uint32_t i = 0; i < spans.size(); ++i) {
    const ViewInfo &view = c.views[op.args()->Get(i)];
    if (view.spanBytes != spans.Get(i))
      return bad("arg ", i, " is ", describe(view), ", ", view.spanBytes,
                 " bytes from first to last, kernel ", quote(kernel.symbol()),
                 " expects ", spans.Get(i));
  }
  return absl::OkStatus();
}

absl::Status check(const ProgramCheck &c, const plan::Launch &op) {
  uint32_t kernels = c.plan.kernels() ? c.plan.kernels()->size() : 0;
  uint32_t args = op.args() ? op.args()->size() : 0;
  if (op.kernel() >= kernels)
    return bad("kernel ", op.kernel(), " does not exist, there are ", kernels);
  const plan::Kernel &kernel = *c.plan.kernels()->Get(op.kernel());
  if (args != kernel.num_args())
    return bad("it has ", args, " args, kernel ", quote(kernel.symbol()),
               " takes ", kernel.num_args());
  if (op.num_outputs() == 0 || op.num_outputs() > args)
    return bad("num_outputs is ", op.num_outputs(), " of ", args, " args");
  if (op.items() == 0 || op.items() > static_cast<uint64_t>(INT64_MAX) ||
      op.items() != kernel.items())
    return bad("it has ", op.items(), " work items, kernel ",
               quote(kernel.symbol()), " ", kernel.items());
  return checkSpans(c, op, kernel);
}

absl::Status checkScale(const ProgramCheck &c, uint32_t view, bool isNeeded,
                        const char *role) {
  if (view == plan::noView)
    return isNeeded ? bad("there is no ", role,
                          ", expected one beside operands "
                          "of 8 bits")
                    : absl::OkStatus();
  const ViewInfo &scale = c.views[view];
  if (!isNeeded)
    return bad("there is a ", role,
               ", expected none without operands of 8 "
               "bits");
  if (scale.dtype == plan::DType::f32 && scale.elements == 1)
    return absl::OkStatus();
  return bad(role, " is ", describe(scale), ", expected one f32");
}

/// Of 8 bits both operands or none, and with scales.
absl::Status checkMultiplied(const ProgramCheck &c, const plan::Matmul &op) {
  const ViewInfo &lhs = c.views[op.lhs()], &rhs = c.views[op.rhs()];
  bool narrow = plan::isFloat8(lhs.dtype);
  if (!narrow) {
    MESHWORK_RETURN_IF_ERROR(expectFloat(lhs, "lhs", 3));
    MESHWORK_RETURN_IF_ERROR(expectFloat(rhs, "rhs", 3));
  } else if (lhs.shape.size() != 3 || rhs.shape.size() != 3 ||
             !plan::isFloat8(rhs.dtype) ||
             (lhs.dtype == plan::DType::e5m2 && rhs.dtype == lhs.dtype)) {
    return bad("lhs is ", describe(lhs), " and rhs ", describe(rhs),
               ", expected both of 8 bits and not both e5m2, with 3 dims");
  } else if (lhs.strides[2] != 1 || rhs.strides[1] != 1) {
    return bad("lhs is ", describe(lhs), " and rhs ", describe(rhs),
               ", expected both dense along the dim that is summed");
  }
  MESHWORK_RETURN_IF_ERROR(checkScale(c, op.lhs_scale(), narrow, "lhs_scale"));
  return checkScale(c, op.rhs_scale(), narrow, "rhs_scale");
}

/// The input of a GELU, or the gradient's, beside `dst`.
absl::Status checkGelu(const ProgramCheck &c, const plan::Matmul &op) {
  constexpr int64_t unit = 8; // elements that cuBLASLt takes of aux at a time
  const ViewInfo &dst = c.views[op.dst()];
  if (op.accumulate() != plan::Accumulate::no)
    return bad("it has a GELU and adds to dst, expected accumulate no");
  if (dst.strides[2] != 1)
    return bad("dst is ", describe(dst), " with strides ", dst.strides[1], ", ",
               dst.strides[2], ", expected dense rows beside a GELU");
  if (op.aux() == plan::noView)
    return op.epilogue() == plan::Epilogue::gelu
               ? absl::OkStatus()
               : bad("there is no aux, expected what the GELU was applied to");
  const ViewInfo &aux = c.views[op.aux()];
  MESHWORK_RETURN_IF_ERROR(expectView(aux, "aux", dst.dtype, dst.shape));
  if (aux.strides[2] == 1 && aux.strides[1] >= aux.shape[2] &&
      aux.strides[1] % unit == 0)
    return absl::OkStatus();
  return bad("aux is ", describe(aux), " with strides ", aux.strides[1], ", ",
             aux.strides[2], ", expected dense rows a multiple of ", unit,
             " elements apart");
}

absl::Status checkSums(const ProgramCheck &c, const plan::Matmul &op) {
  const ViewInfo &dst = c.views[op.dst()];
  if (op.aux() == plan::noView)
    return bad("there is no aux, expected a place for the sums");
  const ViewInfo &aux = c.views[op.aux()];
  int64_t count = dst.shape[op.epilogue() == plan::Epilogue::sum_lhs ? 1 : 2];
  MESHWORK_RETURN_IF_ERROR(expectView(aux, "aux", dst.dtype, {count}));
  if (aux.contiguous)
    return absl::OkStatus();
  return bad("aux has stride ", aux.strides[0], ", expected dense sums");
}

absl::Status checkEpilogue(const ProgramCheck &c, const plan::Matmul &op) {
  if (op.epilogue() > plan::Epilogue::MAX)
    return bad("unknown epilogue ", static_cast<int>(op.epilogue()));
  const ViewInfo &lhs = c.views[op.lhs()];
  if (op.epilogue() == plan::Epilogue::none)
    return op.aux() == plan::noView
               ? absl::OkStatus()
               : bad("there is an aux, expected none without an epilogue");
  if (!isFloat(lhs) || lhs.shape[0] != 1)
    return bad("lhs is ", describe(lhs),
               ", expected one product of f32 or "
               "bf16 beside an epilogue");
  if (op.bias() != plan::noView && op.epilogue() != plan::Epilogue::gelu)
    return bad("it has a bias and the epilogue ",
               plan::EnumNameEpilogue(op.epilogue()), ", expected one of them");
  bool writes = op.epilogue() != plan::Epilogue::gelu_grad;
  for (uint32_t view : {op.lhs(), op.rhs(), op.dst()})
    if (writes && op.aux() != plan::noView &&
        c.views[view].buffer == c.views[op.aux()].buffer)
      return bad("aux shares buffer ", quote(c.bufferOf(c.views[view]).name()),
                 " with another operand, expected one of its own");
  bool isGelu = op.epilogue() == plan::Epilogue::gelu ||
                op.epilogue() == plan::Epilogue::gelu_grad;
  return isGelu ? checkGelu(c, op) : checkSums(c, op);
}

absl::Status check(const ProgramCheck &c, const plan::Matmul &op) {
  const ViewInfo &lhs = c.views[op.lhs()], &rhs = c.views[op.rhs()],
                 &dst = c.views[op.dst()];
  MESHWORK_RETURN_IF_ERROR(checkMultiplied(c, op));
  MESHWORK_RETURN_IF_ERROR(expectFloat(dst, "dst", 3));
  MESHWORK_RETURN_IF_ERROR(checkAccumulate(op.accumulate()));
  int64_t b = lhs.shape[0], m = lhs.shape[1], k = lhs.shape[2],
          n = rhs.shape[2];
  plan::DType type = plan::isFloat8(lhs.dtype) ? rhs.dtype : lhs.dtype;
  MESHWORK_RETURN_IF_ERROR(expectView(rhs, "rhs", type, {b, k, n}));
  MESHWORK_RETURN_IF_ERROR(expectView(dst, "dst", dst.dtype, {b, m, n}));
  for (const ViewInfo *view : {&lhs, &rhs, &dst})
    if (view->strides[1] != 1 && view->strides[2] != 1)
      return bad(describe(*view), " has inner strides ", view->strides[1],
                 " and ", view->strides[2], ", expected one of them to be 1");
  MESHWORK_RETURN_IF_ERROR(checkEpilogue(c, op));
  if (op.bias() == plan::noView)
    return absl::OkStatus();
  const ViewInfo &bias = c.views[op.bias()];
  if (!isFloat(bias) || bias.shape != Shape{n})
    return bad("bias is ", describe(bias), ", expected ", n, " elements");
  return absl::OkStatus();
}

/// One i32 that says where a shard begins; may be absent.
absl::Status checkIndex(const ProgramCheck &c, uint32_t view,
                        const char *role) {
  if (view == plan::noView ||
      (c.views[view].dtype == plan::DType::i32 && c.views[view].elements == 1))
    return absl::OkStatus();
  return bad(role, " is ", describe(c.views[view]), ", expected one i32");
}

absl::Status checkDropout(const ProgramCheck &c, const plan::Dropout *dropout,
                          int64_t heads) {
  if (!dropout)
    return absl::OkStatus();
  if (!(dropout->keep_scale() >= 1) || !std::isfinite(dropout->keep_scale()))
    return bad("dropout has keep_scale ", dropout->keep_scale(),
               ", expected at least 1");
  const ViewInfo &random = c.views[dropout->random()];
  MESHWORK_RETURN_IF_ERROR(
      expectView(random, "dropout.random", plan::DType::i32, {3}));
  if (dropout->heads() != 0 && dropout->heads() < heads)
    return bad("dropout is over ", dropout->heads(), " heads, q alone has ",
               heads);
  return checkIndex(c, dropout->first_head(), "dropout.first_head");
}

template <typename Op>
absl::Status checkDocuments(const ProgramCheck &c, const Op &op, int64_t batch,
                            int64_t sequence) {
  if (op.documents() == plan::noView)
    return absl::OkStatus();
  const ViewInfo &documents = c.views[op.documents()];
  MESHWORK_RETURN_IF_ERROR(
      expectView(documents, "documents", plan::DType::i32, {batch, sequence}));
  if (!documents.contiguous)
    return bad("documents are ", describe(documents), ", expected no gaps");
  if (!op.causal())
    return bad("has documents but is not causal");
  return absl::OkStatus();
}

absl::Status checkRowNumbers(const ProgramCheck &c, uint32_t view,
                             const char *role, int64_t rows) {
  if (view == plan::noView)
    return absl::OkStatus();
  const ViewInfo &numbers = c.views[view];
  MESHWORK_RETURN_IF_ERROR(expectView(numbers, role, plan::DType::i32, {rows}));
  return numbers.contiguous
             ? absl::OkStatus()
             : bad(role, " are ", describe(numbers), ", expected no gaps");
}

template <typename Op>
absl::Status checkPositions(const ProgramCheck &c, const Op &op, int64_t rows,
                            int64_t keys) {
  MESHWORK_RETURN_IF_ERROR(
      checkRowNumbers(c, op.positions(), "positions", rows));
  MESHWORK_RETURN_IF_ERROR(
      checkRowNumbers(c, op.key_positions(), "key positions", keys));
  if (op.key_positions() == plan::noView)
    return op.total_keys() == 0 ? absl::OkStatus()
                                : bad("has ", op.total_keys(),
                                      " keys in all but no key positions");
  if (op.positions() == plan::noView)
    return bad("has key positions but none of its queries");
  constexpr int64_t most = int64_t{1} << 31;
  return op.total_keys() > 0 && op.total_keys() <= most
             ? absl::OkStatus()
             : bad("has ", op.total_keys(),
                   " keys in all, expected 1 to 2147483648");
}

/// Parts of sums over keys may be f32.
template <typename Op>
absl::Status checkPart(const ProgramCheck &c, const Op &op, uint32_t view,
                       const char *role, const ViewInfo &like) {
  bool isPart = op.key_positions() != plan::noView &&
                c.views[view].dtype == plan::DType::f32;
  return expectView(c.views[view], role, isPart ? plan::DType::f32 : like.dtype,
                    like.shape);
}

/// What forward and backward share.
template <typename Op>
absl::Status checkAttention(const ProgramCheck &c, const Op &op) {
  const ViewInfo &q = c.views[op.q()], &k = c.views[op.k()];
  MESHWORK_RETURN_IF_ERROR(expectFloat(q, "q", 4));
  MESHWORK_RETURN_IF_ERROR(expectFloat(k, "k", 4));
  int64_t b = q.shape[0], s = q.shape[1], heads = q.shape[2], d = q.shape[3],
          kvHeads = k.shape[2],
          keys = op.positions() == plan::noView ? s : k.shape[1];
  MESHWORK_RETURN_IF_ERROR(expectView(k, "k", q.dtype, {b, keys, kvHeads, d}));
  MESHWORK_RETURN_IF_ERROR(expectView(c.views[op.v()], "v", q.dtype, k.shape));
  MESHWORK_RETURN_IF_ERROR(
      expectView(c.views[op.lse()], "lse", plan::DType::f32, {b, heads, s}));
  if (heads % kvHeads != 0)
    return bad(heads, " query heads are not a multiple of ", kvHeads,
               " key heads");
  if (!std::isfinite(op.scale()))
    return bad("scale is ", op.scale());
  if (op.window() < 0)
    return bad("window is ", op.window(), ", expected 0 or more");
  MESHWORK_RETURN_IF_ERROR(checkDocuments(c, op, b, s));
  MESHWORK_RETURN_IF_ERROR(checkPositions(c, op, s, keys));
  return checkDropout(c, op.dropout(), heads);
}

absl::Status check(const ProgramCheck &c, const plan::Attention &op) {
  MESHWORK_RETURN_IF_ERROR(checkAttention(c, op));
  return checkPart(c, op, op.out(), "out", c.views[op.q()]);
}

absl::Status check(const ProgramCheck &c, const plan::AttentionGrad &op) {
  MESHWORK_RETURN_IF_ERROR(checkAttention(c, op));
  const ViewInfo &q = c.views[op.q()], &k = c.views[op.k()];
  MESHWORK_RETURN_IF_ERROR(
      expectView(c.views[op.out()], "out", q.dtype, q.shape));
  MESHWORK_RETURN_IF_ERROR(
      expectView(c.views[op.dout()], "dout", q.dtype, q.shape));
  MESHWORK_RETURN_IF_ERROR(checkPart(c, op, op.dq(), "dq", q));
  MESHWORK_RETURN_IF_ERROR(checkPart(c, op, op.dk(), "dk", k));
  return checkPart(c, op, op.dv(), "dv", k);
}

/// Whether each number that the input may be has one of so many rows. Token
/// files are checked against the vocabulary, not against this table.
absl::Status checkLookup(const ProgramCheck &c, plan::InputKind kind,
                         int64_t rows) {
  bool isToken =
      kind == plan::InputKind::tokens || kind == plan::InputKind::targets;
  bool isPosition = kind == plan::InputKind::documents ||
                    kind == plan::InputKind::document_positions;
  if (isToken && rows < c.plan.vocabulary())
    return bad("the table has ", rows, " rows, the vocabulary ",
               c.plan.vocabulary());
  if (isPosition && rows < c.plan.sequence())
    return bad("the table has ", rows, " rows, the sequence ",
               c.plan.sequence(), " positions");
  if (kind == plan::InputKind::inner_targets ||
      kind == plan::InputKind::positions)
    return bad("ids are ", plan::EnumNameInputKind(kind),
               ", which may be -1, expected rows of the table");
  return absl::OkStatus();
}

/// `rows` must be ids' shape followed by the table's without its first dim.
absl::Status checkRows(const ProgramCheck &c, const ViewInfo &table,
                       const ViewInfo &ids, const ViewInfo &rows,
                       const char *role, uint32_t firstRow) {
  if (ids.dtype != plan::DType::i32)
    return bad("ids are ", describe(ids), ", expected i32");
  if (!isFloat(table) || table.shape.size() < 2 || !isFloat(rows))
    return bad("the table is ", describe(table), " and ", role, " ",
               describe(rows),
               ", expected floats and a table of 2 dims or more");
  std::vector<int64_t> shape(ids.shape.begin(), ids.shape.end());
  shape.insert(shape.end(), table.shape.begin() + 1, table.shape.end());
  MESHWORK_RETURN_IF_ERROR(expectView(rows, role, rows.dtype, shape));
  if (firstRow != plan::noView) // Other ranks hold the other rows.
    return checkIndex(c, firstRow, "first_row");
  for (const plan::Input *input : orEmpty(c.program.inputs()))
    if (input->view() < c.views.size() &&
        c.views[input->view()].buffer == ids.buffer)
      MESHWORK_RETURN_IF_ERROR(checkLookup(c, input->kind(), table.shape[0]));
  return absl::OkStatus();
}

absl::Status check(const ProgramCheck &c, const plan::Embedding &op) {
  return checkRows(c, c.views[op.table()], c.views[op.ids()], c.views[op.out()],
                   "out", op.first_row());
}

absl::Status check(const ProgramCheck &c, const plan::EmbeddingGrad &op) {
  MESHWORK_RETURN_IF_ERROR(checkAccumulate(op.accumulate()));
  return checkRows(c, c.views[op.dtable()], c.views[op.ids()],
                   c.views[op.dout()], "dout", op.first_row());
}

absl::Status check(const ProgramCheck &c, const plan::RotaryTable &op) {
  const ViewInfo &cos = c.views[op.cos()], &sin = c.views[op.sin()];
  uint32_t count =
      op.inverse_frequencies() ? op.inverse_frequencies()->size() : 0;
  if (cos.dtype != plan::DType::f32 || cos.shape.size() != 2 ||
      cos.shape[1] != 2 * int64_t{count} || !cos.contiguous || !sin.contiguous)
    return bad("cos is ", describe(cos), " for ", count,
               " frequencies, expected a contiguous f32[sequence,",
               2 * uint64_t{count}, "]");
  MESHWORK_RETURN_IF_ERROR(expectView(sin, "sin", plan::DType::f32, cos.shape));
  if (op.positions() != plan::noView) {
    MESHWORK_RETURN_IF_ERROR(expectView(c.views[op.positions()], "positions",
                                        plan::DType::i32,
                                        cos.shape.subspan(0, 1)));
    if (!c.views[op.positions()].contiguous)
      return bad("positions are not contiguous");
  }
  bool finite = std::isfinite(op.scale());
  for (uint32_t i = 0; i < count; ++i)
    finite &= std::isfinite(op.inverse_frequencies()->Get(i));
  return finite ? absl::OkStatus()
                : bad("a frequency or the scale is not finite");
}

absl::Status check(const ProgramCheck &c, const plan::CopyBlock &op) {
  const ViewInfo &src = c.views[op.src()], &dst = c.views[op.dst()];
  std::vector<int64_t> shape(src.shape.begin(), src.shape.end());
  if (op.dim() < 0 || static_cast<size_t>(op.dim()) >= shape.size() ||
      dst.shape.size() != shape.size())
    return bad("copies ", describe(src), " to ", describe(dst), " along dim ",
               op.dim(), ", expected a dim of both");
  auto dim = static_cast<size_t>(op.dim());
  shape[dim] = dst.shape[dim];
  MESHWORK_RETURN_IF_ERROR(expectView(dst, "dst", src.dtype, shape));
  if (src.buffer == dst.buffer)
    return bad("src and dst share buffer ", quote(c.bufferOf(src).name()));
  return checkIndex(c, op.first(), "first");
}

absl::Status check(const ProgramCheck &c, const plan::Fill &op) {
  const ViewInfo &dst = c.views[op.dst()];
  float value = op.value();
  if (!isFloat(dst) && !(value >= -2147483648.0f && value < 2147483648.0f &&
                         value == std::trunc(value)))
    return bad("fills ", describe(dst), " with ", value);
  return absl::OkStatus();
}

absl::Status check(const ProgramCheck &c, const plan::Collective &op) {
  return checkCollective(c, op);
}

absl::Status check(const ProgramCheck &c, const plan::Send &op) {
  return checkTransfer(c, op);
}
absl::Status check(const ProgramCheck &c, const plan::Receive &op) {
  return checkTransfer(c, op);
}

/// See checkAsync: it depends on what is before.
absl::Status check(const ProgramCheck &, const plan::Wait &) {
  return absl::OkStatus();
}
/// See checkLists and checkTurns: on what is behind.
absl::Status check(const ProgramCheck &, const plan::Repeat &) {
  return absl::OkStatus();
}

} // namespace

absl::Status checkOperation(const ProgramCheck &c,
                            const plan::Instruction &instruction) {
  if (instruction.op_type() == plan::Operation::NONE ||
      instruction.op_type() > plan::Operation::MAX || !instruction.op())
    return bad("unknown or absent operation ",
               static_cast<int>(instruction.op_type()));
  absl::Status found;
  forEachOperand(instruction, [&](const plan::Operand &operand) {
    if (found.ok())
      found = findView(c, operand.view, operand.role).status();
  });
  MESHWORK_RETURN_IF_ERROR(found);
  return plan::visitOperation<absl::Status>(
      instruction, [&](const auto &op) { return check(c, op); });
}

} // namespace meshwork::runtime
