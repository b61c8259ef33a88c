// The instructions around experts, against their formulas in double precision:
// picks, rows in the order of experts, copies and sums of these.
//
// Tolerance: nothing is rounded but sums of k terms of [-1, 1) in f32, off by
// at most k * k * 2^-24, and results in bf16, by 2^-9 of at most k.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "test/Runtime/cpu/TestProgram.h"
#include "test/Support/Experts.h"

namespace meshwork::runtime::test {
using namespace meshwork::test;
namespace {

/// Runs under one thread and under three; both must leave the same bytes.
template <typename Op> void runBoth(TestProgram &program, const Op &op) {
  std::vector<std::byte> before = program.bytes();
  absl::Status status = program.run(op, {.threads = 1});
  ASSERT_TRUE(status.ok()) << status;
  std::vector<std::byte> one = program.bytes();
  program.restore(before);
  ASSERT_TRUE(program.run(op, {.threads = 3}).ok());
  EXPECT_TRUE(program.bytes() == one) << "differs under three threads";
}

TEST(Pick, TakesScoresAndGivesTheirGradients) {
  for (const Shape &s : shapes)
    for (bool hostile : {false, true}) {
      Values choices = choicesOf(s);
      if (hostile) {
        choices.front() = highest;
        choices.back() = lowest;
      }
      Values scores = randomValues(s.tokens * s.experts, DType::f32, 1),
             dout = randomValues(s.choices(), DType::f32, 2);
      Values expected(s.choices()), gradient(scores.size());
      for (int64_t i = 0; i < s.choices(); ++i)
        if (int64_t e = expertOf(choices[i], 0, s.experts); e >= 0) {
          expected[i] = scores[i / s.k * s.experts + e];
          gradient[i / s.k * s.experts + e] += dout[i];
        }
      TestProgram program;
      plan::PickT pick;
      pick.scores = program.add(DType::f32, {s.tokens, s.experts}, scores);
      pick.choices = program.add(DType::i32, {s.tokens, s.k}, choices);
      pick.out = program.add(DType::f32, {s.tokens, s.k});
      runBoth(program, pick);
      EXPECT_EQ(program.read(pick.out), expected);
      plan::PickGradT grad;
      grad.choices = pick.choices;
      grad.dout = program.add(DType::f32, {s.tokens, s.k}, dout);
      grad.dscores = program.add(DType::f32, {s.tokens, s.experts});
      runBoth(program, grad);
      EXPECT_LE(maxDifference(program.read(grad.dscores), gradient),
                hostile ? s.k * 0x1p-24 : 0);
    }
}

TEST(Pick, ReadsRowsWithGapsAndAddsEqualChoicesInOrder) {
  TestProgram program;
  plan::PickGradT op;
  op.choices = program.addView(program.addBuffer(DType::i32, 20), DType::i32,
                               {2, 3}, {10, 1});
  op.dout = program.addView(program.addBuffer(DType::f32, 20), DType::f32,
                            {2, 3}, {7, 1});
  op.dscores = program.addView(program.addBuffer(DType::f32, 20), DType::f32,
                               {2, 4}, {9, 1});
  program.write(op.choices, {1, 1, 1, 3, 0, 3});
  program.write(op.dout, {0x1p24, 1, -0x1p24, 1, 2, 3});
  runBoth(program, op);
  EXPECT_EQ(program.read(op.dscores), (Values{0, 0, 0, 0, 2, 0, 0, 4}));
}

void checkSort(const Shape &s, const Values &choices, double first,
               int64_t experts, int64_t rows) {
  TestProgram program;
  plan::SortRowsT op;
  op.choices = program.add(DType::i32, {s.tokens, s.k}, choices);
  if (first != 0)
    op.first_expert = program.add(DType::i32, {1}, {first});
  op.order = program.add(DType::i32, {rows});
  op.tokens = program.add(DType::i32, {rows});
  op.places = program.add(DType::i32, {s.tokens, s.k});
  op.begins = program.add(DType::i32, {experts + 1});
  runBoth(program, op);
  Sorted expected = sortedRows(choices, s.k, first, experts, rows);
  EXPECT_EQ(program.read(op.order), expected.order);
  EXPECT_EQ(program.read(op.tokens), expected.tokens);
  EXPECT_EQ(program.read(op.places), expected.places);
  EXPECT_EQ(program.read(op.begins), expected.begins);
}

TEST(SortRows, AsASortDoes) {
  for (const Shape &s : shapes) {
    Values choices = choicesOf(s);
    int64_t rows = s.choices();
    checkSort(s, choices, 0, s.experts, rows);
    checkSort(s, choices, 0, s.experts, rows + 5);
    int64_t own = (s.experts + 2) / 3;
    for (double first : {0.0, 1.0, static_cast<double>(own), -2.0})
      checkSort(s, choices, first, own, std::min(s.k, own) * s.tokens);
  }
}

TEST(SortRows, OfParts) { // Several threads sort so many.
  Shape s{3001, 8, 128};
  checkSort(s, choicesOf(s), 0, s.experts, s.choices());
  checkSort(s, choicesOf(s), 32, 32, s.choices());
}

TEST(SortRows, WritesNothingPastTheRows) {
  Shape s{17, 3, 4};
  Values equal(s.choices(), 1), extreme(s.choices(), highest);
  checkSort(s, equal, 0, 2, 34); // All to one, which has no room for them.
  checkSort(s, equal, 1, 1, 17);
  checkSort(s, extreme, 0, 4, 51);
  checkSort(s, extreme, lowest, 4, 51);
  checkSort(s, extreme, highest, 4, 51);
  checkSort(s, Values(s.choices(), lowest), highest, 4, 51);
  checkSort(s, Values(s.choices(), lowest), lowest, 4, 51);
}

void checkLimit(const Shape &s, const Values &choices, int64_t experts,
                int64_t most, int64_t group) {
  TestProgram program;
  plan::LimitChoicesT op;
  op.choices = program.add(DType::i32, {s.tokens, s.k}, choices);
  op.kept = program.add(DType::i32, {s.tokens, s.k});
  op.experts = experts, op.most = most, op.group = group;
  runBoth(program, op);
  EXPECT_EQ(program.read(op.kept), limited(choices, s.k, experts, most, group));
}

TEST(LimitChoices, LeavesTheFirstOfEachExpertInAGroup) {
  for (const Shape &s : shapes)
    for (int64_t most : {int64_t{1}, s.tokens / 3 + 1, s.tokens})
      for (int64_t group : {int64_t{1}, s.tokens})
        checkLimit(s, choicesOf(s), s.experts, most, group);
  Shape s{24, 3, 8};
  for (int64_t group : {2, 4, 12})
    checkLimit(s, choicesOf(s), s.experts, 2, group);
  for (double choice : {lowest, highest, 3.0}) { // none of four experts, or one
    Values equal(s.choices(), choice);
    checkLimit(s, equal, 4, 5, 8);
    checkLimit(s, equal, 3, 5, 8);
  }
}

TEST(LimitChoices, FirstChoicesComeBeforeSecondOnes) {
  TestProgram program;
  plan::LimitChoicesT op;
  op.choices = program.add(DType::i32, {3, 2}, {0, 1, 1, 0, 2, 1});
  op.kept = program.add(DType::i32, {3, 2});
  op.experts = 3, op.most = 1, op.group = 3;
  runBoth(program, op);
  EXPECT_EQ(program.read(op.kept), (Values{0, -1, 1, -1, 2, -1}));
}

/// `most` choices of a rank in a round; 0: as many as its slots can bring.
void checkSlots(const Values &choices, int64_t k, int64_t ranks, int64_t slots,
                int64_t most = 0) {
  int64_t tokens = static_cast<int64_t>(choices.size()) / k,
          ofToken = std::min<int64_t>(k, 2), room = std::min(k, ranks);
  most = most ? std::max(most, ofToken) : slots * ofToken;
  int64_t ofRound = std::min(slots, most / ofToken),
          rounds = (tokens + ofRound - 1) / ofRound;
  TestProgram program;
  plan::AssignSlotsT op;
  op.experts = 2;
  op.most_choices = most;
  op.choices = program.add(DType::i32, {tokens, k}, choices);
  op.slots = program.add(DType::i32, {rounds * ranks, slots});
  op.ranks = program.add(DType::i32, {tokens, room});
  op.places = program.add(DType::i32, {rounds * tokens, room});
  op.last = program.add(DType::i32, {1});
  runBoth(program, op);
  Assigned expected = assigned(choices, k, ranks, slots, most, rounds);
  EXPECT_EQ(program.read(op.slots), expected.slots);
  EXPECT_EQ(program.read(op.ranks), expected.ranks);
  EXPECT_EQ(program.read(op.places), expected.places);
  EXPECT_EQ(program.read(op.last), Values{expected.last});
}

TEST(AssignSlots, TakesTokensInTheirOrder) {
  for (const Shape &s : shapes)
    for (int64_t slots : {s.tokens, (s.tokens + 2) / 3, int64_t{1}})
      for (int64_t most : {int64_t{0}, slots, int64_t{1}})
        checkSlots(choicesOf(s), s.k, (s.experts + 1) / 2, slots, most);
}

/// All to one rank: as many rounds as there can be. None: one, without tokens.
TEST(AssignSlots, TakesTheWorstChoices) {
  Values one(34, 5), none(34, -1), extreme(34, highest), lowest_(34, lowest);
  for (const Values &choices : {one, none, extreme, lowest_})
    for (int64_t slots : {1, 4, 17})
      checkSlots(choices, 2, 4, slots);
  EXPECT_EQ(assigned(one, 2, 4, 4, 8, 5).last, 4);
}

TEST(TakeRows, TakesNumbers) {
  TestProgram program;
  plan::TakeRowsT op;
  op.table = program.add(DType::i32, {3, 2}, {1, 2, 3, 7, -9, 6});
  op.rows = program.add(DType::i32, {4}, {2, -1, 1, 3});
  op.out = program.add(DType::i32, {4, 2});
  runBoth(program, op);
  EXPECT_EQ(program.read(op.out), (Values{-9, 6, -1, -1, 3, 7, -1, -1}));
}

TEST(TakeRows, CopiesRowsAndZerosWhereThereIsNone) {
  for (DType from : {DType::f32, DType::bf16})
    for (DType to : {DType::f32, DType::bf16})
      for (int64_t width : {1, 3, 40}) {
        constexpr int64_t count = 7;
        Values rows = {0, 6, -1, 7, 3, 3, highest, lowest, 1, 0};
        auto many = static_cast<int64_t>(rows.size());
        Values table = randomValues(count * width, from, 3);
        Values expected;
        for (double row : rows)
          for (int64_t i = 0; i < width; ++i)
            expected.push_back(row >= 0 && row < count
                                   ? roundTo(to, table[row * width + i])
                                   : 0);
        TestProgram program;
        plan::TakeRowsT op;
        op.table = program.addView(program.addBuffer(from, count * (width + 2)),
                                   from, {count, width}, {width + 2, 1});
        program.write(op.table, table);
        op.rows = program.add(DType::i32, {2, many / 2}, rows);
        op.out = program.add(to, {2, many / 2, width});
        runBoth(program, op);
        EXPECT_EQ(program.read(op.out), expected);
      }
}

TEST(TakeRows, OfNumbers) {
  TestProgram program;
  plan::TakeRowsT op;
  op.table = program.add(DType::f32, {4}, {5, 6, 7, 8});
  op.rows = program.add(DType::i32, {3}, {3, -1, 0});
  op.out = program.add(DType::f32, {3});
  runBoth(program, op);
  EXPECT_EQ(program.read(op.out), (Values{8, 0, 5}));
}

struct Combination {
  Shape shape;
  int64_t width;
  DType from = DType::f32, to = DType::f32;
  Values src, places, choices;

  Combination(const Shape &shape, int64_t width, DType from, DType to)
      : shape(shape), width(width), from(from), to(to),
        choices(choicesOf(shape)) {
    Sorted sorted =
        sortedRows(choices, shape.k, 0, shape.experts, shape.choices());
    places = sorted.places;
    src = randomValues(shape.choices() * width, from, 5);
  }

  /// The sum of those of `keep`.
  template <typename Keep> Values expected(Keep keep) const {
    Values sums;
    for (int64_t token = 0; token < shape.tokens; ++token)
      for (int64_t column = 0; column < width; ++column) {
        Leaves leaves;
        for (int64_t i = token * shape.k; i < (token + 1) * shape.k; ++i)
          if (places[i] >= 0 && places[i] < shape.choices() && keep(choices[i]))
            leaves.emplace_back(
                static_cast<uint32_t>(static_cast<int64_t>(choices[i])),
                static_cast<float>(src[places[i] * width + column]));
        sums.push_back(leaves.empty() ? 0 : roundTo(to, treeSum(leaves, 31)));
      }
    return sums;
  }

  Values run(const Values &places) const {
    TestProgram program;
    plan::CombineRowsT op;
    op.src = program.add(from, {shape.choices(), width}, src);
    op.places = program.add(DType::i32, {shape.tokens, shape.k}, places);
    op.choices = program.add(DType::i32, {shape.tokens, shape.k}, choices);
    op.out = program.add(to, {shape.tokens, width});
    runBoth(program, op);
    return program.read(op.out);
  }
};

TEST(CombineRows, AddsUpAlongOneTree) {
  for (const Shape &s : shapes)
    for (DType from : {DType::f32, DType::bf16})
      for (DType to : {DType::f32, DType::bf16})
        for (int64_t width : {1, 13, s.tokens < 100 ? 1100 : 20}) {
          Combination c(s, width, from, to);
          EXPECT_EQ(c.run(c.places), c.expected([](double) { return true; }));
        }
}

/// The sum of a rank's experts is a term of the sum of all, bit for bit.
TEST(CombineRows, SumsOfSubtreesAddUp) {
  Combination c({50, 16, 64}, 33, DType::f32, DType::f32);
  Values whole = c.run(c.places);
  for (int64_t ranks : {2, 4}) {
    std::vector<Values> parts;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      Values own = c.places;
      for (size_t i = 0; i < own.size(); ++i)
        if (std::floor(c.choices[i] * ranks / 64) != rank)
          own[i] = -1;
      parts.push_back(c.run(own));
    }
    for (; parts.size() > 1;
         parts.erase(parts.begin() + parts.size() / 2, parts.end()))
      for (size_t half = 0; half < parts.size() / 2; ++half)
        for (size_t i = 0; i < whole.size(); ++i) {
          float sum = static_cast<float>(parts[2 * half][i]) +
                      static_cast<float>(parts[2 * half + 1][i]);
          parts[half][i] = sum;
        }
    EXPECT_EQ(parts[0], whole) << ranks << " ranks";
  }
}

TEST(CombineRows, ReadsNothingOutsideWhateverPlacesHold) {
  Combination c({17, 40, 64}, 5, DType::f32, DType::f32);
  for (size_t i = 0; i < c.places.size(); ++i) {
    if (i % 4 == 1)
      c.places[i] = i % 3 == 0 ? highest : lowest;
    if (i % 4 == 2)
      c.places[i] = static_cast<double>(c.shape.choices());
    if (i % 5 == 0) // Equal ones, and ones that are no expert.
      c.choices[i] = i % 2 ? lowest : -1;
    if (i % 7 == 0)
      c.choices[i] = i % 2 ? highest : 3;
  }
  EXPECT_EQ(c.run(c.places), c.expected([](double) { return true; }));
}

TEST(Routing, RefusesOtherTypesAndSizes) {
  TestProgram program;
  uint32_t floats = program.add(DType::f32, {4, 2}),
           numbers = program.add(DType::i32, {4, 2}),
           other = program.add(DType::i32, {3}),
           one = program.add(DType::i32, {1}),
           out = program.add(DType::f32, {4, 8});
  auto messageOf = [&](auto op) {
    return std::string(program.run(op).message());
  };
  plan::PickT pick;
  pick.scores = out, pick.choices = floats, pick.out = floats;
  EXPECT_EQ(messageOf(pick), "instruction \"under.test\" (Pick): choices is "
                             "f32[4, 2] with strides [2, 1], expected i32");
  plan::SortRowsT sort;
  sort.choices = numbers, sort.order = other, sort.tokens = numbers;
  sort.places = numbers, sort.begins = other;
  EXPECT_EQ(messageOf(sort), "instruction \"under.test\" (SortRows): there "
                             "are 8 tokens, expected 3");
  plan::LimitChoicesT limit;
  limit.choices = limit.kept = numbers;
  limit.experts = limit.most = 1, limit.group = 3;
  EXPECT_EQ(messageOf(limit), "instruction \"under.test\" (LimitChoices): "
                              "expected experts, room for a choice of each, a "
                              "group that divides the tokens, and fewer than "
                              "2^31 choices");
  plan::AssignSlotsT slots;
  slots.experts = 1, slots.choices = slots.ranks = numbers;
  slots.slots = slots.places = numbers, slots.last = one;
  EXPECT_EQ(messageOf(slots), "instruction \"under.test\" (AssignSlots): there "
                              "are too few slots for the tokens, or for their "
                              "choices");
  plan::TakeRowsT take;
  take.table = floats, take.rows = other, take.out = out;
  EXPECT_EQ(messageOf(take), "instruction \"under.test\" (TakeRows): there are "
                             "4 rows of out, expected 3");
  plan::CombineRowsT combine;
  combine.src = floats, combine.places = combine.choices = numbers;
  combine.out = out;
  EXPECT_EQ(messageOf(combine),
            "instruction \"under.test\" (CombineRows): there are 8 elements in "
            "a row of out, expected 2");
}

} // namespace
} // namespace meshwork::runtime::test
