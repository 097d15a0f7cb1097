// SPDX-License-Identifier: Apache-2.0
// Out = Input, but for the part Input[starts : ends : steps] along `axes`,
// which becomes a value: ValueTensor, or `values` of shape `shape` (programs
// before 2.5 have bool_values, int32_values, ... by dtype). The value
// broadcasts to the part without decrease_axes and with ones at none_axes.
// Starts, ends and steps may come from tensors. Input@GRAD: Out@GRAD with 0 in
// the part; ValueTensor@GRAD: the part of Out@GRAD, summed where the value was
// repeated.
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/strided_loop.h"
#include "libcore/ops/manipulation/slice_range.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Numbers of an attribute, or of tensors read in every step.
struct Ints {
  std::vector<int64_t> attr;
  std::vector<Tensor*> tensors;

  std::vector<int64_t> Read() const {
    if (tensors.empty()) return attr;
    std::vector<int64_t> all;
    for (const Tensor* t : tensors)
      for (int64_t v : IntsOf(*t)) all.push_back(v);
    return all;
  }
};

Ints IntsFrom(const BindContext& context, const char* attr, const char* slot) {
  Ints ints;
  ints.attr = IntsAttr(context.op(), attr);
  for (size_t i = 0; i < context.InputCount(slot); ++i)
    if (Tensor* t = context.Input(slot, i)) ints.tensors.push_back(t);
  return ints;
}

bool Contains(const std::vector<int64_t>& list, size_t axis) {
  for (int64_t v : list)
    if (v == static_cast<int64_t>(axis)) return true;
  return false;
}

// The part of a tensor that is set.
class SetValuePart {
 public:
  SetValuePart(const BindContext& context, const Shape& full)
      : full_(full),
        axes_(IntsAttr(context.op(), "axes")),
        decrease_(IntsAttr(context.op(), "decrease_axes")),
        none_(IntsAttr(context.op(), "none_axes")),
        starts_(IntsFrom(context, "starts", "StartsTensorList")),
        ends_(IntsFrom(context, "ends", "EndsTensorList")),
        steps_(IntsFrom(context, "steps", "StepsTensorList")) {}

  // The part's elements (tensor 0, from `offset`) and those of a value of shape
  // `value` (tensor 1).
  struct Place {
    StridedLoop<2> loop;
    int64_t offset = 0;
  };
  absl::StatusOr<Place> Find(const Shape& value) const;

 private:
  // The extents that a value is broadcast to, and for each the axis of the
  // tensor; -1: none.
  void Targets(const Shape& part, Shape* extents,
               std::vector<int64_t>* axes) const;

  Shape full_;
  std::vector<int64_t> axes_, decrease_, none_;
  Ints starts_, ends_, steps_;
};

void SetValuePart::Targets(const Shape& part, Shape* extents,
                           std::vector<int64_t>* axes) const {
  size_t none = 0;
  const auto add = [&](int64_t extent, int64_t axis) {
    extents->push_back(extent);
    axes->push_back(axis);
  };
  for (size_t d = 0; d < part.size(); ++d) {
    for (; none < none_.size() && none_[none] <= static_cast<int64_t>(d);
         ++none)
      add(1, -1);
    if (!Contains(decrease_, d)) add(part[d], static_cast<int64_t>(d));
  }
  for (; none < none_.size(); ++none) add(1, -1);
}

absl::StatusOr<SetValuePart::Place> SetValuePart::Find(
    const Shape& value) const {
  const auto starts = starts_.Read(), ends = ends_.Read();
  auto steps = steps_.Read();
  if (steps.empty()) steps.assign(axes_.size(), 1);
  if (starts.size() != axes_.size() || ends.size() != axes_.size() ||
      steps.size() != axes_.size())
    return InvalidArgument(
        "%d axes, %d starts, %d ends, %d steps; expected as "
        "many",
        axes_.size(), starts.size(), ends.size(), steps.size());
  Place place;
  Shape part = full_;
  std::vector<int64_t> strides = RowMajorStrides(full_);
  for (size_t i = 0; i < axes_.size(); ++i) {
    PD_ASSIGN_OR_RETURN(const int axis,
                        NormalizeAxis(axes_[i], full_.size(), "axes"));
    const size_t d = static_cast<size_t>(axis);
    if (steps[i] == 0) return InvalidArgument("a step is 0");
    int64_t end = ends[i];
    // x[i] is start i, end i + 1; of the last element the end is "0".
    if (starts[i] == -1 && end == 0 && steps[i] == 1 && Contains(decrease_, d))
      end = full_[d];
    const SliceRange range = RangeOf(starts[i], end, steps[i], full_[d], -1);
    part[d] = range.count;
    if (range.count > 0) place.offset += range.start * strides[d];
    strides[d] *= range.count > 1 ? steps[i] : 0;
  }
  Shape extents;
  std::vector<int64_t> axes;
  Targets(part, &extents, &axes);
  // Leading ones of the value may be more than there are axes.
  size_t skip = 0;
  while (value.size() - skip > extents.size() && value[skip] == 1) ++skip;
  const Shape shape(value.begin() + static_cast<int64_t>(skip), value.end());
  const auto value_strides = RowMajorStrides(shape);
  std::vector<int64_t> by_axis(full_.size(), 0);
  bool fits = shape.size() <= extents.size();
  for (size_t k = 0; fits && k < shape.size(); ++k) {
    const size_t at = extents.size() - shape.size() + k;
    fits = shape[k] == 1 || shape[k] == extents[at];
    if (axes[at] >= 0 && shape[k] != 1)
      by_axis[static_cast<size_t>(axes[at])] = value_strides[k];
  }
  if (!fits)
    return InvalidArgument(
        "the part has shape %s; the value has %s, which "
        "does not broadcast to it",
        ToString(extents), ToString(value));
  for (size_t d = 0; d < full_.size(); ++d)
    place.loop.Add(part[d], {strides[d], by_axis[d]});
  return place;
}

// Calls body(element of the tensor, element of the value).
template <typename Body>
void ForEachSetValueElement(const SetValuePart::Place& place,
                            const Body& body) {
  const auto strides = place.loop.row_strides();
  place.loop.ForParts(0, place.loop.size(), [&](const auto& at, int64_t n) {
    for (int64_t j = 0; j < n; ++j)
      body(place.offset + at[0] + j * strides[0], at[1] + j * strides[1]);
  });
}

template <typename T, typename V>
T As(V v) {
  using Complex = std::complex<double>;
  if constexpr (std::is_same_v<V, Complex>) {
    if constexpr (std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, Complex>)
      return static_cast<T>(v);
    else
      return As<T>(v.real());
  } else if constexpr (std::is_same_v<T, Float16> ||
                       std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(v));
  } else {
    return static_cast<T>(v);
  }
}

// The value that attributes give.
template <typename T>
std::vector<T> AttrValues(const OpDesc& op) {
  std::vector<T> values;
  for (const char* name :
       {"values", "bool_values", "int32_values", "int64_values", "fp32_values",
        "fp64_values", "fp16_values"}) {
    const Attribute* a = op.FindAttr(name);
    if (a == nullptr || !values.empty()) continue;
    if (const auto* scalars = std::get_if<std::vector<ScalarAttr>>(a))
      for (const ScalarAttr& s : *scalars)
        values.push_back(std::visit([](auto v) { return As<T>(v); }, s.value));
    const auto add_all = [&](const auto* list) {
      if (list != nullptr)
        for (auto v : *list) values.push_back(As<T>(v));
    };
    add_all(std::get_if<std::vector<int32_t>>(a));
    add_all(std::get_if<std::vector<int64_t>>(a));
    add_all(std::get_if<std::vector<float>>(a));
    add_all(std::get_if<std::vector<double>>(a));
    if (const auto* list = std::get_if<std::vector<bool>>(a))
      for (bool v : *list) values.push_back(As<T>(v));
  }
  return values;
}

absl::Status InferSetValue(InferContext* context) {
  context->Share("Input", "Out");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSetValue(BindContext* context) {
  Tensor* input = context->Input("Input");
  Tensor* value = context->Input("ValueTensor");
  Tensor* out = context->Output("Out");
  if (value != input) context->MayShare(input, out);
  const SetValuePart part(*context, input->shape());
  const Shape shape =
      value != nullptr ? value->shape() : IntsAttr(context->op(), "shape");
  if (value != nullptr && value->dtype() != input->dtype())
    return InvalidArgument("Input is %s; ValueTensor is %s",
                           Name(input->dtype()), Name(value->dtype()));
  return DispatchAll(input->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    std::vector<T> given;
    if (value == nullptr) {
      given = AttrValues<T>(context->op());
      PD_RETURN_IF_ERROR(CheckedBytes(shape, sizeof(T)).status());
      if (static_cast<int64_t>(given.size()) != NumElements(shape))
        return InvalidArgument("there are %d values for shape %s", given.size(),
                               ToString(shape));
    }
    // vector<bool> has no elements to point to.
    auto bytes =
        std::make_shared<std::vector<uint8_t>>(given.size() * sizeof(T));
    for (size_t i = 0; i < given.size(); ++i) {
      const T v = given[i];
      std::memcpy(bytes->data() + i * sizeof(T), &v, sizeof(T));
    }
    return Step([=](const RunContext&) {
      PD_ASSIGN_OR_RETURN(const SetValuePart::Place place, part.Find(shape));
      const T* from = value != nullptr
                          ? value->data<T>()
                          : reinterpret_cast<const T*>(bytes->data());
      if (out->raw() != input->raw() && input->bytes() > 0)
        std::memcpy(out->raw(), input->raw(), input->bytes());
      T* to = out->data<T>();
      ForEachSetValueElement(place,
                             [&](int64_t at, int64_t v) { to[at] = from[v]; });
      return absl::OkStatus();
    });
  });
}

absl::Status InferSetValueGrad(InferContext* context) {
  context->Share("Out@GRAD", "Input@GRAD");
  if (context->HasInput("ValueTensor") &&
      context->HasOutput("ValueTensor@GRAD"))
    context->Share("ValueTensor", "ValueTensor@GRAD");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSetValueGrad(BindContext* context) {
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dinput = context->Output("Input@GRAD");
  Tensor* dvalue = context->Output("ValueTensor@GRAD");
  if (Tensor* value = context->Input("ValueTensor")) context->NoBuffer(value);
  const SetValuePart part(*context, dout->shape());
  const Shape shape = dvalue != nullptr ? dvalue->shape() : Shape();
  if (dvalue != nullptr && dvalue->dtype() != dout->dtype())
    return InvalidArgument("Out@GRAD is %s; ValueTensor is %s",
                           Name(dout->dtype()), Name(dvalue->dtype()));
  return DispatchArithmetic(
      dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          PD_ASSIGN_OR_RETURN(const SetValuePart::Place place,
                              part.Find(shape));
          const T* from = dout->data<T>();
          if (dvalue != nullptr) {
            std::memset(dvalue->raw(), 0, dvalue->bytes());
            T* to = dvalue->data<T>();
            ForEachSetValueElement(
                place, [&](int64_t at, int64_t v) { to[v] += from[at]; });
          }
          if (dinput != nullptr) {
            T* to = dinput->data<T>();
            std::copy_n(from, dout->size(), to);
            ForEachSetValueElement(place,
                                   [&](int64_t at, int64_t) { to[at] = T(0); });
          }
          return absl::OkStatus();
        });
      });
}

void AddSetValueArguments(OpDef* op) {
  op->OptionalInput("ValueTensor").OptionalInputs("StartsTensorList");
  op->OptionalInputs("EndsTensorList").OptionalInputs("StepsTensorList");
  op->RequiredAttr("axes", AttrType::kLongs).Attr("dtype", int32_t{5});
  for (const char* name :
       {"starts", "ends", "steps", "decrease_axes", "none_axes", "shape"})
    op->Attr(name, std::vector<int64_t>());
}

}  // namespace

absl::Status RegisterSetValue(OpRegistry* registry) {
  OpDef op("set_value");
  op.Input("Input").Output("Out");
  AddSetValueArguments(&op);
  op.Infer(InferSetValue).Reference(BindSetValue);
  op.Grad(GradSpec{
      "set_value_grad",
      {"ValueTensor", "StartsTensorList", "EndsTensorList", "StepsTensorList"},
      {},
      {"Out"},
      {"Input", "ValueTensor"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("set_value_grad");
  grad.Input("Out@GRAD").OptionalOutput("Input@GRAD");
  grad.OptionalOutput("ValueTensor@GRAD");
  AddSetValueArguments(&grad);
  grad.Infer(InferSetValueGrad).NoGrad().Reference(BindSetValueGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
