// State, and what the runtime sets for all of a step.
#pragma once

#include "passes/schedule/Buffers.h"

namespace meshwork::schedule {

using transformer::StateKey;

/// Where it lies, made on first use.
class States {
public:
  /// `module` says how the states are stored.
  States(::mlir::ModuleOp module, Buffers &buffers);

  /// Weights and master are one in f32 training.
  Place of(StateKey key, ::mlir::RankedTensorType type);
  /// How a state lies: its type on one rank and its sharding.
  struct Stored {
    ::mlir::RankedTensorType type;
    mesh::ShardingAttr sharding; // null: whole
  };
  Stored stored(StateKey key) const { return known.lookup(key); }

  /// One of the scalars that the runtime sets.
  Place stepInput(transformer::StepInputOp op);
  /// What the runtime sets for all of a step or a microbatch: learning_rate;
  /// random and update_random, three numbers each.
  Place input(InputKind kind);
  bool hasInput(InputKind kind) const { return inputs.contains(kind); }
  /// Those bias corrections that something reads, by base.
  const std::map<double, Place> &biasCorrections() const { return corrections; }

private:
  Place biasCorrection(double base);
  ::mlir::FailureOr<Place> masterOf(::llvm::StringRef name);

  Buffers &buffers;
  ::mlir::Builder builder;
  ::mlir::Type gradient; // of kept gradients
  bool mixed = false;    // weights apart from the master weights
  mesh::MeshAttr mesh;   // null: one rank
  ::llvm::DenseMap<StateKey, Place> places;
  ::llvm::DenseMap<StateKey, Stored> known;
  std::map<InputKind, Place> inputs;
  std::map<double, Place> corrections;
};

} // namespace meshwork::schedule
