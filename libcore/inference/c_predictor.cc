// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>

#include "libcore/inference/border.h"
#include "libcore/inference/c_border.h"

namespace pd {
namespace inference {
namespace {

PD_IOInfos* NewInfos(
    const std::vector<std::string>& names,
    const std::map<std::string, std::vector<int64_t>>& shapes,
    const std::map<std::string, paddle_infer::DataType>& types) {
  auto infos = std::make_unique<PD_IOInfos>();
  infos->size = names.size();
  infos->io_info = names.empty() ? nullptr : new PD_IOInfo*[names.size()];
  for (size_t i = 0; i < names.size(); ++i)
    infos->io_info[i] = new PD_IOInfo{
        NewCstr(names[i]), NewArrayOf<PD_OneDimArrayInt64>(shapes.at(names[i])),
        CTypeOf(types.at(names[i]))};
  return infos.release();
}

}  // namespace
}  // namespace inference
}  // namespace pd

namespace {
using pd::inference::Do;
using pd::inference::OrElse;
}  // namespace

extern "C" {

PD_Predictor* PD_PredictorCreate(PD_Config* pd_config) {
  return OrElse(__func__, pd_config, static_cast<PD_Predictor*>(nullptr),
                [](PD_Config& config) {
                  return new PD_Predictor{pd::inference::Spend(&config)};
                });
}

PD_Predictor* PD_PredictorClone(PD_Predictor* pd_predictor) {
  return OrElse(
      __func__, pd_predictor, static_cast<PD_Predictor*>(nullptr),
      [](PD_Predictor& p) { return new PD_Predictor{p.predictor->Clone()}; });
}

PD_OneDimArrayCstr* PD_PredictorGetInputNames(PD_Predictor* pd_predictor) {
  return OrElse(
      __func__, pd_predictor, static_cast<PD_OneDimArrayCstr*>(nullptr),
      [](PD_Predictor& p) {
        return pd::inference::NewArrayOf(p.predictor->GetInputNames());
      });
}

PD_OneDimArrayCstr* PD_PredictorGetOutputNames(PD_Predictor* pd_predictor) {
  return OrElse(
      __func__, pd_predictor, static_cast<PD_OneDimArrayCstr*>(nullptr),
      [](PD_Predictor& p) {
        return pd::inference::NewArrayOf(p.predictor->GetOutputNames());
      });
}

PD_IOInfos* PD_PredictorGetInputInfos(PD_Predictor* pd_predictor) {
  return OrElse(__func__, pd_predictor, static_cast<PD_IOInfos*>(nullptr),
                [](PD_Predictor& p) {
                  return pd::inference::NewInfos(
                      p.predictor->GetInputNames(),
                      p.predictor->GetInputTensorShape(),
                      p.predictor->GetInputTypes());
                });
}

PD_IOInfos* PD_PredictorGetOutputInfos(PD_Predictor* pd_predictor) {
  return OrElse(__func__, pd_predictor, static_cast<PD_IOInfos*>(nullptr),
                [](PD_Predictor& p) {
                  return pd::inference::NewInfos(
                      p.predictor->GetOutputNames(),
                      p.predictor->GetOutputTensorShape(),
                      p.predictor->GetOutputTypes());
                });
}

size_t PD_PredictorGetInputNum(PD_Predictor* pd_predictor) {
  return OrElse(__func__, pd_predictor, size_t{0}, [](PD_Predictor& p) {
    return p.predictor->GetInputNames().size();
  });
}

size_t PD_PredictorGetOutputNum(PD_Predictor* pd_predictor) {
  return OrElse(__func__, pd_predictor, size_t{0}, [](PD_Predictor& p) {
    return p.predictor->GetOutputNames().size();
  });
}

PD_Tensor* PD_PredictorGetInputHandle(PD_Predictor* pd_predictor,
                                      const char* name) {
  return OrElse(__func__, pd_predictor, static_cast<PD_Tensor*>(nullptr),
                [&](PD_Predictor& p) {
                  return new PD_Tensor{
                      p.predictor->GetInputHandle(pd::inference::Text(name))};
                });
}

PD_Tensor* PD_PredictorGetOutputHandle(PD_Predictor* pd_predictor,
                                       const char* name) {
  return OrElse(__func__, pd_predictor, static_cast<PD_Tensor*>(nullptr),
                [&](PD_Predictor& p) {
                  return new PD_Tensor{
                      p.predictor->GetOutputHandle(pd::inference::Text(name))};
                });
}

PD_Bool PD_PredictorRun(PD_Predictor* pd_predictor) {
  return OrElse(__func__, pd_predictor, PD_Bool{FALSE}, [](PD_Predictor& p) {
    return static_cast<PD_Bool>(p.predictor->Run());
  });
}

void PD_PredictorClearIntermediateTensor(PD_Predictor* pd_predictor) {
  Do(__func__, pd_predictor,
     [](PD_Predictor& p) { p.predictor->ClearIntermediateTensor(); });
}

uint64_t PD_PredictorTryShrinkMemory(PD_Predictor* pd_predictor) {
  return OrElse(__func__, pd_predictor, uint64_t{0},
                [](PD_Predictor& p) { return p.predictor->TryShrinkMemory(); });
}

void PD_PredictorDestroy(PD_Predictor* pd_predictor) { delete pd_predictor; }

const char* PD_GetVersion() { return pd::inference::VersionText(); }

}  // extern "C"
