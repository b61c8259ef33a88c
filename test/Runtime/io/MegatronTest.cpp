#include <functional>
#include <numeric>

#include "runtime/io/Tokens.h"
#include "test/Runtime/io/MegatronFile.h"

namespace meshwork::runtime {
namespace {

using absl::StatusCode;
using Index = MegatronIndex;

class MegatronTest : public TemporaryFolder {
protected:
  // In the file the second run comes first: the index decides the order.
  MegatronTest() {
    std::vector<int32_t> ids(20);
    std::iota(ids.begin(), ids.begin() + 13, 7);
    std::iota(ids.begin() + 13, ids.end(), 0);
    write("t.bin", bytesOf(ids));
  }
  absl::StatusOr<std::unique_ptr<TokenSource>>
  open(const Index &index, const std::string &name = "t.idx") const {
    write("t.idx", index.bytes());
    return TokenSource::open({path(name), "", "", 20, 8});
  }
  void refuses(const std::string &part,
               const std::function<void(Index &)> &change) const {
    Index index;
    change(index);
    expectError(open(index).status(), StatusCode::kDataLoss, part);
  }
};

TEST_F(MegatronTest, JoinsSequencesInTheOrderOfTheIndex) {
  for (const char *name : {"t.idx", "t.bin"}) {
    auto source = open(Index(), name);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ((*source)->numTokens(), 20u);
    std::vector<int32_t> tokens(8), targets(8);
    for (uint32_t i = 0; i < 100; ++i) {
      ASSERT_TRUE(
          (*source)
              ->sample(1, {1, i},
                       {absl::MakeSpan(tokens), absl::MakeSpan(targets)})
              .ok());
      for (int32_t j = 0; j < 8; ++j) {
        EXPECT_EQ(tokens[j], tokens[0] + j);
        EXPECT_EQ(targets[j], tokens[0] + j + 1);
      }
    }
  }
}

template <typename T> void expectReads(const std::string &stem, uint8_t type) {
  std::vector<T> ids(20, T{19});
  std::ofstream(stem + ".bin", std::ios::binary) << bytesOf(ids);
  Index index;
  index.type = type;
  index.sequences = 1;
  index.documents = 2;
  index.lengths = {20};
  index.offsets = {0};
  index.starts = {0, 1};
  index.tail = std::string(1, '\0'); // modes, one byte a sequence
  std::ofstream(stem + ".idx", std::ios::binary) << index.bytes();
  auto source = TokenSource::open({stem + ".idx", "", "", 20, 8});
  ASSERT_TRUE(source.ok()) << source.status() << " type " << int{type};
  std::vector<int32_t> tokens(8), targets(8);
  ASSERT_TRUE(
      (*source)
          ->sample(1, {1, 1}, {absl::MakeSpan(tokens), absl::MakeSpan(targets)})
          .ok());
  EXPECT_EQ(tokens, std::vector<int32_t>(8, 19));
}

TEST_F(MegatronTest, ReadsEveryIntegerType) {
  expectReads<uint8_t>(path("a"), 1);
  expectReads<int8_t>(path("b"), 2);
  expectReads<int16_t>(path("c"), 3);
  expectReads<int32_t>(path("d"), 4);
  expectReads<int64_t>(path("e"), 5);
  expectReads<uint16_t>(path("f"), 8);
}

TEST_F(MegatronTest, ReadsAPrefixAsMegatronDoes) {
  expectReads<uint16_t>(path("corpus"), 8);
  auto opened = [&](const std::string &name) {
    return TokenSource::open({path(name), "", "", 20, 8});
  };
  EXPECT_TRUE(opened("corpus").ok()) << opened("corpus").status();
  EXPECT_THAT(tokenFiles(path("corpus")),
              testing::ElementsAre(path("corpus") + ".bin",
                                   path("corpus") + ".idx",
                                   path("corpus") + ".mask.bin"));
  std::filesystem::create_directory(path("corpus"));
  EXPECT_TRUE(opened("corpus").ok());
  std::filesystem::remove(path("corpus"));
  std::ofstream(path("corpus")) << "a file of this name is meant";
  expectError(opened("corpus").status(), StatusCode::kInvalidArgument,
              "neither an llm.c");
  EXPECT_THAT(tokenFiles(path("corpus")), testing::ElementsAre(path("corpus")));
  expectError(opened("none").status(), StatusCode::kNotFound, "No such file");
}

TEST_F(MegatronTest, RefusesAWrongHeader) {
  refuses("has version 2, expected 1", [](Index &i) { i.version = 2; });
  refuses("has element type 7, expected an integer",
          [](Index &i) { i.type = 7; });
  refuses("has element type 0", [](Index &i) { i.type = 0; });
  refuses("promises 4 sequences", [](Index &i) { i.sequences = 4; });
  refuses("promises 18446744073709551615 sequences",
          [](Index &i) { i.sequences = ~uint64_t{0}; });
  refuses("18446744073709551615 documents",
          [](Index &i) { i.documents = ~uint64_t{0}; });
  refuses("sequences and 3 documents",
          [](Index &i) { i.sequences = uint64_t{1} << 60; });
  refuses("do not hold exactly", [](Index &i) { i.tail = "xx"; });
}

TEST_F(MegatronTest, RefusesEachRangeOutsideTheFile) {
  refuses("puts sequence 2 of 13 tokens at byte -4",
          [](Index &i) { i.offsets[2] = -4; });
  refuses("puts sequence 0 of 7 tokens at byte 53",
          [](Index &i) { i.offsets[0] = 53; });
  refuses("puts sequence 0 of 8 tokens", [](Index &i) { i.lengths[0] = 8; });
  refuses("puts sequence 1 of -1 tokens", [](Index &i) { i.lengths[1] = -1; });
  refuses("at byte 9223372036854775807",
          [](Index &i) { i.offsets[0] = INT64_MAX; });
  refuses("puts sequence 1 of 0 tokens at byte 81",
          [](Index &i) { i.offsets[1] = 81; });
}

TEST_F(MegatronTest, RefusesDocumentsOutOfOrder) {
  refuses("starts document 1 at sequence 4", [](Index &i) { i.starts[1] = 4; });
  refuses("starts document 1 at sequence -1",
          [](Index &i) { i.starts[1] = -1; });
  refuses("no document that starts at sequence 0",
          [](Index &i) { i.starts[0] = 1; });
  refuses("no document", [](Index &i) {
    i.starts.clear();
    i.documents = 0;
  });
}

TEST_F(MegatronTest, RefusesNegativeTokens) {
  write("t.bin", bytesOf(std::vector<int32_t>(20, -5)));
  expectError(open(Index()).status(), StatusCode::kDataLoss, "token 0 is -5");
}

TEST_F(MegatronTest, RefusesEveryPrefixOfTheIndex) {
  std::string whole = Index().bytes();
  for (size_t length = 0; length < whole.size(); ++length) {
    write("t.idx", whole.substr(0, length));
    EXPECT_FALSE(TokenSource::open({path("t.idx"), "", "", 20, 8}).ok())
        << length;
  }
}

TEST_F(MegatronTest, NeedsBothFilesAndNoOptions) {
  write("t.idx", Index().bytes());
  expectError(TokenSource::open({path("t.bin"), "u16", "", 20, 8}).status(),
              StatusCode::kInvalidArgument, "whose index names the type");
  std::filesystem::rename(path("t.idx"), path("odd"));
  expectError(TokenSource::open({path("odd"), "", "", 20, 8}).status(),
              StatusCode::kDataLoss, "expected its name to end in .idx");
  std::filesystem::rename(path("odd"), path("u.idx"));
  expectError(TokenSource::open({path("u.idx"), "", "", 20, 8}).status(),
              StatusCode::kNotFound, "u.bin\": cannot open");
}

} // namespace
} // namespace meshwork::runtime
