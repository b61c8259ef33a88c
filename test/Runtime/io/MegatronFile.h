// A Megatron .idx file, field by field, so that a test may change each.
#pragma once

#include "test/Runtime/io/TestFiles.h"

namespace meshwork::runtime {

struct MegatronIndex {
  std::string magic{"MMIDIDX\0\0", 9};
  uint64_t version = 1;
  uint8_t type = 4;
  uint64_t sequences = 3, documents = 3;
  std::vector<int32_t> lengths = {7, 0, 13};
  std::vector<int64_t> offsets = {52, 80, 0};
  std::vector<int64_t> starts = {0, 1, 3};
  std::string tail;

  std::string bytes() const {
    return magic + bytesOf(version) + bytesOf(type) + bytesOf(sequences) +
           bytesOf(documents) + bytesOf(lengths) + bytesOf(offsets) +
           bytesOf(starts) + tail;
  }
};

} // namespace meshwork::runtime
