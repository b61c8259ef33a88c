#include "tools/meshwork/driver/FitExperts.h"

#include "dialects/transformer/Transformer.h"
#include "tools/meshwork/driver/Trial.h"

using namespace mlir;

namespace meshwork::driver {

spec::Exchange ExchangeTimes::best() const {
  bool isFaster = allToAll && (!gathered || *allToAll < *gathered);
  return isFaster ? spec::Exchange::allToAll : spec::Exchange::gathered;
}

static bool hasExperts(ModuleOp module) {
  auto found = module.walk(
      [](transformer::ExpertsOp) { return WalkResult::interrupt(); });
  return found.wasInterrupted();
}

FailureOr<ExchangeTimes> fitExperts(ModuleOp module, spec::Spec spec) {
  ExchangeTimes times;
  if (!hasExperts(module))
    return times;
  for (auto [exchange, found] :
       {std::pair(spec::Exchange::gathered, &times.gathered),
        {spec::Exchange::allToAll, &times.allToAll}}) {
    spec.experts.exchange = exchange;
    FailureOr<std::optional<double>> seconds =
        trySeconds(module, spec, "shard");
    if (failed(seconds))
      return failure();
    *found = *seconds;
  }
  return times;
}

} // namespace meshwork::driver
