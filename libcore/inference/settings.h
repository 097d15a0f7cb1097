// SPDX-License-Identifier: Apache-2.0
// The fields of AnalysisConfig, and the way from the API's objects to what they
// stand for.
#ifndef PD_LIBCORE_INFERENCE_SETTINGS_H_
#define PD_LIBCORE_INFERENCE_SETTINGS_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/inference/api/paddle_analysis_config.h"
#include "libcore/inference/api/paddle_inference_api.h"
#include "libcore/inference/engine.h"
#include "libcore/inference/shared_model.h"
#include "libcore/plugin/api/paddle_host_tensor.h"

namespace pd {
namespace inference {

/// Settings of TensorRT and others that nothing here reads.
struct Accelerators {
  using Shapes = paddle::AcceleratorSettings::Shapes;
  paddle::PaddlePrecision trt_precision = paddle::PaddlePrecision::kFloat32;
  int64_t trt_workspace = 1 << 30;
  int64_t trt_max_batch = 1, trt_min_subgraph = 3;
  bool trt_memory_sharing = false;
  Shapes min_shape, max_shape, optim_shape;
  bool disable_plugin_fp16 = false;
  std::string shape_range_info_path;
  bool collect_shape_range_info = false, tuned_dynamic_shape = false;
  bool build_at_runtime = true;
  bool varseqlen = false, dla = false, inspector = false;
  bool explicit_quantization = false;
  int trt_optimization_level = 3;
  paddle::XpuConfig xpu;
  paddle::LiteNNAdapterConfig nnadapter;
};

struct Settings {
  std::string model_dir, prog_file, params_file, opt_cache_dir;
  std::shared_ptr<const std::string> prog_buffer, params_buffer;
  bool gpu = false;
  std::shared_ptr<const DevicePlace> place;  // of the GPU, where there is one
  int gpu_id = 0;
  uint64_t gpu_memory_mb = 100;
  paddle::PaddlePrecision gpu_precision = paddle::PaddlePrecision::kFloat32;
  std::set<std::string> gpu_float32_ops, gpu_half_ops;
  bool cudnn = false, multi_stream = false;
  void* stream = nullptr;
  bool external_stream = false;
  bool onednn = false, onednn_off = false, onednn_quantizer = false;
  bool onednn_bf16 = false, onednn_int8 = false;
  int onednn_cache = 10;
  std::set<std::string> onednn_ops, bf16_ops;
  std::shared_ptr<paddle::MkldnnQuantizerConfig> quantizer;
  int threads = 1;
  bool ir_optim = true, ir_debug = false;
  std::unique_ptr<paddle::PassStrategy> passes;
  bool memory_optim = false, profile = false, no_info = false;
  bool feed_fetch_ops = true, specify_input_names = false, fc_padding = true;
  bool new_executor = false, new_ir = false, optimized_model = false;
  bool cinn = false, native = false;
  paddle::DistConfig dist;
  mutable bool valid = true;

  Settings();
  /// A valid copy.
  Settings(const Settings& other);
  Settings& operator=(const Settings&) = delete;
};

/// The friend of the API's classes.
struct Access {
  static const Settings& Of(const paddle::AnalysisConfig& config) {
    return *config.settings_;
  }
  static Settings& Of(paddle::AnalysisConfig* config) {
    return *config->settings_;
  }
  static std::unique_ptr<paddle_infer::Tensor> Handle(
      std::shared_ptr<Variable> variable) {
    return std::unique_ptr<paddle_infer::Tensor>(
        new paddle_infer::Tensor(std::move(variable)));
  }
  static std::unique_ptr<paddle::ZeroCopyTensor> ZeroCopy(
      std::shared_ptr<Variable> variable) {
    return std::unique_ptr<paddle::ZeroCopyTensor>(
        new paddle::ZeroCopyTensor(std::move(variable)));
  }
};

/// Row-major elements as a tensor with memory of its own.
absl::StatusOr<paddle::Tensor> PaddleTensorOf(const std::string& name,
                                              DType dtype, const Shape& shape,
                                              const void* elements);
/// Feeds, runs, and fetches: Predictor::Run on tensors.
absl::Status RunOnTensors(const std::vector<paddle::Tensor>& inputs,
                          std::vector<paddle::Tensor>* outputs, Engine* engine);

/// The engine of a config, which is spent by it.
absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(
    const paddle::AnalysisConfig& config);

/// The dtype of a type of the API, and back; float32 for a dtype that the API
/// lacks.
DType DTypeOfApi(paddle_infer::DataType type);
paddle_infer::DataType ApiTypeOf(DType dtype);
/// FLOAT32 and so on, of variables by name, as the model declares them.
std::map<std::string, std::vector<int64_t>> DeclaredShapes(
    const SharedModel& model, const std::vector<std::string>& names);
std::map<std::string, paddle_infer::DataType> DeclaredTypes(
    const SharedModel& model, const std::vector<std::string>& names);

/// The names of our passes that a list of passes asks for.
std::set<std::string> PassesAskedFor(const std::vector<std::string>& names);
/// Ours that runs in inference under this name, ours or PaddlePaddle's; "".
std::string PassCalled(const std::string& name);

}  // namespace inference
}  // namespace pd

#endif  // PD_LIBCORE_INFERENCE_SETTINGS_H_
