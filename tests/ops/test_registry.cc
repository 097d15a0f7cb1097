// SPDX-License-Identifier: Apache-2.0
// Walks the registry: an op that lacks inference, a reference kernel, a word
// about its gradient or a test does not pass.
#include "libcore/ops/registry.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "libcore/ops/non_finite.h"
#include "tests/ops/golden_case.h"

namespace pd {
namespace test_registry {

// Ops of programs of several processes.
void AddFleetTests(std::map<std::string, std::string>* list) {
  for (const std::string type : {"all_gather",
                                 "all_reduce",
                                 "all_to_all",
                                 "alltoall",
                                 "barrier",
                                 "broadcast",
                                 "c_allgather",
                                 "c_allreduce_max",
                                 "c_allreduce_min",
                                 "c_allreduce_prod",
                                 "c_allreduce_sum",
                                 "c_broadcast",
                                 "c_comm_init_all",
                                 "c_comm_init_multitrainer",
                                 "c_concat",
                                 "c_embedding",
                                 "c_gen_xccl_id",
                                 "c_identity",
                                 "c_reduce_max",
                                 "c_reduce_min",
                                 "c_reduce_prod",
                                 "c_reduce_sum",
                                 "c_reducescatter",
                                 "c_scatter",
                                 "c_softmax_with_cross_entropy",
                                 "c_split",
                                 "c_sync_calc_stream",
                                 "c_sync_comm_stream",
                                 "c_wait_comm",
                                 "c_wait_compute",
                                 "dist_concat",
                                 "global_gather",
                                 "global_scatter",
                                 "mp_allreduce_sum",
                                 "p_recv",
                                 "p_send",
                                 "partial_allgather",
                                 "partial_recv",
                                 "partial_send",
                                 "recv_v2",
                                 "reduce",
                                 "reduce_scatter",
                                 "send_v2"})
    (*list)[type] = "dist_fleet_ops_test";
  for (const std::string type :
       {"c_comm_init", "c_embedding_grad", "c_gen_nccl_id",
        "c_softmax_with_cross_entropy_grad", "depend", "nop", "share_buffer"})
    (*list)[type] = "dist_fleet_training_test";
}

// Ops that draw numbers, touch files or run blocks.
void AddOtherTests(std::map<std::string, std::string>* list) {
  for (const std::string type :
       {"load", "load_combine", "read_file", "save", "save_combine"})
    (*list)[type] = "test_file_ops";
  for (const std::string type :
       {"recurrent_grad", "rnn_memory_helper", "rnn_memory_helper_grad"})
    (*list)[type] = "test_recurrent_ops";
  for (const std::string type : {"binomial", "standard_gamma"})
    (*list)[type] = "test_random_ops";
  (*list)["dgc"] = "test_dgc";
}

// Ops without a case in testdata/ops, and the test that covers each.
const std::map<std::string, std::string>& CoveredElsewhere() {
  static auto* list = new std::map<std::string, std::string>{
      {"batch_norm_grad_grad", "test_nn_gradients"},
      {"clip_double_grad", "test_math_ops"},
      {"conditional_block_infer", "test_update_ops"},
      {"conv2d_grad_grad", "test_nn_gradients"},
      {"conv3d_grad_grad", "test_nn_gradients"},
      {"depthwise_conv2d_grad_grad", "test_nn_gradients"},
      {"dequantize", "test_update_ops"},
      {"dpsgd", "test_update_ops"},
      {"exponential_grad", "test_math_ops"},
      {"flatten", "test_index_gradients"},
      {"flatten_grad", "test_index_gradients"},
      {"fused_batch_norm_act", "test_channel_kernels"},
      {"fused_batch_norm_act_grad", "test_channel_kernels"},
      {"fused_conv2d", "test_batch_inner"},
      {"fused_conv2d_grad", "test_batch_inner"},
      {"fused_embedding_eltwise_layernorm", "test_fused_ops"},
      {"fused_embedding_seq_pool_grad", "test_sequence_ops"},
      {"fused_fc_elementwise_layernorm", "test_fused_ops"},
      {"fused_gemm_epilogue", "test_nn_ops"},
      {"fused_gemm_epilogue_grad", "test_nn_ops"},
      {"fused_lookup_concat", "test_fusion"},
      {"fused_softmax_mask_upper_triangle", "test_nn_gradients"},
      {"fused_softmax_mask_upper_triangle_grad", "test_nn_gradients"},
      {"gaussian_inplace_grad", "test_math_ops"},
      {"gaussian_random_batch_size_like", "test_math_ops"},
      {"get_tensor_from_selected_rows", "test_update_ops"},
      {"gumbel_softmax", "test_random_layers"},
      {"gumbel_softmax_grad", "test_random_layers"},
      {"instance_norm_double_grad", "test_nn_gradients"},
      {"instance_norm_grad_grad", "test_nn_gradients"},
      {"int8_dynamic_matmul", "test_int8_dynamic"},
      {"int8_dynamic_rnn", "test_int8_dynamic"},
      {"isfinite", "test_small_ops"},
      {"margin_cross_entropy", "test_loss_gradients"},
      {"margin_cross_entropy_grad", "test_loss_gradients"},
      {"margin_rank_loss", "test_loss_gradients"},
      {"margin_rank_loss_grad", "test_loss_gradients"},
      {"merge_lod_tensor_infer", "test_sequence_ops"},
      {"merge_selected_rows", "test_update_ops"},
      {"multihead_matmul", "test_fused_ops"},
      {"one_hot", "test_small_ops"},
      {"pad2d", "test_index_gradients"},
      {"pad2d_grad", "test_index_gradients"},
      {"poisson_grad", "test_math_ops"},
      {"proximal_adagrad", "test_update_ops"},
      {"quantize", "test_update_ops"},
      {"reorder_lod_tensor_by_rank_grad", "test_sequence_ops"},
      {"requantize", "test_update_ops"},
      {"reshape2_grad_grad", "test_index_gradients"},
      {"reshape_grad", "test_index_gradients"},
      {"scaled_dot_product_attention", "test_gradients"},
      {"scaled_dot_product_attention_grad", "test_gradients"},
      {"shrink_rnn_memory_grad", "test_sequence_ops"},
      {"shuffle_batch_grad", "test_math_ops"},
      {"skip_layernorm", "test_fused_ops"},
      {"sparse_attention", "test_nn_gradients"},
      {"sparse_attention_grad", "test_nn_gradients"},
      {"squeeze", "test_index_gradients"},
      {"squeeze_grad", "test_index_gradients"},
      {"sum_relu_grad", "test_fuse_add_act, test_device_elementwise"},
      {"sync_batch_norm", "test_nn_gradients"},
      {"sync_batch_norm_grad", "test_nn_gradients"},
      {"target_assign", "test_layer_goldens"},
      {"transpose_grad", "test_gradients"},
      {"uniform_random_inplace_grad", "test_math_ops"},
      {"unsqueeze", "test_index_gradients"},
      {"unsqueeze_grad", "test_index_gradients"},
      {"view_dtype_grad", "test_device_ops"},
  };
  for (const std::string type : {"conv2d", "conv2d_transpose", "dequantize",
                                 "elementwise", "matmul", "pool2d", "quantize"})
    (*list)["int8_" + type] = "test_int8_kernels, test_int8_chains";
  for (const std::string type : {"adagrad", "adamw", "rmsprop", "sgd"})
    (*list)["merged_" + type] = "test_merge_updates";
  AddFleetTests(list);
  AddOtherTests(list);
  return *list;
}

// `gradients`: with those that our append_backward makes.
std::set<std::string> OpsInGoldens(const std::string& folder, bool gradients) {
  std::set<std::string> types;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".zip") continue;
    const auto cases = ReadGoldenCases(entry.path().string());
    EXPECT_TRUE(cases.ok()) << cases.status();
    if (!cases.ok()) continue;
    for (const GoldenCase& golden : *cases)
      for (const ProgramDesc* program : {&golden.program, &golden.startup})
        for (const BlockDesc& block : program->blocks)
          for (const OpDesc& op : block.ops) {
            types.insert(op.type);
            if (gradients && !golden.targets.empty())
              types.insert(op.type + "_grad");
          }
  }
  return types;
}

TEST(Registry, EveryOpIsComplete) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  const std::set<std::string> golden = OpsInGoldens(PD_TESTDATA "/ops", false);
  const std::set<std::string> more =
      OpsInGoldens(PD_TESTDATA "/ops_more", true);
  EXPECT_FALSE(registry.All().empty());
  for (const OpDef* op : registry.All()) {
    SCOPED_TRACE(op->type());
    EXPECT_TRUE(op->infers()) << "no inference";
    ASSERT_FALSE(op->implementations().empty()) << "no kernel";
    EXPECT_EQ(op->implementations().back().label, "reference");
    EXPECT_NE(op->implementations().back().bind, nullptr);
    EXPECT_TRUE(op->says_about_grad()) << "neither a gradient nor NoGrad";
    // `assert` is there for its error, others for what they send or save.
    if (op->type() != "save" && op->type() != "save_combine")
      EXPECT_EQ(op->outputs().empty(), op->type() == "assert" ||
                                           op->type() == "delete_var" ||
                                           (op->Has(Trait::kCommunicates) &&
                                            op->FindOutput("Out") == nullptr &&
                                            op->FindOutput("out") == nullptr &&
                                            op->FindOutput("Loss") == nullptr));
    const bool elsewhere = CoveredElsewhere().count(op->type()) > 0;
    const bool here = golden.count(op->type()) > 0 ||
                      (!elsewhere && more.count(op->type()) > 0);
    EXPECT_NE(here, elsewhere)
        << (elsewhere ? "is in testdata/ops: take it off the list"
                      : "no case in testdata/ops or testdata/ops_more and no "
                        "other test is named");
  }
}

TEST(Registry, RefusesASecondOpOfOneType) {
  OpRegistry registry;
  ASSERT_TRUE(registry.Add(OpDef("once")).ok());
  EXPECT_EQ(registry.Add(OpDef("once")).code(),
            absl::StatusCode::kAlreadyExists);
}

// Kernels read attributes as this leaves them.
TEST(OpDef, FillsInAndConvertsAttributes) {
  OpDef def("op");
  def.Attr("axis", int32_t{-1}).Attr("padding", int64_t{-1});
  def.RequiredAttr("depth", AttrType::kInt);
  OpDesc op;
  EXPECT_EQ(def.NormalizeAttrs(&op).message(), "attr 'depth' is missing");
  op.attrs = {{"depth", int32_t{2}},
              {"padding", int32_t{5}},
              {"theirs", std::string("kept")}};
  ASSERT_TRUE(def.NormalizeAttrs(&op).ok());
  EXPECT_EQ(op.Attr<int32_t>("axis"), -1);
  EXPECT_EQ(op.Attr<int64_t>("padding"), 5);
  EXPECT_EQ(op.Attr<int32_t>("depth"), 2);
  EXPECT_EQ(op.Attr<std::string>("theirs"), "kept");
  op.attrs["depth"] = std::string("two");
  EXPECT_EQ(def.NormalizeAttrs(&op).message(),
            "attr 'depth' is of type string; expected int");
  op.attrs["depth"] = VarRef{"d"};
  EXPECT_EQ(def.NormalizeAttrs(&op).code(), absl::StatusCode::kUnimplemented);
}

TEST(Registry, NamesTheNearestOpThatExists) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  const absl::Status status = registry.Get("elementwise_ad").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(status.message().find("elementwise_add"), std::string::npos);
}

// The table of facts about NaN can be believed: its types, slots and attributes
// exist.
TEST(NonFiniteFacts, FitTheSchemas) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  for (const auto& [type, facts] : AllNonFiniteFacts()) {
    const OpDef* def = registry.Find(type);
    ASSERT_NE(def, nullptr) << type;
    OpDesc op;
    op.type = type;
    const bool normal = def->NormalizeAttrs(&op).ok();
    for (const NonFiniteRule& rule : facts.rules) {
      EXPECT_NE(def->FindInput(rule.input), nullptr) << type << rule.input;
      EXPECT_NE(def->FindOutput(rule.output), nullptr) << type << rule.output;
      if (rule.holds == nullptr) continue;
      ASSERT_TRUE(normal) << type;
      rule.holds(op);  // reads attributes of the schema, else it ends the test
    }
    if (facts.keeps_minus_infinity) EXPECT_FALSE(def->inputs().empty()) << type;
    if (facts.writes_constants) EXPECT_FALSE(def->attrs().empty()) << type;
  }
  EXPECT_TRUE(NonFiniteFactsOf("softmax").rules.empty());
}

}  // namespace test_registry
}  // namespace pd
