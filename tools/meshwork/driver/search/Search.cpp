#include "tools/meshwork/driver/search/Search.h"

using namespace mlir;

namespace meshwork::driver {

OwningOpRef<ModuleOp> Copies::copy() const {
  return ModuleOp(module).clone(); // MLIR clones nothing const.
}

Outcome Copies::compile(const spec::Spec &spec) const {
  OwningOpRef<ModuleOp> fresh = copy();
  return compile(*fresh, spec);
}

Outcome Copies::compile(ModuleOp fresh, const spec::Spec &spec) const {
  QuietTrials quiet(fresh.getContext());
  FailureOr<Trial> trial = run(fresh, spec, first);
  if (succeeded(trial))
    return std::optional(std::move(*trial));
  if (quiet.areRefused())
    return std::optional<Trial>();
  quiet.tell();
  return failure();
}

} // namespace meshwork::driver
