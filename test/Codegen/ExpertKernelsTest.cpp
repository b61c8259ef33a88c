// The kernels around experts, executed, against the oracles that the CPU's
// instructions have too (test/Support/Experts.h): numbers and copies bit for
// bit, sums of k terms as the tree says, products within what rounding allows.
#include <cmath>

#include "test/Codegen/DeviceCode.h"
#include "test/Support/Experts.h"

namespace meshwork::codegen {
namespace {
using test::Values;

constexpr int64_t apart = 1 << 20; // bytes between what one instruction writes

std::vector<int32_t> numbers(const Values &values) {
  return {values.begin(), values.end()};
}
Values valuesOf(const Buffer<int32_t> &buffer) {
  return {buffer.data(), buffer.data() + buffer.size()};
}
std::string numbersType(std::vector<int64_t> shape) {
  return memref(std::move(shape), "i32");
}

TEST(ExpertKernels, Pick) {
  for (const test::Shape &s : test::shapes) {
    std::vector<int32_t> chosen = numbers(test::choicesOf(s));
    chosen.back() = INT32_MIN;
    chosen.front() = INT32_MAX;
    int64_t stride = s.experts + 3; // of rows with gaps
    std::string scores = memref({s.tokens, s.experts}, "f32", {stride, 1}),
                choices = numbersType({s.tokens, s.k}),
                picked = memref({s.tokens, s.k}, "f32");
    std::string views = view("scores", scores) + view("choices", choices) +
                        view("picked", picked, 0, "b");
    Instructions pick(
        views +
        "schedule.pick \"p\" flops 0 bytes 0 %scores, %choices to "
        "%picked : " +
        scores + ", " + choices + " to " + picked);
    Instructions grad(view("choices", choices) + view("picked", picked) +
                      view("scores", scores, 0, "b") +
                      "schedule.pick_grad \"p\" flops 0 bytes 0 %choices, "
                      "%picked to %scores : " +
                      choices + ", " + picked + " to " + scores);
    Buffer<float> from(randomRows<float>(s.tokens * stride, 1)),
        out(s.choices()), gradient(s.tokens * stride);
    Buffer<int32_t> at(chosen);
    pick.run(0, from, at, out);
    grad.run(0, at, out, gradient);
    std::vector<float> expected(s.tokens * stride);
    for (int64_t i = 0; i < s.choices(); ++i) {
      int64_t e = test::expertOf(chosen[i], 0, s.experts),
              place = i / s.k * stride + e;
      ASSERT_EQ(out[i], e < 0 ? 0 : from[place]) << "choice " << i;
      if (e >= 0)
        expected[place] += out[i];
    }
    for (int64_t row = 0; row < s.tokens; ++row)
      for (int64_t e = 0; e < s.experts; ++e)
        ASSERT_EQ(gradient[row * stride + e], expected[row * stride + e]);
  }
}

void expectSorted(const test::Shape &s, const Values &choices, int32_t first,
                  int64_t experts, int64_t rows) {
  std::string all = numbersType({s.tokens, s.k}), list = numbersType({rows}),
              begins = numbersType({experts + 1}), one = numbersType({});
  Instructions code(
      view("choices", all) + view("first", one) + view("order", list, 0, "b") +
      view("tokens", list, apart, "b") + view("places", all, 2 * apart, "b") +
      view("begins", begins, 3 * apart, "b") +
      "schedule.sort_rows \"s\" flops 0 bytes 0 %choices from "
      "%first : " +
      one + " to %order, %tokens, %places, %begins : " + all + " to " + list +
      ", " + list + ", " + all + ", " + begins);
  Buffer<int32_t> from(numbers(choices)), begin(std::vector<int32_t>{first}),
      order(rows), tokens(rows), places(choices.size()), ends(experts + 1);
  code.run(0, from, begin, order, tokens, places, ends);
  test::Sorted expected = test::sortedRows(choices, s.k, first, experts, rows);
  EXPECT_EQ(valuesOf(order), expected.order);
  EXPECT_EQ(valuesOf(tokens), expected.tokens);
  EXPECT_EQ(valuesOf(places), expected.places);
  EXPECT_EQ(valuesOf(ends), expected.begins);
}

TEST(ExpertKernels, SortRows) {
  for (const test::Shape &s : test::shapes) {
    Values choices = test::choicesOf(s);
    int64_t own = (s.experts + 2) / 3;
    expectSorted(s, choices, 0, s.experts, s.choices() + 5);
    for (int64_t first : {int64_t{1}, own, int64_t{-2}})
      expectSorted(s, choices, static_cast<int32_t>(first), own,
                   std::min(s.k, own) * s.tokens);
  }
  test::Shape few{17, 3, 4}, many{40, 2, 1100}; // more experts than threads
  expectSorted(few, Values(few.choices(), 1), 0, 2, 34); // without room for all
  for (double choice : {test::lowest, test::highest})
    for (int32_t first : {INT32_MIN, 0, INT32_MAX})
      expectSorted(few, Values(few.choices(), choice), first, 4, 51);
  expectSorted(many, test::choicesOf(many), 0, many.experts, many.choices());
}

void expectLimited(const test::Shape &s, const Values &choices, int64_t experts,
                   int64_t most, int64_t group) {
  std::string all = numbersType({s.tokens, s.k});
  Instructions code(view("choices", all) + view("kept", all, 0, "b") +
                    "schedule.limit_choices \"l\" flops 0 bytes 0 %choices "
                    "experts " +
                    std::to_string(experts) + " most " + std::to_string(most) +
                    " group " + std::to_string(group) + " to %kept : " + all +
                    " to " + all);
  Buffer<int32_t> from(numbers(choices)), kept(choices.size());
  code.run(0, from, kept);
  EXPECT_EQ(valuesOf(kept), test::limited(choices, s.k, experts, most, group));
}

TEST(ExpertKernels, LimitChoices) {
  for (const test::Shape &s : test::shapes)
    for (int64_t most : {int64_t{1}, s.tokens / 3 + 1})
      for (int64_t group : {int64_t{1}, s.tokens})
        expectLimited(s, test::choicesOf(s), s.experts, most, group);
  // Several parts of a group, and more experts than threads.
  test::Shape groups{1400, 3, 8}, many{40, 2, 1100}, few{24, 3, 8};
  expectLimited(groups, test::choicesOf(groups), 8, 90, 700);
  expectLimited(many, test::choicesOf(many), many.experts, 1, 20);
  for (double choice : {test::lowest, test::highest, 3.0})
    for (int64_t experts : {3, 4})
      expectLimited(few, Values(few.choices(), choice), experts, 5, 8);
}

/// `most` choices of a rank in a round.
void expectSlots(const Values &choices, int64_t k, int64_t ranks, int64_t slots,
                 int64_t most) {
  int64_t tokens = static_cast<int64_t>(choices.size()) / k,
          ofToken = std::min<int64_t>(k, 2),
          ofRound = std::min(slots, most / ofToken),
          rounds = (tokens + ofRound - 1) / ofRound, room = std::min(k, ranks);
  std::string all = numbersType({tokens, k}),
              table = numbersType({rounds * ranks, slots}),
              few = numbersType({tokens, room}),
              places = numbersType({rounds * tokens, room}),
              one = numbersType({});
  Instructions code(
      view("choices", all) + view("slots", table, 0, "b") +
      view("ranks", few, apart, "b") + view("places", places, 2 * apart, "b") +
      view("last", one, 3 * apart, "b") +
      "schedule.assign_slots \"a\" flops 0 bytes 0 %choices experts 2 most " +
      std::to_string(most) + " to %slots, %ranks, %places, %last : " + all +
      " to " + table + ", " + few + ", " + places + ", " + one);
  Buffer<int32_t> from(numbers(choices)), tokensAt(rounds * ranks * slots),
      goesTo(tokens * room), at(rounds * tokens * room), last(1);
  code.run(0, from, tokensAt, goesTo, at, last);
  test::Assigned expected =
      test::assigned(choices, k, ranks, slots, most, rounds);
  EXPECT_EQ(valuesOf(tokensAt), expected.slots);
  EXPECT_EQ(valuesOf(goesTo), expected.ranks);
  EXPECT_EQ(valuesOf(at), expected.places);
  EXPECT_EQ(last[0], expected.last);
}

TEST(ExpertKernels, AssignSlots) {
  for (const test::Shape &s : test::shapes)
    for (int64_t slots : {s.tokens, (s.tokens + 2) / 3})
      for (int64_t most : {2 * slots, slots + 1})
        expectSlots(test::choicesOf(s), s.k, (s.experts + 1) / 2, slots, most);
  // Every round ends within a block's tokens; more ranks than a warp's lanes.
  test::Shape many{2100, 3, 80};
  expectSlots(test::choicesOf(many), 3, 40, 300, 600);
  expectSlots(test::choicesOf(many), 3, 40, 300, 370);
  for (double choice : {5.0, -1.0, test::highest, test::lowest})
    expectSlots(Values(34, choice), 2, 4, 4, 7);
}

template <typename To, typename From> To convertTo(From from) {
  if constexpr (std::is_same_v<From, To>)
    return from;
  else
    return rounded<To>(floatOf(from));
}

template <typename From, typename To> void expectTaken(int64_t width) {
  constexpr int64_t count = 7;
  std::vector<int32_t> rows = {0, 6, -1, 7, 3, 3, INT32_MAX, INT32_MIN, 1, 0};
  auto many = static_cast<int64_t>(rows.size());
  bool isOfNumbers = std::is_same_v<From, int32_t>;
  std::string from = isOfNumbers ? "i32" : typeName<From>(),
              to = isOfNumbers ? "i32" : typeName<To>();
  std::string table = memref({count, width}, from.c_str(), {width + 2, 1}),
              list = numbersType({2, many / 2}),
              out = memref({2, many / 2, width}, to.c_str());
  Instructions code(view("table", table) + view("rows", list) +
                    view("out", out, 0, "b") +
                    "schedule.take_rows \"t\" flops 0 bytes 0 %table, %rows to "
                    "%out : " +
                    table + ", " + list + " to " + out);
  Buffer<From> rowsOfTable(count * (width + 2));
  for (size_t i = 0; i < rowsOfTable.size(); ++i)
    rowsOfTable[i] = rounded<From>(static_cast<float>(i) * 0.37f - 20);
  Buffer<int32_t> at(rows);
  Buffer<To> result(many * width);
  code.run(0, rowsOfTable, at, result);
  for (int64_t i = 0; i < many; ++i)
    for (int64_t column = 0; column < width; ++column) {
      bool isThere = rows[i] >= 0 && rows[i] < count;
      To absent = isOfNumbers ? static_cast<To>(-1) : To(0);
      From source = rowsOfTable[(isThere ? rows[i] : 0) * (width + 2) + column];
      To expected = absent;
      if (isThere)
        expected = convertTo<To>(source);
      ASSERT_EQ(result[i * width + column], expected) << i << " " << column;
    }
}

TEST(ExpertKernels, TakeRows) {
  for (int64_t width : {1, 3, 40}) {
    expectTaken<float, float>(width);
    expectTaken<float, uint16_t>(width);
    expectTaken<uint16_t, float>(width);
    expectTaken<uint16_t, uint16_t>(width);
    expectTaken<int32_t, int32_t>(width);
  }
}

template <typename From, typename To>
void expectCombined(const test::Shape &s, int64_t width) {
  Values choices = test::choicesOf(s);
  if (s.tokens == 17 && s.k > 2) // equal ones, and negative ones with a row
    choices[0] = choices[1] = choices[2] = -7;
  int64_t rows = s.choices();
  Values places = test::sortedRows(choices, s.k, 0, s.experts, rows).places;
  for (int64_t i = 0; choices[0] == -7 && i < 3; ++i)
    places[i] = static_cast<double>(i);
  std::string src = memref({rows, width}, typeName<From>()),
              all = numbersType({s.tokens, s.k}),
              out = memref({s.tokens, width}, typeName<To>());
  Instructions code(
      view("src", src) + view("places", all) + view("choices", all) +
      view("out", out, 0, "b") +
      "schedule.combine_rows \"c\" flops 0 bytes 0 %src, %places, "
      "%choices to %out : " +
      src + ", " + all + ", " + all + " to " + out);
  Buffer<From> from(randomRows<From>(rows * width, 5));
  Buffer<int32_t> at(numbers(places)), of(numbers(choices));
  Buffer<To> result(s.tokens * width);
  code.run(0, from, at, of, result);
  for (int64_t token = 0; token < s.tokens; ++token)
    for (int64_t column = 0; column < width; ++column) {
      test::Leaves leaves;
      for (int64_t i = token * s.k; i < (token + 1) * s.k; ++i)
        if (at[i] >= 0 && at[i] < rows)
          leaves.emplace_back(static_cast<uint32_t>(of[i]),
                              floatOf(from[at[i] * width + column]));
      float sum = leaves.empty() ? 0 : test::treeSum(leaves, 31);
      ASSERT_EQ(floatOf(result[token * width + column]),
                floatOf(rounded<To>(sum)))
          << s.k << " choices, token " << token << ", column " << column;
    }
}

TEST(ExpertKernels, CombineRows) {
  for (const test::Shape &s : test::shapes)
    for (int64_t width : {1, 13, s.tokens < 100 ? 1096 : 24}) {
      expectCombined<float, float>(s, width);
      expectCombined<uint16_t, uint16_t>(s, width);
      expectCombined<float, uint16_t>(s, width);
    }
  // Sums that wait would not fit with all threads.
  expectCombined<uint16_t, float>({5, 60, 64}, 1040);
}

/// Products of experts' rows. Tolerance: an f32 sum of `terms` terms of [-1, 1)
/// is off by at most terms * terms * 2^-24, and a bf16 result by 2^-9 of it.
struct Products {
  std::vector<int64_t> rows; // of each expert
  int64_t k, n;
  bool transposed = false;           // of the matrices, K is dense
  int64_t behind = 0;                // rows of no expert
  int64_t padding = 0;               // elements between rows
  std::vector<int32_t> planted = {}; // begins of any kind

  int64_t experts() const { return static_cast<int64_t>(rows.size()); }
  std::vector<int32_t> begins() const {
    std::vector<int32_t> begins = {0};
    for (int64_t count : rows)
      begins.push_back(begins.back() + static_cast<int32_t>(count));
    return planted.empty() ? begins : planted;
  }
  int64_t all() const {
    int64_t sum = behind;
    for (int64_t count : rows)
      sum += count;
    return sum;
  }
  std::vector<std::pair<int64_t, int64_t>> ranges() const {
    std::vector<int32_t> own = begins();
    return test::rangesOf(Values(own.begin(), own.end()), all());
  }
  std::string rowsType(int64_t width, const char *type) const {
    return memref({all(), width}, type, {width + padding, 1});
  }
  int64_t line() const { return (transposed ? k : n) + padding; }
  int64_t matrix() const { return (transposed ? n : k) * line(); }
  std::string matricesType(const char *type) const {
    return memref({experts(), k, n}, type,
                  {matrix(), transposed ? 1 : line(), transposed ? line() : 1});
  }
  int64_t at(int64_t e, int64_t i, int64_t j) const {
    return e * matrix() + (transposed ? j * line() + i : i * line() + j);
  }
};

template <typename To> double toleranceOf(int64_t terms) {
  double sum = static_cast<double>(terms);
  return sum * sum * 0x1p-24 + (sizeof(To) == 2 ? (sum + 1) * 0x1p-9 : 0);
}

template <typename T, typename To> void expectProduct(const Products &c) {
  std::string lhs = c.rowsType(c.k, typeName<T>()),
              rhs = c.matricesType(typeName<T>()),
              begins = numbersType({c.experts() + 1}),
              out = c.rowsType(c.n, typeName<To>());
  Instructions code(
      view("lhs", lhs) + view("rhs", rhs) + view("begins", begins) +
      view("out", out, 0, "b") +
      "schedule.grouped_product \"g\" flops 0 bytes 0 %lhs, %rhs, "
      "%begins to %out : " +
      lhs + ", " + rhs + ", " + begins + " to " + out);
  int64_t in = c.k + c.padding, to = c.n + c.padding;
  Buffer<T> rows(randomRows<T>(c.all() * in, 1)),
      matrices(randomRows<T>(c.experts() * c.matrix(), 2));
  Buffer<int32_t> at(c.begins());
  Buffer<To> result(c.all() * to);
  code.run(0, rows, matrices, at, result);
  std::vector<int64_t> owner(c.all(), -1);
  int64_t expert = 0;
  for (auto [begin, end] : c.ranges())
    std::fill(owner.begin() + begin, owner.begin() + end, expert++);
  for (int64_t r = 0; r < c.all(); ++r)
    for (int64_t n = 0; n < c.n; ++n) {
      double sum = 0;
      for (int64_t k = 0; owner[r] >= 0 && k < c.k; ++k)
        sum += double{floatOf(rows[r * in + k])} *
               floatOf(matrices[c.at(owner[r], k, n)]);
      double found = floatOf(result[r * to + n]);
      ASSERT_LE(std::abs(found - sum), owner[r] < 0 ? 0 : toleranceOf<To>(c.k))
          << "row " << r << " of expert " << owner[r] << ", column " << n;
    }
}

template <typename T, typename To> void expectGradient(const Products &c) {
  std::string lhs = c.rowsType(c.k, typeName<T>()),
              rhs = c.rowsType(c.n, typeName<T>()),
              begins = numbersType({c.experts() + 1}),
              dst = c.matricesType(typeName<To>());
  Instructions code(
      view("lhs", lhs) + view("rhs", rhs) + view("begins", begins) +
      view("dst", dst, 0, "b") +
      "schedule.grouped_gradient \"g\" flops 0 bytes 0 after_first "
      "%lhs, %rhs, %begins to %dst : " +
      lhs + ", " + rhs + ", " + begins + " to " + dst);
  int64_t down = c.k + c.padding, across = c.n + c.padding;
  Buffer<T> left(randomRows<T>(c.all() * down, 1)),
      right(randomRows<T>(c.all() * across, 2));
  Buffer<int32_t> at(c.begins());
  std::vector<To> old = randomRows<To>(c.experts() * c.matrix(), 3);
  for (bool adds : {false, true}) {
    Buffer<To> result(old);
    code.run(adds, left, right, at, result);
    for (int64_t expert = 0; auto [begin, end] : c.ranges()) {
      for (int64_t k = 0; k < c.k; ++k)
        for (int64_t n = 0; n < c.n; ++n) {
          int64_t place = c.at(expert, k, n);
          double sum = adds ? floatOf(old[place]) : 0;
          for (int64_t r = begin; r < end; ++r)
            sum += double{floatOf(left[r * down + k])} *
                   floatOf(right[r * across + n]);
          ASSERT_LE(std::abs(floatOf(result[place]) - sum),
                    toleranceOf<To>(end - begin + 1))
              << "expert " << expert << " at " << k << ", " << n;
        }
      ++expert;
    }
  }
}

template <typename Check> void forEachProducts(Check check) {
  const std::vector<int64_t> mixed = {3, 0, 17, 1, 0, 40};
  for (bool transposed : {false, true}) {
    check(Products{mixed, 24, 40, transposed, 5});
    check(Products{mixed, 33, 7, transposed, 0, 3}); // element by element
    check(Products{{130, 0, 300, 127}, 136, 200, transposed, 40, 8});
    check(Products{{1}, 1, 1, transposed});
    check(Products{
        mixed, 16, 16, transposed, 9, 0, {7, -4, 60, 3, INT32_MAX, 2, 9}});
    check(Products{{0, 0}, 16, 24, transposed, 130});
  }
  check(Products{std::vector<int64_t>(70, 2), 8, 16}); // more than lanes
}

TEST(ExpertKernels, GroupedProduct) {
  forEachProducts([](const Products &c) {
    expectProduct<uint16_t, uint16_t>(c);
    expectProduct<uint16_t, float>(c);
    expectProduct<float, float>(c);
  });
}

TEST(ExpertKernels, GroupedGradient) {
  forEachProducts([](const Products &c) {
    expectGradient<uint16_t, float>(c);
    expectGradient<uint16_t, uint16_t>(c);
    expectGradient<float, float>(c);
  });
}

} // namespace
} // namespace meshwork::codegen
