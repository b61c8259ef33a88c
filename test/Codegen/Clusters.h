// Clusters that tests and benchmarks share. `$X` stands for sizes and types
// that `fill` sets.
#pragma once

namespace meshwork::codegen::test {

// Whole numbers added up in i32, as counts are.
inline constexpr const char *exactSum = R"(
#d = #transformer.dims<rows, cols>
!n = tensor<$Rx$Cxi32, #d>
!x = tensor<$Rx$Cxf32, #d>
func.func @f(%n: !n, %x: !x) -> !n {
  %0 = transformer.fused rows <rows> cols <cols> ins(%n, %x : !n, !x) -> !n {
  ^bb0(%a: !n, %b: !x):
    %s = transformer.map ins(%a, %b : !n, !x) -> !n {
    ^bb0(%p: i32, %q: f32):
      %i = arith.fptosi %q : f32 to i32
      %t = arith.addi %p, %i : i32
      transformer.yield %t : i32
    }
    transformer.yield %s : !n
  }
  return %0 : !n
}
)";

inline constexpr const char *rmsNorm = R"(
#d = #transformer.dims<rows, cols>
#r = #transformer.dims<rows>
#c = #transformer.dims<cols>
!x = tensor<$Rx$Cx$T, #d>
!f = tensor<$Rx$Cxf32, #d>
!r = tensor<$Rxf32, #r>
!w = tensor<$Cxf32, #c>
func.func @f(%x: !x, %y: !x, %w: !w) -> (!x, !x) {
  %sum, %norm = transformer.fused rows #r cols #c ins(%x, %y, %w : !x, !x, !w) -> !x, !x {
  ^bb0(%a: !x, %b: !x, %g: !w):
    %s = transformer.map ins(%a, %b : !x, !x) -> !x {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.addf %p, %q : f32
      transformer.yield %0 : f32
    }
    %sq = transformer.map ins(%s : !x) -> !f {
    ^bb0(%p: f32):
      %0 = arith.mulf %p, %p : f32
      transformer.yield %0 : f32
    }
    %ss = transformer.reduce add %sq over #c : !f -> !r
    %n = transformer.map ins(%s, %ss, %g : !x, !r, !w) -> !x {
    ^bb0(%p: f32, %t: f32, %h: f32):
      %inverse = arith.constant $I : f32
      %eps = arith.constant 1.0e-5 : f32
      %m = arith.mulf %t, %inverse : f32
      %e = arith.addf %m, %eps : f32
      %i = math.rsqrt %e : f32
      %1 = arith.mulf %p, %i : f32
      %2 = arith.mulf %1, %h : f32
      transformer.yield %2 : f32
    }
    transformer.yield %s, %n : !x, !x
  }
  return %sum, %norm : !x, !x
}
)";

// The gradient of LayerNorm: x and the residual's gradient in, both parameters'
// gradients as chunks.
inline constexpr const char *layerNormGrad = R"(
#d = #transformer.dims<rows, cols>
#r = #transformer.dims<rows>
#c = #transformer.dims<cols>
!x = tensor<$Rx$Cx$T, #d>
!f = tensor<$Rx$Cxf32, #d>
!r = tensor<$Rxf32, #r>
!w = tensor<$Cxf32, #c>
!k = tensor<$Kx$Cxf32, #transformer.dims<chunk, cols>>
func.func @f(%x: !x, %dy: !x, %w: !w, %dz: !x) -> (!x, !k, !k) {
  %0:3 = transformer.fused rows #r cols #c ins(%x, %dy, %w, %dz : !x, !x, !w, !x) -> !x, !k, !k {
  ^bb0(%a: !x, %b: !x, %g: !w, %z: !x):
    %s = transformer.reduce add %a over #c : !x -> !r
    %centred = transformer.map ins(%a, %s : !x, !r) -> !f {
    ^bb0(%p: f32, %q: f32):
      %inverse = arith.constant $I : f32
      %m = arith.mulf %q, %inverse : f32
      %v = arith.subf %p, %m : f32
      transformer.yield %v : f32
    }
    %squares = transformer.map ins(%centred : !f) -> !f {
    ^bb0(%p: f32):
      %v = arith.mulf %p, %p : f32
      transformer.yield %v : f32
    }
    %ss = transformer.reduce add %squares over #c : !f -> !r
    %hat = transformer.map ins(%centred, %ss : !f, !r) -> !f {
    ^bb0(%p: f32, %q: f32):
      %inverse = arith.constant $I : f32
      %eps = arith.constant 1.0e-5 : f32
      %m = arith.mulf %q, %inverse : f32
      %e = arith.addf %m, %eps : f32
      %root = math.rsqrt %e : f32
      %v = arith.mulf %p, %root : f32
      transformer.yield %v : f32
    }
    %dhat = transformer.map ins(%b, %g : !x, !w) -> !f {
    ^bb0(%p: f32, %q: f32):
      %v = arith.mulf %p, %q : f32
      transformer.yield %v : f32
    }
    %both = transformer.map ins(%dhat, %hat : !f, !f) -> !f {
    ^bb0(%p: f32, %q: f32):
      %v = arith.mulf %p, %q : f32
      transformer.yield %v : f32
    }
    %s1 = transformer.reduce add %dhat over #c : !f -> !r
    %s2 = transformer.reduce add %both over #c : !f -> !r
    %dx = transformer.map ins(%dhat, %hat, %s1, %s2, %ss, %z : !f, !f, !r, !r, !r, !x) -> !x {
    ^bb0(%p: f32, %h: f32, %t1: f32, %t2: f32, %q: f32, %u: f32):
      %inverse = arith.constant $I : f32
      %eps = arith.constant 1.0e-5 : f32
      %m = arith.mulf %q, %inverse : f32
      %e = arith.addf %m, %eps : f32
      %root = math.rsqrt %e : f32
      %m1 = arith.mulf %t1, %inverse : f32
      %m2 = arith.mulf %t2, %inverse : f32
      %h2 = arith.mulf %h, %m2 : f32
      %d1 = arith.subf %p, %m1 : f32
      %d2 = arith.subf %d1, %h2 : f32
      %d3 = arith.mulf %d2, %root : f32
      %v = arith.addf %d3, %u : f32
      transformer.yield %v : f32
    }
    %wg = transformer.map ins(%b, %hat : !x, !f) -> !f {
    ^bb0(%p: f32, %q: f32):
      %v = arith.mulf %p, %q : f32
      transformer.yield %v : f32
    }
    %dg = transformer.reduce add %wg over #r : !f -> !w
    %db = transformer.reduce add %b over #r : !x -> !w
    transformer.yield %dx, %dg, %db : !x, !w, !w
  }
  return %0#0, %0#1, %0#2 : !x, !k, !k
}
)";

inline constexpr const char *crossEntropy = R"(
#r = #transformer.dims<rows>
#v = #transformer.dims<vocab>
#rv = #transformer.dims<rows, vocab>
!x = tensor<$Rx$Vx$T, #rv>
!f = tensor<$Rx$Vxf32, #rv>
!r = tensor<$Rxf32, #r>
!i = tensor<$Rxi32, #r>
!k = tensor<$Kxf32, #transformer.dims<chunk>>
func.func @f(%x: !x, %t: !i) -> (!x, !k) {
  %g, %l = transformer.fused rows #r cols #v ins(%x, %t : !x, !i) -> !x, !k {
  ^bb0(%a: !x, %b: !i):
    %m = transformer.reduce max %a over #v : !x -> !r
    %e = transformer.map ins(%a, %m : !x, !r) -> !f {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.subf %p, %q : f32
      %1 = math.exp %0 : f32
      transformer.yield %1 : f32
    }
    %s = transformer.reduce add %e over #v : !f -> !r
    %hit = transformer.map ins(%a, %b : !x, !i) -> !f {
    ^bb0(%p: f32, %q: i32):
      %c = transformer.index "vocab" : i32
      %zero = arith.constant 0.0 : f32
      %0 = arith.cmpi eq, %c, %q : i32
      %1 = arith.select %0, %p, %zero : f32
      transformer.yield %1 : f32
    }
    %z = transformer.reduce add %hit over #v : !f -> !r
    %loss = transformer.map ins(%m, %s, %z : !r, !r, !r) -> !r {
    ^bb0(%p: f32, %q: f32, %h: f32):
      %0 = math.log %q : f32
      %1 = arith.addf %0, %p : f32
      %2 = arith.subf %1, %h : f32
      transformer.yield %2 : f32
    }
    %total = transformer.reduce add %loss over #r : !r -> tensor<f32>
    %g = transformer.map ins(%e, %s, %b : !f, !r, !i) -> !x {
    ^bb0(%p: f32, %q: f32, %h: i32):
      %c = transformer.index "vocab" : i32
      %one = arith.constant 1.0 : f32
      %zero = arith.constant 0.0 : f32
      %scale = arith.constant 0.125 : f32
      %0 = arith.divf %p, %q : f32
      %1 = arith.cmpi eq, %c, %h : i32
      %2 = arith.select %1, %one, %zero : f32
      %3 = arith.subf %0, %2 : f32
      %4 = arith.mulf %3, %scale : f32
      transformer.yield %4 : f32
    }
    transformer.yield %g, %total : !x, tensor<f32>
  }
  return %g, %l : !x, !k
}
)";

inline constexpr const char *swiglu = R"(
#x = #transformer.dims<rows, ffn>
!x = tensor<$Rx$Cxbf16, #x>
func.func @f(%g: !x, %u: !x) -> !x {
  %r = transformer.fused rows <> cols #x ins(%g, %u : !x, !x) -> !x {
  ^bb0(%a: !x, %b: !x):
    %y = transformer.map ins(%a, %b : !x, !x) -> !x {
    ^bb0(%p: f32, %q: f32):
      %one = arith.constant 1.0 : f32
      %0 = arith.negf %p : f32
      %1 = math.exp %0 : f32
      %2 = arith.addf %1, %one : f32
      %3 = arith.divf %p, %2 : f32
      %4 = arith.mulf %3, %q : f32
      transformer.yield %4 : f32
    }
    transformer.yield %y : !x
  }
  return %r : !x
}
)";

inline constexpr const char *adamw = R"(
#d = #transformer.dims<embed, ffn>
!p = tensor<$Rx$Cxf32, #d>
!w = tensor<$Rx$Cxbf16, #d>
!s = tensor<f32>
func.func @f(%p: !p, %m: !p, %v: !p, %g: !p, %lr: !s, %b1: !s, %b2: !s, %clip: !s) -> (!p, !p, !p, !w) {
  %r:4 = transformer.fused rows <> cols #d ins(%p, %m, %v, %g, %lr, %b1, %b2, %clip : !p, !p, !p, !p, !s, !s, !s, !s) -> !p, !p, !p, !w {
  ^bb0(%a: !p, %b: !p, %c: !p, %d: !p, %e: !s, %f: !s, %h: !s, %i: !s):
    %y:4 = transformer.map ins(%a, %b, %c, %d, %e, %f, %h, %i : !p, !p, !p, !p, !s, !s, !s, !s) -> !p, !p, !p, !w {
    ^bb0(%P: f32, %M: f32, %V: f32, %G: f32, %L: f32, %B1: f32, %B2: f32, %C: f32):
      %beta1 = arith.constant 0.9 : f32
      %rest1 = arith.constant 0.1 : f32
      %beta2 = arith.constant 0.95 : f32
      %rest2 = arith.constant 0.05 : f32
      %eps = arith.constant 1.0e-8 : f32
      %decay = arith.constant 0.1 : f32
      %gr = arith.mulf %G, %C : f32
      %m0 = arith.mulf %M, %beta1 : f32
      %m1 = arith.mulf %gr, %rest1 : f32
      %m2 = arith.addf %m0, %m1 : f32
      %v0 = arith.mulf %V, %beta2 : f32
      %gg = arith.mulf %gr, %gr : f32
      %v1 = arith.mulf %gg, %rest2 : f32
      %v2 = arith.addf %v0, %v1 : f32
      %mh = arith.divf %m2, %B1 : f32
      %vh = arith.divf %v2, %B2 : f32
      %root = math.sqrt %vh : f32
      %den = arith.addf %root, %eps : f32
      %u = arith.divf %mh, %den : f32
      %wd = arith.mulf %P, %decay : f32
      %step = arith.addf %u, %wd : f32
      %move = arith.mulf %step, %L : f32
      %new = arith.subf %P, %move : f32
      transformer.yield %new, %m2, %v2, %new : f32, f32, f32, f32
    }
    transformer.yield %y#0, %y#1, %y#2, %y#3 : !p, !p, !p, !w
  }
  return %r#0, %r#1, %r#2, %r#3 : !p, !p, !p, !w
}
)";

/// Dropout and a mask on a rank's part of a sequence, whose elements are at any
/// positions of the whole; -1: padding.
inline constexpr const char *partOfSequence = R"(
#d = #transformer.dims<$Z>
!x = tensor<$Sxf32, #d>
!p = tensor<12xi32, #transformer.dims<sequence>>
!i = tensor<i32>
func.func @f(%x: !x, %seed: !i, %step: !i, %first: !i, %at: !p) -> !x {
  %r = transformer.fused rows <$P> cols <$Q> ins(%x, %seed, %step, %first, %at : !x, !i, !i, !i, !p) -> !x {
  ^bb0(%a: !x, %b: !i, %c: !i, %d: !i, %l: !p):
    %y = transformer.map ins(%a, %b, %c, %d, %l : !x, !i, !i, !i, !p) -> !x {
    ^bb0(%v: f32, %e: i32, %f: i32, %g: i32, %position: i32):
      %own = transformer.index "sequence" : i32
      %further = arith.subi %position, %own : i32
      %m = transformer.dropout_mask %e, %f, %g stream -1234567 rate 2.5e-1 of [$W] at ["sequence"] %further
      %kept = arith.mulf %v, %m : f32
      %zero = arith.constant 0 : i32
      %nothing = arith.constant 0.0 : f32
      %there = arith.cmpi sge, %position, %zero : i32
      %0 = arith.select %there, %kept, %nothing : f32
      transformer.yield %0 : f32
    }
    transformer.yield %y : !x
  }
  return %r : !x
}
)";

} // namespace meshwork::codegen::test
