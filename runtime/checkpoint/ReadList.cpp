#include "runtime/checkpoint/ReadList.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/checkpoint/CheckManifest.h"
#include "runtime/io/Convert.h"
#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <tuple>

namespace meshwork::runtime {
namespace {
constexpr uint64_t convertedAtOnce = 4096; // on a thread's stack

void give(const WantedBox &box, const SharedRun &run, uint64_t width,
          const unsigned char *bytes) {
  if (width == sizeof(float) &&
      reinterpret_cast<uintptr_t>(bytes) % alignof(float) == 0)
    return box.take(run.element,
                    {reinterpret_cast<const float *>(bytes), run.count});
  static const Converter f32 = converterToFloat("F32"),
                         bf16 = converterToFloat("BF16");
  float values[convertedAtOnce];
  for (uint64_t at = 0; at < run.count; at += convertedAtOnce) {
    uint64_t count = std::min(convertedAtOnce, run.count - at);
    (width == sizeof(float) ? f32 : bf16)(bytes + at * width, count, values);
    box.take(run.element + at, {values, count});
  }
}

/// The failure of what comes first, of those that several threads see.
class First {
public:
  void add(size_t at, absl::Status status) {
    std::lock_guard<std::mutex> lock(mutex);
    if (at < first)
      kept = std::move(status);
    first = std::min(first, at);
  }
  bool isBefore(size_t at) {
    std::lock_guard<std::mutex> lock(mutex);
    return first < at;
  }
  absl::Status status() const { return kept; }

private:
  std::mutex mutex;
  size_t first = SIZE_MAX;
  absl::Status kept;
};
} // namespace

void ReadList::add(const WantedBox &box, const StoredState &state) {
  uint64_t width = *storedWidth(state.dtype);
  for (const StoredBox &stored : state.boxes) {
    std::optional<SharedRuns> runs =
        SharedRuns::of(stored, width, box.begin, box.extent);
    if (!runs)
      continue;
    for (uint64_t range = runs->firstByte() / hashedBytes;
         range * hashedBytes < runs->endByte(); ++range)
      all.push_back({stored.file, range, sources.size()});
    sources.push_back({&box, width, *std::move(runs)});
  }
}

std::vector<ReadList::Items> ReadList::byRange() {
  auto place = [](const Item &item) { return std::tie(item.file, item.range); };
  std::sort(all.begin(), all.end(), [&](const Item &a, const Item &b) {
    return std::tie(a.file, a.range, a.source) <
           std::tie(b.file, b.range, b.source);
  });
  std::vector<Items> found;
  for (size_t from = 0, to = 0; from < all.size(); from = to) {
    while (to < all.size() && place(all[to]) == place(all[from]))
      ++to;
    found.push_back(absl::MakeConstSpan(all).subspan(from, to - from));
  }
  return found;
}

absl::Status ReadList::readOne(const CheckedInput &file, Items items,
                               unsigned char *buffer) const {
  uint64_t begin = file.endOfRange(items[0].range), end = 0;
  for (const Item &item : items) {
    begin = std::min(begin, sources[item.source].runs.firstByte());
    end = std::max(end, sources[item.source].runs.endByte());
  }
  begin = std::max(begin, items[0].range * hashedBytes);
  end = std::min(end, file.endOfRange(items[0].range));
  absl::StatusOr<const unsigned char *> bytes = file.read(begin, end, buffer);
  if (!bytes.ok()) {
    const WantedBox &first = *sources[items[0].source].box;
    return absl::Status(bytes.status().code(),
                        absl::StrCat("tensor ", quote(first.tensor), ", state ",
                                     quote(first.state), ": ",
                                     bytes.status().message()));
  }
  for (const Item &item : items) {
    const Source &source = sources[item.source];
    source.runs.inBytes(begin, end, [&](const SharedRun &run) {
      give(*source.box, run, source.width, *bytes + (run.byte - begin));
    });
  }
  return absl::OkStatus();
}

absl::Status ReadList::read(absl::Span<const CheckedInput> files,
                            RangeBuffers &buffers, OnThreads onThreads) {
  std::vector<Items> ranges = byRange();
  std::atomic<size_t> next = 0;
  First failure;
  onThreads([&] {
    RangeBuffers::Buffer buffer = buffers.take();
    absl::Cleanup giveBack = [&] { buffers.give(std::move(buffer)); };
    for (size_t i = next++; i < ranges.size() && !failure.isBefore(i);
         i = next++) {
      absl::Status status =
          readOne(files[ranges[i][0].file], ranges[i], buffer.get());
      if (!status.ok())
        failure.add(i, std::move(status));
    }
  });
  return failure.status();
}

} // namespace meshwork::runtime
