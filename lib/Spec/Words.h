// The words that a spec, and an option of a pass, writes for an enumeration.
// Each word stands in Words.cpp once.
//
//   readWord<Rounding>("stochastic")   // Rounding::stochastic
//   wordOf(Rounding::stochastic)       // "stochastic"
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace meshwork::spec {

template <typename E> struct Word {
  const char *text;
  E value;
};

/// All words of an enumeration, the order in which messages list them.
template <typename E> std::span<const Word<E>> words();

template <typename E> std::optional<E> readWord(std::string_view text) {
  for (const Word<E> &word : words<E>())
    if (word.text == text)
      return word.value;
  return std::nullopt;
}

template <typename E> const char *wordOf(E value) {
  for (const Word<E> &word : words<E>())
    if (word.value == value)
      return word.text;
  return "";
}

/// "a, b or c".
template <typename E> std::string listOfWords() {
  std::string text;
  std::span<const Word<E>> all = words<E>();
  for (size_t i = 0; i < all.size(); ++i)
    text += std::string(i == 0               ? ""
                        : i + 1 < all.size() ? ", "
                                             : " or ") +
            all[i].text;
  return text;
}

/// The GPUs that target.arch names, oldest first.
std::span<const char *const> gpuArchs();

} // namespace meshwork::spec
