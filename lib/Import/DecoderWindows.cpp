// Which layers of a decoder look back no further than a window.
#include "lib/Import/DecoderConfig.h"

#include "meshwork/Text/Counted.h"

namespace meshwork::importer {
namespace {

/// The window that sliding layers use; 0 when the family or file has none.
int64_t readWindow(Config &config, const Windows &of) {
  if (of.sliding == Sliding::never)
    return 0;
  int64_t window = config.find("sliding_window")
                       ? config.sizeOr("sliding_window", 0)
                       : of.size;
  bool slides = of.sliding == Sliding::always ||
                config.boolean("use_sliding_window", false);
  return slides ? window : 0;
}

void readLayerTypes(Config &config, const Json &types, int64_t window,
                    const Family &family, Decoder &m) {
  if (types.kind != Json::Kind::array ||
      static_cast<int64_t>(types.items.size()) != m.layers) {
    config.error("layer_types", "expected an array of " +
                                    counted(m.layers, "name") +
                                    ", as many as num_hidden_layers");
    return;
  }
  for (size_t i = 0; i < types.items.size(); ++i) {
    const Json &type = types.items[i];
    bool sliding = type.text == "sliding_attention";
    if (!sliding && type.text != "full_attention")
      config.error("layer_types", "found " + type.found() + " for layer " +
                                      std::to_string(i) +
                                      ", expected \"full_attention\" or "
                                      "\"sliding_attention\"");
    else if (sliding && window == 0)
      config.error("layer_types",
                   "layer " + std::to_string(i) +
                       " slides, but there is no sliding_window" +
                       (family.windows.sliding == Sliding::asked
                            ? ", or use_sliding_window is false"
                            : ""));
    else if (!sliding && window > 0 && !family.windows.mixes)
      config.error("layer_types", "layer " + std::to_string(i) +
                                      " is full, but with a sliding_window all "
                                      "layers of " +
                                      std::string(family.type) + " slide");
    m.windows[i] = sliding ? window : 0;
  }
}

/// layer_types stand above it, and files with them have other things there,
/// like "LLLG".
int64_t readFullEvery(Config &config, const Windows &of) {
  if (of.fullEvery == 0 || !of.everyKey)
    return of.fullEvery;
  bool isTold = config.find(of.everyKey) && !config.isNull("layer_types");
  return isTold ? of.fullEvery : config.sizeOr(of.everyKey, of.fullEvery);
}

} // namespace

void readWindows(Config &config, const Family &family, Decoder &m) {
  int64_t window = readWindow(config, family.windows);
  int64_t fullLayers = 0;
  if (int64_t usual = family.windows.fullLayers; usual > 0) {
    const Json *given = config.find("max_window_layers");
    bool none =
        given && given->kind == Json::Kind::integer && given->integer == 0;
    fullLayers = none ? 0 : config.sizeOr("max_window_layers", usual);
  }
  int64_t every = readFullEvery(config, family.windows);
  for (int64_t layer = 0; layer < m.layers; ++layer) {
    bool isFull = layer < fullLayers || (every > 0 && (layer + 1) % every == 0);
    m.windows.push_back(isFull ? 0 : window);
  }
  if (!config.isNull("layer_types"))
    readLayerTypes(config, *config.find("layer_types"), window, family, m);
}

} // namespace meshwork::importer
