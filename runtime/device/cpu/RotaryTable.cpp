// The cosine and sine tables of rotary position embeddings.
#include "absl/strings/str_cat.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/device/cpu/Operation.h"
#include "runtime/machine/RotaryRow.h"
#include <optional>

namespace meshwork::runtime::cpu {
namespace {

class RotaryTableOperation final : public Operation {
public:
  RotaryTableOperation(const Tensor &cos, const Tensor &sin,
                       std::optional<Tensor> positions,
                       std::vector<float> frequencies, float scale)
      : cos(cos), sin(sin), positions(std::move(positions)),
        frequencies(std::move(frequencies)), scale(scale) {}

  void run(const StepState &) override {
    team->parallelFor(cos.shape[0], [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row)
        fillRow(row);
    });
  }

private:
  void fillRow(int64_t row) {
    int64_t position =
        positions ? reinterpret_cast<int32_t *>(positions->in(arena))[row]
                  : row;
    fillRotaryRow(
        position, frequencies, scale,
        reinterpret_cast<float *>(cos.in(arena)) + row * cos.strides[0],
        reinterpret_cast<float *>(sin.in(arena)) + row * sin.strides[0]);
  }

  Tensor cos, sin;
  std::optional<Tensor> positions; // of rows; none: the rows' numbers
  std::vector<float> frequencies;
  float scale;
};

absl::Status checkTable(const Tensor &table, const char *role) {
  MESHWORK_RETURN_IF_ERROR(expectType(table, DType::f32, role));
  MESHWORK_RETURN_IF_ERROR(expectRank(table, 2, role));
  if (table.strides[1] == 1)
    return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(role, " is ", table.describe(), ", expected dense rows"));
}

absl::StatusOr<std::optional<Tensor>> positionsOf(const plan::RotaryTable &op,
                                                  const ProgramOnRank &program,
                                                  int64_t rows) {
  if (op.positions() == plan::noView)
    return std::nullopt;
  Tensor found;
  MESHWORK_ASSIGN_OR_RETURN(found,
                            tensorOf(program, op.positions(), "positions"));
  MESHWORK_RETURN_IF_ERROR(expectType(found, DType::i32, "positions"));
  MESHWORK_RETURN_IF_ERROR(expectShape(found, {rows}, "positions"));
  MESHWORK_RETURN_IF_ERROR(denseCount(found, "positions").status());
  return found;
}

} // namespace

OperationOr make(const plan::RotaryTable &op, const ProgramOnRank &program) {
  Tensor cos, sin;
  MESHWORK_ASSIGN_OR_RETURN(cos, tensorOf(program, op.cos(), "cos"));
  MESHWORK_ASSIGN_OR_RETURN(sin, tensorOf(program, op.sin(), "sin"));
  MESHWORK_RETURN_IF_ERROR(checkTable(cos, "cos"));
  MESHWORK_RETURN_IF_ERROR(checkTable(sin, "sin"));
  MESHWORK_RETURN_IF_ERROR(expectShape(sin, cos.shape, "sin"));
  std::optional<Tensor> positions;
  MESHWORK_ASSIGN_OR_RETURN(positions, positionsOf(op, program, cos.shape[0]));
  std::vector<float> frequencies;
  if (op.inverse_frequencies())
    frequencies.assign(op.inverse_frequencies()->begin(),
                       op.inverse_frequencies()->end());
  if (static_cast<int64_t>(frequencies.size()) * 2 != cos.shape[1])
    return absl::InvalidArgumentError(
        absl::StrCat("has ", frequencies.size(), " frequencies for ",
                     cos.shape[1], " columns, expected half as many"));
  return std::make_unique<RotaryTableOperation>(
      cos, sin, std::move(positions), std::move(frequencies), op.scale());
}

} // namespace meshwork::runtime::cpu
