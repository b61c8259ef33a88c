// LimitChoices: a thread has a group, and counts what its experts have.
#include <algorithm>

#include "meshwork/Plan/Frame.h"
#include "runtime/device/cpu/Operation.h"
#include "runtime/device/cpu/Rows.h"

namespace meshwork::runtime::cpu {
namespace {

struct Limit {
  Numbers choices, kept;
  int64_t experts = 1, most = 1, group = 1, k = 1;

  int64_t countGroups() const { return choices.count / k / group; }
};

class LimitChoicesOperation final : public Operation {
public:
  explicit LimitChoicesOperation(Limit limit) : limit(std::move(limit)) {}

  uint64_t workspaceBytes() const override {
    return static_cast<uint64_t>(limit.experts) * sizeof(int32_t);
  }

  void run(const StepState &) override {
    team->parallelFor(
        limit.countGroups(), [this](int64_t group, int64_t end, int thread) {
          for (; group < end; ++group)
            keep(group * limit.group,
                 reinterpret_cast<int32_t *>(workspaceOf(thread)));
        });
  }

private:
  /// Of the group whose first token that is; `taken` by each expert.
  void keep(int64_t first, int32_t *taken) const {
    std::fill_n(taken, limit.experts, 0);
    const int32_t *choices = limit.choices.in(arena);
    int32_t *kept = limit.kept.in(arena);
    for (int64_t i = 0; i < limit.k; ++i)
      for (int64_t token = first; token < first + limit.group; ++token) {
        int64_t at = token * limit.k + i, expert = choices[at];
        bool isThere = expert >= 0 && expert < limit.experts;
        kept[at] = isThere && taken[expert]++ < limit.most ? choices[at] : -1;
      }
  }

  Limit limit;
};

absl::Status check(const Limit &limit) {
  MESHWORK_RETURN_IF_ERROR(
      expectCount(limit.kept.count, limit.choices.count, "kept"));
  if (limit.experts < 1 || limit.experts > INT32_MAX || limit.most < 1 ||
      limit.group < 1 || limit.choices.count / limit.k % limit.group != 0 ||
      limit.choices.count > INT32_MAX)
    return absl::InvalidArgumentError(
        "expected experts, room for a choice of each, a group that divides the "
        "tokens, and fewer than 2^31 choices");
  return absl::OkStatus();
}
} // namespace

OperationOr make(const plan::LimitChoices &op, const ProgramOnRank &program) {
  Limit limit;
  MESHWORK_ASSIGN_OR_RETURN(limit.choices,
                            numbersOf(program, op.choices(), "choices"));
  MESHWORK_ASSIGN_OR_RETURN(limit.kept, numbersOf(program, op.kept(), "kept"));
  if (limit.choices.tensor.rank() == 0)
    return absl::InvalidArgumentError("choices have no dims");
  limit.experts = op.experts();
  limit.most = op.most();
  limit.group = op.group();
  limit.k = limit.choices.tensor.shape.back();
  MESHWORK_RETURN_IF_ERROR(check(limit));
  return std::make_unique<LimitChoicesOperation>(std::move(limit));
}

} // namespace meshwork::runtime::cpu
