// Whether a file holds what its options say. Pieces of it are looked at before
// the first step; what is surely wrong is an error, what is likely wrong a
// warning. Internal to runtime/io.
#pragma once

#include <array>
#include <bitset>
#include <string>
#include <vector>

#include "runtime/io/TokenLayout.h"

namespace meshwork::runtime {

class TokenDoubts {
public:
  TokenDoubts(const TokenLayout &layout, uint32_t vocabulary);

  /// A piece: `count` ids of the file as they are stored, the largest of which
  /// is `largest`. Pieces begin at even tokens.
  void see(const unsigned char *bytes, uint64_t count, int64_t largest);

  int64_t largestSeen() const { return largest; }

  /// After all pieces. kDataLoss: ids of twice or four times the width were
  /// cut in two.
  absl::Status verdict() const;

  /// A line each, about what is likely wrong.
  std::vector<std::string> warnings() const;

private:
  void seeHalves(const unsigned char *bytes, uint64_t count);
  void seeText(const unsigned char *bytes, uint64_t count);
  std::string aboutText() const;
  std::string aboutVocabulary() const;

  const TokenLayout &layout;
  uint64_t width;
  uint32_t vocabulary;
  uint64_t numSeen = 0;
  int64_t largest = -1;
  // Of raw ids: the largest at each place of four, and how varied those at even
  // places are.
  std::array<uint64_t, 4> largestAt = {};
  std::bitset<256> evenBytes; // lowest bytes
  uint64_t numCompared = 0;
  // Of text.
  uint64_t numBytes = 0, numControls = 0;
};

/// For an id beyond the vocabulary: whether the same bytes, read as raw ids of
/// half the width, would all fit. Then "; ..." with what to give; else "".
std::string narrowerHint(const TokenLayout &layout, const unsigned char *bytes,
                         uint64_t count, uint32_t vocabulary);

} // namespace meshwork::runtime
