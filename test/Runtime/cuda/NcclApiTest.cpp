// NcclApi.h against nccl.h, at compile time.
#include "runtime/device/cuda/NcclApi.h"
#include "test/Runtime/cuda/SameInterface.h"
#include <gtest/gtest.h>
#include <nccl.h>

namespace meshwork::runtime::cuda::nccl {
namespace {
#define MESHWORK_SAME(type, member, symbol, ...)                               \
  static_assert(                                                               \
      SameInterface<decltype(&::symbol), type (*)(__VA_ARGS__)>::value,        \
      #symbol);
MESHWORK_NCCL_FUNCTIONS(MESHWORK_SAME)
MESHWORK_NCCL_NEWER_FUNCTIONS(MESHWORK_SAME)

static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));
static_assert(offsetof(Config, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(Config, clusterSize) ==
              offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(Config, minCtas) == offsetof(ncclConfig_t, minCTAs));
static_assert(offsetof(Config, maxCtas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(Config, netName) == offsetof(ncclConfig_t, netName));
static_assert(sizeof(Config) <= sizeof(ncclConfig_t));
static_assert(undefined == NCCL_CONFIG_UNDEF_INT);
static_assert(result::success == ncclSuccess);
static_assert(result::unhandledCudaError == ncclUnhandledCudaError);
static_assert(result::systemError == ncclSystemError);
static_assert(result::internalError == ncclInternalError);
static_assert(result::invalidArgument == ncclInvalidArgument);
static_assert(result::invalidUsage == ncclInvalidUsage);
static_assert(result::remoteError == ncclRemoteError);
static_assert(result::inProgress == ncclInProgress);
static_assert(dataType::i32 == ncclInt32);
static_assert(dataType::f32 == ncclFloat32);
static_assert(dataType::bf16 == ncclBfloat16);
static_assert(reduction::sum == ncclSum);
static_assert(reduction::max == ncclMax);
static_assert(oldestVersion == NCCL_VERSION(2, 14, 0));

TEST(NcclApi, IsThatOfTheHeader) {
  ncclConfig_t real = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(Config().magic, real.magic);
}
} // namespace
} // namespace meshwork::runtime::cuda::nccl
