// What the axes of the mesh split: [mesh] and [shard].
#include "lib/Spec/Checks.h"
#include "lib/Spec/Words.h"
#include "meshwork/Text/Counted.h"

#include <map>

namespace meshwork::spec {
namespace {

constexpr uint64_t maxRanks = 1 << 20;
/// A plan has at most twice as many, since key heads may cut each in two.
constexpr size_t maxAxes = 16;

class Splits : Checks {
public:
  explicit Splits(const Checks &checks) : Checks(checks) {}

  bool run() {
    if (!sound({"mesh.axes"}) || !checkMesh())
      return false;
    completeShard();
    checkShard();
    return true;
  }

private:
  bool checkMesh() {
    size_t before = diagnostics.size();
    std::set<std::string> names;
    uint64_t ranks = 1;
    if (spec.mesh.empty())
      spec.mesh = {{"dp", 1}};
    if (spec.mesh.size() > maxAxes)
      error("mesh.axes", "has " + counted(spec.mesh.size(), "axis", "axes") +
                             ", expected at most " + std::to_string(maxAxes));
    for (const Axis &axis : spec.mesh) {
      if (!names.insert(axis.name).second)
        error("mesh.axes", "has axis " + quote(axis.name) + " twice");
      if (ranks <= maxRanks)
        ranks *= axis.size; // at most 2^40
    }
    if (ranks > maxRanks)
      error("mesh.axes", "makes more than " + counted(maxRanks, "rank") +
                             "; use smaller axes");
    return diagnostics.size() == before;
  }

  bool hasRule(const std::string &dim) const {
    return std::any_of(spec.shard.begin(), spec.shard.end(),
                       [&](const ShardRule &rule) { return rule.dim == dim; });
  }

  /// The usual placement (Shoeybi et al., arXiv 1909.08053). Samples go over
  /// the data-parallel axes; heads, ffn and vocabulary over "tp". Experts go
  /// over "ep", which is a data-parallel axis to all others (Lepikhin et al.,
  /// arXiv 2006.16668). The sequence goes over "cp", unless that splits
  /// something else.
  void completeShard() {
    std::vector<std::string> data, samples;
    for (const char *name : {"dp", "fsdp"})
      if (findAxis(name))
        data.push_back(name);
    samples = data;
    if (findAxis("ep"))
      samples.push_back("ep");
    auto complete = [&](const char *dim, const std::vector<std::string> &axes) {
      if (!hasRule(dim) && !axes.empty() &&
          sound({("shard." + std::string(dim)).c_str()}))
        spec.shard.push_back({dim, axes});
    };
    complete("batch", samples);
    if (findAxis("ep"))
      complete("experts", {"ep"});
    if (findAxis("pp"))
      complete("layers", {"pp"});
    if (findAxis("tp"))
      for (const char *dim : {"heads", "ffn", "vocab"})
        complete(dim, {"tp"});
    std::vector<std::string> ofExperts = axesOf("experts");
    if (findAxis("tp") && !std::count(ofExperts.begin(), ofExperts.end(), "tp"))
      complete("expert_ffn", {"tp"});
    bool isFree = std::none_of(
        spec.shard.begin(), spec.shard.end(), [](const ShardRule &rule) {
          return std::count(rule.axes.begin(), rule.axes.end(), "cp") > 0;
        });
    if (findAxis("cp") && isFree && spec.pins.empty())
      complete("sequence", {"cp"});
    for (const ShardRule &rule : std::vector<ShardRule>(spec.shard))
      if (rule.dim == "heads")
        complete("kv_heads", rule.axes);
    if (spec.zero.stage > 0 && !given("zero.axes") && !data.empty())
      spec.zero.axes = {data.back()};
  }

  /// Names of mesh axes, each once; adds what they name to `used`.
  void checkAxes(const std::string &key, const std::vector<std::string> &list) {
    std::set<std::string> here;
    for (const std::string &name : list)
      if (!findAxis(name))
        error(key, unknownAxis(name));
      else if (!here.insert(name).second)
        error(key,
              "found axis " + quote(name) + " again, expected each axis once");
      else
        used.insert(name);
  }

  /// Dims that stand in one tensor cannot both be split over one axis.
  void checkApart(const std::string &dim, const std::string &other) {
    for (const std::string &axis : axesOf(dim))
      for (const std::string &same : axesOf(other))
        if (axis == same && findAxis(axis) && findAxis(axis)->size > 1)
          error("shard." + dim, "found axis " + quote(axis) +
                                    ", which splits " + quote(other) +
                                    " too; some tensor has both dims, and an "
                                    "axis splits one dim of a tensor; leave it "
                                    "out of one of the two");
  }

  /// The residual stream has the parts of the sequence, or parts of those: its
  /// list is of axes beside those of the sequence, or repeats them first.
  void checkResidual() {
    auto splitting = [&](const std::string &dim) {
      std::vector<std::string> axes = axesOf(dim);
      std::erase_if(axes, [&](const std::string &name) {
        const Axis *axis = findAxis(name);
        return !axis || axis->size == 1;
      });
      return axes;
    };
    std::vector<std::string> sequence = splitting("sequence"),
                             residual = splitting("residual_sequence");
    bool isBeside = std::none_of(
        residual.begin(), residual.end(), [&](const std::string &axis) {
          return std::count(sequence.begin(), sequence.end(), axis) > 0;
        });
    bool repeats =
        residual.size() >= sequence.size() &&
        std::equal(sequence.begin(), sequence.end(), residual.begin());
    std::string expected;
    for (const std::string &axis : sequence)
      expected += (expected.empty() ? "" : ", ") + quote(axis);
    if (!isBeside && !repeats)
      error("shard.residual_sequence",
            "has an axis of shard.sequence and does not begin with all of "
            "them; begin with " +
                expected + ", or name none of them");
  }

  /// Ranks that share experts, and nothing else, would have the same tokens.
  void checkExperts() {
    for (const std::string &name : axesOf("experts")) {
      bool isShared = std::any_of(
          spec.shard.begin(), spec.shard.end(), [&](const ShardRule &rule) {
            return rule.dim != "experts" &&
                   std::count(rule.axes.begin(), rule.axes.end(), name) > 0;
          });
      if (isShared || !findAxis(name) || findAxis(name)->size == 1)
        continue;
      std::string batch;
      for (const std::string &axis : axesOf("batch"))
        batch += quote(axis) + ", ";
      error(hasRule("batch") && given("shard.batch") ? "shard.batch"
                                                     : "shard.experts",
            "leaves out axis " + quote(name) +
                ", which splits experts alone: its ranks would all compute the "
                "same tokens; write shard.batch = [" +
                batch + quote(name) + "]");
    }
  }

  void checkShard() {
    size_t before = diagnostics.size();
    for (const ShardRule &rule : spec.shard)
      checkAxes("shard." + rule.dim, rule.axes);
    for (const char *dim :
         {"sequence", "heads", "kv_heads", "ffn", "expert_ffn", "vocab",
          "residual_sequence", "embed", "head_dim"})
      checkApart("batch", dim);
    for (const char *dim :
         {"heads", "kv_heads", "ffn", "expert_ffn", "vocab"}) {
      checkApart("sequence", dim);
      checkApart("embed", dim);
    }
    checkApart("experts", "embed");
    checkApart("experts", "expert_ffn");
    checkExperts();
    checkApart("embed", "residual_sequence");
    checkApart("sequence", "embed");
    checkResidual();
    for (const std::string &name : axesOf("head_dim"))
      if (findAxis(name) && findAxis(name)->size > 1)
        error("shard.head_dim",
              "not supported by this version: splitting \"head_dim\" over " +
                  quote(name) + "; leave the line out");
    checkStrategies(*this);
    if (diagnostics.size() == before && broken.empty())
      checkAllUsed();
  }

  /// The line of [shard] that an axis of this name is likely to be meant for.
  static std::string usualRule(const std::string &axis) {
    static const std::map<std::string, std::vector<std::string>> dims = {
        {"cp", {"sequence"}},
        {"sp", {"sequence"}},
        {"seq", {"sequence"}},
        {"context", {"sequence"}},
        {"ulysses", {"sequence"}},
        {"tp", {"heads", "ffn", "vocab"}},
        {"mp", {"heads", "ffn", "vocab"}},
        {"tensor", {"heads", "ffn", "vocab"}},
        {"model", {"heads", "ffn", "vocab"}},
        {"ep", {"experts"}},
        {"expert", {"experts"}},
        {"pp", {"layers"}},
        {"pipe", {"layers"}},
        {"stage", {"layers"}},
        {"pipeline", {"layers"}}};
    auto known = dims.find(axis);
    std::string text;
    for (const std::string &dim : known == dims.end()
                                      ? std::vector<std::string>{"batch"}
                                      : known->second)
      text += (text.empty() ? "" : ", ") + dim + " = [" + quote(axis) + "]";
    return text;
  }

  void checkAllUsed() {
    for (const Axis &axis : spec.mesh)
      if (axis.size > 1 && !used.contains(axis.name) && spec.pins.empty())
        error("mesh.axes",
              "axis " + quote(axis.name) + " splits nothing; its " +
                  counted(axis.size, "rank") +
                  " would repeat each other. Name it in [shard], like " +
                  usualRule(axis.name) +
                  (axis.name == "sp" && findAxis("tp")
                       ? "; sequence parallelism of tensor-parallel ranks "
                         "needs no axis of its own, but residual_sequence = "
                         "[\"tp\"]"
                       : ""));
  }

  std::set<std::string> used; // axes that some rule names
};

} // namespace

bool completeAndCheckSplits(const Checks &checks) {
  return Splits(checks).run();
}

} // namespace meshwork::spec
