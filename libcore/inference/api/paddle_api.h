// SPDX-License-Identifier: Apache-2.0
// The interface of PaddlePaddle before paddle_infer: tensors by value,
// PaddlePredictor, NativeConfig. New programs use paddle_inference_api.h.
#ifndef PD_LIBCORE_INFERENCE_API_PADDLE_API_H_
#define PD_LIBCORE_INFERENCE_API_PADDLE_API_H_

#include <cassert>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "paddle_error.h"
#include "paddle_infer_declare.h"
#include "paddle_tensor.h"

namespace paddle {

using PaddleDType = paddle_infer::DataType;
using PaddlePlace = paddle_infer::PlaceType;
using PaddleDataLayout = paddle_infer::DataLayout;

/// Memory of its own, or the caller's.
class PD_INFER_DECL PaddleBuf {
 public:
  PaddleBuf() = default;
  explicit PaddleBuf(size_t length);
  /// Borrows: the memory has to outlive the buffer.
  PaddleBuf(void* data, size_t length);
  PaddleBuf(const PaddleBuf& other);
  PaddleBuf(PaddleBuf&& other) noexcept;
  PaddleBuf& operator=(const PaddleBuf& other);
  PaddleBuf& operator=(PaddleBuf&& other) noexcept;
  ~PaddleBuf() { Free(); }

  /// At least `length` bytes of its own. A borrowed buffer that is too small is
  /// PreconditionNotMet.
  void Resize(size_t length);
  /// Borrows other memory.
  void Reset(void* data, size_t length);
  bool empty() const { return length_ == 0; }
  void* data() const { return data_; }
  /// In bytes.
  size_t length() const { return length_; }

 private:
  void Free();
  void* data_ = nullptr;
  size_t length_ = 0;
  bool memory_owned_ = true;
};

struct PD_INFER_DECL PaddleTensor {
  PaddleTensor() = default;
  std::string name;
  std::vector<int> shape;
  PaddleBuf data;
  PaddleDType dtype = PaddleDType::FLOAT32;
  std::vector<std::vector<size_t>> lod;  ///< offsets
};

class PD_INFER_DECL ZeroCopyTensor : public paddle_infer::Tensor {
 public:
  template <typename T>
  void copy_from_cpu(const T* data) {
    CopyFromCpu(data);
  }
  template <typename T>
  void copy_to_cpu(T* data) {
    CopyToCpu(data);
  }

 private:
  friend struct pd::inference::Access;
  explicit ZeroCopyTensor(std::shared_ptr<pd::inference::Variable> variable);
};

/// A program may derive predictors of its own. Those of this library throw
/// EnforceNotMet where something is wrong.
class PD_INFER_DECL PaddlePredictor {
 public:
  struct PD_INFER_DECL Config {
    std::string model_dir;
  };

  PaddlePredictor() = default;
  PaddlePredictor(const PaddlePredictor&) = delete;
  PaddlePredictor& operator=(const PaddlePredictor&) = delete;
  virtual ~PaddlePredictor() = default;

  /// Inputs with a name go to the input of that name, others by position.
  virtual bool Run(const std::vector<PaddleTensor>& inputs,
                   std::vector<PaddleTensor>* output_data,
                   int batch_size = -1) = 0;
  virtual std::vector<std::string> GetInputNames() { return {}; }
  virtual std::vector<std::string> GetOutputNames() { return {}; }
  virtual std::map<std::string, std::vector<int64_t>> GetInputTensorShape() {
    return {};
  }
  virtual std::map<std::string, std::vector<int64_t>> GetOutputTensorShape() {
    return {};
  }
  virtual std::map<std::string, paddle_infer::DataType> GetInputTypes() {
    return {};
  }
  virtual std::map<std::string, paddle_infer::DataType> GetOutputTypes() {
    return {};
  }
  virtual std::unique_ptr<ZeroCopyTensor> GetInputTensor(
      const std::string& name);
  virtual std::unique_ptr<ZeroCopyTensor> GetOutputTensor(
      const std::string& name);
  virtual bool ZeroCopyRun(bool switch_stream = false);
  virtual void ClearIntermediateTensor() {}
  virtual uint64_t TryShrinkMemory() { return 0; }
  virtual std::unique_ptr<PaddlePredictor> Clone(void* stream = nullptr) = 0;
  /// The program that runs, as text.
  virtual std::string GetSerializedProgram() const;
  virtual void* GetExecStream() const { return nullptr; }
};

/// Runs the program as it was written, without passes.
struct PD_INFER_DECL NativeConfig : public PaddlePredictor::Config {
  NativeConfig();
  bool use_xpu{false};
  bool use_npu{false};
  bool use_gpu{false};
  int device{0};
  float fraction_of_gpu_memory{-1.f};
  std::string prog_file;
  std::string param_file;
  bool specify_input_name{false};

  void SetCpuMathLibraryNumThreads(int threads) { threads_ = threads; }
  int cpu_math_library_num_threads() const { return threads_; }

 protected:
  int threads_{1};
};

enum class PaddleEngineKind {
  kNative = 0,
  kAutoMixedTensorRT,
  kAnalysis,
  kONNXRuntime
};

struct AnalysisConfig;

/// A program may specialise it for a config of its own.
template <typename ConfigT>
std::unique_ptr<PaddlePredictor> CreatePaddlePredictor(const ConfigT& config);
template <typename ConfigT, PaddleEngineKind engine>
std::unique_ptr<PaddlePredictor> CreatePaddlePredictor(const ConfigT& config);

template <>
PD_INFER_DECL std::unique_ptr<PaddlePredictor>
CreatePaddlePredictor<NativeConfig>(const NativeConfig& config);
template <>
PD_INFER_DECL std::unique_ptr<PaddlePredictor>
CreatePaddlePredictor<AnalysisConfig>(const AnalysisConfig& config);
template <>
PD_INFER_DECL std::unique_ptr<PaddlePredictor>
CreatePaddlePredictor<NativeConfig, PaddleEngineKind::kNative>(
    const NativeConfig& config);
template <>
PD_INFER_DECL std::unique_ptr<PaddlePredictor>
CreatePaddlePredictor<AnalysisConfig, PaddleEngineKind::kAnalysis>(
    const AnalysisConfig& config);
template <>
PD_INFER_DECL std::unique_ptr<PaddlePredictor>
CreatePaddlePredictor<AnalysisConfig, PaddleEngineKind::kONNXRuntime>(
    const AnalysisConfig& config);

/// Bytes of an element.
PD_INFER_DECL int PaddleDtypeSize(PaddleDType dtype);
/// "version: ...", "commit: ...", "branch: ...", a line each.
PD_INFER_DECL std::string get_version();
/// Sets a flag of FLAGS_; NotFound for a name that is none.
PD_INFER_DECL void UpdateDllFlag(const char* name, const char* value);

}  // namespace paddle

#endif  // PD_LIBCORE_INFERENCE_API_PADDLE_API_H_
