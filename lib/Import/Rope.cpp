#include "lib/Import/Family.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace meshwork::importer {
namespace {

using std::numbers::pi;
using Frequencies = std::vector<double>;

/// Su et al., arXiv 2104.09864: theta^(-2 i / d).
Frequencies plain(double theta, int64_t headDim) {
  Frequencies result;
  for (int64_t i = 0; i < headDim / 2; ++i)
    result.push_back(std::pow(theta, -2.0 * static_cast<double>(i) /
                                         static_cast<double>(headDim)));
  return result;
}

/// Chen et al., arXiv 2306.15595: positions shrink by the factor.
void linear(Config &rope, Frequencies &frequencies) {
  double factor = rope.positive("factor");
  for (double &f : frequencies)
    f /= factor;
}

/// The context before it was extended: beside rope_scaling or in it, or the
/// model's.
int64_t originalContext(Config &config, Config &rope) {
  const char *key = "original_max_position_embeddings";
  bool isOutside = !config.isNull(key), isInside = !rope.isNull(key);
  if (isOutside && isInside &&
      config.find(key)->found() != rope.find(key)->found())
    rope.error(key, "found " + rope.find(key)->found() +
                        ", but outside it is " + config.find(key)->found() +
                        "; keep one");
  if (isInside)
    return rope.size(key);
  return config.size(isOutside ? key : "max_position_embeddings");
}

/// Llama 3.1 (arXiv 2407.21783): waves longer than the original context shrink,
/// short ones stay, and those between are mixed linearly in waves per context.
void llama3(Config &config, Config &rope, Frequencies &frequencies) {
  double factor = rope.positive("factor");
  double low = rope.positive("low_freq_factor");
  double high = rope.positive("high_freq_factor");
  auto context = static_cast<double>(originalContext(config, rope));
  if (high <= low) {
    rope.error("high_freq_factor", "is not above low_freq_factor");
    return;
  }
  for (double &f : frequencies) {
    double waves = context * f / (2 * pi);
    double keep = std::clamp((waves - low) / (high - low), 0.0, 1.0);
    f = (1 - keep) * f / factor + keep * f;
  }
}

/// Growth of the attention's temperature, YaRN's equation 22.
double yarnGrowth(double factor, double slope) {
  return factor <= 1 ? 1 : 0.1 * slope * std::log(factor) + 1;
}

double yarnScale(Config &rope, double factor) {
  double slope = rope.notNegative("mscale", 0);
  double slopeAll = rope.notNegative("mscale_all_dim", 0);
  double derived = slope > 0 && slopeAll > 0 ? yarnGrowth(factor, slope) /
                                                   yarnGrowth(factor, slopeAll)
                                             : yarnGrowth(factor, 1);
  return rope.positive("attention_factor", derived);
}

/// The key `factor`; null: how far the context was extended.
double yarnFactor(Config &config, Config &rope, double context) {
  if (rope.find("factor") && rope.isNull("factor"))
    return static_cast<double>(config.size("max_position_embeddings")) /
           context;
  return rope.positive("factor");
}

/// Peng et al., arXiv 2309.00071: dims that turn more often than beta_fast in
/// the original context stay, those below beta_slow shrink, with a ramp over
/// the dims between. Returns the scale.
double yarn(Config &config, Config &rope, double theta, int64_t headDim,
            Frequencies &frequencies) {
  auto context = static_cast<double>(originalContext(config, rope));
  double factor = yarnFactor(config, rope, context);
  double fast = rope.positive("beta_fast", 32),
         slow = rope.positive("beta_slow", 1);
  bool whole = rope.boolean("truncate", true);
  if (slow >= fast)
    rope.error("beta_fast", "is not above beta_slow");
  auto d = static_cast<double>(headDim);
  // The dim that turns `turns` times over the original context.
  auto dimOf = [&](double turns) {
    return d * std::log(context / (turns * 2 * pi)) / (2 * std::log(theta));
  };
  double low = dimOf(fast), high = dimOf(slow);
  if (whole) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, d - 1);
  if (low == high)
    high += 0.001; // a step instead of a ramp
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double shrink =
        std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    double f = frequencies[i];
    frequencies[i] = shrink * f / factor + (1 - shrink) * f;
  }
  return yarnScale(rope, factor);
}

std::string variantOf(Config &rope) {
  const Json *type = rope.find("rope_type"), *old = rope.find("type");
  if (type && old && type->found() != old->found())
    rope.error("type", "found " + old->found() + ", but rope_type is " +
                           type->found() + "; keep rope_type");
  const Json *given = type ? type : old;
  if (!given)
    return "default";
  for (const char *known : {"default", "linear", "llama3", "yarn"})
    if (given->kind == Json::Kind::string && given->text == known)
      return known;
  rope.error(type ? "rope_type" : "type",
             "found " + given->found() +
                 ", not supported by this version; expected \"default\", "
                 "\"linear\", \"llama3\" or \"yarn\"");
  return "";
}

Rope roundedTo32(const Frequencies &frequencies, double scale) {
  Rope result;
  for (double f : frequencies)
    result.inverseFrequencies.push_back(static_cast<float>(f));
  result.scale = static_cast<float>(scale);
  return result;
}

} // namespace

Rope plainRope(double theta, int64_t rotated) {
  return roundedTo32(plain(theta, rotated), 1);
}

Rope readRope(Config &config, const Source &source, int64_t rotated,
              const std::string &thetaKey, double theta) {
  Diagnostics &diagnostics = source.diagnostics;
  theta = config.positive(thetaKey, theta);
  bool merged = !config.isNull("rope_parameters");
  bool scaled = !config.isNull("rope_scaling");
  if (merged && scaled)
    config.error("rope_scaling", "stands beside rope_parameters; keep one");
  const char *key = merged ? "rope_parameters" : "rope_scaling";
  static const Json nothing;
  const Json *inner = merged || scaled ? config.find(key) : &nothing;
  if ((merged || scaled) && inner->kind != Json::Kind::object) {
    config.error(key, "found " + inner->found() + ", expected an object");
    return {};
  }
  Config rope(*inner, source.filename, source.prefix + key + ".", diagnostics);
  if (merged)
    theta = rope.positive("rope_theta", theta);
  if (theta <= 1)
    config.error(thetaKey, "expected a number above 1");
  std::string variant = variantOf(rope);
  size_t before = diagnostics.size();
  Frequencies frequencies = plain(theta, rotated);
  double scale = 1;
  if (variant == "linear")
    linear(rope, frequencies);
  else if (variant == "llama3")
    llama3(config, rope, frequencies);
  else if (variant == "yarn")
    scale = yarn(config, rope, theta, rotated, frequencies);
  if (double part = merged ? rope.positive("partial_rotary_factor", 1) : 1;
      part != 1 && !source.family.rotatedKey)
    rope.error("partial_rotary_factor",
               "not supported for this model_type; expected 1");
  // Of an unknown variant the keys are unknown too.
  if (!variant.empty() && diagnostics.size() == before)
    for (const std::string &unread : rope.unread())
      rope.error(unread, "is no key of rope type " + quote(variant) +
                             "; take it out if it changes nothing");
  return roundedTo32(frequencies, scale);
}

} // namespace meshwork::importer
