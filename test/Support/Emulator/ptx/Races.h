// Finds two warps of a block that touch the same 4 bytes of shared memory, at
// least one writing, with no barrier between.
//
// The order of warps is a vector clock in units of the block's barriers. A
// barrier that completes advances the block's time, and every warp in it then
// knows all that the others did before (J. Flanagan and S. Freund, FastTrack,
// PLDI 2009, which also says when one of several readers may be forgotten).
// Arrivals at mbarriers advance the time as well: their clocks go to those who
// wait for the phase.
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
      if (!touchKnown(words[word], warp, kind))
        if (int found = touch(words[word], warp, kind); found >= 0)
          other = found;
    return other;
  }

  /// For each warp: what it did before this time is known.
  using Clock = std::array<uint32_t, 32>;
  static void join(Clock &to, const Clock &from) {
    for (unsigned w = 0; w < to.size(); ++w)
      to[w] = to[w] > from[w] ? to[w] : from[w];
  }
  /// Adds to the clock what `warp` did and knows; what it does after is new.
  void release(unsigned warp, Clock &to) {
    join(to, known[warp]);
    to[warp] = ++now;
  }
  void acquire(unsigned warp, const Clock &from) {
    join(known[warp], from);
    findOldest(warp);
  }
  /// The warps of the mask went through a barrier together.
  void synchronize(uint32_t warpMask);
  /// bar.arrive: what `warps` did is known to `to`, not the other way.
  void follow(uint32_t warps, uint32_t to);

private:
  struct Word {
    uint32_t writeTime = 0;
    uint32_t readTime = 0; // of all readers, 0: each has its own in `times`
    uint32_t readers = 0;  // a bit for each warp
    uint32_t slot = 0;     // in `times`, 0: none yet
    uint8_t writer = none;
    bool atomic = false;
  };
  static constexpr uint8_t none = 0xff;

  /// Whether `warp` knows what `other` did at `time`.
  bool knows(unsigned warp, unsigned other, uint32_t time) const {
    return warp == other || known[warp][other] > time;
  }
  /// What touch() does to most words: what others did to them lies behind a
  /// barrier of all, or they read them as well. False where it may be more.
  bool touchKnown(Word &word, unsigned warp, Access kind) {
    uint32_t bit = 1u << warp, before = oldest[warp];
    if (word.writer != none && word.writer != warp && word.writeTime >= before)
      return false;
    if (kind == Access::read && word.readTime == now) {
      word.readers |= bit; // nobody knows yet of another's at this time
      return true;
    }
    if ((word.readers & ~bit) && (!word.readTime || word.readTime >= before))
      return false;
    if (kind == Access::read) {
      word.readers = bit;
      word.readTime = now;
    } else {
      word = {now, 0, 0, word.slot, uint8_t(warp), kind == Access::atomic};
    }
    return true;
  }
  int touch(Word &word, unsigned warp, Access kind) {
    bool bothAtomic = kind == Access::atomic && word.atomic;
    int race = -1;
    if (word.writer != none && !bothAtomic &&
        !knows(warp, word.writer, word.writeTime))
      race = word.writer;
    uint32_t unordered = unorderedReaders(word, warp);
    if (kind == Access::read) {
      setReader(word, unordered & ~(1u << warp), warp);
      return race;
    }
    if (unordered)
      race = __builtin_ctz(unordered);
    word = {now, 0, 0, word.slot, uint8_t(warp), kind == Access::atomic};
    return race;
  }
  uint32_t unorderedReaders(const Word &word, unsigned warp) const {
    uint32_t found = 0;
    for (uint32_t rest = word.readers; rest; rest &= rest - 1) {
      unsigned reader = unsigned(__builtin_ctz(rest));
      if (!knows(warp, reader, timeOf(word, reader)))
        found |= 1u << reader;
    }
    return found;
  }

  uint32_t timeOf(const Word &word, unsigned reader) const {
    return word.readTime ? word.readTime : times[word.slot * numWarps + reader];
  }
  void setReader(Word &word, uint32_t others, unsigned warp) {
    if (others && word.readTime != now)
      keepTimes(word);
    word.readers = others | 1u << warp;
    if (!others)
      word.readTime = now;
    else if (!word.readTime)
      times[word.slot * numWarps + warp] = now;
  }
  void keepTimes(Word &word);
  void findOldest(unsigned warp);

  std::vector<Word> words;
  /// Slots of numWarps times each: most words have one reader, or several at
  /// one time, and need none.
  std::vector<uint32_t> times;
  unsigned numWarps = 0;
  uint32_t now = 1;
  /// known[w][v]: what v did before this time happened before w goes on.
  std::array<Clock, 32> known{};
  /// oldest[w]: what all others did before this time is known to w.
  std::array<uint32_t, 32> oldest{};
};

} // namespace meshwork::ptx
