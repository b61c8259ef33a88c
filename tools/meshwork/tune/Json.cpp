// Facts and results as JSON: between processes, and in the cache.
#include "llvm/Support/JSON.h"
#include "tools/meshwork/tune/Body.h"
#include "tools/meshwork/tune/Costed.h"
#include "tools/meshwork/tune/Facts.h"
#include "tools/meshwork/tune/Sketch.h"
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

bool isBroken(const std::string &text) {
  return statusIn(objectOf(text)) == Costed::broken;
}

static json::Object objectOf(const LayerKind &kind) {
  return json::Object{{"layers", kind.layers},
                      {"shallow", kind.shallow},
                      {"deeper", json::fixUTF8(kind.deeper)}};
}

static json::Array arrayOf(const std::map<double, int64_t> &sizes) {
  json::Array all;
  for (auto [elements, count] : sizes)
    all.push_back(json::Array{elements, count});
  return all;
}

static std::map<double, int64_t> sizesIn(const json::Object &object,
                                         llvm::StringRef key) {
  std::map<double, int64_t> sizes;
  if (const json::Array *all = object.getArray(key))
    for (const json::Value &one : *all)
      if (const json::Array *pair = one.getAsArray(); pair && pair->size() == 2)
        sizes[(*pair)[0].getAsNumber().value_or(0)] =
            (*pair)[1].getAsInteger().value_or(0);
  return sizes;
}

std::string toJson(const Facts &facts) {
  json::Array kinds;
  for (const LayerKind &kind : facts.kinds)
    kinds.push_back(objectOf(kind));
  return textOf(
      json::Object{{"text", json::fixUTF8(facts.text)},
                   {"shallow", json::fixUTF8(facts.shallow)},
                   {"kinds", std::move(kinds)},
                   {"kind_of_layer", json::Array(facts.kindOfLayer)},
                   {"flops", facts.flops},
                   {"attention_flops", facts.attentionFlops},
                   {"parameters", facts.parameters},
                   {"sizes", arrayOf(facts.sizes)},
                   {"sizes_of_layer", arrayOf(facts.sizesOfLayer)},
                   {"least_of_layer", facts.leastOfLayer},
                   {"dim_of_all", facts.dimOfAll},
                   {"of_first_stage", facts.ofFirstStage},
                   {"of_last_stage", facts.ofLastStage},
                   {"flops_of_layers", json::Array(facts.flopsOfLayers)},
                   {"crossing", facts.crossing},
                   {"vocabulary", facts.vocabulary},
                   {"layers", facts.layers},
                   {"experts", facts.hasExperts},
                   {"attention", facts.hasAttention}});
}

static std::vector<double> numbers(const json::Object &object,
                                   llvm::StringRef key) {
  std::vector<double> all;
  if (const json::Array *array = object.getArray(key))
    for (const json::Value &one : *array)
      all.push_back(one.getAsNumber().value_or(0));
  return all;
}

static std::vector<LayerKind> kindsIn(const json::Object &object) {
  std::vector<LayerKind> kinds;
  if (const json::Array *all = object.getArray("kinds"))
    for (const json::Value &one : *all)
      if (const json::Object *kind = one.getAsObject())
        kinds.push_back({kind->getInteger("layers").value_or(0),
                         kind->getInteger("shallow").value_or(0),
                         word(*kind, "deeper")});
  return kinds;
}

Facts factsFromJson(const std::string &text) {
  json::Object object = objectOf(text);
  Facts facts;
  facts.text = word(object, "text");
  facts.shallow = word(object, "shallow");
  facts.kinds = kindsIn(object);
  for (double kind : numbers(object, "kind_of_layer"))
    facts.kindOfLayer.push_back(static_cast<int64_t>(kind));
  facts.flops = number(object, "flops");
  facts.attentionFlops = number(object, "attention_flops");
  facts.parameters = number(object, "parameters");
  facts.vocabulary =
      static_cast<uint32_t>(object.getInteger("vocabulary").value_or(1));
  facts.layers = object.getInteger("layers").value_or(0);
  facts.sizes = sizesIn(object, "sizes");
  facts.sizesOfLayer = sizesIn(object, "sizes_of_layer");
  facts.leastOfLayer = number(object, "least_of_layer");
  facts.dimOfAll = object.getInteger("dim_of_all").value_or(0);
  facts.ofFirstStage = number(object, "of_first_stage");
  facts.ofLastStage = number(object, "of_last_stage");
  facts.flopsOfLayers = numbers(object, "flops_of_layers");
  facts.crossing = number(object, "crossing");
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
                   {"bytes_of_ranks", json::Array(costed.bytesOfRanks)},
                   {"exposed", std::move(exposed)},
                   {"bubble", costed.bubble},
                   {"uneven", costed.isUneven}});
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
  costed.bytesOfRanks = numbers(object, "bytes_of_ranks");
  if (const json::Object *exposed = object.getObject("exposed"))
    for (const auto &[axes, seconds] : *exposed)
      costed.exposed[axes.str()] = seconds.getAsNumber().value_or(0);
  costed.bubble = object.getNumber("bubble");
  costed.isUneven = object.getBoolean("uneven").value_or(false);
  return costed;
}

static json::Object objectOf(const OfLayer &one) {
  return json::Object{{"forward", one.forward},
                      {"backward", one.backward},
                      {"update", one.update},
                      {"kept", one.kept}};
}

std::string toJson(const Body &body) {
  json::Array kinds;
  for (const OfLayer &one : body.ofKinds)
    kinds.push_back(objectOf(one));
  return textOf(json::Object{{"status", static_cast<int>(body.status)},
                             {"why", json::fixUTF8(body.why)},
                             {"forward", body.forward},
                             {"backward", body.backward},
                             {"gathers_weights", body.gathersWeights},
                             {"waits_tp", body.waits.tp},
                             {"waits_cp", body.waits.cp},
                             {"waits_other", body.waits.other},
                             {"update", body.update},
                             {"of_kinds", std::move(kinds)},
                             {"kept", body.kept},
                             {"least_kept", body.leastKept},
                             {"other_bytes", body.otherBytes},
                             {"to_host", arrayOf(body.toHost)}});
}

Body bodyFromJson(const std::string &text) {
  json::Object object = objectOf(text);
  Body body{statusIn(object), word(object, "why")};
  body.forward = number(object, "forward");
  body.backward = number(object, "backward");
  body.gathersWeights = object.getBoolean("gathers_weights").value_or(false);
  body.waits = {number(object, "waits_tp"), number(object, "waits_cp"),
                number(object, "waits_other")};
  body.update = number(object, "update");
  if (const json::Array *kinds = object.getArray("of_kinds"))
    for (const json::Value &one : *kinds)
      if (const json::Object *kind = one.getAsObject())
        body.ofKinds.push_back(
            {number(*kind, "forward"), number(*kind, "backward"),
             number(*kind, "update"), number(*kind, "kept")});
  body.kept = number(object, "kept");
  body.leastKept = number(object, "least_kept");
  body.otherBytes = number(object, "other_bytes");
  body.toHost = sizesIn(object, "to_host");
  return body;
}

static json::Array arrayOf(const OfLists &lists) {
  return json::Array{lists.forward, lists.backward, lists.inputGrad,
                     lists.weightGrad};
}

static OfLists listsIn(const json::Object &object, llvm::StringRef key) {
  std::vector<double> all = numbers(object, key);
  return all.size() == 4 ? OfLists{all[0], all[1], all[2], all[3]} : OfLists();
}

std::string toJson(const Sketch &sketch) {
  return textOf(json::Object{{"status", static_cast<int>(sketch.status)},
                             {"why", json::fixUTF8(sketch.why)},
                             {"seconds", sketch.seconds},
                             {"seconds_of_layer", sketch.secondsOfLayer},
                             {"bytes", json::Array(sketch.bytes)},
                             {"of_layer", json::Array(sketch.ofLayer)},
                             {"one", arrayOf(sketch.inner.one)},
                             {"two", arrayOf(sketch.inner.two)}});
}

Sketch sketchFromJson(const std::string &text) {
  json::Object object = objectOf(text);
  Sketch sketch{statusIn(object),          word(object, "why"),
                number(object, "seconds"), number(object, "seconds_of_layer"),
                numbers(object, "bytes"),  numbers(object, "of_layer")};
  sketch.inner = {listsIn(object, "one"), listsIn(object, "two")};
  return sketch;
}

} // namespace meshwork::tune
