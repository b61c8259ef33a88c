// TopK: the numbers of a row's largest elements.
//
// A row is walked once, from the lowest number on, with the best so far in
// order: most elements are less than the last of these. Elements are compared
// as integers, so no setting of the machine's can make small numbers equal.
#include <algorithm>
#include <bit>
#include <optional>

#include "absl/strings/str_cat.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/device/cpu/Operation.h"
#include "runtime/device/cpu/Rows.h"

namespace meshwork::runtime::cpu {
namespace {

/// Larger for a larger number; a NaN's is the largest, -0 has that of 0.
int32_t keyOf(float value) {
  auto bits = std::bit_cast<int32_t>(value);
  int32_t magnitude = bits & INT32_MAX;
  if (magnitude > 0x7f800000)
    return INT32_MAX;
  return bits < 0 ? -magnitude : magnitude;
}

/// The `most` best of what is offered, in rising order of numbers; best first.
struct Best {
  int32_t *numbers, *keys;
  int64_t most, count = 0;

  void offer(int32_t number, int32_t key) {
    if (count == most && key <= keys[count - 1])
      return; // An equal one of a lower number is there.
    int64_t at = count < most ? count++ : count - 1;
    for (; at > 0 && keys[at - 1] < key; --at) {
      numbers[at] = numbers[at - 1];
      keys[at] = keys[at - 1];
    }
    numbers[at] = number;
    keys[at] = key;
  }
};

struct Groups {
  int64_t count, kept, size; // experts in each
  bool addsTwo;
};

class TopKOperation final : public Operation {
public:
  TopKOperation(Rows scores, Rows choices, std::optional<Tensor> valid,
                Groups groups)
      : scores(std::move(scores)), choices(std::move(choices)),
        valid(std::move(valid)), groups(groups) {}

  uint64_t workspaceBytes() const override {
    Carver carver(nullptr);
    carve(carver, nullptr);
    return carver.used();
  }

  void run(const StepState &) override {
    team->parallelFor(scores.count, [&](int64_t row, int64_t end, int thread) {
      for (; row < end; ++row)
        choose(row, thread);
    });
  }

private:
  struct Scratch {
    Best experts, groups;
  };

  Scratch carve(Carver &carver, int32_t *numbers) const {
    Scratch scratch{
        {numbers, carver.take<int32_t>(choices.width), choices.width}, {}};
    if (groups.count > 1)
      scratch.groups = {carver.take<int32_t>(groups.kept),
                        carver.take<int32_t>(groups.kept), groups.kept};
    return scratch;
  }

  bool isValid(int64_t row) const {
    return !valid ||
           reinterpret_cast<const float *>(valid->in(arena))[row] != 0;
  }

  void choose(int64_t row, int thread) const {
    auto *numbers = choices.row<int32_t>(arena, row);
    if (!isValid(row))
      return (void)std::fill_n(numbers, choices.width, -1);
    Carver carver(workspaceOf(thread));
    Scratch scratch = carve(carver, numbers);
    const float *values = scores.row<const float>(arena, row);
    if (groups.count == 1)
      return offer(values, 0, scores.width, scratch.experts);
    for (int64_t group = 0; group < groups.count; ++group)
      scratch.groups.offer(static_cast<int32_t>(group),
                           keyOfGroup(values + group * groups.size));
    std::sort(scratch.groups.numbers, scratch.groups.numbers + groups.kept);
    for (int64_t i = 0; i < groups.kept; ++i) {
      int64_t begin = scratch.groups.numbers[i] * groups.size;
      offer(values, begin, begin + groups.size, scratch.experts);
    }
  }

  static void offer(const float *values, int64_t begin, int64_t end,
                    Best &best) {
    for (int64_t i = begin; i < end; ++i)
      best.offer(static_cast<int32_t>(i), keyOf(values[i]));
  }

  int32_t keyOfGroup(const float *values) const {
    int32_t numbers[2], keys[2];
    Best best{numbers, keys, groups.addsTwo ? 2 : 1};
    offer(values, 0, groups.size, best);
    return groups.addsTwo ? keyOf(values[numbers[0]] + values[numbers[1]])
                          : keys[0];
  }

  Rows scores, choices;
  std::optional<Tensor> valid;
  Groups groups;
};

/// The check of the plan says all this (lib/Plan/CheckTopK.cpp); the compiler
/// asks for a workspace before it.
absl::StatusOr<Groups> groupsOf(const plan::TopK &op, const Rows &scores,
                                const Rows &choices) {
  int64_t count = op.groups(), kept = op.kept_groups();
  bool addsTwo = op.group_score() == plan::GroupScore::two_best;
  if (count < 1 || scores.width % count != 0 || kept < 1 || kept > count ||
      scores.width / count < (addsTwo ? 2 : 1) ||
      choices.width > scores.width / count * kept ||
      choices.count != scores.count || scores.width > INT32_MAX)
    return absl::InvalidArgumentError(
        absl::StrCat("makes ", choices.width, " choices of ", scores.width,
                     " experts in ", kept, " of ", count, " groups"));
  return Groups{count, kept, scores.width / count, addsTwo};
}

} // namespace

OperationOr make(const plan::TopK &op, const ProgramOnRank &program) {
  Rows scores, choices;
  MESHWORK_ASSIGN_OR_RETURN(
      scores, rowsOf(program, op.scores(), DType::f32, -1, "scores"));
  MESHWORK_ASSIGN_OR_RETURN(
      choices, rowsOf(program, op.choices(), DType::i32, -1, "choices"));
  Groups groups;
  MESHWORK_ASSIGN_OR_RETURN(groups, groupsOf(op, scores, choices));
  std::optional<Tensor> valid;
  if (op.valid() != plan::noView) {
    MESHWORK_ASSIGN_OR_RETURN(valid, tensorOf(program, op.valid(), "valid"));
    int64_t count;
    MESHWORK_RETURN_IF_ERROR(expectType(*valid, DType::f32, "valid"));
    MESHWORK_ASSIGN_OR_RETURN(count, denseCount(*valid, "valid"));
    if (count != scores.count)
      return absl::InvalidArgumentError(absl::StrCat(
          "valid is ", valid->describe(), ", expected ", scores.count));
  }
  return std::make_unique<TopKOperation>(std::move(scores), std::move(choices),
                                         std::move(valid), groups);
}

} // namespace meshwork::runtime::cpu
