// What the tests of runtime/io share: a folder that vanishes, and bytes in it.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshwork::runtime {

class TemporaryFolder : public testing::Test {
protected:
  TemporaryFolder() {
    std::string name = testing::TempDir() + "meshwork-io-XXXXXX";
    root = mkdtemp(name.data());
  }
  ~TemporaryFolder() override { std::filesystem::remove_all(root); }

  std::string path(const std::string &name) const { return root + "/" + name; }

  std::string write(const std::string &name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  std::string root;
};

template <typename T> std::string bytesOf(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()),
          values.size() * sizeof(T)};
}

template <typename T> std::string bytesOf(T value) {
  return bytesOf(std::vector<T>{value});
}

/// Code and a part of the message: an error must say the right thing.
inline void expectError(const absl::Status &status, absl::StatusCode code,
                        const std::string &part) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(part));
}

} // namespace meshwork::runtime
