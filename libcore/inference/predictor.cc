// SPDX-License-Identifier: Apache-2.0
// paddle_infer::Predictor, pools, and the free functions.
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/inference/border.h"
#include "libcore/inference/settings.h"

namespace pd {
namespace inference {

std::map<std::string, std::vector<int64_t>> DeclaredShapes(
    const SharedModel& model, const std::vector<std::string>& names) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const std::string& name : names) {
    const VarDesc* var = model.Declared(name);
    shapes[name] = var == nullptr ? Shape() : var->shape;
  }
  return shapes;
}

std::map<std::string, paddle_infer::DataType> DeclaredTypes(
    const SharedModel& model, const std::vector<std::string>& names) {
  std::map<std::string, paddle_infer::DataType> types;
  for (const std::string& name : names) {
    const VarDesc* var = model.Declared(name);
    types[name] = ApiTypeOf(var == nullptr ? DType::kFloat32 : var->dtype);
  }
  return types;
}

}  // namespace inference
}  // namespace pd

namespace paddle_infer {

using pd::inference::Access;
using pd::inference::Border;
using pd::inference::Check;

Predictor::Predictor(const Config& config)
    : engine_(Border([&] { return pd::inference::MakeEngine(config); })) {}
Predictor::Predictor(std::unique_ptr<pd::inference::Engine> engine)
    : engine_(std::move(engine)) {}
Predictor::~Predictor() = default;

std::vector<std::string> Predictor::GetInputNames() {
  return engine_->model().inputs();
}
std::vector<std::string> Predictor::GetOutputNames() {
  return engine_->model().outputs();
}
std::unique_ptr<Tensor> Predictor::GetInputHandle(const std::string& name) {
  return Access::Handle(Border([&] { return engine_->Input(name); }));
}
std::unique_ptr<Tensor> Predictor::GetOutputHandle(const std::string& name) {
  return Access::Handle(Border([&] { return engine_->Output(name); }));
}
std::map<std::string, std::vector<int64_t>> Predictor::GetInputTensorShape() {
  return pd::inference::DeclaredShapes(engine_->model(),
                                       engine_->model().inputs());
}
std::map<std::string, std::vector<int64_t>> Predictor::GetOutputTensorShape() {
  return pd::inference::DeclaredShapes(engine_->model(),
                                       engine_->model().outputs());
}
std::map<std::string, DataType> Predictor::GetInputTypes() {
  return pd::inference::DeclaredTypes(engine_->model(),
                                      engine_->model().inputs());
}
std::map<std::string, DataType> Predictor::GetOutputTypes() {
  return pd::inference::DeclaredTypes(engine_->model(),
                                      engine_->model().outputs());
}

bool Predictor::Run() {
  Border([&] { return engine_->Run(); });
  return true;
}

bool Predictor::Run(const std::vector<paddle::Tensor>& inputs,
                    std::vector<paddle::Tensor>* outputs) {
  Border([&] {
    return pd::inference::RunOnTensors(inputs, outputs, engine_.get());
  });
  return true;
}

namespace {

// A user's hook, which sees row-major values.
pd::inference::Engine::Hook HookOf(const OutputTensorHookFunc& hook) {
  if (!hook) Check(pd::InvalidArgument("the hook is empty"));
  return [hook](const std::string& op_type, const std::string& name,
                const pd::Tensor& value) {
    const pd::Array array = pd::ToArray(value);
    const auto tensor = pd::inference::PaddleTensorOf(
        name, array.dtype, array.shape, array.bytes.get());
    if (tensor.ok()) hook(op_type, name, *tensor);
  };
}

}  // namespace

void Predictor::RegisterOutputHook(const OutputTensorHookFunc& hook) {
  engine_->AddOutputHook(HookOf(hook));
}
void Predictor::RegisterInputHook(const InputTensorHookFunc& hook) {
  engine_->AddInputHook(HookOf(hook));
}

std::unique_ptr<Predictor> Predictor::Clone(void* stream) {
  Check(engine_->CheckStream(stream));
  return std::unique_ptr<Predictor>(new Predictor(engine_->Clone()));
}

void Predictor::ClearIntermediateTensor() { engine_->ForgetOthers(); }
uint64_t Predictor::TryShrinkMemory() {
  return Border([&] { return engine_->Shrink(); });
}

std::shared_ptr<Predictor> CreatePredictor(const Config& config) {
  return std::make_shared<Predictor>(config);
}

int GetNumBytesOfDataType(DataType dtype) {
  return paddle::PaddleDtypeSize(dtype);
}
std::string GetVersion() { return paddle::get_version(); }
std::tuple<int, int, int> GetTrtCompileVersion() { return {0, 0, 0}; }
std::tuple<int, int, int> GetTrtRuntimeVersion() { return {0, 0, 0}; }
void UpdateDllFlag(const char* name, const char* value) {
  paddle::UpdateDllFlag(name, value);
}

namespace services {

PredictorPool::PredictorPool(const Config& config, size_t size) {
  if (size == 0)
    Check(pd::InvalidArgument("PredictorPool: size 0; expected 1 or more"));
  predictors_.push_back(std::make_unique<Predictor>(config));
  while (predictors_.size() < size)
    predictors_.push_back(predictors_[0]->Clone(
        config.external_stream_enabled() ? config.GetExecStream() : nullptr));
}
PredictorPool::~PredictorPool() = default;

Predictor* PredictorPool::Retrieve(size_t idx) {
  if (idx >= predictors_.size())
    Check(pd::InvalidArgument("PredictorPool: no predictor %d; the pool has %d",
                              idx, predictors_.size()));
  return predictors_[idx].get();
}

}  // namespace services

namespace experimental {

bool InternalUtils::RunWithExternalStream(Predictor* predictor,
                                          cudaStream_t /*stream*/) {
  if (predictor == nullptr)
    Check(pd::InvalidArgument("RunWithExternalStream: null predictor"));
  return predictor->Run();
}
void InternalUtils::UpdateConfigInterleaved(Config* /*config*/,
                                            bool /*with_interleaved*/) {}
void InternalUtils::SetTransformerPosid(Config* /*config*/,
                                        const std::string& /*tensor*/) {}
void InternalUtils::SetTransformerMaskid(Config* /*config*/,
                                         const std::string& /*tensor*/) {}
void InternalUtils::DisableTensorRtHalfOps(
    Config* /*config*/, const std::unordered_set<std::string>& /*ops*/) {}
void InternalUtils::SyncStream(Predictor* /*predictor*/) {}
void InternalUtils::SyncStream(cudaStream_t /*stream*/) {}

}  // namespace experimental
}  // namespace paddle_infer
