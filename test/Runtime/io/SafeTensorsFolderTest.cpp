#include <sys/stat.h>

#include "runtime/io/SafeTensors.h"
#include "test/Runtime/io/TestFiles.h"

namespace meshwork::runtime {
namespace {

using absl::StatusCode;

class SafeTensorsFolderTest : public TemporaryFolder {
protected:
  SafeTensorsFolderTest() {
    std::filesystem::create_directory(path("m"));
    save("m/a.safetensors", {"one", "two"});
    save("m/b.safetensors", {"three"});
  }
  void save(const std::string &file, std::vector<std::string> names) const {
    std::vector<TensorToWrite> tensors;
    for (const std::string &name : names)
      tensors.push_back({name, {2}, values});
    ASSERT_TRUE(writeSafeTensors(path(file), tensors).ok());
  }
  absl::StatusOr<std::unique_ptr<SafeTensorsReader>>
  open(const std::string &index) const {
    write("m/model.safetensors.index.json", index);
    return SafeTensorsReader::open(path("m"));
  }
  void refuses(const std::string &index, const std::string &part) const {
    expectError(open(index).status(), StatusCode::kDataLoss, part);
  }
  std::string mapTo(const std::string &file) const {
    return R"({"weight_map":{"one":")" + file + R"("}})";
  }
  static constexpr float values[2] = {1, 2};
};

TEST_F(SafeTensorsFolderTest, ReadsAcrossFiles) {
  auto reader = open(
      R"({"metadata":{"total_size":24,"x":[1,{"y":null}]},
          "weight_map":{"one":"a.safetensors","three":"b.safetensors",
                        "two":"a.safetensors"}})");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->names(), testing::ElementsAre("one", "three", "two"));
  std::vector<float> out(2);
  ASSERT_TRUE((*reader)->read("three", absl::MakeSpan(out)).ok());
  EXPECT_THAT(out, testing::ElementsAre(1, 2));
}

TEST_F(SafeTensorsFolderTest, ReadsASingleFile) {
  expectError(SafeTensorsReader::open(path("m")).status(),
              StatusCode::kNotFound, "holds neither");
  save("m/model.safetensors", {"one"});
  EXPECT_TRUE(SafeTensorsReader::open(path("m")).ok());
}

TEST_F(SafeTensorsFolderTest, PathsCannotLeaveTheFolder) {
  save("secret.safetensors", {"one"});
  refuses(mapTo("../secret.safetensors"), "expected a plain file name");
  refuses(mapTo(path("secret.safetensors")), "expected a plain file name");
  refuses(mapTo("x/../../secret.safetensors"), "expected a plain file name");
  refuses(mapTo(""), "expected a plain file name");
  refuses(mapTo(".."), "expected a plain file name");
  refuses(mapTo("a.safetensors\\u0000"), "expected a plain file name");
  refuses(mapTo("\\u001b[2J/"), "\"\\x1b[2J/\"");
  std::filesystem::create_symlink(path("secret.safetensors"),
                                  path("m/link.safetensors"));
  refuses(mapTo("link.safetensors"), "is a symbolic link");
  std::filesystem::create_hard_link(path("secret.safetensors"),
                                    path("m/hard.safetensors"));
  refuses(mapTo("hard.safetensors"), "has 2 hard links");
  ASSERT_EQ(mkfifo(path("m/pipe").c_str(), 0600), 0);
  refuses(mapTo("pipe"), "is a pipe");
  std::filesystem::create_directory(path("m/folder"));
  refuses(mapTo("folder"), "is a folder");
  expectError(open(mapTo("none")).status(), StatusCode::kNotFound,
              "tensor \"one\" is mapped to a file that cannot be used");
}

TEST_F(SafeTensorsFolderTest, IndexAndFilesMustAgree) {
  refuses(mapTo("a.safetensors"), "does not map tensor \"two\"");
  refuses(R"({"weight_map":{"one":"b.safetensors","three":"b.safetensors"}})",
          "maps tensor \"one\" to \"b.safetensors\", which does not hold it");
  save("m/c.safetensors", {"one"});
  refuses(R"({"weight_map":{"one":"a.safetensors","two":"a.safetensors",
              "x":"c.safetensors"}})",
          "tensor \"one\" is in");
}

TEST_F(SafeTensorsFolderTest, RefusesMalformedIndexes) {
  refuses("", "is not JSON at byte");
  refuses("[]", "found an array, expected an object");
  refuses("{}", "has no \"weight_map\"");
  refuses("7", "found a number, expected an object");
  refuses(R"({"weight_map":[]})", "has an array as \"weight_map\"");
  refuses(R"({"weight_map":"a"})", "has a string as \"weight_map\"");
  refuses(R"({"weight_map":{"one":1}})", "maps \"one\" to a number");
  refuses(R"({"weight_map":{"one":{"x":"y"}}})", "maps \"one\" to an object");
  refuses(R"({"weight_map":{"one":["y"]}})", "maps \"one\" to an array");
  refuses(R"({"weight_map":{"one":null}})", "maps \"one\" to null");
  refuses(R"({"weight_map":{"a":"x","a":"x"}})", "maps \"a\" twice");
  refuses(R"({"weight_map":{},"weight_map":{}})",
          "has key \"weight_map\" twice");
  refuses(R"({"metadata":{"weight_map":{}}})", "has no \"weight_map\"");
  refuses(std::string("{\"weight_map\":{}}\0x", 18), "a zero byte");
  std::string deep = R"({"metadata":)" + std::string(100000, '[');
  refuses(deep, "nests deeper than 64");
}

TEST_F(SafeTensorsFolderTest, AnEmptyMapIsAnEmptyModel) {
  auto reader = open(R"({"weight_map":{}})");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE((*reader)->names().empty());
  expectError((*reader)->read("x", {}), StatusCode::kNotFound,
              "among the 0 tensors of the index");
}

} // namespace
} // namespace meshwork::runtime
