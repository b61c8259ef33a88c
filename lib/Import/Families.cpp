#include "lib/Import/families/Families.h"

namespace meshwork::importer {

std::span<const Family *const> allFamilies() {
  // In the order of the alphabet.
  static constexpr const Family *all[] = {
      &dots1,     &gemma,    &gemma3,  &gpt2,     &gptNeox, &granite, &llama,
      &ministral, &mistral,  &mixtral, &olmo,     &olmo2,   &olmoe,   &phi3,
      &qwen2,     &qwen2Moe, &qwen3,   &qwen3Moe, &smolLm3};
  return all;
}

const Family *findFamily(std::string_view type) {
  for (const Family *family : allFamilies())
    if (family->type == type)
      return family;
  return nullptr;
}

} // namespace meshwork::importer
