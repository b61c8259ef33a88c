// Choices as specs. What a spec may not say is found by lib/Spec alone.
#pragma once

#include "lib/Spec/Spec.h"
#include "tools/meshwork/tune/Choice.h"
#include "tools/meshwork/tune/Fixed.h"
#include "tools/meshwork/tune/Tune.h"

#include <map>

namespace meshwork::tune {

class Specs {
public:
  explicit Specs(const TuneOptions &options) : options(options) {}

  /// Looks at the options and the files that they name; messages go to stderr.
  /// To be called first; an exit code.
  int check();

  /// The spec, with its files read. Absent where a diagnostic is an error.
  spec::Result of(const Choice &choice);

  /// Of a body, with so many sequences a step: without what --fixed says of
  /// pipelines and of copies of the weights, which it has none of, and of where
  /// states lie.
  spec::Result ofBody(const Choice &body, uint32_t global);
  /// One rank and what --fixed says, as far as it means something there. A
  /// step has one sequence.
  spec::Result ofOneSequence();

  /// The spec as TOML: what the choice and the options say, the rest being
  /// defaults. A machine file's path begins in `folder`.
  std::string textOf(const Choice &choice, const std::string &folder);

  /// All keys of a spec that this made, and its files: what a plan of it
  /// depends on.
  std::string settledText(const spec::Spec &spec) const;

  /// Keys that --fixed gives and that have no meaning in the choice's spec,
  /// with the reason of lib/Spec: the spec does without them.
  Reasons leftOutOf(const Choice &choice) const;

  /// The value that --fixed gives a key, without quotes; null: none.
  const std::string *fixedValue(const std::string &key) const;
  /// Whether --fixed leaves something to the compiler: "auto".
  bool leaveOpen() const;
  /// Puts all that --fixed says into a spec, whether or not one rank may have
  /// it: for bounds.
  void readFixed(spec::Spec &spec) const;
  bool isAnyFixed() const { return !fixed.empty(); }
  uint64_t sequence() const { return options.sequence; }
  /// The device of the machine, and its ranks in a node.
  spec::Device device() const { return machineDevice; }
  uint32_t ranksPerNode() const { return ranksOfNode; }

private:
  int checkFixed();
  int checkFixed(const std::string &key, const std::string &text);
  int checkMachine();
  void findPlain();
  std::vector<std::string> ownOverrides() const;
  std::vector<std::string> settingsWithOwn(const Choice &choice) const;
  std::vector<std::string> overridesOf(const Choice &choice) const;
  spec::Result resolved(const std::vector<std::string> &overrides);

  const TuneOptions &options;
  std::map<std::string, std::string> fixed;
  std::vector<std::string> plain; // those of --fixed that one rank may have
  std::map<std::string, std::string> files; // texts by path
  spec::Device machineDevice = spec::Device::cpu;
  uint32_t ranksOfNode = 1;
};

} // namespace meshwork::tune
