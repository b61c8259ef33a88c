// Names of instructions and tensors, for people.
#pragma once

#include <string>

namespace meshwork::runtime {

/// "h.11.mlp.c_fc" -> "h.*.mlp.c_fc", escaped for a terminal: one name for what
/// every layer has.
std::string withoutNumbers(const std::string &name);

} // namespace meshwork::runtime
