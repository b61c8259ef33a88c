#include "lib/Import/Import.h"

#include "lib/Import/Config.h"
#include "lib/Import/Family.h"
#include "lib/Import/ModelType.h"

namespace meshwork::importer {
void checkElements(Config &config, const std::string &key,
                   std::initializer_list<int64_t> sizes) {
  int64_t elements = 1;
  for (int64_t size : sizes)
    if (__builtin_mul_overflow(elements, size, &elements) ||
        elements > maxElements) {
      config.error(key, "makes a weight of more than " +
                            std::to_string(maxElements) + " elements");
      return;
    }
}

static std::string textOf(double rate) {
  Json number;
  number.kind = Json::Kind::number;
  number.number = rate;
  return number.found();
}

/// Most train without it today, and classes have defaults above 0.
void tellDropout(Config &config,
                 const std::vector<std::pair<std::string, double>> &rates) {
  std::string told;
  for (const auto &[key, rate] : rates)
    if (rate > 0)
      told += (told.empty() ? "" : ", ") + key + " " + textOf(rate);
  if (!told.empty())
    config.note("dropout", "training drops activations at random (" + told +
                               "); set these keys to 0 to train without");
}

std::string readActivation(Config &config, const std::string &key,
                           const char *fallback) {
  struct Known {
    const char *theirs, *ours;
  };
  constexpr Known known[] = {{"gelu_new", "gelu_tanh"},
                             {"gelu_pytorch_tanh", "gelu_tanh"},
                             {"gelu_fast", "gelu_tanh"},
                             {"gelu_python_tanh", "gelu_tanh"},
                             {"gelu_accurate", "gelu_tanh"},
                             {"gelu", "gelu"},
                             {"gelu_python", "gelu"},
                             {"silu", "silu"},
                             {"swish", "silu"},
                             {"relu", "relu"}};
  std::vector<std::string> names = {fallback};
  for (const Known &k : known)
    if (names[0] != k.theirs)
      names.push_back(k.theirs);
  std::string name = config.choice(key, names);
  for (const Known &k : known)
    if (name == k.theirs)
      return k.ours;
  return "";
}

namespace {
/// What of a model with parts for pictures or sound is left out.
void tellParts(Config &config, const Json &object, const std::string &key) {
  const char *storage = "quantization_config";
  if (!config.isNull(storage))
    config.error(storage, "found " + config.find(storage)->found() +
                              ", which changes the mathematics and is not "
                              "supported; expected null");
  std::string others;
  for (size_t i = 0; i < object.keys.size(); ++i)
    if (object.keys[i] != key && object.keys[i].ends_with("_config") &&
        object.items[i].kind == Json::Kind::object)
      others += (others.empty() ? "" : ", ") + object.keys[i];
  config.note(key, "the language model alone is read" +
                       (others.empty() ? "" : ", without " + others));
}

/// `text` is that of `object`, which keys of messages begin with `prefix` in.
std::optional<std::string> importObject(const Json &object,
                                        const std::string &text,
                                        const std::string &prefix,
                                        const std::string &filename,
                                        Diagnostics &diagnostics) {
  Config config(object, filename, prefix, diagnostics);
  if (std::string key = languageModelKey(config); !key.empty()) {
    tellParts(config, object, key);
    return importObject(*config.find(key), memberText(text, key),
                        prefix + key + ".", filename, diagnostics);
  }
  const Family *family = readFamily(config);
  if (!family)
    return std::nullopt;
  checkArchitectures(config, *family);
  Source source{*family, compactJson(text), filename, prefix, diagnostics};
  Family::Import *import = family->import ? family->import : importDecoder;
  return import(source, config);
}
} // namespace

Result importConfig(std::string_view json, const std::string &filename) {
  Result result;
  Json root = parseJson(json, filename, result.diagnostics);
  if (!result.diagnostics.empty())
    return result;
  if (root.kind != Json::Kind::object) {
    result.diagnostics.push_back({Severity::error,
                                  {filename, 0, 0},
                                  "found " + root.found() +
                                      ", expected an object of configuration "
                                      "keys"});
    return result;
  }
  result.model =
      importObject(root, std::string(json), "", filename, result.diagnostics);
  return result;
}

} // namespace meshwork::importer
