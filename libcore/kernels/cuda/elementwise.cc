// SPDX-License-Identifier: Apache-2.0
// Functions of one and of two tensors; the kernels are in elementwise.cu.
#include <array>
#include <string>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layouts.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

// One function: which kernel, what its gradient reads, where a, b, c come from.
struct Unary {
  const char* type;
  const char* kernel;
  bool of_x;  // else of out
  const char* attrs[3];
};

constexpr Unary kUnary[] = {
    {"relu", "relu", false, {}},
    {"sigmoid", "sigmoid", false, {}},
    {"tanh", "tanh", false, {}},
    {"silu", "silu", true, {}},
    {"swish", "silu", true, {}},
    {"gelu", "gelu", true, {}},
    {"elu", "elu", true, {"alpha"}},
    {"relu6", "relu6", false, {"threshold"}},
    {"leaky_relu", "leaky_relu", true, {"alpha"}},
    {"hard_sigmoid", "hard_sigmoid", false, {"slope", "offset"}},
    {"hard_swish", "hard_swish", true, {"threshold", "scale", "offset"}},
    {"softplus", "softplus", true, {"beta", "threshold"}},
    {"softsign", "softsign", true, {}},
    {"exp", "exp", false, {}},
    {"log", "log", true, {}},
    {"sqrt", "sqrt", false, {}},
    {"rsqrt", "rsqrt", false, {}},
    {"square", "square", true, {}},
    {"abs", "abs", true, {}},
    {"reciprocal", "reciprocal", false, {}},
    {"clip", "clip", true, {"min", "max"}},
    {"sin", "sin", true, {}},
    {"cos", "cos", true, {}},
    {"erf", "erf", true, {}},
    {"log1p", "log1p", true, {}},
    {"pow", "pow", true, {"factor"}},
    {"mish", "mish", true, {"threshold"}},
    {"celu", "celu", true, {"alpha"}},
    {"selu", "selu", false, {"scale", "alpha"}},
    {"brelu", "brelu", true, {"t_min", "t_max"}},
    {"thresholded_relu", "thresholded_relu", true, {"threshold"}},
    {"hard_shrink", "hard_shrink", true, {"threshold"}},
    {"softshrink", "softshrink", true, {"lambda"}},
    {"logsigmoid", "logsigmoid", true, {}},
    {"tanh_shrink", "tanh_shrink", true, {}},
    {"expm1", "expm1", false, {}},
    {"log2", "log2", true, {}},
    {"log10", "log10", true, {}},
    {"tan", "tan", true, {}},
    {"asin", "asin", true, {}},
    {"acos", "acos", true, {}},
    {"atan", "atan", true, {}},
    {"sinh", "sinh", true, {}},
    {"cosh", "cosh", true, {}},
    {"asinh", "asinh", true, {}},
    {"acosh", "acosh", true, {}},
    {"atanh", "atanh", true, {}},
    {"stanh", "stanh", true, {"scale_a", "scale_b"}},
    {"soft_relu", "soft_relu", false, {"threshold"}},
    {"logit", "logit", true, {"eps"}},
};

const Unary* FindUnary(std::string type) {
  const std::string suffix = "_grad";
  if (type.size() > suffix.size() &&
      type.compare(type.size() - suffix.size(), suffix.size(), suffix) == 0)
    type.resize(type.size() - suffix.size());
  for (const Unary& unary : kUnary)
    if (type == unary.type) return &unary;
  return nullptr;
}

std::string KernelName(const Unary& unary, const OpDesc& op) {
  const bool by_tanh =
      unary.type == absl::string_view("gelu") && op.Attr<bool>("approximate");
  return absl::StrCat("unary_", unary.kernel, by_tanh ? "_tanh" : "");
}

// UnaryArgs' a, b, c.
using Numbers = std::array<double, 3>;

Numbers ReadElementwiseAttrs(const Unary& unary, const OpDesc& op) {
  Numbers numbers{};
  for (size_t i = 0; i < 3; ++i)
    if (unary.attrs[i] != nullptr)
      numbers[i] = double{op.Attr<float>(unary.attrs[i])};
  return numbers;
}

absl::StatusOr<Step> UnaryStep(DeviceBinding* binding, const std::string& name,
                               const Numbers& numbers, Tensor* v, Tensor* dout,
                               Tensor* out) {
  return ForReal(*out, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const auto start, Starter<UnaryArgsOf<T>>::Find(
                                              binding, KernelFor<T>(name)));
    return Step([=](const RunContext&) {
      UnaryArgsOf<T> run{};
      run.v = Read<T>(v);
      run.dout = Read<T>(dout);
      run.out = Write<T>(out);
      run.n = out->size();
      run.a = static_cast<T>(numbers[0]);
      run.b = static_cast<T>(numbers[1]);
      run.c = static_cast<T>(numbers[2]);
      return start.Elements(Packs(run.n), run);
    });
  });
}

// clip's bounds, pow's factor.
absl::Status NoElementwiseTensors(const BindContext& context) {
  for (const char* slot : {"Min", "Max", "FactorTensor"})
    if (context.Input(slot) != nullptr)
      return Unimplemented("an input '%s'", slot);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindUnary(BindContext* context, DeviceBinding* binding) {
  PD_RETURN_IF_ERROR(NoElementwiseTensors(*context));
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameNumbers({x, out}));
  const Unary& unary = *FindUnary(context->op().type);
  PD_RETURN_IF_ERROR(InOneLayout(context, {&x}, {&out}));
  context->MayShare(x, out);
  return UnaryStep(binding, KernelName(unary, context->op()),
                   ReadElementwiseAttrs(unary, context->op()), x, nullptr, out);
}

absl::StatusOr<Step> BindUnaryGrad(BindContext* context,
                                   DeviceBinding* binding) {
  PD_RETURN_IF_ERROR(NoElementwiseTensors(*context));
  const Unary& unary = *FindUnary(context->op().type);
  Tensor* v = context->Input(unary.of_x ? "X" : "Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (v == nullptr || dout == nullptr || dx == nullptr)
    return Unimplemented("a variable is missing");
  PD_RETURN_IF_ERROR(SameNumbers({v, dout, dx}));
  PD_RETURN_IF_ERROR(ExpectElements(*context, unary.of_x ? "X" : "Out",
                                    dout->dtype(), dout->size()));
  if (Tensor* other = context->Input(unary.of_x ? "Out" : "X"))
    context->NoBuffer(other);
  PD_RETURN_IF_ERROR(InOneLayout(context, {&v, &dout}, {&dx}));
  context->MayShare(dout, dx);
  return UnaryStep(binding,
                   absl::StrCat(KernelName(unary, context->op()), "_grad"),
                   ReadElementwiseAttrs(unary, context->op()), v, dout, dx);
}

absl::StatusOr<Step> BindElementwiseScale(BindContext* context,
                                          DeviceBinding* binding) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameNumbers({x, out}));
  if (context->Input("ScaleTensor") != nullptr)
    return Unimplemented("a scale in a tensor");
  PD_RETURN_IF_ERROR(InOneLayout(context, {&x}, {&out}));
  const Numbers numbers = {double{context->Attr<float>("scale")},
                           double{context->Attr<float>("bias")}};
  context->MayShare(x, out);
  return UnaryStep(binding,
                   context->Attr<bool>("bias_after_scale")
                       ? "unary_scale"
                       : "unary_scale_after",
                   numbers, x, nullptr, out);
}

// Functions in steps, whose gradients are zeros.
absl::StatusOr<Step> BindSteps(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameNumbers({x, out}));
  context->MayShare(x, out);
  return UnaryStep(binding, absl::StrCat("unary_", context->op().type), {}, x,
                   nullptr, out);
}

absl::StatusOr<Step> BindStepsGrad(BindContext* context,
                                   DeviceBinding* binding) {
  Tensor* dx = context->Output("X@GRAD");
  for (const char* slot : {"X", "Out", "Out@GRAD"})
    if (Tensor* t = context->Input(slot)) context->NoBuffer(t);
  PD_RETURN_IF_ERROR(SameNumbers({dx}));
  return BindFillStep(binding, 0, dx);
}

// Labels mixed with an even distribution, and its gradient, which is scaled.
absl::StatusOr<Step> BindLabelSmooth(BindContext* context,
                                     DeviceBinding* binding) {
  const bool grad = context->Output("X@GRAD") != nullptr;
  Tensor* x = context->Input(grad ? "Out@GRAD" : "X");
  Tensor* out = context->Output(grad ? "X@GRAD" : "Out");
  PD_RETURN_IF_ERROR(SameNumbers({x, out}));
  if (!grad && context->Input("PriorDist") != nullptr)
    return Unimplemented("an input 'PriorDist'");
  const double epsilon = double{context->Attr<float>("epsilon")};
  const int64_t classes = x->rank() == 0 ? 1 : x->shape().back();
  const Numbers numbers = {1 - epsilon,
                           grad ? 0.0 : epsilon / static_cast<double>(classes)};
  context->MayShare(x, out);
  return UnaryStep(binding, "unary_scale", numbers, x, nullptr, out);
}

struct Operands {
  Tensor *x, *y;
  Broadcast b;
  LayoutPtr layout;  // of what has the shape of Out
};

// An operand without extents of 1 has the shape of Out.
bool HasRankOfOut(const Operands& o) {
  return (o.b.x != o.b.out || o.x->shape() == o.b.out) &&
         (o.b.y != o.b.out || o.y->shape() == o.b.out);
}

absl::StatusOr<Operands> ReadOperands(BindContext* context) {
  Operands o{context->Input("X"), context->Input("Y"), {}, nullptr};
  if (o.x == nullptr || o.y == nullptr)
    return Unimplemented("an operand is missing");
  PD_RETURN_IF_ERROR(SameNumbers({o.x, o.y}));
  PD_ASSIGN_OR_RETURN(o.b,
                      BroadcastShapes(o.x->shape(), o.y->shape(),
                                      context->op().Attr<int32_t>("axis")));
  for (const Tensor* operand : {o.x, o.y})
    if (o.layout == nullptr && HasRankOfOut(o)) o.layout = operand->layout();
  if (o.layout != nullptr && o.layout->shape != o.b.out) o.layout = nullptr;
  return o;
}

// The operands as the kernels want them. An operand that is repeated along some
// dimension is row-major.
absl::Status AskForOperands(BindContext* context, Operands* o) {
  for (Tensor** operand : {&o->x, &o->y}) {
    const bool whole = (*operand)->shape() == o->b.out;
    PD_ASSIGN_OR_RETURN(*operand,
                        context->In(*operand, whole ? o->layout : nullptr));
  }
  return absl::OkStatus();
}

std::vector<int64_t> OperandStrides(const Operands& o, const Shape& shape) {
  return shape == o.b.out ? StridesIn(o.layout, shape)
                          : BroadcastStrides(shape, o.b.out);
}

// Whether packs of elements begin at packs of both operands.
bool GoesInPacks(const Walk<2>& walk) {
  const int last = walk.dims - 1;
  if (last < 0 || walk.extents[last] % kPack != 0) return false;
  for (const int64_t stride : walk.strides[last])
    if (stride != 0 && stride != 1) return false;
  for (int d = 0; d < last; ++d)
    for (int k = 0; k < 2; ++k)
      if (walk.strides[last][k] == 1 && walk.strides[d][k] % kPack != 0)
        return false;
  return true;
}

absl::StatusOr<Step> BinaryStep(DeviceBinding* binding, const std::string& name,
                                const Operands& o, Tensor* out) {
  Walk<2> walk;
  const auto x_strides = OperandStrides(o, o.b.x);
  const auto y_strides = OperandStrides(o, o.b.y);
  for (const size_t d : OrderIn(o.layout, o.b.out.size()))
    if (!AddExtent<2>(o.b.out[d], {x_strides[d], y_strides[d]}, &walk))
      return TooManyDims();
  const bool same = o.b.x == o.b.out && o.b.y == o.b.out;
  const bool packs = !same && GoesInPacks(walk);
  // X may be scratch, which has no dtype.
  return ForReal(*o.y, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const auto start, Starter<BinaryArgsOf<T>>::Find(
                                              binding, KernelFor<T>(name)));
    return Step(
        [=, x = o.x, y = o.y, n = NumElements(o.b.out)](const RunContext&) {
          BinaryArgsOf<T> run{};
          run.x = Read<T>(x);
          run.y = Read<T>(y);
          if (out->dtype() == DType::kBool)
            run.answers = out->data<bool>();
          else
            run.out = Write<T>(out);
          run.n = n;
          run.same = same;
          run.packs = packs;
          run.walk = walk;
          return start.Elements(same || packs ? Packs(run.n) : run.n, run);
        });
  });
}

// "elementwise_add": "add"
std::string BinaryName(const std::string& type) {
  std::string name = type.substr(type.find('_') + 1);
  const size_t grad = name.rfind("_grad");
  if (grad != std::string::npos) name.resize(grad);
  return name;
}

absl::StatusOr<Step> BindBinary(BindContext* context, DeviceBinding* binding) {
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(Operands o, ReadOperands(context));
  PD_RETURN_IF_ERROR(SameNumbers({o.x, out}));
  PD_RETURN_IF_ERROR(AskForOperands(context, &o));
  PD_ASSIGN_OR_RETURN(out, context->Out(out, o.layout));
  for (Tensor* operand : {o.x, o.y})
    if (operand->shape() == out->shape()) context->MayShare(operand, out);
  return BinaryStep(
      binding, absl::StrCat("binary_", BinaryName(context->op().type)), o, out);
}

absl::StatusOr<Step> BindCompare(BindContext* context, DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const Operands o, ReadOperands(context));
  return BinaryStep(binding, absl::StrCat("compare_", context->op().type), o,
                    context->Output("Out"));
}

// The gradient of one operand: what it was repeated along is summed.
struct OperandGrad {
  bool of_x;
  Tensor *out, *dout, *to;
};
absl::StatusOr<Step> OneGrad(BindContext* context, DeviceBinding* binding,
                             const std::string& name, const Operands& o,
                             const OperandGrad& grad) {
  Reduction r;
  r.kernel = absl::StrCat("binary_", name, grad.of_x ? "_dx" : "_dy");
  r.x = o.x;
  r.y = o.y;
  r.z = grad.out;
  r.dz = grad.dout;
  r.out = grad.to;
  r.read = 2;
  r.shape.factor = 1;
  r.shape.n = grad.to->size();
  r.shape.m = r.shape.n == 0 ? 0 : grad.dout->size() / r.shape.n;
  const Shape& part = grad.of_x ? o.b.x : o.b.y;
  const auto x_strides = OperandStrides(o, o.b.x);
  const auto y_strides = OperandStrides(o, o.b.y);
  const auto z_strides = OperandStrides(o, o.b.out);
  const LayoutPtr layout = part == o.b.out ? o.layout : nullptr;  // of `to`
  for (const size_t d : OrderIn(layout, part.size())) {
    const bool summed = part[d] == 1 && o.b.out[d] != 1;
    if (!AddExtent<3>(o.b.out[d], {x_strides[d], y_strides[d], z_strides[d]},
                      summed ? &r.shape.inner : &r.shape.outer))
      return TooManyDims();
  }
  return BindReduction(context, binding, r);
}

absl::StatusOr<Step> BindBinaryGrad(BindContext* context,
                                    DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(Operands o, ReadOperands(context));
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* out = context->Input("Out");
  const std::string name = BinaryName(context->op().type);
  const bool linear = name == "add" || name == "sub";
  if (dout == nullptr || (name == "div" && out == nullptr))
    return Unimplemented("a variable is missing");
  PD_RETURN_IF_ERROR(SameNumbers({o.x, out, dout}));
  if (dout->shape() != o.b.out)
    return InvalidArgument("Out@GRAD has shape %s; X and Y make %s",
                           ToString(dout->shape()), ToString(o.b.out));
  if (out != nullptr && name != "div") {
    context->NoBuffer(out);
    out = nullptr;
  }
  if (out != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectInput(*context, "Out", dout->dtype(), dout->shape()));
  if ((linear || o.layout == nullptr) && HasRankOfOut(o))
    o.layout = dout->layout();
  PD_ASSIGN_OR_RETURN(dout, context->In(dout, o.layout));
  if (linear) {
    context->NoBuffer(o.x);
    context->NoBuffer(o.y);
    o.x = o.y = dout;  // something whose places are not looked at
  } else {
    PD_RETURN_IF_ERROR(AskForOperands(context, &o));
  }
  if (out != nullptr) {
    PD_ASSIGN_OR_RETURN(out, context->In(out, o.layout));
  }
  std::vector<Step> steps;
  for (const bool of_x : {true, false}) {
    Tensor* to = context->Output(of_x ? "X@GRAD" : "Y@GRAD");
    if (to == nullptr) continue;
    const bool whole = (of_x ? o.b.x : o.b.y) == o.b.out;
    if (to->shape() == o.b.out) {
      PD_ASSIGN_OR_RETURN(to, context->Out(to, o.layout));
    }
    if (whole && linear && (of_x || name == "add")) {
      context->Alias(dout, to);
      continue;
    }
    PD_ASSIGN_OR_RETURN(
        Step step, OneGrad(context, binding, name, o, {of_x, out, dout, to}));
    steps.push_back(std::move(step));
  }
  return InOrder(std::move(steps));
}

// X is a list; its sum is formed from the left.
absl::StatusOr<Step> BindSum(BindContext* context, DeviceBinding* binding) {
  Tensor* out = context->Output("Out");
  std::vector<Step> steps;
  const size_t n = context->InputCount("X");
  std::vector<Tensor*> x(n);
  LayoutPtr layout;
  for (size_t i = 0; i < n; ++i) {
    x[i] = context->Input("X", i);
    if (x[i] == nullptr || x[i]->shape() != out->shape())
      return Unimplemented("X %d is missing or has another shape", i);
    PD_RETURN_IF_ERROR(SameNumbers({x[i], out}));
    if (layout == nullptr) layout = x[i]->layout();
  }
  for (Tensor*& one : x) {
    PD_ASSIGN_OR_RETURN(one, context->In(one, layout));
  }
  PD_ASSIGN_OR_RETURN(out, context->Out(out, layout));
  if (n == 1) {
    context->Alias(x[0], out);
    return Step();
  }
  Tensor* total = x[0];
  // The sum of halves is rounded when it is complete.
  Tensor* const part =
      n == 2 || SizeOf(out->dtype()) > 2
          ? out
          : context->Scratch(static_cast<size_t>(out->size()) * sizeof(float));
  for (size_t i = 1; i < n; ++i) {
    const Operands o{
        total, x[i], {out->shape(), out->shape(), out->shape()}, layout};
    Tensor* const to = i + 1 < n ? part : out;
    PD_ASSIGN_OR_RETURN(Step step, BinaryStep(binding, "binary_add", o, to));
    steps.push_back(std::move(step));
    total = to;
  }
  return InOrder(std::move(steps));
}

}  // namespace

absl::StatusOr<Step> BindBiasStep(DeviceBinding* binding, Tensor* bias,
                                  bool relu, Tensor* to) {
  Shape row(to->rank(), 1);
  row.back() = bias->size();
  const Operands o{to, bias, {to->shape(), row, to->shape()}, nullptr};
  PD_ASSIGN_OR_RETURN(Step add, BinaryStep(binding, "binary_add", o, to));
  if (!relu) return add;
  PD_ASSIGN_OR_RETURN(Step act,
                      UnaryStep(binding, "unary_relu", {}, to, nullptr, to));
  return InOrder({std::move(add), std::move(act)});
}

void AddElementwise(KernelTable* kernels) {
  for (const Unary& unary : kUnary) {
    kernels->Add(unary.type, AnyLayout("cuda", BindUnary));
    kernels->Add(absl::StrCat(unary.type, "_grad"),
                 AnyLayout("cuda", BindUnaryGrad));
  }
  kernels->Add("scale", AnyLayout("cuda", BindElementwiseScale));
  for (const char* type : {"sign", "floor", "ceil", "round", "trunc"})
    kernels->Add(type, {"cuda", BindSteps});
  for (const char* type :
       {"floor_grad", "ceil_grad", "round_grad", "trunc_grad"})
    kernels->Add(type, {"cuda", BindStepsGrad});
  kernels->Add("label_smooth", {"cuda", BindLabelSmooth});
  kernels->Add("label_smooth_grad", {"cuda", BindLabelSmooth});
  for (const char* name : {"add", "sub", "mul", "div", "max", "min", "pow"}) {
    kernels->Add(absl::StrCat("elementwise_", name),
                 AnyLayout("cuda", BindBinary));
    kernels->Add(absl::StrCat("elementwise_", name, "_grad"),
                 AnyLayout("cuda", BindBinaryGrad));
  }
  for (const char* name : {"equal", "not_equal", "less_than", "less_equal",
                           "greater_than", "greater_equal"})
    kernels->Add(name, {"cuda", BindCompare});
  kernels->Add("sum", AnyLayout("cuda", BindSum));
}

}  // namespace pd::cuda
