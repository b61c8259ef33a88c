// What a GPU's kernels cannot do, told of the model and the spec before
// anything is made of them.
#include <map>
#include <set>

#include "dialects/transformer/Facts.h"
#include "meshwork/Plan/Gpu.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/SpecKey.h"
#include "passes/transform/Passes.h"

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_CHECKDEVICEPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

/// A row of the table: of which sizes, the most that they may be, and which key
/// of the spec decides.
struct Limit {
  int64_t most;
  const char *key, *what;
  KernelSize::Kind of;
};

constexpr const char *device = "target.device";
const Limit limits[] = {
    {plan::mostHeadElements, device, "attention", KernelSize::headElements},
    {plan::mostSequence, "batch.sequence", "attention", KernelSize::tokens},
    {plan::mostTableSize, device, "an embedding", KernelSize::table}};

/// What exceeds a limit in the same way, and where.
struct Found {
  Operation *first;
  std::set<int64_t> layers;
};

/// "layer 3", "layers 0 to 31, 8 of them", or nothing.
std::string layersText(const std::set<int64_t> &layers) {
  if (layers.empty())
    return "";
  std::string text = std::to_string(*layers.begin());
  if (layers.size() == 1)
    return " in layer " + text;
  text = " in layers " + text + " to " + std::to_string(*layers.rbegin());
  bool isRun = *layers.rbegin() - *layers.begin() + 1 ==
               static_cast<int64_t>(layers.size());
  return isRun ? text
               : text + ", " + std::to_string(layers.size()) + " of them";
}

struct CheckDevicePass : impl::CheckDevicePassBase<CheckDevicePass> {
  void runOnOperation() override {
    bool fits = true;
    for (const Limit &limit : limits)
      fits &= check(limit);
    if (!fits)
      signalPassFailure();
  }

private:
  bool check(const Limit &limit) {
    std::map<std::pair<std::string, int64_t>, Found> found;
    getOperation().walk([&](TensorOpInterface op) {
      for (const KernelSize &one : op.getKernelSizes()) {
        if (one.kind != limit.of || one.size <= limit.most)
          continue;
        Found &here =
            found.try_emplace({one.dim.str(), one.size}, Found{op, {}})
                .first->second;
        if (std::optional<int64_t> layer = layerOf(op))
          here.layers.insert(*layer);
      }
    });
    for (auto &[size, where] : found)
      tell(limit, size.first, size.second, where);
    return found.empty();
  }

  static void tell(const Limit &limit, StringRef name, int64_t size,
                   const Found &where) {
    InFlightDiagnostic error =
        emitError(analysis::ofSpec(limit.key, where.first->getLoc()));
    if (StringRef(limit.key) == device)
      error << "found \"cuda\", where " << limit.what << " takes a " << name
            << " of at most " << limit.most << ", and the model has " << size
            << layersText(where.layers)
            << "; make it smaller, or train on a CPU (\"cpu\")";
    else
      error << "found " << size << ", expected at most " << limit.most << ": "
            << limit.what << " on a GPU takes no longer " << name;
  }
};
} // namespace
} // namespace meshwork::transform
