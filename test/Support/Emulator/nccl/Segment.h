// Shared memory of the ranks of one communicator.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace meshwork::runtime::cuda::nccl {

/// Bytes from one rank to another; one writer, one reader.
struct Ring {
  static constexpr uint64_t capacity = 32 << 10;
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
  alignas(64) std::byte bytes[capacity];

  /// As many of `size` bytes as there is room for, or as have come.
  size_t write(const std::byte *from, size_t size);
  size_t take(std::byte *to, size_t size);
};

class Segment {
public:
  /// The same memory for all that open `name`; its name goes when all `ranks`
  /// are there. Null when the system refuses, or others have another number of
  /// ranks.
  static std::shared_ptr<Segment> open(const std::string &name, uint32_t ranks);
  ~Segment();

  bool isComplete() const;
  Ring &ring(uint32_t from, uint32_t to) { return rings()[from * ranks + to]; }

private:
  /// At the start of the memory; the rings follow. Fresh memory is zero.
  struct alignas(64) Header {
    std::atomic<uint32_t> ranks, arrived;
  };
  Ring *rings() { return reinterpret_cast<Ring *>(header + 1); }

  std::string name;
  uint32_t ranks = 0;
  Header *header = nullptr;
  size_t bytes = 0;
};

} // namespace meshwork::runtime::cuda::nccl
