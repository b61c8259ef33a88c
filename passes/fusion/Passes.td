// Passes that form kernels.
#ifndef MESHWORK_FUSION_PASSES
#define MESHWORK_FUSION_PASSES
include "mlir/Pass/PassBase.td"

def FoldBiasPass : Pass<"fusion-fold-bias", "::mlir::ModuleOp"> {
  let summary = "Adds a bias in the product that it follows";
  let description = [{
    Before: `map` that adds a vector of a product's last dims to the product,
    which nothing else uses. After: `contract ... bias`.
  }];
}

def FoldEpiloguesPass : Pass<"fusion-fold-epilogues", "::mlir::ModuleOp"> {
  let summary = "Has products do what clusters did with their operands and results";
  let description = [{
    Before: `fused` that applies GELU (tanh form) to a product's result, multiplies one by its
    derivative, or adds up a product's operand over what the product sums. After: `product` with that as its
    epilogue, and a `fused` without it, or none; wherever that saves memory traffic.
    With `measured` what a GPU took for an epilogue counts as traffic, and sums
    are left to kernels.
  }];
  let options = [Option<"measured", "measured", "bool", "false", "count what a GPU takes for epilogues">];
}

def FuseAccumulationsPass : Pass<"fusion-accumulations", "::mlir::ModuleOp"> {
  let summary = "Makes accumulation of elementwise results part of their computation";
  let description = [{
    Before: `accumulate` of any value. After: only of products and of embedding
    gradients, which add in place by themselves; the others are a `map` of the
    old state and the value, and an `assign`.
  }];
}

def FusePass : Pass<"fusion-fuse", "::mlir::ModuleOp"> {
  let summary = "Forms clusters of map, reduce and roll";
  let description = [{
    Before: primitive and step ops. After: every map, reduce and roll is inside
    a `fused`. What is cheap to compute again from a tensor that the cluster
    reads anyway is computed again rather than stored: norms and activations
    are not kept for the backward pass. A sum over rows becomes at most `chunks`
    sums, and a kernel that adds them up; more, up to `narrow-chunks`, where rows are narrow, so that
    the parts have no more than `chunk-elements` elements together; fewer, where everything is summed and
    nothing else is done, so that each part has `part-elements` elements. A kernel reads at most `operands`
    tensors: what would need more is stored on the way. With `tile-maxima` a kernel
    that transposes finds maxima of everything on the way.
  }];
  let options = [Option<"chunks", "chunks", "int64_t", "32", "parts of a sum over rows, at most">,
                 Option<"narrowChunks", "narrow-chunks", "int64_t", "0", "parts of a sum over narrow rows, at most">,
                 Option<"chunkElements", "chunk-elements", "int64_t", "0", "elements of all parts of a sum over narrow rows">,
                 Option<"partElements", "part-elements", "int64_t", "0", "elements of a part of a sum over everything, at least; 0 is no limit">,
                 Option<"operands", "operands", "int64_t", "65536", "tensors that a kernel reads, at most">,
                 Option<"tileMaxima", "tile-maxima", "bool", "false", "whether a kernel that transposes may find maxima of everything">];
}

def DropUnreadPass : Pass<"fusion-drop-unread", "::mlir::ModuleOp"> {
  let summary = "Drops results of clusters that nothing reads";
  let description = [{
    Before: `fused` with results that were read when clusters were formed. After: every result of a `fused`
    is read, and its body computes nothing else. The rest is computed as before, to the bit.
    ```mlir
    %y:2 = transformer.fused ... { ... yield %a, %b }  // %y#1 is read by nobody
    // becomes
    %y = transformer.fused ... { ... yield %a }
    ```
  }];
}

#endif // MESHWORK_FUSION_PASSES
