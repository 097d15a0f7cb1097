// SPDX-License-Identifier: Apache-2.0
// Operators that read and write files: against files that PaddlePaddle's wrote
// (testdata/make/file_goldens.py), and the confinement to the folder that the
// user names.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/file.h"
#include "libcore/base/flags.h"
#include "libcore/base/half.h"
#include "libcore/exec/session.h"
#include "libcore/program/block_builder.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_file_ops {

namespace fs = std::filesystem;

constexpr char kFiles[] = PD_TESTDATA "/ops_more/files";

class FileOps : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "pd_file_ops_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = fs::canonical(name).string();
    Allow(folder_);
  }
  void TearDown() override {
    Allow("");
    fs::remove_all(folder_);
  }
  static void Allow(const std::string& folder) {
    ASSERT_TRUE(SetFlag("FLAGS_program_files", folder).ok());
  }
  std::string In(const std::string& name) const { return folder_ + "/" + name; }
  std::string BytesOf(const std::string& path) {
    const auto file = ReadFile(path);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? std::string(file->view()) : "";
  }
  // Programs say where a file lies by a path inside of the folder.
  void Copy(const std::string& from, const std::string& name) {
    fs::copy_file(from, In(name), fs::copy_options::overwrite_existing);
  }

  std::string folder_;
};

NamedArrays Feeds() {
  return {
      {"x", MakeArray({2, 3}, std::vector<float>{0, .25, .5, .75, 1, 1.25})},
      {"y", MakeArray({2}, std::vector<int64_t>{7, -8})}};
}

// Runs one op over the feeds; gives the fetches.
absl::StatusOr<NamedArrays> RunOne(OpDesc op, const NamedArrays& feeds,
                                   const std::vector<std::string>& fetches) {
  ProgramDesc program;
  program.version = 2006000;
  program.blocks.emplace_back();
  BlockBuilder builder(&ReferenceRegistry(), &program);
  for (const auto& [name, value] : feeds) {
    VarDesc var;
    var.name = name;
    var.dtype = value.dtype;
    var.shape = value.shape;
    builder.AddVar(var);
  }
  const absl::Status status = builder.Append(std::move(op));
  if (!status.ok()) return status;
  Session session(&ReferenceRegistry(), 1);
  return session.Run(program, feeds, fetches);
}

absl::Status Save(const std::string& type, const std::vector<std::string>& x,
                  const std::string& path,
                  std::map<std::string, Attribute> attrs = {}) {
  OpDesc op;
  op.type = type;
  op.attrs = std::move(attrs);
  op.attrs["file_path"] = path;
  op.SetInput("X", x);
  return RunOne(std::move(op), Feeds(), {}).status();
}

absl::StatusOr<NamedArrays> Load(const std::string& type,
                                 const std::vector<std::string>& out,
                                 const std::string& path,
                                 std::map<std::string, Attribute> attrs = {}) {
  OpDesc op;
  op.type = type;
  op.attrs = std::move(attrs);
  op.attrs["file_path"] = path;
  op.SetOutput("Out", out);
  return RunOne(std::move(op), {}, out);
}

template <typename T>
std::vector<T> ValuesOf(const Array& array) {
  return std::vector<T>(array.data<T>(), array.data<T>() + array.size());
}

TEST_F(FileOps, SaveWritesTheBytesOfPaddlePaddle) {
  ASSERT_TRUE(Save("save", {"x"}, "model/x").ok());
  EXPECT_EQ(BytesOf(In("model/x")), BytesOf(absl::StrCat(kFiles, "/save.bin")));
  ASSERT_TRUE(Save("save", {"x"}, In("half"), {{"save_as_fp16", true}}).ok());
  EXPECT_EQ(BytesOf(In("half")),
            BytesOf(absl::StrCat(kFiles, "/save_fp16.bin")));
  // In the order of X, not of names.
  ASSERT_TRUE(Save("save_combine", {"y", "x"}, "both").ok());
  EXPECT_EQ(BytesOf(In("both")),
            BytesOf(absl::StrCat(kFiles, "/save_combine.bin")));
}

TEST_F(FileOps, LoadReadsWhatPaddlePaddleWrote) {
  Allow(kFiles);
  const std::vector<float> x = {0, .25, .5, .75, 1, 1.25};
  const auto one = Load("load", {"a"}, "save.bin");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->at("a").shape, (Shape{2, 3}));
  EXPECT_EQ(ValuesOf<float>(one->at("a")), x);
  const auto part =
      Load("load", {"a"}, "save.bin",
           {{"seek", int64_t{2}}, {"shape", std::vector<int64_t>{3, 1}}});
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->at("a").shape, (Shape{3, 1}));
  EXPECT_EQ(ValuesOf<float>(part->at("a")), (std::vector<float>{.5, .75, 1}));
  const auto both = Load("load_combine", {"b", "a"}, "save_combine.bin");
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(ValuesOf<int64_t>(both->at("b")), (std::vector<int64_t>{7, -8}));
  EXPECT_EQ(ValuesOf<float>(both->at("a")), x);
  const auto memory = Load("load_combine", {"b", "a"},
                           BytesOf(absl::StrCat(kFiles, "/save_combine.bin")),
                           {{"model_from_memory", true}});
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(ValuesOf<float>(memory->at("a")), x);
  const auto halves = Load("load", {"a"}, "save.bin", {{"load_as_fp16", true}});
  ASSERT_TRUE(halves.ok()) << halves.status();
  ASSERT_EQ(halves->at("a").dtype, DType::kFloat16);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(static_cast<float>(halves->at("a").data<Float16>()[i]), x[i]);
}

TEST_F(FileOps, NothingIsTouchedWithoutTheUsersWord) {
  Allow("");
  for (const absl::Status& status :
       {Save("save", {"x"}, In("x")), Load("load", {"a"}, In("x")).status(),
        Save("save_combine", {"x"}, "x"),
        Load("load_combine", {"a"}, "x").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_TRUE(
        absl::StrContains(status.message(), "'--flags program_files=DIR'"))
        << status;
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(FileOps, NoPathLeavesTheFolder) {
  const fs::path outside = fs::path(folder_ + "_outside");
  fs::create_directory(outside);
  fs::create_directory_symlink(outside, In("link"));
  fs::create_symlink(outside / "new", In("dangling"));
  for (const std::string& path :
       {std::string("../x"), std::string("a/../../x"), std::string("/etc/x"),
        std::string(""), std::string("."), outside.string() + "/x",
        std::string("link/x"), std::string("dangling"),
        std::string("x\0y", 3)}) {
    EXPECT_EQ(Save("save", {"x"}, path).code(),
              absl::StatusCode::kPermissionDenied)
        << path;
    EXPECT_EQ(Load("load", {"a"}, path).status().code(),
              absl::StatusCode::kPermissionDenied)
        << path;
  }
  EXPECT_TRUE(fs::is_empty(outside));
  fs::remove_all(outside);
  Allow(In("no folder"));
  EXPECT_EQ(Save("save", {"x"}, "x").code(), absl::StatusCode::kNotFound);
}

TEST_F(FileOps, SaysWhatIsWrong) {
  ASSERT_TRUE(Save("save", {"x"}, "x").ok());
  EXPECT_EQ(Save("save", {"y"}, "x", {{"overwrite", false}}).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(BytesOf(In("x")), BytesOf(absl::StrCat(kFiles, "/save.bin")));
  EXPECT_EQ(Load("load", {"a"}, "none").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Load("load_combine", {"a", "b"}, "x").status().code(),
            absl::StatusCode::kInvalidArgument);
  for (const int64_t seek : {int64_t{-2}, int64_t{5}, int64_t{1} << 62})
    EXPECT_FALSE(Load("load", {"a"}, "x",
                      {{"seek", seek}, {"shape", std::vector<int64_t>{2}}})
                     .ok())
        << seek;
  EXPECT_FALSE(Load("load", {"a"}, "x",
                    {{"seek", int64_t{0}},
                     {"shape", std::vector<int64_t>{int64_t{1} << 62, 4}}})
                   .ok());
  EXPECT_EQ(Save("save_combine", {"x"}, "y", {{"save_to_memory", true}}).code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(FileOps, DamagedFilesAreErrors) {
  const std::string whole = BytesOf(absl::StrCat(kFiles, "/save_combine.bin"));
  for (size_t n = 0; n < whole.size(); ++n) {
    ASSERT_TRUE(WriteFile(In("cut"), whole.substr(0, n)).ok());
    EXPECT_FALSE(Load("load_combine", {"b", "a"}, "cut").ok()) << n;
    std::string changed = whole;
    changed[n] = static_cast<char>(changed[n] ^ 0x55);
    ASSERT_TRUE(WriteFile(In("cut"), changed).ok());
    Load("load_combine", {"b", "a"}, "cut").IgnoreError();  // no crash
  }
}

// A file that changes between two runs of one plan.
TEST_F(FileOps, AnotherShapeAfterCompilingIsAnError) {
  ASSERT_TRUE(Save("save", {"x"}, "x").ok());
  ProgramDesc program;
  program.version = 2006000;
  program.blocks.emplace_back();
  BlockBuilder builder(&ReferenceRegistry(), &program);
  OpDesc op;
  op.type = "load";
  op.attrs["file_path"] = std::string("x");
  op.SetOutput("Out", {"a"});
  ASSERT_TRUE(builder.Append(op).ok());
  Session session(&ReferenceRegistry(), 1);
  const auto plan = session.Compile(program, {}, {"a"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE((*plan)->Run(RunContext()).ok());
  ASSERT_TRUE(Save("save", {"y"}, "x").ok());
  const absl::Status status = (*plan)->Run(RunContext());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
}

TEST_F(FileOps, ReadFileGivesBytesThatDecodeJpegTakes) {
  Copy(PD_TESTDATA "/images/grey.jpg", "picture.jpg");
  ProgramDesc program;
  program.version = 2006000;
  program.blocks.emplace_back();
  BlockBuilder builder(&ReferenceRegistry(), &program);
  OpDesc read, decode;
  read.type = "read_file";
  read.attrs["filename"] = std::string("picture.jpg");
  read.SetOutput("Out", {"bytes"});
  decode.type = "decode_jpeg";
  decode.SetInput("X", {"bytes"});
  decode.SetOutput("Out", {"pixels"});
  ASSERT_TRUE(builder.Append(read).ok());
  ASSERT_TRUE(builder.Append(decode).ok());
  Session session(&ReferenceRegistry(), 1);
  const auto got = session.Run(program, {}, {"bytes", "pixels"});
  ASSERT_TRUE(got.ok()) << got.status();
  const Array& bytes = got->at("bytes");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.bytes.get()),
                        bytes.size_bytes()),
            BytesOf(In("picture.jpg")));
  EXPECT_EQ(got->at("pixels").shape[0], 1);
  Allow("");
  EXPECT_EQ(session.Run(program, {}, {"bytes"}).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(FileOps, DamagedPicturesAreErrors) {
  const std::string whole = BytesOf(PD_TESTDATA "/images/grey.jpg");
  for (size_t n = 1; n < whole.size(); n += 7) {
    const std::vector<uint8_t> part(whole.begin(),
                                    whole.begin() + static_cast<int64_t>(n));
    OpDesc op;
    op.type = "decode_jpeg";
    op.SetInput("X", {"x"});
    op.SetOutput("Out", {"out"});
    EXPECT_FALSE(
        RunOne(op, {{"x", MakeArray({static_cast<int64_t>(n)}, part)}}, {"out"})
            .ok())
        << n;
  }
}

}  // namespace test_file_ops
}  // namespace pd
