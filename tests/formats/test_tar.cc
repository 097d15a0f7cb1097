// SPDX-License-Identifier: Apache-2.0
// Archives of Python's tarfile and of GNU tar in each of their forms, and what
// damaged ones are told.
#include "formats/tar.h"

#include <map>
#include <string>

#include "absl/strings/match.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace test_tar {

using Members = std::map<std::string, std::string>;

std::string Archive(const std::string& name) {
  return PD_TESTDATA "/datasets/formats/" + name;
}

// Regular files and their contents; not OK when the archive is not.
absl::Status Unpack(const FileBytes& file, Members* members) {
  TarReader reader(file);
  for (;;) {
    const auto member = reader.Next();
    if (!member.ok()) return member.status();
    if (*member == nullptr) return absl::OkStatus();
    if (!(*member)->file) continue;
    const std::string name = (*member)->name;
    const auto content = reader.Read();
    if (!content.ok()) return content.status();
    (*members)[name] = std::string(content->view());
  }
}

TEST(Tar, EveryForm) {
  const std::string long_name = "long/" + std::string(120, 'n') + "/file.txt";
  for (const char* name : {"gnu.tar", "pax.tar.gz"}) {
    Members members;
    ASSERT_TRUE(Unpack(testing::MustRead(Archive(name)), &members).ok());
    EXPECT_EQ(members, (Members{{"a.txt", "first"},
                                {"folder/empty", ""},
                                {long_name, std::string(700, 'y')}}))
        << name;
  }
  Members members;
  ASSERT_TRUE(Unpack(testing::MustRead(Archive("ustar.tar")), &members).ok());
  EXPECT_EQ(members[std::string(90, 'p') + "/" + std::string(90, 'q')], "z");
  // Links are no files, whatever they point to.
  members.clear();
  ASSERT_TRUE(Unpack(testing::MustRead(Archive("v7.tar")), &members).ok());
  EXPECT_EQ(members, (Members{{"a.txt", "first"}}));
}

TEST(Tar, VisitsOnlyFilesAndNamesTheMember) {
  int files = 0;
  const absl::Status status = ForEachTarFile(
      Archive("gnu.tar"), [&files](const TarMember& member, TarReader*) {
        ++files;
        return absl::StartsWith(member.name, "long")
                   ? absl::DataLossError("no good")
                   : absl::OkStatus();
      });
  EXPECT_EQ(files, 3);
  EXPECT_TRUE(absl::StrContains(status.message(), "gnu.tar': member 'long/nn"));
  EXPECT_TRUE(absl::EndsWith(status.message(), "n/file.txt': no good"));
}

TEST(Tar, DamagedOnes) {
  const auto message = [](std::string bytes) {
    Members members;
    return std::string(Unpack(testing::HeapBytes(bytes), &members).message());
  };
  const std::string good(testing::MustRead(Archive("ustar.tar")).view());
  EXPECT_EQ(message(""), "byte 0: a tar header takes 512 bytes; 0 are left");
  EXPECT_EQ(message(good.substr(0, 700)),
            "byte 517: 507 bytes should follow; the archive ends after 183");
  EXPECT_EQ(message(good.substr(0, 515)),
            "byte 512: 5 bytes should follow; the archive ends after 3");
  std::string changed = good;
  changed[0] = 'b';
  EXPECT_TRUE(absl::StartsWith(message(changed), "byte 0: not a tar header"));
  // Python's tarfile also takes an archive without the zeros at its end.
  EXPECT_EQ(message(good.substr(0, 1024)), "");

  std::string packed(testing::MustRead(Archive("pax.tar.gz")).view());
  EXPECT_EQ(message(packed.substr(0, packed.size() - 10)),
            "gzip data is truncated or damaged");
  packed[packed.size() - 6] = static_cast<char>(packed[packed.size() - 6] ^ 1);
  EXPECT_EQ(message(packed), "gzip data is truncated or damaged");
}

TEST(Tar, ComesBackFromAnyDamage) {
  for (const char* name : {"gnu.tar", "pax.tar.gz", "ustar.tar"}) {
    std::string bytes(testing::MustRead(Archive(name)).view());
    bytes.resize(std::min<size_t>(bytes.size(), 3072));
    testing::ForEveryDamage(bytes, [](const FileBytes& file) {
      Members members;
      Unpack(file, &members).IgnoreError();
    });
  }
}

}  // namespace test_tar
}  // namespace pd
