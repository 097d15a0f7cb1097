// SPDX-License-Identifier: Apache-2.0
#include "formats/pdmodel.h"

#include "tests/formats/format_test.h"

namespace pd {
namespace test_pdmodel {

using testing::FilesOf;
using testing::MustRead;
using testing::TestData;

TEST(PdModel, WritesPaddlePaddlesBytesBack) {
  for (const std::string& path : FilesOf("models", "")) {
    if (path.find(".pdiparams") != std::string::npos) continue;
    auto program = ReadProgram(path);
    ASSERT_TRUE(program.ok()) << program.status();
    auto bytes = SerializeProgram(*program);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_TRUE(*bytes == MustRead(path).view()) << path;
  }
}

TEST(PdModel, ReadsWhatPaddlePaddleWrote) {
  auto program = ReadProgram(TestData("models/inference.pdmodel"));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->version, 2006002);
  EXPECT_EQ(program->op_versions.size(), 68u);
  ASSERT_EQ(program->blocks.size(), 1u);
  const BlockDesc& block = program->global();
  EXPECT_EQ(block.ops.front().type, "feed");
  EXPECT_EQ(block.ops.back().type, "fetch");
  const VarDesc* weight = block.FindVar("fc_0.w_0");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->shape, (Shape{5, 7}));
  EXPECT_EQ(weight->dtype, DType::kFloat32);
  EXPECT_TRUE(weight->persistable);
  EXPECT_EQ(block.ops.front().AttrOr<int32_t>("col", -1), 0);
}

TEST(PdModel, ReadsSubBlocks) {
  auto program = ReadProgram(TestData("models/flow.pdmodel"));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->blocks.size(), 4u);
  int sub_blocks = 0;
  for (const OpDesc& op : program->global().ops)
    if (op.AttrOr("sub_block", BlockRef{}).index > 0) ++sub_blocks;
  EXPECT_GT(sub_blocks, 0);
}

// One attribute of each type, kinds of variables that carry more than a
// tensor, and fields that PaddlePaddle leaves out.
ProgramDesc EverythingProgram() {
  ProgramDesc program;
  program.version = 2003000;
  program.op_versions = {{"relu", 1}};
  program.blocks.resize(2);
  program.blocks[1].idx = 1;
  program.blocks[1].parent_idx = 0;
  program.blocks[1].forward_block_idx = 0;
  VarDesc x;
  x.name = "x";
  x.shape = {-1, 3};
  x.lod_level = 1;
  x.need_check_feed = true;
  x.attrs = {{"i", int32_t{3}},
             {"ints", std::vector<int32_t>{1, 2}},
             {"s", std::string("t")}};
  program.blocks[0].vars.push_back(x);
  x.name = "rows";
  x.kind = VarKind::kSelectedRows;
  x.lod_level = 0;
  x.dtype = DType::kBFloat16;
  program.blocks[0].vars.push_back(x);
  OpDesc op;
  op.type = "everything";
  op.is_target = true;
  op.SetInput("X", {"x", "rows"});
  op.SetOutput("Out", {});
  op.attrs = {{"a", int32_t{-1}},
              {"b", 0.5f},
              {"c", std::string("\xe6\x9d\x83")},
              {"d", std::vector<int32_t>{1, -2}},
              {"e", std::vector<float>{}},
              {"f", std::vector<std::string>{"", "g"}},
              {"g", false},
              {"h", std::vector<bool>{true, false}},
              {"i", BlockRef{1}},
              {"j", int64_t{1} << 40},
              {"k", BlockRefs{{1}}},
              {"l", std::vector<int64_t>{-1}},
              {"m", std::vector<double>{0.1}},
              {"n", VarRef{"x"}},
              {"o", VarRefs{{"x", "rows"}}},
              {"p", 0.1},
              {"q", ScalarAttr{std::complex<double>(1, 2)}},
              {"r", std::vector<ScalarAttr>{{true}, {int64_t{4}}, {0.25}}}};
  op.leading_attrs = {"r", "gone"};
  program.blocks[0].ops.push_back(op);
  return program;
}

TEST(PdModel, KeepsEveryKindOfAttribute) {
  auto bytes = SerializeProgram(EverythingProgram());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  auto program = ParseProgram(*bytes);
  ASSERT_TRUE(program.ok()) << program.status();
  const OpDesc& op = program->global().ops[0];
  EXPECT_EQ(op.attrs, EverythingProgram().global().ops[0].attrs);
  EXPECT_EQ(op.inputs, EverythingProgram().global().ops[0].inputs);
  EXPECT_TRUE(op.is_target);
  EXPECT_EQ(op.leading_attrs, std::vector<std::string>{"r"});
  EXPECT_EQ(program->global().vars[0].attrs.size(), 3u);
  EXPECT_EQ(program->global().vars[1].kind, VarKind::kSelectedRows);
  EXPECT_EQ(program->global().vars[1].dtype, DType::kBFloat16);
  EXPECT_EQ(program->blocks[1].forward_block_idx, 0);
  EXPECT_EQ(*SerializeProgram(*program), *bytes);
}

TEST(PdModel, RefusesWrongStructureOnBothWays) {
  ProgramDesc program = EverythingProgram();
  program.global().ops[0].attrs["i"] = BlockRef{0};
  EXPECT_EQ(SerializeProgram(program).status().message(),
            "block 0: op 'everything' (number 0): attr 'i' is block 0; the "
            "program has 2 blocks, so it must be in [1, 2)");
  program = EverythingProgram();
  program.blocks[1].parent_idx = 1;
  EXPECT_FALSE(SerializeProgram(program).ok());
  program = EverythingProgram();
  program.global().vars[1].name = "x";
  EXPECT_FALSE(SerializeProgram(program).ok());
}

TEST(PdModel, RefusesMalformedFiles) {
  for (const std::string& path : FilesOf("malformed", "program_")) {
    auto program = ReadProgram(path);
    // Whether an op or a variable exists is the verifier's question, and an
    // extent below 0 is one that is not known.
    const bool later = path.find("unknown_op") != std::string::npos ||
                       path.find("dangling_input") != std::string::npos ||
                       path.find("dim_minus_5") != std::string::npos;
    EXPECT_EQ(program.ok(), later) << path;
    if (!program.ok()) {
      EXPECT_NE(program.status().message().find(path), std::string::npos);
    }
  }
}

TEST(PdModel, SurvivesDamage) {
  const auto bytes = SerializeProgram(EverythingProgram());
  ASSERT_TRUE(bytes.ok());
  testing::ForEveryDamage(*bytes, [](const FileBytes& file) {
    auto program = ParseProgram(file.view());
    if (!program.ok()) return;
    auto again = SerializeProgram(*program);
    EXPECT_TRUE(again.ok()) << again.status();
  });
}

}  // namespace test_pdmodel
}  // namespace pd
