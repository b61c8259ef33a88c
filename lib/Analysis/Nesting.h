// How deep IR text nests. The parser calls itself for each level, so a text of
// a few hundred kilobytes can end a process by the size of its stack alone.
//
//   if (nestsDeeperThan(text, maxNesting)) // refuse it before parsing
#pragma once

#include <string_view>

namespace meshwork::analysis {

/// Levels that no model and no phase comes near: a model's types nest 3 deep,
/// its regions 4.
inline constexpr int maxNesting = 256;

/// Whether brackets of any kind nest more than `levels` deep. Those in strings
/// and comments do not count, nor does the `>` of `->` and `>=`.
bool nestsDeeperThan(std::string_view text, int levels);

} // namespace meshwork::analysis
