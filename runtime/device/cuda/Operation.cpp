#include "runtime/device/cuda/Operation.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/device/cuda/OperationKinds.h"
#include "runtime/machine/RotaryRow.h"
#include "runtime/machine/StepState.h"
#include <numeric>

namespace meshwork::runtime::cuda {
using plan::ViewInfo;
namespace {

class RotaryTables : public Operation {
public:
  struct Table {
    DevicePtr at;
    std::vector<float> values;
  };
  /// `positions` of rows; 0: the rows' numbers.
  RotaryTables(const Driver &driver, const plan::RotaryTable &op, int64_t rows,
               DevicePtr positions, DevicePtr cos, DevicePtr sin)
      : driver(driver), op(op), rows(rows), positions(positions),
        tables{{cos, {}}, {sin, {}}} {}

  /// The values stay here, so the copy may read them whenever it runs.
  absl::Status enqueue(Stream stream, bool) override {
    MESHWORK_RETURN_IF_ERROR(fill(stream));
    for (const Table &table : tables)
      MESHWORK_RETURN_IF_ERROR(driver.check(
          driver.copyToDevice(table.at, table.values.data(),
                              table.values.size() * sizeof(float), stream),
          "copying a rotary table to the GPU"));
    return absl::OkStatus();
  }
  bool canBeCaptured() const override { return false; }

private:
  absl::Status fill(Stream stream) {
    const auto &frequencies = plan::orEmpty(op.inverse_frequencies());
    std::vector<int32_t> at(static_cast<size_t>(rows));
    std::iota(at.begin(), at.end(), 0);
    if (positions != 0) {
      MESHWORK_RETURN_IF_ERROR(
          driver.check(driver.copyToHost(at.data(), positions,
                                         at.size() * sizeof(int32_t), stream),
                       "copying positions from the GPU"));
      MESHWORK_RETURN_IF_ERROR(driver.check(driver.streamSynchronize(stream),
                                            "waiting for positions"));
    }
    size_t columns = 2 * frequencies.size();
    for (Table &table : tables)
      table.values.resize(at.size() * columns);
    for (size_t row = 0; row < at.size(); ++row)
      fillRotaryRow(at[row], {frequencies.data(), frequencies.size()},
                    op.scale(), tables[0].values.data() + row * columns,
                    tables[1].values.data() + row * columns);
    return absl::OkStatus();
  }

  const Driver &driver;
  const plan::RotaryTable &op;
  int64_t rows;
  DevicePtr positions;
  Table tables[2];
};

DeviceView deviceView(const OperationContext &context, uint32_t view) {
  const ViewInfo &info = context.program.views[view];
  return {context.arena + context.program.places[view],
          info.dtype,
          {info.shape.begin(), info.shape.end()},
          {info.strides.begin(), info.strides.end()}};
}

class MatmulOperation : public Operation {
public:
  MatmulOperation(std::unique_ptr<BlasLtMatmul> product, plan::Accumulate mode)
      : product(std::move(product)), mode(mode) {}
  absl::Status enqueue(Stream stream, bool sets) override {
    return product->run(stream, accumulates(mode, {sets}));
  }

private:
  std::unique_ptr<BlasLtMatmul> product;
  plan::Accumulate mode;
};

void note(const BlasLtMatmul &product, const std::string &name,
          const OperationContext &context) {
  if (!context.epilogues || !product.hasEpilogue())
    return;
  std::string why = product.whyBeside();
  if (why.empty())
    context.epilogues->runs();
  else
    context.epilogues->leaves(name, why);
}
} // namespace

OperationOr makeRotaryTable(const plan::Instruction &instruction,
                            const OperationContext &context) {
  const plan::RotaryTable &op = *instruction.op_as_RotaryTable();
  const ViewInfo &cos = context.program.views[op.cos()];
  const ViewInfo &sin = context.program.views[op.sin()];
  if (!cos.contiguous || !sin.contiguous)
    return absl::UnimplementedError(
        absl::StrCat("cos is ", describe(cos), " and sin ", describe(sin),
                     ", expected tables without gaps"));
  auto at = [&](uint32_t view) {
    return view == plan::noView ? DevicePtr{0}
                                : context.arena + context.program.places[view];
  };
  return std::make_unique<RotaryTables>(context.gpu.driver(), op, cos.shape[0],
                                        at(op.positions()), at(op.cos()),
                                        at(op.sin()));
}

OperationOr makeMatmul(const plan::Instruction &instruction,
                       const OperationContext &context) {
  const plan::Matmul &op = *instruction.op_as_Matmul();
  MatmulRequest request;
  request.lhs = deviceView(context, op.lhs());
  request.rhs = deviceView(context, op.rhs());
  request.dst = deviceView(context, op.dst());
  if (op.bias() != plan::noView)
    request.bias = deviceView(context, op.bias());
  if (op.lhs_scale() != plan::noView)
    request.lhsScale = deviceView(context, op.lhs_scale()).address;
  if (op.rhs_scale() != plan::noView)
    request.rhsScale = deviceView(context, op.rhs_scale()).address;
  request.epilogue = op.epilogue();
  if (op.aux() != plan::noView)
    request.aux = deviceView(context, op.aux());
  request.multiprocessors = context.multiprocessors;
  request.workspace = context.workspace;
  request.workspaceBytes = context.workspaceBytes;
  request.name = instruction.name() ? instruction.name()->str() : "";
  std::unique_ptr<BlasLtMatmul> product;
  MESHWORK_ASSIGN_OR_RETURN(product, context.blas->prepare(request));
  if (context.tunes)
    MESHWORK_RETURN_IF_ERROR(product->tune(context.stream));
  // Before a capture, which cannot load code.
  MESHWORK_RETURN_IF_ERROR(
      product->load(context.stream, op.accumulate() != plan::Accumulate::no));
  note(*product, request.name, context);
  return std::make_unique<MatmulOperation>(std::move(product), op.accumulate());
}

OperationOr makeOperation(const plan::Instruction &instruction,
                          const OperationContext &context) {
  switch (instruction.op_type()) {
  case plan::Operation::Launch:
    return makeLaunch(instruction, context);
  case plan::Operation::Matmul:
    return makeMatmul(instruction, context);
  case plan::Operation::Attention:
  case plan::Operation::AttentionGrad:
    return makeAttention(instruction, context);
  case plan::Operation::Copy:
    return makeCopy(instruction, context);
  case plan::Operation::RotaryTable:
    return makeRotaryTable(instruction, context);
  default:
    return makeKernels(instruction, context);
  }
}

} // namespace meshwork::runtime::cuda
