// What the fuzzers share. Each defines `accept`, which may refuse its input but
// not crash, hang or read past it. Each also defines `seeds`, inputs that are
// right. A run begins with them, and fails where one is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace meshwork::fuzz {

/// Whether the reader took it; all that it let pass has been used then.
bool accept(std::string_view input);

/// Where mutation starts from; at least one.
const std::vector<std::string> &seeds();

} // namespace meshwork::fuzz
