// SPDX-License-Identifier: Apache-2.0
// AnalysisConfig: the setters and getters.
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/inference/border.h"
#include "libcore/inference/gpu.h"
#include "libcore/inference/settings.h"

namespace pd {
namespace inference {

Settings::Settings() : passes(std::make_unique<paddle::CpuPassStrategy>()) {}

Settings::Settings(const Settings& other)
    : model_dir(other.model_dir),
      prog_file(other.prog_file),
      params_file(other.params_file),
      opt_cache_dir(other.opt_cache_dir),
      prog_buffer(other.prog_buffer),
      params_buffer(other.params_buffer),
      gpu(other.gpu),
      place(other.place),
      gpu_id(other.gpu_id),
      gpu_memory_mb(other.gpu_memory_mb),
      gpu_precision(other.gpu_precision),
      gpu_float32_ops(other.gpu_float32_ops),
      gpu_half_ops(other.gpu_half_ops),
      cudnn(other.cudnn),
      multi_stream(other.multi_stream),
      stream(other.stream),
      external_stream(other.external_stream),
      onednn(other.onednn),
      onednn_off(other.onednn_off),
      onednn_quantizer(other.onednn_quantizer),
      onednn_bf16(other.onednn_bf16),
      onednn_int8(other.onednn_int8),
      onednn_cache(other.onednn_cache),
      onednn_ops(other.onednn_ops),
      bf16_ops(other.bf16_ops),
      quantizer(other.quantizer),
      threads(other.threads),
      ir_optim(other.ir_optim),
      ir_debug(other.ir_debug),
      passes(std::make_unique<paddle::PassStrategy>(*other.passes)),
      memory_optim(other.memory_optim),
      profile(other.profile),
      no_info(other.no_info),
      feed_fetch_ops(other.feed_fetch_ops),
      specify_input_names(other.specify_input_names),
      fc_padding(other.fc_padding),
      new_executor(other.new_executor),
      new_ir(other.new_ir),
      optimized_model(other.optimized_model),
      cinn(other.cinn),
      native(other.native),
      dist(other.dist) {}

}  // namespace inference
}  // namespace pd

namespace paddle {
namespace {

using pd::inference::Check;
using pd::inference::SayOnce;

using OpSet = std::unordered_set<std::string>;

std::set<std::string> Sorted(const OpSet& ops) {
  return {ops.begin(), ops.end()};
}

}  // namespace

AnalysisConfig::AnalysisConfig()
    : settings_(std::make_unique<pd::inference::Settings>()) {}
AnalysisConfig::AnalysisConfig(const std::string& model_dir)
    : AnalysisConfig() {
  SetModel(model_dir);
}
AnalysisConfig::AnalysisConfig(const std::string& prog_file,
                               const std::string& params_file)
    : AnalysisConfig() {
  SetModel(prog_file, params_file);
}
AnalysisConfig::AnalysisConfig(const AnalysisConfig& other)
    : AcceleratorSettings(other),
      settings_(std::make_unique<pd::inference::Settings>(*other.settings_)) {}
AnalysisConfig& AnalysisConfig::operator=(const AnalysisConfig& other) {
  if (this == &other) return *this;
  AcceleratorSettings::operator=(other);
  settings_ = std::make_unique<pd::inference::Settings>(*other.settings_);
  return *this;
}
AnalysisConfig::~AnalysisConfig() = default;

void AnalysisConfig::SetModel(const std::string& model_dir) {
  settings_->model_dir = model_dir;
}
void AnalysisConfig::SetModel(const std::string& prog_file,
                              const std::string& params_file) {
  settings_->prog_file = prog_file;
  settings_->params_file = params_file;
}
void AnalysisConfig::SetProgFile(const std::string& x) {
  settings_->prog_file = x;
}
void AnalysisConfig::SetParamsFile(const std::string& x) {
  settings_->params_file = x;
}
void AnalysisConfig::SetModelBuffer(const char* prog, size_t prog_size,
                                    const char* params, size_t params_size) {
  if (prog == nullptr || (params == nullptr && params_size > 0))
    Check(pd::InvalidArgument("SetModelBuffer: a buffer is a null pointer"));
  settings_->prog_buffer = std::make_shared<std::string>(prog, prog_size);
  settings_->params_buffer =
      params_size == 0 ? std::make_shared<std::string>()
                       : std::make_shared<std::string>(params, params_size);
}
void AnalysisConfig::SetModelBuffer(const std::string& prog,
                                    const std::string& params) {
  SetModelBuffer(prog.data(), prog.size(), params.data(), params.size());
}
bool AnalysisConfig::model_from_memory() const {
  return settings_->prog_buffer != nullptr;
}
const std::string& AnalysisConfig::model_dir() const {
  return settings_->model_dir;
}
const std::string& AnalysisConfig::prog_file() const {
  return model_from_memory() ? *settings_->prog_buffer : settings_->prog_file;
}
const std::string& AnalysisConfig::params_file() const {
  return model_from_memory() ? *settings_->params_buffer
                             : settings_->params_file;
}
void AnalysisConfig::SetOptimCacheDir(const std::string& dir) {
  settings_->opt_cache_dir = dir;
}
const std::string& AnalysisConfig::opt_cache_dir() const {
  return settings_->opt_cache_dir;
}

void AnalysisConfig::EnableUseGpu(uint64_t memory_pool_init_size_mb,
                                  int device_id, Precision precision) {
  settings_->gpu_memory_mb = memory_pool_init_size_mb;
  settings_->gpu_id = device_id;
  settings_->gpu_precision = precision;
  auto place = pd::inference::GpuNumber(device_id);
  settings_->gpu = place.ok();
  if (place.ok()) {
    settings_->place = *std::move(place);
    return;
  }
  settings_->place = nullptr;
  pd::LogWarning(
      "Please use PaddlePaddle with GPU version. The CPU computes: %s",
      std::string(place.status().message()));
}
void AnalysisConfig::DisableGpu() {
  settings_->gpu = false;
  settings_->place = nullptr;
}
bool AnalysisConfig::use_gpu() const { return settings_->gpu; }
int AnalysisConfig::gpu_device_id() const { return settings_->gpu_id; }
int AnalysisConfig::memory_pool_init_size_mb() const {
  return static_cast<int>(settings_->gpu_memory_mb);
}
float AnalysisConfig::fraction_of_gpu_memory_for_pool() const {
  const int64_t all = pd::inference::GpuMemory(settings_->place.get());
  return all <= 0 ? 0.f
                  : static_cast<float>(settings_->gpu_memory_mb) * (1 << 20) /
                        static_cast<float>(all);
}
void AnalysisConfig::EnableCUDNN() { settings_->cudnn = settings_->gpu; }
bool AnalysisConfig::cudnn_enabled() const { return settings_->cudnn; }
void AnalysisConfig::EnableGpuMultiStream() { settings_->multi_stream = true; }
bool AnalysisConfig::thread_local_stream_enabled() const {
  return settings_->multi_stream;
}
void AnalysisConfig::SetExecStream(void* stream) {
  if (stream == nullptr)
    Check(pd::InvalidArgument("SetExecStream: the stream is a null pointer"));
  SayOnce("SetExecStream", "each predictor has a stream of its own here");
  settings_->stream = stream;
  settings_->external_stream = true;
}
void* AnalysisConfig::GetExecStream() const { return settings_->stream; }
bool AnalysisConfig::external_stream_enabled() const {
  return settings_->external_stream;
}
void AnalysisConfig::EnableLowPrecisionIO(bool x) {
  if (x) SayOnce("EnableLowPrecisionIO", "inputs and outputs keep their types");
}
void AnalysisConfig::Exp_DisableMixedPrecisionOps(const OpSet& ops) {
  settings_->gpu_float32_ops = Sorted(ops);
}
void AnalysisConfig::Exp_EnableMixedPrecisionOps(const OpSet& ops) {
  settings_->gpu_half_ops = Sorted(ops);
}
void AnalysisConfig::Exp_SetBlackListOpsForMixedModel(const OpSet& ops) {
  settings_->gpu_float32_ops = Sorted(ops);
}
void AnalysisConfig::Exp_EnableUseGpuFp16(OpSet op_list) {
  settings_->gpu_float32_ops = Sorted(op_list);
  if (settings_->gpu) settings_->gpu_precision = Precision::kHalf;
}
bool AnalysisConfig::gpu_fp16_enabled() const {
  return settings_->gpu && settings_->gpu_precision == Precision::kHalf;
}
void AnalysisConfig::Exp_EnableUseCutlass() {
  SayOnce("Exp_EnableUseCutlass", "pdkit's own kernels compute");
}
void AnalysisConfig::Exp_SparseConvUsingBuffer(
    const std::vector<std::vector<int>>& /*kernels*/,
    const std::vector<std::vector<std::vector<int>>>& /*subm*/) {
  SayOnce("Exp_SparseConvUsingBuffer", "it has no effect here");
}

void AnalysisConfig::EnableMKLDNN() {
  settings_->onednn = true;
  settings_->onednn_off = false;
  settings_->passes->EnableMKLDNN();
}
void AnalysisConfig::DisableMKLDNN() {
  settings_->onednn = false;
  settings_->onednn_off = true;
  settings_->passes->DisableMKLDNN();
}
bool AnalysisConfig::mkldnn_enabled() const { return settings_->onednn; }
void AnalysisConfig::SetMkldnnCacheCapacity(int capacity) {
  if (capacity < 0)
    Check(pd::InvalidArgument("SetMkldnnCacheCapacity(%d): expected 0 or more",
                              capacity));
  settings_->onednn_cache = capacity;
}
int AnalysisConfig::mkldnn_cache_capacity() const {
  return settings_->onednn_cache;
}
void AnalysisConfig::SetMKLDNNOp(OpSet op_list) {
  SayOnce("SetMKLDNNOp", "which kernel computes an op is chosen by its shapes");
  settings_->onednn_ops = Sorted(op_list);
}
void AnalysisConfig::SetOneDNNOp(OpSet op_list) {
  SetMKLDNNOp(std::move(op_list));
}
void AnalysisConfig::EnableMkldnnBfloat16() {
  settings_->onednn_bf16 = __builtin_cpu_supports("avx512bf16");
  if (!settings_->onednn_bf16)
    SayOnce("EnableMkldnnBfloat16",
            "this CPU has no bfloat16 (avx512_bf16, amx_bf16); float32 "
            "computes");
}
bool AnalysisConfig::mkldnn_bfloat16_enabled() const {
  return settings_->onednn_bf16;
}
void AnalysisConfig::SetBfloat16Op(OpSet op_list) {
  settings_->bf16_ops = Sorted(op_list);
}
void AnalysisConfig::EnableMkldnnInt8(const OpSet& op_list) {
  if (!op_list.empty())
    SayOnce("EnableMkldnnInt8",
            "the model says which ops compute in 8 bits, not the list");
  settings_->onednn_int8 = true;
}
bool AnalysisConfig::mkldnn_int8_enabled() const {
  return settings_->onednn_int8;
}
void AnalysisConfig::EnableMkldnnQuantizer() {
  SayOnce("EnableMkldnnQuantizer",
          "pd-quant makes 8-bit models; this one computes as it is");
  if (settings_->quantizer == nullptr)
    settings_->quantizer = std::make_shared<MkldnnQuantizerConfig>();
  settings_->onednn_quantizer = true;
}
bool AnalysisConfig::mkldnn_quantizer_enabled() const {
  return settings_->onednn_quantizer;
}
MkldnnQuantizerConfig* AnalysisConfig::mkldnn_quantizer_config() const {
  if (settings_->quantizer == nullptr)
    Check(pd::FailedPrecondition(
        "mkldnn_quantizer_config: call EnableMkldnnQuantizer first"));
  return settings_->quantizer.get();
}
void AnalysisConfig::DisableMkldnnFcPasses() {
  settings_->passes->DeletePass("fc_mkldnn_pass");
}

void AnalysisConfig::SetCpuMathLibraryNumThreads(int threads) {
  if (threads < 0)
    Check(pd::InvalidArgument(
        "SetCpuMathLibraryNumThreads(%d): expected 1 or more", threads));
  settings_->threads = threads == 0 ? 1 : threads;
}
int AnalysisConfig::cpu_math_library_num_threads() const {
  return settings_->threads;
}

void AnalysisConfig::SwitchIrOptim(int x) { settings_->ir_optim = x != 0; }
bool AnalysisConfig::ir_optim() const { return settings_->ir_optim; }
void AnalysisConfig::SwitchIrDebug(int x,
                                   const std::vector<std::string>& /*passes*/) {
  settings_->ir_debug = x != 0;
}
PassStrategy* AnalysisConfig::pass_builder() const {
  return settings_->passes.get();
}
void AnalysisConfig::DeletePass(const std::string& pass_name) {
  settings_->passes->DeletePass(pass_name);
}
void AnalysisConfig::EnableCustomPasses(const std::vector<std::string>& passes,
                                        bool custom_pass_only) {
  if (custom_pass_only) settings_->passes->ClearPasses();
  for (const std::string& name : passes) settings_->passes->AppendPass(name);
}
void AnalysisConfig::EnableMemoryOptim(bool x) { settings_->memory_optim = x; }
bool AnalysisConfig::enable_memory_optim() const {
  return settings_->memory_optim;
}
void AnalysisConfig::EnableProfile() { settings_->profile = true; }
bool AnalysisConfig::profile_enabled() const { return settings_->profile; }
void AnalysisConfig::DisableGlogInfo() {
  settings_->no_info = true;
  if (pd::GetLogLevel() > pd::LogLevel::kWarning)
    pd::SetLogLevel(pd::LogLevel::kWarning);
}
bool AnalysisConfig::glog_info_disabled() const { return settings_->no_info; }
void AnalysisConfig::SetInValid() const { settings_->valid = false; }
bool AnalysisConfig::is_valid() const { return settings_->valid; }
void AnalysisConfig::PartiallyRelease() {
  settings_->prog_buffer = nullptr;
  settings_->params_buffer = nullptr;
}

void AnalysisConfig::SwitchUseFeedFetchOps(int x) {
  settings_->feed_fetch_ops = x != 0;
}
bool AnalysisConfig::use_feed_fetch_ops_enabled() const {
  return settings_->feed_fetch_ops;
}
void AnalysisConfig::SwitchSpecifyInputNames(bool x) {
  settings_->specify_input_names = x;
}
bool AnalysisConfig::specify_input_name() const {
  return settings_->specify_input_names;
}
void AnalysisConfig::DisableFCPadding() { settings_->fc_padding = false; }
bool AnalysisConfig::use_fc_padding() const { return settings_->fc_padding; }
void AnalysisConfig::EnableNewExecutor(bool x) { settings_->new_executor = x; }
bool AnalysisConfig::new_executor_enabled() const {
  return settings_->new_executor;
}
void AnalysisConfig::EnableNewIR(bool x) { settings_->new_ir = x; }
bool AnalysisConfig::new_ir_enabled() const { return settings_->new_ir; }
void AnalysisConfig::UseOptimizedModel(bool x) {
  settings_->optimized_model = x;
}
bool AnalysisConfig::use_optimized_model() const {
  return settings_->optimized_model;
}
void AnalysisConfig::EnableSaveOptimModel(bool save_optimized_model) {
  if (save_optimized_model)
    SayOnce("EnableSaveOptimModel",
            "pd-export writes optimized models; none is saved");
}
void AnalysisConfig::SetOptimizationLevel(int opt_level) {
  if (opt_level < 0 || opt_level > 3)
    Check(pd::InvalidArgument("SetOptimizationLevel(%d): expected 0 to 3",
                              opt_level));
  settings_->ir_optim = opt_level > 0;
}
void AnalysisConfig::EnableCINN() {
  SayOnce("EnableCINN", "pdkit's own kernels compute");
  settings_->cinn = true;
}
bool AnalysisConfig::cinn_enabled() const { return settings_->cinn; }
void AnalysisConfig::SetApplyOptim(bool /*value*/) {}
void AnalysisConfig::SetSkipLoadParams(bool value) {
  if (value)
    Check(pd::Unavailable("SetSkipLoadParams: parameters are always read"));
}
void AnalysisConfig::SetDistConfig(const DistConfig& dist_config) {
  settings_->dist = dist_config;
}
const DistConfig& AnalysisConfig::dist_config() const {
  return settings_->dist;
}

NativeConfig AnalysisConfig::ToNativeConfig() const {
  NativeConfig native;
  native.model_dir = settings_->model_dir;
  native.prog_file = settings_->prog_file;
  native.param_file = settings_->params_file;
  native.use_gpu = settings_->gpu;
  native.device = settings_->gpu_id;
  native.fraction_of_gpu_memory = fraction_of_gpu_memory_for_pool();
  native.specify_input_name = settings_->specify_input_names;
  native.SetCpuMathLibraryNumThreads(settings_->threads);
  return native;
}

}  // namespace paddle
