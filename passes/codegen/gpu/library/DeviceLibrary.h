// The device functions of this folder, as the compiler carries them.
#pragma once

#include <span>
#include <string_view>

namespace meshwork::codegen {

/// LLVM bitcode, one module for each .cu file; not optimized. They use each
/// other's functions nowhere.
std::span<const std::string_view> deviceLibrary();

} // namespace meshwork::codegen
