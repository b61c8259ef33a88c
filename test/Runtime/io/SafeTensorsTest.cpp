#include "runtime/io/SafeTensors.h"

#include <bit>
#include <cmath>
#include <limits>

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
