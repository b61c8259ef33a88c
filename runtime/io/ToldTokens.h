// What `meshwork tokenize` tells of tokens in a file beside them. Internal to
// runtime/io.
#pragma once

#include <cstdint>
#include <string>

#include <absl/status/status.h>

namespace meshwork::runtime {

/// Whether the tokens of the .bin file `path` are of a tokenizer with at most
/// `vocabulary` ids, and as many as its .json file says. Without such a file,
/// or where it is another program's, nothing is wrong. kDataLoss names both.
absl::Status checkToldTokens(const std::string &path, uint64_t numTokens,
                             uint32_t vocabulary);

} // namespace meshwork::runtime
