#include "test/Support/Emulator/nccl/Segment.h"
#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace meshwork::runtime::cuda::nccl {

size_t Ring::write(const std::byte *from, size_t size) {
  uint64_t at = written.load(std::memory_order_relaxed);
  uint64_t room = capacity - (at - read.load(std::memory_order_acquire));
  size = std::min<size_t>(size, room);
  for (size_t done = 0; done < size;) {
    size_t place = (at + done) % capacity;
    size_t part = std::min(size - done, capacity - place);
    std::memcpy(bytes + place, from + done, part);
    done += part;
  }
  written.store(at + size, std::memory_order_release);
  return size;
}

size_t Ring::take(std::byte *to, size_t size) {
  uint64_t at = read.load(std::memory_order_relaxed);
  uint64_t there = written.load(std::memory_order_acquire) - at;
  size = std::min<size_t>(size, there);
  for (size_t done = 0; done < size;) {
    size_t place = (at + done) % capacity;
    size_t part = std::min(size - done, capacity - place);
    std::memcpy(to + done, bytes + place, part);
    done += part;
  }
  read.store(at + size, std::memory_order_release);
  return size;
}

std::shared_ptr<Segment> Segment::open(const std::string &name,
                                       uint32_t ranks) {
  auto made = std::make_shared<Segment>();
  made->name = name;
  made->ranks = ranks;
  made->bytes = sizeof(Header) + size_t{ranks} * ranks * sizeof(Ring);
  int file = ::shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
  if (file < 0)
    return nullptr;
  void *memory = MAP_FAILED;
  if (::ftruncate(file, static_cast<off_t>(made->bytes)) == 0)
    memory = ::mmap(nullptr, made->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                    file, 0);
  ::close(file);
  if (memory == MAP_FAILED)
    return nullptr;
  made->header = static_cast<Header *>(memory);
  uint32_t before = 0;
  if (!made->header->ranks.compare_exchange_strong(before, ranks) &&
      before != ranks)
    return nullptr;
  if (made->header->arrived.fetch_add(1) + 1 == ranks)
    ::shm_unlink(name.c_str());
  return made;
}

Segment::~Segment() {
  if (!header)
    return;
  if (!isComplete())
    ::shm_unlink(name.c_str());
  ::munmap(header, bytes);
}

bool Segment::isComplete() const { return header->arrived.load() >= ranks; }

} // namespace meshwork::runtime::cuda::nccl
