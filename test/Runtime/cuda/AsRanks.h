// Ranks of a test as threads.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace meshwork::runtime::cuda::test {

inline void asRanks(uint32_t ranks, const std::function<void(uint32_t)> &body) {
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back(body, rank);
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace meshwork::runtime::cuda::test
