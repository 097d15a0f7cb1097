// SPDX-License-Identifier: Apache-2.0
// Settings of TensorRT, and of chips that are not here.
#include <cstdlib>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/inference/border.h"
#include "libcore/inference/settings.h"

namespace paddle {
namespace {

using pd::inference::Check;
using pd::inference::SayOnce;

constexpr char kNoTensorRt[] =
    "there is no TensorRT here; pdkit's own kernels compute the same";

[[noreturn]] void NotHere(const char* call, const char* chip) {
  Check(pd::FailedPrecondition(
      "%s: this library was not compiled with %s; a plug-in for "
      "EnableCustomDevice, the CPU or an NVIDIA GPU can be used",
      call, chip));
  std::abort();
}

}  // namespace

LiteNNAdapterConfig& LiteNNAdapterConfig::SetDeviceNames(
    const std::vector<std::string>& names) {
  nnadapter_device_names = names;
  return *this;
}
LiteNNAdapterConfig& LiteNNAdapterConfig::SetContextProperties(
    const std::string& properties) {
  nnadapter_context_properties = properties;
  return *this;
}
LiteNNAdapterConfig& LiteNNAdapterConfig::SetModelCacheDir(
    const std::string& dir) {
  model_cache_dir = dir;
  return *this;
}
LiteNNAdapterConfig& LiteNNAdapterConfig::SetModelCacheBuffers(
    const std::string& token, const std::vector<char>& buffer) {
  nnadapter_model_cache_buffers[token] = buffer;
  return *this;
}
LiteNNAdapterConfig& LiteNNAdapterConfig::SetSubgraphPartitionConfigPath(
    const std::string& path) {
  nnadapter_subgraph_partition_config_path = path;
  return *this;
}
LiteNNAdapterConfig& LiteNNAdapterConfig::SetSubgraphPartitionConfigBuffer(
    const std::string& text) {
  nnadapter_subgraph_partition_config_buffer = text;
  return *this;
}
LiteNNAdapterConfig& LiteNNAdapterConfig::Enable() {
  NotHere("NNAdapter().Enable", "Paddle Lite's NNAdapter");
}
LiteNNAdapterConfig& LiteNNAdapterConfig::Disable() {
  use_nnadapter = false;
  return *this;
}

AcceleratorSettings::AcceleratorSettings()
    : kept_(std::make_unique<pd::inference::Accelerators>()) {}
AcceleratorSettings::AcceleratorSettings(const AcceleratorSettings& other)
    : kept_(std::make_unique<pd::inference::Accelerators>(*other.kept_)) {}
AcceleratorSettings& AcceleratorSettings::operator=(
    const AcceleratorSettings& other) {
  *kept_ = *other.kept_;
  return *this;
}
AcceleratorSettings::~AcceleratorSettings() = default;

void AcceleratorSettings::EnableTensorRtEngine(
    int64_t workspace_size, int max_batch_size, int min_subgraph_size,
    PaddlePrecision precision, bool /*use_static*/, bool /*use_calib_mode*/,
    bool /*use_cuda_graph*/) {
  SayOnce("EnableTensorRtEngine", kNoTensorRt);
  kept_->trt_workspace = workspace_size;
  kept_->trt_max_batch = max_batch_size;
  kept_->trt_min_subgraph = min_subgraph_size;
  kept_->trt_precision = precision;
}
PaddlePrecision AcceleratorSettings::tensorrt_precision_mode() const {
  return kept_->trt_precision;
}
int64_t AcceleratorSettings::tensorrt_workspace_size() const {
  return kept_->trt_workspace;
}
int64_t AcceleratorSettings::tensorrt_max_batch_size() const {
  return kept_->trt_max_batch;
}
int64_t AcceleratorSettings::tensorrt_min_subgraph_size() const {
  return kept_->trt_min_subgraph;
}
void AcceleratorSettings::EnableTensorRTMemoryOptim(bool engine_memory_sharing,
                                                    int /*identifier*/) {
  kept_->trt_memory_sharing = engine_memory_sharing;
}
bool AcceleratorSettings::trt_engine_memory_sharing() const {
  return kept_->trt_memory_sharing;
}
void AcceleratorSettings::SetTRTDynamicShapeInfo(Shapes min_input_shape,
                                                 Shapes max_input_shape,
                                                 Shapes optim_input_shape,
                                                 bool disable_plugin_fp16) {
  SayOnce("SetTRTDynamicShapeInfo", kNoTensorRt);
  kept_->min_shape = std::move(min_input_shape);
  kept_->max_shape = std::move(max_input_shape);
  kept_->optim_shape = std::move(optim_input_shape);
  kept_->disable_plugin_fp16 = disable_plugin_fp16;
}
bool AcceleratorSettings::tensorrt_dynamic_shape_enabled() const {
  return !kept_->min_shape.empty();
}
AcceleratorSettings::Shapes AcceleratorSettings::min_input_shape() const {
  return kept_->min_shape;
}
AcceleratorSettings::Shapes AcceleratorSettings::max_input_shape() const {
  return kept_->max_shape;
}
AcceleratorSettings::Shapes AcceleratorSettings::optim_input_shape() const {
  return kept_->optim_shape;
}
bool AcceleratorSettings::disable_trt_plugin_fp16() const {
  return kept_->disable_plugin_fp16;
}
void AcceleratorSettings::CollectShapeRangeInfo(const std::string& path) {
  if (path.empty())
    Check(pd::InvalidArgument(
        "CollectShapeRangeInfo: the path is empty; expected a file's name"));
  SayOnce("CollectShapeRangeInfo",
          "shapes are TensorRT's need; none are written");
  kept_->shape_range_info_path = path;
  kept_->collect_shape_range_info = true;
}
const std::string& AcceleratorSettings::shape_range_info_path() const {
  return kept_->shape_range_info_path;
}
bool AcceleratorSettings::shape_range_info_collected() const {
  return kept_->collect_shape_range_info;
}
void AcceleratorSettings::EnableTunedTensorRtDynamicShape(
    const std::string& path, bool allow_build_at_runtime) {
  SayOnce("EnableTunedTensorRtDynamicShape", kNoTensorRt);
  kept_->shape_range_info_path = path;
  kept_->build_at_runtime = allow_build_at_runtime;
  kept_->tuned_dynamic_shape = true;
}
bool AcceleratorSettings::tuned_tensorrt_dynamic_shape() const {
  return kept_->tuned_dynamic_shape;
}
bool AcceleratorSettings::trt_allow_build_at_runtime() const {
  return kept_->build_at_runtime;
}
void AcceleratorSettings::Exp_DisableTensorRtOPs(
    const std::vector<std::string>& /*ops*/) {}
void AcceleratorSettings::Exp_DisableTensorRtSubgraph(
    const std::vector<std::string>& /*names*/) {}
void AcceleratorSettings::Exp_DisableTensorRtDynamicShapeOPs(bool /*forbid*/) {}
void AcceleratorSettings::EnableVarseqlen() { kept_->varseqlen = true; }
bool AcceleratorSettings::tensorrt_varseqlen_enabled() const {
  return kept_->varseqlen;
}
void AcceleratorSettings::EnableTensorRtDLA(int /*dla_core*/) {
  kept_->dla = true;
}
bool AcceleratorSettings::tensorrt_dla_enabled() const { return kept_->dla; }
void AcceleratorSettings::EnableTensorRtInspector(bool /*serialize*/) {
  kept_->inspector = true;
}
bool AcceleratorSettings::tensorrt_inspector_enabled() const {
  return kept_->inspector;
}
void AcceleratorSettings::EnableTensorRtExplicitQuantization() {
  kept_->explicit_quantization = true;
}
bool AcceleratorSettings::tensorrt_explicit_quantization_enabled() const {
  return kept_->explicit_quantization;
}
void AcceleratorSettings::SetTensorRtOptimizationLevel(int level) {
  if (level < 0 || level > 5)
    Check(pd::InvalidArgument(
        "SetTensorRtOptimizationLevel(%d): expected 0 to 5", level));
  kept_->trt_optimization_level = level;
}
int AcceleratorSettings::tensorrt_optimization_level() const {
  return kept_->trt_optimization_level;
}
void AcceleratorSettings::MarkTrtEngineOutputs(
    const std::vector<std::string>& /*output_names*/) {}

void AcceleratorSettings::EnableXpu(int, bool, bool, const std::string&,
                                    const std::string&, bool, bool) {
  NotHere("EnableXpu", "XPU");
}
void AcceleratorSettings::SetXpuDeviceId(int /*device_id*/) {
  NotHere("SetXpuDeviceId", "XPU");
}
void AcceleratorSettings::SetXpuConfig(const XpuConfig& /*config*/) {
  NotHere("SetXpuConfig", "XPU");
}
void AcceleratorSettings::SetXpuConfig(
    int /*bits*/, const std::vector<std::string>& /*op_types*/) {
  NotHere("SetXpuConfig", "XPU");
}
int AcceleratorSettings::xpu_device_id() const { return kept_->xpu.device_id; }
XpuConfig AcceleratorSettings::xpu_config() const { return kept_->xpu; }
void AcceleratorSettings::EnableLiteEngine(
    PaddlePrecision /*precision*/, bool /*zero_copy*/,
    const std::vector<std::string>& /*passes_filter*/,
    const std::vector<std::string>& /*ops_filter*/) {
  NotHere("EnableLiteEngine", "Paddle Lite");
}
void AcceleratorSettings::EnableNpu(int /*device_id*/) {
  NotHere("EnableNpu", "NPU");
}
void AcceleratorSettings::EnableIpu(int, int, bool, int) {
  NotHere("EnableIpu", "IPU");
}
void AcceleratorSettings::SetIpuConfig(bool, int, float, bool, bool) {
  NotHere("SetIpuConfig", "IPU");
}
void AcceleratorSettings::LoadIpuConfig(const std::string& /*path*/) {
  NotHere("LoadIpuConfig", "IPU");
}
void AcceleratorSettings::EnableDlnne(
    int, int, bool, std::string, std::unordered_set<std::string>,
    std::map<std::string, std::vector<int64_t>>, bool, PaddlePrecision) {
  NotHere("EnableDlnne", "DLNNE");
}
void AcceleratorSettings::EnableOpenCL() { NotHere("EnableOpenCL", "OpenCL"); }
void AcceleratorSettings::EnableOpenVINOEngine(PaddlePrecision /*precision*/) {
  SayOnce("EnableOpenVINOEngine",
          "there is no OpenVINO here; pdkit's own kernels compute the same");
}
LiteNNAdapterConfig& AcceleratorSettings::NNAdapter() {
  return kept_->nnadapter;
}
void AcceleratorSettings::EnableCustomDevice(const std::string& device_type,
                                             int /*device_id*/,
                                             PaddlePrecision /*precision*/) {
  Check(pd::FailedPrecondition(
      "EnableCustomDevice: there is no plug-in for devices of type '%s'",
      device_type));
}
void AcceleratorSettings::EnableONNXRuntime() {
  pd::LogError(
      "EnableONNXRuntime: this library was not compiled with ONNX Runtime; "
      "pdkit computes");
}
void AcceleratorSettings::EnableORTOptimization() {
  pd::LogError(
      "EnableORTOptimization: this library was not compiled with ONNX Runtime");
}

}  // namespace paddle
