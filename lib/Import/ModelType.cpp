#include "lib/Import/ModelType.h"

#include "lib/Import/KeyLists.h"

namespace meshwork::importer {
namespace {

// Types that Transformers or the Hub know, so that none is taken for a misspelt
// other one. A mixture of experts with "moe" in its name needs no entry.
constexpr std::string_view mixtures =
    "arctic dbrx deepseek deepseek_v2 deepseek_v3 deepseek_v32 "
    "doge flex_olmo gpt_oss grok grok-1 grok1 grok_1 jamba "
    "kimi_k2 llama4 llama4_text longcat_flash minimax "
    "minimax_m2 qwen3_next switch_transformers ";
constexpr std::string_view others =
    "albert apertus aquila arcee aya_vision baichuan bamba bart bert "
    "big_bird biogpt bitnet blip-2 bloom chameleon chatglm clip codegen "
    "cohere cohere2 ctrl cwm deberta deberta-v2 deci decilm deepseek_vl "
    "diffllama distilbert electra ernie4_5 exaone falcon falcon_h1 "
    "falcon_mamba florence2 fuyu gemma3 gemma3n "
    "gemma3n_text git glm glm4 glm4v got_ocr2 gpt-j gpt_bigcode gpt_neo "
    "gpt_neox_japanese gptj gptsan-japanese granite_speech "
    "helium hunyuan_v1_dense idefics idefics2 idefics3 imagegpt internlm "
    "internlm2 internlm3 internvl kosmos-2 lfm2 llama_guard llava "
    "llava_next llava_onevision longformer longt5 mamba mamba2 mbart "
    "megatron-bert minicpm minicpm3 ministral3 mistral3 mistral4 "
    "mllama modernbert mpt mt5 musicgen nemotron nemotron-nas nemotron_h "
    "olmo3 openai-gpt openelm orion ovis2 paligemma "
    "persimmon phi phi-msft phi3_v phi4_multimodal pixtral plamo qwen "
    "qwen2_5_omni qwen2_5_vl qwen2_audio qwen2_vl qwen3_5 qwen3_vl "
    "qwen3_vl_text recurrent_gemma reformer roberta rwkv rwkv5 "
    "smolvlm stablelm stablelm_epoch t5 t5gemma "
    "transfo-xl umt5 vaultgemma vit voxtral whisper xglm xlm-roberta xlnet "
    "xlstm xverse yi zamba zamba2 ";

/// What is missing of types that are often asked for.
struct Missing {
  std::string_view types; // each with a space behind
  const char *part;
};
constexpr Missing missingParts[] = {
    {"gemma3n gemma3n_text ", "embeddings and gates of each layer"},
    {"bloom mpt ", "ALiBi, biases of scores by distance"},
    {"gptj gpt-j codegen cohere cohere2 glm glm4 ",
     "rotary positions of neighbouring elements"},
    {"mamba mamba2 falcon_mamba bamba zamba zamba2 nemotron_h falcon_h1 "
     "rwkv xlstm recurrent_gemma ",
     "layers with a state instead of attention"},
    {"minicpm3 ", "attention with compressed keys"},
    {"qwen2_vl qwen2_5_vl qwen3_vl qwen3_vl_text ",
     "rotary positions of pictures"},
    {"bert roberta electra deberta deberta-v2 albert distilbert modernbert "
     "xlm-roberta ",
     "attention to later tokens, and a loss of masked ones"},
    {"t5 mt5 umt5 bart mbart longt5 t5gemma whisper ",
     "an encoder beside the decoder"}};

std::string missingPart(const std::string &type) {
  for (const Missing &one : missingParts)
    if (isWordOf(one.types, type))
      return std::string(" (") + one.part + ")";
  return "";
}

std::vector<std::string> familyNames() {
  std::vector<std::string> names;
  for (const Family *family : allFamilies())
    names.emplace_back(family->type);
  return names;
}

/// `expected gpt2, llama or mistral`.
std::string supported() {
  std::vector<std::string> names = familyNames();
  std::string text = "expected " + names.front();
  for (size_t i = 1; i < names.size(); ++i)
    text += (i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

bool isMixture(const std::string &type) {
  return isWordOf(mixtures, type) || type.find("moe") != std::string::npos;
}

/// What follows the type that was found and is not read.
std::string whatElse(const std::string &type) {
  if (isMixture(type))
    return std::string(
               ", a mixture of experts, not supported by this version; ") +
           supported();
  if (isWordOf(others, type))
    return ", not supported by this version" + missingPart(type) + "; " +
           supported();
  return ", " + supported() + suggestion(type, familyNames());
}

} // namespace

std::string languageModelKey(Config &config) {
  for (const char *key : {"text_config", "llm_config", "language_config",
                          "language_model_config", "thinker_config"})
    if (const Json *inner = config.find(key);
        inner && inner->kind == Json::Kind::object)
      return key;
  return "";
}

const Family *readFamily(Config &config) {
  const Json *type = config.find("model_type");
  if (!type) {
    config.error("model_type", "missing, " + supported());
    return nullptr;
  }
  if (const Family *family = findFamily(type->text))
    return family;
  config.error("model_type", "found " + type->found() + whatElse(type->text));
  return nullptr;
}

void checkArchitectures(Config &config, const Family &family) {
  if (config.isNull("architectures"))
    return;
  const Json *names = config.find("architectures");
  if (names->kind != Json::Kind::array) {
    config.error("architectures",
                 "found " + names->found() + ", expected an array of names");
    return;
  }
  for (const Json &name : names->items)
    if (!name.text.ends_with("ForCausalLM") &&
        !name.text.ends_with("LMHeadModel") && name.text != family.bare)
      config.error("architectures", "found " + name.found() +
                                        ", expected a language model like "
                                        "\"LlamaForCausalLM\"");
}

} // namespace meshwork::importer
