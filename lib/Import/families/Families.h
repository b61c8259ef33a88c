// The families, each in a file of its own. Internal to lib/Import.
#pragma once

#include "lib/Import/Family.h"

namespace meshwork::importer {

extern const Family dots1, exaone4, gemma, gemma2, gemma3, gpt2, gptNeox,
    granite, llama, ministral, mistral, mixtral, olmo, olmo2, olmoe, opt, phi3,
    qwen2, qwen2Moe, qwen3, qwen3Moe, seedOss, smolLm3, starcoder2;

} // namespace meshwork::importer
