// Random specs for tests.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace meshwork::interpreter {

/// Draws the same on each machine, which the library's distributions do not.
class Dice {
public:
  explicit Dice(unsigned seed) : generator(seed) {}
  size_t below(size_t n) { return generator() % n; }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <typename T> const T &from(const std::vector<T> &list) {
    return list[below(list.size())];
  }
  template <typename T> void shuffle(std::vector<T> &list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[below(i)]);
  }

private:
  std::mt19937 generator;
};

struct Parameter {
  std::string name;
  size_t numDims;
};

/// One spec, a function of `seed`: mesh, rules, pins, ZeRO, documents, split
/// sequences and microbatches. Most are legal, but not all.
class RandomSpec {
public:
  /// With `float8` products multiply in 8 bits, as far as sizes let them;
  /// of half the seeds with delayed scaling.
  RandomSpec(unsigned seed, const std::vector<Parameter> &parameters,
             bool float8 = false);

  std::string text() const;
  /// The same step on one rank.
  std::string alone() const;
  /// How often weights are rounded to 8 bits, which changes no number.
  std::string weightCasts = "step";

private:
  std::string common() const;
  int64_t samples() const { return data * micro; } // of a microbatch
  void drawMesh();
  void drawRules();
  void drawPins();
  void drawZero(unsigned seed);
  void drawContext();
  void drawPipeline();
  std::vector<std::string> someAxes(unsigned percent);
  void rule(const char *dim, const std::vector<std::string> &list);
  std::string drawDims(size_t count);

  Dice dice;
  const std::vector<Parameter> &parameters;
  std::string documents; // keys of [batch]
  bool float8, isDelayed;
  std::vector<std::pair<std::string, size_t>> axes;
  std::vector<std::string> batchAxes;
  int64_t data = 1;               // ranks that the batch is split over
  int64_t micro = 1;              // samples of each in a microbatch
  std::vector<std::string> ruled; // axes that rules name
  std::string weights;            // the key of [zero] that changes numbers
  std::string rules, pins, zero, optimizer, context;
};

} // namespace meshwork::interpreter
