// SPDX-License-Identifier: Apache-2.0
// PaddlePassBuilder, and which of our passes does what PaddlePaddle's do.
#include <algorithm>
#include <map>

#include "libcore/base/error.h"
#include "libcore/inference/border.h"
#include "libcore/inference/settings.h"
#include "libcore/passes/pipeline.h"

namespace pd {
namespace inference {
namespace {

// The passes that change training programs alone.
const std::set<std::string>& OnlyTraining() {
  static const auto* const names =
      new std::set<std::string>{"advance_updates", "merge_updates"};
  return *names;
}

const std::map<std::string, std::string>& PaddleNames() {
  static const auto* const names = new std::map<std::string, std::string>{
      {"conv_bn_fuse_pass", "fold_batch_norms"},
      {"conv_eltwiseadd_bn_fuse_pass", "fold_batch_norms"},
      {"conv_transpose_bn_fuse_pass", "fold_batch_norms"},
      {"conv_transpose_eltwiseadd_bn_fuse_pass", "fold_batch_norms"},
      {"depthwise_conv_bn_fuse_pass", "fold_batch_norms"},
      {"depthwise_conv_eltwiseadd_bn_fuse_pass", "fold_batch_norms"},
      {"cpu_quantize_placement_pass", "int8_chains"},
      {"cpu_quantize_pass", "int8_chains"},
      {"cpu_quantize_squash_pass", "int8_chains"},
      {"quant_dequant_mkldnn_pass", "int8_chains"},
      {"onnx_style_quant_dequant_pass", "int8_chains"},
      {"conv_bias_mkldnn_fuse_pass", "fuse_conv_bias_act"},
      {"conv_transpose_bias_mkldnn_fuse_pass", "fuse_conv_bias_act"},
      {"conv_activation_mkldnn_fuse_pass", "fuse_conv_bias_act"},
      {"conv_activation_onednn_fuse_pass", "fuse_conv_bias_act"},
      {"conv_relu_mkldnn_fuse_pass", "fuse_conv_bias_act"},
      {"conv_relu6_mkldnn_fuse_pass", "fuse_conv_bias_act"},
      {"conv_leaky_relu_mkldnn_fuse_pass", "fuse_conv_bias_act"},
      {"conv_swish_mkldnn_fuse_pass", "fuse_conv_bias_act"},
      {"conv_hard_swish_mkldnn_fuse_pass", "fuse_conv_bias_act"},
      {"conv_elementwise_add_fuse_pass", "fuse_conv_bias_act"},
      {"conv_elementwise_add_act_fuse_pass", "fuse_conv_bias_act"},
      {"conv_elementwise_add_mkldnn_fuse_pass", "fuse_conv_residual"},
      {"conv_elementwise_add_onednn_fuse_pass", "fuse_conv_residual"},
      {"conv_elementwise_add2_act_fuse_pass", "fuse_conv_residual"},
      {"batch_norm_act_fuse_pass", "fuse_batch_norm_act"},
      {"multihead_matmul_fuse_pass", "fuse_attention"},
      {"multihead_matmul_fuse_pass_v2", "fuse_attention"},
      {"multihead_matmul_fuse_pass_v3", "fuse_attention"},
      {"self_attention_fuse_pass", "fuse_attention"},
      {"fc_fuse_pass", "fuse_gemm_epilogue"},
      {"fc_mkldnn_pass", "fuse_gemm_epilogue"},
      {"fc_act_mkldnn_fuse_pass", "fuse_gemm_epilogue"},
      {"fc_elementwise_add_mkldnn_fuse_pass", "fuse_gemm_epilogue"},
      {"fused_linear_pass", "fuse_gemm_epilogue"},
      {"elt_act_mkldnn_fuse_pass", "fuse_add_act"},
      {"elementwise_act_onednn_fuse_pass", "fuse_add_act"},
      {"fuse_elewise_add_act_pass", "fuse_add_act"},
  };
  return *names;
}

std::vector<std::string> OurPasses() {
  std::vector<std::string> names;
  for (const Pass& pass : AllPasses())
    if (OnlyTraining().count(pass.name) == 0) names.push_back(pass.name);
  return names;
}

}  // namespace

std::string PassCalled(const std::string& name) {
  const auto paddle = PaddleNames().find(name);
  if (paddle != PaddleNames().end()) return paddle->second;
  for (const Pass& pass : AllPasses())
    if (name == pass.name && OnlyTraining().count(name) == 0) return name;
  return "";
}

std::set<std::string> PassesAskedFor(const std::vector<std::string>& names) {
  std::set<std::string> asked;
  for (const std::string& name : names) {
    const std::string ours = PassCalled(name);
    if (!ours.empty())
      asked.insert(ours);
    else
      SayOnce("pass " + name, "there is none here; it is left out");
  }
  return asked;
}

}  // namespace inference
}  // namespace pd

namespace paddle {

PaddlePassBuilder::PaddlePassBuilder(const std::vector<std::string>& passes)
    : analysis_passes_({"ir_graph_build_pass", "ir_analysis_pass"}),
      passes_(passes) {}
PaddlePassBuilder::PaddlePassBuilder(const PaddlePassBuilder&) = default;
PaddlePassBuilder& PaddlePassBuilder::operator=(const PaddlePassBuilder&) =
    default;
PaddlePassBuilder::~PaddlePassBuilder() = default;

void PaddlePassBuilder::SetPasses(std::initializer_list<std::string> passes) {
  passes_ = passes;
}

void PaddlePassBuilder::AppendPass(const std::string& pass_type) {
  passes_.push_back(pass_type);
}

void PaddlePassBuilder::InsertPass(size_t idx, const std::string& pass_type) {
  passes_.insert(passes_.begin() + std::min(idx, passes_.size()), pass_type);
}

void PaddlePassBuilder::DeletePass(size_t idx) {
  if (idx >= passes_.size())
    pd::inference::Check(pd::InvalidArgument(
        "there is no pass %d; the list has %d", idx, passes_.size()));
  deleted_passes_.insert(passes_[idx]);
  passes_.erase(passes_.begin() + idx);
}

void PaddlePassBuilder::DeletePass(const std::string& pass_type) {
  deleted_passes_.insert(pass_type);
  const std::string ours = pd::inference::PassCalled(pass_type);
  passes_.erase(
      std::remove_if(passes_.begin(), passes_.end(),
                     [&](const std::string& name) {
                       return name == pass_type ||
                              (!ours.empty() &&
                               pd::inference::PassCalled(name) == ours);
                     }),
      passes_.end());
}

void PaddlePassBuilder::ClearPasses() { passes_.clear(); }

void PaddlePassBuilder::AppendAnalysisPass(const std::string& pass) {
  analysis_passes_.push_back(pass);
}

void PaddlePassBuilder::TurnOnDebug() { debug_ = true; }

std::string PaddlePassBuilder::DebugString() {
  std::string text = "Passes to apply:\n";
  for (const std::string& name : passes_) text += "  - " + name + "\n";
  return text;
}

PassStrategy::PassStrategy(const std::vector<std::string>& passes)
    : PaddlePassBuilder(passes) {}
PassStrategy::PassStrategy(const PassStrategy&) = default;
PassStrategy::~PassStrategy() = default;
CpuPassStrategy::CpuPassStrategy() : PassStrategy(pd::inference::OurPasses()) {}
CpuPassStrategy::CpuPassStrategy(const CpuPassStrategy&) = default;
CpuPassStrategy::~CpuPassStrategy() = default;
GpuPassStrategy::GpuPassStrategy() : PassStrategy(pd::inference::OurPasses()) {
  use_gpu_ = true;
}
GpuPassStrategy::GpuPassStrategy(const GpuPassStrategy&) = default;
GpuPassStrategy::~GpuPassStrategy() = default;

}  // namespace paddle
