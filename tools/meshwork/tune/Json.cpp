// Facts and results as JSON: between processes, and in the cache.
#include "llvm/Support/JSON.h"
#include "tools/meshwork/tune/Body.h"
#include "tools/meshwork/tune/Costed.h"
#include "tools/meshwork/tune/Facts.h"
#include "llvm/Support/raw_ostream.h"

namespace meshwork::tune {
namespace json = llvm::json;

static std::string textOf(json::Object object) {
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(object));
  return text;
}

/// Empty for what is no object.
static json::Object objectOf(const std::string &text) {
  llvm::Expected<json::Value> value = json::parse(text);
  if (!value) {
    llvm::consumeError(value.takeError());
    return {};
  }
  json::Object *object = value->getAsObject();
  return object ? std::move(*object) : json::Object();
}

static double number(const json::Object &object, llvm::StringRef key) {
  return object.getNumber(key).value_or(0);
}

static std::string word(const json::Object &object, llvm::StringRef key) {
  return object.getString(key).value_or("").str();
}

static Costed::Status statusIn(const json::Object &object) {
  auto status = object.getInteger("status").value_or(Costed::broken);
  return status == Costed::done      ? Costed::done
         : status == Costed::refused ? Costed::refused
                                     : Costed::broken;
}

std::string toJson(const Facts &facts) {
  json::Object shallow;
  for (const auto &[layers, text] : facts.shallow)
    shallow[std::to_string(layers)] = json::fixUTF8(text);
  return textOf(
      json::Object{{"shallow", std::move(shallow)},
                   {"text", json::fixUTF8(facts.text)},
                   {"flops", facts.flops},
                   {"attention_flops", facts.attentionFlops},
                   {"parameters", facts.parameters},
                   {"parameters_of_layer", facts.parametersOfLayer},
                   {"least_of_layer", facts.leastOfLayer},
                   {"flops_of_layers", json::Array(facts.flopsOfLayers)},
                   {"layers", facts.layers},
                   {"kinds", facts.kinds},
                   {"experts", facts.hasExperts},
                   {"attention", facts.hasAttention}});
}

Facts factsFromJson(const std::string &text) {
  json::Object object = objectOf(text);
  Facts facts;
  facts.text = word(object, "text");
  if (const json::Object *shallow = object.getObject("shallow"))
    for (const auto &[layers, one] : *shallow)
      facts.shallow[std::stoll(layers.str())] =
          one.getAsString().value_or("").str();
  facts.flops = number(object, "flops");
  facts.attentionFlops = number(object, "attention_flops");
  facts.parameters = number(object, "parameters");
  facts.layers = object.getInteger("layers").value_or(0);
  facts.kinds = object.getInteger("kinds").value_or(0);
  facts.parametersOfLayer = number(object, "parameters_of_layer");
  facts.leastOfLayer = number(object, "least_of_layer");
  if (const json::Array *all = object.getArray("flops_of_layers"))
    for (const json::Value &one : *all)
      facts.flopsOfLayers.push_back(one.getAsNumber().value_or(0));
  facts.hasExperts = object.getBoolean("experts").value_or(false);
  facts.hasAttention = object.getBoolean("attention").value_or(false);
  return facts;
}

std::string toJson(const Costed &costed) {
  json::Object exposed;
  for (const auto &[axes, seconds] : costed.exposed)
    exposed[axes] = seconds;
  return textOf(
      json::Object{{"status", static_cast<int>(costed.status)},
                   {"why", json::fixUTF8(costed.why)},
                   {"seconds", costed.seconds},
                   {"tokens_per_second", costed.tokensPerSecond},
                   {"mfu", costed.mfu},
                   {"bytes", static_cast<int64_t>(costed.bytes)},
                   {"host_bytes", static_cast<int64_t>(costed.hostBytes)},
                   {"exposed", std::move(exposed)},
                   {"bubble", costed.bubble}});
}

Costed costedFromJson(const std::string &text) {
  json::Object object = objectOf(text);
  Costed costed;
  costed.status = statusIn(object);
  costed.why = word(object, "why");
  costed.seconds = number(object, "seconds");
  costed.tokensPerSecond = number(object, "tokens_per_second");
  costed.mfu = number(object, "mfu");
  costed.bytes = static_cast<uint64_t>(object.getInteger("bytes").value_or(0));
  costed.hostBytes =
      static_cast<uint64_t>(object.getInteger("host_bytes").value_or(0));
  if (const json::Object *exposed = object.getObject("exposed"))
    for (const auto &[axes, seconds] : *exposed)
      costed.exposed[axes.str()] = seconds.getAsNumber().value_or(0);
  costed.bubble = object.getNumber("bubble");
  return costed;
}

std::string toJson(const Body &body) {
  return textOf(json::Object{{"status", static_cast<int>(body.status)},
                             {"why", json::fixUTF8(body.why)},
                             {"forward", body.forward},
                             {"backward", body.backward},
                             {"exposed", body.exposed},
                             {"update", body.update},
                             {"is_even", body.isEven},
                             {"forward_of_layer", body.forwardOfLayer},
                             {"backward_of_layer", body.backwardOfLayer},
                             {"update_of_layer", body.updateOfLayer},
                             {"kept_of_layer", body.keptOfLayer},
                             {"other_bytes", body.otherBytes}});
}

Body bodyFromJson(const std::string &text) {
  json::Object object = objectOf(text);
  Body body{statusIn(object), word(object, "why")};
  body.forward = number(object, "forward");
  body.backward = number(object, "backward");
  body.exposed = number(object, "exposed");
  body.update = number(object, "update");
  body.isEven = object.getBoolean("is_even").value_or(false);
  body.forwardOfLayer = number(object, "forward_of_layer");
  body.backwardOfLayer = number(object, "backward_of_layer");
  body.updateOfLayer = number(object, "update_of_layer");
  body.keptOfLayer = number(object, "kept_of_layer");
  body.otherBytes = number(object, "other_bytes");
  return body;
}

} // namespace meshwork::tune
