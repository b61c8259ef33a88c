// Kernels against their floor: bytes that must move over the copy rate measured
// just before, one thread. Counter `floor`: time over floor, 1.3 is the goal.
#include <chrono>
#include <cstring>
#include <numeric>

#include <benchmark/benchmark.h>

#include "test/Codegen/Clusters.h"
#include "test/Codegen/Kernel.h"

using namespace meshwork::codegen::test;
namespace {

/// Neither copies nor kernels find their data in a cache: both walk through
/// this much memory, call by call.
constexpr size_t coldBytes = 384 << 20;

/// Bytes per second that a copy reads and writes, best of some.
double copyRate() {
  static std::vector<char> from(coldBytes / 2, 1), to(coldBytes / 2);
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    auto begin = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), coldBytes / 2);
    benchmark::ClobberMemory();
    std::chrono::duration<double> time =
        std::chrono::steady_clock::now() - begin;
    best = std::max(best, double(coldBytes) / time.count());
  }
  return best;
}

/// Arguments of one call: numbers near one.
struct Arguments {
  std::vector<std::vector<char>> memory;
  std::vector<void *> pointers;
  Arguments(const std::vector<size_t> &sizes, const std::vector<int> &alias) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      bool isOwn = i >= alias.size() || alias[i] < 0;
      memory.emplace_back(isOwn ? sizes[i] + 64 : 0);
      for (size_t at = 0; at + 4 <= memory.back().size(); at += 4) {
        float value = 1.0f + static_cast<float>(at * 2654435761u % 1000) / 4000;
        std::memcpy(memory.back().data() + at, &value, 4);
      }
      pointers.push_back(memory[isOwn ? i : alias[i]].data());
    }
  }
};

/// `sizes`: bytes of each argument; `alias[i]`: which argument argument i is.
void measure(benchmark::State &state, const std::string &text,
             const std::vector<size_t> &sizes, std::vector<int> alias = {}) {
  Kernel kernel(text, "native");
  if (!kernel.isCompiled())
    return state.SkipWithError(kernel.errors().c_str());
  size_t bytes = std::accumulate(sizes.begin(), sizes.end(), size_t{0});
  std::vector<Arguments> calls;
  for (size_t i = 0; i < std::max<size_t>(1, coldBytes / bytes); ++i)
    calls.emplace_back(sizes, alias);
  double rate = 0, best = 1e30;
  size_t turn = 0;
  for (auto _ : state) {
    if (turn % 32 == 0)
      rate = std::max(rate, copyRate());
    auto begin = std::chrono::steady_clock::now();
    kernel.run(calls[turn++ % calls.size()].pointers);
    std::chrono::duration<double> time =
        std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count());
    state.SetIterationTime(time.count());
  }
  state.counters["floor"] = best * rate / bytes;
  state.counters["GB/s"] = bytes / best / 1e9;
  state.counters["copy"] = rate / 1e9;
}

using Words = std::vector<std::pair<std::string, std::string>>;
constexpr size_t rows = 2048, embed = 768, matrix = rows * embed;
const Words normSizes = {
    {"R", "2048"}, {"C", "768"}, {"K", "32"}, {"I", "0.0013020833"}};

Words typed(Words words, const std::string &type) {
  words.push_back({"T", type});
  return words;
}

void rmsNormForward(benchmark::State &state) {
  bool isBf16 = state.range(0);
  size_t m = matrix * (isBf16 ? 2 : 4);
  measure(state, fill(rmsNorm, typed(normSizes, isBf16 ? "bf16" : "f32")),
          {m, m, embed * 4, m, m});
}
BENCHMARK(rmsNormForward)
    ->Arg(0)
    ->Arg(1)
    ->UseManualTime()
    ->Iterations(64)
    ->Unit(benchmark::kMicrosecond);

void layerNormBackward(benchmark::State &state) {
  bool isBf16 = state.range(0);
  size_t m = matrix * (isBf16 ? 2 : 4);
  measure(state, fill(layerNormGrad, typed(normSizes, isBf16 ? "bf16" : "f32")),
          {m, m, embed * 4, m, m, 32 * embed * 4, 32 * embed * 4});
}
BENCHMARK(layerNormBackward)
    ->Arg(0)
    ->Arg(1)
    ->UseManualTime()
    ->Iterations(64)
    ->Unit(benchmark::kMicrosecond);

void adamW(benchmark::State &state) {
  size_t n = 50257 * 768;
  // In place: an argument that is read and written counts once each way.
  measure(state, fill(adamw, {{"R", "50257"}, {"C", "768"}}),
          {n * 4, n * 4, n * 4, n * 4, 4, 4, 4, 4, n * 4, n * 4, n * 4, n * 2},
          {-1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 2, -1});
}
BENCHMARK(adamW)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(6);

void softmaxCrossEntropy(benchmark::State &state) {
  bool isBf16 = state.range(0), inPlace = state.range(1);
  size_t m = 256ul * 50257 * (isBf16 ? 2 : 4);
  measure(state,
          fill(crossEntropy, typed({{"R", "256"}, {"V", "50257"}, {"K", "32"}},
                                   isBf16 ? "bf16" : "f32")),
          {m, 256 * 4, m, 32 * 4},
          inPlace ? std::vector<int>{-1, -1, 0, -1} : std::vector<int>{});
}
BENCHMARK(softmaxCrossEntropy)
    ->Args({0, 0})
    ->Args({0, 1})
    ->Args({1, 0})
    ->Args({1, 1})
    ->UseManualTime()
    ->Iterations(64)
    ->Unit(benchmark::kMicrosecond);

void swiGlu(benchmark::State &state) {
  size_t m = 2048ul * 3072 * 2;
  measure(state, fill(swiglu, {{"R", "2048"}, {"C", "3072"}}), {m, m, m});
}
BENCHMARK(swiGlu)->UseManualTime()->Iterations(64)->Unit(
    benchmark::kMicrosecond);

} // namespace
BENCHMARK_MAIN();
