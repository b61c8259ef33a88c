#include "lib/Spec/Validate.h"

#include <algorithm>
#include <set>

namespace meshwork::spec {
namespace {

constexpr uint64_t maxRanks = 1 << 20;

class Validator {
public:
  Validator(const Document &document, const std::string &filename, Spec &spec,
            Diagnostics &diagnostics)
      : document(document), filename(filename), spec(spec),
        diagnostics(diagnostics) {}

  void run() {
    if (!checkMesh())
      return; // the rest would repeat it
    completeShard();
    checkShard();
    checkPrecision();
    checkBatch();
  }

private:
  void error(const std::string &key, const std::string &message) {
    auto entry = document.find(key);
    Location where = entry == document.end() ? Location{filename, 0, 0}
                                             : entry->second.value.where;
    diagnostics.push_back({Severity::error, where, key + ": " + message});
  }

  bool given(const char *key) const { return document.contains(key); }

  const Axis *findAxis(const std::string &name) const {
    for (const Axis &axis : spec.mesh)
      if (axis.name == name)
        return &axis;
    return nullptr;
  }

  bool checkMesh() {
    size_t before = diagnostics.size();
    std::set<std::string> names;
    uint64_t ranks = 1;
    for (const Axis &axis : spec.mesh) {
      if (!names.insert(axis.name).second)
        error("mesh.axes", "has axis " + quote(axis.name) + " twice");
      if (axis.size > 1 && axis.name != "dp")
        error("mesh.axes",
              "not supported by this version: axis " + quote(axis.name) +
                  " of size " + std::to_string(axis.size) +
                  "; give it size 1 and use \"dp\" for more ranks");
      if (ranks <= maxRanks)
        ranks *= axis.size; // at most 2^40
    }
    if (ranks > maxRanks)
      error("mesh.axes", "makes more than " + std::to_string(maxRanks) +
                             " ranks; use smaller axes");
    return diagnostics.size() == before;
  }

  void completeShard() {
    if (given("shard.batch") || !findAxis("dp"))
      return;
    spec.shard.insert(spec.shard.begin(), {"batch", {"dp"}});
  }

  void checkRule(const ShardRule &rule, std::set<std::string> &used) {
    std::string key = "shard." + rule.dim;
    std::vector<std::string> names;
    for (const Axis &axis : spec.mesh)
      names.push_back(axis.name);
    for (const std::string &name : rule.axes) {
      const Axis *axis = findAxis(name);
      if (!axis)
        error(key, "found axis " + quote(name) + ", expected one of mesh.axes" +
                       suggestion(name, names));
      else if (!used.insert(name).second)
        error(key, "found axis " + quote(name) +
                       " again, expected each axis to split one dim");
      else if (axis->size > 1 && rule.dim != "batch")
        error(key, "not supported by this version: splitting " +
                       quote(rule.dim) + " over " + quote(name) +
                       "; write shard.batch = [\"dp\"] instead");
    }
  }

  void checkShard() {
    size_t before = diagnostics.size();
    std::set<std::string> used;
    for (const ShardRule &rule : spec.shard)
      checkRule(rule, used);
    const Axis *dp = findAxis("dp");
    if (diagnostics.size() == before && dp && dp->size > 1 &&
        !used.contains("dp"))
      error("shard.batch", "splits nothing over \"dp\", whose " +
                               std::to_string(dp->size) +
                               " ranks would repeat each other; write "
                               "[\"dp\"], or leave the line out");
  }

  void checkPrecision() {
    if (!given("precision.gradients"))
      spec.gradients = spec.compute;
    if (spec.compute == Type::f32 && spec.gradients == Type::bf16)
      error("precision.gradients",
            "found \"bf16\" with precision.compute \"f32\", expected \"f32\"");
  }

  void checkBatch() {
    const Batch &batch = spec.batch;
    if (uint64_t{batch.micro} * batch.sequence > INT32_MAX)
      error("batch.micro",
            std::to_string(batch.micro) + " sequences of " +
                std::to_string(batch.sequence) +
                " tokens (batch.sequence) are more than 2147483647 tokens a "
                "microbatch; make one of them smaller");
    uint64_t ranks = spec.dataParallel();
    uint64_t unit = batch.micro * ranks;
    if (batch.global % unit == 0)
      return;
    uint64_t above = (batch.global / unit + 1) * unit, below = above - unit;
    error("batch.global",
          "found " + std::to_string(batch.global) +
              ", expected a multiple of " + std::to_string(unit) +
              " (batch.micro " + std::to_string(batch.micro) + " times " +
              std::to_string(ranks) + " data-parallel ranks), like " +
              (below > 0 ? std::to_string(below) + " or " : "") +
              std::to_string(above));
  }

  const Document &document;
  const std::string &filename;
  Spec &spec;
  Diagnostics &diagnostics;
};

} // namespace

void completeAndValidate(const Document &document, const std::string &filename,
                         Spec &spec, Diagnostics &diagnostics) {
  Validator(document, filename, spec, diagnostics).run();
}

} // namespace meshwork::spec
