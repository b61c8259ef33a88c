// A decoder: what its configuration and its class say together. The model's
// text (DecoderText.h) is made of this alone. Internal to lib/Import.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/Import/Mixture.h"
#include "lib/Import/Rope.h"

namespace meshwork::importer {

/// What a norm does to an input over its mean square: multiply by a weight, or
/// by 1 + weight; or LayerNorm, with weight and bias, or with neither.
enum class Norm { rms, rmsPlusOne, layer, plain };

/// What norms of queries and keys average over.
enum class QkNorm { none, head, all };

/// How files hold the projections of q, k and v: apart; as rows of one matrix,
/// all of q first; as rows of one matrix, each head's q, k and v side by side.
enum class Qkv { apart, stacked, perHead };

/// The feed-forward block: gate and up apart, or as halves of one matrix; or
/// without a gate.
enum class FeedForward { gated, fused, plain };

/// Names of a decoder's parameters in files, without ".weight" and ".bias", and
/// of its places for dropout. Null: it has no such part.
struct Names {
  const char *embedding = "model.embed_tokens", *layers = "model.layers.",
             *norm = "model.norm", *head = "lm_head";
  const char *positions = nullptr; // a learned vector of each position
  // Norms of a block, by what they stand before or behind.
  const char *beforeAttention = "input_layernorm", *afterAttention = nullptr,
             *beforeFeedForward = "post_attention_layernorm",
             *afterFeedForward = nullptr;
  const char *attention = "self_attn.", *q = "q_proj", *k = "k_proj",
             *v = "v_proj", *o = "o_proj", *qNorm = "q_norm", *kNorm = "k_norm",
             *qkv = "qkv_proj";
  const char *feedForward = "mlp.", *gate = "gate_proj", *up = "up_proj",
             *down = "down_proj", *gateUp = "gate_up_proj";
  const char *embeddingDropout = nullptr, *attentionDropout = nullptr,
             *feedForwardDropout = nullptr;
};

struct Decoder {
  const Names *names;
  Norm norm;
  QkNorm qkNorm;
  Qkv qkv;
  FeedForward feedForward;
  int64_t vocabulary, embed, ffn, layers, heads, kvHeads, headDim;
  std::string activation;
  bool qkvBias, outputBias, mlpBias, tied;
  /// Attention and feed-forward read one input, and both are added to it.
  bool isParallel = false;
  double epsilon, deviation;
  // Rates of dropout: of attention's probabilities, of what is added to the
  // residual stream, of embeddings.
  double attentionRate = 0, residualRate = 0, embeddingRate = 0;
  // Factors of embeddings, of what is added to the residual stream, of
  // attention's scores (0: 1 / sqrt of queryScalar), and a divisor of logits.
  double embeddingScale = 1, residualScale = 1, scoreScale = 0,
         logitsDivisor = 1;
  double queryScalar = 0;            // 0: headDim
  double scoreCap = 0, logitCap = 0; // of attention and of the head; 0: none
  double clip = 0;                   // of q, k and v, to both sides; 0: none
  std::vector<int64_t> windows;      // of each layer; 0 sees all before
  std::optional<int64_t> padding;    // a row of the embedding without gradient
  std::vector<Rope> ropes;
  std::vector<int> ropeOf; // of each layer, which of `ropes`; -1: none
  int64_t maxPositions;    // that it is made for; 0: not said
  int64_t firstPosition;   // the first token's row of learned positions
  std::optional<Mixture> mixture;
};

} // namespace meshwork::importer
