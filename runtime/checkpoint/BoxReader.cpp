#include "runtime/checkpoint/BoxReader.h"
#include "runtime/StatusMacros.h"
#include "runtime/io/Convert.h"
#include <absl/cleanup/cleanup.h>
#include <algorithm>

namespace meshwork::runtime {
namespace {
/// What two boxes share, in elements from where each of them begins.
struct Shared {
  std::vector<int64_t> inStored, inWanted, extent;
};

std::optional<Shared> sharedOf(const StoredBox &stored,
                               const WantedBox &wanted) {
  Shared shared;
  for (size_t dim = 0; dim < stored.begin.size(); ++dim) {
    int64_t begin = std::max(stored.begin[dim], wanted.begin[dim]);
    int64_t end = std::min(stored.begin[dim] + stored.extent[dim],
                           wanted.begin[dim] + wanted.extent[dim]);
    if (begin >= end)
      return std::nullopt;
    shared.inStored.push_back(begin - stored.begin[dim]);
    shared.inWanted.push_back(begin - wanted.begin[dim]);
    shared.extent.push_back(end - begin);
  }
  return shared;
}

int64_t rowMajorOffset(absl::Span<const int64_t> shape,
                       absl::Span<const int64_t> begin,
                       absl::Span<const int64_t> index) {
  int64_t offset = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    offset = offset * shape[dim] + begin[dim] + index[dim];
  return offset;
}

/// The elements of `Shared`, in runs that are without gaps on both sides.
class Runs {
public:
  Runs(const Shared &shared, const StoredBox &stored, const WantedBox &wanted)
      : shared(shared), stored(stored), wanted(wanted),
        index(shared.extent.size(), 0), outer(shared.extent.size()) {
    // A dim joins those inside it while both boxes have them in full.
    bool joins = true;
    while (outer > 0 && joins) {
      --outer;
      length *= shared.extent[outer];
      joins = shared.extent[outer] == stored.extent[outer] &&
              shared.extent[outer] == wanted.extent[outer];
    }
  }
  int64_t count() const { return length; }
  int64_t inStored() const {
    return rowMajorOffset(stored.extent, shared.inStored, index);
  }
  int64_t inWanted() const {
    return rowMajorOffset(wanted.extent, shared.inWanted, index);
  }
  bool next() {
    for (size_t dim = outer; dim-- > 0;) {
      if (++index[dim] < shared.extent[dim])
        return true;
      index[dim] = 0;
    }
    return false;
  }

private:
  const Shared &shared;
  const StoredBox &stored;
  const WantedBox &wanted;
  std::vector<int64_t> index;
  size_t outer; // dims that are stepped through
  int64_t length = 1;
};

/// A part of the file in memory, which moves on with what is asked for.
class Window {
public:
  Window(const CheckedInput &file, uint64_t lastByte, unsigned char *buffer)
      : file(file), lastByte(lastByte), buffer(buffer) {}

  /// Bytes from `at` on, fewer than `bytes` where a hashed range ends.
  absl::StatusOr<absl::Span<const unsigned char>> at(uint64_t at,
                                                     uint64_t bytes) {
    if (at < begin || at >= end) {
      begin = at;
      end = std::min(file.endOfRange(at / hashedBytes), lastByte);
      MESHWORK_ASSIGN_OR_RETURN(data, file.read(begin, end, buffer));
    }
    return absl::MakeConstSpan(data + (at - begin), std::min(bytes, end - at));
  }

private:
  const CheckedInput &file;
  uint64_t lastByte, begin = 0, end = 0;
  unsigned char *buffer;
  const unsigned char *data = nullptr;
};
} // namespace

absl::Status readBox(const CheckedInput &file, const StoredBox &stored,
                     uint64_t width, const WantedBox &wanted,
                     RangeBuffers &buffers) {
  std::optional<Shared> shared = sharedOf(stored, wanted);
  if (!shared)
    return absl::OkStatus();
  Runs runs(*shared, stored, wanted);
  std::vector<int64_t> last;
  for (int64_t extent : shared->extent)
    last.push_back(extent - 1);
  auto place = [&](int64_t element) {
    return stored.offset + static_cast<uint64_t>(element) * width;
  };
  uint64_t lastByte =
      place(rowMajorOffset(stored.extent, shared->inStored, last) + 1);
  RangeBuffers::Buffer buffer = buffers.take();
  absl::Cleanup giveBack = [&] { buffers.give(std::move(buffer)); };
  Window window(file, lastByte, buffer.get());
  Converter convert = converterToFloat(width == 4 ? "F32" : "BF16");
  do {
    uint64_t at = place(runs.inStored()),
             end = place(runs.inStored() + runs.count());
    for (float *out = &wanted.out[static_cast<size_t>(runs.inWanted())];
         at < end;) {
      absl::Span<const unsigned char> bytes;
      MESHWORK_ASSIGN_OR_RETURN(bytes, window.at(at, end - at));
      convert(bytes.data(), bytes.size() / width, out);
      out += bytes.size() / width;
      at += bytes.size();
    }
  } while (runs.next());
  return absl::OkStatus();
}

} // namespace meshwork::runtime
