#include "tools/meshwork/tune/InnerStage.h"

#include "lib/Schedules/Named.h"

namespace meshwork::tune {

static bool splitsBackward(const Choice &choice) {
  const auto *named = schedules::findNamed(choice.schedule.text());
  return named && named->splitsBackward;
}

OfLists listsOf(const schedules::Costs &costs, size_t stage) {
  return {costs.forward[stage], costs.backward[stage], costs.inputGrad[stage],
          costs.weightGrad[stage]};
}

bool movesInLists(const Choice &choice) {
  return choice.zeroStage == 3 || choice.sumsEach();
}

Choice fewestStages(Choice choice) {
  bool isPair = choice.pp == 2, isSplit = splitsBackward(choice);
  choice.schedule = isSplit  ? (isPair ? "zb-v" : "zb-h1")
                    : isPair ? "interleaved-1f1b"
                             : "1f1b";
  choice.virtualStages = isPair && !isSplit ? 2 : 0;
  return choice;
}

bool isToldByStages(const Choice &choice) {
  return splitsBackward(choice) ||
         (choice.schedule == "interleaved-1f1b" && movesInLists(choice));
}

} // namespace meshwork::tune
