// SPDX-License-Identifier: Apache-2.0
#include "formats/gzip.h"

#include <zlib.h>

#include <string>

#include "gtest/gtest.h"
#include "tests/formats/hostile.h"

namespace pd {
namespace test_gzip {

std::string Gzip(const std::string& content) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8,
                         Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string out(deflateBound(&stream, content.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Text(size_t size) {
  std::string text;
  for (size_t i = 0; text.size() < size; ++i)
    text += "line " + std::to_string(i * i) + "\n";
  text.resize(size);
  return text;
}

TEST(GzipTest, Inflates) {
  for (size_t size : {0, 1, 1000, 1000000}) {
    const auto content = Gunzip(Gzip(Text(size)));
    ASSERT_TRUE(content.ok()) << content.status();
    EXPECT_EQ(content->view(), Text(size));
  }
}

TEST(GzipTest, JoinsMembersAndIgnoresZerosBehindThem) {
  const std::string members = Gzip(Text(100000)) + Gzip("end");
  const auto content = Gunzip(members + std::string(600, '\0'));
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->view(), Text(100000) + "end");
  EXPECT_FALSE(Gunzip(members + "x").ok());
}

TEST(GzipTest, ReadsHeads) {
  const std::string file = Gzip(Text(100000));
  const auto head = GunzipHead(absl::string_view(file).substr(0, 4000), 16);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->view(), Text(16));
  EXPECT_EQ(GunzipHead(Gzip("abc"), 16)->view(), "abc");
}

TEST(GzipTest, KnowsTheSize) {
  const std::string file = Gzip(Text(5000));
  EXPECT_TRUE(GunzipExactly(file, 5000).ok());
  EXPECT_FALSE(GunzipExactly(file, 4999).ok());
  EXPECT_FALSE(GunzipExactly(file, 5001).ok());
  EXPECT_FALSE(GunzipExactly(file + "x", 5000).ok());
}

TEST(GzipTest, BoundsWhatItAllocates) {
  const std::string bomb = Gzip(std::string(10000000, 'a'));
  EXPECT_EQ(Gunzip(bomb, 1000).status().code(),
            absl::StatusCode::kResourceExhausted);
  // A trailer that promises 4 GB.
  std::string liar = Gzip(Text(100));
  liar.replace(liar.size() - 4, 4, "\xff\xff\xff\xff");
  EXPECT_FALSE(Gunzip(liar).ok());
  EXPECT_TRUE(PlausibleInflatedSize(1000, 1000000));
  EXPECT_FALSE(PlausibleInflatedSize(1000, 2000000));
}

TEST(GzipTest, RefusesDamage) {
  const std::string good = Gzip(Text(300));
  ForEachPrefix(good, [](const std::string& bad) {
    EXPECT_FALSE(Gunzip(bad).ok());
    GunzipHead(bad, 16).IgnoreError();
  });
  ForEachFlip(good, [](const std::string& bad) {
    const auto content = Gunzip(bad);
    // Times and names in the header are not checked by gzip.
    if (content.ok()) {
      EXPECT_EQ(content->view(), Text(300));
    }
    GunzipHead(bad, 16).IgnoreError();
  });
}

}  // namespace test_gzip
}  // namespace pd
