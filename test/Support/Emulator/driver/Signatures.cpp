// Names every function of the driver's interface that the runtime uses, so that
// the library does not link while one is missing.
#include "test/Support/Emulator/driver/State.h"

namespace meshwork::emulator {

extern const void *const exported[];
const void *const exported[] = {
#define MESHWORK_NAME(member, symbol, ...)                                     \
  reinterpret_cast<const void *>(&symbol),
    MESHWORK_CUDA_DRIVER_FUNCTIONS(MESHWORK_NAME)
        MESHWORK_CUDA_DRIVER_OPTIONAL_FUNCTIONS(MESHWORK_NAME)
#undef MESHWORK_NAME
};

} // namespace meshwork::emulator
