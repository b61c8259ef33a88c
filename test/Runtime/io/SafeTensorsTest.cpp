#include "runtime/io/SafeTensors.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/io/Convert.h"
#include "test/Runtime/io/TestFiles.h"

namespace meshwork::runtime {
namespace {

using absl::StatusCode;

class SafeTensorsTest : public TemporaryFolder {
protected:
  /// One tensor "t" of `count` elements.
  std::string oneTensor(const std::string &dtype, size_t count,
                        const std::string &data) const {
    std::string header = R"({"t":{"dtype":")" + dtype + R"(","shape":[)" +
                         std::to_string(count) + R"(],"data_offsets":[0,)" +
                         std::to_string(data.size()) + "]}}";
    return write("t.safetensors",
                 bytesOf(uint64_t{header.size()}) + header + data);
  }
  std::vector<float> readOne(const std::string &dtype, size_t count,
                             const std::string &data) const {
    std::vector<float> out(count, -1);
    auto reader = SafeTensorsReader::open(oneTensor(dtype, count, data));
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (reader.ok()) {
      absl::Status status = (*reader)->read("t", absl::MakeSpan(out));
      EXPECT_TRUE(status.ok()) << status;
    }
    return out;
  }
};

TEST_F(SafeTensorsTest, RoundTrip) {
  std::vector<float> a = {1, -0.0f, 3e38f, 1e-45f, INFINITY, 6}, b = {7};
  std::vector<TensorToWrite> tensors = {
      {"h.0.\"odd\\name\" \xc3\xa9", {2, 3}, a.data()},
      {"scalar", {}, b.data()},
      {"empty", {0, 4}, nullptr}};
  absl::Status status = writeSafeTensors(path("m.safetensors"), tensors);
  ASSERT_TRUE(status.ok()) << status;
  auto reader = SafeTensorsReader::open(path("m.safetensors"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->names(),
              testing::ElementsAre("empty", tensors[0].name, "scalar"));
  const TensorInfo *info = (*reader)->find(tensors[0].name);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->dtype, "F32");
  EXPECT_THAT(info->shape, testing::ElementsAre(2, 3));
  EXPECT_EQ((*reader)->find("empty")->numElements, 0u);
  std::vector<float> read(6), scalar(1);
  ASSERT_TRUE((*reader)->read(tensors[0].name, absl::MakeSpan(read)).ok());
  EXPECT_EQ(std::memcmp(read.data(), a.data(), 24), 0);
  ASSERT_TRUE((*reader)->read("scalar", absl::MakeSpan(scalar)).ok());
  EXPECT_EQ(scalar, b);
  EXPECT_TRUE((*reader)->read("empty", {}).ok());
}

TEST_F(SafeTensorsTest, ReadErrorsNameTheTensor) {
  auto reader = SafeTensorsReader::open(oneTensor("I32", 2, "01234567"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<float> two(2), three(3);
  expectError((*reader)->read("u", absl::MakeSpan(two)), StatusCode::kNotFound,
              "there is no tensor \"u\" among the 1 tensor");
  expectError((*reader)->read("t", absl::MakeSpan(three)),
              StatusCode::kInvalidArgument, "has 2 elements, expected 3");
  expectError((*reader)->read("t", absl::MakeSpan(two)), StatusCode::kDataLoss,
              "is I32, expected F32, F16, BF16 or F64");
  EXPECT_EQ((*reader)->find("u"), nullptr);
}

// Every f16 there is, against the definition (IEEE 754-2008, 3.4).
TEST_F(SafeTensorsTest, ReadsEveryHalf) {
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i)
    halves[i] = static_cast<uint16_t>(i);
  std::vector<float> got = readOne("F16", 65536, bytesOf(halves));
  for (int i = 0; i < 65536; ++i) {
    int exponent = (i >> 10) & 31, fraction = i & 1023;
    double value = exponent == 0 ? std::ldexp(fraction, -24)
                                 : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31)
      value = fraction ? NAN : INFINITY;
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(got[i])) << i;
    else
      EXPECT_EQ(got[i], i & 0x8000 ? -value : value) << i;
    EXPECT_EQ(std::signbit(got[i]), i >= 0x8000) << i;
  }
}

TEST_F(SafeTensorsTest, ReadsBf16AndF64AcrossChunks) {
  std::vector<uint16_t> brains(600000);
  for (size_t i = 0; i < brains.size(); ++i)
    brains[i] = static_cast<uint16_t>(i % 30000);
  std::vector<float> got = readOne("BF16", brains.size(), bytesOf(brains));
  for (size_t i = 0; i < brains.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), uint32_t{brains[i]} << 16);
  std::vector<double> doubles = {0.1, -1e300, 1e-300, 16777217.0};
  EXPECT_EQ(readOne("F64", 4, bytesOf(doubles)),
            (std::vector<float>{0.1f, -INFINITY, 0, 16777216.0f}));
}

TEST_F(SafeTensorsTest, KnowsPackedTypes) {
  auto reader = SafeTensorsReader::open(oneTensor("F4", 4, "ab"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->find("t")->numElements, 4u);
}

TEST_F(SafeTensorsTest, WriterRefusesBadNames) {
  float one = 1;
  auto refuses = [&](std::vector<std::string> names) {
    std::vector<TensorToWrite> tensors;
    for (const std::string &name : names)
      tensors.push_back({name, {1}, &one});
    expectError(writeSafeTensors(path("m"), tensors),
                StatusCode::kInvalidArgument, "cannot write a tensor named");
    EXPECT_FALSE(std::filesystem::exists(path("m")));
  };
  refuses({""});
  refuses({"a", "a"});
  refuses({"__metadata__"});
  refuses({"new\nline"});
  refuses({"\xff"});
}

TEST_F(SafeTensorsTest, WriterRefusesImpossibleTensors) {
  float one = 1;
  std::vector<TensorToWrite> huge = {
      {"a", {uint64_t{1} << 40, uint64_t{1} << 40}, &one}};
  expectError(writeSafeTensors(path("m"), huge), StatusCode::kInvalidArgument,
              "does not fit 64 bits");
  std::vector<TensorToWrite> none = {{"a", {1}, nullptr}};
  expectError(writeSafeTensors(path("m"), none), StatusCode::kInvalidArgument,
              "has no data");
  expectError(writeSafeTensors(path("no/m"), {}),
              StatusCode::kFailedPrecondition, "cannot create");
}

/// Every f16 that is finite and not negative, ascending.
std::vector<float> halves() {
  std::vector<uint16_t> bits(0x7c00);
  std::iota(bits.begin(), bits.end(), 0);
  std::vector<float> values(bits.size());
  converterToFloat("F16")(reinterpret_cast<const unsigned char *>(bits.data()),
                          bits.size(), values.data());
  return values;
}

TEST_F(SafeTensorsTest, RoundsToF16ToNearestEven) {
  std::vector<float> values = halves();
  std::vector<float> from;
  std::vector<uint16_t> expected;
  auto add = [&](float value, size_t half) {
    from.insert(from.end(), {value, -value});
    expected.insert(expected.end(), {static_cast<uint16_t>(half),
                                     static_cast<uint16_t>(half | 0x8000)});
  };
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    float middle = (values[i] + values[i + 1]) / 2; // exact
    add(values[i], i);
    add(std::nextafter(middle, 0.0f), i);
    add(middle, i + (i & 1));
    add(std::nextafter(middle, 1e9f), i + 1);
  }
  add(65519, 0x7bff);
  add(65520, 0x7c00); // as infinity
  add(INFINITY, 0x7c00);
  add(std::numeric_limits<float>::denorm_min(), 0);
  add(NAN, 0x7e00);
  std::vector<uint16_t> got(from.size());
  writerOfFloats("F16")->write(from.data(), from.size(),
                               reinterpret_cast<unsigned char *>(got.data()));
  for (size_t i = 0; i < from.size(); ++i)
    ASSERT_EQ(got[i], expected[i]) << from[i];
}

TEST_F(SafeTensorsTest, RoundsToBf16ToNearestEven) {
  auto rounded = [](uint32_t bits) {
    auto value = std::bit_cast<float>(bits);
    uint16_t brain;
    writerOfFloats("BF16")->write(&value, 1,
                                  reinterpret_cast<unsigned char *>(&brain));
    return brain;
  };
  EXPECT_EQ(rounded(0x3f807fff), 0x3f80);
  EXPECT_EQ(rounded(0x3f808000), 0x3f80); // half, to even
  EXPECT_EQ(rounded(0x3f818000), 0x3f82);
  EXPECT_EQ(rounded(0x3f808001), 0x3f81);
  EXPECT_EQ(rounded(0x7f7fffff), 0x7f80); // infinity
  EXPECT_EQ(rounded(0xff800000), 0xff80);
  EXPECT_EQ(rounded(0x7f800001), 0x7fc0); // NaN, quiet
}

TEST_F(SafeTensorsTest, WritesOtherTypesBySlices) {
  std::vector<uint64_t> asked;
  auto count = [&](uint64_t first, absl::Span<float> out) {
    asked.push_back(first);
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<float>(first + i);
    return absl::OkStatus();
  };
  std::vector<float> odd = {1, 2, 3};
  ASSERT_TRUE(
      writeSafeTensors(path("m"), {{"b", {2, 5}, nullptr, count, 4, "BF16"},
                                   {"f", {3}, odd.data(), nullptr, 0, "F16"},
                                   {"w", {7}, nullptr, count}})
          .ok());
  EXPECT_THAT(asked, testing::ElementsAre(0, 4, 8, 0));
  auto reader = SafeTensorsReader::open(path("m"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->find("b")->dtype, "BF16");
  EXPECT_EQ((*reader)->find("f")->dtype, "F16");
  std::vector<float> tens(10), three(3), seven(7);
  ASSERT_TRUE((*reader)->read("b", absl::MakeSpan(tens)).ok());
  ASSERT_TRUE((*reader)->read("f", absl::MakeSpan(three)).ok());
  ASSERT_TRUE((*reader)->read("w", absl::MakeSpan(seven)).ok());
  EXPECT_THAT(tens, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(three, odd);
  EXPECT_EQ(seven[6], 6);
  expectError(
      writeSafeTensors(path("m"), {{"a", {1}, odd.data(), nullptr, 0, "F8"}}),
      StatusCode::kInvalidArgument, "expected F32, F16 or BF16");
}

TEST_F(SafeTensorsTest, WritesAlignedData) {
  float one = 1;
  std::vector<TensorToWrite> tensors = {{"abc", {1}, &one}};
  ASSERT_TRUE(writeSafeTensors(path("m"), tensors).ok());
  std::ifstream file(path("m"), std::ios::binary);
  uint64_t length = 0;
  file.read(reinterpret_cast<char *>(&length), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(std::filesystem::file_size(path("m")), 8 + length + 4);
}

} // namespace
} // namespace meshwork::runtime
