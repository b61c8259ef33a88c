// Pick and its gradient: a row's scores at its choices.
#include <algorithm>

#include "runtime/device/cpu/Operation.h"
#include "runtime/device/cpu/Rows.h"

namespace meshwork::runtime::cpu {
namespace {

struct Picking {
  Rows scores, choices, picked;

  bool isExpert(int32_t choice) const {
    return choice >= 0 && choice < scores.width;
  }
};

/// `direction(picking, choices, scores, picked)` does a row.
template <typename Direction> class PickOperation final : public Operation {
public:
  explicit PickOperation(Picking picking) : picking(std::move(picking)) {}

  void run(const StepState &) override {
    team->parallelFor(
        picking.choices.count, [&](int64_t row, int64_t end, int) {
          for (; row < end; ++row)
            Direction::doRow(picking, picking.choices.row<int32_t>(arena, row),
                             picking.scores.row<float>(arena, row),
                             picking.picked.row<float>(arena, row));
        });
  }

private:
  Picking picking;
};

struct Forward {
  static void doRow(const Picking &of, const int32_t *choices,
                    const float *scores, float *picked) {
    for (int64_t i = 0; i < of.choices.width; ++i)
      picked[i] = of.isExpert(choices[i]) ? scores[choices[i]] : 0;
  }
};

struct Backward {
  static void doRow(const Picking &of, const int32_t *choices, float *scores,
                    const float *picked) {
    std::fill_n(scores, of.scores.width, 0.0f);
    for (int64_t i = 0; i < of.choices.width; ++i)
      if (of.isExpert(choices[i]))
        scores[choices[i]] += picked[i];
  }
};

absl::StatusOr<Picking> pickingOf(const ProgramOnRank &program, uint32_t scores,
                                  uint32_t choices, uint32_t picked) {
  Picking picking;
  MESHWORK_ASSIGN_OR_RETURN(picking.scores,
                            rowsOf(program, scores, DType::f32, -1, "scores"));
  MESHWORK_ASSIGN_OR_RETURN(
      picking.choices, rowsOf(program, choices, DType::i32, -1, "choices"));
  MESHWORK_ASSIGN_OR_RETURN(picking.picked,
                            rowsOf(program, picked, DType::f32, -1, "picked"));
  MESHWORK_RETURN_IF_ERROR(expectShape(picking.picked.tensor,
                                       picking.choices.tensor.shape, "picked"));
  MESHWORK_RETURN_IF_ERROR(expectCount(
      picking.scores.count, picking.choices.count, "rows of scores"));
  return picking;
}
} // namespace

OperationOr make(const plan::Pick &op, const ProgramOnRank &program) {
  Picking picking;
  MESHWORK_ASSIGN_OR_RETURN(
      picking, pickingOf(program, op.scores(), op.choices(), op.out()));
  return std::make_unique<PickOperation<Forward>>(std::move(picking));
}

OperationOr make(const plan::PickGrad &op, const ProgramOnRank &program) {
  Picking picking;
  MESHWORK_ASSIGN_OR_RETURN(
      picking, pickingOf(program, op.dscores(), op.choices(), op.dout()));
  return std::make_unique<PickOperation<Backward>>(std::move(picking));
}

} // namespace meshwork::runtime::cpu
