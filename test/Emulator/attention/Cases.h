// Shapes that AttentionTest.cpp runs, as Kernels.cu compiles them.
#pragma once

namespace meshwork::attention::test {

struct Case {
  bool bf16 = true;
  long long sequence = 64, heads = 2, kvHeads = 2, d = 64, batch = 1;
  bool causal = true;
  long long window = 0;
  float scale = 0.125f, cap = 0;
  double rate = 0; // of dropout
  // More heads than there are, of which these are from the second on.
  bool someHeads = false;
  // Elements between heads, and before the first: odd ones are not aligned.
  long long gap = 0;
  bool documents = false;
  // Where those after the first begin, in order, then zeros. Odd samples have
  // them mirrored.
  int begins[6] = {};
  // Of the queries one of `parts` ranks has rows: chunks `part` and
  // 2 parts - 1 - part of 2 parts, then padding; of 1 all.
  long long parts = 1, part = 0;
  // Of the keys those of this part, then padding; -1: all.
  long long keysOf = -1;
  bool wideResults = false; // f32, of bf16 operands

  constexpr long long chunk() const {
    return (sequence + 2 * parts - 1) / (2 * parts);
  }
  constexpr long long rows() const {
    return parts == 1 ? sequence : 2 * chunk();
  }
  constexpr bool hasKeys() const { return keysOf >= 0; }
  constexpr long long columns() const {
    return hasKeys() ? 2 * chunk() : sequence;
  }
  /// Which token of the sequence a row of a part is; -1: padding.
  constexpr long long tokenOf(long long row, long long part) const {
    long long second = (2 * parts - 1 - part) * chunk();
    long long token =
        row < chunk() ? part * chunk() + row : second + row - chunk();
    return token < sequence ? token : -1;
  }
  constexpr long long queryOf(long long row) const {
    return parts == 1 ? row : tokenOf(row, part);
  }
  constexpr long long keyOf(long long column) const {
    return hasKeys() ? tokenOf(column, keysOf) : column;
  }
  constexpr bool aligned() const { return (d | gap) % (bf16 ? 8 : 4) == 0; }
  constexpr long long headStride() const { return d + gap; }
  constexpr long long positionStride(long long count) const {
    return count * headStride() + gap;
  }
  constexpr long long sampleStride(long long count, long long length) const {
    return length * positionStride(count);
  }
  constexpr long long elements(long long count, long long length) const {
    return gap + batch * sampleStride(count, length);
  }
  constexpr unsigned threshold() const {
    return static_cast<unsigned>(rate * 4294967296.0);
  }
  constexpr float keepScale() const {
    return static_cast<float>(1 / (1 - rate));
  }
  constexpr long long globalHeads() const {
    return someHeads ? heads + 3 : heads;
  }
};

/// Where the document of token `i` begins.
constexpr long long documentOf(const Case &c, long long sample, long long i) {
  long long document = 0;
  for (long long begin : c.begins) {
    if (sample % 2)
      begin = begin ? c.sequence - begin : 0;
    if (begin <= i && begin > document)
      document = begin;
  }
  return document;
}

/// What one hop of a ring computes: keys of one part, results to be summed.
constexpr Case hopOf(Case whole, long long part) {
  whole.keysOf = part;
  whole.wideResults = whole.bf16;
  return whole;
}

inline constexpr unsigned dropoutStream = 0x9e3779b9;

// X(name, type, padded head dim, case). Lengths end within, at and after blocks
// of 32, 64 and 128; windows begin within blocks; documents begin at their
// edges and within them.
#define ATTENTION_TEST_CASES(X)                                                \
  X(first, bf16, 64, (Case{.sequence = 600, .parts = 2}))                      \
  X(second, bf16, 64,                                                          \
    (Case{.sequence = 597, .window = 90, .parts = 2, .part = 1}))              \
  X(third32, f32, 16,                                                          \
    (Case{.bf16 = false,                                                       \
          .sequence = 250,                                                     \
          .kvHeads = 1,                                                        \
          .d = 16,                                                             \
          .batch = 2,                                                          \
          .rate = 0.25,                                                        \
          .documents = true,                                                   \
          .begins = {10, 64, 130, 140},                                        \
          .parts = 3,                                                          \
          .part = 2}))                                                         \
  X(partWindow32, f32, 32,                                                     \
    (Case{.bf16 = false, .sequence = 201, .d = 32, .window = 40, .parts = 2})) \
  X(partAhead, bf16, 32,                                                       \
    (Case{.sequence = 200, .d = 32, .causal = false, .parts = 2, .part = 1}))  \
  X(partDocuments, bf16, 128,                                                  \
    (Case{.sequence = 520,                                                     \
          .kvHeads = 1,                                                        \
          .d = 128,                                                            \
          .rate = 0.1,                                                         \
          .documents = true,                                                   \
          .begins = {127, 128, 200, 390},                                      \
          .parts = 2,                                                          \
          .part = 1}))                                                         \
  X(firstFrom0, bf16, 64, hopOf(firstCase, 0))                                 \
  X(firstFrom1, bf16, 64, hopOf(firstCase, 1))                                 \
  X(third32From0, f32, 16, hopOf(third32Case, 0))                              \
  X(third32From1, f32, 16, hopOf(third32Case, 1))                              \
  X(third32From2, f32, 16, hopOf(third32Case, 2))                              \
  X(partDocumentsFrom0, bf16, 128, hopOf(partDocumentsCase, 0))                \
  X(partDocumentsFrom1, bf16, 128, hopOf(partDocumentsCase, 1))                \
  X(partAheadFrom0, bf16, 32, hopOf(partAheadCase, 0))                         \
  X(windowFrom0, bf16, 64,                                                     \
    (Case{.sequence = 597, .window = 90, .parts = 2, .part = 1, .keysOf = 0})) \
  X(gapFrom0, bf16, 32,                                                        \
    (Case{.sequence = 97,                                                      \
          .d = 20,                                                             \
          .gap = 1,                                                            \
          .parts = 2,                                                          \
          .part = 1,                                                           \
          .keysOf = 0,                                                         \
          .wideResults = true}))                                               \
  X(d256From1, bf16, 256,                                                      \
    (Case{.sequence = 130,                                                     \
          .heads = 1,                                                          \
          .kvHeads = 1,                                                        \
          .d = 256,                                                            \
          .parts = 2,                                                          \
          .keysOf = 1,                                                         \
          .wideResults = true}))                                               \
  X(plain, bf16, 64, (Case{.sequence = 150, .batch = 2}))                      \
  X(plain32, f32, 64, (Case{.bf16 = false, .sequence = 150, .batch = 2}))      \
  X(one, bf16, 64, (Case{.sequence = 1}))                                      \
  X(one32, f32, 64, (Case{.bf16 = false, .sequence = 1}))                      \
  X(full, bf16, 64,                                                            \
    (Case{.sequence = 256, .heads = 1, .kvHeads = 1, .causal = false}))        \
  X(groups, bf16, 32,                                                          \
    (Case{.sequence = 129, .heads = 6, .kvHeads = 2, .d = 32}))                \
  X(groups32, f32, 32,                                                         \
    (Case{.bf16 = false, .sequence = 129, .heads = 6, .kvHeads = 2, .d = 32})) \
  X(window, bf16, 64, (Case{.sequence = 290, .kvHeads = 1, .window = 70}))     \
  X(window32, f32, 16,                                                         \
    (Case{                                                                     \
        .bf16 = false, .sequence = 200, .kvHeads = 1, .d = 16, .window = 70})) \
  X(narrow, bf16, 16, (Case{.sequence = 200, .d = 16, .window = 1}))           \
  X(ahead, bf16, 16,                                                           \
    (Case{.sequence = 200, .d = 16, .causal = false, .window = 40}))           \
  X(ahead32, f32, 16,                                                          \
    (Case{.bf16 = false,                                                       \
          .sequence = 200,                                                     \
          .d = 16,                                                             \
          .causal = false,                                                     \
          .window = 40}))                                                      \
  X(dropout, bf16, 64, (Case{.sequence = 100, .kvHeads = 1, .rate = 0.25}))    \
  X(dropout32, f32, 32,                                                        \
    (Case{                                                                     \
        .bf16 = false, .sequence = 100, .kvHeads = 1, .d = 32, .rate = 0.25})) \
  X(someHeads, bf16, 128,                                                      \
    (Case{.sequence = 140,                                                     \
          .d = 128,                                                            \
          .batch = 2,                                                          \
          .rate = 0.5,                                                         \
          .someHeads = true}))                                                 \
  X(d8, bf16, 16, (Case{.sequence = 97, .d = 8}))                              \
  X(d8gap, f32, 16, (Case{.bf16 = false, .sequence = 97, .d = 8, .gap = 4}))   \
  X(d20, bf16, 32, (Case{.sequence = 97, .d = 20, .gap = 1}))                  \
  X(d21, f32, 32, (Case{.bf16 = false, .sequence = 97, .d = 21, .gap = 2}))    \
  X(d80, bf16, 80, (Case{.sequence = 140, .d = 80, .gap = 8}))                 \
  X(d80f32, f32, 80, (Case{.bf16 = false, .sequence = 70, .d = 80}))           \
  X(d96, bf16, 96, (Case{.sequence = 70, .d = 96}))                            \
  X(d128, bf16, 128, (Case{.sequence = 290, .kvHeads = 1, .d = 128}))          \
  X(d128f32, f32, 128,                                                         \
    (Case{.bf16 = false, .sequence = 100, .kvHeads = 1, .d = 128}))            \
  X(d192, bf16, 192, (Case{.sequence = 70, .d = 160}))                         \
  X(d256, bf16, 256,                                                           \
    (Case{.sequence = 130, .heads = 1, .kvHeads = 1, .d = 256}))               \
  X(d256f32, f32, 256,                                                         \
    (Case{.bf16 = false, .sequence = 70, .heads = 1, .kvHeads = 1, .d = 256})) \
  X(negative, bf16, 64, (Case{.sequence = 100, .scale = -0.3f}))               \
  X(capped, bf16, 64,                                                          \
    (Case{.sequence = 150, .kvHeads = 1, .window = 70, .scale = 1, .cap = 3})) \
  X(capped32, f32, 32,                                                         \
    (Case{.bf16 = false,                                                       \
          .sequence = 100,                                                     \
          .d = 32,                                                             \
          .scale = -0.5f,                                                      \
          .cap = 2,                                                            \
          .rate = 0.25}))                                                      \
  X(capped256From1, bf16, 256,                                                 \
    (Case{.sequence = 130,                                                     \
          .heads = 1,                                                          \
          .kvHeads = 1,                                                        \
          .d = 256,                                                            \
          .cap = 1,                                                            \
          .parts = 2,                                                          \
          .keysOf = 1,                                                         \
          .wideResults = true}))                                               \
  X(large, f32, 16,                                                            \
    (Case{.bf16 = false, .sequence = 100, .d = 16, .scale = 60}))              \
  X(documents, bf16, 64,                                                       \
    (Case{.sequence = 300,                                                     \
          .batch = 2,                                                          \
          .documents = true,                                                   \
          .begins = {1, 2, 3, 100, 128, 257}}))                                \
  X(documents32, f32, 64,                                                      \
    (Case{.bf16 = false,                                                       \
          .sequence = 200,                                                     \
          .batch = 2,                                                          \
          .documents = true,                                                   \
          .begins = {1, 2, 64, 65, 150}}))                                     \
  X(documents128, bf16, 128,                                                   \
    (Case{.sequence = 290,                                                     \
          .kvHeads = 1,                                                        \
          .d = 128,                                                            \
          .documents = true,                                                   \
          .begins = {127, 128, 200}}))                                         \
  X(documents256, bf16, 256,                                                   \
    (Case{.sequence = 130,                                                     \
          .heads = 1,                                                          \
          .kvHeads = 1,                                                        \
          .d = 256,                                                            \
          .documents = true,                                                   \
          .begins = {50, 129}}))                                               \
  X(documentsLong, bf16, 16,                                                   \
    (Case{.sequence = 1024,                                                    \
          .heads = 1,                                                          \
          .kvHeads = 1,                                                        \
          .d = 16,                                                             \
          .documents = true,                                                   \
          .begins = {200, 640, 700}}))                                         \
  X(documentsWindow, bf16, 64,                                                 \
    (Case{.sequence = 290,                                                     \
          .kvHeads = 1,                                                        \
          .window = 70,                                                        \
          .documents = true,                                                   \
          .begins = {10, 130, 140}}))                                          \
  X(documentsWindow32, f32, 16,                                                \
    (Case{.bf16 = false,                                                       \
          .sequence = 200,                                                     \
          .kvHeads = 1,                                                        \
          .d = 16,                                                             \
          .window = 70,                                                        \
          .documents = true,                                                   \
          .begins = {10, 130, 140}}))                                          \
  X(documentsDropout, bf16, 64,                                                \
    (Case{.sequence = 100,                                                     \
          .kvHeads = 1,                                                        \
          .rate = 0.25,                                                        \
          .documents = true,                                                   \
          .begins = {20, 64}}))                                                \
  X(documentsDropout32, f32, 32,                                               \
    (Case{.bf16 = false,                                                       \
          .sequence = 100,                                                     \
          .kvHeads = 1,                                                        \
          .d = 32,                                                             \
          .rate = 0.25,                                                        \
          .documents = true,                                                   \
          .begins = {33, 64}}))

#define ATTENTION_TEST_CASE(name, type, padded, shape)                         \
  inline constexpr Case name##Case = shape;
ATTENTION_TEST_CASES(ATTENTION_TEST_CASE)

} // namespace meshwork::attention::test
