// A family of models: a class of Transformers, as a table. One more is a file
// in families/ and a line in Families.cpp. Internal to lib/Import.
//
//   const Family granite = {.type = "granite", .causal = "GraniteForCausalLM",
//                           .bare = "GraniteModel", .numbers = multipliers};
//
// Defaults below are what most classes have. Where a key of config.json is
// named, its default is the class's when the key is missing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/Import/Config.h"
#include "lib/Import/Decoder.h"

namespace meshwork::importer {

struct Family;

/// What a family's reader works on.
struct Source {
  const Family &family;
  std::string text; // of the configuration, on one line
  std::string filename;
  std::string prefix; // of keys in messages
  Diagnostics &diagnostics;
};

/// A key with a number, and where it goes.
struct NumberKey {
  const char *key;
  double Decoder::*value;
  double fallback;
  enum class Range { positive, rate } range = Range::positive;
};

/// A flag that a key says; without a key what is always so.
struct FlagKey {
  const char *key = nullptr;
  bool fallback = false;
};

/// Which layers look back no further than a window.
enum class Sliding { never, always, asked }; // asked: use_sliding_window says
struct Windows {
  Sliding sliding = Sliding::never;
  int64_t size = 0;       // of sliding_window; 0: none
  int64_t fullLayers = 0; // the first ones, of max_window_layers; 0: no key
  bool mixes = false;     // some layers slide and others do not
  int64_t fullEvery = 0;  // every so many is full; 0: none
  const char *everyKey = "sliding_window_pattern"; // null: always fullEvery
};

struct Family {
  using Import = std::optional<std::string>(const Source &, Config &);

  std::string_view type;     // model_type
  const char *causal, *bare; // classes with and without the head
  /// What stands before names of parameters in files but not in the model's
  /// text, unless they are the head's.
  const char *prefix = "";
  /// Keys that its class does not read, each with a space behind, beside those
  /// that are harmless in all families (KeyLists.cpp).
  std::string_view harmless = "";
  /// The model's text; nothing when there were errors.
  Import *import = nullptr; // null: importDecoder, by all that follows

  const Names *names = nullptr; // null: Llama's
  Norm norm = Norm::rms;
  const char *epsilonKey = "rms_norm_eps"; // null: always `epsilon`
  double epsilon = 1e-6;
  QkNorm qkNorm = QkNorm::none;
  Qkv qkv = Qkv::apart;
  FeedForward feedForward = FeedForward::gated;
  const char *activationKey = "hidden_act", *activation = "silu";
  FlagKey qkvBias = {}, mlpBias = {}, parallel = {};
  const char *outputBiasKey = nullptr; // null: where q, k and v have one
  bool outputBias = true;
  // Of missing keys; 0: they must be there.
  int64_t vocabulary = 0, heads = 0;
  int64_t keyHeads = 0;    // 0: as many as queries have
  bool groupsHeads = true; // num_key_value_heads is a key
  int64_t headDim = 0;     // 0: hidden_size / num_attention_heads
  bool hasHeadDim = true;  // head_dim is a key
  bool tied = false;       // the head and the embedding
  bool pads = true;        // pad_token_id's row has no gradient
  std::optional<int64_t> padding = {};
  const char *ffnKey = "intermediate_size";
  const char *deviationKey = "initializer_range"; // of initial weights
  double deviation = 0.02;
  double attentionRate = 0; // of attention_dropout
  Windows windows = {};
  int64_t firstPosition = 0; // the first token's row of learned positions
  const char *thetaKey = "rope_theta"; // of rotary positions
  double theta = 1e4;
  const char *rotatedKey = nullptr; // which part of a head turns
  double rotated = 1;
  bool scalesEmbedding = false; // by sqrt(hidden_size)
  std::span<const NumberKey> numbers = {};
  const MixtureFamily *mixture = nullptr;
  /// What tables do not say, when all else is read.
  void (*more)(const Source &, Config &, Decoder &) = nullptr;
};

/// In the order of the alphabet.
std::span<const Family *const> allFamilies();
/// Null for a model_type that is not read.
const Family *findFamily(std::string_view type);

/// The usual reader, and its first half.
Family::Import importDecoder;
Decoder readDecoder(const Source &source, Config &config);

/// Largest number of layers; a model's text grows with it.
inline constexpr int64_t maxLayers = 4096;
/// Largest number of elements of one parameter, 4 TiB in f32.
inline constexpr int64_t maxElements = int64_t{1} << 40;

/// An error at `key` when the product of `sizes` is above maxElements.
void checkElements(Config &config, const std::string &key,
                   std::initializer_list<int64_t> sizes);

/// A note of the rates that are above 0, if any, by their keys.
void tellDropout(Config &config,
                 const std::vector<std::pair<std::string, double>> &rates);

/// Our name of a Hugging Face activation; an error when there is none.
std::string readActivation(Config &config, const std::string &key,
                           const char *fallback);

} // namespace meshwork::importer
