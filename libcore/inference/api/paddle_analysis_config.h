// SPDX-License-Identifier: Apache-2.0
// Settings of a predictor: paddle::AnalysisConfig, paddle_infer::Config. The
// page about the C++ API (libcore/inference/CPP.md) says what each does here.
#ifndef PD_LIBCORE_INFERENCE_API_PADDLE_ANALYSIS_CONFIG_H_
#define PD_LIBCORE_INFERENCE_API_PADDLE_ANALYSIS_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "paddle_accelerators.h"
#include "paddle_api.h"
#include "paddle_mkldnn_quantizer_config.h"
#include "paddle_pass_builder.h"

namespace paddle {

/// Each config makes one predictor; a copy makes another. Of a call that has no
/// meaning on the CPU or on an NVIDIA GPU the log says so once.
struct PD_INFER_DECL AnalysisConfig : public AcceleratorSettings {
  AnalysisConfig();
  explicit AnalysisConfig(const std::string& model_dir);
  AnalysisConfig(const std::string& prog_file, const std::string& params_file);
  AnalysisConfig(const AnalysisConfig& other);
  AnalysisConfig& operator=(const AnalysisConfig& other);
  ~AnalysisConfig() override;

  using Precision = PaddlePrecision;

  // The model: a program with the joint file of its parameters, the folder of
  // a model, or bytes, which are copied. A program comes before a folder.
  void SetModel(const std::string& model_dir);
  void SetModel(const std::string& prog_file, const std::string& params_file);
  void SetProgFile(const std::string& x);
  void SetParamsFile(const std::string& x);
  void SetModelBuffer(const char* prog_buffer, size_t prog_buffer_size,
                      const char* params_buffer, size_t params_buffer_size);
  void SetModelBuffer(const std::string& prog, const std::string& params);
  bool model_from_memory() const;
  const std::string& model_dir() const;
  const std::string& prog_file() const;
  const std::string& params_file() const;
  /// Where SwitchIrDebug writes; made when it is written.
  void SetOptimCacheDir(const std::string& opt_cache_dir);
  const std::string& opt_cache_dir() const;

  // NVIDIA GPUs. Without one the log says "Please use PaddlePaddle with GPU
  // version." and the CPU computes.
  void EnableUseGpu(uint64_t memory_pool_init_size_mb, int device_id = 0,
                    Precision precision = Precision::kFloat32);
  void DisableGpu();
  bool use_gpu() const;
  int gpu_device_id() const;
  int memory_pool_init_size_mb() const;
  float fraction_of_gpu_memory_for_pool() const;
  void EnableCUDNN();
  bool cudnn_enabled() const;
  void EnableGpuMultiStream();
  bool thread_local_stream_enabled() const;
  void SetExecStream(void* stream);
  void* GetExecStream() const;
  bool external_stream_enabled() const;
  void EnableLowPrecisionIO(bool x = true);
  void Exp_DisableMixedPrecisionOps(
      const std::unordered_set<std::string>& black_list);
  void Exp_EnableMixedPrecisionOps(
      const std::unordered_set<std::string>& white_list);
  void Exp_SetBlackListOpsForMixedModel(
      const std::unordered_set<std::string>& black_list);
  void Exp_EnableUseGpuFp16(std::unordered_set<std::string> op_list = {});
  bool gpu_fp16_enabled() const;
  void Exp_EnableUseCutlass();
  void Exp_SparseConvUsingBuffer(
      const std::vector<std::vector<int>>& kernels,
      const std::vector<std::vector<std::vector<int>>>& subm);

  // oneDNN. Its kernels are used unless DisableMKLDNN was called.
  void EnableMKLDNN();
  void DisableMKLDNN();
  bool mkldnn_enabled() const;
  /// Shapes of inputs that stay compiled; 0: all. 10 at first.
  void SetMkldnnCacheCapacity(int capacity);
  int mkldnn_cache_capacity() const;
  void SetMKLDNNOp(std::unordered_set<std::string> op_list);
  /// Computes in bfloat16 what PaddlePaddle's lists name, where the CPU can.
  void EnableMkldnnBfloat16();
  bool mkldnn_bfloat16_enabled() const;
  /// Restricts that to these types of ops.
  void SetBfloat16Op(std::unordered_set<std::string> op_list);
  /// A quantized model computes in 8 bits, with or without it.
  void EnableMkldnnInt8(const std::unordered_set<std::string>& op_list = {});
  bool mkldnn_int8_enabled() const;
  void EnableMkldnnQuantizer();
  bool mkldnn_quantizer_enabled() const;
  MkldnnQuantizerConfig* mkldnn_quantizer_config() const;
  void DisableMkldnnFcPasses();
  void EnableOneDNN() { EnableMKLDNN(); }
  void DisableOneDNN() { DisableMKLDNN(); }
  bool onednn_enabled() const { return mkldnn_enabled(); }
  void EnableOneDNNBfloat16() { EnableMkldnnBfloat16(); }
  void EnableOneDNNInt8(const std::unordered_set<std::string>& op_list = {}) {
    EnableMkldnnInt8(op_list);
  }
  void SetOneDNNCacheCapacity(int capacity) {
    SetMkldnnCacheCapacity(capacity);
  }
  void SetOneDNNOp(std::unordered_set<std::string> op_list);

  /// Threads of one run; 1 at first.
  void SetCpuMathLibraryNumThreads(int cpu_math_library_num_threads);
  int cpu_math_library_num_threads() const;

  /// False runs the program as it was written.
  void SwitchIrOptim(int x = true);
  bool ir_optim() const;
  /// Writes the program as text before and after each pass into the folder of
  /// SetOptimCacheDir, else into the present one.
  void SwitchIrDebug(int x = true, const std::vector<std::string>& passes = {});
  PassStrategy* pass_builder() const;
  void DeletePass(const std::string& pass_name);
  void EnableCustomPasses(const std::vector<std::string>& passes,
                          bool custom_pass_only = false);
  /// Tensors share memory always; the setting is kept.
  void EnableMemoryOptim(bool x = true);
  bool enable_memory_optim() const;
  /// The log gets a table of time by op and kernel when the predictor goes.
  void EnableProfile();
  bool profile_enabled() const;
  /// Lets the log of the whole process pass warnings and errors alone.
  void DisableGlogInfo();
  bool glog_info_disabled() const;
  void SetInValid() const;
  bool is_valid() const;
  void PartiallyRelease();

  // Kept and reported; one way to run serves all.
  void SwitchUseFeedFetchOps(int x = true);
  bool use_feed_fetch_ops_enabled() const;
  void SwitchSpecifyInputNames(bool x = true);
  bool specify_input_name() const;
  void DisableFCPadding();
  bool use_fc_padding() const;
  void EnableNewExecutor(bool x = true);
  bool new_executor_enabled() const;
  void EnableNewIR(bool x = true);
  bool new_ir_enabled() const;
  void UseOptimizedModel(bool x = true);
  bool use_optimized_model() const;
  void EnableSaveOptimModel(bool save_optimized_model);
  void SetOptimizationLevel(int opt_level);
  void EnableCINN();
  bool cinn_enabled() const;
  void SetApplyOptim(bool value);
  void SetSkipLoadParams(bool value);
  void SetDistConfig(const DistConfig& dist_config);
  const DistConfig& dist_config() const;

  NativeConfig ToNativeConfig() const;
  std::string SerializeInfoCache();
  /// A table of the settings.
  std::string Summary();

 private:
  friend struct ::pd::inference::Access;
  std::unique_ptr<::pd::inference::Settings> settings_;
};

}  // namespace paddle

#endif  // PD_LIBCORE_INFERENCE_API_PADDLE_ANALYSIS_CONFIG_H_
