#include "tools/meshwork/tune/InnerStage.h"

namespace meshwork::tune {

static bool splitsBackward(const Choice &choice) {
  return choice.pp > 1 && choice.schedule != "1f1b" &&
         choice.schedule != "interleaved-1f1b" && choice.schedule != "gpipe";
}

bool movesInLists(const Choice &choice) {
  return choice.zeroStage == 3 ||
         (choice.zeroStage == 2 && choice.reduce != "step");
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
