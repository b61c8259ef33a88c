// Layouts of a pipeline's layers, tried one after the other until one fits.
// Each tells what a layer takes, and so what the next should need.
#pragma once

#include "tools/meshwork/driver/search/LayerMemory.h"
#include "tools/meshwork/driver/search/Search.h"

#include <vector>

namespace meshwork::driver {

using Layers = std::vector<int64_t>; // of each virtual stage
using Layout = Tried<Layers>;

class Layouts {
public:
  /// `costs` of each layer, which live as long as this; `rankOf` names the
  /// coordinate that holds each virtual stage.
  Layouts(llvm::ArrayRef<double> costs, std::vector<int32_t> rankOf,
          size_t ranks, uint64_t limit);

  /// The one that is tried first.
  const Layers &balance() const { return balanced; }
  bool isBalanced(const Layout &layout) const {
    return fits(layout.trial, limit) && layout.way == balanced;
  }
  /// The best. `first` is what the balanced one came to; `compile` tells
  /// `bytes` and `bytesOfRanks` of others.
  mlir::FailureOr<Layout>
  search(Trial first, llvm::function_ref<Outcome(const Layers &)> compile);

private:
  std::optional<Trial> judged(const Layers &layers,
                              std::optional<Trial> trial) const;
  std::optional<Layers> next(llvm::ArrayRef<Layout> tried,
                             LayerMemory &memory) const;
  std::vector<int64_t> layersOfRanks(const Layers &layers) const;
  Layers promising(const LayerMemory &memory, const Layout &best) const;

  llvm::ArrayRef<double> costs;
  std::vector<int32_t> rankOf;
  size_t ranks;
  uint64_t limit;
  Layers balanced;
};

} // namespace meshwork::driver
