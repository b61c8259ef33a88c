#include "lib/Spec/Keys.h"

#include "lib/Spec/KeyKinds.h"

namespace meshwork::spec {
namespace {

Key bucket() {
  return size(
      "overlap", "bucket", R"(a size from 1 KiB to 1 GiB, like "25 MiB")", 1024,
      uint64_t{1} << 30,
      [](Spec &s, uint64_t bytes) { s.overlap.bucketBytes = bytes; },
      [](const Spec &s) { return s.overlap.bucketBytes; });
}

/// Of each product that travels in chunks; 1 leaves it whole.
Key chunks() {
  return wholeNumber(
      "overlap", "chunks", 1, 64,
      [](Spec &s, uint32_t count) { s.overlap.chunks = count; },
      [](const Spec &s) -> std::optional<uint32_t> {
        if (s.overlap.matmul == When::never)
          return std::nullopt;
        return s.overlap.chunks;
      });
}

/// Which of them a device has is checked with the device.
Key arch() {
  Key key{"target", "arch", R"("native" or the name of an architecture)",
          {},       {},     false,
          {}};
  key.read = [](const Value &value, Spec &spec) {
    spec.arch = value.text;
    return value.kind == Value::Kind::string;
  };
  key.print = [](const Spec &spec) { return tomlString(spec.arch); };
  return key;
}

/// Which names and files there are, lib/Cost knows.
Key machine() {
  Key key{
      "target",
      "machine",
      R"(the name of a machine like "h100x8", or the path of a machine file)",
      {},
      {},
      false,
      {}};
  key.read = [](const Value &value, Spec &spec) {
    if (value.kind != Value::Kind::string || value.text.empty())
      return false;
    spec.machine = value.text;
    return true;
  };
  key.print = [](const Spec &spec) -> std::optional<std::string> {
    if (spec.machine.empty())
      return std::nullopt;
    return tomlText(spec.machine);
  };
  return key;
}

Key memoryPerRank() {
  return size(
      "expect", "memory_per_rank", anySize, 1, UINT64_MAX,
      [](Spec &s, uint64_t bytes) { s.memoryPerRankBytes = bytes; },
      [](const Spec &s) { return s.memoryPerRankBytes; });
}

/// The text of each; that it is a budget is checked where errors can say more
/// than that it is not.
Key collectiveBudgets() {
  Key key{"expect",
          "collectives",
          R"(an array of budgets like ["all_gather(tp) <= 2 per layer"])",
          {},
          {},
          false,
          {}};
  key.read = [](const Value &value, Spec &spec) {
    std::optional<Strings> texts = stringsOf(value);
    if (!texts)
      return false;
    for (size_t i = 0; i < texts->size(); ++i) {
      CollectiveBudget budget;
      budget.text = (*texts)[i];
      budget.place = value.items[i].where.text();
      spec.collectives.push_back(budget);
    }
    return true;
  };
  key.print = [](const Spec &spec) -> std::optional<std::string> {
    Strings texts;
    for (const CollectiveBudget &budget : spec.collectives)
      texts.push_back(budget.text);
    if (texts.empty())
      return std::nullopt;
    return tomlStrings(texts);
  };
  return key;
}

void addStepKeys(std::vector<Key> &keys) {
  keys.push_back(
      word<Recompute>("recompute", "policy",
                      [](Spec &s) -> Recompute & { return s.recompute; }));
  keys.push_back(word<When>("overlap", "collectives", [](Spec &s) -> When & {
    return s.overlap.collectives;
  }));
  keys.push_back(bucket());
  keys.push_back(word<When>(
      "overlap", "matmul", [](Spec &s) -> When & { return s.overlap.matmul; }));
  keys.push_back(chunks());
  keys.push_back(word<Type>("precision", "compute",
                            [](Spec &s) -> Type & { return s.compute; }));
  keys.push_back(onlyOne("precision", "master", {"f32"}, "f32"));
  keys.push_back(word<Type>("precision", "gradients",
                            [](Spec &s) -> Type & { return s.gradients; }));
  keys.push_back(
      word<Rounding>("precision", "rounding",
                     [](Spec &s) -> Rounding & { return s.rounding; }));
  keys.push_back(word<ReductionOrder>(
      "precision", "reduction_order",
      [](Spec &s) -> ReductionOrder & { return s.reductionOrder; }));
  keys.push_back(choice(
      "precision", "matmul", {"compute", "fp8"},
      [](Spec &s, const std::string &t) { s.fp8 = t == "fp8"; },
      [](const Spec &s) { return s.fp8 ? "fp8" : "compute"; }));
  keys.push_back(word<Scaling>("precision", "scaling",
                               [](Spec &s) -> Scaling & { return s.scaling; }));
  keys.push_back(word<WeightCasts>(
      "precision", "weight_casts",
      [](Spec &s) -> WeightCasts & { return s.weightCasts; }));
  addOptimizerKeys(keys);
  addGroupKeys(keys);
}

void addTargetKeys(std::vector<Key> &keys) {
  keys.push_back(word<Device>("target", "device",
                              [](Spec &s) -> Device & { return s.device; }));
  keys.push_back(arch());
  keys.push_back(machine());
  keys.push_back(word<When>("target", "merge_launches",
                            [](Spec &s) -> When & { return s.mergeLaunches; }));
  keys.push_back(word<When>("target", "epilogues",
                            [](Spec &s) -> When & { return s.epilogues; }));
  keys.push_back(memoryPerRank());
  keys.push_back(collectiveBudgets());
}

} // namespace

const std::vector<Key> &allKeys() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all;
    addMeshKeys(all);
    addParallelKeys(all);
    addExpertKeys(all);
    addOffloadKeys(all);
    addStepKeys(all);
    addTargetKeys(all);
    return all;
  }();
  return keys;
}

const Key *findKey(const std::string &path) {
  for (const Key &key : allKeys())
    if (key.path() == path)
      return &key;
  return nullptr;
}

const std::vector<std::string> &allSections() {
  static const std::vector<std::string> sections = [] {
    std::vector<std::string> all;
    for (const Key &key : allKeys())
      if (all.empty() || all.back() != key.section)
        all.push_back(key.section);
    return all;
  }();
  return sections;
}

} // namespace meshwork::spec
