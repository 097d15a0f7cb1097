// SPDX-License-Identifier: Apache-2.0
// coalesce_tensor: FusedOutput is one flat tensor with room for every Input,
// one after the other; with use_align each takes up a multiple of `align_size`
// bytes (4096 where that is not positive). Output[i] has Input[i]'s shape.
//   copy_data: both hold the inputs' elements
//   set_constant: both are filled with `constant`
// In PaddlePaddle the outputs share the flat tensor's memory. Here each has its
// own, and what follows of that is written into the program
// (libcore/passes/flat_variables.h).
#include "libcore/ops/control_flow/coalesce_tensor.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"

namespace pd {

int64_t CoalescedRoom(const OpDesc& op, int64_t elements, DType dtype) {
  constexpr int64_t kChunk = 4096;  // PaddlePaddle's on CPUs
  if (!op.Attr<bool>("use_align")) return elements;
  const int32_t asked = op.Attr<int32_t>("align_size");
  const int64_t align = asked > 0 ? asked : kChunk;
  const int64_t size = static_cast<int64_t>(SizeOf(dtype));
  return (elements * size + align - 1) / align * align / size;
}

namespace {

absl::Status InferCoalesce(InferContext* context) {
  const size_t count = context->InputCount("Input");
  if (count == 0 || context->OutputCount("Output") != count)
    return InvalidArgument(
        "there are %d inputs and %d outputs; expected as "
        "many, 1 or more",
        count, context->OutputCount("Output"));
  const DType dtype = context->Input("Input").dtype;
  int64_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    const TensorMeta& x = context->Input("Input", i);
    if (x.dtype != dtype)
      return InvalidArgument("Input[0] is %s, Input[%d] is %s", Name(dtype), i,
                             Name(x.dtype));
    if (IsDynamic(x.shape))
      total = -1;
    else if (total >= 0)
      total += CoalescedRoom(context->op(), NumElements(x.shape), dtype);
    TensorMeta out = x;
    out.value = nullptr;
    context->SetOutput("Output", std::move(out), i);
  }
  context->SetOutput("FusedOutput", {total}, dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindCoalesce(BindContext* context) {
  const OpDesc& op = context->op();
  const bool constant = context->Attr<bool>("set_constant");
  const float value = context->Attr<float>("constant");
  Tensor* fused = context->Output("FusedOutput");
  std::vector<Tensor*> inputs, outputs;
  std::vector<int64_t> starts;
  int64_t at = 0;
  for (size_t i = 0; i < context->InputCount("Input"); ++i) {
    inputs.push_back(context->Input("Input", i));
    outputs.push_back(context->Output("Output", i));
    starts.push_back(at);
    at += CoalescedRoom(op, inputs[i]->size(), fused->dtype());
  }
  return DispatchTypes<float, double, int32_t, int64_t>(
      fused->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          const T fill = constant ? static_cast<T>(value) : T(0);
          std::fill_n(fused->data<T>(), fused->size(), fill);
          for (size_t i = 0; i < inputs.size(); ++i) {
            const T* from = inputs[i]->data<T>();
            const int64_t n = inputs[i]->size();
            if (!constant) std::copy_n(from, n, fused->data<T>() + starts[i]);
            if (outputs[i] == nullptr) continue;
            T* to = outputs[i]->data<T>();
            if (constant)
              std::fill_n(to, n, fill);
            else if (to != from)
              std::copy_n(from, n, to);
          }
          return absl::OkStatus();
        });
      });
}

}  // namespace

absl::Status RegisterCoalesceTensor(OpRegistry* registry) {
  OpDef op("coalesce_tensor");
  op.Inputs("Input").Outputs("Output").Output("FusedOutput");
  op.RequiredAttr("dtype", AttrType::kInt).Attr("copy_data", false);
  op.Attr("set_constant", false).Attr("constant", 0.0f);
  op.Attr("use_align", true).Attr("align_size", int32_t{-1});
  op.Infer(InferCoalesce).NoGrad().Reference(BindCoalesce);
  return registry->Add(std::move(op));
}

}  // namespace pd
