// Which tensors hold a parameter: against a count of every element, and names
// against a list of all.
#include "lib/Plan/FileForms.h"
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

namespace meshwork::plan::test {
namespace {
using Sizes = std::vector<int64_t>;

FilePieceT piece(std::string pattern, int32_t counted, Sizes begin,
                 Sizes extent, int64_t first = 0) {
  FilePieceT made;
  made.pattern = std::move(pattern);
  made.counted = counted;
  made.first = first;
  made.begin = std::move(begin);
  made.extent = made.shape = std::move(extent);
  if (counted >= 0)
    made.shape.erase(made.shape.begin() + counted);
  return made;
}

std::string problem(const Sizes &shape, const std::vector<FileForm> &forms) {
  return std::string(checkForms(shape, forms).message());
}

// Gate and up of four experts in one parameter; a row in front is by itself.
const Sizes fused = {5, 6, 3};
const FileForm apart = {piece("first", -1, {0, 0, 0}, {1, 6, 3}),
                        piece("e.{}.gate", 0, {1, 0, 0}, {4, 2, 3}),
                        piece("e.{}.up", 0, {1, 2, 0}, {4, 4, 3}, 3)};

TEST(FileForms, HoldEachElementOnce) {
  EXPECT_EQ(problem(fused, {apart}), "");
  std::map<std::string, std::set<int64_t>> seen; // elements of each tensor
  for (int64_t e = 0; e < 5; ++e)
    for (int64_t row = 0; row < 6; ++row) {
      auto boxes = fileBoxes(apart, {{e, row, 1}, {1, 1, 2}, {0, 0, 7}});
      ASSERT_EQ(boxes.size(), 1u);
      const FileBox &box = boxes[0];
      EXPECT_EQ(box.block.offset, (Sizes{0, 0, 7}));
      EXPECT_EQ(box.strides[2], 1);
      std::string name = tensorName(*box.piece, box.number);
      EXPECT_EQ(name, e == 0    ? "first"
                      : row < 2 ? "e." + std::to_string(e - 1) + ".gate"
                                : "e." + std::to_string(e + 2) + ".up");
      EXPECT_EQ(box.first, 3 * (e == 0 || row < 2 ? row : row - 2) + 1);
      EXPECT_TRUE(seen[name].insert(box.first).second);
    }
  EXPECT_EQ(seen.size(), 9u);
  EXPECT_EQ(tensorsOf(apart), 9);
}

TEST(FileForms, ABlockMeetsOnlyItsTensors) {
  auto boxes = fileBoxes(apart, {{2, 1, 0}, {2, 3, 3}, {0, 0, 0}});
  ASSERT_EQ(boxes.size(), 4u);
  EXPECT_EQ(tensorName(*boxes[3].piece, boxes[3].number), "e.5.up");
  EXPECT_EQ(boxes[3].block.begin, (Sizes{3, 2, 0}));
  EXPECT_EQ(boxes[3].block.extent, (Sizes{1, 2, 3}));
  EXPECT_EQ(boxes[3].block.offset, (Sizes{1, 1, 0}));
  EXPECT_EQ(boxes[3].first, 0);
}

TEST(FileForms, PartsOfATensorBeginWhereTheySay) {
  FilePieceT part = piece("all", -1, {0, 0, 0}, {5, 6, 3});
  part.shape = {9, 10, 8};
  part.offset = {2, 1, 4};
  EXPECT_EQ(problem(fused, {apart, {part}}), "");
  FileForm form = {part};
  FileBox box = fileBoxes(form, {{1, 2, 1}, {1, 1, 1}, {0, 0, 0}})[0];
  EXPECT_EQ(box.first, (3 * 10 + 3) * 8 + 5);
  part = piece("e.{}", 0, {0, 0, 0}, {5, 6, 3});
  part.shape = {10, 8};
  part.offset = {1, 4};
  form = {part};
  box = fileBoxes(form, {{4, 2, 1}, {1, 1, 1}, {0, 0, 0}})[0];
  EXPECT_EQ(box.number, 4);
  EXPECT_EQ(box.first, 3 * 8 + 5);
}

TEST(FileForms, ScalarsAreOneTensor) {
  FileForm form = wholeForm("s", {}, {1});
  EXPECT_EQ(problem({}, {form}), "");
  auto boxes = fileBoxes(form, {{}, {}, {}});
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0].first, 0);
}

TEST(FileForms, OtherFormsAreNoFiner) {
  FileForm whole = {piece("all", -1, {0, 0, 0}, {5, 6, 3})};
  EXPECT_NE(problem(fused, {whole, apart}).find("does not lie in one file"),
            std::string::npos);
  FileForm rows = {piece("row.{}", 1, {0, 0, 0}, {5, 6, 3})};
  EXPECT_NE(problem(fused, {apart, rows}).find("does not lie in one file"),
            std::string::npos);
  EXPECT_EQ(problem(fused, {apart, whole}), "");
}

TEST(FileForms, NumbersAreReadFromNames) {
  FilePieceT up = piece("e.{}.up", 0, {0}, {4}, 8);
  EXPECT_EQ(numberOf(up, "e.8.up"), 0);
  EXPECT_EQ(numberOf(up, "e.11.up"), 3);
  for (const char *other :
       {"e.7.up", "e.12.up", "e.08.up", "e.+8.up", "e. 8.up", "e..up", "e.up",
        "e.8.down", "e.99999999999999999999.up", "e.-8.up",
        "e.-9223372036854775808.up"})
    EXPECT_EQ(numberOf(up, other), std::nullopt) << other;
}

std::set<std::string> all(const PieceNames &piece) {
  std::set<std::string> names;
  for (int64_t i = piece.first; i < piece.first + piece.count; ++i) {
    std::string name = piece.pattern;
    names.insert(name.replace(name.find("{}"), 2, std::to_string(i)));
  }
  if (piece.count == 0)
    names.insert(piece.pattern);
  return names;
}

/// Names of parts that are few, so that many meet.
PieceNames drawn(std::mt19937 &engine) {
  constexpr const char *parts[] = {"a", "0", "1", "2"};
  PieceNames made;
  size_t mark = engine() % 4;
  for (size_t i = 0; i < 3; ++i)
    made.pattern +=
        (i ? "." : "") + std::string(i == mark ? "{}" : parts[engine() % 4]);
  made.first = engine() % 3;
  made.count = mark < 3 ? 1 + engine() % 2 : 0;
  made.isWritten = engine() % 2;
  return made;
}

TEST(FileNames, ThatAreTheSameAreFound) {
  std::mt19937 engine(5);
  int refused = 0, accepted = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<PieceNames> names;
    for (size_t n = 2 + engine() % 3; n > 0; --n)
      names.push_back(drawn(engine));
    std::map<std::string, std::pair<int, int>> counts; // all, and written
    std::set<size_t> marks;
    for (const PieceNames &piece : names) {
      for (const std::string &name : all(piece)) {
        ++counts[name].first;
        counts[name].second += piece.isWritten;
      }
      if (piece.count > 0)
        marks.insert(piece.pattern.find("{}"));
    }
    bool meet = std::any_of(counts.begin(), counts.end(), [](const auto &one) {
      return one.second.first > 1 && one.second.second > 0;
    });
    auto found = findSameName(names);
    EXPECT_TRUE(found || !meet) << names[0].pattern << " " << names[1].pattern;
    // What counts different parts of a name may be refused whatever it counts.
    if (marks.size() < 2) {
      EXPECT_EQ(found.has_value(), meet) << names[0].pattern;
      ++(meet ? refused : accepted);
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(accepted, 50);
}

TEST(FileNames, OfLayersAreApart) {
  std::vector<PieceNames> names;
  for (int layer = 0; layer < 100; ++layer) {
    std::string scope = "layers." + std::to_string(layer);
    names.push_back({scope + ".experts.{}.up.weight", 0, 128});
    names.push_back({scope + ".experts.up", 0, 0, false});
    names.push_back({scope + ".norm.weight", 0, 0});
  }
  EXPECT_FALSE(findSameName(names));
  names.push_back({"layers.7.experts.127.up.weight", 0, 0});
  auto found = findSameName(names);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->one, 21u);
  names.back().pattern = "layers.7.experts.128.up.weight";
  EXPECT_FALSE(findSameName(names));
  names.back() = {"layers.{}.experts.3.up.weight", 200, 4};
  EXPECT_TRUE(findSameName(names)); // refused, as another number may meet
}

} // namespace
} // namespace meshwork::plan::test
