// Where there is no GPU, a plan for one ends with a clear error.
#include "runtime/device/cuda/Driver.h"
#include "meshwork/Runtime/ExitCode.h"
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace meshwork::runtime::cuda {
namespace {

TEST(Driver, IsUnavailableWithoutTheLibrary) {
  if (::dlopen("libcuda.so.1", RTLD_NOW))
    GTEST_SKIP() << "libcuda.so.1 is here";
  absl::StatusOr<const Driver *> driver = Driver::open();
  ASSERT_FALSE(driver.ok());
  std::string message(driver.status().message());
  EXPECT_NE(message.find("cannot open libcuda.so.1"), std::string::npos)
      << message;
  EXPECT_NE(message.find("needs an NVIDIA GPU and its driver"),
            std::string::npos)
      << message;
  EXPECT_EQ(exitCodeOf(driver.status()), 69);
  // The second answer is the first one.
  EXPECT_EQ(Driver::open().status(), driver.status());
}

const char *fakeName;
Result nameOf(Result, const char **text) {
  *text = fakeName;
  return fakeName ? result::success : result::invalidValue;
}

TEST(Driver, TellsWhatFailedAndWhy) {
  Driver driver = {};
  driver.getErrorName = driver.getErrorString = nameOf;
  fakeName = "OUT";
  absl::Status status = driver.check(result::outOfMemory, "cuMemAlloc of x");
  EXPECT_EQ(status.message(), "cuMemAlloc of x failed: OUT (2), OUT");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  fakeName = nullptr;
  status = driver.check(12345, "cuInit");
  EXPECT_EQ(status.message(), "cuInit failed: an error unknown to the driver "
                              "(12345), no description");
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(driver.check(result::success, "cuInit").ok());
}

} // namespace
} // namespace meshwork::runtime::cuda
