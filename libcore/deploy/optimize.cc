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
namespace {

// Rewrites the program and the values of its parameters; drops what nobody
// reads any more.
absl::Status RunOnFiles(
    const std::function<absl::Status(const PassContext&, ProgramDesc*)>& run,
    InferenceModel* model) {
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
  PD_RETURN_IF_ERROR(run(context, &model->program));
  DropUnused(names, &model->program);
  const BlockDesc& block = model->program.global();
  for (auto it = model->params.begin(); it != model->params.end();)
    it = block.FindVar(it->first) == nullptr ? model->params.erase(it)
                                             : std::next(it);
  return absl::OkStatus();
}

int64_t CountOps(const ProgramDesc& program, absl::string_view type) {
  int64_t count = 0;
  for (const OpDesc& op : program.global().ops) count += op.type == type;
  return count;
}

}  // namespace

absl::StatusOr<int> FoldBatchNorms(InferenceModel* model,
                                   FoldFactors* factors) {
  int folded = 0;
  PD_RETURN_IF_ERROR(RunOnFiles(
      [&](const PassContext& context, ProgramDesc* program) -> absl::Status {
        PD_ASSIGN_OR_RETURN(folded, FoldBatchNorms(context, program, factors));
        return absl::OkStatus();
      },
      model));
  return folded;
}

std::vector<std::string> ModelPassNames() {
  std::vector<std::string> names;
  for (const Pass& pass : AllPasses())
    if (pass.folds_in_files != nullptr) names.push_back(pass.name);
  return names;
}

absl::Status OptimizeModel(const PassOptions& options, InferenceModel* model) {
  const auto show = [&](const std::string& pass) {
    return options.observer == nullptr
               ? absl::OkStatus()
               : options.observer("", pass, model->program);
  };
  PD_RETURN_IF_ERROR(show(""));
  for (const Pass& pass : AllPasses()) {
    if (pass.folds_in_files == nullptr || options.disabled.count(pass.name) > 0)
      continue;
    const int64_t before = CountOps(model->program, pass.folds_in_files);
    PD_RETURN_IF_ERROR(RunOnFiles(pass.run, model));
    LogInfo("%d ops '%s' folded",
            before - CountOps(model->program, pass.folds_in_files),
            pass.folds_in_files);
    PD_RETURN_IF_ERROR(show(pass.name));
  }
  return absl::OkStatus();
}

}  // namespace pd
