#include "runtime/device/cuda/Operation.h"
#include "absl/strings/str_cat.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/StatusMacros.h"
#include "runtime/device/cpu/Prepare.h"
#include "runtime/device/cpu/RotaryTable.h"
#include "runtime/device/cuda/OperationKinds.h"

namespace meshwork::runtime::cuda {
namespace {

class RotaryTables : public Operation {
public:
  struct Table {
    DevicePtr at;
    std::vector<float> values;
  };
  RotaryTables(const Driver &driver, Table cos, Table sin)
      : driver(driver), tables{std::move(cos), std::move(sin)} {}

  /// The values stay here, so the copy may read them whenever it runs.
  absl::Status enqueue(Stream stream, bool) override {
    for (const Table &table : tables)
      MESHWORK_RETURN_IF_ERROR(driver.check(
          driver.copyToDevice(table.at, table.values.data(),
                              table.values.size() * sizeof(float), stream),
          "copying a rotary table to the GPU"));
    return absl::OkStatus();
  }
  bool canBeCaptured() const override { return false; }

private:
  const Driver &driver;
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
} // namespace

OperationOr makeRotaryTable(const plan::Instruction &instruction,
                            const OperationContext &context) {
  const plan::RotaryTable &op = *instruction.op_as_RotaryTable();
  const ViewInfo &cos = context.program.views[op.cos()];
  const ViewInfo &sin = context.program.views[op.sin()];
  const auto &frequencies = orEmpty(op.inverse_frequencies());
  if (!cos.contiguous || !sin.contiguous)
    return absl::UnimplementedError(
        absl::StrCat("cos is ", describe(cos), " and sin ", describe(sin),
                     ", expected tables without gaps"));
  RotaryTables::Table tables[2];
  const uint32_t views[] = {op.cos(), op.sin()};
  for (size_t i = 0; i < 2; ++i) {
    tables[i].at = context.arena + context.program.places[views[i]];
    tables[i].values.resize(static_cast<size_t>(cos.elements));
  }
  for (int64_t row = 0; row < cos.shape[0]; ++row)
    fillRotaryRow(row, {frequencies.data(), frequencies.size()}, op.scale(),
                  tables[0].values.data() + row * cos.shape[1],
                  tables[1].values.data() + row * cos.shape[1]);
  return std::make_unique<RotaryTables>(
      context.gpu.driver(), std::move(tables[0]), std::move(tables[1]));
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
  request.workspace = context.workspace;
  request.workspaceBytes = context.workspaceBytes;
  request.name = instruction.name() ? instruction.name()->str() : "";
  std::unique_ptr<BlasLtMatmul> product;
  MESHWORK_ASSIGN_OR_RETURN(product, context.blas->prepare(request));
  if (context.tunes)
    MESHWORK_RETURN_IF_ERROR(product->tune(context.stream));
  // The library loads code when a product first runs, which a graph cannot;
  // what adds to its result may be other code.
  MESHWORK_RETURN_IF_ERROR(product->run(context.stream, /*adds=*/false));
  if (op.accumulate() != plan::Accumulate::no)
    MESHWORK_RETURN_IF_ERROR(product->run(context.stream, /*adds=*/true));
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
  case plan::Operation::RotaryTable:
    return makeRotaryTable(instruction, context);
  default:
    return makeKernels(instruction, context);
  }
}

} // namespace meshwork::runtime::cuda
