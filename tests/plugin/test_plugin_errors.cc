// SPDX-License-Identifier: Apache-2.0
// Plug-ins that cannot be used, and kernels that fail: what is said of them.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/plugin/plugins.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace test_plugin_errors {

std::string File(const std::string& name) {
  return absl::StrCat(PD_PLUGIN_FOLDER, "/lib", name, ".so");
}

// In a process of its own, so that plug-ins know nothing of each other.
void ExpectRefused(const std::string& file, const std::string& said) {
  EXPECT_EXIT(
      {
        absl::Status status = LoadPlugin(file);
        if (status.ok()) {
          OpRegistry registry;
          status = RegisterAllOps(&registry);
          if (status.ok()) status = AddPluginOps(&registry);
        }
        std::fprintf(stderr, "%s", status.ToString().c_str());
        std::_Exit(status.ok() ? 0 : 1);
      },
      ::testing::ExitedWithCode(1), said);
}

TEST(PluginErrors, SayWhatIsWrongWithAFile) {
  ExpectRefused("nowhere.so", "plug-in 'nowhere.so': cannot be read: No such");
  ExpectRefused("tests", "plug-in 'tests': it is no file");
  ExpectRefused("README.md", "plug-in 'README.md': .*(ELF header|too short)");
  ExpectRefused(File("bad_no_ops"),
                "no_ops.so': it declares no operators, kernels or devices");
  ExpectRefused(File("bad_other_abi"),
                "other_abi.so': it was built with headers of ABI 999; this "
                "pdkit has 2: compile it anew");
  ExpectRefused(File("bad_grad_first"),
                "PD_BUILD_GRAD_OP.custom_same. stands before PD_BUILD_OP");
  ExpectRefused(File("bad_built_in"),
                "built_in.so', op 'softmax': pdkit has an operator of this "
                "name");
  ExpectRefused(File("bad_wrong_list"),
                "op 'custom_same': the kernel takes 1 inputs; Inputs has 2");
}

TEST(PluginErrors, TellHowAnInitialiserEnds) {
  ExpectRefused(File("bad_throws"),
                "throws.so': its initialiser threw: no licence was found");
  ExpectRefused(File("bad_crashes"),
                "crashes.so': it (crashes|ends the process)");
  ExpectRefused(File("bad_exits"),
                "exits.so': it ends the process while it is loaded .status 7");
  ExpectRefused(File("bad_foreign"),
                "foreign.so': .*PaddlePaddle's own headers");
}

TEST(PluginErrors, NameBothFilesWhereTwoDeclareAnOperator) {
  const std::string copy = ::testing::TempDir() + "/libanother_everything.so";
  std::filesystem::copy_file(File("every_op_name"), copy,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EXIT(
      {
        absl::Status status = LoadPlugin(File("every_op_name"));
        if (status.ok()) status = LoadPlugin(File("every_op_name"));
        std::fprintf(stderr, "first: %d ", status.ok());
        status = LoadPlugin(copy);
        std::fprintf(stderr, "%s", status.ToString().c_str());
        std::_Exit(status.ok() ? 0 : 1);
      },
      ::testing::ExitedWithCode(1),
      "first: 1 ALREADY_EXISTS: plug-in '.*another_everything.so'.*op "
      "'custom_everything' is declared already, by '.*every_op_name.so'");
}

absl::Status RunFail(const std::string& how) {
  PD_RETURN_IF_ERROR(LoadPlugin(File("bad_kernels")));
  PD_ASSIGN_OR_RETURN(auto registry, MakeRegistry());
  PD_RETURN_IF_ERROR(AddPluginOps(registry.get()));
  ProgramDesc program;
  program.blocks.emplace_back();
  VarDesc x;
  x.name = "x";
  x.shape = {2, 3};
  program.global().vars.push_back(x);
  OpDesc op;
  op.type = "custom_fail";
  op.SetInput("X", {"x"});
  op.SetOutput("Out", {"out"});
  op.attrs["how"] = how;
  BlockBuilder builder(registry.get(), &program);
  PD_RETURN_IF_ERROR(builder.Append(std::move(op)));
  Session session(registry.get());
  Tensor value(DType::kFloat32, {2, 3});
  PD_RETURN_IF_ERROR(value.Allocate());
  NamedArrays feeds;
  feeds["x"] = ToArray(value);
  return session.Run(program, feeds, {"out"}).status();
}

TEST(PluginErrors, NameFileAndOperatorWhereAKernelFails) {
  EXPECT_TRUE(RunFail("not at all").ok()) << RunFail("not at all");
  const std::pair<const char*, const char*> cases[] = {
      {"check", "x must be a GPU Tensor. ["},
      {"throw", "out of ideas"},
      {"number", "it threw something that is no std::exception"},
      {"type", "the type float64; InferDtype says float32"},
      {"read", "it holds float32 and is read as float64"},
      {"count", "the kernel returns 2 tensors; expected 1"},
      {"nothing", "leaves output 'Out' without a value"},
      {"function", "op 'matmul_v2'"},
  };
  for (const auto& [how, said] : cases) {
    const absl::Status status = RunFail(how);
    EXPECT_TRUE(absl::StrContains(status.message(), said))
        << how << ": " << status;
    EXPECT_TRUE(absl::StrContains(status.message(),
                                  "libbad_kernels.so', op 'custom_fail'"))
        << how << ": " << status;
  }
  EXPECT_EQ(RunFail("check").code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(RunFail("read").code(), absl::StatusCode::kInvalidArgument);
}

TEST(PluginErrors, RefuseSelectedRowsAndArrays) {
  ASSERT_TRUE(LoadPlugin(File("bad_kernels")).ok());
  auto registry = MakeRegistry();
  ASSERT_TRUE(registry.ok()) << registry.status();
  ASSERT_TRUE(AddPluginOps(registry->get()).ok());
  for (const VarKind kind :
       {VarKind::kSelectedRows, VarKind::kLodTensorArray}) {
    ProgramDesc program;
    program.blocks.emplace_back();
    VarDesc x;
    x.name = "x";
    x.kind = kind;
    x.shape = {2, 3};
    program.global().vars.push_back(x);
    OpDesc op;
    op.type = "custom_fail";
    op.SetInput("X", {"x"});
    op.SetOutput("Out", {"out"});
    op.attrs["how"] = std::string("not at all");
    const absl::Status status =
        BlockBuilder(registry->get(), &program).Append(std::move(op));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(
        absl::StrContains(status.message(), "input 'X' is no dense tensor"))
        << status;
  }
}

#ifndef PD_WITH_SANITIZER
TEST(PluginErrors, NameFileAndOperatorOfACrash) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT((void)RunFail("crash"), ::testing::KilledBySignal(SIGSEGV),
              "crash .SIGSEGV. inside plug-in '.*libbad_kernels.so', op "
              "'custom_fail'");
}

TEST(PluginErrors, KernelsDoNotEndTheProcessAsIfAllWereDone) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT((void)RunFail("exit"), ::testing::ExitedWithCode(3),
              "exit inside plug-in '.*libbad_kernels.so', op 'custom_fail'");
}
#endif

}  // namespace test_plugin_errors
}  // namespace pd
