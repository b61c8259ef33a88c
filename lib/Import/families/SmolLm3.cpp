// SmolLM3: Llama in which every fourth layer has no rotary positions (NoPE,
// arXiv 2501.18795). With windows these layers slide.
#include "lib/Import/families/Families.h"

namespace meshwork::importer {

/// 1 where a layer has rotary positions, 0 where it has none.
static void readLayersWithRope(Config &config, Decoder &m) {
  const char *key = "no_rope_layers";
  const Json &flags = *config.find(key);
  auto isFlag = [](const Json &one) {
    return one.kind == Json::Kind::integer &&
           (one.integer == 0 || one.integer == 1);
  };
  bool isRight =
      flags.kind == Json::Kind::array && flags.items.size() == m.ropeOf.size();
  for (const Json &one : flags.items)
    isRight &= isFlag(one);
  if (!isRight)
    return config.error(key, "found " + flags.found() +
                                 ", expected an array of 0 or 1 for each of " +
                                 std::to_string(m.layers) + " layers");
  for (size_t i = 0; i < m.ropeOf.size(); ++i)
    m.ropeOf[i] = flags.items[i].integer == 1 ? 0 : -1;
}

static void readNoRope(const Source &, Config &config, Decoder &m) {
  int64_t every = config.sizeOr("no_rope_layer_interval", 4);
  for (size_t i = 0; i < m.ropeOf.size(); ++i)
    m.ropeOf[i] = (static_cast<int64_t>(i) + 1) % every == 0 ? -1 : 0;
  if (!config.isNull("no_rope_layers"))
    readLayersWithRope(config, m);
  if (config.isNull("layer_types"))
    for (size_t i = 0; i < m.ropeOf.size(); ++i)
      if (m.ropeOf[i] == 0)
        m.windows[i] = 0;
}

const Family smolLm3 = {.type = "smollm3",
                        .causal = "SmolLM3ForCausalLM",
                        .bare = "SmolLM3Model",
                        .qkvBias = {"attention_bias"},
                        .mlpBias = {"mlp_bias"},
                        .keyHeads = 4,
                        .tied = true,
                        .padding = 128004,
                        .windows = {.sliding = Sliding::asked, .mixes = true},
                        .theta = 2e6,
                        .more = readNoRope};

} // namespace meshwork::importer
