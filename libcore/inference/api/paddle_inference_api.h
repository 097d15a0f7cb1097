// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's prediction API in C++. Programs compile with the folder of
// this header as -I and link with -lpaddle_inference.
#ifndef PD_LIBCORE_INFERENCE_API_PADDLE_INFERENCE_API_H_
#define PD_LIBCORE_INFERENCE_API_PADDLE_INFERENCE_API_H_

#include <cassert>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "paddle_analysis_config.h"
#include "paddle_api.h"

typedef struct CUstream_st* cudaStream_t;

namespace pd {
namespace inference {
class Engine;
}  // namespace inference
}  // namespace pd

namespace paddle {
class Tensor;  // paddle/extension.h defines it
}  // namespace paddle

namespace paddle_infer {

using PrecisionType = paddle::AnalysisConfig::Precision;
using Config = paddle::AnalysisConfig;
using DistConfig = paddle::DistConfig;
using XpuConfig = paddle::XpuConfig;

/// Type of an op, name of a variable, its value.
using OutputTensorHookFunc = std::function<void(
    const std::string&, const std::string&, const paddle::Tensor&)>;
using InputTensorHookFunc = OutputTensorHookFunc;

/// A model ready to run. One thread at a time uses a predictor; Clone gives
/// others one that shares the parameters. Every error is thrown as
/// phi::enforce::EnforceNotMet.
class PD_INFER_DECL Predictor {
 public:
  Predictor() = delete;
  /// InvalidArgument for a config that has made a predictor already and for a
  /// model that cannot run, NotFound for a missing file.
  explicit Predictor(const Config& config);
  ~Predictor();

  /// In the order of the model.
  std::vector<std::string> GetInputNames();
  std::vector<std::string> GetOutputNames();
  /// PreconditionNotMet for a name that is none of them.
  std::unique_ptr<Tensor> GetInputHandle(const std::string& name);
  std::unique_ptr<Tensor> GetOutputHandle(const std::string& name);
  /// As the model declares them; -1: any extent.
  std::map<std::string, std::vector<int64_t>> GetInputTensorShape();
  std::map<std::string, std::vector<int64_t>> GetOutputTensorShape();
  std::map<std::string, DataType> GetInputTypes();
  std::map<std::string, DataType> GetOutputTypes();

  /// Computes the outputs from the inputs' present values; true.
  /// PreconditionNotMet names an input without a value.
  bool Run();
  /// Inputs go by their names, those without one by position; their memory is
  /// read during the call alone. Outputs have memory of their own.
  bool Run(const std::vector<paddle::Tensor>& inputs,
           std::vector<paddle::Tensor>* outputs);
  /// Called in each run for every output of an op right after it, for every
  /// input right before it. Ops are those that passes made:
  /// SwitchIrOptim(false) keeps the model's. Clones have no hooks.
  void RegisterOutputHook(const OutputTensorHookFunc& hook);
  void RegisterInputHook(const InputTensorHookFunc& hook);

  /// A stream is given where the config had SetExecStream, and only there.
  std::unique_ptr<Predictor> Clone(void* stream = nullptr);
  /// Frees what was compiled for other shapes than the last.
  void ClearIntermediateTensor();
  /// Frees all memory between runs, outputs apart; the bytes.
  uint64_t TryShrinkMemory();
  void* GetExecStream() const { return nullptr; }

 private:
  explicit Predictor(std::unique_ptr<pd::inference::Engine> engine);
  std::unique_ptr<pd::inference::Engine> engine_;
};

PD_INFER_DECL std::shared_ptr<Predictor> CreatePredictor(const Config& config);
/// Bytes of an element.
PD_INFER_DECL int GetNumBytesOfDataType(DataType dtype);
/// "version: ...", "commit: ...", "branch: ...", a line each.
PD_INFER_DECL std::string GetVersion();
/// (0, 0, 0): TensorRT is not used.
PD_INFER_DECL std::tuple<int, int, int> GetTrtCompileVersion();
PD_INFER_DECL std::tuple<int, int, int> GetTrtRuntimeVersion();
/// Sets a flag of FLAGS_; NotFound for a name that is none.
PD_INFER_DECL void UpdateDllFlag(const char* name, const char* value);
/// Writes a model whose ops, but for types of `black_list` and those that lose
/// too much by it, compute in 16 bits, with weights of 16 bits (kHalf, kBf16).
/// Unimplemented unless `keep_io_types`.
PD_INFER_DECL void ConvertToMixedPrecision(
    const std::string& model_file, const std::string& params_file,
    const std::string& mixed_model_file, const std::string& mixed_params_file,
    PrecisionType mixed_precision, PlaceType backend, bool keep_io_types = true,
    std::unordered_set<std::string> black_list = {});

namespace services {

/// Predictors that share their parameters.
class PD_INFER_DECL PredictorPool {
 public:
  PredictorPool() = delete;
  PredictorPool(const PredictorPool&) = delete;
  PredictorPool& operator=(const PredictorPool&) = delete;
  /// InvalidArgument for a size of 0.
  explicit PredictorPool(const Config& config, size_t size = 1);
  ~PredictorPool();
  /// The pool's own; InvalidArgument where there is no such index.
  Predictor* Retrieve(size_t idx);
  size_t size() const { return predictors_.size(); }

 private:
  std::vector<std::unique_ptr<Predictor>> predictors_;
};

}  // namespace services

namespace experimental {

/// Settings of a run on a Kunlun chip, which is not here.
struct XpuRuntimeConfig {
  size_t context_gm_size = 0;
  void* stream = nullptr;
  size_t l3_size = 0;
  void* l3_ptr = nullptr;
  size_t l3_autotune_size = 0;
};

/// Calls for NVIDIA's streams. On the CPU a run with a stream is a run.
class PD_INFER_DECL InternalUtils {
 public:
  static bool RunWithExternalStream(Predictor* predictor, cudaStream_t stream);
  static void UpdateConfigInterleaved(Config* config, bool with_interleaved);
  static void SetTransformerPosid(Config* config, const std::string& tensor);
  static void SetTransformerMaskid(Config* config, const std::string& tensor);
  static void DisableTensorRtHalfOps(
      Config* config, const std::unordered_set<std::string>& ops);
  static void SyncStream(Predictor* predictor);
  static void SyncStream(cudaStream_t stream);
  template <typename T>
  static void CopyFromCpuWithIoStream(Tensor* tensor, const T* data,
                                      cudaStream_t /*stream*/) {
    tensor->CopyFromCpu(data);
  }
  template <typename T>
  static void CopyToCpuWithIoStream(Tensor* tensor, T* data,
                                    cudaStream_t /*stream*/) {
    tensor->CopyToCpu(data);
  }
};

}  // namespace experimental
}  // namespace paddle_infer

#endif  // PD_LIBCORE_INFERENCE_API_PADDLE_INFERENCE_API_H_
