// SPDX-License-Identifier: Apache-2.0
// Reading and writing of what is no plain file, and what killed writers leave.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "libcore/base/dump_json.h"
#include "libcore/base/file.h"
#include "libcore/base/file_remains.h"
#include "libcore/base/file_set.h"
#include "libcore/base/file_target.h"

namespace pd {
namespace test_file {

namespace fs = std::filesystem;

// An empty folder of its own.
class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // A process remembers what it has seen in a folder.
    folder_ = ::testing::TempDir() + "/pd_file_" + std::to_string(::getpid()) +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return folder_ + "/" + name;
  }
  std::string Put(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }
  static std::string Get(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.insert(entry.path().filename().string());
    return names;
  }

  std::string folder_;
};

using Kind = FileTarget::Kind;

TEST_F(FileTest, TargetsAreFoundBehindLinks) {
  EXPECT_EQ(ResolveTarget(Path("new"))->kind, Kind::kReplaced);
  EXPECT_EQ(ResolveTarget("./-")->kind, Kind::kReplaced);
  for (const char* direct : {"-", "/dev/null", "/dev/stdout", "/dev/fd/1",
                             "/proc/self/fd/1", "/dev/full"})
    EXPECT_EQ(ResolveTarget(direct)->kind, Kind::kDirect) << direct;
  for (const char* own : {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})
    EXPECT_EQ(ResolveTarget(own)->descriptor, 1) << own;
  fs::create_symlink("/dev/stdout", Path("link"));
  fs::create_symlink("link", Path("link2"));
  EXPECT_EQ(ResolveTarget(Path("link2"))->descriptor, 1);
  fs::create_symlink("round", Path("round"));
  EXPECT_NE(ResolveTarget(Path("round")).status().message().find("round"),
            std::string::npos);
  EXPECT_EQ(ResolveTarget(folder_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// The descriptor leads to a regular file, as standard output does where a shell
// has redirected it. Its name must not be replaced by another file.
TEST_F(FileTest, DescriptorsOfFilesAreWrittenAtTheirPlace) {
  const std::string path = Put("out", "");
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::write(fd, "head ", 5), 5);
  struct stat before, after;
  ASSERT_EQ(::fstat(fd, &before), 0);
  const std::string name = "/dev/fd/" + std::to_string(fd);
  ASSERT_TRUE(WriteFile(name, "body ").ok());
  ASSERT_EQ(::write(fd, "tail", 4), 4);
  ::close(fd);
  EXPECT_EQ(Get(path), "head body tail");
  ASSERT_EQ(::stat(path.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(Names(), std::set<std::string>{"out"});
}

TEST_F(FileTest, LinksStayAndTheirTargetsAreReplaced) {
  Put("old", "old");
  fs::create_directory(Path("sub"));
  fs::create_symlink("../old", Path("sub/link"));
  ASSERT_TRUE(WriteFile(Path("sub/link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(Path("sub/link")));
  EXPECT_EQ(Get(Path("old")), "new");
  // A link whose target is still to come.
  fs::create_symlink(Path("later"), Path("dangling"));
  ASSERT_TRUE(WriteFile(Path("dangling"), "there").ok());
  EXPECT_TRUE(fs::is_symlink(Path("dangling")));
  EXPECT_EQ(Get(Path("later")), "there");
  EXPECT_EQ(Names(),
            (std::set<std::string>{"dangling", "later", "old", "sub"}));
}

TEST_F(FileTest, NamedPipesAreWrittenAndRead) {
  const std::string pipe = Path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  // No reader is woken and sent away by a look.
  EXPECT_TRUE(CheckWritable(pipe).ok());
  const std::string text(300000, 'x');  // more than a pipe holds
  absl::Status written;
  std::thread writer([&] { written = WriteFile(pipe, text); });
  const auto read = ReadFile(pipe);
  writer.join();
  EXPECT_TRUE(written.ok()) << written;
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->view(), text);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(FileTest, NobodyWaitsForAPipeForEver) {
  const std::string pipe = Path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  absl::Status written;
  // One after the other they would find each other.
  const std::string other = Path("other");
  ASSERT_EQ(::mkfifo(other.c_str(), 0600), 0);
  std::thread writer([&] { written = WriteFile(other, "x"); });
  const absl::Status read = ReadFile(pipe).status();
  writer.join();
  EXPECT_EQ(read.code(), absl::StatusCode::kDeadlineExceeded) << read;
  EXPECT_NE(read.message().find(pipe), std::string::npos) << read;
  EXPECT_EQ(written.code(), absl::StatusCode::kDeadlineExceeded) << written;
}

TEST_F(FileTest, DevicesWithoutEndAreRefused) {
  for (const char* device : {"/dev/zero", "/dev/urandom", "/dev/full"}) {
    const absl::Status read = ReadFile(device).status();
    EXPECT_EQ(read.code(), absl::StatusCode::kInvalidArgument) << read;
    EXPECT_EQ(read.message(), std::string("'") + device +
                                  "' is a device; expected a file or a pipe");
  }
  EXPECT_EQ(ReadFile("/dev/null")->size, 0u);
}

TEST_F(FileTest, SeveralFilesAreReplacedTogether) {
  Put("a", "old a");
  Put("b", "old b");
  Put("gone", "old");
  fs::create_symlink("a", Path("link"));
  FileSet files;
  ASSERT_TRUE(WriteFile(*files.Add(Path("link")), "new a").ok());
  ASSERT_TRUE(WriteFile(*files.Add(Path("b")), "new b").ok());
  ASSERT_TRUE(WriteFile(*files.Add(Path("c")), "new c").ok());
  ASSERT_TRUE(files.AddRemoval(Path("gone")).ok());
  ASSERT_TRUE(files.AddRemoval(Path("never there")).ok());
  EXPECT_EQ(Get(Path("a")), "old a");
  ASSERT_TRUE(files.Commit().ok());
  EXPECT_EQ(Names(), (std::set<std::string>{"a", "b", "c", "link"}));
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Get(Path("a")) + Get(Path("b")) + Get(Path("c")),
            "new anew bnew c");
}

// The first of the set comes last; when it cannot, the others are taken back.
TEST_F(FileTest, OldFilesStayWhenTheLastCannotBeReplaced) {
  Put("a", "old a");
  Put("b", "old b");
  Put("gone", "old");
  FileSet files;
  ASSERT_TRUE(files.Add(Path("a")).ok());  // and never written
  ASSERT_TRUE(WriteFile(*files.Add(Path("b")), "new b").ok());
  ASSERT_TRUE(WriteFile(*files.Add(Path("c")), "new c").ok());
  ASSERT_TRUE(files.AddRemoval(Path("gone")).ok());
  const absl::Status status = files.Commit();
  EXPECT_NE(status.message().find("cannot replace '" + Path("a")),
            std::string::npos)
      << status;
  EXPECT_EQ(Names(), (std::set<std::string>{"a", "b", "gone"}));
  EXPECT_EQ(Get(Path("a")) + Get(Path("b")) + Get(Path("gone")),
            "old aold bold");
}

TEST_F(FileTest, SeveralFilesDoNotGoToOneStream) {
  FileSet files;
  EXPECT_FALSE(files.Add("/dev/null").ok());
  for (const char* direct : {"-", "/dev/null", "/dev/stdout"}) {
    const absl::Status status = CheckPrefix(direct, "a model");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << direct;
  }
  EXPECT_TRUE(CheckPrefix(Path("model"), "a model").ok());
  EXPECT_TRUE(CheckPrefix(folder_, "a model").ok());
}

TEST_F(FileTest, RemainsOfKilledWritersGoAndOthersStay) {
  // Only the writers of the first two are gone.
  Put("latest.tmpAbC123", "half");
  Put("other.tmpAbC123", "half");
  Put("latest.tmp", "mine");
  Put("latest.tmpAbC1234", "mine");
  const auto held = MakeTemporary(Path("latest"), "it");
  ASSERT_TRUE(held.ok());
  ASSERT_TRUE(WriteFile(Path("latest"), "new").ok());
  const std::string holder = fs::path(held->path).filename().string();
  std::set<std::string> left = {"latest", "latest.tmp", "latest.tmpAbC1234",
                                "other.tmpAbC123", holder};
  EXPECT_EQ(Names(), left);
  RemoveRemainsIn(folder_);
  left.erase("other.tmpAbC123");
  EXPECT_EQ(Names(), left);
  ::close(held->fd);
  RemoveRemainsIn(folder_);
  left.erase(holder);
  EXPECT_EQ(Names(), left);
}

TEST_F(FileTest, AWriterThatGivesUpLeavesNothing) {
  Put("out", "old");
  {
    const auto file = AtomicFile::Create(Path("out"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append("half").ok());
  }
  EXPECT_EQ(Names(), std::set<std::string>{"out"});
  EXPECT_EQ(Get(Path("out")), "old");
}

TEST(DumpJsonTest, TakesAnyBytes) {
  const nlohmann::ordered_json json = {{"run", "a\xff\xc3\xa4"}};
  EXPECT_EQ(DumpJson(json), "{\"run\":\"a\xef\xbf\xbd\xc3\xa4\"}");
}

}  // namespace test_file
}  // namespace pd
