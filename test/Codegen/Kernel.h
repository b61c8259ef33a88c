// Test support: compiles the clusters of a text and runs them.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace meshwork::codegen::test {

/// One compiled cluster.
class Kernel {
public:
  using Function = void (*)(void *const *args, int64_t begin, int64_t end);
  /// `text` defines one function that holds one fused op; see `cluster`.
  /// `vectorStrides`, per operand and then result, replaces contiguous layouts
  /// where it is not empty.
  Kernel(const std::string &text, const std::string &arch,
         std::vector<std::vector<int64_t>> strides = {});
  ~Kernel();
  Kernel(const Kernel &) = delete;
  Kernel &operator=(const Kernel &) = delete;

  /// Runs all items at once, or `perCall` at a time, last call first.
  void run(std::vector<void *> args, int64_t perCall = 0) const;
  /// Items [begin, end).
  void runItems(std::vector<void *> args, int64_t begin, int64_t end) const {
    function(args.data(), begin, end);
  }
  int64_t items() const { return numItems; }
  uint64_t flops() const { return numFlops; }
  bool isCompiled() const { return function != nullptr; }
  /// What went wrong, if something did.
  const std::string &errors() const { return messages; }
  const std::vector<char> &code() const { return bytes; }

private:
  void compile(const std::string &text, const std::string &arch,
               const std::vector<std::vector<int64_t>> &strides);
  void load();
  int64_t numItems = 0;
  uint64_t numFlops = 0;
  std::string messages;
  std::vector<char> bytes;
  void *library = nullptr;
  Function function = nullptr;
};

/// Archs that this machine can run.
std::vector<std::string> runnableArchs();
/// Uniform in [low, high), always the same ones.
std::vector<float> randomFloats(size_t count, float low = -2, float high = 2,
                                unsigned seed = 1);
uint16_t toBf16(float value);
float fromBf16(uint16_t value);
std::vector<uint16_t> toBf16(const std::vector<float> &values);

/// Replaces each `$key` in `text` by its value.
std::string
fill(std::string text,
     const std::vector<std::pair<std::string, std::string>> &values);

/// |actual - expected| <= relative * max(|expected|, scale).
void expectNear(double actual, double expected, double relative, double scale,
                size_t index);

} // namespace meshwork::codegen::test
