// [offload]: what lies in the host's memory between its uses.
#include "lib/Optimizer/Optimizer.h"
#include "lib/Spec/Checks.h"
#include "lib/Spec/KeyKinds.h"

namespace meshwork::spec {
namespace {

/// As others call it.
bool isDisk(const Value &value) {
  return value.kind == Value::Kind::string &&
         (value.text == "nvme" || value.text == "disk");
}

Key optimizerStates() {
  Key key = onOrOff(
      "offload", "optimizer",
      [](Spec &s, double on) { s.offload.optimizer = on != 0; },
      [](const Spec &s) -> std::optional<double> {
        return s.offload.optimizer ? std::optional<double>(1) : std::nullopt;
      });
  key.read = [read = key.read](const Value &value, Spec &spec) {
    return isDisk(value) || read(value, spec);
  };
  key.refusal = [](const Value &value) -> std::string {
    return isDisk(value) ? "states can lie in the host's memory, not on disks; "
                           "write true"
                         : "";
  };
  return key;
}

bool movesAnything(const Spec &spec) {
  return spec.offload.optimizer || spec.mayOffloadActivations();
}

Key activations() {
  Key key = choice("offload", "activations", {"none", "auto"},
                   [](Spec &s, const std::string &text) {
                     s.offload.activations = text == "auto";
                   },
                   {});
  key.print = [](const Spec &s) -> std::optional<std::string> {
    if (!s.offload.activations)
      return std::nullopt;
    return tomlString("auto");
  };
  return key;
}

Key window() {
  return size(
      "offload", "window", R"(a size from 1 KiB to 4 GiB, like "16 MiB")", 1024,
      uint64_t{4} << 30,
      [](Spec &s, uint64_t bytes) { s.offload.windowBytes = bytes; },
      [](const Spec &s) {
        return movesAnything(s) ? std::optional(s.offload.windowBytes)
                                : std::nullopt;
      });
}

Key hostMemory() {
  return size(
      "offload", "host_memory_per_rank", anySize, 1, UINT64_MAX,
      [](Spec &s, uint64_t bytes) { s.offload.hostBytes = bytes; },
      [](const Spec &s) { return s.offload.hostBytes; });
}

class OffloadChecks : Checks {
public:
  explicit OffloadChecks(const Checks &checks) : Checks(checks) {}

  void run() {
    if (!sound(
            {"offload.optimizer", "offload.activations", "recompute.policy"}))
      return;
    if (spec.offload.activations && spec.recompute != Recompute::byBudget)
      error("offload.activations",
            "\"auto\" lets recompute.policy = \"auto\" choose, and that is " +
                quote(wordOf(spec.recompute)) +
                "; write recompute.policy = \"offload\" to move those of all "
                "layers");
    if (!movesAnything(spec))
      for (const char *key : {"offload.window", "offload.host_memory_per_rank"})
        if (given(key))
          meaningless(key,
                      "means nothing where nothing is offloaded; write "
                      "offload.optimizer = true, say, or leave the line out");
    if (spec.offload.optimizer && keepsNothing())
      error("offload.optimizer",
            "has nothing to move: " + quote(spec.optimizer.kind) +
                " with these settings keeps no states, and weights in f32 are "
                "their own masters; leave the line out");
    if (spec.device == Device::cpu && sound({"target.device"}))
      warnOfOneMemory();
  }

private:
  void warnOfOneMemory() {
    for (auto [key, moves] :
         {std::pair("offload.optimizer", spec.offload.optimizer),
          {"recompute.policy", spec.recompute == Recompute::offload},
          {"offload.activations", spec.offload.activations}})
      if (moves)
        warn(key, "saves nothing with target.device \"cpu\", whose memory is "
                  "the host's: data is copied within it. Leave the line out, "
                  "or set target.device to \"cuda\"");
  }

  bool keepsNothing() const {
    if (!sound({"optimizer.kind", "precision.compute"}) ||
        spec.compute != Type::f32)
      return false;
    const optimizer::Optimizer *kind = optimizer::find(spec.optimizer.kind);
    return kind && kind->states(spec.optimizer.settings).empty();
  }
};
} // namespace

void addOffloadKeys(std::vector<Key> &keys) {
  keys.push_back(optimizerStates());
  keys.push_back(activations());
  keys.push_back(window());
  keys.push_back(hostMemory());
}

void checkOffload(const Checks &checks) { OffloadChecks(checks).run(); }

} // namespace meshwork::spec
