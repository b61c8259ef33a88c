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
#include "runtime/save/StoredTensors.h"
#include <algorithm>
#include <iterator>
#include <map>
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

/// What is compared with a plan, and what errors call it.
struct Kept {
  const char *name;
  std::vector<StoredTensor> tensors;
  std::string model;
};

absl::Status verdict(const std::string &what,
                     std::initializer_list<Named> lists) {
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
                             const Kept &kept) {
  Named missing{"missing: "}, extra{"not in the plan: "},
      reshaped{"of another shape: "};
  std::map<std::string_view, const StoredTensor *> all;
  for (const StoredTensor &stored : kept.tensors)
    all[stored.name] = &stored;
  std::set<std::string> known;
  for (const SavedTensor &tensor : tensors) {
    std::string name = tensor.parameter->name()->str();
    known.insert(name);
    auto found = all.find(name);
    const StoredTensor *stored = found == all.end() ? nullptr : found->second;
    std::vector<int64_t> shape =
        sizesOf(plan::orEmpty(tensor.parameter->shape()));
    if (!stored)
      missing.names.push_back(quote(name));
    else if (stored->shape != shape)
      reshaped.names.push_back(
          absl::StrCat(quote(name), " is ", shapeText(stored->shape), " in ",
                       kept.name, ", the plan has ", shapeText(shape)));
  }
  for (const StoredTensor &stored : kept.tensors)
    if (!known.contains(stored.name))
      extra.names.push_back(quote(stored.name));
  return verdict(absl::StrCat(kept.name, " is of another model"),
                 {missing, extra, reshaped});
}

/// Whatever weights are beside the f32 ones follows from the precision.
bool isOfOptimizer(const std::string &state) {
  return state != "weight" && state != "rounded_weight";
}

/// Numbers may differ from mesh to mesh (RestoreStates.cpp).
absl::Status matchStates(const std::vector<SavedTensor> &tensors,
                         const Kept &kept) {
  std::set<std::string> ofPlan, stored;
  Named missing{"missing: "}, extra{"not kept by the plan: "};
  for (const SavedTensor &tensor : tensors)
    for (const plan::SavedState &state : tensor.states)
      if (isOfOptimizer(state.name) && !state.part->is_number())
        ofPlan.insert(absl::StrCat(quote(state.name), " of ",
                                   quote(tensor.parameter->name()->str())));
  for (const StoredTensor &tensor : kept.tensors)
    for (const StoredState &state : tensor.states)
      if (isOfOptimizer(state.name) && !isNumber(state))
        stored.insert(
            absl::StrCat(quote(state.name), " of ", quote(tensor.name)));
  std::set_difference(ofPlan.begin(), ofPlan.end(), stored.begin(),
                      stored.end(), std::back_inserter(missing.names));
  std::set_difference(stored.begin(), stored.end(), ofPlan.begin(),
                      ofPlan.end(), std::back_inserter(extra.names));
  return verdict(
      absl::StrCat(kept.name, " has the states of another optimizer"),
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

absl::Status matchModel(const Kept &kept, const std::string &ofPlan) {
  std::vector<std::string> before = linesOf(kept.model), now = linesOf(ofPlan);
  size_t count = std::max(before.size(), now.size());
  before.resize(count);
  now.resize(count);
  for (size_t i = 0; i < count; ++i)
    if (before[i] != now[i])
      return bad(kept.name,
                 " is of another model, whose parameters are the same: it has ",
                 quote(before[i]), " where the plan has ", quote(now[i]));
  return absl::OkStatus();
}

std::string modelOf(const plan::Plan &plan) {
  return plan.source_ir() ? plan.source_ir()->str() : std::string();
}

/// `hasWeights` then tells whether the parameters are the same.
absl::Status match(const plan::Plan &plan, const Kept &kept, bool &hasWeights) {
  std::vector<SavedTensor> tensors = plan::savedTensors(plan);
  absl::Status status = matchParameters(tensors, kept);
  hasWeights = status.ok();
  if (status.ok())
    status = matchStates(tensors, kept);
  return status.ok() ? matchModel(kept, modelOf(plan)) : status;
}
} // namespace

absl::Status matchCheckpoint(const plan::Plan &plan,
                             const Checkpoint &checkpoint,
                             const std::string &model) {
  bool hasWeights = false;
  absl::Status status =
      match(plan, {"the checkpoint", checkpoint.manifest().tensors, model},
            hasWeights);
  if (status.ok())
    return status;
  return bad(quote(checkpoint.path()), ": ", status.message(), ". ",
             hasWeights ? "To begin anew from its weights alone, give it to "
                          "--init in place of --resume"
                        : "Resume with a plan of the same model");
}

absl::Status matchPlans(const plan::Plan &plan, const plan::Plan &before) {
  Kept kept{"the plan before", storedTensors(before), modelOf(before)};
  std::vector<SavedTensor> saved = plan::savedTensors(before);
  for (size_t t = 0; t < saved.size(); ++t)
    for (size_t s = 0; s < saved[t].states.size(); ++s)
      if (saved[t].states[s].part->is_number()) // as isNumber knows it
        kept.tensors[t].states[s].boxes.emplace_back();
  bool hasWeights = false;
  return match(plan, kept, hasWeights);
}

} // namespace meshwork::runtime
