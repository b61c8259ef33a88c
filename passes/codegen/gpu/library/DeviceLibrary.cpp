#include "passes/codegen/gpu/library/DeviceLibrary.h"

namespace meshwork::codegen {
namespace {
#include "DeviceLibrary.inc"
} // namespace

std::span<const std::string_view> deviceLibrary() { return parts; }

} // namespace meshwork::codegen
