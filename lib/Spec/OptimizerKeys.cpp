// Keys of [optimizer]: what lib/Optimizer says that optimizers take.
#include <set>

#include "lib/Optimizer/Optimizer.h"
#include "lib/Spec/KeyKinds.h"

namespace meshwork::spec {
namespace {

Key settingKey(const optimizer::Setting &setting) {
  std::string name = setting.name;
  auto store = [name](Spec &spec, double value) {
    spec.optimizer.settings[name] = value;
  };
  auto show = [name](const Spec &spec) -> std::optional<double> {
    auto found = spec.optimizer.settings.find(name);
    if (found == spec.optimizer.settings.end())
      return std::nullopt;
    return found->second;
  };
  if (setting.range.isSwitch)
    return onOrOff("optimizer", setting.name, store, show);
  return number("optimizer", setting.name, setting.range.expected,
                setting.range.holds, store, show);
}

} // namespace

void addOptimizerKeys(std::vector<Key> &keys) {
  Strings kinds;
  std::vector<Key> settings; // of all kinds, each once
  std::set<std::string> known;
  for (const optimizer::Optimizer &one : optimizer::all()) {
    kinds.push_back(one.kind);
    for (const optimizer::Setting &setting : one.settings)
      if (known.insert(setting.name).second)
        settings.push_back(settingKey(setting));
  }
  keys.push_back(choice(
      "optimizer", "kind", kinds,
      [](Spec &s, const std::string &t) { s.optimizer.kind = t; },
      [](const Spec &s) { return s.optimizer.kind; }));
  keys.insert(keys.end(), settings.begin(), settings.end());
  keys.push_back(number(
      "optimizer", "clip_grad_norm",
      "0, which does not clip, or a number from 1e-30 to 1e30",
      optimizer::magnitude.holds,
      [](Spec &s, double value) { s.optimizer.clipGradNorm = value; },
      [](const Spec &s) { return s.optimizer.clipGradNorm; }));
}

} // namespace meshwork::spec
