// Checkpoints of a folder, found and read: every box of a small one, ranges of
// a larger one. One whose files are not those that were saved is refused.
#include "HandMade.h"
#include "runtime/base/StartThread.h"
#include <random>

namespace meshwork::runtime::test {
namespace {
using absl::StatusCode;
using testing::HasSubstr;

class ReadCheckpoint : public TemporaryFolder {
protected:
  std::string contents(const std::string &file) const {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void replace(const std::string &file, const std::string &bytes) const {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }
  /// Opens it and hashes all.
  static absl::Status verified(const std::string &folder) {
    auto checkpoint = Checkpoint::open(folder);
    return checkpoint.ok() ? (*checkpoint)->verify() : checkpoint.status();
  }
};

std::vector<float> readBox(const Checkpoint &checkpoint,
                           const std::string &tensor, const std::string &state,
                           const std::vector<int64_t> &begin,
                           const std::vector<int64_t> &extent) {
  int64_t count = std::accumulate(extent.begin(), extent.end(), int64_t{1},
                                  std::multiplies<>());
  std::vector<float> out(static_cast<size_t>(count), -1);
  absl::Status status =
      checkpoint.read(tensor, state, begin, extent, absl::MakeSpan(out));
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

TEST_F(ReadCheckpoint, everyBoxIsPutTogetherFromThoseThatHoldIt) {
  HandMade made = smallCheckpoint();
  auto checkpoint = Checkpoint::open(made.write(root, 20));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ((*checkpoint)->manifest().progress.samples, 160u);
  EXPECT_EQ(*(*checkpoint)->readText(modelName), "module {}\n");
  for (const char *state : {"weight", "moment"})
    for (int64_t i = 0; i < 6; ++i)
      for (int64_t j = 0; j < 10; ++j)
        for (int64_t rows = 1; rows <= 6 - i; ++rows)
          for (int64_t columns = 1; columns <= 10 - j; ++columns)
            ASSERT_EQ(
                readBox(**checkpoint, "a", state, {i, j}, {rows, columns}),
                made.values("a", state, {i, j}, {rows, columns}))
                << i << " " << j << " " << rows << " " << columns;
  EXPECT_EQ(readBox(**checkpoint, "b", "weight", {}, {}),
            std::vector<float>{0});
  EXPECT_EQ((*checkpoint)->find("c"), nullptr);
  float one[1];
  expectError((*checkpoint)->read("c", "weight", {0}, {1}, one),
              StatusCode::kNotFound, "no tensor \"c\"");
  expectError((*checkpoint)->read("b", "moment", {}, {}, one),
              StatusCode::kNotFound, "no state \"moment\"");
  expectError((*checkpoint)->read("a", "weight", {5, 9}, {1, 2}, one),
              StatusCode::kInvalidArgument, "does not lie in it");
}

/// 4.8 MB a state, so that boxes and hashed ranges meet at any place.
TEST_F(ReadCheckpoint, rangesThatAreHashedMayEndAnywhereInABox) {
  HandMade made;
  made.tensors = {{"a", {1100, 1100}, {1100, 1100}, {{"weight", "F32", {}}}}};
  made.files = {{{"a", "weight", "F32", {0, 0}, {1100, 300}},
                 {"a", "weight", "F32", {0, 300}, {1100, 800}}}};
  std::string path = made.write(root, 1);
  auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  for (auto [begin, extent] :
       {std::pair<std::vector<int64_t>, std::vector<int64_t>>{{0, 0},
                                                              {1100, 1100}},
        {{0, 299}, {1100, 2}},
        {{700, 100}, {400, 900}}})
    EXPECT_TRUE(readBox(**checkpoint, "a", "weight", begin, extent) ==
                made.values("a", "weight", begin, extent));
  for (int64_t row : {0, 1, 900, 901, 1099})
    EXPECT_EQ(readBox(**checkpoint, "a", "weight", {row, 0}, {1, 1100}),
              made.values("a", "weight", {row, 0}, {1, 1100}));
  // What was changed is told where it is used, and not where it is not.
  std::string file = path + "/" + statesName(0), bytes = contents(file);
  bytes[bytes.size() - 5] ^= 1;
  replace(file, bytes);
  checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint.ok());
  readBox(**checkpoint, "a", "weight", {0, 0}, {10, 1100});
  std::vector<float> row(1100);
  expectError(
      (*checkpoint)
          ->read("a", "weight", {1099, 0}, {1, 1100}, absl::MakeSpan(row)),
      StatusCode::kDataLoss,
      "tensor \"a\", state \"weight\": \"" + file + "\": bytes 4194304 to " +
          std::to_string(bytes.size()) + " are not those that were saved");
}

/// Whatever the boxes, and however many threads: each element comes once.
TEST_F(ReadCheckpoint, manyBoxesAreReadByManyThreads) {
  HandMade made;
  made.tensors = {{"a", {1100, 1100}, {1100, 1100}, {{"weight", "F32", {}}}},
                  {"b", {3000, 450}, {3000, 450}, {{"weight", "F32", {}}}}};
  made.files = {{{"a", "weight", "F32", {0, 0}, {1100, 1100}},
                 {"b", "weight", "F32", {0, 0}, {1500, 450}}},
                {{"b", "weight", "F32", {1500, 0}, {1500, 450}}}};
  std::string path = made.write(root, 1);
  std::vector<std::vector<float>> found;
  std::vector<WantedBox> boxes;
  for (auto [tensor, begin, extent] :
       {std::tuple<std::string, std::vector<int64_t>, std::vector<int64_t>>{
            "b", {0, 225}, {3000, 225}},
        {"a", {550, 0}, {550, 1100}},
        {"a", {0, 0}, {1100, 1}},
        {"b", {1400, 0}, {200, 450}}}) {
    found.emplace_back(static_cast<size_t>(extent[0] * extent[1]), 0.f);
    boxes.push_back({tensor, "weight", begin, extent,
                     [&found, to = boxes.size()](
                         uint64_t first, absl::Span<const float> values) {
                       for (float value : values)
                         found[to][first++] += value;
                     }});
  }
  auto threads = [](absl::FunctionRef<void()> work) {
    runAtOnce(std::vector<std::function<void()>>(3, [&] { work(); }));
  };
  auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  absl::Status status = (*checkpoint)->readAll(boxes, threads);
  ASSERT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < boxes.size(); ++i)
    EXPECT_TRUE(found[i] == made.values(boxes[i].tensor, "weight",
                                        boxes[i].begin, boxes[i].extent))
        << i;
  // Of several ranges that were changed the first in the files is told.
  std::string file = path + "/" + statesName(0), bytes = contents(file);
  bytes.back() ^= 1;
  bytes[5000000] ^= 1;
  replace(file, bytes);
  checkpoint = Checkpoint::open(path);
  for (int i = 0; i < 20; ++i)
    expectError((*checkpoint)->readAll(boxes, threads), StatusCode::kDataLoss,
                "tensor \"b\", state \"weight\": \"" + file +
                    "\": bytes 4194304 to ");
}

TEST_F(ReadCheckpoint, everyBitCounts) {
  std::string path = smallCheckpoint().write(root, 20);
  ASSERT_TRUE(verified(path).ok());
  std::mt19937 random(1);
  for (const char *name :
       {"states-00000.safetensors", "states-00001.safetensors", modelName,
        manifestName}) {
    std::string file = path + "/" + name, good = contents(file);
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
      replace(file, bytes);
      expectError(verified(path), StatusCode::kDataLoss, name);
    }
    replace(file, good);
  }
  ASSERT_TRUE(verified(path).ok());
  // Behind the header it is a tensor's.
  std::string file = path + "/states-00001.safetensors", bytes = contents(file);
  bytes.back() ^= 1;
  replace(file, bytes);
  expectError(verified(path), StatusCode::kDataLoss,
              "they hold tensor \"a\", state \"weight\", and 2 other boxes");
}

TEST_F(ReadCheckpoint, everyLengthIsRefusedButTheWhole) {
  std::string path = smallCheckpoint().write(root, 20);
  for (const char *name :
       {"states-00000.safetensors", modelName, manifestName}) {
    std::string file = path + "/" + name, good = contents(file);
    // Its last byte is the line's end.
    size_t whole =
        name == std::string(manifestName) ? good.size() - 1 : good.size();
    for (size_t length = 0; length < whole; ++length) {
      replace(file, good.substr(0, length));
      expectError(verified(path), StatusCode::kDataLoss, name);
    }
    replace(file, good + "x");
    expectError(verified(path), StatusCode::kDataLoss, name);
    replace(file, good);
  }
}

TEST_F(ReadCheckpoint, filesThatAreGoneSwappedOrOfAnotherStepAreRefused) {
  std::string path = smallCheckpoint().write(root, 20);
  std::string other = smallCheckpoint(100).write(root, 40);
  std::string first = path + "/states-00000.safetensors",
              second = path + "/states-00001.safetensors";
  namespace fs = std::filesystem;
  fs::rename(first, path + "/x");
  fs::rename(second, first);
  fs::rename(path + "/x", second);
  expectError(verified(path), StatusCode::kDataLoss,
              "states-00000.safetensors");
  fs::rename(first, path + "/x");
  fs::rename(second, first);
  expectError(
      verified(path), StatusCode::kDataLoss,
      "states-00001.safetensors\": cannot open: No such file or directory, "
      "expected a file of 388 bytes");
  fs::rename(path + "/x", second);
  ASSERT_TRUE(verified(path).ok());
  fs::copy_file(other + "/states-00001.safetensors", second,
                fs::copy_options::overwrite_existing);
  expectError(verified(path), StatusCode::kDataLoss,
              "bytes 0 to 388 are not those that were saved");
  for (const auto &entry : fs::directory_iterator(other))
    fs::copy_file(entry.path(), path / entry.path().filename(),
                  fs::copy_options::overwrite_existing);
  expectError(verified(path), StatusCode::kDataLoss,
              "its manifest is of step 40, expected 20 by the folder's name");
  fs::rename(path, root + "/best");
  EXPECT_TRUE(verified(root + "/best/").ok());
  fs::remove(other + "/" + manifestName);
  expectError(verified(other), StatusCode::kNotFound, "is no checkpoint");
  expectError(verified(root + "/nothing"), StatusCode::kNotFound, "nothing");
}

TEST_F(ReadCheckpoint, areFoundByNameNewestFirst) {
  HandMade made = smallCheckpoint();
  made.write(root, 9);
  made.write(root, 100);
  made.write(root, 20);
  std::filesystem::create_directories(root + "/step-0000000030");
  std::filesystem::create_directories(root + "/step-31");
  std::filesystem::create_directories(root + "/best");
  write("step-0000000032", "a file");
  auto found = findCheckpoints(root);
  ASSERT_TRUE(found.ok());
  std::vector<uint64_t> steps;
  for (const FoundCheckpoint &one : found->complete)
    steps.push_back(one.step);
  EXPECT_EQ(steps, (std::vector<uint64_t>{100, 20, 9}));
  EXPECT_EQ(found->complete[0].path, path("step-0000000100"));
  ASSERT_EQ(found->incomplete.size(), 1u);
  EXPECT_EQ(found->incomplete[0].step, 30u);
  ASSERT_EQ(found->damaged.size(), 1u);
  EXPECT_EQ(found->damaged[0].step, 32u);
  expectError(findCheckpoints(root + "/none").status(), StatusCode::kNotFound,
              "none");
}

/// Opening tells why; nothing of the kind is a save that was cut off.
TEST_F(ReadCheckpoint, whatIsOnlyCalledLikeOneIsDamaged) {
  namespace fs = std::filesystem;
  smallCheckpoint().write(root, 1);
  fs::create_symlink("nowhere", path("step-0000000002"));
  write("step-0000000003", "a file");
  fs::create_directories(path("elsewhere"));
  fs::create_directory_symlink("elsewhere", path("step-0000000004"));
  fs::create_directories(path("step-0000000005"));
  fs::create_symlink("/nowhere", path("step-0000000005/manifest.json"));
  fs::create_directory_symlink("step-0000000001", path("step-0000000006"));
  auto found = findCheckpoints(root);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->incomplete.empty());
  ASSERT_EQ(found->all().size(), 6u);
  const char *told[] = {"its manifest is of step 1, expected 6",
                        "manifest.json\": is a symbolic link",
                        "without it a folder is no checkpoint",
                        "is a file, expected the folder of a checkpoint",
                        "link to \"nowhere\", which cannot be found"};
  for (size_t i = 0; i < std::size(told); ++i) {
    FoundCheckpoint one = found->all()[i];
    EXPECT_EQ(one.step, 6 - i);
    EXPECT_THAT(std::string(Checkpoint::open(one.path).status().message()),
                testing::HasSubstr(told[i]));
  }
}

} // namespace
} // namespace meshwork::runtime::test
