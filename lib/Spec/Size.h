// Sizes as people write them: "20 GiB", "512MB", "1.5 TiB", "4096 B".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace meshwork::spec {

/// Bytes, rounded down to a whole one. Units are B, kB or KB, MB, GB, TB
/// (powers of 1000) and KiB, MiB, GiB, TiB (of 1024); a unit is needed. Nothing
/// for anything else, zero, or more than 2^63 - 1.
std::optional<uint64_t> parseSize(std::string_view text);

} // namespace meshwork::spec
