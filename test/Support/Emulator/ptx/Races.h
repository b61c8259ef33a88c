// Finds two warps of a block that touch the same 4 bytes of shared memory, at
// least one writing, with no barrier between.
//
// The order of warps is a vector clock in units of the block's barriers: a
// barrier that completes advances the block's time, and every warp in it then
// knows all that the others did before (J. Flanagan and S. Freund, FastTrack,
// PLDI 2009, which also says when one of several readers may be forgotten).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace meshwork::ptx {

enum class Access : uint8_t { read, write, atomic };

class Races {
public:
  /// Forgets everything; `bytes` of shared memory, `numWarps` up to 32.
  void reset(uint32_t bytes, unsigned numWarps);
  bool enabled() const { return numWarps > 1; }

  /// The other warp of a race with this access, or -1.
  int access(uint32_t address, uint32_t bytes, unsigned warp, Access kind) {
    int other = -1;
    for (uint32_t word = address / 4; word <= (address + bytes - 1) / 4; ++word)
      if (int found = touch(words[word], warp, kind); found >= 0)
        other = found;
    return other;
  }

  /// The warps of the mask went through a barrier together.
  void synchronize(uint32_t warpMask);
  /// bar.arrive: what `warps` did is known to `to`, not the other way.
  void follow(uint32_t warps, uint32_t to);

private:
  struct Word {
    uint32_t writeTime = 0, readTime = 0;
    uint32_t readers = 0; // a bit for each warp
    uint8_t writer = none;
    bool atomic = false;
  };
  static constexpr uint8_t none = 0xff;

  /// Whether `warp` knows what `other` did at `time`.
  bool knows(unsigned warp, unsigned other, uint32_t time) const {
    return warp == other || known[warp][other] > time;
  }
  int touch(Word &word, unsigned warp, Access kind) {
    bool bothAtomic = kind == Access::atomic && word.atomic;
    int race = -1;
    if (word.writer != none && !bothAtomic &&
        !knows(warp, word.writer, word.writeTime))
      race = word.writer;
    uint32_t unordered = unorderedReaders(word, warp);
    if (kind == Access::read) {
      word.readers = unordered | 1u << warp;
      word.readTime = now;
      return race;
    }
    if (unordered)
      race = __builtin_ctz(unordered);
    word = {now, 0, 0, uint8_t(warp), kind == Access::atomic};
    return race;
  }
  uint32_t unorderedReaders(const Word &word, unsigned warp) const {
    uint32_t found = 0;
    for (uint32_t rest = word.readers; rest; rest &= rest - 1) {
      unsigned reader = unsigned(__builtin_ctz(rest));
      if (!knows(warp, reader, word.readTime))
        found |= 1u << reader;
    }
    return found;
  }

  std::vector<Word> words;
  unsigned numWarps = 0;
  uint32_t now = 1;
  /// known[w][v]: what v did before this time happened before w goes on.
  std::array<std::array<uint32_t, 32>, 32> known{};
};

} // namespace meshwork::ptx
