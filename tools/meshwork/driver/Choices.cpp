#include "tools/meshwork/driver/Choices.h"

#include "passes/pipelines/Pipelines.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

/// In the order in which they are made.
constexpr struct {
  StringLiteral before; // a phase
  LogicalResult (*choose)(const AtChoice &at);
} choices[] = {
    {"shard", chooseContext},     {"shard", chooseExchange},
    {"shard", chooseZero},        {"pipeline", chooseLayers},
    {"pipeline", chooseSchedule}, {"recompute", chooseRecompute},
};
} // namespace

void Said::add(llvm::function_ref<void(llvm::raw_ostream &)> print) {
  llvm::raw_string_ostream stream(text);
  stream << "meshwork: ";
  print(stream);
  stream << "\n";
}

LogicalResult chooseBefore(StringRef phase, ModuleOp module, spec::Spec &spec,
                           Said &said) {
  OwningOpRef<ModuleOp> unused;
  return chooseBefore(phase, module, spec, said, unused);
}

LogicalResult chooseBefore(StringRef phase, ModuleOp module, spec::Spec &spec,
                           Said &said, OwningOpRef<ModuleOp> &finished) {
  for (const auto &choice : choices)
    if (choice.before == phase &&
        failed(choice.choose({module, spec, said, finished})))
      return failure();
  return success();
}

FailureOr<Trial> tryChoosing(ModuleOp module, spec::Spec spec,
                             StringRef first) {
  StringRef last = std::end(choices)[-1].before;
  Said said;
  auto begin = llvm::find_if(pipelines::phases(), [&](const auto &phase) {
    return phase.name == first;
  });
  for (; begin != pipelines::phases().end(); ++begin) {
    if (failed(chooseBefore(begin->name, module, spec, said)))
      return failure();
    if (begin->name == last)
      break;
    if (failed(runPhase(module, spec, begin->name)))
      return failure();
  }
  return tryPhases(module, spec, last);
}

} // namespace meshwork::driver
