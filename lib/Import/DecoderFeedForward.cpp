// The feed-forward part of a decoder's block, and experts.
#include "lib/Import/DecoderText.h"

namespace meshwork::importer {

/// One matrix of the feed-forward block, from the last dim of `x` to `to`.
Value DecoderText::dense(const Value &x, const char *which, const char *file,
                         const char *equation, const Dim &to, const Place &at) {
  std::string name = at.ssa + which;
  Value w = text.parameter(name + "_weight", at.file + file + ".weight",
                           normal(), {to, x.dims.back()});
  Value y =
      text.contract(name + "_proj", equation, x, w, {batch, sequence, to});
  if (!m.mlpBias)
    return y;
  Value b = text.parameter(name + "_bias", at.file + file + ".bias", {false, 0},
                           {to});
  return text.add(name + "_biased", y, b);
}

/// One matrix: all rows of gate, then those of up.
std::array<Value, 2> DecoderText::fusedGateAndUp(const Value &x,
                                                 const Place &at) {
  Dim two{"gate_up", 2};
  std::string name = at.ssa + "gate_up";
  Value w = parameterOfRows(name + "_weight",
                            at.file + names.gateUp + std::string(".weight"),
                            normal(), {two, ffn, embed}, 2);
  Value y = text.contract(name + "_proj", "bse,gfe->bsgf", x, w,
                          {batch, sequence, two, ffn});
  return {text.slice(at.ssa + "gate_proj", y, two.name, 0, inner),
          text.slice(at.ssa + "up_proj", y, two.name, 1, inner)};
}

Value DecoderText::feedForward(const Value &x, const Dim &width,
                               const Place &at) {
  Value y;
  if (m.feedForward == FeedForward::plain) {
    y = dense(x, "up", names.up, "bse,fe->bsf", width, at);
    y = text.activate(at.ssa + "act", m.activation, y);
  } else {
    auto [gate, up] =
        m.feedForward == FeedForward::fused
            ? fusedGateAndUp(x, at)
            : std::array{dense(x, "gate", names.gate, "bse,fe->bsf", width, at),
                         dense(x, "up", names.up, "bse,fe->bsf", width, at)};
    gate = text.activate(at.ssa + "act", m.activation, gate);
    y = text.multiply(at.ssa + "gated", gate, up);
  }
  return dense(y, "down", names.down, "bsf,ef->bse", embed, at);
}

Value DecoderText::mixture(const Value &x, const Place &at) {
  Value y = mixtureText(text, *m.mixture,
                        {normal(), m.activation, at.file, at.ssa}, x);
  if (m.mixture->shared == 0)
    return y;
  Place shared{at.file + m.mixture->block + "shared_expert", at.ssa + "shared_",
               at.layer};
  Dim width{"ffn", m.mixture->shared};
  Value z = m.mixture->isShare
                ? sharedExpert(x, shared)
                : feedForward(x, width,
                              {shared.file + "s.", shared.ssa, shared.layer});
  return text.add(at.ssa + "with_shared", y, z);
}

/// Of all tokens, each times what a router of its own gives it.
Value DecoderText::sharedExpert(const Value &x, const Place &at) {
  Value y = feedForward(x, {"ffn", m.mixture->shared},
                        {at.file + ".", at.ssa, at.layer});
  Value weight =
      text.parameter(at.ssa + "router_weight", at.file + "_gate.weight",
                     normal(), {embed}, {1, m.embed});
  Value share = text.contract(at.ssa + "router", "bse,e->bs", x, weight,
                              {batch, sequence});
  return text.multiply(at.ssa + "weighed", y,
                       text.activate(at.ssa + "share", "sigmoid", share));
}

} // namespace meshwork::importer
