// SPDX-License-Identifier: Apache-2.0
// Checkpoints of runs that are killed while they remove old ones.
#include "libcore/model/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

namespace pd {
namespace test_checkpoint {

namespace fs = std::filesystem;

Checkpoint AtStep(int64_t step) {
  Checkpoint checkpoint;
  checkpoint.state.step = step;
  checkpoint.program.blocks.emplace_back();
  checkpoint.params["w"] = MakeArray({1}, std::vector<float>{1});
  return checkpoint;
}

// Kills `child` as soon as something in `folder` is removed, wherever the
// folder has been moved to by then.
void KillAtFirstRemoval(int watch, pid_t child) {
  char event[4096];
  ASSERT_GT(::read(watch, event, sizeof(event)), 0);
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it had ended before it was killed";
}

TEST(Checkpoints, AKilledRemovalLeavesNoneHalf) {
  const std::string run =
      ::testing::TempDir() + "/pd_checkpoint_" + std::to_string(::getpid());
  fs::remove_all(run);
  ASSERT_TRUE(WriteCheckpoint(run, AtStep(1), 1).ok());
  const std::string old = CheckpointPath(run, 1);
  // So many files that the removal takes longer than the way of the signal.
  for (int i = 0; i < 20000; ++i)
    std::ofstream(old + "/more" + std::to_string(i));
  const int watch = ::inotify_init1(IN_CLOEXEC);
  ASSERT_GE(::inotify_add_watch(watch, old.c_str(), IN_DELETE), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    (void)WriteCheckpoint(run, AtStep(2), 1);
    ::_exit(0);
  }
  KillAtFirstRemoval(watch, child);
  ::close(watch);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_EQ(ListCheckpoints(run), std::vector<int64_t>{2});
  EXPECT_TRUE(ReadCheckpoint(CheckpointPath(run, 2)).ok());
  // The next run on the folder takes the rest away, whatever it was.
  std::ofstream(run + "/latest.tmpAbC123") << "half";
  std::ofstream(run + "/job.pbtxt.tmpAbC123") << "half";
  fs::create_directory(run + "/checkpoints/.step-3");
  RemoveRemainsOfRun(run);
  for (const auto& [folder, names] :
       {std::pair<std::string, size_t>(run, 2), {run + "/checkpoints", 1}})
    EXPECT_EQ(static_cast<size_t>(std::distance(fs::directory_iterator(folder),
                                                fs::directory_iterator())),
              names)
        << folder;
  fs::remove_all(run);
}

}  // namespace test_checkpoint
}  // namespace pd
