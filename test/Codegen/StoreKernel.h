// A kernel that stores numbers as another type, on the CPU and in the emulator.
#pragma once

#include "test/Codegen/Kernel.h"
#include <cstdint>
#include <string>
#include <vector>

namespace meshwork::codegen::test {

/// Its text, of `count` numbers.
std::string copyOf(const std::string &from, const std::string &to,
                   size_t count);

/// Stores `from` as `type` of 8 bits, by an emulated H100; what went wrong.
std::string storeOnGpu(const std::string &type, const std::vector<float> &from,
                       std::vector<uint8_t> &to);

} // namespace meshwork::codegen::test
