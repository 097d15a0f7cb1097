// SPDX-License-Identifier: Apache-2.0
// Ops between products of 8 bits; int8.h has the arithmetic.
//   int8_quantize:   Out = u of X, float32 or uint8 (x_scale, x_zero), after
//                    the activation
//   int8_dequantize: the same, to float32
//   int8_elementwise: Out of z = X (operation) Y, "add" or "mul", where
//                    z = fma(x, x_scale, y * y_scale) or
//                    (x * x_scale) * (y * y_scale) with zeros subtracted first;
//                    Y has X's shape, or [N, C, 1, 1]
//   int8_pool2d:     pool2d's attributes. The greatest u, or of an average with
//                    the sum s of n values: z = (float(s - n * zero) * x_scale)
//                    / n, where padding counts in n where it is not exclusive
// No gradients.
#include <algorithm>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/quantize/int8.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kInt8TensorGrain = 16384;

// Calls put(at, z) of every number of `in`.
template <typename Put>
void Read(const Tensor& in, const Int8In& how, const Put& put) {
  ParallelFor(in.size(), kInt8TensorGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      put(i,
          in.dtype() == DType::kUInt8
              ? static_cast<float>(in.data<uint8_t>()[i] - how.zero) * how.scale
              : in.data<float>()[i]);
  });
}

// Writes z where the output says how.
void Write(const Int8Epilogue& e, int64_t at, float z, Tensor* out) {
  z = e.act(z);
  if (e.out.quantized())
    out->data<uint8_t>()[at] = e.out(z);
  else
    out->data<float>()[at] = z;
}

absl::StatusOr<Step> BindMap(BindContext* context) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  if (x->dtype() != DType::kUInt8 && x->dtype() != DType::kFloat32)
    return InvalidArgument("'X' is %s; expected float32 or uint8",
                           Name(x->dtype()));
  const Int8In in = ReadInt8In(context->op(), "x");
  PD_ASSIGN_OR_RETURN(const Int8Epilogue e, ReadInt8Epilogue(context->op()));
  return Step([=](const RunContext&) {
    Read(*x, in, [&](int64_t at, float z) { Write(e, at, z, out); });
    return absl::OkStatus();
  });
}

// How often Y repeats each of its elements: 1, or the pixels of a channel.
absl::StatusOr<int64_t> Repeats(const Shape& x, const Shape& y) {
  if (x == y) return 1;
  if (x.size() == 4 && y.size() == 4 && y[0] == x[0] && y[1] == x[1] &&
      y[2] == 1 && y[3] == 1)
    return x[2] * x[3];
  return InvalidArgument("'X' has shape %s; 'Y' has shape %s", ToString(x),
                         ToString(y));
}

absl::StatusOr<Step> BindElementwise(BindContext* context) {
  Tensor *x = context->Input("X"), *y = context->Input("Y");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "X", DType::kUInt8, x->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", DType::kUInt8, y->shape()));
  PD_ASSIGN_OR_RETURN(const int64_t repeats, Repeats(x->shape(), y->shape()));
  PD_ASSIGN_OR_RETURN(const Int8Epilogue e, ReadInt8Epilogue(context->op()));
  const Int8In in = ReadInt8In(context->op(), "x");
  const std::string& operation = context->Attr<std::string>("operation");
  if (operation != "add" && operation != "mul")
    return InvalidArgument("attr 'operation' is '%s'; expected add or mul",
                           operation);
  const bool adds = operation == "add";
  return Step([=](const RunContext&) {
    const uint8_t *a = x->data<uint8_t>(), *b = y->data<uint8_t>();
    ParallelFor(x->size(), kInt8TensorGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float left = static_cast<float>(a[i] - in.zero);
        const float right =
            static_cast<float>(b[i / repeats] - e.y.zero) * e.y.scale;
        Write(e, i,
              adds ? std::fma(left, in.scale, right) : left * in.scale * right,
              out);
      }
    });
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindPool(BindContext* context) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "X", DType::kUInt8, x->shape()));
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadPool(context->op(), x->shape()));
  PD_ASSIGN_OR_RETURN(const Int8Epilogue e, ReadInt8Epilogue(context->op()));
  const Int8In in = ReadInt8In(context->op(), "x");
  return Step([=](const RunContext&) {
    const WindowAxis &h = g.axes[0], &v = g.axes[1];
    for (int64_t p = 0; p < g.batch * g.channels; ++p) {
      const uint8_t* plane = x->data<uint8_t>() + p * h.in * v.in;
      for (int64_t at = 0; at < h.out * v.out; ++at) {
        const PoolWindow rows = WindowAt(h, g.adaptive, at / v.out);
        const PoolWindow columns = WindowAt(v, g.adaptive, at % v.out);
        int32_t sum = 0, most = 0;
        for (int64_t i = rows.begin; i < rows.end; ++i)
          for (int64_t j = columns.begin; j < columns.end; ++j) {
            sum += plane[i * v.in + j];
            most = std::max<int32_t>(most, plane[i * v.in + j]);
          }
        const int64_t inside =
            (rows.end - rows.begin) * (columns.end - columns.begin);
        const int64_t count =
            g.exclusive || g.adaptive ? inside : rows.padded * columns.padded;
        const int64_t to = p * h.out * v.out + at;
        if (g.max) {
          out->data<uint8_t>()[to] = static_cast<uint8_t>(most);
          continue;
        }
        const auto real =
            static_cast<float>(sum - static_cast<int32_t>(inside) * in.zero);
        Write(e, to, real * in.scale / static_cast<float>(count), out);
      }
    }
    return absl::OkStatus();
  });
}

absl::Status InferMap(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  out.dtype = Int8OutDType(context->op());
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status InferPool(InferContext* context) {
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadPool(context->op(), context->Input("X").shape));
  if (g.axes.size() != 2 || g.channels_last)
    return InvalidArgument("it is for NCHW");
  context->SetOutput("Out", g.OutputShape(),
                     g.max ? DType::kUInt8 : Int8OutDType(context->op()));
  return absl::OkStatus();
}

OpDef Unary(const char* type) {
  OpDef def(type);
  def.Input("X").Output("Out").NoGrad();
  AddInt8Input("x", &def);
  AddInt8Output(&def);
  return def;
}

}  // namespace

absl::Status RegisterInt8Tensor(OpRegistry* registry) {
  for (const char* type : {"int8_quantize", "int8_dequantize"}) {
    OpDef map = Unary(type);
    map.Infer(InferMap).Reference(BindMap);
    PD_RETURN_IF_ERROR(registry->Add(std::move(map)));
  }
  OpDef pair = Unary("int8_elementwise");
  pair.Input("Y").Attr("operation", std::string("add"));
  AddInt8Input("y", &pair);
  pair.Infer(InferMap).Reference(BindElementwise);
  PD_RETURN_IF_ERROR(registry->Add(std::move(pair)));

  OpDef pool = Unary("int8_pool2d");
  pool.Attr("pooling_type", std::string("max"))
      .Attr("ksize", std::vector<int32_t>{})
      .Attr("strides", std::vector<int32_t>{1, 1})
      .Attr("paddings", std::vector<int32_t>{0, 0})
      .Attr("padding_algorithm", std::string("EXPLICIT"))
      .Attr("global_pooling", false)
      .Attr("adaptive", false)
      .Attr("ceil_mode", false)
      .Attr("exclusive", true)
      .Attr("data_format", std::string("NCHW"));
  pool.Infer(InferPool).Reference(BindPool);
  return registry->Add(std::move(pool));
}

}  // namespace pd
