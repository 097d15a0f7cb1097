// SPDX-License-Identifier: Apache-2.0
// Linear layers with weights of 8 bits, as PaddlePaddle's large language models
// have them; 127 is the greatest number, and 7 of 4 bits.
//   weight_quantize: out = round(x^T / scale) of x [k, n], scale[j] = max |x[:,
//     j]| / 127 or 7. By llm.int8 it is [n, k]; weight_only_int8 and
//     weight_only_int4 store it in a GPU's order (weight_layout.h), the latter
//     in [n / 2, k] bytes
//   weight_dequantize: the floats [k, n] again
//   weight_only_linear: x times these floats, plus bias
//   llm_int8_linear: x W^T + bias (T. Dettmers et al., "LLM.int8()", 2022).
//     Columns of x with an element above threshold are multiplied in floats;
//     the others of a row by 8-bit numbers, with a scale for each row
//   quant_linear: x is rounded to max_bound scale_in x, multiplied by w [k, n]
//     in integers, divided by max_bound^2 scale_in scale_weights; then bias,
//     relu
// No gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/quantize/weight_layout.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr float kMostInt8 = 127;
// Orders have not changed since.
constexpr int64_t kNewestArch = 90;

// How the numbers of a weight are stored.
struct WeightForm {
  int bits = 8;
  bool in_gpu_order = false;
  int64_t columns_in_byte() const { return 8 / bits; }
};

absl::StatusOr<WeightForm> WeightFormOf(const std::string& algo, int64_t arch) {
  if (algo == "llm.int8") return WeightForm{};
  if (algo != "weight_only_int8" && algo != "weight_only_int4")
    return InvalidArgument(
        "the algorithm is '%s'; expected llm.int8, weight_only_int8 or "
        "weight_only_int4",
        algo);
  if (arch < 75)
    return Unimplemented("attr 'arch' is %d; orders are known here from 75 on",
                         arch);
  return WeightForm{algo == "weight_only_int8" ? 8 : 4, true};
}

// Whether a weight [k, n] can be stored so; -1 is not known.
absl::Status ExpectFit(const WeightForm& form, int64_t k, int64_t n) {
  if (!form.in_gpu_order || ((k < 0 || k % 64 == 0) && (n < 0 || n % 16 == 0)))
    return absl::OkStatus();
  return InvalidArgument(
      "a weight of %d rows and %d columns; expected multiples of 64 and 16", k,
      n);
}

absl::Status ExpectMatrix(const char* slot, const Shape& shape) {
  if (shape.size() == 2) return absl::OkStatus();
  return InvalidArgument("'%s' has shape %s; expected a matrix", slot,
                         ToString(shape));
}

absl::Status InferWeightQuantize(InferContext* context) {
  const TensorMeta& x = context->Input("x");
  PD_ASSIGN_OR_RETURN(const WeightForm form,
                      WeightFormOf(context->Attr<std::string>("algo"),
                                   context->Attr<int32_t>("arch")));
  PD_RETURN_IF_ERROR(ExpectMatrix("x", x.shape));
  PD_RETURN_IF_ERROR(ExpectFit(form, x.shape[0], x.shape[1]));
  const int64_t columns = x.shape[1];
  context->SetOutput(
      "out", {columns < 0 ? -1 : columns / form.columns_in_byte(), x.shape[0]},
      DType::kInt8);
  context->SetOutput("scale", {x.shape[1]}, x.dtype);
  return absl::OkStatus();
}

template <typename T>
void QuantizeWeight(const WeightForm& form, const Tensor& x, Tensor* scale,
                    Tensor* out) {
  const int64_t k = x.dim(0), n = x.dim(1);
  const T* from = x.data<T>();
  const WeightLayout layout(form.bits, k);
  const auto bound = static_cast<float>(layout.most());
  auto* to = out->data<int8_t>();
  std::fill_n(to, out->size(), int8_t{0});
  for (int64_t j = 0; j < n; ++j) {
    float most = 0;
    for (int64_t i = 0; i < k; ++i)
      most = std::max(most, std::fabs(static_cast<float>(from[i * n + j])));
    scale->data<T>()[j] = Stored<T>(most / bound);
    const auto step = static_cast<float>(scale->data<T>()[j]);
    for (int64_t i = 0; i < k; ++i) {
      const float v = step > 0 ? static_cast<float>(from[i * n + j]) / step : 0;
      // NaN has no number of 8 bits; it becomes 0.
      const auto number = static_cast<int32_t>(
          v == v ? std::clamp(std::round(v), -bound, bound) : 0);
      if (form.in_gpu_order)
        layout.Write(number, layout.PlaceOf(i, j), to);
      else
        to[j * k + i] = static_cast<int8_t>(number);
    }
  }
}

absl::StatusOr<Step> BindWeightQuantize(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out = context->Output("out");
  Tensor* scale = context->Output("scale");
  PD_ASSIGN_OR_RETURN(const WeightForm form,
                      WeightFormOf(context->Attr<std::string>("algo"),
                                   context->Attr<int32_t>("arch")));
  PD_RETURN_IF_ERROR(ExpectFit(form, x->dim(0), x->dim(1)));
  return DispatchTypes<float, Float16, BFloat16>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          QuantizeWeight<T>(form, *x, scale, out);
          return absl::OkStatus();
        });
      });
}

// The number of the weight [k, n] at row i and column j.
int32_t NumberAt(const WeightForm& form, const WeightLayout& layout,
                 const Tensor& stored, int64_t i, int64_t j) {
  const auto* bytes = stored.data<int8_t>();
  if (!form.in_gpu_order) return bytes[j * stored.dim(1) + i];
  return layout.Read(bytes, layout.PlaceOf(i, j));
}

absl::Status InferWeightDequantize(InferContext* context) {
  const TensorMeta& x = context->Input("x");
  PD_ASSIGN_OR_RETURN(
      const WeightForm form,
      WeightFormOf(context->Attr<std::string>("algo"), kNewestArch));
  PD_RETURN_IF_ERROR(ExpectMatrix("x", x.shape));
  const int64_t columns =
      x.shape[0] < 0 ? -1 : x.shape[0] * form.columns_in_byte();
  PD_RETURN_IF_ERROR(ExpectFit(form, x.shape[1], columns));
  const auto dtype = DTypeFromCode(context->Attr<int32_t>("out_dtype"));
  if (!dtype.has_value())
    return InvalidArgument("attr 'out_dtype' is %d, which is no dtype",
                           context->Attr<int32_t>("out_dtype"));
  context->SetOutput("out", {x.shape[1], columns}, *dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindWeightDequantize(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* scale = context->Input("scale");
  Tensor* out = context->Output("out");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "x", DType::kInt8, x->shape()));
  const DType dtype = scale->dtype();
  PD_ASSIGN_OR_RETURN(
      const WeightForm form,
      WeightFormOf(context->Attr<std::string>("algo"), kNewestArch));
  const int64_t k = x->dim(1), n = x->dim(0) * form.columns_in_byte();
  PD_RETURN_IF_ERROR(ExpectFit(form, k, n));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "scale", dtype, n));
  if (out->dtype() != dtype)
    return InvalidArgument("'scale' is %s and 'out' %s; expected one dtype",
                           Name(dtype), Name(out->dtype()));
  return DispatchTypes<float, Float16, BFloat16>(
      dtype, [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          const WeightLayout layout(form.bits, k);
          for (int64_t j = 0; j < n; ++j)
            for (int64_t i = 0; i < k; ++i)
              out->data<T>()[i * n + j] =
                  T(static_cast<float>(NumberAt(form, layout, *x, i, j)) *
                    static_cast<float>(scale->data<T>()[j]));
          return absl::OkStatus();
        });
      });
}

absl::Status InferLlmLinear(InferContext* context) {
  const TensorMeta& x = context->Input("x");
  const Shape& w = context->Input("weight").shape;
  PD_RETURN_IF_ERROR(ExpectMatrix("weight", w));
  if (x.shape.empty() ||
      (x.shape.back() >= 0 && w[1] >= 0 && x.shape.back() != w[1]))
    return InvalidArgument("'x' has shape %s, 'weight' has %s",
                           ToString(x.shape), ToString(w));
  Shape out = x.shape;
  out.back() = w[0];
  context->SetOutput("out", std::move(out), x.dtype);
  return absl::OkStatus();
}

struct LlmLinear {
  Tensor *x, *weight, *scale, *bias, *out;
  float threshold;
};

void MultiplyLlm(const LlmLinear& l) {
  const int64_t n = l.weight->dim(0), k = l.weight->dim(1);
  const int64_t rows = k == 0 ? 0 : l.x->size() / k;
  const float* x = l.x->data<float>();
  std::vector<bool> outlier(static_cast<size_t>(k), false);
  for (int64_t i = 0; i < rows * k; ++i)
    if (std::fabs(x[i]) > l.threshold)
      outlier[static_cast<size_t>(i % k)] = true;
  ParallelFor(rows, 1, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> numbers(static_cast<size_t>(k));
    for (int64_t r = begin; r < end; ++r) {
      const float* row = x + r * k;
      float most = 0;
      for (int64_t i = 0; i < k; ++i)
        if (!outlier[static_cast<size_t>(i)])
          most = std::max(most, std::fabs(row[i]));
      for (int64_t i = 0; i < k; ++i)
        numbers[static_cast<size_t>(i)] =
            outlier[static_cast<size_t>(i)] || !(most > 0) || row[i] != row[i]
                ? 0
                : static_cast<int32_t>(std::round(row[i] * kMostInt8 / most));
      for (int64_t j = 0; j < n; ++j) {
        const int8_t* w = l.weight->data<int8_t>() + j * k;
        const float scale = l.scale->data<float>()[j];
        int64_t sum = 0;
        float exact = 0;
        for (int64_t i = 0; i < k; ++i)
          if (outlier[static_cast<size_t>(i)])
            exact += row[i] * static_cast<float>(w[i]) * scale;
          else
            sum += numbers[static_cast<size_t>(i)] * w[i];
        l.out->data<float>()[r * n + j] =
            static_cast<float>(sum) * scale * most / kMostInt8 + exact +
            (l.bias != nullptr ? l.bias->data<float>()[j] : 0);
      }
    }
  });
}

absl::StatusOr<Step> BindLlmLinear(BindContext* context) {
  LlmLinear l;
  l.x = context->Input("x");
  l.weight = context->Input("weight");
  l.scale = context->Input("weight_scale");
  l.bias = context->Input("bias");
  l.out = context->Output("out");
  l.threshold = context->Attr<float>("threshold");
  if (l.x->dtype() != DType::kFloat32)
    return Unimplemented("'x' is %s; expected float32", Name(l.x->dtype()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "weight", DType::kInt8, l.weight->shape()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "weight_scale", DType::kFloat32,
                                    l.weight->dim(0)));
  if (l.bias != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "bias", DType::kFloat32, l.weight->dim(0)));
  return Step([l](const RunContext&) {
    MultiplyLlm(l);
    return absl::OkStatus();
  });
}

absl::StatusOr<WeightForm> WeightOnlyForm(const OpDesc& op) {
  const std::string& dtype = op.Attr<std::string>("weight_dtype");
  return WeightFormOf("weight_only_" + dtype, op.Attr<int32_t>("arch"));
}

absl::Status InferWeightOnlyLinear(InferContext* context) {
  const TensorMeta& x = context->Input("x");
  const Shape& w = context->Input("weight").shape;
  PD_ASSIGN_OR_RETURN(const WeightForm form, WeightOnlyForm(context->op()));
  PD_RETURN_IF_ERROR(ExpectMatrix("weight", w));
  const int64_t n = w[0] < 0 ? -1 : w[0] * form.columns_in_byte();
  PD_RETURN_IF_ERROR(ExpectFit(form, w[1], n));
  if (x.shape.empty() ||
      (x.shape.back() >= 0 && w[1] >= 0 && x.shape.back() != w[1]))
    return InvalidArgument("'x' has shape %s, 'weight' has %s",
                           ToString(x.shape), ToString(w));
  Shape out = x.shape;
  out.back() = n;
  context->SetOutput("out", std::move(out), x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindWeightOnlyLinear(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* weight = context->Input("weight");
  Tensor* scale = context->Input("weight_scale");
  Tensor* bias = context->Input("bias");
  Tensor* out = context->Output("out");
  PD_ASSIGN_OR_RETURN(const WeightForm form, WeightOnlyForm(context->op()));
  const int64_t k = weight->dim(1), n = weight->dim(0) * form.columns_in_byte();
  const DType dtype = x->dtype();
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "weight", DType::kInt8, weight->shape()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "weight_scale", dtype, n));
  if (bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "bias", dtype, n));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const WeightLayout layout(form.bits, k);
      const int64_t rows = k == 0 ? 0 : x->size() / k;
      ParallelFor(n, 1, [&](int64_t begin, int64_t end) {
        std::vector<T> column(static_cast<size_t>(k));
        for (int64_t j = begin; j < end; ++j) {
          for (int64_t i = 0; i < k; ++i)
            column[static_cast<size_t>(i)] =
                static_cast<T>(NumberAt(form, layout, *weight, i, j)) *
                scale->data<T>()[j];
          for (int64_t r = 0; r < rows; ++r) {
            T sum = bias != nullptr ? bias->data<T>()[j] : T(0);
            for (int64_t i = 0; i < k; ++i)
              sum += x->data<T>()[r * k + i] * column[static_cast<size_t>(i)];
            out->data<T>()[r * n + j] = sum;
          }
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferQuantLinear(InferContext* context) {
  const TensorMeta& x = context->Input("x");
  const Shape& w = context->Input("w").shape;
  const int64_t columns = context->Attr<int32_t>("in_num_col_dims");
  const auto rank = static_cast<int64_t>(x.shape.size());
  if (w.size() != 2 || columns < 1 || columns >= rank)
    return InvalidArgument(
        "'x' has shape %s, 'w' has %s, attr 'in_num_col_dims' is %d",
        ToString(x.shape), ToString(w), columns);
  Shape out(x.shape.begin(), x.shape.begin() + columns);
  out.push_back(w[1]);
  context->SetOutput("out", std::move(out), x.dtype);
  return absl::OkStatus();
}

struct QuantLinear {
  Tensor *x, *w, *bias, *out;
  std::vector<float> weights;  // the scale of each column, or of all
  float scale, least, most;
  bool relu, away;  // from zero in the middle, else to even
};

void MultiplyQuantized(const QuantLinear& q) {
  const int64_t k = q.w->dim(0), n = q.w->dim(1);
  const int64_t rows = k == 0 ? 0 : q.x->size() / k;
  ParallelFor(rows, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> numbers(static_cast<size_t>(k));
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t i = 0; i < k; ++i) {
        const float v = q.most * q.scale * q.x->data<float>()[r * k + i];
        const float whole = q.away ? std::round(v) : std::nearbyint(v);
        numbers[static_cast<size_t>(i)] =
            v == v ? std::clamp(whole, q.least, q.most) : 0;
      }
      for (int64_t j = 0; j < n; ++j) {
        int64_t sum = 0;
        for (int64_t i = 0; i < k; ++i)
          sum += static_cast<int64_t>(numbers[static_cast<size_t>(i)]) *
                 q.w->data<int8_t>()[i * n + j];
        const float weight =
            q.weights[q.weights.size() == 1 ? 0 : static_cast<size_t>(j)];
        float out =
            static_cast<float>(sum) / (q.most * q.most * q.scale * weight);
        if (q.bias != nullptr) out += q.bias->data<float>()[j];
        q.out->data<float>()[r * n + j] = q.relu ? std::max(out, 0.0f) : out;
      }
    }
  });
}

absl::StatusOr<Step> BindQuantLinear(BindContext* context) {
  QuantLinear q;
  q.x = context->Input("x");
  q.w = context->Input("w");
  q.bias = context->Input("bias");
  q.out = context->Output("out");
  q.weights = context->Attr<std::vector<float>>("scale_weights");
  q.scale = context->Attr<float>("scale_in");
  q.least = context->Attr<float>("quant_min_bound");
  q.most = context->Attr<float>("quant_max_bound");
  q.away = context->Attr<int32_t>("quant_round_type") != 0;
  const std::string& act = context->Attr<std::string>("activation_type");
  q.relu = act == "relu";
  const int64_t k = q.w->dim(0), n = q.w->dim(1);
  PD_RETURN_IF_ERROR(ExpectInput(*context, "w", DType::kInt8, q.w->shape()));
  if (q.x->dtype() != DType::kFloat32)
    return Unimplemented("'x' is %s; expected float32", Name(q.x->dtype()));
  if (q.bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "bias", DType::kFloat32, n));
  if ((!q.relu && !act.empty()) || context->Attr<bool>("padding_weights") ||
      !(q.least >= -128 && q.least < q.most && q.most <= kMostInt8) ||
      !(q.most > 0) ||
      q.out->size() / std::max<int64_t>(n, 1) * k != q.x->size() ||
      q.weights.empty() ||
      (q.weights.size() != 1 && static_cast<int64_t>(q.weights.size()) != n))
    return InvalidArgument(
        "'x' has shape %s, 'w' has %s, there are %d scales, bounds %g and %g, "
        "activation '%s'",
        ToString(q.x->shape()), ToString(q.w->shape()), q.weights.size(),
        q.least, q.most, act);
  return Step([q](const RunContext&) {
    MultiplyQuantized(q);
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status RegisterLlmInt8(OpRegistry* registry) {
  OpDef quantize("weight_quantize"), dequantize("weight_dequantize"),
      llm("llm_int8_linear"), linear("quant_linear"),
      floats("weight_only_linear");
  for (OpDef* op : {&quantize, &dequantize})
    op->Input("x").Output("out").Attr("algo", std::string("weight_only_int8"));
  quantize.Output("scale").Attr("arch", int32_t{80});
  quantize.Infer(InferWeightQuantize).Reference(BindWeightQuantize);
  dequantize.Input("scale").Attr("out_dtype", int32_t{4});
  dequantize.With(Trait::kConvertsDtype);
  dequantize.Infer(InferWeightDequantize).Reference(BindWeightDequantize);
  llm.Input("x").Input("weight").OptionalInput("bias").Input("weight_scale");
  llm.Output("out").Attr("threshold", 6.0f);
  llm.Infer(InferLlmLinear).Reference(BindLlmLinear);
  floats.Input("x").Input("weight").OptionalInput("bias");
  floats.Input("weight_scale").Output("out").Attr("arch", int32_t{80});
  floats.RequiredAttr("weight_dtype", AttrType::kString);
  floats.Infer(InferWeightOnlyLinear).Reference(BindWeightOnlyLinear);
  linear.Input("x").Input("w").OptionalInput("bias").Output("out");
  linear.Attr("in_num_col_dims", int32_t{1});
  linear.Attr("activation_type", std::string()).Attr("padding_weights", false);
  linear.Attr("scale_in", 1.0f);
  linear.Attr("scale_weights", std::vector<float>{1.0f});
  linear.Attr("quant_round_type", int32_t{1}).Attr("quant_max_bound", 127.0f);
  linear.Attr("quant_min_bound", -127.0f);
  linear.Infer(InferQuantLinear).Reference(BindQuantLinear);
  for (OpDef* op : {&quantize, &dequantize, &llm, &linear, &floats}) {
    op->NoGrad();
    PD_RETURN_IF_ERROR(registry->Add(std::move(*op)));
  }
  return absl::OkStatus();
}

}  // namespace pd
