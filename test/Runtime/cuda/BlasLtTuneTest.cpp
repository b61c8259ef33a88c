// Which of the ways to run a product is kept, and for how long.
#include "runtime/device/cuda/Tuned.h"
#include "test/Runtime/cuda/BlasLtCase.h"
#include <filesystem>
#include <fstream>

namespace meshwork::runtime::cuda::test {
namespace {
using plan::Epilogue;

/// A product whose time depends on MESHWORK_EMULATOR_BLAS_SLOW; `number` makes
/// it a problem of its own, or the process would know the answer.
struct Tuning : ::testing::Test {
  TestDevice on;
  std::unique_ptr<BlasLt> blas = *BlasLt::create(*on.driver);
  Problem problem{on, {1, 16, 16, 301}};

  std::unique_ptr<BlasLtMatmul> tuned(MatmulRequest request, uint64_t number,
                                      const char *slow) {
    ::setenv("MESHWORK_EMULATOR_BLAS_SLOW", slow, 1);
    request.workspaceBytes = 8192 + number;
    auto product = blas->prepare(request);
    expectOk(product.status());
    expectOk((*product)->tune(on.stream));
    ::unsetenv("MESHWORK_EMULATOR_BLAS_SLOW");
    return *std::move(product);
  }
  std::vector<float> resultOf(BlasLtMatmul &product) {
    expectOk(product.run(on.stream, false));
    return problem.dst.read(on, problem.before.size());
  }
};

/// What runs is what was fastest: a split sum has other bits than a whole one.
TEST_F(Tuning, KeepsTheFastest) {
  auto results = [&](uint64_t number, const char *slow) {
    return resultOf(*tuned(problem.request, number, slow));
  };
  EXPECT_NE(results(1, "0"), results(2, "1"));
}

/// Both ways compete; the slow one of each is out.
TEST_F(Tuning, AKernelBesideMayBeFaster) {
  MatmulRequest request = problem.request;
  request.epilogue = Epilogue::gelu;
  EXPECT_NE(tuned(request, 3, "epilogues")->whyBeside(), "");
  EXPECT_EQ(tuned(request, 4, "products")->whyBeside(), "");
}

TEST_F(Tuning, AChoiceIsTheAlgorithmItself) {
  (void)tuned(problem.request, 5, "0");
  std::string text = Tuned::ofProcess().text(/*onlyUsed=*/true);
  std::string key = text.substr(0, text.find(" 8197\n"));
  key = key.substr(key.rfind('\n') + 1);
  EXPECT_EQ(key.find("whole:"), 0u) << key;
  EXPECT_EQ(key.find(' '), 6 + 2 * sizeof(blas::Algorithm)) << key;
}

struct Choices : ::testing::Test {
  Tuned all;
  int timed = 0;
  std::string get(const std::string &key, const std::string &accepted) {
    return *all.get(
        key, [&](absl::string_view choice) { return choice == accepted; },
        [&]() -> absl::StatusOr<std::string> {
          ++timed;
          return accepted;
        });
  }
};

TEST_F(Choices, AreTimedOnceAndAgainWhenTheyAreNoCandidate) {
  all.adopt("a first key\nb second key\n");
  EXPECT_EQ(get("first key", "a"), "a");
  EXPECT_EQ(timed, 0);
  EXPECT_EQ(get("second key", "other"), "other");
  EXPECT_EQ(get("second key", "other"), "other");
  EXPECT_EQ(timed, 1);
  EXPECT_EQ(all.counts().known, 1u);
  EXPECT_EQ(all.counts().timed, 1u);
}

TEST_F(Choices, LinesThatAreNoneAreLeftOut) {
  all.adopt("\n \nalone\n leading\na\x01 key\n\xff key\ngood the key");
  EXPECT_EQ(all.text(false), "good the key\n");
  EXPECT_EQ(all.text(true), "");
}

/// On disk, in a folder of the test.
struct Kept : Choices {
  std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                 absl::StrCat("meshwork-tuned-", ::getpid());
  std::string path;
  Kept() {
    ::setenv("MESHWORK_CACHE_DIR", folder.c_str(), 1);
    path = tunedPath(130100, "NVIDIA H100/80GB (9.0)");
  }
  ~Kept() override {
    ::unsetenv("MESHWORK_CACHE_DIR");
    std::filesystem::remove_all(folder);
  }
  void put(const std::string &text) {
    std::filesystem::create_directories(folder);
    std::ofstream(path) << text;
  }
};

TEST_F(Kept, ComeBack) {
  EXPECT_EQ(path, folder.string() +
                      "/tuned-cublasLt-130100-NVIDIA_H100_80GB__9.0_.txt");
  EXPECT_EQ(readTuned(path), "");
  all.adopt("a first key\nb second key\n");
  expectOk(writeTuned(path, all));
  EXPECT_EQ(readTuned(path), all.text(false));
  // Nothing beside it.
  using Entries = std::filesystem::directory_iterator;
  EXPECT_EQ(std::distance(Entries(folder), Entries()), 1);
}

TEST_F(Kept, WhatIsNoSuchFileIsNothing) {
  put("something else\na first key\n");
  EXPECT_EQ(readTuned(path), "");
  put("meshwork tuned 1\n" + std::string(2 << 20, 'x'));
  EXPECT_EQ(readTuned(path), "");
  put("");
  EXPECT_EQ(readTuned(path), "");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_EQ(readTuned(path), "");
  EXPECT_FALSE(writeTuned(path, all).ok());
  EXPECT_FALSE(writeTuned("/proc/none/file", all).ok());
}

TEST_F(Kept, WhereTheEnvironmentSays) {
  ::setenv("MESHWORK_CACHE_DIR", "", 1);
  EXPECT_EQ(tunedPath(1, "gpu"), "");
  ::unsetenv("MESHWORK_CACHE_DIR");
  const char *home = std::getenv("HOME");
  std::string before = home ? home : "";
  auto with = [](const char *xdg, const char *home) {
    ::setenv("XDG_CACHE_HOME", xdg, 1);
    ::setenv("HOME", home, 1);
    return tunedPath(1, "gpu");
  };
  EXPECT_EQ(with("/x", "/h"), "/x/meshwork/tuned-cublasLt-1-gpu.txt");
  EXPECT_EQ(with("relative", "/h"),
            "/h/.cache/meshwork/tuned-cublasLt-1-gpu.txt");
  EXPECT_EQ(with("", ""), "");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", before.c_str(), 1);
}

} // namespace
} // namespace meshwork::runtime::cuda::test
