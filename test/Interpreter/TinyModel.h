// A model with every option at once: learned positions, rope, both norms,
// biases, fused and separate projections, grouped queries, a window, dropout in
// each place, all activations, a tied head.
#pragma once

#include "Harness.h"

#include <set>

/// The fusion phase, as it follows whatever rewrites products and gradients.
#define MESHWORK_FUSION_PASSES                                                 \
  "canonicalize,fusion-fold-bias,fusion-accumulations,canonicalize,"           \
  "fusion-fuse,cse"

namespace meshwork::interpreter {

/// Sizes that `pipeline` binds the model to.
inline constexpr int64_t batch = 4, sequence = 4;

/// `passes` after binding the model.
std::string pipeline(const std::string &passes);

/// Token ids, a function of `seed` alone: [batch, sequence].
Tensor ids(unsigned seed);

/// Random weights for every parameter of @`function`, the same for all
/// programs, and step inputs.
void setWeights(Program &program, mlir::StringRef function);

/// Runs @microbatch twice, on other tokens, as a step of two microbatches does.
void runMicrobatches(Program &program);

/// Holds the gradients of two microbatches of the model, by autodiff, against
/// differences of its loss: those of `names`, or of all parameters. How many.
unsigned checkDerivative(const std::string &text,
                         const std::set<std::string> &names = {});

/// Ends of @loss by name: what it may make of a head, of half of it, and of
/// a weight.
const std::vector<std::pair<std::string, std::string>> &losses();
/// A model with one of these ends in the place of its own; `%weight` is one of
/// its parameters of the dims <embed>.
std::string withLoss(const std::string &model, const std::string &weight,
                     const std::string &loss);

inline constexpr const char *tinyModel = R"(
#ff = #transformer.dims<ffn>
#pe = #transformer.dims<positions, embed>
#hd = #transformer.dims<heads, head_dim>
#bsf = #transformer.dims<batch, sequence, ffn>
!tokens = tensor<?x?xi32, #bs>
!x = tensor<?x?x4xf32, #bse>
!q = tensor<?x?x2x2xf32, #bshd>
!kv = tensor<?x?x1x2xf32, #bskd>
!lse = tensor<?x2x?xf32, #bhs>
!w = tensor<4xf32, #e>
!f = tensor<?x?x6xf32, #bsf>
!qkv = tensor<?x?x3x2x2xf32, #transformer.dims<batch, sequence, qkv, heads, head_dim>>
module {
  func.func @loss(%tokens: !tokens, %targets: !tokens) -> tensor<f32> {
    %wte = transformer.parameter "wte" init <normal, 0.0, 0.5> : tensor<7x4xf32, #ve>
    %wpe = transformer.parameter "wpe" init <normal, 0.0, 0.5> : tensor<6x4xf32, #pe>
    %te = transformer.embedding %wte, %tokens : tensor<7x4xf32, #ve>, !tokens -> !x
    %pe = transformer.slice %wpe dim "positions" offset 0 : tensor<6x4xf32, #pe> -> tensor<?x4xf32, #se>
    %x0 = transformer.add %te, %pe : !x, tensor<?x4xf32, #se> -> !x
    %x = transformer.dropout %x0 "drop" rate 0.2 : !x

    %ln1 = transformer.parameter "ln1" init <constant, 1.0> : !w
    %lb1 = transformer.parameter "lb1" init <constant, 0.0> : !w
    %n1 = transformer.layer_norm %x, %ln1, %lb1 epsilon 1.0e-3 : !x, !w
    %wqkv = transformer.parameter "wqkv" init <normal, 0.0, 0.5> file_shape [4, 12]
        : tensor<4x3x2x2xf32, #transformer.dims<embed, qkv, heads, head_dim>>
    %bqkv = transformer.parameter "bqkv" init <constant, 0.0> file_shape [12]
        : tensor<3x2x2xf32, #transformer.dims<qkv, heads, head_dim>>
    %qkv0 = transformer.contract "bse,eqhd->bsqhd" %n1, %wqkv : !x, tensor<4x3x2x2xf32, #transformer.dims<embed, qkv, heads, head_dim>> -> !qkv
    %qkv = transformer.add %qkv0, %bqkv : !qkv, tensor<3x2x2xf32, #transformer.dims<qkv, heads, head_dim>> -> !qkv
    %q1 = transformer.slice %qkv dim "qkv" offset 0 : !qkv -> !q
    %k1 = transformer.slice %qkv dim "qkv" offset 1 : !qkv -> !q
    %v1 = transformer.slice %qkv dim "qkv" offset 2 : !qkv -> !q
    %a1, %l1 = transformer.attention %q1, %k1, %v1 causal scale 0.7 dropout "att" rate 0.25 : !q, !q, !q -> !q, !lse
    %wo1 = transformer.parameter "wo1" init <normal, 0.0, 0.5> : tensor<2x2x4xf32, #transformer.dims<heads, head_dim, embed>>
    %o1 = transformer.contract "bshd,hde->bse" %a1, %wo1 : !q, tensor<2x2x4xf32, #transformer.dims<heads, head_dim, embed>> -> !x
    %r1 = transformer.add %x, %o1 : !x, !x -> !x
    %wf = transformer.parameter "wf" init <normal, 0.0, 0.5> : tensor<4x6xf32, #transformer.dims<embed, ffn>>
    %bf = transformer.parameter "bf" init <constant, 0.0> : tensor<6xf32, #ff>
    %f0 = transformer.contract "bse,ef->bsf" %r1, %wf : !x, tensor<4x6xf32, #transformer.dims<embed, ffn>> -> !f
    %f1 = transformer.add %f0, %bf : !f, tensor<6xf32, #ff> -> !f
    %f2 = transformer.activate gelu_tanh %f1 : !f
    %f3 = transformer.activate gelu %f1 : !f
    %f4 = transformer.sub %f2, %f3 : !f, !f -> !f
    %f5 = transformer.add %f4, %f2 : !f, !f -> !f
    %wp = transformer.parameter "wp" init <normal, 0.0, 0.5> : tensor<4x6xf32, #transformer.dims<embed, ffn>>
    %m1 = transformer.contract "bsf,ef->bse" %f5, %wp : !f, tensor<4x6xf32, #transformer.dims<embed, ffn>> -> !x
    %y0 = transformer.dropout %m1 "mlp.drop" rate 0.1 : !x
    %y = transformer.add %r1, %y0 : !x, !x -> !x

    %ln2 = transformer.parameter "ln2" init <constant, 1.0> : !w
    %n2 = transformer.rms_norm %y, %ln2 epsilon 1.0e-3 : !x, !w
    %wq = transformer.parameter "wq" init <normal, 0.0, 0.5> file_shape [4, 4] : tensor<2x2x4xf32, #transformer.dims<heads, head_dim, embed>>
    %wk = transformer.parameter "wk" init <normal, 0.0, 0.5> file_shape [2, 4] : tensor<1x2x4xf32, #transformer.dims<kv_heads, head_dim, embed>>
    %wv = transformer.parameter "wv" init <normal, 0.0, 0.5> file_shape [2, 4] : tensor<1x2x4xf32, #transformer.dims<kv_heads, head_dim, embed>>
    %q2 = transformer.contract "bse,hde->bshd" %n2, %wq : !x, tensor<2x2x4xf32, #transformer.dims<heads, head_dim, embed>> -> !q
    %k2 = transformer.contract "bse,hde->bshd" %n2, %wk : !x, tensor<1x2x4xf32, #transformer.dims<kv_heads, head_dim, embed>> -> !kv
    %v2 = transformer.contract "bse,hde->bshd" %n2, %wv : !x, tensor<1x2x4xf32, #transformer.dims<kv_heads, head_dim, embed>> -> !kv
    %nq = transformer.parameter "nq" init <constant, 1.0> : tensor<2xf32, #transformer.dims<head_dim>>
    %q3 = transformer.rms_norm %q2, %nq epsilon 1.0e-3 : !q, tensor<2xf32, #transformer.dims<head_dim>>
    %q4 = transformer.rope %q3 inverse_frequencies [0.5] scale 1.2 : !q
    %k4 = transformer.rope %k2 inverse_frequencies [0.5] scale 1.2 : !kv
    %a2, %l2 = transformer.attention %q4, %k4, %v2 causal scale 0.7 window 3 : !q, !kv, !kv -> !q, !lse
    %wo2 = transformer.parameter "wo2" init <normal, 0.0, 0.5> file_shape [4, 4] : tensor<4x2x2xf32, #transformer.dims<embed, heads, head_dim>>
    %o2 = transformer.contract "bshd,ehd->bse" %a2, %wo2 : !q, tensor<4x2x2xf32, #transformer.dims<embed, heads, head_dim>> -> !x
    %r2 = transformer.add %y, %o2 : !x, !x -> !x
    %wg = transformer.parameter "wg" init <normal, 0.0, 0.5> : tensor<6x4xf32, #transformer.dims<ffn, embed>>
    %wu = transformer.parameter "wu" init <normal, 0.0, 0.5> : tensor<6x4xf32, #transformer.dims<ffn, embed>>
    %g0 = transformer.contract "bse,fe->bsf" %r2, %wg : !x, tensor<6x4xf32, #transformer.dims<ffn, embed>> -> !f
    %u = transformer.contract "bse,fe->bsf" %r2, %wu : !x, tensor<6x4xf32, #transformer.dims<ffn, embed>> -> !f
    %g = transformer.activate silu %g0 : !f
    %h = transformer.mul %g, %u : !f, !f -> !f
    %wd = transformer.parameter "wd" init <normal, 0.0, 0.5> : tensor<4x6xf32, #transformer.dims<embed, ffn>>
    %d = transformer.contract "bsf,ef->bse" %h, %wd : !f, tensor<4x6xf32, #transformer.dims<embed, ffn>> -> !x
    %z = transformer.add %r2, %d : !x, !x -> !x
    %loss = transformer.head_loss %z, %wte, %targets scale 1.0 : !x, tensor<7x4xf32, #ve>, !tokens -> tensor<f32>
    return %loss : tensor<f32>
  }
}
)";

} // namespace meshwork::interpreter
