// Processes that say something else than the others, though all should say the
// same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace meshwork::runtime {

/// What most have; of equals what the first has.
std::string usual(const std::vector<std::string> &texts);

/// The ranks whose text is not the usual one.
std::vector<uint32_t> oddOnes(const std::vector<std::string> &texts);

/// "rank 3 has", "ranks 1, 3 have".
std::string ranksWith(const std::vector<uint32_t> &ranks, const char *one,
                      const char *many);

} // namespace meshwork::runtime
