// Whether a checkpoint is of the plan's model.
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lib/Plan/Boxes.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/Views.h"
#include "runtime/io/Files.h"
#include "runtime/rank/Names.h"
#include "runtime/save/RestoreStates.h"
#include <algorithm>
#include <iterator>
#include <set>

namespace meshwork::runtime {
using plan::bad;
using plan::SavedTensor;
namespace {
/// "missing: a, b and 7 more"
struct Named {
  const char *what;
  std::vector<std::string> names = {};

  std::string text() const { return what + firstOf(names); }
};

absl::Status verdict(const char *what, std::initializer_list<Named> lists) {
  std::vector<std::string> parts;
  for (const Named &list : lists)
    if (!list.names.empty())
      parts.push_back(list.text());
  if (parts.empty())
    return absl::OkStatus();
  return bad(what, "; ", absl::StrJoin(parts, "; "));
}

template <typename Sizes> std::vector<int64_t> sizesOf(const Sizes &sizes) {
  return {sizes.begin(), sizes.end()};
}

absl::Status matchParameters(const std::vector<SavedTensor> &tensors,
                             const Checkpoint &checkpoint) {
  Named missing{"missing: "}, extra{"not in the plan: "},
      reshaped{"of another shape: "};
  std::set<std::string> known;
  for (const SavedTensor &tensor : tensors) {
    std::string name = tensor.parameter->name()->str();
    known.insert(name);
    const StoredTensor *stored = checkpoint.find(name);
    std::vector<int64_t> shape =
        sizesOf(plan::orEmpty(tensor.parameter->shape()));
    if (!stored)
      missing.names.push_back(quote(name));
    else if (stored->shape != shape)
      reshaped.names.push_back(
          absl::StrCat(quote(name), " is ", shapeText(stored->shape),
                       " in the checkpoint, the plan has ", shapeText(shape)));
  }
  for (const StoredTensor &stored : checkpoint.manifest().tensors)
    if (!known.contains(stored.name))
      extra.names.push_back(quote(stored.name));
  return verdict("the checkpoint is of another model",
                 {missing, extra, reshaped});
}

/// Whatever weights are beside the f32 ones follows from the precision.
bool isOfOptimizer(const std::string &state) {
  return state != "weight" && state != "rounded_weight";
}

/// Numbers may differ from mesh to mesh (RestoreStates.cpp).
absl::Status matchStates(const std::vector<SavedTensor> &tensors,
                         const Checkpoint &checkpoint) {
  std::set<std::string> ofPlan, stored;
  Named missing{"missing: "}, extra{"not kept by the plan: "};
  for (const SavedTensor &tensor : tensors)
    for (const plan::SavedState &state : tensor.states)
      if (isOfOptimizer(state.name) && !state.part->is_number())
        ofPlan.insert(absl::StrCat(quote(state.name), " of ",
                                   quote(tensor.parameter->name()->str())));
  for (const StoredTensor &tensor : checkpoint.manifest().tensors)
    for (const StoredState &state : tensor.states)
      if (isOfOptimizer(state.name) && !isNumber(state))
        stored.insert(
            absl::StrCat(quote(state.name), " of ", quote(tensor.name)));
  std::set_difference(ofPlan.begin(), ofPlan.end(), stored.begin(),
                      stored.end(), std::back_inserter(missing.names));
  std::set_difference(stored.begin(), stored.end(), ofPlan.begin(),
                      ofPlan.end(), std::back_inserter(extra.names));
  return verdict("the checkpoint has the states of another optimizer",
                 {missing, extra});
}

/// Lines that mean something.
std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  for (std::string line :
       std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    bool inString = false;
    for (size_t at = 0; at < line.size(); ++at) {
      inString ^= line[at] == '"';
      if (!inString && line.compare(at, 2, "//") == 0)
        line.resize(at);
    }
    absl::StripAsciiWhitespace(&line);
    if (!line.empty())
      lines.push_back(std::move(line));
  }
  return lines;
}

absl::Status matchModel(const std::string &saved, const std::string &ofPlan) {
  std::vector<std::string> before = linesOf(saved), now = linesOf(ofPlan);
  size_t count = std::max(before.size(), now.size());
  before.resize(count);
  now.resize(count);
  for (size_t i = 0; i < count; ++i)
    if (before[i] != now[i])
      return bad("the checkpoint is of another model, whose parameters are the "
                 "same: it has ",
                 quote(before[i]), " where the plan has ", quote(now[i]));
  return absl::OkStatus();
}
} // namespace

absl::Status matchCheckpoint(const plan::Plan &plan,
                             const Checkpoint &checkpoint,
                             const std::string &model) {
  std::vector<SavedTensor> tensors = plan::savedTensors(plan);
  absl::Status status = matchParameters(tensors, checkpoint);
  bool hasWeights = status.ok();
  if (status.ok())
    status = matchStates(tensors, checkpoint);
  if (status.ok())
    status = matchModel(model, plan.source_ir() ? plan.source_ir()->str()
                                                : std::string());
  if (status.ok())
    return status;
  return bad(quote(checkpoint.path()), ": ", status.message(), ". ",
             hasWeights ? "To begin anew from its weights alone, give it to "
                          "--init in place of --resume"
                        : "Resume with a plan of the same model");
}

} // namespace meshwork::runtime
