// SPDX-License-Identifier: Apache-2.0
// print: Out = In, and the tensor is written to the standard error, the first
//   `first_n` times (always when it is -1) and in the phase `print_phase`:
//   "forward", "backward" or "both". `summarize` elements are shown, all of
//   them when it is -1. In@GRAD is Out@GRAD, by a print op too.
// assert: an error when Cond, one truth value, is false; it shows `summarize`
//   elements of every tensor of Data.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// The first `most` elements (all: -1) in brackets.
std::string Elements(const Tensor& tensor, int64_t most) {
  const int64_t n =
      most < 0 ? tensor.size() : std::min<int64_t>(most, tensor.size());
  std::vector<std::string> words;
  (void)DispatchAll(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < n; ++i) {
      const auto v = Computed<T>(tensor.data<T>()[i]);
      if constexpr (kIsComplex<T>)
        words.push_back(absl::StrCat("(", v.real(), ",", v.imag(), ")"));
      else
        words.push_back(absl::StrCat(v));
    }
    return absl::OkStatus();
  });
  if (n < tensor.size()) words.push_back("...");
  return absl::StrCat("[", absl::StrJoin(words, " "), "]");
}

absl::Status InferPrint(InferContext* context) {
  context->Share("In", "Out");
  return absl::OkStatus();
}

// The format of the printed text.
struct Style {
  std::string name, message;
  bool show_name, show_type, show_shape, show_layout, show_lod;
  int64_t summarize;
};

std::string Text(const Tensor& tensor, const Style& style) {
  std::string text;
  if (!style.message.empty()) absl::StrAppend(&text, style.message, "\n");
  if (style.show_name) absl::StrAppend(&text, "Variable: ", style.name, "\n");
  if (style.show_lod && !tensor.lod().empty()) {
    absl::StrAppend(&text, "  - lod: ");
    for (const auto& level : tensor.lod())
      absl::StrAppend(&text, "[", absl::StrJoin(level, " "), "]");
    absl::StrAppend(&text, "\n");
  }
  if (style.show_shape)
    absl::StrAppend(&text, "  - shape: ", ToString(tensor.shape()), "\n");
  if (style.show_layout) absl::StrAppend(&text, "  - layout: NCHW\n");
  if (style.show_type)
    absl::StrAppend(&text, "  - dtype: ", Name(tensor.dtype()), "\n");
  absl::StrAppend(&text, "  - data: ", Elements(tensor, style.summarize), "\n");
  return text;
}

absl::StatusOr<Step> BindPrint(BindContext* context) {
  Tensor* in = context->Input("In");
  Tensor* out = context->Output("Out");
  const std::string phase =
      absl::AsciiStrToLower(context->Attr<std::string>("print_phase"));
  const bool forward = context->Attr<bool>("is_forward");
  if (phase != "both" && phase != (forward ? "forward" : "backward")) {
    context->Alias(in, out);
    return Step();
  }
  const Style style = {context->op().In("In"),
                       context->Attr<std::string>("message"),
                       context->Attr<bool>("print_tensor_name"),
                       context->Attr<bool>("print_tensor_type"),
                       context->Attr<bool>("print_tensor_shape"),
                       context->Attr<bool>("print_tensor_layout"),
                       context->Attr<bool>("print_tensor_lod"),
                       context->Attr<int32_t>("summarize")};
  context->MayShare(in, out);
  return Step([in, out, style,
               left = std::make_shared<int64_t>(
                   context->Attr<int32_t>("first_n"))](const RunContext&) {
    if (out->raw() != in->raw() && in->bytes() > 0)
      std::memcpy(out->raw(), in->raw(), in->bytes());
    if (*left == 0) return absl::OkStatus();
    if (*left > 0) --*left;
    const std::string text = Text(*in, style);
    std::fwrite(text.data(), 1, text.size(), stderr);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<OpDesc>> PrintGrad(const GradRequest& request) {
  std::vector<OpDesc> ops;
  if (!request.needs_grad(request.op.In("In"))) return ops;
  OpDesc op;
  op.type = "print";
  op.attrs = request.op.attrs;
  op.SetInput("In", {GradName(request.op.Out("Out"))});
  op.SetOutput("Out", {GradName(request.op.In("In"))});
  op.attrs["is_forward"] = false;
  ops.push_back(std::move(op));
  return ops;
}

absl::Status InferAssert(InferContext* context) {
  const TensorMeta& condition = context->Input("Cond");
  if (condition.dtype != DType::kBool ||
      (!IsDynamic(condition.shape) && NumElements(condition.shape) != 1))
    return InvalidArgument("Cond is %s %s; expected one bool",
                           Name(condition.dtype), ToString(condition.shape));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindAssert(BindContext* context) {
  Tensor* condition = context->Input("Cond");
  const int64_t summarize = context->Attr<int64_t>("summarize");
  std::vector<std::pair<std::string, Tensor*>> data;
  for (size_t i = 0; i < context->InputCount("Data"); ++i)
    if (Tensor* t = context->Input("Data", i))
      data.emplace_back(context->op().Input("Data")[i], t);
  if (condition->size() != 1)
    return InvalidArgument("Cond has shape %s; expected one element",
                           ToString(condition->shape()));
  const std::string name = context->op().In("Cond");
  return Step([=](const RunContext&) -> absl::Status {
    if (condition->data<bool>()[0]) return absl::OkStatus();
    std::string text;
    for (const auto& [variable, tensor] : data)
      absl::StrAppend(&text, "; '", variable, "' is ",
                      Elements(*tensor, summarize));
    return InvalidArgument("assertion '%s' does not hold%s", name, text);
  });
}

}  // namespace

absl::Status RegisterPrint(OpRegistry* registry) {
  OpDef print("print");
  print.Input("In").Output("Out").Attr("first_n", int32_t{-1});
  print.Attr("message", std::string()).Attr("summarize", int32_t{20});
  for (const char* what : {"name", "type", "shape", "layout", "lod"})
    print.Attr(absl::StrCat("print_tensor_", what), true);
  print.Attr("print_phase", std::string("BOTH")).Attr("is_forward", true);
  print.Infer(InferPrint).Grad(GradMaker(PrintGrad)).Reference(BindPrint);
  PD_RETURN_IF_ERROR(registry->Add(std::move(print)));

  OpDef check("assert");
  check.Input("Cond").OptionalInputs("Data").Attr("summarize", int64_t{-1});
  check.Infer(InferAssert).NoGrad().Reference(BindAssert);
  return registry->Add(std::move(check));
}

}  // namespace pd
