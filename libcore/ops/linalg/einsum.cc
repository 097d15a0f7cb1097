// SPDX-License-Identifier: Apache-2.0
// Sums of products in Einstein's notation (see einsum_labels.h). Operands are
// contracted from left to right, keeping the labels that are still needed; two
// of them by a matrix product over [labels of both that stay, labels of one,
// labels of both that are summed].
// Gradient of an operand: the contraction of Out@GRAD and the conjugates of
// the others to its labels; put on the diagonal where it has a label twice,
// repeated along labels that nobody else has.
// InnerCache keeps the operands for PaddlePaddle's gradient op, which does not
// read them otherwise; XShape has their shapes.
#include <algorithm>
#include <complex>
#include <cstring>
#include <set>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/copy_loop.h"
#include "libcore/ops/common/gemm.h"
#include "libcore/ops/common/unary.h"
#include "libcore/ops/linalg/einsum_labels.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// A tensor with a label for each axis.
template <typename T>
struct Labelled {
  const T* data = nullptr;
  Labels labels;
  Shape shape;
  std::vector<T> own;  // where it is a result; data points into it
};

// How far one step along `label` goes: over all axes that have it, but those
// of extent 1, which broadcast.
int64_t StrideOf(const Labels& labels, const Shape& shape, Label label) {
  const auto strides = RowMajorStrides(shape);
  int64_t stride = 0;
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] == label && shape[i] != 1) stride += strides[i];
  return stride;
}

bool Has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

using Extents = std::map<Label, int64_t>;

int64_t EinsumProduct(const Labels& labels, const Extents& extents) {
  int64_t product = 1;
  for (const Label label : labels) product *= extents.at(label);
  return product;
}

// `from` in contiguous memory with axes `to`, summed over the labels that `to`
// lacks; those that `from` lacks are broadcast. `conj`: its conjugate.
template <typename T>
std::vector<T> Rearrange(const Labelled<T>& from, const Labels& to,
                         const Extents& extents, bool conj) {
  StridedLoop<2> loop;
  int64_t size = 1;
  Shape shape;
  for (const Label label : to) shape.push_back(extents.at(label));
  const auto strides = RowMajorStrides(shape);
  for (size_t i = 0; i < to.size(); ++i) {
    loop.Add(shape[i], {StrideOf(from.labels, from.shape, to[i]), strides[i]});
    size *= shape[i];
  }
  for (const Label label : Distinct(from.labels)) {
    if (Has(to, label)) continue;
    // An operand of extent 1 along a longer label counts once for each.
    loop.Add(extents.at(label), {StrideOf(from.labels, from.shape, label), 0});
  }
  std::vector<T> result(static_cast<size_t>(size), T(0));
  const auto s = loop.row_strides();
  loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
    for (int64_t j = 0; j < n; ++j) {
      const T v = from.data[at[0] + j * s[0]];
      result[static_cast<size_t>(at[1] + j * s[1])] +=
          conj ? unary_internal::Conj(v) : v;
    }
  });
  return result;
}

template <typename T>
Labelled<T> Made(std::vector<T> data, Labels labels, const Extents& extents) {
  Labelled<T> made;
  made.own = std::move(data);
  made.data = made.own.data();
  for (const Label label : labels) made.shape.push_back(extents.at(label));
  made.labels = std::move(labels);
  return made;
}

Labels Joined(Labels a, const Labels& b, const Labels& c) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

// The product of two, summed to the labels in `keep` that either has.
template <typename T>
Labelled<T> Contract(const Labelled<T>& a, const Labelled<T>& b,
                     const Labels& keep, const Extents& extents) {
  Labels both, only_a, only_b, summed;
  for (const Label label : Distinct(a.labels)) {
    if (Has(b.labels, label))
      (Has(keep, label) ? both : summed).push_back(label);
    else if (Has(keep, label))
      only_a.push_back(label);
  }
  for (const Label label : Distinct(b.labels))
    if (!Has(a.labels, label) && Has(keep, label)) only_b.push_back(label);
  const auto left = Rearrange(a, Joined(both, only_a, summed), extents, false);
  const auto right = Rearrange(b, Joined(both, summed, only_b), extents, false);
  const int64_t count = EinsumProduct(both, extents),
                m = EinsumProduct(only_a, extents),
                n = EinsumProduct(only_b, extents),
                k = EinsumProduct(summed, extents);
  std::vector<T> out(static_cast<size_t>(count * m * n));
  GemmBatch batch(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    batch[static_cast<size_t>(i)] = {{i * m * k, i * k * n}};
  if (!out.empty())
    Gemm<T>({m, n, k, false, false}, batch, T(1), left.data(), right.data(),
            out.data());
  return Made(std::move(out), Joined(both, only_a, only_b), extents);
}

// All of them, contracted to `target`, which has only labels of theirs.
template <typename T>
std::vector<T> ContractAll(std::vector<Labelled<T>> operands,
                           const Labels& target, const Extents& extents) {
  Labelled<T> result = std::move(operands.front());
  if (!result.own.empty()) result.data = result.own.data();
  for (size_t i = 1; i < operands.size(); ++i) {
    Labels keep = target;
    for (size_t j = i + 1; j < operands.size(); ++j)
      keep.insert(keep.end(), operands[j].labels.begin(),
                  operands[j].labels.end());
    Labelled<T> next = Contract(result, operands[i], keep, extents);
    result = std::move(next);
    result.data = result.own.data();
  }
  return Rearrange(result, target, extents, false);
}

template <typename T>
Labelled<T> LabelledTensor(const Tensor* t, const Labels& labels) {
  Labelled<T> made;
  made.data = t->data<T>();
  made.labels = labels;
  made.shape = t->shape();
  return made;
}

absl::StatusOr<Equation> ReadEquation(const BindContext& context,
                                      const std::vector<Tensor*>& operands) {
  std::vector<Shape> shapes;
  for (const Tensor* t : operands) {
    if (t == nullptr || t->dtype() != operands[0]->dtype())
      return InvalidArgument("operands are missing or of several dtypes");
    shapes.push_back(t->shape());
  }
  return ParseEquation(context.Attr<std::string>("equation"), shapes);
}

absl::StatusOr<Step> BindEinsum(BindContext* context) {
  Tensor* out = context->Output("Out");
  std::vector<Tensor*> operands;
  for (size_t i = 0; i < context->InputCount("Operands"); ++i)
    operands.push_back(context->Input("Operands", i));
  std::vector<std::pair<Tensor*, Tensor*>> kept;
  for (size_t i = 0; i < operands.size(); ++i)
    if (Tensor* cache = context->Output("InnerCache", i); cache != nullptr)
      kept.emplace_back(operands[i], cache);
  PD_ASSIGN_OR_RETURN(const Equation e, ReadEquation(*context, operands));
  return DispatchArithmetic(
      out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          std::vector<Labelled<T>> labelled;
          for (size_t i = 0; i < operands.size(); ++i)
            labelled.push_back(LabelledTensor<T>(operands[i], e.operands[i]));
          const auto result =
              ContractAll(std::move(labelled), e.out, e.extents);
          std::copy(result.begin(), result.end(), out->data<T>());
          for (const auto& [from, to] : kept)
            if (from->bytes() > 0)
              std::memcpy(to->raw(), from->raw(), from->bytes());
          return absl::OkStatus();
        });
      });
}

// The gradient of operand `which`, in its own shape.
template <typename T>
void EinsumBackward(const Equation& e, const std::vector<Tensor*>& operands,
                    const Tensor* dout, size_t which, Tensor* to) {
  Labelled<T> g = LabelledTensor<T>(dout, e.out);
  std::vector<Labelled<T>> others = {g};
  std::set<Label> known(e.out.begin(), e.out.end());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i == which) continue;
    const Labels labels = Distinct(e.operands[i]);
    others.push_back(
        Made(Rearrange(LabelledTensor<T>(operands[i], e.operands[i]), labels,
                       e.extents, true),
             labels, e.extents));
    known.insert(labels.begin(), labels.end());
  }
  for (Labelled<T>& other : others)
    if (!other.own.empty()) other.data = other.own.data();
  // Its labels that the others have; along the rest the gradient repeats.
  const Labels& labels = e.operands[which];
  Labels target;
  for (const Label label : Distinct(labels))
    if (known.count(label) > 0) target.push_back(label);
  const std::vector<T> sum = ContractAll(std::move(others), target, e.extents);
  Shape shape;
  for (const Label label : target) shape.push_back(e.extents.at(label));
  const auto strides = RowMajorStrides(shape);
  StridedLoop<2> loop;
  for (const Label label : Distinct(labels)) {
    const auto at = std::find(target.begin(), target.end(), label);
    loop.Add(
        e.extents.at(label),
        {at == target.end() ? 0
                            : strides[static_cast<size_t>(at - target.begin())],
         StrideOf(labels, to->shape(), label)});
  }
  T* result = to->data<T>();
  std::fill_n(result, to->size(), T(0));
  const auto s = loop.row_strides();
  loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
    for (int64_t j = 0; j < n; ++j)
      result[at[1] + j * s[1]] += sum[static_cast<size_t>(at[0] + j * s[0])];
  });
}

// The operands, or what the forward op has kept of them.
const char* OperandSlot(const OpDesc& op) {
  return op.Input("Operands").empty() ? "InnerCache" : "Operands";
}

absl::StatusOr<Step> BindEinsumGrad(BindContext* context) {
  Tensor* dout = context->Input("Out@GRAD");
  const char* slot = OperandSlot(context->op());
  std::vector<Tensor*> operands, grads;
  for (size_t i = 0; i < context->InputCount(slot); ++i) {
    operands.push_back(context->Input(slot, i));
    grads.push_back(context->Output("Operands@GRAD", i));
  }
  for (const char* unread : {"InnerCache", "x_shape"})
    for (size_t i = 0; i < context->InputCount(unread); ++i)
      if (Tensor* t = context->Input(unread, i);
          t != nullptr &&
          std::find(operands.begin(), operands.end(), t) == operands.end())
        context->NoBuffer(t);
  PD_ASSIGN_OR_RETURN(const Equation e, ReadEquation(*context, operands));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", operands[0]->dtype(),
                                 e.ShapeOf(e.out)));
  return DispatchArithmetic(
      dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          for (size_t i = 0; i < grads.size(); ++i)
            if (grads[i] != nullptr)
              EinsumBackward<T>(e, operands, dout, i, grads[i]);
          return absl::OkStatus();
        });
      });
}

absl::Status InferEinsum(InferContext* context) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < context->InputCount("Operands"); ++i) {
    shapes.push_back(context->Input("Operands", i).shape);
    context->Share("Operands", "InnerCache", i);
    context->Share("Operands", "XShape", i);
  }
  PD_ASSIGN_OR_RETURN(
      const Equation e,
      ParseEquation(context->Attr<std::string>("equation"), shapes));
  // Versions differ in how many they list.
  const DType dtype = context->Input("Operands").dtype;
  for (const char* slot : {"InnerCache", "XShape"})
    for (size_t i = shapes.size(); i < context->OutputCount(slot); ++i)
      context->SetOutput(slot, Shape{0}, dtype, i);
  context->SetOutput("Out", e.ShapeOf(e.out), dtype);
  return absl::OkStatus();
}

absl::Status InferEinsumGrad(InferContext* context) {
  const char* slot = OperandSlot(context->op());
  for (size_t i = 0; i < context->OutputCount("Operands@GRAD"); ++i) {
    if (i >= context->InputCount(slot))
      return InvalidArgument("'%s' holds %d operands; gradient %d is wanted",
                             slot, context->InputCount(slot), i);
    TensorMeta meta = context->Input(slot, i);
    meta.value = nullptr;
    context->SetOutput("Operands@GRAD", std::move(meta), i);
  }
  return absl::OkStatus();
}

// PaddlePaddle's gradient op, of InnerCache and x_shape where the forward op
// has those, else of Operands.
absl::StatusOr<std::vector<OpDesc>> MakeEinsumGrad(const GradRequest& request) {
  const OpDesc& op = request.op;
  OpDesc grad;
  grad.type = "einsum_grad";
  grad.attrs = op.attrs;
  if (op.Output("InnerCache").size() == op.Input("Operands").size() &&
      op.Output("XShape").size() == op.Input("Operands").size()) {
    grad.SetInput("InnerCache", op.Output("InnerCache"));
    grad.SetInput("x_shape", op.Output("XShape"));
  } else {
    grad.SetInput("Operands", op.Input("Operands"));
  }
  grad.SetInput("Out@GRAD", {GradName(op.Out("Out"))});
  std::vector<std::string> grads;
  bool any = false;
  for (const std::string& name : op.Input("Operands")) {
    const bool wanted = request.needs_grad(name);
    any = any || wanted;
    grads.push_back(wanted ? GradName(name) : std::string(kEmptyVar));
  }
  grad.SetOutput("Operands@GRAD", std::move(grads));
  if (!any) return std::vector<OpDesc>();
  return std::vector<OpDesc>{std::move(grad)};
}

}  // namespace

absl::Status RegisterEinsum(OpRegistry* registry) {
  OpDef op("einsum");
  op.Inputs("Operands").Output("Out");
  op.OptionalOutputs("InnerCache").OptionalOutputs("XShape");
  op.RequiredAttr("equation", AttrType::kString);
  op.Infer(InferEinsum).Reference(BindEinsum).Grad(MakeEinsumGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("einsum_grad");
  grad.OptionalInputs("Operands").OptionalInputs("InnerCache");
  grad.OptionalInputs("x_shape").Input("Out@GRAD").Outputs("Operands@GRAD");
  grad.RequiredAttr("equation", AttrType::kString);
  grad.Infer(InferEinsumGrad).NoGrad().Reference(BindEinsumGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
