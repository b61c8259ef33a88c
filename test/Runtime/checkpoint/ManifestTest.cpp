// Manifests that break one rule each, their hash made to fit; and tilings
// against a count of every element.
#include "HandMade.h"
#include "runtime/checkpoint/CheckManifest.h"
#include <random>

namespace meshwork::runtime::test {
namespace {
using absl::StatusCode;

constexpr char good[] =
    R"({"format":"meshwork-checkpoint","version":1,"producer":"p",
"step":20,"updates":20,"samples":1280,
"options":{"--lr":"0.001"},
"files":[
{"name":"states-00000.safetensors","bytes":4194400,"hashes":["0123456789abcdef0123456789abcdef","0123456789abcdef0123456789abcdef"]}],
"tensors":[
{"name":"a","shape":[2,3],"file_shape":[6],"states":[{"name":"weight","dtype":"F32","boxes":[[0,104,[0,0],[2,2]],[0,4194376,[0,2],[2,1]]]}]}],
)";

/// With the hash that it needs.
std::string withHash(const std::string &text) {
  return text + "\"xxh3_128\":\"" + hashText(text) + "\"}\n";
}

struct Case {
  std::string from, to, message;
};

const Case cases[] = {
    {"meshwork-checkpoint", "zip", "has the format \"zip\""},
    {"\"version\":1,", "", "lacks the key \"version\""},
    {"\"version\":1", "\"version\":1,\"version\":1",
     "has key \"version\" twice"},
    {"\"step\":20", "\"step\":-1", "found the number -1"},
    {"\"step\":20", "\"step\":2e1", "found the number 2e1"},
    {"\"step\":20", "\"step\":18446744073709551616", "found the number 1844"},
    {"\"step\":20", "\"step\":\"20\"",
     "found the string \"20\", expected a whole number"},
    {"\"step\":20", "\"step\":{}", "found an object"},
    {"\"step\":20", "\"step\":19", "has 20 updates in 19 steps"},
    {"\"step\":20", "\"steps\":20", "has key \"steps\", expected format"},
    {"\"0.001\"", "0.001", "found the number 0.001"},
    {"\"0.001\"", "\"1\",\"--lr\":\"2\"", "has the option \"--lr\" twice"},
    {"states-00000", "../states", "expected the plain name"},
    {"states-00000.safetensors", "", "expected the plain name"},
    {"states-00000.safetensors", "..", "expected the plain name"},
    {"states-00000.safetensors", "manifest.json", "expected the plain name"},
    {"states-00000.safetensors", "a\\u0000b", "expected the plain name"},
    {"4194400", "4194304", "has 2 hashes, expected 1"},
    {"4194400", "18446744073709551615", "has 2 hashes, expected 4398046511104"},
    {"\"0123", "\"012", "expected 32 digits"},
    {"\"0123", "\"A123", "expected 32 digits"},
    {"}],\n\"tensors",
     "},{\"name\":\"states-00000.safetensors\",\"bytes\":0,\"hashes\":[]}],"
     "\n\"tensors",
     "has the file \"states-00000.safetensors\" twice"},
    {"\"name\":\"a\"", "\"name\":\"\"", "expected a name that is not empty"},
    {"[2,3]", "[2,0]", "expected sizes from 1 on"},
    {"[2,3]", "[4294967296,4294967296]", "expected sizes from 1 on"},
    {"[2,3]", "[4294967296,1073741824]", "expected sizes from 1 on"},
    {"[2,3]", "[2,9223372036854775808]",
     "found the number 9223372036854775808"},
    {"[2,3]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2,3]", "found the number 3"},
    {"[6]", "[7]", "has the shape [7] in files"},
    {"\"weight\"", "\"Weight\"", "expected a name of lower-case letters"},
    {"\"weight\"", "\"momentum\"", "lacks the state \"weight\""},
    {"F32", "F16", "has the type \"F16\", expected F32 or BF16"},
    {"[[0,104", "[[1,104", "a box is in file 1, there are 1"},
    {"[[0,104", "[[4294967296,104", "found the number 4294967296"},
    {"[[0,104", "[[0,106", "expected a multiple of the 4 bytes"},
    {"[0,4194376", "[0,4194396", "does not end in file"},
    {"[0,4194376", "[0,18446744073709551612", "does not end in file"},
    {"[0,4194376", "[0,116", "byte 116 is in boxes of tensors \"a\" and \"a\""},
    {"[0,0],[2,2]", "[0,0],[2]", "does not lie in the shape [2,3]"},
    {"[0,0],[2,2]", "[0,0],[2,0]", "does not lie in the shape"},
    {"[0,0],[2,2]", "[0,2],[2,2]", "does not lie in the shape"},
    {"[0,0],[2,2]", "[0,9223372036854775807],[2,2]",
     "does not lie in the shape"},
    {"[0,0],[2,2]", "[0,0],[2,1]", "element [0,1] is in 0 boxes, expected 1"},
    {"[0,0],[2,2]", "[0,0],[2,3]", "element [0,2] is in 2 boxes, expected 1"},
    {"[0,0],[2,2]", "[0,0]", "found a box of 3 items"},
    {"[0,0],[2,2]", "[0,0],[2,2],[0]", "found a list"},
    {"[0,0],[2,2]", "[[0]],[2,2]", "found a list"},
    {"[0,0],[2,2]", "7,[2,2]", "found the number 7"},
    {"\"states\":[", "\"states\":[7,", "found the number 7, expected objects"},
    {"\"states\":[", "\"states\":[null,", "found null"},
    {"\"tensors\":[", "\"tensors\":[true,", "found a boolean"},
    {"\"tensors\":[", "\"tensors\":[", ""}, // nothing changed: good
};

TEST(Manifest, eachRuleIsChecked) {
  for (const Case &one : cases) {
    std::string text = good;
    size_t at = text.find(one.from);
    ASSERT_NE(at, std::string::npos) << one.from;
    text.replace(at, one.from.size(), one.to);
    absl::StatusOr<Manifest> manifest = parseManifest(withHash(text));
    if (one.message.empty())
      EXPECT_TRUE(manifest.ok()) << manifest.status();
    else
      expectError(manifest.status(), StatusCode::kDataLoss, one.message);
  }
}

TEST(Manifest, anotherVersionIsNoDamage) {
  std::string text = good;
  text.replace(text.find("\"version\":1"), 11, "\"version\":3");
  expectError(parseManifest(withHash(text)).status(),
              StatusCode::kUnimplemented,
              "has version 3, this release reads 1 to 2");
}

/// The tensor's files: a column of three, then two rows of two.
constexpr char files[] =
    R"("files":[{"name":"x.{}.y","counted":[1,4],"begin":[0,0],"extent":[2,1],"shape":[2]},)"
    R"({"name":"z","counted":[],"begin":[0,1],"extent":[2,2],"shape":[4]}],)";

absl::StatusOr<Manifest> withFiles(const std::string &from,
                                   const std::string &to) {
  std::string list = files, text = good;
  if (size_t at = list.find(from); at != std::string::npos)
    list.replace(at, from.size(), to);
  else
    text.replace(text.find(from), from.size(), to);
  return parseManifest(withHash(text.insert(text.find("\"states\""), list)));
}

TEST(Manifest, ATensorMayBeSeveralInFiles) {
  auto manifest = withFiles("\"version\":1", "\"version\":2");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  plan::FileForm form = writtenForm(manifest->tensors[0]);
  ASSERT_EQ(form.size(), 2u);
  EXPECT_EQ(plan::namesText(form[0]), "x.4.y");
  EXPECT_EQ(form[0].counted, 1);
  EXPECT_EQ(form[1].extent, (std::vector<int64_t>{2, 2}));
  auto again = parseManifest(manifestText(*manifest));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(manifestText(*again), manifestText(*manifest));
  EXPECT_NE(manifestText(*manifest).find("\"version\":2"), std::string::npos);
  manifest->tensors[0].files.clear();
  EXPECT_NE(manifestText(*manifest).find("\"version\":1"), std::string::npos);
}

TEST(Manifest, FilesOfATensorAreChecked) {
  const Case hostile[] = {
      {"[1,4]", "[1]", "has \"counted\" [1], expected [dim, first number]"},
      {"[1,4]", "[16,4]", "expected [dim, first number]"},
      {"[1,4]", "[2,4]", "counts dim 2, the parameter has 2"},
      {"[1,4]", "[1,9223372036854775807]", "from number 9223372036854775807"},
      {"x.{}.y", "x.y", "expected {} once in the name"},
      {"x.{}.y", "x.{}.{}", "expected {} once in the name"},
      {"x.{}.y", "x{}.y", "expected {} once in the name"},
      {"x.{}.y", "x.{}.\\u0007", "no control characters"},
      {"\"z\"", "\"\"", "that are not empty"},
      {"\"z\"", "\"z.{}\"", "has {} in the name but counts no dim"},
      {"\"z\"", "\"x.4.y\"", "may be of the same name"},
      {"\"extent\":[2,2],\"shape\":[4]", "\"extent\":[2,1],\"shape\":[2]",
       "expected each in one file"},
      {"\"begin\":[0,1]", "\"begin\":[0,0]", "both hold the element [0,0]"},
      {"\"begin\":[0,1]", "\"begin\":[0,4611686018427387904]",
       "does not lie in [2,3]"},
      {"\"extent\":[2,2]", "\"extent\":[4611686018427387904,2]",
       "does not lie in [2,3]"},
      {"\"shape\":[4]", "\"shape\":[4611686018427387904,4]",
       "whose product fits 63 bits"},
      {"\"shape\":[4]", "\"shape\":[5]", "expected as many elements as in"},
      {"\"shape\":[4]", "\"shape\":[4],\"offset\":[0]", "has key \"offset\""},
      {"\"counted\":[],", "", "lacks the key \"counted\""},
  };
  for (const Case &one : hostile)
    expectError(withFiles(one.from, one.to).status(), StatusCode::kDataLoss,
                one.message);
}

TEST(Manifest, FilesOfDifferentTensorsHaveDifferentNames) {
  std::string text = good, tensor = text.substr(text.find("{\"name\":\"a\""));
  tensor.resize(tensor.find_last_of(']'));
  std::string other = tensor;
  other.replace(other.find("\"a\""), 3, "\"x.4.y\"");
  other.replace(other.find("[0,104"), 6, "[0,200");
  other.replace(other.find("4194376"), 7, "4194388");
  tensor.insert(tensor.find("\"states\""), files);
  size_t at = text.find("{\"name\":\"a\"");
  text.replace(at, text.find_last_of(']') - at, tensor + "," + other);
  expectError(parseManifest(withHash(text)).status(), StatusCode::kDataLoss,
              "its files \"x.{}.y\" and \"x.4.y\" may be of the same name");
}

TEST(Manifest, aTensorAndAStateAreThereOnce) {
  std::string text = good, tensor = text.substr(text.find("{\"name\":\"a\""));
  tensor.resize(tensor.find_last_of(']'));
  auto with = [&](const std::string &what, const std::string &more) {
    std::string changed = text;
    return withHash(changed.insert(changed.find(what) + what.size(), more));
  };
  expectError(parseManifest(with(tensor, "," + tensor)).status(),
              StatusCode::kDataLoss, "tensor \"a\": is there twice");
  std::string state = tensor.substr(tensor.find("{\"name\":\"weight\""));
  state.resize(state.find('}') + 1);
  expectError(parseManifest(with(state, "," + state)).status(),
              StatusCode::kDataLoss, "state \"weight\": is there twice");
}

TEST(Manifest, AnOptimizersStateMayBeANumber) {
  std::string state = "{\"name\":\"magnitude\",\"dtype\":\"F32\",\"boxes\":["
                      "[0,4000,[],[]]]}";
  auto with = [&](const std::string &from, const std::string &to) {
    std::string one = state, text = good;
    one.replace(one.find(from), from.size(), to);
    return parseManifest(
        withHash(text.insert(text.find("{\"name\":\"weight\""), one + ",")));
  };
  auto manifest = with("[]", "[]");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const StoredTensor &tensor = manifest->tensors[0];
  EXPECT_TRUE(isNumber(tensor.states[0]));
  EXPECT_EQ(shapeOf(tensor, tensor.states[0]), std::vector<int64_t>());
  EXPECT_EQ(shapeOf(tensor, tensor.states[1]), tensor.shape);
  auto fails = [&](const std::string &from, const std::string &to,
                   const char *message) {
    expectError(with(from, to).status(), StatusCode::kDataLoss, message);
  };
  fails("[0,4000,[],[]]", "[0,4000,[],[]],[0,4096,[],[]]",
        "is in 2 boxes, expected 1");
  fails("[0,4000,[],[]]", "[0,4000,[],[]],[0,4096,[0,0],[2,3]]",
        "does not lie in the shape []");
  fails("magnitude", "rounded_weight", "is one number, expected the shape");
}

TEST(Manifest, readsWhatIsWritten) {
  auto manifest = parseManifest(withHash(good));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifestText(*manifest), withHash(good));
  EXPECT_EQ(manifest->tensors[0].states[0].boxes[1].begin,
            (std::vector<int64_t>{0, 2}));
}

TEST(Manifest, noPrefixIsOne) {
  std::string text = withHash(good);
  for (size_t length = 0; length + 1 < text.size(); ++length)
    EXPECT_EQ(parseManifest(text.substr(0, length)).status().code(),
              StatusCode::kDataLoss);
  expectError(parseManifest(text.substr(0, 100)).status(),
              StatusCode::kDataLoss, "was cut off");
}

/// Splits `box` at random, up to `depth` times.
void split(std::mt19937 &random, const StoredBox &box, int depth,
           std::vector<StoredBox> &to) {
  size_t dim = random() % box.extent.size();
  if (depth == 0 || box.extent[dim] == 1)
    return to.push_back(box);
  int64_t at = 1 + static_cast<int64_t>(random() % (box.extent[dim] - 1));
  StoredBox first = box, second = box;
  first.extent[dim] = at;
  second.begin[dim] += at;
  second.extent[dim] -= at;
  split(random, first, depth - 1, to);
  split(random, second, depth - 1, to);
}

bool tiles(const std::vector<int64_t> &shape,
           const std::vector<StoredBox> &boxes) {
  std::vector<int> counts(static_cast<size_t>(shape[0] * shape[1] * shape[2]));
  for (const StoredBox &box : boxes)
    for (int64_t i = 0; i < box.extent[0]; ++i)
      for (int64_t j = 0; j < box.extent[1]; ++j)
        for (int64_t k = 0; k < box.extent[2]; ++k)
          ++counts[static_cast<size_t>(
              ((box.begin[0] + i) * shape[1] + box.begin[1] + j) * shape[2] +
              box.begin[2] + k)];
  return std::all_of(counts.begin(), counts.end(),
                     [](int count) { return count == 1; });
}

TEST(Tiling, isToldFromWhatIsNone) {
  std::mt19937 random(7);
  std::vector<int64_t> shape = {5, 4, 6};
  int good = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<StoredBox> boxes;
    split(random, {0, 0, {0, 0, 0}, shape}, static_cast<int>(random() % 6),
          boxes);
    for (int changes = static_cast<int>(random() % 3); changes > 0; --changes) {
      StoredBox &box = boxes[random() % boxes.size()];
      size_t dim = random() % 3;
      box.begin[dim] =
          static_cast<int64_t>(random() % static_cast<uint64_t>(shape[dim]));
      box.extent[dim] =
          1 + static_cast<int64_t>(random() % static_cast<uint64_t>(
                                                  shape[dim] - box.begin[dim]));
    }
    bool expected = tiles(shape, boxes);
    good += expected;
    EXPECT_EQ(checkTiling(shape, boxes).ok(), expected);
  }
  EXPECT_GT(good, 500);
  EXPECT_LT(good, 1500);
}

/// 200 000 boxes in a comb, each of which overlaps none but spans them all.
TEST(Tiling, takesNoLongerForManyBoxes) {
  std::vector<StoredBox> boxes;
  constexpr int64_t count = 200'000;
  for (int64_t i = 0; i < count; ++i)
    boxes.push_back({0, 0, {i, 0}, {1, count}});
  EXPECT_TRUE(checkTiling({count, count}, boxes).ok());
  boxes.back().begin[0] = 17;
  expectError(checkTiling({count, count}, boxes), StatusCode::kDataLoss,
              "element [17,0] is in 2 boxes");
}

} // namespace
} // namespace meshwork::runtime::test
