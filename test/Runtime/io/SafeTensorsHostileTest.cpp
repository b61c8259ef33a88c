// Files that break one rule each. Every one must be refused with the reason,
// and every prefix and single-byte change of a good file must end in a result.
#include "runtime/io/SafeTensors.h"
#include "test/Runtime/io/TestFiles.h"

namespace meshwork::runtime {
namespace {

using absl::StatusCode;

std::string fileOf(const std::string &header, const std::string &data = "") {
  return bytesOf(uint64_t{header.size()}) + header + data;
}

std::string entry(const std::string &name, const std::string &dtype,
                  const std::string &shape, const std::string &offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape +
         R"(,"data_offsets":)" + offsets + "}";
}

struct Case {
  const char *label;
  std::string bytes;
  std::string message;
};

std::string big(uint64_t length, const std::string &rest) {
  return bytesOf(length) + rest;
}

std::vector<Case> lengthCases() {
  return {
      {"empty", "", "is 0 bytes, expected at least 8"},
      {"short", "1234567", "is 7 bytes"},
      {"only length", big(0, ""), "starts with \"\", expected '{'"},
      {"length of all ones", big(~uint64_t{0}, "{}"),
       "promise a header of 18446744073709551615 bytes, expected at most 2"},
      {"length beyond the file", big(3, "{}"), "header of 3 bytes"},
      {"length over the limit", big(100000001, "{}"), "header of 100000001"},
      {"length inside the header", big(1, "{}"), "is not JSON"},
      {"leading space", fileOf(" {}"), "starts with \" \", expected '{'"},
      {"byte order mark", fileOf("\xef\xbb\xbf{}"), "expected '{'"},
      {"array", fileOf("[]"), "expected '{'"},
      {"pickle", std::string("\x80\x02}q\x01.PK12345678"),
       "pickled files can run code"}};
}

std::vector<Case> jsonCases() {
  std::string good = entry("a", "F32", "[1]", "[0,4]");
  return {{"open brace", fileOf("{"), "is not JSON"},
          {"two objects", fileOf("{}{}"), "is not JSON"},
          {"trailing text", fileOf("{} x"), "is not JSON"},
          {"zero byte after the end", fileOf(std::string("{}\0{", 4)),
           "a zero byte"},
          {"trailing comma", fileOf("{" + good + ",}", "1234"), "is not JSON"},
          {"comment", fileOf("{/**/}"), "is not JSON"},
          {"single quotes", fileOf("{'a':1}"), "is not JSON"},
          {"bad UTF-8",
           fileOf("{" + entry("\xff", "F32", "[1]", "[0,4]") + "}"),
           "is not JSON"},
          {"lone surrogate", fileOf(R"({"\ud800":{}})"), "is not JSON"},
          {"raw control character", fileOf("{\"a\nb\":{}}"), "is not JSON"},
          {"number too large", fileOf(R"({"a":1e999})"), "is not JSON"},
          {"NaN", fileOf(R"({"a":NaN})"), "is not JSON"},
          {"deep arrays", fileOf(R"({"a":)" + std::string(1000000, '[')),
           "found an array"},
          {"deep objects", fileOf(R"({"a":{"dtype":{"dtype":{}}}})"),
           "found an object"}};
}

std::vector<Case> grammarCases() {
  std::string good = entry("a", "F32", "[1]", "[0,4]");
  auto one = [](const std::string &value) {
    return fileOf(R"({"a":)" + value + "}", "1234");
  };
  return {
      {"tensor is null", one("null"), "found null"},
      {"tensor is a number", one("1"), "found the number 1"},
      {"tensor is a string", one("\"x\""), "found the string \"x\""},
      {"tensor is true", one("true"), "found a boolean"},
      {"no keys", one("{}"), "expected dtype, shape and data_offsets"},
      {"no dtype", one(R"({"shape":[1],"data_offsets":[0,4]})"),
       "expected dtype, shape and data_offsets"},
      {"no shape", one(R"({"dtype":"F32","data_offsets":[0,4]})"),
       "expected dtype, shape and data_offsets"},
      {"no offsets", one(R"({"dtype":"F32","shape":[1]})"),
       "expected dtype, shape and data_offsets"},
      {"unknown key",
       one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1})"),
       "has key \"x\""},
      {"key twice",
       one(R"({"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})"),
       "has key \"dtype\" twice"},
      {"name twice", fileOf("{" + good + "," + good + "}", "1234"),
       "has the name \"a\" twice"},
      {"name twice by escape",
       fileOf("{" + good + "," + entry("\\u0061", "F32", "[1]", "[0,4]") + "}",
              "1234"),
       "has the name \"a\" twice"},
      {"empty name",
       fileOf("{" + entry("", "F32", "[1]", "[0,4]") + "}", "1234"),
       "has a tensor named \"\""},
      {"zero in a name",
       fileOf("{" + entry("\\u0000", "F32", "[1]", "[0,4]") + "}", "1234"),
       "has a tensor named \"\\x00\""},
      {"metadata is a list", fileOf(R"({"__metadata__":[]})"),
       "found an array, expected an object as"},
      {"metadata holds a number", fileOf(R"({"__metadata__":{"a":1}})"),
       "expected only strings"},
      {"metadata holds an object", fileOf(R"({"__metadata__":{"a":{}}})"),
       "expected only strings"},
      {"metadata key twice", fileOf(R"({"__metadata__":{"a":"","a":""}})"),
       "has key \"a\" twice in \"__metadata__\""},
      {"metadata twice", fileOf(R"({"__metadata__":{},"__metadata__":{}})"),
       "has the name \"__metadata__\" twice"}};
}

std::vector<Case> tensorCases() {
  auto one = [](const char *dtype, const char *shape, const char *offsets) {
    return fileOf("{" + entry("a", dtype, shape, offsets) + "}", "12345678");
  };
  auto two = [](const char *first, const char *second) {
    return fileOf("{" + entry("a", "F32", "[1]", first) + "," +
                      entry("b", "F32", "[1]", second) + "}",
                  "12345678");
  };
  return {
      {"unknown dtype", one("F33", "[2]", "[0,8]"), "unknown dtype \"F33\""},
      {"lower-case dtype", one("f32", "[2]", "[0,8]"), "unknown dtype"},
      {"negative dim", one("F32", "[-2]", "[0,8]"), "found the number -2"},
      {"fractional dim", one("F32", "[2.0]", "[0,8]"), "found the number 2.0"},
      {"string dim", one("F32", "[\"2\"]", "[0,8]"), "found the string"},
      {"nested shape", one("F32", "[[2]]", "[0,8]"), "found an array"},
      {"dim of 2^64", one("F32", "[18446744073709551616]", "[0,8]"),
       "found the number 18446744073709551616"},
      {"product overflow", one("F32", "[4294967296,4294967296,2]", "[0,8]"),
       "does not fit 64 bits"},
      {"overflow hidden by zero",
       one("F32", "[4294967296,4294967296,0]", "[0,8]"),
       "does not fit 64 bits"},
      {"bit count overflow", one("F64", "[576460752303423489]", "[0,8]"),
       "does not fit 64 bits"},
      {"half a byte", one("F4", "[15]", "[0,8]"), "ends inside a byte"},
      {"span too short", one("F32", "[3]", "[0,8]"),
       "span 8 bytes, expected 12 for 3 elements of F32"},
      {"span too long", one("F32", "[1]", "[0,8]"), "span 8 bytes, expected 4"},
      {"begin after end", one("F32", "[2]", "[8,0]"),
       "begins at byte 8, after"},
      {"offset below zero", one("F32", "[2]", "[-8,0]"), "found the number -8"},
      {"one offset", one("F32", "[2]", "[8]"), "two numbers"},
      {"three offsets", one("F32", "[2]", "[0,8,8]"), "found the number 8"},
      {"hole at the start", one("F32", "[1]", "[4,8]"),
       "begins at byte 4, expected 0: no byte"},
      {"hole between", two("[0,4]", "[5,9]"), "begins at byte 5, expected 4"},
      {"overlap", two("[0,4]", "[2,6]"), "expected 4: it overlaps"},
      {"same bytes twice", two("[0,4]", "[0,4]"), "it overlaps"},
      {"tail bytes", one("F32", "[1]", "[0,4]"),
       "end at byte 4 of the data, but the file has 8 bytes"},
      {"data cut off", one("F32", "[4]", "[0,16]"), "it was cut off"},
      {"offsets near 2^64",
       one("F32", "[2]", "[18446744073709551607,18446744073709551615]"),
       "begins at byte 18446744073709551607, expected 0"},
      {"data without tensors", fileOf("{}", "x"), "end at byte 0 of the data"}};
}

class HostileTest : public TemporaryFolder {
protected:
  void refusesAll(const std::vector<Case> &cases) const {
    for (const Case &c : cases) {
      SCOPED_TRACE(c.label);
      std::string file = write("x.safetensors", c.bytes);
      expectError(SafeTensorsReader::open(file).status(), StatusCode::kDataLoss,
                  c.message);
    }
  }
};

TEST_F(HostileTest, Lengths) { refusesAll(lengthCases()); }
TEST_F(HostileTest, Json) { refusesAll(jsonCases()); }
TEST_F(HostileTest, Grammar) { refusesAll(grammarCases()); }
TEST_F(HostileTest, Tensors) { refusesAll(tensorCases()); }

TEST_F(HostileTest, TheCorpusHasTheSizeItShould) {
  EXPECT_GE(lengthCases().size() + jsonCases().size() + grammarCases().size() +
                tensorCases().size(),
            60u);
}

// What the rules allow: padding, empty tensors anywhere, any order of entries.
TEST_F(HostileTest, AllowsWhatTheFormatAllows) {
  for (std::string bytes :
       {fileOf("{}"), fileOf("{}   "), fileOf(R"({"__metadata__":{"a":"b"}})"),
        fileOf("{" + entry("b", "F32", "[1]", "[4,8]") + "," +
                   entry("z", "F32", "[0,9]", "[4,4]") + "," +
                   entry("a", "F32", "[]", "[0,4]") + "}",
               "12345678")}) {
    auto reader = SafeTensorsReader::open(write("x.safetensors", bytes));
    EXPECT_TRUE(reader.ok()) << reader.status();
  }
}

TEST_F(HostileTest, RefusesEveryPrefixAndSurvivesEveryChange) {
  std::string good = fileOf("{" + entry("a", "F32", "[1]", "[0,4]") + "," +
                                entry("b", "BF16", "[2]", "[4,8]") + "}",
                            "12345678");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(
        SafeTensorsReader::open(write("x", good.substr(0, length))).ok())
        << length;
  for (size_t place = 0; place < good.size(); ++place)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = good;
      changed[place] = static_cast<char>(changed[place] ^ (1 << bit));
      auto reader = SafeTensorsReader::open(write("x", changed));
      // A change of the length or of the grammar's own characters is seen.
      if (place < 9)
        EXPECT_FALSE(reader.ok()) << place << " " << bit;
      if (reader.ok())
        for (const std::string &name : (*reader)->names())
          EXPECT_LE((*reader)->find(name)->numElements, 8u);
    }
}

TEST_F(HostileTest, ManyTensorsAreNoProblem) {
  std::string header = "{";
  for (int i = 0; i < 100000; ++i)
    header += (i ? "," : "") +
              entry("tensor." + std::to_string(i), "F32", "[0]", "[0,0]");
  auto reader = SafeTensorsReader::open(write("x", fileOf(header + "}")));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->names().size(), 100000u);
}

} // namespace
} // namespace meshwork::runtime
