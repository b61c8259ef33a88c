// Passes that form kernels.
#ifndef MESHWORK_FUSION_PASSES
#define MESHWORK_FUSION_PASSES
include "mlir/Pass/PassBase.td"

def FoldBiasPass : Pass<"fusion-fold-bias", "::mlir::ModuleOp"> {
  let summary = "Adds a bias in the product that it follows";
  let description = [{
    Before: `map` that adds a vector of a product's last dims to the product,
    which nothing else uses. After: `contract ... bias`.
    ```mlir
    // meshwork-opt -fusion-fold-bias
    !x = tensor<4x8xf32, #transformer.dims<sequence, embed>>
    !w = tensor<8x8xf32, #transformer.dims<embed, ffn>>
    !y = tensor<4x8xf32, #transformer.dims<sequence, ffn>>
    !b = tensor<8xf32, #transformer.dims<ffn>>
    func.func @layer(%x: !x, %w: !w, %b: !b) -> !y {
      %p = transformer.contract "se,ef->sf" %x, %w : !x, !w -> !y
      %y = transformer.map ins(%p, %b : !y, !b) -> !y {
      ^bb0(%u: f32, %v: f32):
        %s = arith.addf %u, %v : f32
        transformer.yield %s : f32
      }
      return %y : !y
    }
    // becomes
    func.func @layer(%x: ..., %w: ..., %b: ...) -> ... {
      %y = transformer.contract "se,ef->sf" %x, %w bias %b : ...
      return %y : ...
    }
    ```
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
    ```mlir
    // meshwork-opt -fusion-fuse -fusion-fold-epilogues
    !x = tensor<512x64xf32, #transformer.dims<tokens, embed>>
    !dy = tensor<512x32xf32, #transformer.dims<tokens, ffn>>
    !dw = tensor<64x32xf32, #transformer.dims<embed, ffn>>
    !db = tensor<32xf32, #transformer.dims<ffn>>
    func.func @gradients(%x: !x, %dy: !dy) -> (!dw, !db) {
      %dw = transformer.contract "te,tf->ef" %x, %dy : !x, !dy -> !dw
      %db = transformer.reduce add %dy over <tokens> : !dy -> !db
      return %dw, %db : !dw, !db
    }
    // becomes
    func.func @gradients(%x: ..., %dy: ...) -> ... {
      %dw, %sums = transformer.product "te,tf->ef" %x, %dy sum_rhs : ...
      %db = transformer.fused rows <> cols #ffn ins(%sums : tensor<1x32xf32, ...>) -> tensor<32xf32, ...> {
      ...
      return %dw, %db : ...
    }
    ```
  }];
  let options = [Option<"measured", "measured", "bool", "false", "count what a GPU takes for epilogues">];
}

def FuseAccumulationsPass : Pass<"fusion-accumulations", "::mlir::ModuleOp"> {
  let summary = "Makes accumulation of elementwise results part of their computation";
  let description = [{
    Before: `accumulate` of any value. After: only of products and of embedding
    gradients, which add in place by themselves; the others are a `map` of the
    old state and the value, and an `assign`.
    ```mlir
    // meshwork-opt -fusion-accumulations
    !x = tensor<4x8xf32, #transformer.dims<sequence, embed>>
    !g = tensor<8xf32, #transformer.dims<embed>>
    func.func @gradient(%x: !x) {
      %g = transformer.reduce add %x over <sequence> : !x -> !g
      transformer.accumulate gradient "w", %g : !g
      return
    }
    // becomes
    %g = transformer.reduce add ...
    %old = transformer.state gradient "w" : ...
    %new = transformer.map ins(%old, %g : ...) -> ... {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      transformer.yield %s : f32
    }
    transformer.assign gradient "w", %new : ...
    ```
  }];
}

def FusePass : Pass<"fusion-fuse", "::mlir::ModuleOp"> {
  let summary = "Forms clusters of map, reduce and roll";
  let description = [{
    Before: primitive and step ops. After: every map, reduce and roll is inside
    a `fused`. What is cheap to compute again from a tensor that the cluster
    reads anyway is computed again rather than stored: norms and activations
    are not kept for the backward pass. A sum over rows becomes at most `chunks`
    sums, and a kernel that adds them up. Narrow rows are cut into more, up to
    `narrow-chunks`, as long as the parts have at most `chunk-elements` elements
    together. A sum of everything, with nothing else to do, is cut into fewer: each
    part has `part-elements` elements. A kernel reads at most `operands` tensors:
    what would need more is stored on the way. With `tile-maxima` a kernel that
    transposes finds maxima of everything on the way.
    ```mlir
    // meshwork-opt -fusion-fuse="chunks=4"
    !x = tensor<64x8xf32, #transformer.dims<rows, cols>>
    !s = tensor<8xf32, #transformer.dims<cols>>
    func.func @sum(%x: !x) -> !s {
      %y = transformer.roll %x by 4 : !x
      %s = transformer.reduce add %y over <rows> : !x -> !s
      return %s : !s
    }
    // becomes
    %parts = transformer.fused rows #rows cols #cols ins(%x : ...) -> tensor<4x8xf32, #chunk_cols> {
    ^bb0(%a: ...):
      %y = transformer.roll %a by 4 : ...
      %p = transformer.reduce add %y over #rows : ...
      transformer.yield %p : ...
    }
    %s = transformer.fused rows <> cols #cols ins(%parts : ...) -> tensor<8xf32, #cols> {
    ^bb0(%b: ...):
      %q = transformer.reduce add %b over #chunk : ...
      transformer.yield %q : ...
    }
    ```
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
    // meshwork-opt -fusion-drop-unread
    !x = tensor<4x8xf32, #transformer.dims<rows, cols>>
    !s = tensor<4xf32, #transformer.dims<rows>>
    func.func @first(%x: !x) -> !x {
      %y:2 = transformer.fused rows <rows> cols <cols> ins(%x : !x) -> !x, !s {
      ^bb0(%a: !x):
        %r = transformer.roll %a by 4 : !x
        %s = transformer.reduce add %a over <cols> : !x -> !s
        transformer.yield %r, %s : !x, !s
      }
      return %y#0 : !x
    }
    // becomes
    %y = transformer.fused rows #rows cols #cols ins(%x : ...) -> tensor<4x8xf32, #rows_cols> {
    ^bb0(%a: ...):
      %r = transformer.roll %a by 4 : ...
      transformer.yield %r : ...
    }
    return %y : ...
    ```
  }];
}

#endif // MESHWORK_FUSION_PASSES
