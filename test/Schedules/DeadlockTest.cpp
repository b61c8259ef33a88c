#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Index.h"
#include "lib/Schedules/Verdict.h"
#include "lib/Schedules/Waits.h"
#include "test/Schedules/Cases.h"
#include "test/Schedules/TokenMachine.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cstdlib>

namespace meshwork::schedules {
namespace {

using testing::HasSubstr;

std::string verdictOn(std::string_view text, const JudgeOptions &options = {}) {
  absl::StatusOr<Table> table = parseCsv(text, "t.csv");
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? std::string(judge(*table, options).message()) : "";
}

TEST(Deadlock, orderAcrossRanks) {
  EXPECT_EQ(verdictOn("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1"),
            "the table hangs: each of these waits for the next, the last for "
            "the first (the shortest such cycle)\n"
            "  rank  action       waits for      because it\n"
            "     0       2  0B0  1B0 of rank 1  needs its result\n"
            "     1       3  1B0  1F1 of rank 1  stands after it\n"
            "     1       2  1F1  0F1 of rank 0  needs its result\n"
            "     0       3  0F1  0B0 of rank 0  stands after it");
}

// Both ranks first send: fine where transfers only start in order, not where
// each waits for the one before.
constexpr std::string_view crossed =
    "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
    "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";

TEST(Deadlock, transfersInOrder) {
  EXPECT_EQ(verdictOn(crossed), "");
  EXPECT_EQ(verdictOn(crossed, {.transfersInOrder = true}),
            "the table hangs: each of these waits for the next, the last for "
            "the first (the shortest such cycle)\n"
            "  rank  action            waits for           because it\n"
            "     0       4  0SEND_F1  1RECV_F1 of rank 1  needs it to be "
            "posted\n"
            "     1       5  1RECV_F1  1SEND_B0 of rank 1  stands after it\n"
            "     1       4  1SEND_B0  0RECV_B0 of rank 0  needs it to be "
            "posted\n"
            "     0       5  0RECV_B0  0SEND_F1 of rank 0  stands after it");
}

TEST(Deadlock, aBatchIsPostedAtOnce) {
  EXPECT_EQ(verdictOn("0F0,0SEND_F0,0F1,(0SEND_F1;0RECV_B0)BATCH,0B0,0RECV_B1,"
                      "0B1\n"
                      "1RECV_F0,1F0,1B0,(1SEND_B0;1RECV_F1)BATCH,1F1,1B1,"
                      "1SEND_B1\n",
                      {.transfersInOrder = true}),
            "");
}

TEST(Deadlock, aCopyIsUsedAgain) {
  // Rank 0 makes its second output while the first is not asked for yet.
  constexpr std::string_view text =
      "0F0,0SEND_F0,0F1,0SEND_F1,2RECV_F1,2F1,2SEND_F1,2RECV_F0,2F0,2SEND_F0,"
      "2RECV_B0,2B0,2SEND_B0,2RECV_B1,2B1,2SEND_B1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F1,1F1,1SEND_F1,1RECV_F0,1F0,1SEND_F0,3RECV_F1,3F1,3RECV_F0,3F0,"
      "3B0,3SEND_B0,3B1,3SEND_B1,1RECV_B0,1B0,1SEND_B0,1RECV_B1,1B1,1SEND_B1\n";
  std::string verdict = verdictOn(text);
  EXPECT_THAT(verdict, HasSubstr("needs the copy that it holds"));
  // The lowest free copy is taken, so a second one stays unused.
  EXPECT_EQ(verdictOn(text, {.copies = 2}), verdict);
}

TEST(Deadlock, fewerCopiesThanAreAlive) {
  constexpr std::string_view text =
      "0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n";
  EXPECT_EQ(verdictOn(text), "");
  EXPECT_EQ(verdictOn(text, {.copies = 2}), "");
  EXPECT_THAT(verdictOn(text, {.copies = 1}),
              HasSubstr("0F1       0SEND_F0 of rank 0  needs the copy"));
}

/// How many of something a test does: a few, or as many as are asked for.
int countOf(const char *name, int few) {
  const char *asked = std::getenv(name);
  return asked ? std::atoi(asked) : few;
}

JudgeOptions randomOptions(std::mt19937 &random) {
  JudgeOptions options;
  options.copies = static_cast<int32_t>(random() % 4);
  options.transfersInOrder = random() % 3 == 0;
  return options;
}

std::string shown(const Table &table, const JudgeOptions &options,
                  const absl::Status &status) {
  return csv(table) + "copies " + std::to_string(options.copies) +
         " in order " + std::to_string(options.transfersInOrder) + "\n" +
         std::string(status.message());
}

// MESHWORK_SCHEDULES=10000 for all that the project's goals ask for.
TEST(Deadlock, whatRunsIsLegalAndTheRestIsNot) {
  std::mt19937 random(7);
  int legal = 0, tables = countOf("MESHWORK_SCHEDULES", 1000), all = 0;
  for (; legal < tables; ++all) {
    Table table = randomTable(random);
    JudgeOptions options = all % 2 ? randomOptions(random) : JudgeOptions();
    bool runs = runsToItsEnd(table, options);
    absl::Status status = judge(table, options);
    ASSERT_EQ(status.ok(), runs) << shown(table, options, status);
    legal += runs;
  }
  EXPECT_GT(all, legal + tables / 20) << "some should hang";
}

/// Exchanges two actions of one rank; what starts together is as before, where
/// it may.
void exchange(std::vector<Action> &rank, size_t a, size_t b) {
  std::swap(rank[a], rank[b]);
  std::swap(rank[a].withNext, rank[b].withNext);
  for (size_t i = 0; i < rank.size(); ++i)
    rank[i].withNext &= i + 1 < rank.size() && isTransfer(rank[i].kind) &&
                        isTransfer(rank[i + 1].kind);
}

std::vector<size_t> placesOf(const std::vector<Action> &rank,
                             bool (*wanted)(Kind)) {
  std::vector<size_t> places;
  for (size_t i = 0; i < rank.size(); ++i)
    if (wanted(rank[i].kind))
      places.push_back(i);
  return places;
}

bool isSend(Kind kind) {
  return kind == Kind::sendForward || kind == Kind::sendBackward;
}
bool isRecv(Kind kind) { return isTransfer(kind) && !isSend(kind); }
bool isAny(Kind) { return true; }

/// False where the table has nothing to change in this way.
bool mutate(Table &table, JudgeOptions &options, int way,
            std::mt19937 &random) {
  std::vector<Action> &rank = table.ranks[random() % table.ranks.size()];
  std::vector<size_t> places = placesOf(rank, way == 0   ? isSend
                                              : way == 1 ? isAny
                                                         : isRecv);
  if (way == 3) { // Two buffers share what was one's own.
    options.copies = 1;
    return true;
  }
  if (places.size() < 2)
    return false;
  size_t a = random() % places.size(), b = random() % places.size();
  if (way == 2) {
    exchange(rank, places[a], places[a]);
    if (places[a] > 0)
      rank[places[a] - 1].withNext &= rank[places[a]].withNext;
    rank.erase(rank.begin() + static_cast<std::ptrdiff_t>(places[a]));
    return true;
  }
  exchange(rank, places[a], places[b]);
  return a != b;
}

TEST(Deadlock, mutantsThatHangAreRefused) {
  std::mt19937 random(11);
  int mutants = 0, hanging[4] = {}, running[4] = {};
  for (int round = 0; mutants < 500; ++round) {
    if (running[round % 4] + hanging[round % 4] == 125)
      continue;
    Table table = randomTable(random);
    JudgeOptions options = randomOptions(random);
    int way = round % 4;
    // Else few swapped sends hang.
    options.transfersInOrder |= way == 0 && round % 8 == 0;
    if (!runsToItsEnd(table, options) || !mutate(table, options, way, random))
      continue;
    ++mutants;
    bool runs = runsToItsEnd(table, options);
    absl::Status status = judge(table, options);
    ASSERT_EQ(status.ok(), runs) << shown(table, options, status);
    ++(runs ? running : hanging)[way];
  }
  for (int way : {0, 1, 3})
    EXPECT_GT(std::min(running[way], hanging[way]), 10)
        << way << ": " << running[way] << " run, " << hanging[way] << " hang";
  EXPECT_EQ(running[2], 0);
}

/// The fewest waits on any way around, by looking at all pairs (Floyd 1962).
int fewestWaits(const Table &table, const JudgeOptions &options) {
  Index index(table);
  Waits waits(table, index,
              {.inOrder = options.transfersInOrder,
               .reuse = true,
               .copies = options.copies});
  constexpr int far = 1 << 20;
  size_t size = waits.size();
  std::vector<std::vector<int>> length(size, std::vector<int>(size, far));
  for (uint32_t node = 0; node < size; ++node)
    for (auto *w = waits.begin(node); w != waits.end(node); ++w)
      length[node][w->to] =
          std::min(length[node][w->to], int(w->why != Why::order));
  for (size_t by = 0; by < size; ++by)
    for (size_t from = 0; from < size; ++from)
      for (size_t to = 0; to < size && length[from][by] < far; ++to)
        length[from][to] =
            std::min(length[from][to], length[from][by] + length[by][to]);
  int fewest = far;
  for (size_t node = 0; node < size; ++node)
    fewest = std::min(fewest, length[node][node]);
  return fewest;
}

// Every step is a wait that the next one explains, the last leads back, and no
// way around has fewer.
TEST(Deadlock, theCycleIsTheShortest) {
  std::mt19937 random(5);
  for (int seen = 0, round = 0; seen < 60; ++round) {
    Table table = randomTable(random);
    JudgeOptions options = {.copies = 1, .transfersInOrder = round % 2 == 0};
    std::string verdict(judge(table, options).message());
    size_t at = verdict.find("because it\n");
    if (at == verdict.npos)
      continue;
    ++seen;
    std::vector<std::string> heads, tails;
    int found = 0;
    std::istringstream lines(verdict.substr(at + 11));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string rank, position, action, other, of, word, otherRank;
      words >> rank >> position >> action >> other >> of >> word >> otherRank;
      heads.push_back(rank + " " + action);
      tails.push_back(otherRank + " " + other);
      found += line.find("stands after it") == line.npos;
    }
    ASSERT_FALSE(heads.empty()) << verdict;
    for (size_t i = 0; i < heads.size(); ++i)
      ASSERT_EQ(tails[i], heads[(i + 1) % heads.size()]) << verdict;
    ASSERT_EQ(found, fewestWaits(table, options)) << csv(table) << verdict;
  }
}

} // namespace
} // namespace meshwork::schedules
