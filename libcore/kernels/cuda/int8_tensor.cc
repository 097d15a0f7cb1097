// SPDX-License-Identifier: Apache-2.0
// Ops between products of 8 bits: int8_quantize, int8_dequantize,
// int8_elementwise and int8_pool2d; the kernels are in int8.cu.
#include <string>

#include "libcore/kernels/cuda/int8_bindings.h"

namespace pd::cuda {
namespace {

// bytes or floats of what is written.
template <typename Args>
void Give(Tensor* out, Args* args) {
  const bool bytes = out->dtype() == DType::kUInt8;
  args->bytes = bytes ? out->data<uint8_t>() : nullptr;
  args->floats = bytes ? nullptr : out->data<float>();
}

absl::StatusOr<Int8MapArgs> ReadMap(const BindContext& context,
                                    const Tensor& x) {
  Int8MapArgs args{};
  args.n = x.size();
  args.repeats = 1;
  const Int8In in = ReadInt8In(context.op(), "x");
  args.scale = in.scale;
  args.zero = in.zero;
  PD_ASSIGN_OR_RETURN(const Int8Epilogue e, ReadInt8Epilogue(context.op()));
  args.finish = FinishOf(e);
  return args;
}

absl::StatusOr<Step> BindMap(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  if (x == nullptr || x->size() == 0 ||
      (x->dtype() != DType::kUInt8 && x->dtype() != DType::kFloat32))
    return Unimplemented("'X' that is no float32 and no uint8");
  PD_ASSIGN_OR_RETURN(const Int8MapArgs args, ReadMap(*context, *x));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<Int8MapArgs>::Find(binding, "int8_map"));
  return Step([=](const RunContext&) {
    Int8MapArgs run = args;
    if (x->dtype() == DType::kUInt8)
      run.x = x->data<uint8_t>();
    else
      run.floats_in = x->data<float>();
    Give(out, &run);
    return start.Elements(run.n, run);
  });
}

absl::StatusOr<Step> BindPair(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *y = context->Input("Y"),
         *out = context->Output("Out");
  for (const Tensor* t : {x, y})
    if (t == nullptr || t->dtype() != DType::kUInt8 || t->size() == 0)
      return Unimplemented("an operand that is no uint8");
  PD_ASSIGN_OR_RETURN(Int8MapArgs args, ReadMap(*context, *x));
  const Shape &a = x->shape(), &b = y->shape();
  if (a != b) {
    if (a.size() != 4 || b != Shape{a[0], a[1], 1, 1})
      return Unimplemented("shapes %s and %s", ToString(a), ToString(b));
    args.repeats = a[2] * a[3];
  }
  const std::string& operation = context->Attr<std::string>("operation");
  if (operation != "add" && operation != "mul")
    return Unimplemented("operation '%s'", operation);
  args.adds = operation == "add";
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<Int8MapArgs>::Find(binding, "int8_pair"));
  return Step([=](const RunContext&) {
    Int8MapArgs run = args;
    run.x = x->data<uint8_t>();
    run.y = y->data<uint8_t>();
    Give(out, &run);
    return start.Elements(run.n, run);
  });
}

absl::StatusOr<Step> BindInt8TensorPool(BindContext* context,
                                        DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  if (x == nullptr || x->dtype() != DType::kUInt8 || x->rank() != 4 ||
      x->size() == 0)
    return Unimplemented("'X' that is no image of uint8");
  Int8PoolArgs args{};
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadPool(context->op(), x->shape()));
  PD_ASSIGN_OR_RETURN(args.windows, ReadWindows(g));
  args.windows.n = out->size();
  const Int8In in = ReadInt8In(context->op(), "x");
  args.scale = in.scale;
  args.zero = in.zero;
  PD_ASSIGN_OR_RETURN(const Int8Epilogue e, ReadInt8Epilogue(context->op()));
  args.finish = FinishOf(e);
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<Int8PoolArgs>::Find(binding, "int8_pool"));
  return Step([=](const RunContext&) {
    Int8PoolArgs run = args;
    run.x = x->data<uint8_t>();
    Give(out, &run);
    return start.Elements(run.windows.n, run);
  });
}

}  // namespace

void AddInt8Tensor(KernelTable* kernels) {
  kernels->Add("int8_quantize", {"cuda", BindMap});
  kernels->Add("int8_dequantize", {"cuda", BindMap});
  kernels->Add("int8_elementwise", {"cuda", BindPair});
  kernels->Add("int8_pool2d", {"cuda", BindInt8TensorPool});
}

}  // namespace pd::cuda
