// Which sizes a small step has: the least that are split as the large ones are.
#pragma once

#include "lib/Spec/Spec.h"
#include "passes/verify/LeastSize.h"
#include "passes/verify/SmallModel.h"

namespace meshwork::verify {

class SizeRules {
public:
  /// Of the dims of a model, and of its spec before and after its mesh and its
  /// batch became small. All outlive it.
  SizeRules(const ModelDims &dims, const spec::Spec &large,
            const spec::Spec &small);

  /// Tokens of a sequence.
  int64_t sequence() const { return tokens; }
  SmallSizes sizes() const;

private:
  std::vector<Split> splitsOf(const std::string &dim) const;
  std::vector<std::string> axesOf(const std::string &dim) const;
  void addPrefixes(const std::vector<std::string> &first,
                   const std::vector<std::string> &axes,
                   std::vector<Split> &splits) const;
  Split along(Split split, const std::string &axis) const;
  void addFloat8(const std::string &dim, std::vector<Split> &splits) const;
  int64_t float8UnitOf(const std::string &dim) const;
  bool isOfHeads(const std::string &dim) const;
  int64_t leastOf(const std::string &dim, int64_t size) const;
  int64_t sizeOf(const std::string &dim, int64_t size) const;
  int64_t windowOf(int64_t window) const;
  void fitHeads(const std::string &queries, const std::string &keys,
                SmallSizes &sizes) const;

  const ModelDims &dims;
  const spec::Spec &large, &small;
  int64_t tokens;
};

} // namespace meshwork::verify
