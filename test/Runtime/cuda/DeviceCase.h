// A collective's case (CollectiveCase.h) whose tensors lie on a device.
#pragma once

#include "test/Runtime/comm/CollectiveCase.h"
#include "test/Runtime/cuda/TestDevice.h"

namespace meshwork::runtime::cuda::test {

/// What one rank has of a case: its tensors, copied to the device.
class RankOfCase {
public:
  RankOfCase(TestDevice &on, runtime::test::CollectiveCase &of, uint32_t rank)
      : on(on), memories(of.memories(rank)), request(of.request(rank)) {
    for (std::vector<uint32_t> *memory : memories) {
      copies.push_back(on.allocate(memory->size() * sizeof(uint32_t)));
      on.write(copies.back(), *memory);
    }
    for (TransferRequest &part : request.parts) {
      part.src.data = moved(part.src.data);
      part.dst.data = moved(part.dst.data);
    }
  }

  const CollectiveRequest &onDevice() const { return request; }

  /// Where the case looks for results.
  void copyBack() {
    for (size_t i = 0; i < copies.size(); ++i)
      *memories[i] = on.read<uint32_t>(copies[i], memories[i]->size());
  }

private:
  std::byte *moved(std::byte *place) const {
    auto address = reinterpret_cast<uintptr_t>(place);
    for (size_t i = 0; i < memories.size(); ++i) {
      auto begin = reinterpret_cast<uintptr_t>(memories[i]->data());
      if (address >= begin &&
          address < begin + memories[i]->size() * sizeof(uint32_t))
        return reinterpret_cast<std::byte *>(copies[i] + (address - begin));
    }
    throw std::runtime_error("a tensor lies outside of its memory");
  }

  TestDevice &on;
  std::vector<std::vector<uint32_t> *> memories;
  CollectiveRequest request;
  std::vector<DevicePtr> copies;
};

} // namespace meshwork::runtime::cuda::test
