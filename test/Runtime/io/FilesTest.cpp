#include "runtime/io/Files.h"
#include "runtime/io/OutputFolder.h"

#include <csignal>
#include <numeric>
#include <set>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/io/FileUses.h"
#include "runtime/io/LineLog.h"
#include "runtime/io/NewFile.h"
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

mode_t modeOf(const std::string &path) {
  struct stat status = {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST_F(FilesTest, AReplacedFileKeepsItsMode) {
  for (mode_t mode : {0600u, 0640u, 0755u}) {
    write("out", "old");
    ASSERT_EQ(chmod(path("out").c_str(), mode), 0);
    ASSERT_TRUE(writeWhole(path("out"), "new").ok());
    EXPECT_EQ(contents("out"), "new");
    EXPECT_EQ(modeOf(path("out")), mode);
  }
  mode_t mask = umask(027);
  ASSERT_TRUE(writeWhole(path("fresh"), "new").ok());
  umask(mask);
  EXPECT_EQ(modeOf(path("fresh")), 0640u);
}

TEST_F(FilesTest, ALinkWithoutAFileIsWrittenThrough) {
  std::filesystem::create_directory(path("far"));
  std::filesystem::create_symlink("far/second", path("first"));
  std::filesystem::create_symlink("absent", path("far/second"));
  ASSERT_TRUE(writeWhole(path("first"), "new").ok());
  EXPECT_EQ(contents("far/absent"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("first")));
  EXPECT_TRUE(std::filesystem::is_symlink(path("far/second")));
  std::filesystem::create_symlink("circle", path("circle"));
  expectError(writeWhole(path("circle"), "new"),
              StatusCode::kFailedPrecondition, "Too many levels");
}

TEST_F(FilesTest, ALinkAtANameThatAToolMadeUpIsReplaced) {
  write("victim", "old");
  std::filesystem::create_directory(path("in"));
  std::filesystem::create_symlink("../victim", path("in/link"));
  ASSERT_TRUE(writeWholeInFolder(path("in"), "link", "new").ok());
  EXPECT_EQ(contents("in/link"), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(path("in/link")));
  std::filesystem::create_symlink("victim", path("link"));
  ASSERT_TRUE(writeWhole(path("link"), "new", OutputLink::replaced).ok());
  EXPECT_FALSE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(contents("victim"), "old");
  // Nor is the folder one.
  std::filesystem::create_directory_symlink("in", path("folder"));
  expectError(writeWholeInFolder(path("folder"), "file", "new"),
              StatusCode::kFailedPrecondition, "cannot create a file");
  EXPECT_FALSE(std::filesystem::exists(path("in/file")));
}

TEST_F(FilesTest, ALinkOfAnotherUserInAnOpenFolderIsNotFollowed) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives a link to another user";
  write("victim", "");
  std::filesystem::create_directory(path("open"));
  std::filesystem::create_symlink("../victim", path("open/link"));
  ASSERT_EQ(lchown(path("open/link").c_str(), 65534, 65534), 0);
  auto logs = [&] { return LineLog::open(path("open/link"), "{").status(); };
  EXPECT_TRUE(logs().ok()); // as any folder that others may not write to
  ASSERT_EQ(chmod(path("open").c_str(), 01777), 0);
  std::filesystem::create_directory(path("fill"));
  std::filesystem::create_symlink("../fill", path("open/folder"));
  ASSERT_EQ(lchown(path("open/folder").c_str(), 65534, 65534), 0);
  for (const absl::Status &status :
       {writeWhole(path("open/link"), "new"), logs(),
        OutputFolder::create(path("open/folder")).status()})
    expectError(status, StatusCode::kFailedPrecondition,
                "is a symbolic link that user 65534 has put into a folder");
  EXPECT_EQ(contents("victim"), "");
  ASSERT_EQ(lchown(path("open/link").c_str(), 0, 0), 0);
  EXPECT_TRUE(writeWhole(path("open/link"), "new").ok());
  EXPECT_EQ(contents("victim"), "new");
}

TEST_F(FilesTest, NewFilesHaveNamesOfTheirOwn) {
  FileDescriptor folder(open(root.c_str(), O_RDONLY | O_DIRECTORY));
  std::string first, second;
  ASSERT_GE(createNewFile(folder, "mark.", first).get(), 0);
  ASSERT_GE(createNewFile(folder, "mark.", second).get(), 0);
  EXPECT_NE(first, second);
  write("mark.longer7", "");
  write("mark.", "");
  std::vector<std::string> found = namesOfNewFiles(root, "mark.");
  EXPECT_EQ(std::set(found.begin(), found.end()), (std::set{first, second}));
}

TEST_F(FilesTest, AFileThatMayNotBeWrittenIsNotReplaced) {
  write("out", "old");
  ASSERT_EQ(chmod(path("out").c_str(), 0444), 0);
  ASSERT_EQ(chmod(root.c_str(), 0777), 0);
  bool isRoot = geteuid() == 0; // who may write everything
  if (isRoot)
    ASSERT_EQ(seteuid(65534), 0);
  expectError(writeWhole(path("out"), "new"), StatusCode::kFailedPrecondition,
              "may not be written: Permission denied");
  if (isRoot)
    ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(contents("out"), "old");
}

TEST_F(FilesTest, ALogGrowsByWholeLines) {
  auto append = [&](std::string_view line) {
    absl::StatusOr<LineLog> log = LineLog::open(path("log"), "{\"step\":");
    return log.ok() ? log->append(line) : log.status();
  };
  EXPECT_TRUE(append("{\"step\":0}").ok());
  EXPECT_TRUE(append("{\"step\":1}").ok());
  EXPECT_EQ(contents("log"), "{\"step\":0}\n{\"step\":1}\n");
  write("log", "{\"step\":0}\n{\"st"); // killed in its second line
  EXPECT_TRUE(append("{\"step\":1}").ok());
  EXPECT_EQ(contents("log"), "{\"step\":0}\n{\"st\n{\"step\":1}\n");
  write("log", "MWPLAN");
  expectError(append("{\"step\":0}"), StatusCode::kFailedPrecondition,
              "is no log of earlier runs");
  EXPECT_EQ(contents("log"), "MWPLAN");
  expectError(LineLog::open(root, "{").status(),
              StatusCode::kFailedPrecondition, "Is a directory");
  absl::StatusOr<LineLog> full = LineLog::open("/dev/full", "{");
  ASSERT_TRUE(full.ok());
  expectError(full->append("{}"), StatusCode::kUnavailable, "No space left");
}

/// What is left of a log, and what was taken off it.
TEST_F(FilesTest, LinesThatAreRepeatedLeaveTheLog) {
  auto lines = [](std::vector<int> steps) {
    std::string text;
    for (int step : steps)
      text += "{\"step\":" + std::to_string(step) + ",\"loss\":1}\n";
    return text;
  };
  auto takeOff = [&](const std::string &text, uint64_t from) {
    std::filesystem::remove(path("log.replaced"));
    write("log", text);
    absl::StatusOr<LineLog> log = LineLog::open(path("log"), "{\"step\":");
    EXPECT_TRUE(log.ok());
    absl::StatusOr<uint64_t> taken = log->takeOff(from);
    EXPECT_TRUE(taken.ok()) << taken.status();
    EXPECT_TRUE(log->append("{}").ok());
    return taken.value_or(99);
  };
  EXPECT_EQ(takeOff("", 0), 0u);
  EXPECT_EQ(takeOff(lines({0, 1, 2}), 3), 0u);
  EXPECT_FALSE(std::filesystem::exists(path("log.replaced")));
  EXPECT_EQ(takeOff(lines({0, 1, 2, 3, 4}), 3), 2u);
  EXPECT_EQ(contents("log"), lines({0, 1, 2}) + "{}\n");
  EXPECT_EQ(contents("log.replaced"), lines({3, 4}));
  // Another run stands before it.
  EXPECT_EQ(takeOff(lines({0, 1, 7, 8, 2, 3}), 2), 2u);
  EXPECT_EQ(contents("log"), lines({0, 1, 7, 8}) + "{}\n");
  // Killed in its last line, before and behind the number.
  EXPECT_EQ(takeOff(lines({0, 1}) + "{\"st", 1), 1u);
  EXPECT_EQ(contents("log"), lines({0}) + "{}\n");
  EXPECT_EQ(contents("log.replaced"), lines({1}));
  EXPECT_EQ(takeOff(lines({0, 1}) + "{\"step\":2", 2), 1u);
  EXPECT_EQ(contents("log"), lines({0, 1}) + "{}\n");
  EXPECT_EQ(takeOff("{\"st", 0), 0u);
  EXPECT_EQ(contents("log"), "{}\n");
  // More than is read at first.
  std::vector<int> many(10000);
  std::iota(many.begin(), many.end(), 0);
  EXPECT_EQ(takeOff(lines(many), 1), many.size() - 1);
  EXPECT_EQ(contents("log"), lines({0}) + "{}\n");
  EXPECT_EQ(takeOff(lines(many), 0), many.size());
  EXPECT_EQ(contents("log"), "{}\n");
}

TEST_F(FilesTest, ALinkBesideTheLogIsNotFollowed) {
  write("victim", "");
  write("log", "{\"step\":0}\n");
  std::filesystem::create_symlink("victim", path("log.replaced"));
  absl::StatusOr<LineLog> log = LineLog::open(path("log"), "{\"step\":");
  ASSERT_TRUE(log.ok());
  expectError(log->takeOff(0).status(), StatusCode::kFailedPrecondition,
              "log.replaced\": cannot be written");
  EXPECT_EQ(contents("log"), "{\"step\":0}\n");
  EXPECT_EQ(contents("victim"), "");
}

TEST_F(FilesTest, OneFileMayNotBeWrittenAndUsedAgain) {
  write("plan", "x");
  std::filesystem::create_directory(path("d"));
  std::filesystem::create_symlink("plan", path("soft"));
  std::filesystem::create_hard_link(path("plan"), path("hard"));
  std::filesystem::create_symlink(".", path("here"));
  std::filesystem::create_symlink("d/new", path("dangling"));
  auto check = [&](const std::string &a, const std::string &b) {
    return checkFileUses({{"the plan", path(a)}, {"--save", path(b), true}});
  };
  for (const char *same : {"plan", "soft", "hard", "here/plan", "d/../plan"})
    expectError(check("plan", same), StatusCode::kInvalidArgument,
                "plan\", which is the same file");
  for (const char *same : {"d/new", "dangling", "here/d/new", "d/./new"})
    expectError(checkFileUses({{"--save", path("d/new"), true},
                               {"--trace", path(same), true}}),
                StatusCode::kInvalidArgument, "are one file: name two");
  EXPECT_TRUE(check("plan", "d/plan").ok());
  EXPECT_TRUE(check("plan", "new").ok());
  EXPECT_TRUE(checkFileUses({{"a", path("plan")}, {"b", path("soft")}}).ok());
  EXPECT_TRUE(
      checkFileUses({{"a", "/dev/null", true}, {"b", "/dev/null", true}}).ok());
}

TEST_F(FilesTest, WhatGoesPastThePageCacheIsAllThere) {
  constexpr uint64_t most = 5 * directBytes;
  alignas(directBytes) static char bytes[most];
  for (uint64_t i = 0; i < most; ++i)
    bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  // The second piece begins where whole blocks end, or within one.
  for (uint64_t first : {uint64_t{0}, uint64_t{1}, directBytes - 1, directBytes,
                         directBytes + 1, 2 * directBytes, 3 * directBytes})
    for (uint64_t second : {uint64_t{0}, uint64_t{7}, 2 * directBytes}) {
      absl::StatusOr<OutputFile> file = OutputFile::create(path("out"));
      ASSERT_TRUE(file.ok());
      EXPECT_TRUE(file->writePastCache(bytes, first).ok());
      EXPECT_TRUE(file->writePastCache(bytes + first, second).ok());
      ASSERT_TRUE(file->commit().ok());
      EXPECT_EQ(contents("out"), std::string(bytes, first + second));
    }
}

TEST_F(FilesTest, AWriteThatFailsLeavesNothing) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = directBytes;
  auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    absl::StatusOr<OutputFile> file = OutputFile::create(path("big"));
    ASSERT_TRUE(file.ok());
    std::string bytes(10000, 'x');
    expectError(file->write(bytes.data(), bytes.size()),
                StatusCode::kUnavailable, "cannot write the file: File too");
  }
  {
    absl::StatusOr<OutputFile> file = OutputFile::create(path("direct"));
    ASSERT_TRUE(file.ok());
    alignas(directBytes) static char bytes[3 * directBytes];
    expectError(file->writePastCache(bytes, sizeof(bytes)),
                StatusCode::kUnavailable, "cannot write the file: File too");
  }
  absl::StatusOr<LineLog> log = LineLog::open(path("log"), "x");
  ASSERT_TRUE(log.ok() && log->append(std::string(3000, 'x')).ok());
  expectError(log->append(std::string(3000, 'x')), StatusCode::kUnavailable,
              "cannot write: File too");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(numFiles(), 1u);
  EXPECT_EQ(contents("log"), std::string(3000, 'x') + "\n");
}

class OutputFolderTest : public TemporaryFolder {
protected:
  size_t entries() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(root), {}));
  }
};

TEST_F(OutputFolderTest, AppearsWhenItIsComplete) {
  for (const char *name : {"new", "empty/"}) {
    if (*name == 'e')
      std::filesystem::create_directory(path("empty"));
    auto folder = OutputFolder::create(path(name));
    ASSERT_TRUE(folder.ok()) << folder.status();
    ASSERT_TRUE(writeWhole(folder->path() + "/a", "1").ok());
    EXPECT_FALSE(std::filesystem::exists(path(name) + "/a"));
    ASSERT_TRUE(folder->commit().ok());
    EXPECT_TRUE(std::filesystem::exists(path(name) + "/a"));
  }
  EXPECT_EQ(entries(), 2u);
}

TEST_F(OutputFolderTest, LeavesNothingBehind) {
  {
    auto folder = OutputFolder::create(path("new"));
    ASSERT_TRUE(folder.ok());
    ASSERT_TRUE(writeWhole(folder->path() + "/a", "1").ok());
  }
  EXPECT_EQ(entries(), 0u);
}

/// A process that is killed releases its lock, and that alone.
TEST_F(OutputFolderTest, WhatWasLeftBehindGoes) {
  std::filesystem::create_directory(path("new.partial-aB3dE6"));
  write("new.partial-aB3dE6/model.safetensors", "1");
  for (const char *theirs :
       {"new.backup", "new.partial-", "new.partial-longer6", "newer"})
    std::filesystem::create_directory(path(theirs));
  auto folder = OutputFolder::create(path("new"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_FALSE(std::filesystem::exists(path("new.partial-aB3dE6")));
  EXPECT_EQ(entries(), 5u);
  // That of one who lives stays.
  auto second = OutputFolder::create(path("new"));
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(writeWhole(folder->path() + "/a", "1").ok());
  EXPECT_TRUE(folder->commit().ok());
  expectError(OutputFolder::create("").status(),
              absl::StatusCode::kFailedPrecondition, "is no name for a folder");
}

TEST_F(OutputFolderTest, ReplacesNothing) {
  std::filesystem::create_directory(path("full"));
  write("full/a", "1");
  write("file", "1");
  for (const char *name : {"full", "file"})
    expectError(OutputFolder::create(path(name)).status(),
                absl::StatusCode::kFailedPrecondition,
                "is there and not empty");
  expectError(OutputFolder::create(path("no/way")).status(),
              absl::StatusCode::kFailedPrecondition, "cannot create a folder");
  // Filled by someone else in the meantime.
  auto folder = OutputFolder::create(path("late"));
  ASSERT_TRUE(folder.ok());
  std::filesystem::create_directory(path("late"));
  write("late/theirs", "1");
  expectError(folder->commit(), absl::StatusCode::kUnavailable, "rename");
  EXPECT_TRUE(std::filesystem::exists(path("late/theirs")));
}

} // namespace
} // namespace meshwork::runtime
