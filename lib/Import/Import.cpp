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
  Config config(root, filename, "", result.diagnostics);
  const Family *family = readFamily(config);
  if (!family)
    return result;
  checkArchitectures(config, *family);
  Source source{*family, compactJson(json), filename, "", result.diagnostics};
  Family::Import *import = family->import ? family->import : importDecoder;
  result.model = import(source, config);
  return result;
}

} // namespace meshwork::importer
