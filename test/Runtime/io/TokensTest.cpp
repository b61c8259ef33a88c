#include "runtime/io/Tokens.h"

#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "lib/Text/FileKind.h"
#include "test/Runtime/io/Philox.h"
#include "test/Runtime/io/TestFiles.h"

namespace meshwork::runtime {
namespace {

using absl::StatusCode;

std::string llmc(int32_t magic, int32_t version, int32_t count,
                 const std::string &data) {
  std::vector<int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return bytesOf(header) + data;
}

template <typename T> std::vector<T> counting(size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T{0});
  return values;
}

struct Sample {
  std::vector<int32_t> tokens, targets;
  bool operator==(const Sample &) const = default;
};

class TokensTest : public TemporaryFolder {
protected:
  Sample draw(const TokenSource &source, uint64_t seed, uint64_t step,
              uint32_t index, size_t sequence = 8) const {
    Sample s{std::vector<int32_t>(sequence, -1),
             std::vector<int32_t>(sequence, -1)};
    absl::Status status =
        source.sample(seed, {step, index},
                      {absl::MakeSpan(s.tokens), absl::MakeSpan(s.targets)});
    EXPECT_TRUE(status.ok()) << status;
    return s;
  }
  // Files whose token i is i: a sample shows where it comes from.
  void expectCounting(const TokenOptions &options, uint64_t numTokens) const {
    auto source = TokenSource::open(options);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ((*source)->numTokens(), numTokens);
    std::set<int32_t> starts;
    for (uint32_t i = 0; i < 400; ++i) {
      Sample s = draw(**source, 1, 2, i);
      starts.insert(s.tokens[0]);
      for (int32_t j = 0; j < 8; ++j) {
        EXPECT_EQ(s.tokens[j], s.tokens[0] + j);
        EXPECT_EQ(s.targets[j], s.tokens[0] + j + 1);
      }
    }
    // 400 draws miss one of 12 places with probability below 1e-14.
    EXPECT_EQ(starts.size(), numTokens - 8);
    EXPECT_EQ(*starts.begin(), 0);
  }
  void expectRefused(const TokenOptions &options, StatusCode code,
                     const std::string &part) const {
    expectError(TokenSource::open(options).status(), code, part);
  }
};

TEST_F(TokensTest, ReadsEveryFormat) {
  auto u16 = bytesOf(counting<uint16_t>(20));
  auto u32 = bytesOf(counting<uint32_t>(20));
  expectCounting({write("a.bin", llmc(20240520, 1, 20, u16)), "", "", 20, 8},
                 20);
  expectCounting({write("b.bin", llmc(20240801, 7, 20, u32)), "u32", "", 20, 8},
                 20);
  expectCounting({write("c.ds", u16), "u16", "", 20, 8}, 20);
  expectCounting({write("d.ds", u32), "u32", "", 20, 8}, 20);
  expectCounting(
      {write("e.txt", bytesOf(counting<uint8_t>(20))), "", "bytes", 256, 8},
      20);
}

TEST_F(TokensTest, OneTokenMakesAnotherIdentity) {
  auto identity = [](const TokenOptions &options) {
    auto source = TokenSource::open(options);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? (*source)->identity() : "";
  };
  std::vector<uint16_t> ids = counting<uint16_t>(5000);
  TokenOptions raw{write("a", bytesOf(ids)), "u16", "", 5000, 8};
  std::string first = identity(raw);
  EXPECT_TRUE(first.starts_with("5000 tokens, fingerprint ")) << first;
  EXPECT_EQ(identity({write("b", llmc(20240520, 1, 5000, bytesOf(ids))), "", "",
                      6000, 16}),
            first);
  EXPECT_NE(identity({raw.path, "", "bytes", 256, 8}), first);
  ids[4000] = 0;
  EXPECT_NE(identity({write("c", bytesOf(ids)), "u16", "", 5000, 8}), first);
  ids.push_back(7);
  EXPECT_TRUE(identity({write("d", bytesOf(ids)), "u16", "", 5000, 8})
                  .starts_with("5001 "));
}

TEST_F(TokensTest, SampleDependsOnSeedStepAndIndexOnly) {
  std::string file = write("d", bytesOf(counting<uint16_t>(60000)));
  auto one = TokenSource::open({file, "u16", "", 60000, 8});
  auto two = TokenSource::open({file, "u16", "", 65536, 8});
  ASSERT_TRUE(one.ok() && two.ok());
  Sample base = draw(**one, 5, 6, 7);
  EXPECT_EQ(draw(**two, 5, 6, 7), base);
  EXPECT_NE(draw(**one, 4, 6, 7), base);
  EXPECT_NE(draw(**one, 5, 5, 7), base);
  EXPECT_NE(draw(**one, 5, 6, 6), base);
  EXPECT_NE(draw(**one, 5 + (uint64_t{1} << 32), 6, 7), base);
  EXPECT_NE(draw(**one, 5, 6 + (uint64_t{1} << 32), 7), base);
}

TEST_F(TokensTest, HeldOutWindowsAreTheLastOnes) {
  // 12 windows of 8 and 3 tokens behind them; one window.
  TokenOptions each{"", "u16", "", 256, 8};
  SourceOptions options{each,
                        {write("a.bin", bytesOf(counting<uint16_t>(100))),
                         write("b.bin", bytesOf(counting<uint16_t>(9)))},
                        SampleOrder::asTheyStand,
                        {},
                        0.25};
  auto training = TokenSource::openAll(options);
  options.part = WindowPart::heldOut;
  auto held = TokenSource::openAll(options);
  ASSERT_TRUE(training.ok() && held.ok()) << training.status() << held.status();
  EXPECT_EQ((*training)->numWindows(), 10u); // 9, and 1 of the other file
  EXPECT_EQ((*held)->numWindows(), 3u);
  std::vector<int32_t> starts;
  for (uint64_t n = 0; n < 3; ++n) {
    Sample s{std::vector<int32_t>(8), std::vector<int32_t>(8)};
    ASSERT_TRUE(
        (*held)
            ->sample(0, {0, 0, n},
                     {absl::MakeSpan(s.tokens), absl::MakeSpan(s.targets)})
            .ok());
    starts.push_back(s.tokens[0]);
  }
  EXPECT_EQ(starts, (std::vector<int32_t>{72, 80, 88}));
  // No place of training reaches into them, but for the target behind its last.
  options.part = WindowPart::training;
  options.order = SampleOrder::random;
  auto random = TokenSource::openAll(options);
  ASSERT_TRUE(random.ok()) << random.status();
  int32_t last = 0;
  for (uint32_t i = 0; i < 2000; ++i)
    last = std::max(last, draw(**random, 1, 2, i).targets.back());
  EXPECT_EQ(last, 72);
}

TEST_F(TokensTest, HeldOutOfFewWindowsIsRefused) {
  TokenOptions each{"", "u16", "", 256, 8};
  SourceOptions options{each,
                        {write("a.bin", bytesOf(counting<uint16_t>(100)))},
                        SampleOrder::asTheyStand,
                        {},
                        0.05,
                        WindowPart::heldOut};
  auto held = TokenSource::openAll(options);
  EXPECT_EQ(held.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(held.status().message().find(
                "--held-out is 0.05, which is not one window of any file"),
            std::string::npos)
      << held.status();
}

TEST_F(TokensTest, StartsFollowTheFormula) {
  std::string file = write("d", bytesOf(counting<uint16_t>(60000)));
  auto source = TokenSource::open({file, "u16", "", 60000, 8});
  ASSERT_TRUE(source.ok());
  for (uint32_t i = 0; i < 1000; ++i) {
    auto words = philox({7, 3, i, 0x6e6b6f74}, {5, 2});
    // The 64-bit fraction in long double: 64 bits of significand hold it.
    long double fraction = (words[0] + 0x1p32L * words[1]) / 0x1p64L;
    Sample s =
        draw(**source, 5 + (uint64_t{2} << 32), 7 + (uint64_t{3} << 32), i);
    EXPECT_EQ(s.tokens[0], static_cast<int32_t>(fraction * (60000 - 8)));
  }
}

TEST_F(TokensTest, StartsAreUniform) {
  std::string file = write("d", bytesOf(counting<uint16_t>(108)));
  auto source = TokenSource::open({file, "u16", "", 108, 8});
  ASSERT_TRUE(source.ok());
  std::vector<int> hits(100);
  constexpr int draws = 100000;
  for (uint32_t i = 0; i < draws; ++i)
    ++hits[draw(**source, 9, i / 100, i % 100).tokens[0]];
  double chiSquare = 0;
  for (int h : hits)
    chiSquare += (h - draws / 100.0) * (h - draws / 100.0) / (draws / 100.0);
  // 99 degrees of freedom: mean 99, deviation 14; 5 deviations.
  EXPECT_LT(chiSquare, 99 + 5 * 14.1);
  EXPECT_GT(chiSquare, 99 - 5 * 14.1);
}

TEST_F(TokensTest, ExactlyOneWindowFits) {
  std::string file = write("d", bytesOf(counting<uint16_t>(9)));
  auto source = TokenSource::open({file, "u16", "", 9, 8});
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(draw(**source, 1, 1, 1).tokens[0], 0);
}

TEST_F(TokensTest, RefusesShortAndEmptyFiles) {
  std::string eight = write("8", bytesOf(counting<uint16_t>(8)));
  expectRefused({eight, "u16", "", 9, 8}, StatusCode::kDataLoss,
                "holds 8 tokens, expected at least 9 (sequence + 1)");
  std::string empty = write("0", "");
  expectRefused({empty, "u16", "", 9, 8}, StatusCode::kDataLoss,
                "holds 0 tokens");
  expectRefused({empty, "", "bytes", 256, 8}, StatusCode::kDataLoss,
                "holds 0 tokens");
  expectRefused({empty, "", "", 9, 8}, StatusCode::kInvalidArgument,
                "neither an llm.c nor a Megatron file");
}

TEST_F(TokensTest, RefusesTruncatedAndLyingFiles) {
  auto data = bytesOf(counting<uint16_t>(20));
  expectRefused({write("a", llmc(20240520, 1, 21, data)), "", "", 20, 8},
                StatusCode::kDataLoss, "promises 21 tokens of 2 bytes");
  expectRefused({write("b", llmc(20240520, 1, -1, data)), "", "", 20, 8},
                StatusCode::kDataLoss, "promises -1 tokens");
  expectRefused({write("c", llmc(20240520, 2, 20, data)), "", "", 20, 8},
                StatusCode::kDataLoss, "version 2, expected version 1");
  expectRefused({write("d", llmc(20240801, 7, 20, data)), "", "", 20, 8},
                StatusCode::kDataLoss, "promises 20 tokens of 4 bytes");
  std::string whole = llmc(20240520, 1, 20, data);
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(TokenSource::open(
                     {write("cut", whole.substr(0, length)), "", "", 20, 8})
                     .ok())
        << length;
  expectRefused({write("e", data + "x"), "u16", "", 20, 8},
                StatusCode::kDataLoss, "is 41 bytes, expected a multiple of 2");
}

TEST_F(TokensTest, RefusesTokensOutsideTheVocabulary) {
  auto values = counting<uint16_t>(20);
  values[13] = 500;
  expectRefused({write("a", bytesOf(values)), "u16", "", 500, 8},
                StatusCode::kDataLoss, "token 13 is 500, expected 0 to 499");
  // Beyond the first block of the scan, too.
  std::vector<uint32_t> many(700000, 3);
  many[650000] = 0xffffffffu;
  expectRefused({write("b", bytesOf(many)), "u32", "", 500, 8},
                StatusCode::kDataLoss, "token 650000 is 4294967295");
  expectRefused({write("c", std::string(20, '\xff')), "", "bytes", 255, 8},
                StatusCode::kDataLoss, "token 0 is 255");
}

/// Zeros, of which a piece of 1 MiB is not, and no memory.
std::string large(const std::string &file, uint64_t at,
                  const std::string &piece) {
  std::filesystem::resize_file(file, uint64_t{128} << 20);
  std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
  out.seekp(static_cast<std::streamoff>(at));
  out << piece;
  return file;
}

TEST_F(TokensTest, OfALargeFilePartsAreCheckedAtOpenAndTheRestWhenRead) {
  constexpr uint64_t mebibyte = 1 << 20;
  std::string bad(mebibyte, '\xff');
  expectRefused({large(write("a", ""), 2 * mebibyte, bad), "u16", "", 500, 8},
                StatusCode::kDataLoss, "token 1048576 is 65535");
  expectRefused({large(write("b", ""), 127 * mebibyte, bad), "u16", "", 500, 8},
                StatusCode::kDataLoss, "token 66584576 is 65535");
  std::string between = large(write("c", ""), mebibyte, bad);
  auto source = TokenSource::open({between, "u16", "", 500, 8});
  ASSERT_TRUE(source.ok()) << source.status();
  absl::Status status;
  std::vector<int32_t> a(8), b(8);
  for (uint32_t i = 0; i < 10000 && status.ok(); ++i)
    status =
        (*source)->sample(1, {1, i}, {absl::MakeSpan(a), absl::MakeSpan(b)});
  expectError(status, StatusCode::kDataLoss, "is 65535, expected 0 to 499");
  // A mark may be anywhere.
  DocumentMarks marks{DocumentMarks::From::endToken, 65535};
  EXPECT_TRUE(TokenSource::open({between, "u16", "", 65536, 8, marks}).ok());
  marks.token = 7;
  expectRefused({between, "u16", "", 65536, 8, marks}, StatusCode::kDataLoss,
                "token 7 does not occur");
}

TEST_F(TokensTest, ASignalEndsTheCheck) {
  std::atomic<int> stop{15};
  expectRefused({write("d", bytesOf(counting<uint16_t>(20))),
                 "u16",
                 "",
                 20,
                 8,
                 {},
                 &stop},
                StatusCode::kCancelled, "stopped");
}

TEST_F(TokensTest, NeverGuessesAType) {
  std::string raw = write("raw", bytesOf(counting<uint16_t>(20)));
  expectRefused({raw, "", "", 20, 8}, StatusCode::kInvalidArgument,
                "give --data-type u16");
  expectRefused({raw, "i16", "", 20, 8}, StatusCode::kInvalidArgument,
                "--data-type \"i16\", expected u16 or u32");
  expectRefused({raw, "", "gpt2", 20, 8}, StatusCode::kInvalidArgument,
                "--tokenizer \"gpt2\", expected bytes");
  expectRefused({raw, "u16", "bytes", 20, 8}, StatusCode::kInvalidArgument,
                "exclude each other");
  expectRefused({raw, "u16", "", 0, 8}, StatusCode::kInvalidArgument,
                "vocabulary 0");
  expectRefused({raw, "u16", "", 20, 0}, StatusCode::kInvalidArgument,
                "sequence 0");
  auto data = bytesOf(counting<uint16_t>(20));
  std::string known = write("known", llmc(20240520, 1, 20, data));
  expectRefused({known, "u32", "", 20, 8}, StatusCode::kInvalidArgument,
                "is an llm.c file of 16-bit tokens, which --data-type u32");
  expectRefused({known, "", "bytes", 20, 8}, StatusCode::kInvalidArgument,
                "which --tokenizer bytes contradicts");
}

/// Ids as a tokenizer gives them: all of a vocabulary, in no order.
template <typename T> std::string ids(size_t count, uint64_t vocabulary) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>((i * 2654435761u >> 7) % vocabulary);
  return bytesOf(values);
}

TEST_F(TokensTest, KnownKindsOfFilesAreNotTakenRaw) {
  struct Case {
    std::string bytes, name, advice;
  };
  std::string rest = ids<uint16_t>(500, 60000);
  std::string zip = std::string("PK\3\4\x14", 5) + std::string(21, '\0');
  std::string entry = std::string("\x08\0\0\0", 4);
  std::string header(8, '\0');
  header[0] = 2;
  for (const Case &c : std::vector<Case>{
           {std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10), "a gzip file",
            "unpack it"},
           {zip + entry + "toke.npy", "a NumPy archive", "unpack it"},
           {zip + entry + "data.pkl", "a pickled file of PyTorch", "ids alone"},
           {zip + entry + "some.txt", "a zip archive", "unpack it"},
           {"\x28\xb5\x2f\xfd", "a Zstandard file", "unpack it"},
           {std::string("\x93NUMPY\1\0", 8), "a NumPy array", "numpy.load"},
           {"PAR1\x15\x04", "a Parquet file", "ids alone"},
           {std::string("ARROW1\0\0", 8), "an Arrow file", "ids alone"},
           {std::string("\xff\xff\xff\xff\x78\0\0\0\x10\0\0\0", 12),
            "an Arrow stream", "ids alone"},
           {"\x89HDF\r\n\x1a\n", "an HDF5 file", "ids alone"},
           {std::string("\x80\4\x95\x20\0\0\0\0\0\0\0", 11),
            "a pickled file of Python", "ids alone"},
           {header + "{}", "a safetensors file", "holds weights"},
           {"\x89PNG\r\n\x1a\n", "a PNG picture", "name a file"}}) {
    std::string bytes = c.bytes + rest;
    bytes.resize(1000);
    for (const char *type : {"u16", "u32", ""}) {
      TokenOptions options{write("x", bytes), type, "", 60000, 8};
      expectRefused(options, StatusCode::kDataLoss, "x\": is " + c.name);
      expectRefused(options, StatusCode::kDataLoss, c.advice);
    }
    expectRefused({path("x"), "", "bytes", 256, 8}, StatusCode::kDataLoss,
                  "x\": is " + c.name);
    for (size_t length = 0; length < 300; ++length) // of a file cut off
      (void)kindOf(std::string_view(bytes).substr(0, length), length);
  }
}

TEST_F(TokensTest, LettersAreNotTakenForIds) {
  std::string words;
  for (int i = 0; i < 40; ++i)
    words += "a word or two and sch\xc3\xb6n; ";
  std::string page = "<!DOCTYPE html>" + words, json = "{\"text\": \"" + words;
  for (const auto &[bytes, name] :
       {std::pair{words, "text"}, {page, "a web page"}, {json, "JSON"}}) {
    TokenOptions options{write("x", bytes), "u16", "", 60000, 8};
    expectRefused(options, StatusCode::kDataLoss, std::string("is ") + name);
    options.dataType = "u32";
    expectRefused(options, StatusCode::kDataLoss, std::string("is ") + name);
    options.dataType = "";
    expectRefused(options, StatusCode::kInvalidArgument,
                  std::string("is ") + name);
    options.tokenizer = "bytes";
    EXPECT_TRUE(TokenSource::open(options).ok());
  }
  // Words that files of other kinds begin with, and what Git LFS leaves.
  for (const char *word : {"PAR1", "GGUF", "FEA1", "BZh91AY&SY", "%PDF-"})
    EXPECT_TRUE(
        TokenSource::open({write("x", word + words), "", "bytes", 256, 8}).ok())
        << word;
  std::string pointer = "version https://git-lfs.github.com/spec/v1\noid "
                        "sha256:0123\nsize 12345\n";
  for (const auto &[type, tokenizer] :
       {std::pair{"u16", ""}, {"", ""}, {"", "bytes"}})
    expectRefused({write("x", pointer), type, tokenizer, 60000, 8},
                  StatusCode::kDataLoss, "git lfs pull");
}

TEST_F(TokensTest, IdsCutInPiecesAreRefused) {
  expectRefused({write("a", ids<uint32_t>(1000, 50000)), "u16", "", 50304, 8},
                StatusCode::kDataLoss,
                "every second id is 0, so it holds 32-bit ids");
  expectRefused({write("b", ids<uint32_t>(1000, 128256)), "u16", "", 128256, 8},
                StatusCode::kDataLoss, "every second id is at most 1");
  expectRefused({write("c", ids<uint64_t>(1000, 50000)), "u16", "", 50304, 8},
                StatusCode::kDataLoss,
                "of every four ids the last three are 0, so it holds 64-bit");
  expectRefused({write("d", ids<uint64_t>(1000, 50000)), "u32", "", 50304, 8},
                StatusCode::kDataLoss,
                "every second id is 0, so it holds 64-bit ids");
  expectRefused({write("e", ids<uint16_t>(1000, 50000)), "u32", "", 50304, 8},
                StatusCode::kDataLoss, "give --data-type u16?");
  // Data that somebody made by hand is another matter.
  for (size_t varied : {1, 8}) {
    std::vector<uint16_t> few(1000);
    for (size_t i = 0; i < few.size(); i += 2)
      few[i] = static_cast<uint16_t>(i % varied);
    EXPECT_TRUE(
        TokenSource::open({write("f", bytesOf(few)), "u16", "", 500, 8}).ok());
  }
}

TEST_F(TokensTest, WarnsOfIdsOfAnotherVocabulary) {
  auto warnings = [&](const std::string &bytes, const std::string &type,
                      uint32_t vocabulary, const char *tokenizer = "") {
    auto source =
        TokenSource::open({write("x", bytes), type, tokenizer, vocabulary, 8});
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? (*source)->warnings() : std::vector<std::string>();
  };
  using testing::ElementsAre;
  using testing::HasSubstr;
  constexpr size_t many = 100000;
  std::string gpt2 = ids<uint16_t>(many, 50257);
  std::string wide = ids<uint32_t>(many, 50257);
  std::string asLlmc = llmc(20240520, 1, many, gpt2);
  EXPECT_THAT(warnings(asLlmc, "", 128256),
              ElementsAre(HasSubstr("holds 16-bit ids, none above 65535; the "
                                    "model's vocabulary is 128256")));
  EXPECT_THAT(warnings(gpt2, "u16", 128256),
              ElementsAre(HasSubstr("none above 65535")));
  EXPECT_THAT(warnings(wide, "u32", 128256),
              ElementsAre(HasSubstr("the largest of 100000 ids looked at is "
                                    "502")));
  std::string text(many, 'a');
  EXPECT_THAT(warnings(text, "", 32000, "bytes"),
              ElementsAre(HasSubstr("makes ids from 0 to 255; the model's "
                                    "vocabulary is 32000")));
  EXPECT_THAT(warnings(std::string(many, '\1'), "", 256, "bytes"),
              ElementsAre(HasSubstr("100 % of its bytes are control")));
  // Padded to a multiple of 64 or 128, or with marks beside the bytes; and few
  // tokens, which cannot tell.
  for (uint32_t vocabulary : {50257u, 50304u, 50432u, 65536u})
    EXPECT_THAT(warnings(asLlmc, "", vocabulary), ElementsAre()) << vocabulary;
  for (uint32_t vocabulary : {256u, 259u, 320u, 512u, 1024u})
    EXPECT_THAT(warnings(text, "", vocabulary, "bytes"), ElementsAre());
  EXPECT_THAT(warnings(ids<uint16_t>(many, 65), "u16", 256), ElementsAre());
  EXPECT_THAT(warnings(ids<uint32_t>(1000, 500), "u32", 32000), ElementsAre());
}

TEST_F(TokensTest, AFileChangedInUseIsAnError) {
  std::string file = write("d", bytesOf(counting<uint16_t>(9)));
  auto source = TokenSource::open({file, "u16", "", 9, 8});
  ASSERT_TRUE(source.ok());
  std::vector<int32_t> a(8), b(8);
  auto sample = [&] {
    return (*source)->sample(1, {1, 1}, {absl::MakeSpan(a), absl::MakeSpan(b)});
  };
  ASSERT_TRUE(sample().ok());
  std::fstream(file, std::ios::in | std::ios::out).seekp(2) << "\xff\xff";
  expectError(sample(), StatusCode::kDataLoss, "token 1 is 65535");
  std::filesystem::resize_file(file, 10);
  expectError(sample(), StatusCode::kDataLoss, "d\": ends at byte 10");
}

TEST_F(TokensTest, SpansMustHoldOneSample) {
  std::string file = write("d", bytesOf(counting<uint16_t>(20)));
  auto source = TokenSource::open({file, "u16", "", 20, 8});
  ASSERT_TRUE(source.ok());
  std::vector<int32_t> a(8), b(7);
  expectError(
      (*source)->sample(1, {1, 1}, {absl::MakeSpan(a), absl::MakeSpan(b)}),
      StatusCode::kInvalidArgument, "needs room for 8");
}

} // namespace
} // namespace meshwork::runtime
