// The families, each in a file of its own. Internal to lib/Import.
#pragma once

#include "lib/Import/Family.h"

namespace meshwork::importer {

extern const Family dots1, gpt2, llama, mistral, mixtral, olmoe, qwen2,
    qwen2Moe, qwen3, qwen3Moe;

} // namespace meshwork::importer
