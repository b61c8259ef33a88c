// What ops answer by naming it among their traits, for the methods of
// TransformerInterfaces.td. An op has the method itself where it depends on
// more than its kind. A part of Transformer.h, which is what to include.
#pragma once

#include "dialects/transformer/Padding.h"
#include "dialects/transformer/RankPart.h"
#include "mlir/IR/OpDefinition.h"

namespace meshwork::transformer {

/// What it takes to run an op again.
enum class Again {
  cheap, // little beside products; or it makes a value larger than it was
  dear,
  never
};

/// What an op has to do with the gradient of a weight. In a pipeline nothing
/// waits for what makes one that is only added up, nor for what moves it there.
enum class WeightGradient { none, makes, moves };

/// What an op does with state: weights, gradients, what the optimizer keeps.
enum class StateUse { none, reads, adds, writes };

/// A size that a GPU's kernels limit (meshwork/Plan/Gpu.h).
struct KernelSize {
  enum Kind { headElements, tokens, table };
  Kind kind;
  ::llvm::StringRef dim;
  int64_t size;
};

} // namespace meshwork::transformer

namespace meshwork::transformer::answers {

template <auto factors> struct Factors {
  template <typename Op> struct Impl : ::mlir::OpTrait::TraitBase<Op, Impl> {
    auto factorsByTrait() { return factors(this->getOperation()); }
  };
};
template <uint64_t flops> struct Flops {
  template <typename Op> struct Impl : ::mlir::OpTrait::TraitBase<Op, Impl> {
    static uint64_t flopsByTrait() { return flops; }
  };
};
template <bool yes> struct Linear {
  template <typename Op> struct Impl : ::mlir::OpTrait::TraitBase<Op, Impl> {
    static bool linearByTrait() { return yes; }
  };
};
template <bool yes> struct Elementwise {
  template <typename Op> struct Impl : ::mlir::OpTrait::TraitBase<Op, Impl> {
    static bool elementwiseByTrait() { return yes; }
  };
};
template <bool yes> struct StaysF32 {
  template <typename Op> struct Impl : ::mlir::OpTrait::TraitBase<Op, Impl> {
    static bool f32ByTrait() { return yes; }
  };
};
template <bool yes> struct ReadsF32 {
  template <typename Op> struct Impl : ::mlir::OpTrait::TraitBase<Op, Impl> {
    static bool readsF32ByTrait() { return yes; }
  };
};
template <Again again> struct RunAgain {
  template <typename Op> struct Impl : ::mlir::OpTrait::TraitBase<Op, Impl> {
    static Again againByTrait() { return again; }
  };
};
template <WeightGradient role> struct OfWeightGradient {
  template <typename Op> struct Impl : ::mlir::OpTrait::TraitBase<Op, Impl> {
    static WeightGradient weightGradientByTrait() { return role; }
  };
};
template <bool yes> struct Fusible {
  template <typename Op> struct Impl : ::mlir::OpTrait::TraitBase<Op, Impl> {
    static bool fusibleByTrait() { return yes; }
  };
};
template <typename Op>
struct TakesPadding : ::mlir::OpTrait::TraitBase<Op, TakesPadding> {
  static PaddingNeeds paddingNeedsByTrait() { return {}; }
};
template <Padding leaves()> struct LeavesPadding {
  template <typename Op> struct Impl : ::mlir::OpTrait::TraitBase<Op, Impl> {
    static Padding paddingByTrait() { return leaves(); }
  };
};
/// One that uses a state has a `getKey` that says which.
template <StateUse use> struct UsesState {
  template <typename Op> struct Impl : ::mlir::OpTrait::TraitBase<Op, Impl> {
    static StateUse stateUseByTrait() { return use; }
    ::std::optional<StateKey> usedStateByTrait() {
      if constexpr (use == StateUse::none)
        return ::std::nullopt;
      else
        return static_cast<Op &>(*this).getKey();
    }
  };
};
template <bool yes> struct AddsUp {
  template <typename Op> struct Impl : ::mlir::OpTrait::TraitBase<Op, Impl> {
    static bool addsUpByTrait() { return yes; }
  };
};
template <bool yes> struct DrawsWords {
  template <typename Op> struct Impl : ::mlir::OpTrait::TraitBase<Op, Impl> {
    static bool drawsByTrait() { return yes; }
  };
};
template <bool yes> struct Source {
  template <typename Op> struct Impl : ::mlir::OpTrait::TraitBase<Op, Impl> {
    static bool sourceByTrait() { return yes; }
  };
};
template <typename Op>
struct NoKernelSizes : ::mlir::OpTrait::TraitBase<Op, NoKernelSizes> {
  static ::llvm::SmallVector<KernelSize> kernelSizesByTrait() { return {}; }
};
template <typename Op>
struct CountsNothing : ::mlir::OpTrait::TraitBase<Op, CountsNothing> {
  static void partByTrait() {}
};

} // namespace meshwork::transformer::answers
