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

TEST_F(SafeTensorsFolderTest, ReadsAnIndexThatIsNamed) {
  ASSERT_TRUE(open(R"({"weight_map":{"three":"b.safetensors"}})").ok());
  auto reader = SafeTensorsReader::open(path("m/model.safetensors.index.json"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->names(), testing::ElementsAre("three"));
  EXPECT_THAT((*reader)->paths(),
              testing::ElementsAre(path("m/model.safetensors.index.json"),
                                   path("m/b.safetensors")));
  write("config.json", R"({"model_type":"gpt2"})");
  expectError(SafeTensorsReader::open(path("config.json")).status(),
              StatusCode::kDataLoss, "has no \"weight_map\"");
}

/// A repository in the Hub's cache: files are links from snapshots to blobs.
class HubCacheTest : public SafeTensorsFolderTest {
protected:
  HubCacheTest() {
    std::filesystem::create_directories(path("r/snapshots/c0ffee"));
    std::filesystem::create_directory(path("r/blobs"));
    save("r/blobs/" + blob, {"one"});
    write("r/blobs/" + indexBlob, mapTo("a.safetensors"));
    link("../../blobs/" + indexBlob, "model.safetensors.index.json");
  }
  void link(const std::string &to, const std::string &name) const {
    std::string from = path("r/snapshots/c0ffee/" + name);
    std::filesystem::remove(from);
    std::filesystem::create_symlink(to, from);
  }
  absl::Status opened(const std::string &name = "r/snapshots/c0ffee") const {
    return SafeTensorsReader::open(path(name)).status();
  }
  const std::string blob = std::string(64, 'a');
  const std::string indexBlob = std::string(40, '1');
};

TEST_F(HubCacheTest, ReadsASnapshot) {
  link("../../blobs/" + blob, "a.safetensors");
  EXPECT_TRUE(opened().ok()) << opened();
  EXPECT_TRUE(opened("r/snapshots/c0ffee/model.safetensors.index.json").ok());
  std::filesystem::create_directory_symlink("snapshots/c0ffee", path("r/main"));
  EXPECT_TRUE(opened("r/main").ok());
  link("../../blobs/" + blob, "model.safetensors");
  EXPECT_TRUE(opened("r/snapshots/c0ffee/model.safetensors").ok());
}

TEST_F(HubCacheTest, ReadsABlobHoweverItsLinkIsSpelt) {
  for (const std::string &to :
       {path("r/blobs/" + blob), "../../blobs/../blobs/" + blob,
        "../c0ffee/../../blobs/" + blob}) {
    link(to, "a.safetensors");
    EXPECT_TRUE(opened().ok()) << to << opened();
  }
  // A folder within the snapshot, and blobs that are its files by hard links.
  std::filesystem::create_directory(path("r/snapshots/c0ffee/sub"));
  link("../../../blobs/" + indexBlob, "sub/model.safetensors.index.json");
  link("../../../blobs/" + blob, "sub/a.safetensors");
  EXPECT_TRUE(opened("r/snapshots/c0ffee/sub").ok());
  std::filesystem::remove(path("r/snapshots/c0ffee/a.safetensors"));
  std::filesystem::create_hard_link(path("r/blobs/" + blob),
                                    path("r/snapshots/c0ffee/a.safetensors"));
  EXPECT_TRUE(opened().ok()) << opened();
}

TEST_F(HubCacheTest, ObeysNoOtherLink) {
  save("r/other", {"one"});
  save("r/blobs/plain", {"one"});
  std::filesystem::create_directories(path("r/blobs/x"));
  save("r/blobs/x/" + blob, {"one"});
  save("r/blobs/" + blob + "a", {"one"});
  save("r/blobs/" + std::string(64, 'A'), {"one"});
  for (const std::string &to :
       {std::string("../../other"), std::string("../../blobs/plain"),
        "../../blobs/x/" + blob, "../../blobs/" + blob + "a",
        "../../blobs/" + std::string(64, 'A')}) {
    link(to, "a.safetensors");
    expectError(opened(), StatusCode::kDataLoss, "is a symbolic link to");
  }
  link("../../blobs/" + std::string(64, 'b'), "a.safetensors");
  expectError(opened(), StatusCode::kDataLoss,
              "cannot be opened: No such file");
  // A blob is a file of its own, and so is their folder.
  std::filesystem::create_symlink(path("r/other"),
                                  path("r/blobs/" + std::string(64, 'b')));
  expectError(opened(), StatusCode::kDataLoss, "is a symbolic link to");
  std::filesystem::create_hard_link(path("r/other"),
                                    path("r/blobs/" + std::string(64, 'c')));
  link("../../blobs/" + std::string(64, 'c'), "a.safetensors");
  expectError(opened(), StatusCode::kDataLoss, "has 2 hard links");
  link("../../blobs/" + blob, "a.safetensors");
  std::filesystem::rename(path("r/blobs"), path("r/moved"));
  std::filesystem::create_directory_symlink("moved", path("r/blobs"));
  expectError(opened(), StatusCode::kDataLoss, "is a symbolic link to");
}

TEST_F(HubCacheTest, ARepositoryStandsForItsSnapshot) {
  link("../../blobs/" + blob, "a.safetensors");
  EXPECT_TRUE(opened("r").ok()) << opened("r"); // the only one
  std::filesystem::create_directories(path("r/snapshots/beef"));
  expectError(opened("r"), StatusCode::kDataLoss,
              "with 2 snapshots, and its refs/main names none of them; give "
              "one, like");
  std::filesystem::create_directories(path("r/refs"));
  for (const char *main : {"none", "../..", "..", "", "a/b"}) {
    write("r/refs/main", main);
    expectError(opened("r"), StatusCode::kDataLoss, "names none of them");
  }
  write("r/refs/main", "c0ffee\n");
  EXPECT_TRUE(opened("r").ok()) << opened("r");
  std::filesystem::remove_all(path("r/snapshots"));
  std::filesystem::create_directories(path("r/snapshots"));
  expectError(opened("r"), StatusCode::kDataLoss, "holds no snapshot");
  std::filesystem::create_directories(path("hub/models--org--name"));
  expectError(opened("hub"), StatusCode::kNotFound,
              "it holds \"models--org--name\", repositories in the cache of "
              "the Hub: name one of them");
}

TEST_F(HubCacheTest, ObeysNoLinkElsewhere) {
  link("../../blobs/" + blob, "a.safetensors");
  std::filesystem::rename(path("r/snapshots"), path("r/elsewhere"));
  expectError(opened("r/elsewhere/c0ffee"), StatusCode::kDataLoss,
              "is a symbolic link");
}

TEST_F(SafeTensorsFolderTest, LinksThatStayInTheFolderAreObeyed) {
  std::filesystem::create_directory(path("m/real"));
  std::filesystem::rename(path("m/b.safetensors"), path("m/real/b"));
  for (const std::string &to : {std::string("real/b"), path("m/real/b"),
                                std::string("../m/./real/b")}) {
    std::filesystem::create_symlink(to, path("m/link"));
    auto reader = open(R"({"weight_map":{"three":"link"}})");
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::filesystem::remove(path("m/link"));
  }
  std::filesystem::create_hard_link(path("m/real/b"), path("m/hard"));
  auto reader = open(R"({"weight_map":{"three":"hard"}})");
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::filesystem::create_directory_symlink("..", path("m/up"));
  std::filesystem::create_symlink("up/secret", path("m/out"));
  save("secret", {"one"});
  refuses(mapTo("out"), "is a symbolic link to");
  std::filesystem::create_directory(path("m2"));
  save("m2/x", {"one"});
  std::filesystem::create_symlink("../m2/x", path("m/beside"));
  refuses(mapTo("beside"), "is a symbolic link to");
}

TEST_F(SafeTensorsFolderTest, LinksThatLeaveAreObeyedWhereTheUserSaysSo) {
  std::filesystem::create_directory(path("out"));
  save("out/a", {"one"});
  std::filesystem::create_symlink(path("out/a"), path("m/soft"));
  std::filesystem::create_hard_link(path("out/a"), path("m/hard"));
  LinkRule asked{false, "give --follow-links"}, allowed{true};
  for (const char *name : {"soft", "hard"}) {
    refuses(mapTo(name), "put a copy there");
    expectError(SafeTensorsReader::open(path("m"), asked).status(),
                StatusCode::kDataLoss,
                "or give --follow-links if you trust who made the folder");
    auto reader = SafeTensorsReader::open(path("m"), allowed);
    EXPECT_TRUE(reader.ok()) << reader.status();
  }
  // But to files alone, and by plain names.
  ASSERT_EQ(mkfifo(path("out/pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink(path("out/pipe"), path("m/pipe"));
  std::filesystem::create_symlink("/dev/zero", path("m/zero"));
  for (const auto &[name, what] :
       {std::pair{"pipe", "is a link to a pipe"},
        {"zero", "is a link to a device"},
        {"../out/a", "expected a plain file name"}}) {
    write("m/model.safetensors.index.json", mapTo(name));
    expectError(SafeTensorsReader::open(path("m"), allowed).status(),
                StatusCode::kDataLoss, what);
  }
}

TEST_F(SafeTensorsFolderTest, NamesWhatIsThereInPlaceOfWeights) {
  std::filesystem::create_directory(path("w"));
  auto refusesFile = [&](const std::string &bytes, const std::string &part) {
    for (const char *name :
         {"w/model.safetensors", "w/model.safetensors.index.json"}) {
      write(name, bytes);
      expectError(SafeTensorsReader::open(path("w")).status(),
                  StatusCode::kDataLoss, part);
      expectError(SafeTensorsReader::open(path(name)).status(),
                  StatusCode::kDataLoss, part);
    }
    std::filesystem::remove(path("w/model.safetensors.index.json"));
  };
  refusesFile("version https://git-lfs.github.com/spec/v1\noid sha256:01\n"
              "size 4096\n",
              "is a pointer of Git LFS, which stands for a file that was not "
              "fetched; run `git lfs pull`");
  refusesFile("<!doctype html>\n<html><head></head></html>",
              "is a web page (HTML)");
  refusesFile(std::string("PK\3\4", 4) + std::string(22, '\0') +
                  std::string("\x10\0\0\0", 4) + "archive/data.pkl",
              "pickled files can run code and are never opened");
  std::filesystem::remove(path("w/model.safetensors"));
  for (const auto &[name, part] :
       {std::pair{"x.safetensors", "name the file itself"},
        {"model-00001-of-00002.safetensors", "without their index"},
        {"adapter_model.safetensors", "an adapter (LoRA)"},
        {"pytorch_model.bin", "never opened"}}) {
    write(std::string("w/") + name, "");
    expectError(SafeTensorsReader::open(path("w")).status(),
                StatusCode::kNotFound, part);
  }
}

TEST_F(SafeTensorsFolderTest, TellsHowToFetchANameOfTheHub) {
  setenv("HF_HUB_CACHE", path("cache").c_str(), 1);
  auto missing = [&](const std::string &name, const std::string &part) {
    expectError(SafeTensorsReader::open(name).status(), StatusCode::kNotFound,
                part);
  };
  missing("meta-none/Llama-3.1-8B",
          "run `hf download meta-none/Llama-3.1-8B` and give the folder");
  std::filesystem::create_directories(
      path("cache/models--meta-none--Llama-3.1-8B"));
  missing("meta-none/Llama-3.1-8B",
          "its cache has it, give \"" +
              path("cache/models--meta-none--Llama-3.1-8B"));
  unsetenv("HF_HUB_CACHE");
  for (const char *path : {"./a/b", "/a/b", "a/b/c", "../b", "model.bin"})
    EXPECT_THAT(std::string(SafeTensorsReader::open(path).status().message()),
                testing::Not(testing::HasSubstr("Hub")));
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
