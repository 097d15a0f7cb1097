// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/optimize.h"

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"

namespace pd {
absl::StatusOr<int> FoldBatchNorms(InferenceModel* model,
                                   FoldFactors* factors) {
  std::map<std::string, Tensor> tensors;  // that stand for parameters
  std::vector<std::string> names = model->names.feeds;
  names.insert(names.end(), model->names.fetches.begin(),
               model->names.fetches.end());
  PassContext context;
  context.keep.insert(names.begin(), names.end());
  context.value = [&](const std::string& name) -> const Tensor* {
    const auto found = model->params.find(name);
    if (found == model->params.end()) return nullptr;
    const Array& value = found->second;
    Tensor& tensor = tensors[name];
    tensor = Tensor(value.dtype, value.shape);
    tensor.Attach(const_cast<std::byte*>(value.bytes.get()));
    return &tensor;
  };
  context.define = [&](const std::string& of,
                       const std::function<void(float*)>& make) {
    Tensor made(DType::kFloat32, model->params[of].shape);
    if (!made.Allocate().ok()) throw std::bad_alloc();  // the copy of one
    make(made.data<float>());
    model->params[of] = ToArray(made);
    return of;
  };
  PD_ASSIGN_OR_RETURN(const int folded,
                      FoldBatchNorms(context, &model->program, factors));
  DropUnused(names, &model->program);
  const BlockDesc& block = model->program.global();
  for (auto it = model->params.begin(); it != model->params.end();)
    it = block.FindVar(it->first) == nullptr ? model->params.erase(it)
                                             : std::next(it);
  return folded;
}

namespace {

struct ModelPass {
  const char* name;
  absl::StatusOr<int> (*run)(InferenceModel* model, FoldFactors* factors);
  const char* done;  // behind the number that `run` gives
};
constexpr ModelPass kModelPasses[] = {
    {"fold_batch_norms", FoldBatchNorms, "batch norms folded"},
};

}  // namespace

std::vector<std::string> ModelPassNames() {
  std::vector<std::string> names;
  for (const ModelPass& pass : kModelPasses) names.push_back(pass.name);
  return names;
}

absl::Status OptimizeModel(const PassOptions& options, InferenceModel* model) {
  const auto show = [&](const std::string& pass) {
    return options.observer == nullptr
               ? absl::OkStatus()
               : options.observer("", pass, model->program);
  };
  PD_RETURN_IF_ERROR(show(""));
  for (const ModelPass& pass : kModelPasses) {
    if (options.disabled.count(pass.name) > 0) continue;
    PD_ASSIGN_OR_RETURN(const int changes, pass.run(model, nullptr));
    LogInfo("%d %s", changes, pass.done);
    PD_RETURN_IF_ERROR(show(pass.name));
  }
  return absl::OkStatus();
}

}  // namespace pd
