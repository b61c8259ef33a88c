// The Llama family (arXiv 2302.13971) as Hugging Face's *ForCausalLM: RMSNorm,
// rotary positions, grouped heads, gated feed-forward, projections stored as
// [out, in]. Mistral adds a sliding window, Qwen2 biases of q, k and v, Qwen3
// norms of q and k; Mixtral, Qwen2-MoE, Qwen3-MoE and OLMoE mixtures of experts
// (Mixture.h), OLMoE with norms over all heads of q, and of k; dots.llm1
// Qwen3's attention and DeepSeek-V3's experts.
#include <cmath>

#include "lib/Import/Families.h"
#include "lib/Import/Keys.h"
#include "lib/Import/LlamaConfig.h"
#include "lib/Import/ModelText.h"
#include "lib/Spec/FilePath.h"
#include "meshwork/Text/Counted.h"

namespace meshwork::importer {
namespace {

class LlamaText {
public:
  LlamaText(const Llama &m, const std::string &family,
            const std::string &config)
      : m(m), text(family) {
    text.config(config);
    text.alias("hidden", hidden);
    text.alias("heads", queries);
    text.alias("kv_heads", keys);
    text.alias("lse", {batch, heads, sequence});
    text.alias("ffn", inner);
    text.maxPositions(m.maxPositions);
    if (m.mixture)
      text.balanceCoefficient(m.mixture->balanceCoefficient);
    text.rotary(m.rope.inverseFrequencies, m.rope.scale);
  }

  std::string run(const std::string &family, const std::string &filename) {
    Dims tableDims = {{"vocab", m.vocabulary}, embed};
    Value table = text.parameter("embed_tokens", "model.embed_tokens.weight",
                                 normal(), tableDims);
    Value x = text.embedding("embedded", table, m.padding);
    for (int64_t layer = 0; layer < m.layers; ++layer)
      x = block(x, layer);
    text.section("head");
    x = norm("norm", "model.norm.weight", x, embed);
    Value head = m.tied ? table
                        : text.parameter("lm_head", "lm_head.weight", normal(),
                                         tableDims);
    text.headLoss(x, head);
    return text.finish({family + ", imported from " + filename + ": " +
                        counted(m.layers, "layer") + ", " +
                        counted(text.numParameters(), "parameter") +
                        activeText() + "."});
  }

private:
  std::string activeText() const {
    if (!m.mixture)
      return "";
    return ", of which each token uses " +
           std::to_string(text.numParameters() - m.mixture->idle(m.embed));
  }
  Init normal() const { return {true, m.deviation}; }

  Value norm(const std::string &ssa, const std::string &file, const Value &x,
             const Dim &dim) {
    Value weight = text.parameter(ssa + "_weight", file, {false, 1}, {dim});
    return text.rmsNorm(ssa, x, weight, m.epsilon);
  }

  /// Of queries or keys, each head's or all of them.
  Value normOfHeads(const std::string &ssa, const std::string &file,
                    const Value &x) {
    if (m.qkNorm == QkNorm::head)
      return norm(ssa, file, x, headDim);
    const Dim &head = x.dims[2];
    Value weight = text.parameter(ssa + "_weight", file, {false, 1},
                                  {head, headDim}, {head.size * m.headDim});
    return text.rmsNorm(ssa, x, weight, m.epsilon);
  }

  Value block(const Value &x, int64_t layer) {
    std::string file = "model.layers." + std::to_string(layer) + ".";
    std::string ssa = "l" + std::to_string(layer) + "_";
    text.section("layer " + std::to_string(layer), layer);
    Value y =
        norm(ssa + "input_norm", file + "input_layernorm.weight", x, embed);
    y = attention(y, layer, file + "self_attn.", ssa);
    Value middle = text.add(ssa + "middle", x, y);
    y = norm(ssa + "post_attention_norm",
             file + "post_attention_layernorm.weight", middle, embed);
    if (m.mixture && m.mixture->has(layer))
      y = mixture(y, file, ssa);
    else
      y = feedForward(y, ffn, file + "mlp.", ssa);
    return text.add(ssa + "out", middle, y);
  }

  /// q, k or v: [batch, sequence, head, head_dim].
  Value project(const Value &x, const char *which, const Dim &head,
                const std::string &file, const std::string &ssa) {
    std::string name = ssa + which;
    int64_t rows = head.size * m.headDim;
    Value w = text.parameter(name + "_weight", file + which + "_proj.weight",
                             normal(), {head, headDim, embed}, {rows, m.embed});
    Value y = text.contract(name + "_proj", "bse,hde->bshd", x, w,
                            {batch, sequence, head, headDim});
    if (!m.qkvBias)
      return y;
    Value b = text.parameter(name + "_bias", file + which + "_proj.bias",
                             {false, 0}, {head, headDim}, {rows});
    return text.add(name + "_biased", y, b);
  }

  Value attention(const Value &x, int64_t layer, const std::string &file,
                  const std::string &ssa) {
    Value q = project(x, "q", heads, file, ssa);
    Value k = project(x, "k", kvHeads, file, ssa);
    Value v = project(x, "v", kvHeads, file, ssa);
    if (m.qkNorm != QkNorm::none) {
      q = normOfHeads(ssa + "q_norm", file + "q_norm.weight", q);
      k = normOfHeads(ssa + "k_norm", file + "k_norm.weight", k);
    }
    q = text.rope(ssa + "q", q);
    k = text.rope(ssa + "k", k);
    Attention how;
    how.scale = 1 / std::sqrt(static_cast<double>(m.headDim));
    how.window = m.windows[static_cast<size_t>(layer)];
    how.dropoutName = file + "attention_dropout";
    how.rate = m.attentionRate;
    Value o = text.attention(ssa + "attn", q, k, v, how);
    Value w =
        text.parameter(ssa + "o_weight", file + "o_proj.weight", normal(),
                       {embed, heads, headDim}, {m.embed, m.heads * m.headDim});
    Value y = text.contract(ssa + "o_proj", "bshd,ehd->bse", o, w, hidden);
    if (!m.outputBias)
      return y;
    Value b = text.parameter(ssa + "o_bias", file + "o_proj.bias", {false, 0},
                             {embed});
    return text.add(ssa + "o_biased", y, b);
  }

  /// One matrix of the feed-forward block, from the last dim of `x` to `to`.
  Value dense(const Value &x, const char *which, const char *equation,
              const Dim &to, const std::string &file, const std::string &ssa) {
    std::string name = ssa + which;
    Value w = text.parameter(name + "_weight", file + which + "_proj.weight",
                             normal(), {to, x.dims.back()});
    Value y =
        text.contract(name + "_proj", equation, x, w, {batch, sequence, to});
    if (!m.mlpBias)
      return y;
    Value b = text.parameter(name + "_bias", file + which + "_proj.bias",
                             {false, 0}, {to});
    return text.add(name + "_biased", y, b);
  }

  Value feedForward(const Value &x, const Dim &width, const std::string &file,
                    const std::string &ssa) {
    Value gate = dense(x, "gate", "bse,fe->bsf", width, file, ssa);
    Value up = dense(x, "up", "bse,fe->bsf", width, file, ssa);
    gate = text.activate(ssa + "act", m.activation, gate);
    Value y = text.multiply(ssa + "gated", gate, up);
    return dense(y, "down", "bsf,ef->bse", embed, file, ssa);
  }

  Value mixture(const Value &x, const std::string &file,
                const std::string &ssa) {
    Value y =
        mixtureText(text, *m.mixture, {normal(), m.activation, file, ssa}, x);
    if (m.mixture->shared == 0)
      return y;
    std::string name = file + m.mixture->block + "shared_expert";
    Value shared = m.mixture->isShare
                       ? sharedExpert(x, name, ssa + "shared_")
                       : feedForward(x, {"ffn", m.mixture->shared}, name + "s.",
                                     ssa + "shared_");
    return text.add(ssa + "with_shared", y, shared);
  }

  /// Of all tokens, each times what a router of its own gives it.
  Value sharedExpert(const Value &x, const std::string &file,
                     const std::string &ssa) {
    Value y = feedForward(x, {"ffn", m.mixture->shared}, file + ".", ssa);
    Value weight = text.parameter(ssa + "router_weight", file + "_gate.weight",
                                  normal(), {embed}, {1, m.embed});
    Value share = text.contract(ssa + "router", "bse,e->bs", x, weight,
                                {batch, sequence});
    return text.multiply(ssa + "weighed", y,
                         text.activate(ssa + "share", "sigmoid", share));
  }

  const Llama &m;
  ModelText text;
  Dim batch{"batch", Dim::open}, sequence{"sequence", Dim::open};
  Dim embed{"embed", m.embed}, heads{"heads", m.heads},
      headDim{"head_dim", m.headDim}, ffn{"ffn", m.ffn};
  // With as many key heads as query heads they are the same dim.
  Dim kvHeads{m.kvHeads == m.heads ? "heads" : "kv_heads", m.kvHeads};
  Dims hidden{batch, sequence, embed};
  Dims queries{batch, sequence, heads, headDim};
  Dims keys{batch, sequence, kvHeads, headDim};
  Dims inner{batch, sequence, ffn};
};

} // namespace

std::optional<std::string> importLlama(const Source &source, Config &config,
                                       const std::string &family) {
  Llama model = readLlama(source, config, family);
  std::vector<std::string> keys = {"vocab_size",
                                   "hidden_size",
                                   "intermediate_size",
                                   "num_hidden_layers",
                                   "num_attention_heads",
                                   "num_key_value_heads",
                                   "head_dim",
                                   "hidden_act",
                                   "rms_norm_eps",
                                   "rope_theta",
                                   "rope_scaling",
                                   "rope_parameters",
                                   "attention_bias",
                                   "mlp_bias",
                                   "attention_dropout",
                                   "tie_word_embeddings",
                                   "initializer_range",
                                   "sliding_window",
                                   "use_sliding_window",
                                   "max_window_layers",
                                   "layer_types",
                                   "max_position_embeddings",
                                   "original_max_position_embeddings",
                                   "pad_token_id"};
  if (family == "qwen2_moe")
    keys.emplace_back("qkv_bias");
  for (const std::string &key : mixtureKeys(family))
    keys.push_back(key);
  checkOtherKeys(config, keys);
  if (hasErrors(source.diagnostics))
    return std::nullopt;
  return LlamaText(model, family, source.text)
      .run(family, quote(spec::nameOf(source.filename)));
}

} // namespace meshwork::importer
