#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Explain/Estimate.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/Measured.h"
#include "meshwork/Text/Counted.h"

namespace meshwork::explain {
namespace {

std::string ratioText(const Measured::Times &times) {
  std::optional<double> ratio = ratioOf(times);
  return ratio ? absl::StrFormat("%.2f", *ratio) : "-";
}

std::string shareText(double share) {
  return absl::StrFormat("%.1f %%", 100 * share);
}

std::vector<std::string> cellsOf(const Measured::Times &times) {
  return {timeText(times.planned), timeText(times.best), timeText(times.median),
          ratioText(times)};
}

std::string stepText(const Measured &measured) {
  Table table({"", ">planned", ">best", ">median", ">of planned",
               ">simulated with these times"});
  auto add = [&](const char *name, const Measured::Times &times,
                 double simulated) {
    std::vector<std::string> row = cellsOf(times);
    row.insert(row.begin(), name);
    row.push_back(timeText(simulated));
    table.add(row);
  };
  add("step", measured.step, measured.simulatedStep);
  if (const auto &pipeline = measured.pipeline) {
    add("pipeline", pipeline->span, pipeline->simulatedSpan);
    table.add({"bubble", shareText(pipeline->plannedBubble), "",
               shareText(pipeline->measuredBubble), "",
               shareText(pipeline->simulatedBubble)});
  }
  return table.render();
}

std::string listsText(const Measured &measured) {
  Table table({"list", ">program", ">runs a step", ">planned", ">best",
               ">median", ">of planned", ">waits"});
  for (const Measured::OfList &list : measured.lists) {
    std::vector<std::string> row = cellsOf(list.times);
    row.insert(row.begin(), {list.name, absl::StrCat(list.program),
                             absl::StrCat(list.runs)});
    row.push_back(timeText(list.wait));
    table.add(row);
  }
  return table.render();
}

std::string movesText(const Measured &measured) {
  Table table({"moves", "axis", "phase", ">program", ">count", ">planned",
               ">best", ">median", ">of planned", ">waits", ">hidden"});
  for (const Measured::OfMoves &one : measured.moves) {
    std::vector<std::string> row = cellsOf(one.times);
    row.insert(row.begin(),
               {one.kind, one.axis, one.phase, absl::StrCat(one.program),
                absl::StrCat(one.count)});
    row.push_back(timeText(one.wait));
    row.push_back(shareText(one.isHidden));
    table.add(row);
  }
  return table.empty() ? "" : absl::StrCat("\nIn a step\n", table.render());
}
} // namespace

std::string text(const plan::Plan &plan, const Measured &measured) {
  cost::MachineResult machine = machineOf(plan);
  return absl::StrCat(
      "Measured in ", counted(measured.steps, "step"),
      measured.skippedFirst ? " (the first one is left out)" : "",
      ", planned for ", machine.machine ? clean(machine.machine->name) : "-",
      "\n", stepText(measured), "\nOne run of a list\n", listsText(measured),
      movesText(measured));
}

} // namespace meshwork::explain
