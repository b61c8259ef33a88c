// Where documents begin within a sample: compared with where they begin in the
// whole file, which each test lays out by hand.
#include <numeric>
#include <set>

#include "runtime/io/Tokens.h"
#include "test/Runtime/io/MegatronFile.h"

namespace meshwork::runtime {
namespace {

using absl::StatusCode;
using From = DocumentMarks::From;

constexpr uint32_t mark = 99, sequence = 8;

class DocumentsTest : public TemporaryFolder {
protected:
  /// Token i is i, but for those that mark.
  static std::vector<uint16_t> marked(const std::set<size_t> &places) {
    std::vector<uint16_t> ids(60);
    std::iota(ids.begin(), ids.end(), uint16_t{0});
    for (size_t place : places)
      ids[place] = mark;
    return ids;
  }
  std::unique_ptr<TokenSource> open(const TokenOptions &options) const {
    auto source = TokenSource::open(options);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }
  void expectRefused(const TokenOptions &options, StatusCode code,
                     const std::string &part) const {
    expectError(TokenSource::open(options).status(), code, part);
  }
  /// Draws samples of a file whose token i is i, or marks, and whose documents
  /// begin at `begins`.
  static void expectBegins(const TokenSource &source,
                           const std::set<int32_t> &begins) {
    std::set<std::vector<int32_t>> seen;
    for (uint32_t index = 0; index < 400; ++index) {
      std::vector<int32_t> tokens(sequence), targets(sequence),
          documents(sequence, -1), expected;
      ASSERT_TRUE(source
                      .sample(1, {2, index},
                              {absl::MakeSpan(tokens), absl::MakeSpan(targets),
                               absl::MakeSpan(documents)})
                      .ok());
      size_t plain = tokens[0] != mark ? 0 : tokens[1] != mark ? 1 : 2;
      int32_t start = tokens[plain] - static_cast<int32_t>(plain);
      for (int32_t i = 0; i < int32_t{sequence}; ++i) {
        int32_t begin = *std::prev(begins.upper_bound(start + i));
        expected.push_back(std::max(0, begin - start));
      }
      ASSERT_EQ(documents, expected) << "from token " << start;
      seen.insert(documents);
    }
    // One document, cut; several; a boundary between any two tokens.
    EXPECT_TRUE(seen.count(std::vector<int32_t>(sequence, 0)));
    EXPECT_GE(seen.size(), size_t{sequence});
  }
};

TEST_F(DocumentsTest, BeginAtEachBeginToken) {
  // First, last, two in a row.
  std::string file = write("a", bytesOf(marked({0, 5, 6, 27, 40, 59})));
  auto source =
      open({file, "u16", "", 100, sequence, {From::beginToken, mark}});
  ASSERT_TRUE(source);
  expectBegins(*source, {0, 5, 6, 27, 40, 59});
}

TEST_F(DocumentsTest, BeginAfterEachEndToken) {
  std::string file = write("a", bytesOf(marked({0, 5, 6, 27, 40, 59})));
  auto source = open({file, "u16", "", 100, sequence, {From::endToken, mark}});
  ASSERT_TRUE(source);
  expectBegins(*source, {0, 1, 6, 7, 28, 41});
}

TEST_F(DocumentsTest, TokensAndTargetsStayAsTheyAre) {
  std::string file = write("a", bytesOf(marked({0, 5, 6, 27, 40, 59})));
  auto with = open({file, "u16", "", 100, sequence, {From::endToken, mark}});
  auto without = open({file, "u16", "", 100, sequence});
  ASSERT_TRUE(with && without);
  for (uint32_t index = 0; index < 100; ++index) {
    std::vector<int32_t> a(sequence), b(sequence), c(sequence), d(sequence),
        documents(sequence);
    ASSERT_TRUE(with->sample(3, {4, index},
                             {absl::MakeSpan(a), absl::MakeSpan(b),
                              absl::MakeSpan(documents)})
                    .ok());
    ASSERT_TRUE(
        without->sample(3, {4, index}, {absl::MakeSpan(c), absl::MakeSpan(d)})
            .ok());
    EXPECT_EQ(a, c);
    EXPECT_EQ(b, d);
  }
}

class IndexedDocumentsTest : public DocumentsTest {
protected:
  MegatronIndex index;
  // Eight sequences, two of them empty and two in the other order in the file;
  // documents of several, of one, of an empty one and of none.
  IndexedDocumentsTest() {
    index.lengths = {4, 10, 0, 7, 1, 20, 18, 0};
    index.offsets = {0, 56, 16, 28, 96, 100, 180, 16};
    index.sequences = index.lengths.size();
    index.starts = {0, 2, 3, 3, 4, 5, 7, 8};
    index.documents = index.starts.size();
    std::vector<int32_t> ids(63, mark);
    int32_t next = 0;
    for (size_t i = 0; i < index.lengths.size(); ++i)
      for (int32_t j = 0; j < index.lengths[i]; ++j)
        ids[static_cast<size_t>(index.offsets[i] / 4 + j)] = next++;
    write("t.bin", bytesOf(ids));
  }
  TokenOptions options(DocumentMarks marks = {From::index}) const {
    return {write("t.idx", index.bytes()), "", "", 100, sequence, marks};
  }
};

TEST_F(IndexedDocumentsTest, BeginWhereTheIndexSays) {
  auto source = open(options());
  ASSERT_TRUE(source);
  // Sequences 0 and 1; 2 (empty); none; 3; 4; 5 and 6; 7 (empty).
  expectBegins(*source, {0, 14, 21, 22});
}

TEST_F(IndexedDocumentsTest, ATokenGoesBeforeTheIndex) {
  auto source = open(options({From::beginToken, 30}));
  ASSERT_TRUE(source);
  std::vector<int32_t> tokens(sequence), targets(sequence), documents(sequence);
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(source
                    ->sample(1, {1, i},
                             {absl::MakeSpan(tokens), absl::MakeSpan(targets),
                              absl::MakeSpan(documents)})
                    .ok());
    EXPECT_EQ(documents.back(), std::clamp(30 - tokens[0], 0, 8) % 8);
  }
}

TEST_F(IndexedDocumentsTest, AnIndexWithoutEndsIsRefused) {
  index.starts = {0};
  index.documents = 1;
  expectRefused(options(), StatusCode::kDataLoss,
                "t.idx\": Megatron index ends no document, so it does not tell "
                "documents apart; give --document-begin or --document-end");
  EXPECT_TRUE(open(options({}))); // who does not ask needs none
  index.starts = {0, 8};          // one document, which ends
  index.documents = 2;
  EXPECT_TRUE(open(options()));
}

TEST_F(DocumentsTest, RefusesFilesThatDoNotTell) {
  std::string file = write("a", bytesOf(marked({})));
  expectRefused({file, "u16", "", 100, sequence, {From::index}},
                StatusCode::kInvalidArgument,
                "a\": does not tell where its documents begin, which the plan "
                "needs (batch.documents, batch.positions or "
                "batch.document_end_loss of its spec say so); give "
                "--document-begin ID (");
  expectRefused({file, "u16", "", 100, sequence, {From::beginToken, mark}},
                StatusCode::kDataLoss, "token 99 does not occur in \"");
  expectRefused({file, "u16", "", 100, sequence, {From::beginToken, mark}},
                StatusCode::kDataLoss,
                "a\": --document-begin 99 tells no documents apart, expected "
                "the id that each document begins with");
  expectRefused({file, "u16", "", 100, sequence, {From::endToken, mark}},
                StatusCode::kDataLoss, "that each document ends with");
}

TEST_F(DocumentsTest, TheMarkMayBeAnywhereInALongFile) {
  for (size_t place : {size_t{0}, size_t{524287}, size_t{650000}}) {
    std::vector<uint16_t> ids(650001, 3);
    ids[place] = mark;
    std::string file = write("long", bytesOf(ids));
    EXPECT_TRUE(open({file, "u16", "", 100, sequence, {From::endToken, mark}}));
    // What comes after it is still checked.
    ids[std::max(place, size_t{649999})] = 100;
    write("long", bytesOf(ids));
    expectRefused({file, "u16", "", 100, sequence, {From::endToken, mark}},
                  StatusCode::kDataLoss, " is 100, expected 0 to 99");
  }
}

TEST_F(DocumentsTest, RefusesTokensThatCannotBe) {
  std::string file = write("a", bytesOf(marked({1})));
  expectRefused({file, "u16", "", 100, sequence, {From::beginToken, 100}},
                StatusCode::kInvalidArgument,
                "--document-begin 100, expected 0 to 99 (the model's "
                "vocabulary is 100)");
  expectRefused(
      {file, "u16", "", 1u << 31, sequence, {From::endToken, 4294967295u}},
      StatusCode::kInvalidArgument,
      "--document-end 4294967295, expected 0 to 2147483647");
  expectRefused({file, "", "bytes", 50257, sequence, {From::endToken, 256}},
                StatusCode::kInvalidArgument,
                "--document-end 256, expected 0 to 255 (tokens are bytes)");
  expectRefused({file, "", "bytes", 128, sequence, {From::endToken, 128}},
                StatusCode::kInvalidArgument,
                "expected 0 to 127 (the model's vocabulary is 128)");
}

TEST_F(DocumentsTest, SpansMustFit) {
  std::string file = write("a", bytesOf(marked({1})));
  auto with = open({file, "u16", "", 100, sequence, {From::endToken, mark}});
  auto without = open({file, "u16", "", 100, sequence});
  ASSERT_TRUE(with && without);
  std::vector<int32_t> a(sequence), b(sequence), c(sequence + 1);
  auto sample = [&](const TokenSource &source, size_t size) {
    return source.sample(
        1, {1, 1},
        {absl::MakeSpan(a), absl::MakeSpan(b), absl::MakeSpan(c).first(size)});
  };
  EXPECT_TRUE(sample(*with, 8).ok());
  EXPECT_TRUE(sample(*with, 9).ok());
  EXPECT_TRUE(sample(*with, 0).ok());
  expectError(sample(*with, 7), StatusCode::kInvalidArgument,
              "needs room for 8 tokens, targets, (or none, or one more) "
              "documents and (or none) counts, got 8, 8, 7 and 0");
  std::vector<unsigned char> counts(sequence - 1);
  expectError(
      with->sample(
          1, {1, 1},
          {absl::MakeSpan(a), absl::MakeSpan(b), {}, absl::MakeSpan(counts)}),
      StatusCode::kInvalidArgument, "got 8, 8, 0 and 7");
  expectError(sample(*without, 8), StatusCode::kInvalidArgument,
              "the file was opened without");
}

} // namespace
} // namespace meshwork::runtime
