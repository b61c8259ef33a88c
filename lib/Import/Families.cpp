#include "lib/Import/families/Families.h"

namespace meshwork::importer {

std::span<const Family *const> allFamilies() {
  // In the order of the alphabet.
  static constexpr const Family *all[] = {
      &dots1,    &exaone4, &gemma,    &gemma2,    &gemma3,  &gpt2,
      &gptNeox,  &granite, &llama,    &ministral, &mistral, &mixtral,
      &olmo,     &olmo2,   &olmoe,    &opt,       &phi3,    &qwen2,
      &qwen2Moe, &qwen3,   &qwen3Moe, &seedOss,   &smolLm3, &starcoder2};
  return all;
}

const Family *findFamily(std::string_view type) {
  for (const Family *family : allFamilies())
    if (family->type == type)
      return family;
  return nullptr;
}

} // namespace meshwork::importer
