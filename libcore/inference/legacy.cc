// SPDX-License-Identifier: Apache-2.0
// The older interface, paddle_api.h, over the same engine.
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/inference/border.h"
#include "libcore/inference/settings.h"

namespace paddle {
namespace {

using pd::inference::Access;
using pd::inference::Border;
using pd::inference::Check;
using pd::inference::Variable;

absl::Status Feed(const PaddleTensor& tensor, Variable* input) {
  PD_RETURN_IF_ERROR(input->Reshape(tensor.shape));
  const size_t size = pd::SizeOf(pd::inference::DTypeOfApi(tensor.dtype));
  const size_t needed =
      static_cast<size_t>(pd::NumElements(input->shape())) * size;
  if (tensor.data.length() < needed)
    return pd::InvalidArgument(
        "input '%s': the buffer holds %d bytes; shape %s needs %d",
        input->name(), tensor.data.length(), pd::ToString(input->shape()),
        needed);
  if (tensor.data.data() == nullptr && needed > 0)
    return pd::InvalidArgument("input '%s': the buffer is a null pointer",
                               input->name());
  pd::LoD lod;
  for (const std::vector<size_t>& level : tensor.lod)
    lod.emplace_back(level.begin(), level.end());
  PD_RETURN_IF_ERROR(input->SetLoD(std::move(lod)));
  PD_ASSIGN_OR_RETURN(void* to,
                      input->Mutable(pd::inference::DTypeOfApi(tensor.dtype)));
  if (needed > 0) std::memcpy(to, tensor.data.data(), needed);
  return absl::OkStatus();
}

absl::Status Fetch(const Variable& output, PaddleTensor* tensor) {
  tensor->name = output.name();
  tensor->dtype = pd::inference::ApiTypeOf(output.dtype());
  if (pd::inference::DTypeOfApi(tensor->dtype) != output.dtype())
    return pd::Unimplemented("output '%s' holds %s, which PaddleTensor lacks",
                             output.name(), pd::Name(output.dtype()));
  tensor->shape.assign(output.shape().begin(), output.shape().end());
  tensor->lod.clear();
  for (const std::vector<uint64_t>& level : output.lod())
    tensor->lod.emplace_back(level.begin(), level.end());
  PD_ASSIGN_OR_RETURN(const void* from, output.Value(output.dtype()));
  const size_t bytes = static_cast<size_t>(pd::NumElements(output.shape())) *
                       pd::SizeOf(output.dtype());
  // Exactly as long as the value, in memory of its own.
  if (tensor->data.length() != bytes) tensor->data = PaddleBuf(bytes);
  if (bytes > 0) std::memcpy(tensor->data.data(), from, bytes);
  return absl::OkStatus();
}

class EnginePredictor : public PaddlePredictor {
 public:
  explicit EnginePredictor(std::unique_ptr<pd::inference::Engine> engine)
      : engine_(std::move(engine)) {}

  bool Run(const std::vector<PaddleTensor>& inputs,
           std::vector<PaddleTensor>* output_data,
           int /*batch_size*/) override {
    Border([&] { return RunOn(inputs, output_data); });
    return true;
  }
  std::vector<std::string> GetInputNames() override {
    return engine_->model().inputs();
  }
  std::vector<std::string> GetOutputNames() override {
    return engine_->model().outputs();
  }
  std::map<std::string, std::vector<int64_t>> GetInputTensorShape() override {
    return DeclaredShapes(engine_->model(), engine_->model().inputs());
  }
  std::map<std::string, std::vector<int64_t>> GetOutputTensorShape() override {
    return DeclaredShapes(engine_->model(), engine_->model().outputs());
  }
  std::map<std::string, paddle_infer::DataType> GetInputTypes() override {
    return DeclaredTypes(engine_->model(), engine_->model().inputs());
  }
  std::map<std::string, paddle_infer::DataType> GetOutputTypes() override {
    return DeclaredTypes(engine_->model(), engine_->model().outputs());
  }
  std::unique_ptr<ZeroCopyTensor> GetInputTensor(
      const std::string& name) override {
    return Access::ZeroCopy(Border([&] { return engine_->Input(name); }));
  }
  std::unique_ptr<ZeroCopyTensor> GetOutputTensor(
      const std::string& name) override {
    return Access::ZeroCopy(Border([&] { return engine_->Output(name); }));
  }
  bool ZeroCopyRun(bool /*switch_stream*/) override {
    Border([&] { return engine_->Run(); });
    return true;
  }
  void ClearIntermediateTensor() override { engine_->ForgetOthers(); }
  uint64_t TryShrinkMemory() override {
    return Border([&] { return engine_->Shrink(); });
  }
  std::unique_ptr<PaddlePredictor> Clone(void* stream) override {
    Check(engine_->CheckStream(stream));
    return std::make_unique<EnginePredictor>(engine_->Clone());
  }
  std::string GetSerializedProgram() const override {
    return Border([&] { return engine_->model().Serialized(); });
  }

 private:
  absl::Status RunOn(const std::vector<PaddleTensor>& inputs,
                     std::vector<PaddleTensor>* outputs) {
    const auto& variables = engine_->inputs();
    if (outputs == nullptr)
      return pd::InvalidArgument("Run: output_data is a null pointer");
    if (inputs.size() != variables.size())
      return pd::InvalidArgument("Run: %d inputs are given; the model has %d",
                                 inputs.size(), variables.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::shared_ptr<Variable> input = variables[i];
      if (!inputs[i].name.empty()) {
        PD_ASSIGN_OR_RETURN(input, engine_->Input(inputs[i].name));
      }
      PD_RETURN_IF_ERROR(Feed(inputs[i], input.get()));
    }
    PD_RETURN_IF_ERROR(engine_->Run());
    outputs->resize(engine_->outputs().size());
    for (size_t i = 0; i < outputs->size(); ++i)
      PD_RETURN_IF_ERROR(Fetch(*engine_->outputs()[i], &(*outputs)[i]));
    return absl::OkStatus();
  }

  std::unique_ptr<pd::inference::Engine> engine_;
};

std::unique_ptr<PaddlePredictor> Make(const AnalysisConfig& config) {
  return std::make_unique<EnginePredictor>(
      Border([&] { return pd::inference::MakeEngine(config); }));
}

}  // namespace

PaddleBuf::PaddleBuf(size_t length) { Resize(length); }
PaddleBuf::PaddleBuf(void* data, size_t length)
    : data_(data), length_(length), memory_owned_(false) {}
PaddleBuf::PaddleBuf(const PaddleBuf& other) { *this = other; }
PaddleBuf::PaddleBuf(PaddleBuf&& other) noexcept { *this = std::move(other); }

PaddleBuf& PaddleBuf::operator=(const PaddleBuf& other) {
  if (this == &other) return *this;
  if (!other.memory_owned_) {
    Reset(other.data_, other.length_);
    return *this;
  }
  if (!memory_owned_ || length_ != other.length_) {
    Free();
    Resize(other.length_);
  }
  if (length_ > 0) std::memcpy(data_, other.data_, length_);
  return *this;
}

PaddleBuf& PaddleBuf::operator=(PaddleBuf&& other) noexcept {
  if (this == &other) return *this;
  Free();
  data_ = std::exchange(other.data_, nullptr);
  length_ = std::exchange(other.length_, 0);
  memory_owned_ = std::exchange(other.memory_owned_, true);
  return *this;
}

void PaddleBuf::Resize(size_t length) {
  if (length_ >= length) return;
  if (!memory_owned_)
    Check(pd::FailedPrecondition(
        "a borrowed buffer of %d bytes cannot grow to %d", length_, length));
  Free();
  data_ = std::malloc(length);
  if (data_ == nullptr)
    Check(pd::ResourceExhausted("no memory for a buffer of %d bytes", length));
  length_ = length;
}

void PaddleBuf::Reset(void* data, size_t length) {
  Free();
  memory_owned_ = false;
  data_ = data;
  length_ = length;
}

void PaddleBuf::Free() {
  if (memory_owned_) std::free(data_);
  data_ = nullptr;
  length_ = 0;
  memory_owned_ = true;
}

ZeroCopyTensor::ZeroCopyTensor(std::shared_ptr<Variable> variable)
    : paddle_infer::Tensor(std::move(variable)) {}

std::unique_ptr<ZeroCopyTensor> PaddlePredictor::GetInputTensor(
    const std::string& /*name*/) {
  return nullptr;
}
std::unique_ptr<ZeroCopyTensor> PaddlePredictor::GetOutputTensor(
    const std::string& /*name*/) {
  return nullptr;
}
bool PaddlePredictor::ZeroCopyRun(bool /*switch_stream*/) { return false; }
std::string PaddlePredictor::GetSerializedProgram() const { return ""; }

NativeConfig::NativeConfig() = default;

template <>
std::unique_ptr<PaddlePredictor> CreatePaddlePredictor<AnalysisConfig>(
    const AnalysisConfig& config) {
  return Make(config);
}
template <>
std::unique_ptr<PaddlePredictor>
CreatePaddlePredictor<AnalysisConfig, PaddleEngineKind::kAnalysis>(
    const AnalysisConfig& config) {
  return Make(config);
}
template <>
std::unique_ptr<PaddlePredictor>
CreatePaddlePredictor<AnalysisConfig, PaddleEngineKind::kONNXRuntime>(
    const AnalysisConfig& config) {
  return Make(config);
}
template <>
std::unique_ptr<PaddlePredictor> CreatePaddlePredictor<NativeConfig>(
    const NativeConfig& native) {
  AnalysisConfig config;
  config.SetModel(native.model_dir);
  config.SetModel(native.prog_file, native.param_file);
  if (native.use_gpu) config.EnableUseGpu(100, native.device);
  config.SwitchSpecifyInputNames(native.specify_input_name);
  config.SetCpuMathLibraryNumThreads(native.cpu_math_library_num_threads());
  Access::Of(&config).native = true;
  return Make(config);
}
template <>
std::unique_ptr<PaddlePredictor>
CreatePaddlePredictor<NativeConfig, PaddleEngineKind::kNative>(
    const NativeConfig& config) {
  return CreatePaddlePredictor<NativeConfig>(config);
}

int PaddleDtypeSize(PaddleDType dtype) {
  return static_cast<int>(pd::SizeOf(pd::inference::DTypeOfApi(dtype)));
}

std::string get_version() { return pd::inference::VersionText(); }

void UpdateDllFlag(const char* name, const char* value) {
  Border([&]() -> absl::Status {
    if (name == nullptr || value == nullptr)
      return pd::InvalidArgument("UpdateDllFlag: a null pointer");
    return pd::inference::SetPaddleFlag(name, value);
  });
}

}  // namespace paddle
