#include "runtime/device/cpu/MeasureWork.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "lib/Plan/Checked.h"
#include "runtime/device/cpu/StandInKernel.h"
#include "runtime/device/cpu/TimedPlan.h"
#include "runtime/machine/Clock.h"

namespace meshwork::runtime {
namespace {
constexpr int64_t atLeastNs = 4'000'000'000;

// More operands than a second-level cache holds, as a layer has.
constexpr int64_t tokens = 1024, narrow = 512, wide = 2048, small = 128;
constexpr int64_t samples = 4, sequence = 512, heads = 8, d = 64;
constexpr int64_t elements = int64_t{1} << 21, row = 1024;
constexpr int64_t copied = int64_t{128} << 20, piece = 1 << 20;

/// Work of one kind, and what it took so far.
struct Kind {
  std::function<void()> run;
  int inARow = 1; // of what is too short to be timed alone
  double seconds = 0;
  double calls = 0;

  double mean() const { return seconds / calls; }
};

void time(Kind &kind) {
  int64_t begin = steadyNs();
  for (int i = 0; i < kind.inARow; ++i)
    kind.run();
  kind.seconds += static_cast<double>(steadyNs() - begin) / 1e9;
  kind.calls += kind.inARow;
}

void timeInTurns(const std::vector<Kind *> &kinds) {
  for (Kind *kind : kinds) // the first run of each finds cold memory
    kind->run();
  for (int64_t start = steadyNs(); steadyNs() - start < atLeastNs;)
    for (Kind *kind : kinds)
      time(*kind);
}

/// y = x w, the gradients of x and of w.
void addProducts(TimedPlan &plan, plan::DType type, int64_t rows, int64_t in,
                 int64_t out) {
  uint32_t x = plan.addTensor(type, {1, rows, in}),
           w = plan.addTensor(type, {1, out, in}),
           y = plan.addTensor(type, {1, rows, out});
  auto add = [&](uint32_t lhs, uint32_t rhs, uint32_t dst) {
    plan::MatmulT product;
    product.lhs = lhs;
    product.rhs = rhs;
    product.dst = dst;
    plan.addInstruction(std::move(product));
  };
  add(x, plan.addTransposed(w), y);
  add(y, w, plan.addTensor(type, {1, rows, in}));
  add(plan.addTransposed(y), x, plan.addTensor(type, {1, out, in}));
}

constexpr double flopsOf(int64_t rows, int64_t in, int64_t out) {
  return 3 * 2.0 * static_cast<double>(rows * in * out);
}

plan::AttentionPartT causalPart() {
  plan::AttentionPartT part;
  part.scale = 1 / std::sqrt(static_cast<float>(d));
  part.causal = true;
  return part;
}

/// Attention, or its gradient: each is timed for itself.
template <class Op> void addAttention(TimedPlan &plan, plan::DType type) {
  auto tensor = [&] {
    return plan.addTensor(type, {samples, sequence, heads, d});
  };
  Op op;
  for (uint32_t *view : {&op.q, &op.k, &op.v, &op.out})
    *view = tensor();
  op.lse = plan.addTensor(plan::DType::f32, {samples, heads, sequence});
  op.part = std::make_unique<plan::AttentionPartT>(causalPart());
  if constexpr (std::is_same_v<Op, plan::AttentionGradT>)
    for (uint32_t *view : {&op.dout, &op.dq, &op.dk, &op.dv})
      *view = tensor();
  plan.addInstruction(std::move(op));
}

/// What is timed with operands of one type.
class OfType {
public:
  OfType(plan::DType type, ThreadTeam &team) : type(type), team(team) {}

  absl::Status prepare(std::vector<Kind *> &kinds) {
    addProducts(layerPlan, type, tokens, narrow, wide);
    addProducts(layerPlan, type, tokens, wide, narrow);
    addProducts(layerPlan, type, tokens, narrow, narrow);
    addProducts(fewPlan, type, small, small, small);
    addAttention<plan::AttentionT>(attentionPlan, type);
    addAttention<plan::AttentionGradT>(gradientPlan, type);
    for (auto [plan, kind] : {std::pair(&layerPlan, &layer),
                              {&fewPlan, &few},
                              {&attentionPlan, &attention},
                              {&gradientPlan, &gradient}}) {
      MESHWORK_RETURN_IF_ERROR(plan->prepare(team));
      kind->run = [plan = plan] { plan->run(); };
      kinds.push_back(kind);
    }
    return absl::OkStatus();
  }

  TypeRates rates() const {
    constexpr double ofLayer = 2 * flopsOf(tokens, narrow, wide) +
                               flopsOf(tokens, narrow, narrow),
                     ofFew = flopsOf(small, small, small),
                     ofAttention = 4.0 * samples * heads * d * sequence *
                                   (sequence + 1) / 2;
    TypeRates rates;
    rates.products = ofLayer / layer.mean();
    // Three products each.
    rates.halfSize = std::max(0.0, (rates.products * few.mean() - ofFew) / 3);
    rates.attention = ofAttention / attention.mean();
    rates.gradient = 2 * ofAttention / gradient.mean();
    return rates;
  }

private:
  plan::DType type;
  ThreadTeam &team;
  TimedPlan layerPlan, fewPlan, attentionPlan, gradientPlan;
  Kind layer, few{{}, 50}, attention, gradient;
};

/// Kernels and copies, on memory of their own.
class OfMemory {
public:
  explicit OfMemory(ThreadTeam &team) : team(team) {}

  absl::Status prepare(std::vector<Kind *> &kinds) {
    MESHWORK_ASSIGN_OR_RETURN(rows,
                              Arena::create(3 * elements * sizeof(float)));
    MESHWORK_ASSIGN_OR_RETURN(pieces, Arena::create(2 * copied));
    auto *gate = reinterpret_cast<float *>(rows.data());
    for (int64_t i = 0; i < 2 * elements; ++i)
      gate[i] = static_cast<float>(i % row) / row - 0.5f;
    kernel.run = [this, gate] {
      team.parallelFor(elements / row, [&](int64_t begin, int64_t end, int) {
        gateRows(gate, gate + elements, gate + 2 * elements, begin * row,
                 end * row);
      });
    };
    copy.run = [this] {
      team.parallelFor(copied / piece, [&](int64_t begin, int64_t end, int) {
        std::memcpy(pieces.data() + copied + begin * piece,
                    pieces.data() + begin * piece,
                    static_cast<size_t>((end - begin) * piece));
      });
    };
    kinds.insert(kinds.end(), {&kernel, &copy});
    return absl::OkStatus();
  }

  double kernelBytes() const {
    return 3.0 * elements * sizeof(float) / kernel.mean();
  }
  double copyBytes() const { return 2.0 * copied / copy.mean(); }

private:
  ThreadTeam &team;
  Arena rows, pieces;
  Kind kernel{{}, 10}, copy;
};
} // namespace

absl::StatusOr<WorkRates> measureWork(ThreadTeam &team) {
  OfType f32(plan::DType::f32, team), bf16(plan::DType::bf16, team);
  OfMemory memory(team);
  std::vector<Kind *> kinds;
  MESHWORK_RETURN_IF_ERROR(f32.prepare(kinds));
  MESHWORK_RETURN_IF_ERROR(bf16.prepare(kinds));
  MESHWORK_RETURN_IF_ERROR(memory.prepare(kinds));
  timeInTurns(kinds);
  return WorkRates{f32.rates(), bf16.rates(), memory.kernelBytes(),
                   memory.copyBytes()};
}

} // namespace meshwork::runtime
