#include "tools/meshwork/driver/Choices.h"

#include "passes/pipelines/Pipelines.h"
#include "tools/meshwork/driver/Folded.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

/// In the order in which they are made.
constexpr struct {
  StringLiteral before; // a phase
  LogicalResult (*choose)(const AtChoice &at);
  /// Whether the spec leaves it open; null: the model must tell, too.
  bool (*isOpen)(const spec::Spec &spec) = nullptr;
} choices[] = {
    {"step", chooseContext, isContextOpen},
    {"shard", chooseExchange, isExchangeOpen},
    {"shard", chooseZero, isZeroOpen},
    {"pipeline", chooseLayers},
    {"pipeline", chooseSchedule},
    {"recompute", chooseRecompute},
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

bool choosesBefore(StringRef phase, const spec::Spec &spec) {
  return llvm::any_of(choices, [&](const auto &choice) {
    return choice.before == phase && (!choice.isOpen || choice.isOpen(spec));
  });
}

FailureOr<Trial> tryChoosing(ModuleOp module, spec::Spec spec,
                             StringRef first) {
  StringRef last = std::end(choices)[-1].before;
  Said said;
  auto begin = llvm::find_if(pipelines::phases(), [&](const auto &phase) {
    return phase.name == first;
  });
  FewLayers few;
  bool isChosen = false;
  for (; begin != pipelines::phases().end(); ++begin) {
    isChosen |= begin->name == last;
    if (few.haveRun(begin->name))
      continue;
    if (failed(chooseBefore(begin->name, module, spec, said)))
      return failure();
    if (isChosen)
      break;
    if (!few.run(begin->name, module, spec) &&
        failed(runPhase(module, spec, begin->name)))
      return failure();
  }
  return tryPhases(module, spec, begin->name);
}

} // namespace meshwork::driver
