// SPDX-License-Identifier: Apache-2.0
// select_input: Out = X[Mask], where Mask is one integer: the value of the
// branch that was taken. Its gradient is
// select_output: Out[Mask] = X; the other outputs are zeros.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/values.h"

namespace pd {
namespace {

absl::StatusOr<size_t> SelectedBranchOf(Values* values, const Tensor& given,
                                        size_t count) {
  PD_ASSIGN_OR_RETURN(const Tensor mask, values->OnHost(given));
  if ((mask.dtype() != DType::kInt32 && mask.dtype() != DType::kInt64) ||
      mask.size() != 1)
    return InvalidArgument("'Mask' is %s%s; expected one int",
                           Name(mask.dtype()), ToString(mask.shape()));
  const int64_t branch = IntsOf(mask)[0];
  if (branch < 0 || branch >= static_cast<int64_t>(count))
    return InvalidArgument("'Mask' is %d; there are %d branches", branch,
                           count);
  return static_cast<size_t>(branch);
}

absl::Status InferSelectInput(InferContext* context) {
  TensorMeta meta = context->Input("X");
  meta.value = nullptr;
  // Which one it is, is known when it runs; so is its shape.
  meta.shape.assign(std::max<size_t>(meta.shape.size(), 1), -1);
  meta.lod.clear();
  context->SetOutput("Out", std::move(meta));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSelectInput(BindContext* context) {
  Values* values = ValuesOf(context);
  PD_ASSIGN_OR_RETURN(const size_t branch,
                      SelectedBranchOf(values, *context->Input("Mask"),
                                       context->InputCount("X")));
  Tensor* x = context->Input("X", branch);
  Tensor* out = context->Output("Out");
  if (x == nullptr || !x->has_value())
    return FailedPrecondition("'X' %d has no value: its branch did not run",
                              branch);
  return Step([=](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(*out, values->Clone(*x));
    return absl::OkStatus();
  });
}

absl::Status InferSelectOutput(InferContext* context) {
  for (size_t i = 0; i < context->OutputCount("Out"); ++i) {
    TensorMeta meta = context->Input("X");
    meta.value = nullptr;
    context->SetOutput("Out", std::move(meta), i);
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSelectOutput(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* mask = context->Input("Mask");
  std::vector<Tensor*> outputs;
  for (size_t i = 0; i < context->OutputCount("Out"); ++i)
    outputs.push_back(context->Output("Out", i));
  Values* values = ValuesOf(context);
  return Step([=](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const size_t branch,
                        SelectedBranchOf(values, *mask, outputs.size()));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == nullptr) continue;
      if (i != branch) {
        PD_RETURN_IF_ERROR(values->ZerosLike(*x, outputs[i]));
      } else {
        PD_ASSIGN_OR_RETURN(*outputs[i], values->Clone(*x));
      }
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<OpDesc>> SelectInputGrad(
    const GradRequest& request) {
  OpDesc grad;
  grad.type = "select_output";
  grad.SetInput("X", {GradName(request.op.Out("Out"))});
  grad.SetInput("Mask", request.op.Input("Mask"));
  std::vector<std::string> names;
  for (const std::string& x : request.op.Input("X"))
    names.push_back(request.needs_grad(x) ? GradName(x)
                                          : std::string(kEmptyVar));
  grad.SetOutput("Out", std::move(names));
  return std::vector<OpDesc>{std::move(grad)};
}

absl::StatusOr<std::vector<OpDesc>> SelectOutputGrad(
    const GradRequest& request) {
  OpDesc grad;
  grad.type = "select_input";
  std::vector<std::string> names;
  for (const std::string& out : request.op.Output("Out"))
    names.push_back(GradName(out));
  grad.SetInput("X", std::move(names));
  grad.SetInput("Mask", request.op.Input("Mask"));
  grad.SetOutput("Out", {GradName(request.op.In("X"))});
  return std::vector<OpDesc>{std::move(grad)};
}

}  // namespace

absl::Status RegisterSelectInput(OpRegistry* registry) {
  OpDef input("select_input");
  input.Inputs("X").Input("Mask").Output("Out");
  input.With(Trait::kMovesValues).With(Trait::kReadsUnwritten);
  input.Infer(InferSelectInput).Grad(SelectInputGrad).ShapeFromData();
  input.Reference(BindSelectInput);
  PD_RETURN_IF_ERROR(registry->Add(std::move(input)));

  OpDef output("select_output");
  output.Input("X").Input("Mask").Outputs("Out");
  output.With(Trait::kMovesValues)
      .Infer(InferSelectOutput)
      .Grad(SelectOutputGrad);
  output.Reference(BindSelectOutput);
  return registry->Add(std::move(output));
}

}  // namespace pd
