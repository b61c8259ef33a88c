// Orders of actions, and the lives and copies that follow from them.
#include "lib/Plan/Lives.h"
#include "lib/Plan/Transfers.h"
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace meshwork::plan {
namespace {

// Lists of all tables here, of ten instructions each.
enum List : uint32_t { once, step, forward, backward, update };
const std::vector<ListShape> lists = {{ListKind::once, 0, 10},
                                      {ListKind::step, 0, 10},
                                      {ListKind::forward, 0, 10},
                                      {ListKind::backward, 0, 10},
                                      {ListKind::update, 0, 10}};

/// "F0 F1 B0 B1" between step and update.
ActionTable tableOf(const std::vector<std::pair<char, uint32_t>> &middle) {
  std::vector<Action> actions = {{step, 0}};
  for (auto [letter, microbatch] : middle)
    actions.emplace_back(letter == 'F' ? forward : backward, microbatch);
  actions.emplace_back(update, 0);
  return {lists, actions};
}

ActionTable oneByOne(uint32_t microbatches) {
  std::vector<std::pair<char, uint32_t>> middle;
  for (uint32_t m = 0; m < microbatches; ++m) {
    middle.emplace_back('F', m);
    middle.emplace_back('B', m);
  }
  return tableOf(middle);
}

/// 1F1B of a stage that is `ahead` forward passes before its first backward.
ActionTable oneForwardOneBackward(uint32_t microbatches, uint32_t ahead) {
  std::vector<std::pair<char, uint32_t>> middle;
  for (uint32_t m = 0; m < microbatches + ahead; ++m) {
    if (m < microbatches)
      middle.emplace_back('F', m);
    if (m >= ahead)
      middle.emplace_back('B', m - ahead);
  }
  return tableOf(middle);
}

/// Lives of buffers, each given by its touches (list, instruction).
Lives livesOf(const ActionTable &table,
              const std::vector<std::vector<std::pair<List, uint32_t>>> &all,
              int addsUp = -1) {
  Lives lives(table, static_cast<uint32_t>(all.size()));
  for (uint32_t i = 0; i < all.size(); ++i)
    for (auto [list, instruction] : all[i])
      lives.touch({i, list, instruction, static_cast<int>(i) == addsUp});
  lives.finish();
  return lives;
}

TEST(Actions, firstAndLastAreReadOffTheTable) {
  ActionTable table = oneForwardOneBackward(3, 1); // F0 F1 B0 F2 B1 B2
  EXPECT_EQ(table.firstOf(forward), 1u);
  EXPECT_EQ(table.lastOf(forward), 4u);
  EXPECT_EQ(table.firstOf(backward), 3u);
  EXPECT_TRUE(table.isLast(6));
  EXPECT_FALSE(table.isLast(5));
  EXPECT_EQ(table.runsOf(backward), 3u);
  EXPECT_EQ(table.runsOf(once), 0u);
  EXPECT_EQ(table.onceList(), once);
  std::vector<uint32_t> begins;
  for (uint32_t i = 0; i < table.actions().size(); ++i)
    if (table.beginsMicrobatch(i))
      begins.push_back(i);
  EXPECT_EQ(begins, (std::vector<uint32_t>{1, 2, 4}));
}

TEST(Actions, tablesOfPipelinesAreTables) {
  ActionTable table = oneForwardOneBackward(8, 3);
  EXPECT_EQ(ActionTable::problem(lists, table.actions(), 8), "");
  EXPECT_NE(ActionTable::problem(lists, table.actions(), 7), "");
  EXPECT_EQ(textOf(lists[backward], 7), "0B7");
  EXPECT_EQ(textOf({ListKind::forward, 2}, 1), "2F1");
  EXPECT_EQ(nameOf({ListKind::forward, 2}), "forward of stage 2");
}

TEST(Lives, withinAListByInstructions) {
  ActionTable table = oneByOne(2);
  Lives lives = livesOf(table, {{{forward, 0}, {forward, 3}},
                                {{forward, 4}, {forward, 5}},
                                {{forward, 3}}});
  EXPECT_FALSE(lives.meet(0, 1));
  EXPECT_TRUE(lives.meet(0, 2));
  EXPECT_FALSE(lives.meet(1, 2));
}

TEST(Lives, fromForwardToBackwardOfEachMicrobatch) {
  ActionTable table = oneByOne(3);
  Lives lives = livesOf(table, {{{forward, 5}, {backward, 4}},
                                {{forward, 4}},
                                {{forward, 6}},
                                {{backward, 5}},
                                {{backward, 4}},
                                {{update, 0}}});
  EXPECT_FALSE(lives.meet(0, 1));
  EXPECT_TRUE(lives.meet(0, 2));
  EXPECT_FALSE(lives.meet(0, 3));
  EXPECT_TRUE(lives.meet(4, 0));
  EXPECT_FALSE(lives.meet(0, 5));
  EXPECT_EQ(lives.copiesOf(0), 1u);
}

// What is read again by the next microbatch, or added to by it.
TEST(Lives, whatOtherListsTouchLivesThroughAllMicrobatches) {
  for (uint32_t microbatches : {1u, 2u, 5u}) {
    bool repeats = microbatches > 1;
    ActionTable table = oneByOne(microbatches);
    Lives lives = livesOf(table,
                          {{{step, 2}, {forward, 3}},     // read by each
                           {{backward, 7}, {update, 2}},  // a sum
                           {{forward, 1}, {backward, 8}}, // a sum that stays
                           {{forward, 2}},
                           {{forward, 4}, {backward, 2}},
                           {{backward, 9}}},
                          /*addsUp=*/2);
    EXPECT_TRUE(lives.meet(0, 3));
    EXPECT_EQ(lives.meet(0, 4), repeats);
    EXPECT_EQ(lives.meet(0, 5), repeats);
    EXPECT_EQ(lives.meet(1, 3), repeats);
    EXPECT_TRUE(lives.meet(1, 5));
    EXPECT_TRUE(lives.meet(2, 4));
    EXPECT_EQ(lives.meet(2, 5), repeats);
  }
}

TEST(Lives, whatIsMadeAtStartLivesAlwaysOrThenOnly) {
  ActionTable table = oneByOne(2);
  Lives lives = livesOf(
      table, {{{once, 1}, {forward, 3}}, {{once, 2}}, {{update, 9}}, {}});
  EXPECT_TRUE(lives.isAlways(0));
  EXPECT_TRUE(lives.meet(0, 1));
  EXPECT_TRUE(lives.meet(0, 2));
  EXPECT_FALSE(lives.meet(1, 2));
  EXPECT_FALSE(lives.isTouched(3));
  EXPECT_FALSE(lives.meet(3, 0));
}

// A stage that is n forward passes ahead keeps n + 1 microbatches alive.
TEST(Lives, pipelinesNeedACopyForEachMicrobatchUnderWay) {
  for (uint32_t ahead : {0u, 1u, 3u}) {
    ActionTable table = oneForwardOneBackward(8, ahead);
    Lives lives = livesOf(table, {{{forward, 5}, {backward, 4}},
                                  {{forward, 1}, {forward, 2}},
                                  {{backward, 3}, {update, 1}}});
    EXPECT_EQ(lives.copiesOf(0), ahead + 1);
    EXPECT_EQ(lives.copiesOf(1), 1u);
    EXPECT_EQ(lives.copiesOf(2), 1u);
    // Another microbatch's kept value is alive in all of a forward pass.
    EXPECT_EQ(lives.meet(0, 1), ahead > 0);
  }
}

// GPipe: all forward passes, then all backward passes.
TEST(Lives, asManyCopiesAsMicrobatchesWhereAllGoForwardFirst) {
  ActionTable table =
      tableOf({{'F', 0}, {'F', 1}, {'F', 2}, {'B', 0}, {'B', 1}, {'B', 2}});
  EXPECT_EQ(livesOf(table, {{{forward, 5}, {backward, 4}}}).copiesOf(0), 3u);
}

// What the runtime writes when a microbatch begins is kept for its last reader.
TEST(Lives, inputsLiveFromTheBeginningOfTheirMicrobatch) {
  ActionTable table = oneForwardOneBackward(8, 2);
  Lives lives(table, 2);
  lives.touch({0, backward, 3}); // read in backward alone
  lives.touchInput(0);
  lives.touch({1, forward, 3});
  lives.touchInput(1);
  lives.finish();
  EXPECT_EQ(lives.copiesOf(0), 3u);
  EXPECT_EQ(lives.copiesOf(1), 1u);
  EXPECT_TRUE(lives.livesInMicrobatch(0));
}

// A rank's coordinates are read in each microbatch and written at load alone.
TEST(Lives, whatIsKeptFromLoadToExitHasOneCopy) {
  ActionTable table = oneForwardOneBackward(8, 2);
  Lives lives(table, 2);
  for (uint32_t buffer : {0u, 1u})
    for (List list : {forward, backward})
      lives.touch({buffer, list, 3});
  lives.keep(0);
  lives.finish();
  EXPECT_EQ(lives.copiesOf(0), 1u);
  EXPECT_EQ(lives.copiesOf(1), 3u);
}

/// Microbatches begin in order and end in another one.
ActionTable shuffled(std::mt19937 &random, uint32_t microbatches) {
  std::vector<std::pair<char, uint32_t>> middle;
  std::vector<uint32_t> open;
  for (uint32_t begun = 0; begun < microbatches || !open.empty();) {
    if (begun < microbatches && (open.empty() || random() % 2)) {
      middle.emplace_back('F', begun);
      open.push_back(begun++);
      continue;
    }
    auto at = open.begin() + random() % open.size();
    middle.emplace_back('B', *at);
    open.erase(at);
  }
  return tableOf(middle);
}

// A microbatch keeps its copy from the first list to the last, no two have one
// at the same time, and there are never more than are alive at once.
TEST(Copies, microbatchesNeverShareOne) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    ActionTable table = shuffled(random, 1 + random() % 9);
    Lives lives = livesOf(
        table, {{{forward, 5}, {backward, 4}}, {{forward, 1}, {forward, 2}}});
    Copies copies = lives.copies();
    std::map<uint32_t, uint32_t> held; // the copy of each open microbatch
    for (uint32_t i = 0; i < table.actions().size(); ++i) {
      auto [list, m] =
          std::pair(table.actions()[i].list(), table.actions()[i].microbatch());
      if (list != forward && list != backward)
        continue;
      uint32_t variant = copies.variantOf(i);
      ASSERT_LT(variant, copies.variantsOf(list));
      uint32_t copy = copies.copyOf(list, variant, lives.groupOf(0));
      ASSERT_LT(copy, lives.copiesOf(0));
      EXPECT_EQ(copies.copyOf(list, variant, lives.groupOf(1)), 0u);
      if (list == forward) {
        for (auto [other, taken] : held)
          EXPECT_NE(taken, copy) << "microbatches " << other << " and " << m;
        held[m] = copy;
      } else {
        EXPECT_EQ(held.at(m), copy);
        held.erase(m);
      }
    }
  }
}

TEST(Copies, tablesThatNeedOneHaveOneVariant) {
  ActionTable table = oneByOne(5);
  Copies copies = livesOf(table, {{{forward, 5}, {backward, 4}}}).copies();
  EXPECT_EQ(copies.variantsOf(forward), 1u);
  EXPECT_EQ(copies.variantOf(3), 0u);
  EXPECT_EQ(copies.variantOf(ActionTable::none), 0u);
}

// The line that memory is measured along does not grow with microbatches.
// Gradients of weights may run before or after what stands behind them.
TEST(Lives, endWithTheLastOfListsInAnyOrder) {
  enum : uint32_t { first, weights, sending };
  const std::vector<ListShape> shapes = {{ListKind::input_grad, 0, 10},
                                         {ListKind::weight_grad, 0, 10},
                                         {ListKind::send_grad, 0, 1},
                                         {ListKind::update, 0, 10}};
  ActionTable table(shapes, {{first, 0},
                             {sending, 0},
                             {first, 1},
                             {weights, 1},
                             {weights, 0},
                             {sending, 1},
                             {3, 0}});
  EXPECT_EQ(ActionTable::problem(shapes, table.actions(), 2), "");
  Lives lives(table, 3);
  for (uint32_t list : {first, weights, sending})
    lives.touch({0, list, 0});
  for (uint32_t list : {first, sending})
    lives.touch({1, list, 0});
  lives.touch({2, sending, 0});
  lives.finish();
  EXPECT_EQ(lives.copiesOf(0), 2u);
  EXPECT_EQ(lives.copiesOf(1), 1u);
  EXPECT_TRUE(lives.meet(0, 2));
  Copies copies = lives.copies();
  auto copyIn = [&](uint32_t action) {
    return copies.copyOf(table.actions()[action].list(),
                         copies.variantOf(action), lives.groupOf(0));
  };
  for (uint32_t action : {0, 1, 4})
    EXPECT_EQ(copyIn(action), 0u) << action;
  for (uint32_t action : {2, 3, 5})
    EXPECT_EQ(copyIn(action), 1u) << action;
}

// A Send may still read when its action is long over.
TEST(Lives, whatIsSentSharesNoBytesInAStep) {
  ActionTable table = oneByOne(2);
  Lives lives(table, 4);
  lives.touch({.buffer = 0, .list = forward, .instruction = 0, .isSent = true});
  lives.touch({1, backward, 9});
  lives.touch({2, update, 9});
  lives.touch({3, once, 0});
  lives.finish();
  EXPECT_TRUE(lives.meet(0, 1));
  EXPECT_TRUE(lives.meet(0, 2));
  EXPECT_FALSE(lives.meet(0, 3));
  EXPECT_EQ(lives.copiesOf(0), 1u);
}

/// Actions awaited, by action, of what forward sends and backward receives.
std::vector<std::vector<uint32_t>> awaited(const ActionTable &table,
                                           std::vector<TransferUse> uses) {
  Transfers transfers(table, {}, uses);
  std::vector<std::vector<uint32_t>> all;
  for (uint32_t i = 0; i < table.actions().size(); ++i) {
    auto found = transfers.awaitedBy(i);
    all.emplace_back(found.begin(), found.end());
  }
  return all;
}

TEST(Transfers, areAwaitedByWhoDisturbsThem) {
  const std::vector<ListShape> shapes = {{ListKind::forward, 0, 1},
                                         {ListKind::send, 0, 1},
                                         {ListKind::recv_grad, 0, 1},
                                         {ListKind::backward, 0, 1},
                                         {ListKind::update, 0, 1}};
  ActionTable table(
      shapes,
      {{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}, {3, 0}, {2, 1}, {3, 1}, {4, 0}});
  // Forward writes what is sent, backward reads it and what is received.
  auto all = awaited(table, {{0, 0, 0, false, true},
                             {1, 0, 0, false, false},
                             {3, 0, 0, false, false},
                             {2, 1, 0, false, true},
                             {3, 1, 0, false, false}});
  EXPECT_EQ(all, (std::vector<std::vector<uint32_t>>{
                     {}, {}, {}, {1}, {}, {2}, {}, {6}, {4}}));
}

TEST(Lives, theLineIsShort) {
  const std::vector<std::vector<std::pair<List, uint32_t>>> all = {
      {{forward, 5}, {backward, 4}}, {{backward, 7}, {update, 2}}, {{step, 0}}};
  ActionTable few = oneByOne(4), many = oneByOne(100000);
  Lives short_ = livesOf(few, all), long_ = livesOf(many, all);
  EXPECT_EQ(short_.length(), long_.length());
  EXPECT_EQ(long_.spansOf(1).size(), short_.spansOf(1).size());
  for (Span span : long_.spansOf(0)) {
    uint32_t list = long_.placeAt(span.begin).list;
    EXPECT_EQ(long_.placeAt(span.begin).instruction, list == forward ? 5u : 0u);
    EXPECT_EQ(long_.placeAt(span.end).instruction, list == forward ? 9u : 4u);
  }
}

} // namespace
} // namespace meshwork::plan
