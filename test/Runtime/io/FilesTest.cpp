#include "runtime/io/Files.h"

#include <csignal>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/Runtime/io/TestFiles.h"

namespace meshwork::runtime {
namespace {

using absl::StatusCode;

class FilesTest : public TemporaryFolder {
protected:
  std::string contents(const std::string &name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t numFiles() const {
    size_t count = 0;
    for ([[maybe_unused]] auto &entry :
         std::filesystem::directory_iterator(root))
      ++count;
    return count;
  }
};

TEST_F(FilesTest, CheckedArithmeticStopsAtTheLimit) {
  EXPECT_EQ(checkedMultiply(uint64_t{1} << 32, (uint64_t{1} << 32) - 1),
            ~uint64_t{0} - ((uint64_t{1} << 32) - 1));
  EXPECT_FALSE(checkedMultiply(uint64_t{1} << 32, uint64_t{1} << 32));
  EXPECT_EQ(checkedAdd(~uint64_t{0} - 1, 1), ~uint64_t{0});
  EXPECT_FALSE(checkedAdd(~uint64_t{0}, 1));
}

TEST_F(FilesTest, QuotesWhatATerminalWouldObey) {
  EXPECT_EQ(quote("a\x1b[2J\n"), "\"a\\x1b[2J\\n\"");
  EXPECT_EQ(quote(std::string(500, 'x')).size(), 125u);
}

TEST_F(FilesTest, RefusesWhatIsNoRegularFile) {
  expectError(InputFile::open(path("absent")).status(), StatusCode::kNotFound,
              "absent\": cannot open: No such file");
  expectError(InputFile::open(root).status(), StatusCode::kDataLoss,
              "is a folder");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  expectError(InputFile::open(path("pipe")).status(), StatusCode::kDataLoss,
              "is a pipe");
  expectError(InputFile::open("/dev/zero").status(), StatusCode::kDataLoss,
              "is a device");
}

TEST_F(FilesTest, AFileThatShrinksIsAnErrorWithItsName) {
  std::string name = write("data", "0123456789");
  absl::StatusOr<InputFile> file = InputFile::open(name);
  ASSERT_TRUE(file.ok());
  char bytes[4];
  EXPECT_TRUE(file->readAt(6, bytes, 4).ok());
  EXPECT_EQ(std::string_view(bytes, 4), "6789");
  ASSERT_EQ(truncate(name.c_str(), 8), 0);
  expectError(file->readAt(6, bytes, 4), StatusCode::kDataLoss,
              "data\": ends at byte 8, 2 bytes early; it had 10 bytes");
}

TEST_F(FilesTest, AFolderGivesOnlyItsOwnPlainFiles) {
  std::filesystem::create_directory(path("in"));
  write("secret", "x");
  write("in/good", "x");
  EXPECT_TRUE(InputFile::openInFolder(path("in"), "good").ok());
  for (std::string name :
       {std::string("../secret"), path("secret"), std::string(".."),
        std::string("."), std::string(""), std::string("good\0x", 6),
        std::string(300, 'n'), std::string("./good")})
    expectError(InputFile::openInFolder(path("in"), name).status(),
                StatusCode::kDataLoss, "expected a plain file name");
  std::filesystem::create_symlink(path("secret"), path("in/link"));
  expectError(InputFile::openInFolder(path("in"), "link").status(),
              StatusCode::kDataLoss, "is a symbolic link");
  std::filesystem::create_hard_link(path("secret"), path("in/hard"));
  expectError(InputFile::openInFolder(path("in"), "hard").status(),
              StatusCode::kDataLoss, "has 2 hard links");
  ASSERT_EQ(mkfifo(path("in/pipe").c_str(), 0600), 0);
  expectError(InputFile::openInFolder(path("in"), "pipe").status(),
              StatusCode::kDataLoss, "is a pipe");
  expectError(InputFile::openInFolder(path("in"), "none").status(),
              StatusCode::kNotFound, "No such file");
}

TEST_F(FilesTest, OutputAppearsWhenCompleteAndNotBefore) {
  write("out", "old");
  {
    absl::StatusOr<OutputFile> file = OutputFile::create(path("out"));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->write("new", 3).ok());
    EXPECT_EQ(contents("out"), "old");
    EXPECT_EQ(numFiles(), 2u);
    ASSERT_TRUE(file->commit().ok());
  }
  EXPECT_EQ(contents("out"), "new");
  EXPECT_EQ(numFiles(), 1u);
  {
    absl::StatusOr<OutputFile> file = OutputFile::create(path("out"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("lost", 4).ok());
  }
  EXPECT_EQ(contents("out"), "new");
  EXPECT_EQ(numFiles(), 1u);
}

TEST_F(FilesTest, OutputFollowsALinkAndSparesDevices) {
  write("real", "old");
  std::filesystem::create_symlink(path("real"), path("link"));
  absl::StatusOr<OutputFile> file = OutputFile::create(path("link"));
  ASSERT_TRUE(file.ok() && file->write("new", 3).ok() && file->commit().ok());
  EXPECT_EQ(contents("real"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  expectError(OutputFile::create("/dev/null").status(),
              StatusCode::kFailedPrecondition, "is a device");
  expectError(OutputFile::create(root).status(),
              StatusCode::kFailedPrecondition, "is a folder");
  expectError(OutputFile::create(path("no/file")).status(),
              StatusCode::kFailedPrecondition,
              "cannot create a file in folder");
}

TEST_F(FilesTest, AWriteThatFailsLeavesNothing) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 4096;
  auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    absl::StatusOr<OutputFile> file = OutputFile::create(path("big"));
    ASSERT_TRUE(file.ok());
    std::string bytes(10000, 'x');
    expectError(file->write(bytes.data(), bytes.size()),
                StatusCode::kUnavailable, "cannot write the file: File too");
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(numFiles(), 0u);
}

} // namespace
} // namespace meshwork::runtime
