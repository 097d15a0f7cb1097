// SPDX-License-Identifier: Apache-2.0
// The file of choices: what is kept comes back in another process, two
// processes do not undo each other, and no damage does harm.
#include "libcore/device/choice_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace test_choice_cache {

std::string NewPath(const std::string& name) {
  const std::string path = testing::Scratch(name);
  std::filesystem::remove(path);
  return path;
}

TEST(ChoiceCache, WhatIsKeptComesBack) {
  const std::string path = NewPath("choices.txt");
  ChoiceCache one(path), other(path);
  EXPECT_FALSE(one.Find("a").has_value());
  EXPECT_FALSE(other.Find("a").has_value());
  one.Keep("a", {4, 3});
  other.Keep("b b", {0, 1});
  other.Keep("a", {5, 0});
  EXPECT_EQ(one.Find("a")->position, 4);  // as it was when it was read
  ChoiceCache later(path);
  ASSERT_TRUE(later.Find("a").has_value());
  EXPECT_EQ(later.Find("a")->position, 5);
  EXPECT_EQ(later.Find("a")->engine, 0);
  EXPECT_EQ(later.Find("b b")->engine, 1);
}

TEST(ChoiceCache, LiesWhereCachesLie) {
  setenv("XDG_CACHE_HOME", "/some/where", 1);
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(ChoiceCache::OfUser("x.txt").path(), "/some/where/pdkit/x.txt");
  EXPECT_EQ(&ChoiceCache::OfUser("x.txt"), &ChoiceCache::OfUser("x.txt"));
  setenv("XDG_CACHE_HOME", "not/absolute", 1);
  EXPECT_EQ(ChoiceCache::OfUser("x.txt").path(), "/home/me/.cache/pdkit/x.txt");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  ChoiceCache& none = ChoiceCache::OfUser("x.txt");
  EXPECT_EQ(none.path(), "");
  none.Keep("a", {1, 2});
  EXPECT_EQ(none.Find("a")->engine, 2);
}

TEST(ChoiceCache, SaysWhatIsDamaged) {
  const auto says = [](const char* text) {
    return std::string(ChoiceCache::Parse(text).status().message());
  };
  EXPECT_EQ(says(""), "its last line has no end");
  EXPECT_EQ(says("\n"), "it does not begin with 'pdkit choices 2'");
  EXPECT_EQ(says("pdkit choices 1\nend 0\n"),
            "it does not begin with 'pdkit choices 2'");
  EXPECT_EQ(says("pdkit choices 2\n"), "line 1: expected 'end 0'");
  EXPECT_EQ(says("pdkit choices 2\na\t1\t2\n"), "line 2: expected 'end 0'");
  EXPECT_EQ(says("pdkit choices 2\na\t1\t2\nend 2\n"),
            "line 3: expected 'end 1'");
  EXPECT_EQ(says("pdkit choices 2\na\t1\nend 1\n"),
            "line 2: a key and two numbers are expected");
  EXPECT_EQ(says("pdkit choices 2\na\t1\t-2\nend 1\n"),
            "line 2: '-2' is no number below 1000000");
  EXPECT_EQ(says("pdkit choices 2\na\t1\t2\na\t1\t2\nend 2\n"),
            "line 3: its key was there before");
}

TEST(ChoiceCache, ComesBackFromEveryDamage) {
  const std::string text = ChoiceCache::Text(
      {{"GPU; output float32 x 1,2", {7, 3}}, {"GPU; input", {0, 1}}});
  ASSERT_TRUE(ChoiceCache::Parse(text).ok());
  int bad = 0;
  testing::ForEveryDamage(text, [&](const FileBytes& file) {
    const auto choices = ChoiceCache::Parse(file.view());
    bad += !choices.ok();
    if (!choices.ok()) return;
    // A text that still parses can be written again.
    EXPECT_EQ(ChoiceCache::Parse(ChoiceCache::Text(*choices))->size(),
              choices->size());
  });
  EXPECT_GT(bad, static_cast<int>(text.size()));
  // No beginning of a file is one.
  for (size_t n = 0; n < text.size(); ++n)
    EXPECT_FALSE(ChoiceCache::Parse(text.substr(0, n)).ok()) << n;
}

TEST(ChoiceCache, ADamagedFileIsWrittenAnew) {
  const std::string path = NewPath("damaged.txt");
  ASSERT_TRUE(WriteFile(path, "pdkit choices 2\na\t1\t2\nend").ok());
  ChoiceCache cache(path);
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(cache.Find("a").has_value());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            absl::StrCat("warning: '", path,
                         "' is not used and will be written anew: its last "
                         "line has no end\n"));
  cache.Keep("b", {3, 4});
  EXPECT_EQ(testing::MustRead(path).view(),
            "pdkit choices 2\nb\t3\t4\nend 1\n");
}

}  // namespace test_choice_cache
}  // namespace pd
