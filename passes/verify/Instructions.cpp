#include "passes/verify/Instructions.h"

#include "absl/strings/str_cat.h"
#include "lib/Plan/Operation.h"
#include "meshwork/Plan/Frame.h"
#include "passes/interpreter/Blocks.h"
#include "passes/interpreter/Evaluate.h"
#include "passes/interpreter/Interpreter.h"
#include "runtime/machine/StepState.h"
#include <cmath>

namespace meshwork::verify {
using interpreter::Tensor;

Tensor Operands::read(uint32_t view) {
  if (problem.ok()) {
    absl::StatusOr<Tensor> values = rank.read(rank.view(view));
    if (values.ok())
      return *values;
    problem = values.status();
  }
  return zeros(view);
}

std::optional<Tensor> Operands::readIf(uint32_t view) {
  return view == plan::noView ? std::nullopt : std::optional(read(view));
}

void Operands::write(uint32_t view, const Tensor &values) {
  if (problem.ok())
    problem = rank.write(rank.view(view), values);
}

void Operands::add(uint32_t view, Tensor values, bool adds) {
  if (adds) {
    Tensor before = read(view);
    for (int64_t i = 0; i < values.size(); ++i)
      values[i] += before[i];
  }
  write(view, values);
}

Tensor Operands::zeros(uint32_t view) const {
  auto shape = rank.view(view).info->shape;
  return Tensor(std::vector<int64_t>(shape.begin(), shape.end()));
}

namespace {
/// One overload for each kind of instruction that a rank runs alone.
class Runner {
public:
  Runner(Operands &operands, bool sets, const KernelFunctions &kernels)
      : on(operands), state{sets}, kernels(kernels) {}

  absl::Status operator()(const plan::Launch &op);
  absl::Status operator()(const plan::Matmul &op);
  absl::Status operator()(const plan::Attention &op);
  absl::Status operator()(const plan::AttentionGrad &op);
  absl::Status operator()(const plan::Embedding &op);
  absl::Status operator()(const plan::EmbeddingGrad &op);
  absl::Status operator()(const plan::RotaryTable &op);
  absl::Status operator()(const plan::Fill &op);
  absl::Status operator()(const plan::CopyBlock &op);
  absl::Status operator()(const plan::Copy &op);
  template <typename Other> absl::Status operator()(const Other &) {
    return absl::InternalError("is no instruction of one rank");
  }

private:
  bool adds(plan::Accumulate mode) const {
    return runtime::accumulates(mode, state);
  }
  void finishProduct(const plan::Matmul &op, Tensor &product, const Tensor &lhs,
                     const Tensor &rhs);
  int64_t rowOf(double id, double first, int64_t rows);

  Operands &on;
  runtime::StepState state;
  const KernelFunctions &kernels;
};

absl::Status Runner::operator()(const plan::Launch &op) {
  uint32_t inputs = op.args()->size() - op.num_outputs();
  interpreter::Tensors arguments;
  for (uint32_t i = 0; i < inputs; ++i)
    arguments.push_back(on.read(op.args()->Get(i)));
  if (!on.status().ok())
    return on.status();
  interpreter::Results results =
      interpreter::evaluateFunction(kernels[op.kernel()], arguments);
  if (failed(results))
    return absl::InternalError("has a kernel that cannot be interpreted");
  for (uint32_t i = 0; i < op.num_outputs(); ++i)
    on.write(op.args()->Get(inputs + i), (*results)[i]);
  return on.status();
}

//===-- Matmul --------------------------------------------------------------//

Tensor multiply(const Tensor &lhs, const Tensor &rhs, Tensor result) {
  int64_t batch = result.getDimSize(0), rows = result.getDimSize(1),
          cols = result.getDimSize(2), depth = lhs.getDimSize(2);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t k = 0; k < depth; ++k) {
        double left = lhs[(b * rows + m) * depth + k];
        for (int64_t n = 0; n < cols; ++n)
          result[(b * rows + m) * cols + n] +=
              left * rhs[(b * depth + k) * cols + n];
      }
  return result;
}

/// Sums of lhs over k, or of rhs.
Tensor sumsOverDepth(const Tensor &operand, bool isLhs, Tensor sums) {
  int64_t depth = operand.getDimSize(isLhs ? 2 : 1);
  for (int64_t i = 0; i < sums.size(); ++i)
    for (int64_t k = 0; k < depth; ++k)
      sums[i] += operand[isLhs ? i * depth + k : k * sums.size() + i];
  return sums;
}

void Runner::finishProduct(const plan::Matmul &op, Tensor &product,
                           const Tensor &lhs, const Tensor &rhs) {
  switch (op.epilogue()) {
  case plan::Epilogue::none:
    return;
  case plan::Epilogue::gelu:
    if (op.aux() != plan::noView)
      on.write(op.aux(), product);
    for (int64_t i = 0; i < product.size(); ++i)
      product[i] = interpreter::Gelu(product[i]).value();
    return;
  case plan::Epilogue::gelu_grad: {
    Tensor aux = on.read(op.aux());
    for (int64_t i = 0; i < product.size(); ++i)
      product[i] *= interpreter::Gelu(aux[i]).slope();
    return;
  }
  case plan::Epilogue::sum_lhs:
  case plan::Epilogue::sum_rhs:
    bool isLhs = op.epilogue() == plan::Epilogue::sum_lhs;
    on.write(op.aux(),
             sumsOverDepth(isLhs ? lhs : rhs, isLhs, on.zeros(op.aux())));
  }
}

absl::Status Runner::operator()(const plan::Matmul &op) {
  Tensor lhs = on.read(op.lhs()), rhs = on.read(op.rhs());
  Tensor product = multiply(lhs, rhs, on.zeros(op.dst()));
  for (uint32_t scale : {op.lhs_scale(), op.rhs_scale()})
    if (std::optional<Tensor> by = on.readIf(scale))
      for (int64_t i = 0; i < product.size(); ++i)
        product[i] *= (*by)[0];
  if (std::optional<Tensor> bias = on.readIf(op.bias()))
    for (int64_t i = 0; i < product.size(); ++i)
      product[i] += (*bias)[i % bias->size()];
  finishProduct(op, product, lhs, rhs);
  on.add(op.dst(), product, adds(op.accumulate()));
  return on.status();
}

//===-- Attention -----------------------------------------------------------//

/// What both kinds are told, and the tensors that it points to.
struct Attended {
  template <typename Op> Attended(const Op &op, Operands &on) {
    terms.causal = op.causal();
    terms.window = op.window();
    terms.scale = op.scale();
    terms.totalKeys = op.total_keys();
    terms.documents = keep(documents, op.documents(), on);
    terms.positions = keep(positions, op.positions(), on);
    terms.keys = keep(keys, op.key_positions(), on);
    if (op.dropout())
      readDropout(*op.dropout(), on);
  }

  interpreter::AttentionTerms terms;

private:
  static const Tensor *keep(std::optional<Tensor> &to, uint32_t view,
                            Operands &on) {
    to = on.readIf(view);
    return to ? &*to : nullptr;
  }
  void readDropout(const plan::Dropout &dropout, Operands &on) {
    Tensor random = on.read(dropout.random());
    terms.rate = dropout.threshold() / 0x1p32;
    terms.keepScale = dropout.keep_scale();
    terms.stream = dropout.stream();
    terms.totalHeads = dropout.heads();
    terms.random = {random[0], random[1], random[2], 0};
    if (std::optional<Tensor> first = on.readIf(dropout.first_head()))
      terms.random.firstHead = static_cast<int64_t>((*first)[0]);
  }
  std::optional<Tensor> documents, positions, keys;
};

absl::Status Runner::operator()(const plan::Attention &op) {
  Attended with(op, on);
  interpreter::Tensors results = interpreter::attend(
      with.terms, on.read(op.q()), on.read(op.k()), on.read(op.v()));
  on.write(op.out(), results[0]);
  on.write(op.lse(), results[1]);
  return on.status();
}

absl::Status Runner::operator()(const plan::AttentionGrad &op) {
  Attended with(op, on);
  interpreter::Tensors operands;
  for (uint32_t view : {op.q(), op.k(), op.v(), op.out(), op.lse(), op.dout()})
    operands.push_back(on.read(view));
  interpreter::Tensors results =
      interpreter::attendBackward(with.terms, operands);
  on.write(op.dq(), results[0]);
  on.write(op.dk(), results[1]);
  on.write(op.dv(), results[2]);
  return on.status();
}

//===-- Tables --------------------------------------------------------------//

/// The row of the rank's table that an id means; -1: another rank's.
int64_t Runner::rowOf(double id, double first, int64_t rows) {
  double row = id - first;
  return row >= 0 && row < static_cast<double>(rows) ? static_cast<int64_t>(row)
                                                     : -1;
}

absl::Status Runner::operator()(const plan::Embedding &op) {
  Tensor table = on.read(op.table()), ids = on.read(op.ids());
  std::optional<Tensor> first = on.readIf(op.first_row());
  Tensor out = on.zeros(op.out());
  int64_t rows = table.getDimSize(0), width = table.size() / rows;
  for (int64_t i = 0; i < ids.size(); ++i) {
    int64_t row = rowOf(ids[i], first ? (*first)[0] : 0, rows);
    for (int64_t j = 0; j < width; ++j)
      out[i * width + j] = row >= 0 ? table[row * width + j]
                           : first  ? 0
                                    : std::nan("");
  }
  on.write(op.out(), out);
  return on.status();
}

absl::Status Runner::operator()(const plan::EmbeddingGrad &op) {
  Tensor ids = on.read(op.ids()), gradient = on.read(op.dout());
  std::optional<Tensor> first = on.readIf(op.first_row());
  Tensor sum = on.zeros(op.dtable());
  int64_t rows = sum.getDimSize(0), width = sum.size() / rows;
  for (int64_t i = 0; i < ids.size(); ++i) {
    int64_t row = rowOf(ids[i], first ? (*first)[0] : 0, rows);
    for (int64_t j = 0; row >= 0 && j < width; ++j)
      sum[row * width + j] += gradient[i * width + j];
  }
  on.add(op.dtable(), sum, adds(op.accumulate()));
  return on.status();
}

absl::Status Runner::operator()(const plan::RotaryTable &op) {
  std::optional<Tensor> positions = on.readIf(op.positions());
  const auto &frequencies = *op.inverse_frequencies();
  interpreter::Tensors tables = interpreter::rotaryTables(
      {frequencies.data(), frequencies.size()}, op.scale(),
      on.zeros(op.cos()).getDimSize(0), positions ? &*positions : nullptr);
  on.write(op.cos(), tables[0]);
  on.write(op.sin(), tables[1]);
  return on.status();
}

//===-- Moves ---------------------------------------------------------------//

absl::Status Runner::operator()(const plan::Fill &op) {
  Tensor values = on.zeros(op.dst());
  for (int64_t i = 0; i < values.size(); ++i)
    values[i] = op.value();
  on.write(op.dst(), values);
  return on.status();
}

absl::Status Runner::operator()(const plan::CopyBlock &op) {
  Tensor src = on.read(op.src());
  auto first = static_cast<int64_t>(on.read(op.first())[0]);
  on.write(op.dst(),
           interpreter::blockOf(src, op.dim(), first,
                                on.zeros(op.dst()).getDimSize(op.dim())));
  return on.status();
}

absl::Status Runner::operator()(const plan::Copy &op) {
  on.write(op.dst(), on.read(op.src()));
  return on.status();
}
} // namespace

absl::Status runInstruction(const plan::Instruction &instruction, bool sets,
                            const KernelFunctions &kernels, RankState &rank) {
  Operands operands(rank);
  return plan::visitOperation<absl::Status>(instruction,
                                            Runner(operands, sets, kernels));
}

} // namespace meshwork::verify
