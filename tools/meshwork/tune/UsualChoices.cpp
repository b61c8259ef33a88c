#include "tools/meshwork/tune/Space.h"

namespace meshwork::tune {

/// Whether it is within what --axis and --fixed leave.
bool Space::mayBe(const Choice &choice) const {
  for (AxisOfChoice axis : axesOfChoices)
    if (!isLeft(axis.name, choice.*axis.size))
      return false;
  for (auto [key, value] : settingsOf(choice))
    if (const std::string *fixed = specs.fixedValue(key);
        fixed && *fixed != value && '"' + *fixed + '"' != value)
      return false;
  return true;
}

std::vector<Space::Usual> Space::usual() {
  Choice plain;
  plain.dp = ranks;
  plain.offloads = offloadsAll;
  plain.recompute = "selective";
  Choice sharded = plain;
  if (ranks > 1) {
    sharded.zeroStage = 3;
    sharded.gathered = "free";
  }
  std::vector<Usual> usual = {{"plain data parallelism", {plain}},
                              {"ZeRO-3 over all ranks", {sharded}}};
  usual.push_back({"Megatron's defaults", {}});
  // All of a node is tensor parallel, as few stages as fit.
  uint32_t tp = 1;
  for (uint32_t size : divisorsOf(ranks))
    if (size <= specs.ranksPerNode())
      tp = size;
  for (uint32_t pp : divisorsOf(ranks / tp)) {
    Choice choice = plain;
    choice.tp = tp;
    choice.sequenceParallel = tp > 1;
    choice.pp = pp;
    choice.schedule = pp > 1 ? "1f1b" : "";
    choice.dp = ranks / tp / pp;
    choice.zeroStage = choice.dp > 1 ? 1 : 0;
    usual.back().choices.push_back(choice);
  }
  for (Usual &one : usual)
    std::erase_if(one.choices,
                  [&](const Choice &choice) { return !mayBe(choice); });
  return usual;
}

std::vector<std::string> Space::leftOut() {
  return {
      "axes in another order than pp, dp, fsdp, ep, cp, tp, or two axes for "
      "one use",
      "ZeRO over fewer ranks than all, but for those of one, two, four, eight "
      "or sixteen nodes (fsdp); lists of zero.gathered; zero.reduce \"step\" "
      "in stage 2, which is stage 1",
      "pipeline.schedule \"gpipe\" (as 1f1b, with more memory), \"auto\" and "
      "tables; three or more virtual stages that share the layers unequally, "
      "where some share them equally; "
      "pipeline.layers but \"auto\"",
      "recompute.policy \"auto\", offload.activations \"auto\"; the host's "
      "memory where a spec fits without it (but with --offload always), and "
      "for CPUs",
      "context.method of several axes; shard.* but residual_sequence",
      "precision, overlap, experts.bound: what --fixed says, or the default"};
}

} // namespace meshwork::tune
