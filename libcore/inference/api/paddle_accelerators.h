// SPDX-License-Identifier: Apache-2.0
// The settings of engines and chips that pdkit does not use, part of every
// AnalysisConfig. TensorRT's are kept, reported and said once in the log, since
// the native kernels give the same result; a chip that is not there is an error
// of kind PreconditionNotMet.
#ifndef PD_LIBCORE_INFERENCE_API_PADDLE_ACCELERATORS_H_
#define PD_LIBCORE_INFERENCE_API_PADDLE_ACCELERATORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "paddle_infer_declare.h"

namespace pd {
namespace inference {
struct Access;
struct Settings;
struct Accelerators;
}  // namespace inference
}  // namespace pd

namespace paddle {

enum class PaddlePrecision { kFloat32 = 0, kInt8, kHalf, kBf16 };

/// Kept for programs that set them; a run over several machines is Unavailable.
class PD_INFER_DECL DistConfig {
 public:
  void SetCarrierId(const std::string& id) { carrier_id_ = id; }
  const std::string& carrier_id() const { return carrier_id_; }
  void SetRanks(int64_t nranks, int64_t rank) {
    nranks_ = nranks, rank_ = rank;
  }
  int64_t nranks() const { return nranks_; }
  int64_t rank() const { return rank_; }
  void SetEndpoints(const std::vector<std::string>& trainer_endpoints,
                    const std::string& current_endpoint) {
    trainer_endpoints_ = trainer_endpoints;
    current_endpoint_ = current_endpoint;
  }
  const std::vector<std::string>& trainer_endpoints() const {
    return trainer_endpoints_;
  }
  const std::string& current_endpoint() const { return current_endpoint_; }
  void SetCommInitConfig(const std::string& path) { comm_init_config_ = path; }
  const std::string& comm_init_config() const { return comm_init_config_; }
  void EnableDistModel(bool x) { use_dist_model_ = x; }
  bool use_dist_model() const { return use_dist_model_; }

 private:
  bool use_dist_model_ = false;
  int64_t nranks_ = -1, rank_ = -1;
  std::vector<std::string> trainer_endpoints_;
  std::string current_endpoint_, carrier_id_, comm_init_config_;
};

/// Settings of Kunlun chips.
struct XpuConfig {
  int device_id = 0;
  size_t l3_size = 0;
  void* l3_ptr = nullptr;
  size_t l3_autotune_size = 0;
  int conv_autotune_level = 0;
  std::string conv_autotune_file;
  bool conv_autotune_file_writeback = false;
  int fc_autotune_level = 0;
  std::string fc_autotune_file;
  bool fc_autotune_file_writeback = false;
  int gemm_compute_precision = 1;
  int transformer_softmax_optimize_level = 0;
  bool transformer_encoder_adaptive_seqlen = true;
  float quant_post_static_gelu_out_threshold = 10.f;
  int quant_post_dynamic_activation_method = 0;
  int quant_post_dynamic_weight_precision = 1;
  std::vector<std::string> quant_post_dynamic_op_types;
};

/// Settings of NNAdapter, which is not here.
class PD_INFER_DECL LiteNNAdapterConfig {
 public:
  LiteNNAdapterConfig& SetDeviceNames(const std::vector<std::string>& names);
  LiteNNAdapterConfig& SetContextProperties(const std::string& properties);
  LiteNNAdapterConfig& SetModelCacheDir(const std::string& model_cache_dir);
  LiteNNAdapterConfig& SetModelCacheBuffers(const std::string& token,
                                            const std::vector<char>& buffer);
  LiteNNAdapterConfig& SetSubgraphPartitionConfigPath(const std::string& path);
  LiteNNAdapterConfig& SetSubgraphPartitionConfigBuffer(
      const std::string& text);
  /// PreconditionNotMet.
  LiteNNAdapterConfig& Enable();
  LiteNNAdapterConfig& Disable();

  bool use_nnadapter{false};
  std::string model_cache_dir;
  std::map<std::string, std::vector<char>> nnadapter_model_cache_buffers;
  std::vector<std::string> nnadapter_device_names;
  std::string nnadapter_context_properties;
  std::string nnadapter_subgraph_partition_config_path;
  std::string nnadapter_subgraph_partition_config_buffer;
};

class PD_INFER_DECL AcceleratorSettings {
 public:
  using Shapes = std::map<std::string, std::vector<int>>;

  AcceleratorSettings();
  AcceleratorSettings(const AcceleratorSettings& other);
  AcceleratorSettings& operator=(const AcceleratorSettings& other);
  virtual ~AcceleratorSettings();

  // TensorRT: tensorrt_engine_enabled() stays false.
  void EnableTensorRtEngine(
      int64_t workspace_size = 1 << 30, int max_batch_size = 1,
      int min_subgraph_size = 3,
      PaddlePrecision precision = PaddlePrecision::kFloat32,
      bool use_static = false, bool use_calib_mode = true,
      bool use_cuda_graph = false);
  bool tensorrt_engine_enabled() const { return false; }
  PaddlePrecision tensorrt_precision_mode() const;
  int64_t tensorrt_workspace_size() const;
  int64_t tensorrt_max_batch_size() const;
  int64_t tensorrt_min_subgraph_size() const;
  void EnableTensorRTMemoryOptim(bool engine_memory_sharing = true,
                                 int sharing_identifier = 0);
  bool trt_engine_memory_sharing() const;
  void SetTRTDynamicShapeInfo(Shapes min_input_shape, Shapes max_input_shape,
                              Shapes optim_input_shape,
                              bool disable_trt_plugin_fp16 = false);
  bool tensorrt_dynamic_shape_enabled() const;
  Shapes min_input_shape() const;
  Shapes max_input_shape() const;
  Shapes optim_input_shape() const;
  bool disable_trt_plugin_fp16() const;
  /// InvalidArgument for an empty path.
  void CollectShapeRangeInfo(const std::string& shape_range_info_path);
  const std::string& shape_range_info_path() const;
  bool shape_range_info_collected() const;
  void EnableTunedTensorRtDynamicShape(
      const std::string& shape_range_info_path = "",
      bool allow_build_at_runtime = true);
  bool tuned_tensorrt_dynamic_shape() const;
  bool trt_allow_build_at_runtime() const;
  void Exp_DisableTensorRtOPs(const std::vector<std::string>& ops);
  void Exp_DisableTensorRtSubgraph(const std::vector<std::string>& names);
  void Exp_DisableTensorRtDynamicShapeOPs(bool trt_forbid_dynamic_op);
  void EnableVarseqlen();
  void EnableTensorRtOSS() { EnableVarseqlen(); }
  bool tensorrt_varseqlen_enabled() const;
  bool tensorrt_oss_enabled() const { return tensorrt_varseqlen_enabled(); }
  void EnableTensorRtDLA(int dla_core = 0);
  bool tensorrt_dla_enabled() const;
  void EnableTensorRtInspector(bool inspector_serialize = false);
  bool tensorrt_inspector_enabled() const;
  void EnableTensorRtExplicitQuantization();
  bool tensorrt_explicit_quantization_enabled() const;
  void SetTensorRtOptimizationLevel(int level);
  int tensorrt_optimization_level() const;
  void MarkTrtEngineOutputs(const std::vector<std::string>& output_names = {});

  // Chips and engines that are not here: PreconditionNotMet.
  void EnableXpu(int l3_workspace_size = 0xfffc00, bool locked = false,
                 bool autotune = true, const std::string& autotune_file = "",
                 const std::string& precision = "int16",
                 bool adaptive_seqlen = false,
                 bool enable_multi_stream = false);
  void SetXpuDeviceId(int device_id = 0);
  void SetXpuConfig(const XpuConfig& config);
  void SetXpuConfig(int quant_post_dynamic_weight_bits,
                    const std::vector<std::string>& op_types);
  bool use_xpu() const { return false; }
  int xpu_device_id() const;
  XpuConfig xpu_config() const;
  bool lite_engine_enabled() const { return false; }
  void EnableLiteEngine(PaddlePrecision precision = PaddlePrecision::kFloat32,
                        bool zero_copy = false,
                        const std::vector<std::string>& passes_filter = {},
                        const std::vector<std::string>& ops_filter = {});
  void EnableNpu(int device_id = 0);
  bool use_npu() const { return false; }
  int npu_device_id() const { return 0; }
  void EnableIpu(int ipu_device_num = 1, int ipu_micro_batch_size = 1,
                 bool ipu_enable_pipelining = false,
                 int ipu_batches_per_step = 1);
  void SetIpuConfig(bool ipu_enable_fp16 = false, int ipu_replica_num = 1,
                    float ipu_available_memory_proportion = 1.0,
                    bool ipu_enable_half_partial = false,
                    bool ipu_enable_model_runtime_executor = false);
  void LoadIpuConfig(const std::string& config_path);
  bool use_ipu() const { return false; }
  int ipu_device_num() const { return 1; }
  int ipu_micro_batch_size() const { return 1; }
  void EnableDlnne(int min_subgraph_size = 3, int max_batch_size = 1,
                   bool use_static_batch = false,
                   std::string weight_share_mode = "0",
                   std::unordered_set<std::string> disable_nodes = {},
                   std::map<std::string, std::vector<int64_t>> shapes = {},
                   bool use_calib_mode = false,
                   PaddlePrecision precision = PaddlePrecision::kFloat32);
  bool dlnne_enabled() const { return false; }
  void EnableOpenCL();
  bool use_opencl() const { return false; }
  void EnableOpenVINOEngine(PaddlePrecision precision);
  LiteNNAdapterConfig& NNAdapter();
  void EnableCustomDevice(
      const std::string& device_type, int device_id = 0,
      PaddlePrecision precision = PaddlePrecision::kFloat32);
  bool use_custom_device() const { return false; }
  std::string custom_device_type() const { return ""; }
  int custom_device_id() const { return 0; }

  // ONNX Runtime: an error in the log, and it stays off.
  void EnableONNXRuntime();
  void DisableONNXRuntime() {}
  void EnableORTOptimization();
  bool use_onnxruntime() const { return false; }
  bool ort_optimization_enabled() const { return false; }

 private:
  std::unique_ptr<::pd::inference::Accelerators> kept_;
};

}  // namespace paddle

#endif  // PD_LIBCORE_INFERENCE_API_PADDLE_ACCELERATORS_H_
