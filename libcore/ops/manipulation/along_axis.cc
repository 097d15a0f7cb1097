// SPDX-License-Identifier: Apache-2.0
// Elements named along one axis, at the same place in the others:
//   take_along_axis: Result[i] = Input[i with Index[i] along Axis]
//   put_along_axis: Result = Input, and Value[i] goes to i with Index[i] along
//     Axis: Reduce is assign (the last one stays), add, mul or multiply, mean,
//     amax, amin. Without Include_self Input's own element does not take part
//     where something is put. Value broadcasts to Index.
// Gradients, for a place p that n values (and Input's element) went to:
//   take       Input@GRAD[p] = sum of the Result@GRAD taken from it
//   assign     Input 0; the last Value: Result@GRAD[p]
//   add        both Result@GRAD[p]
//   mul        Result@GRAD[p] * Result[p] / operand
//   mean       Result@GRAD[p] / number of operands
//   amax, amin those equal to Result[p] share Result@GRAD[p]
// Input@GRAD is 0 at such places without Include_self.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/common/strided_loop.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

template <typename Body>
auto DispatchPut(DType dtype, const Body& body) {
  return DispatchTypes<float, double, int32_t, int64_t, uint8_t>(dtype, body);
}

// Which element of Input and of Value belongs to each element of Index.
class AlongAxisPlaces {
 public:
  static absl::StatusOr<AlongAxisPlaces> Of(const BindContext& context,
                                            const Shape& input,
                                            const Shape& value) {
    AlongAxisPlaces p;
    p.index_ = context.Input("Index");
    PD_RETURN_IF_ERROR(CheckIndexType("Index", p.index_->dtype()));
    const Shape& index = p.index_->shape();
    PD_ASSIGN_OR_RETURN(const int at,
                        NormalizeAxis(context.op().Attr<int32_t>("Axis"),
                                      input.size(), "Axis"));
    const size_t axis = static_cast<size_t>(at);
    bool fits = index.size() == input.size() && value.size() <= index.size();
    Shape wide(fits ? index.size() - value.size() : 0, 1);
    wide.insert(wide.end(), value.begin(), value.end());
    for (size_t i = 0; fits && i < index.size(); ++i)
      fits = (i == axis || index[i] <= input[i]) &&
             (wide[i] == 1 || wide[i] >= index[i]);
    if (!fits)
      return InvalidArgument(
          "Input has shape %s, Index %s, Value %s; expected one rank and no "
          "more indices than elements",
          ToString(input), ToString(index), ToString(value));
    const auto strides = RowMajorStrides(input);
    const auto values = RowMajorStrides(wide);
    p.extent_ = input[axis];
    p.stride_ = strides[axis];
    for (size_t i = 0; i < index.size(); ++i)
      p.loop_.Add(index[i],
                  {i == axis ? 0 : strides[i], wide[i] == 1 ? 0 : values[i]});
    return p;
  }

  absl::Status Check() const {
    return CheckIndices("Index", *index_, 0, extent_);
  }

  // Calls body(element of Index, of Input, of Value), in the order of Index.
  template <typename Body>
  void ForEach(const Body& body) const {
    if (index_->dtype() == DType::kInt64)
      ForEachOf(index_->data<int64_t>(), body);
    else
      ForEachOf(index_->data<int32_t>(), body);
  }

 private:
  template <typename I, typename Body>
  void ForEachOf(const I* index, const Body& body) const {
    int64_t i = 0;
    const auto strides = loop_.row_strides();
    loop_.ForParts(0, loop_.size(), [&](const auto& at, int64_t n) {
      for (int64_t j = 0; j < n; ++j, ++i)
        body(i, at[0] + j * strides[0] + index[i] * stride_,
             at[1] + j * strides[1]);
    });
  }

  Tensor* index_ = nullptr;
  int64_t extent_ = 0, stride_ = 1;
  StridedLoop<2> loop_;
};

absl::Status InferTake(InferContext* context) {
  const TensorMeta& input = context->Input("Input");
  const TensorMeta& index = context->Input("Index");
  PD_RETURN_IF_ERROR(CheckIndexType("Index", index.dtype));
  PD_RETURN_IF_ERROR(
      NormalizeAxis(context->Attr<int32_t>("Axis"), input.shape.size(), "Axis")
          .status());
  if (index.shape.size() != input.shape.size())
    return InvalidArgument("Input has shape %s, Index %s; expected one rank",
                           ToString(input.shape), ToString(index.shape));
  context->SetOutput("Result", index.shape, input.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindTake(BindContext* context) {
  const bool back = context->op().type == "take_along_axis_grad";
  Tensor* index = context->Input("Index");
  Tensor* full = back ? context->Output("Input@GRAD") : context->Input("Input");
  Tensor* part =
      back ? context->Input("Result@GRAD") : context->Output("Result");
  if (back) context->NoBuffer(context->Input("Input"));
  if (part->size() != index->size() || part->dtype() != full->dtype())
    return InvalidArgument("Result is %s %s; Input is %s, Index %s",
                           Name(part->dtype()), ToString(part->shape()),
                           Name(full->dtype()), ToString(index->shape()));
  PD_ASSIGN_OR_RETURN(
      const AlongAxisPlaces places,
      AlongAxisPlaces::Of(*context, full->shape(), index->shape()));
  return DispatchNumeric(full->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      PD_RETURN_IF_ERROR(places.Check());
      if (back) std::memset(full->raw(), 0, full->bytes());
      T *wide = full->data<T>(), *narrow = part->data<T>();
      places.ForEach([=](int64_t i, int64_t at, int64_t) {
        back ? wide[at] = static_cast<T>(wide[at] + narrow[i])
             : narrow[i] = wide[at];
      });
      return absl::OkStatus();
    });
  });
}

enum class Put { kAssign, kAdd, kMul, kMean, kMax, kMin };

absl::StatusOr<Put> PutOf(const OpDesc& op) {
  const std::string how = op.Attr<std::string>("Reduce");
  if (how == "assign") return Put::kAssign;
  if (how == "add") return Put::kAdd;
  if (how == "mul" || how == "multiply") return Put::kMul;
  if (how == "mean") return Put::kMean;
  if (how == "amax") return Put::kMax;
  if (how == "amin") return Put::kMin;
  return InvalidArgument(
      "attr 'Reduce' is '%s'; expected assign, add, mul, multiply, mean, amax "
      "or amin",
      how);
}

absl::Status InferPut(InferContext* context) {
  const TensorMeta& input = context->Input("Input");
  PD_RETURN_IF_ERROR(PutOf(context->op()).status());
  PD_RETURN_IF_ERROR(CheckIndexType("Index", context->Input("Index").dtype));
  if (context->Input("Value").dtype != input.dtype)
    return InvalidArgument("Input is %s; Value is %s", Name(input.dtype),
                           Name(context->Input("Value").dtype));
  context->Share("Input", "Result");
  return absl::OkStatus();
}

template <typename T>
T Combined(Put put, T a, T b) {
  switch (put) {
    case Put::kMul:
      return static_cast<T>(a * b);
    case Put::kMax:
      return a < b ? b : a;
    case Put::kMin:
      return b < a ? b : a;
    default:
      return static_cast<T>(a + b);
  }
}

absl::StatusOr<Step> BindPut(BindContext* context) {
  Tensor* input = context->Input("Input");
  Tensor* value = context->Input("Value");
  Tensor* result = context->Output("Result");
  PD_ASSIGN_OR_RETURN(const Put put, PutOf(context->op()));
  const bool self = context->op().Attr<bool>("Include_self");
  PD_ASSIGN_OR_RETURN(
      const AlongAxisPlaces places,
      AlongAxisPlaces::Of(*context, input->shape(), value->shape()));
  const size_t n = static_cast<size_t>(input->size());
  // An assigned number does not hang on the one that is there, and an added one
  // not on how many there are.
  const bool assigns = put == Put::kAssign, adds = put == Put::kAdd && self;
  Tensor* counts =
      assigns || adds ? nullptr : context->Scratch(n * sizeof(int64_t));
  return DispatchPut(input->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      PD_RETURN_IF_ERROR(places.Check());
      const T* from = value->data<T>();
      T* to = result->data<T>();
      if (to != input->data<T>()) std::copy_n(input->data<T>(), n, to);
      if (assigns) {
        places.ForEach(
            [=](int64_t, int64_t at, int64_t v) { to[at] = from[v]; });
        return absl::OkStatus();
      }
      if (adds) {
        places.ForEach([=](int64_t, int64_t at, int64_t v) {
          to[at] = static_cast<T>(to[at] + from[v]);
        });
        return absl::OkStatus();
      }
      int64_t* count = counts->data<int64_t>();  // operands so far
      std::fill_n(count, n, self ? 1 : 0);
      places.ForEach([&](int64_t, int64_t at, int64_t v) {
        to[at] = count[at]++ == 0 ? from[v] : Combined(put, to[at], from[v]);
      });
      for (size_t i = 0; put == Put::kMean && i < n; ++i)
        if (count[i] > 1)
          to[i] = static_cast<T>(to[i] / static_cast<T>(count[i]));
      return absl::OkStatus();
    });
  });
}

// The operands and results of the gradients of one put_along_axis.
template <typename T>
struct PutGrad {
  AlongAxisPlaces places;
  Put put;
  bool self;
  const T *input, *value, *result, *dout;
  T *dinput, *dvalue;  // null: not wanted
  int64_t size, value_size;
  int64_t* count;

  // assign, add and mean do not read the operands: they may be missing.
  static T At(const T* operands, int64_t i) {
    return operands != nullptr ? operands[i] : T(0);
  }
  bool Shares(T operand, int64_t at) const { return operand == result[at]; }

  // The gradient of an operand at place `at`.
  T Of(T operand, int64_t at) const {
    switch (put) {
      case Put::kMul:
        return dout[at] * result[at] / operand;
      case Put::kMean:
        return dout[at] / static_cast<T>(count[at]);
      case Put::kMax:
      case Put::kMin:
        return Shares(operand, at) ? dout[at] / static_cast<T>(count[at])
                                   : T(0);
      default:
        return dout[at];
    }
  }

  // Where everything is added, gradients are copies.
  void RunAdd() const {
    if (dvalue != nullptr) {
      std::fill_n(dvalue, value_size, T(0));
      places.ForEach(
          [to = dvalue, from = dout](int64_t, int64_t at, int64_t v) {
            to[v] += from[at];
          });
    }
    if (dinput != nullptr) std::copy_n(dout, size, dinput);
  }

  void Run() const {
    if (put == Put::kAdd && self) return RunAdd();
    const bool extremum = put == Put::kMax || put == Put::kMin;
    // Operands that share: all of them for a mean, the equal ones.
    for (int64_t i = 0; i < size; ++i)
      count[i] =
          self && put != Put::kAssign && (!extremum || Shares(input[i], i)) ? 1
                                                                            : 0;
    places.ForEach([&](int64_t, int64_t at, int64_t v) {
      count[at] += !extremum || Shares(value[v], at);
    });
    if (dvalue != nullptr) {
      std::fill_n(dvalue, value_size, T(0));
      places.ForEach([&](int64_t, int64_t at, int64_t v) {
        // Of several that are assigned the last one counts.
        if (put != Put::kAssign || --count[at] == 0)
          dvalue[v] += Of(At(value, v), at);
      });
    }
    if (dinput == nullptr) return;
    std::copy_n(dout, size, dinput);
    places.ForEach([&](int64_t, int64_t at, int64_t) {
      dinput[at] = self && put != Put::kAssign ? Of(At(input, at), at) : T(0);
    });
  }
};

absl::Status InferPutGrad(InferContext* context) {
  const TensorMeta& dout = context->Input("Result@GRAD");
  context->SetOutput("Input@GRAD", dout.shape, dout.dtype);
  context->SetOutput(
      "Value@GRAD",
      context->Input(context->HasInput("Value") ? "Value" : "Index").shape,
      dout.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindPutGrad(BindContext* context) {
  Tensor* dout = context->Input("Result@GRAD");
  Tensor* input = context->Input("Input");
  Tensor* value = context->Input("Value");
  Tensor* result = context->Input("Result");
  Tensor* dinput = context->Output("Input@GRAD");
  Tensor* dvalue = context->Output("Value@GRAD");
  PD_ASSIGN_OR_RETURN(const Put put, PutOf(context->op()));
  const bool self = context->op().Attr<bool>("Include_self");
  const bool reads = put == Put::kMul || put == Put::kMax || put == Put::kMin;
  for (const Tensor* t : {input, value, result})
    if (t == nullptr ? reads : t->dtype() != dout->dtype())
      return InvalidArgument("an input is missing or not %s as Result@GRAD is",
                             Name(dout->dtype()));
  for (const Tensor* t : {input, result, dinput})
    if (t != nullptr && t->shape() != dout->shape())
      return InvalidArgument("Result@GRAD has shape %s; Input has %s",
                             ToString(dout->shape()), ToString(t->shape()));
  const Shape values = value != nullptr    ? value->shape()
                       : dvalue != nullptr ? dvalue->shape()
                                           : context->Input("Index")->shape();
  PD_ASSIGN_OR_RETURN(const AlongAxisPlaces places,
                      AlongAxisPlaces::Of(*context, dout->shape(), values));
  Tensor* counts =
      context->Scratch(static_cast<size_t>(dout->size()) * sizeof(int64_t));
  return DispatchFloat(dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      PD_RETURN_IF_ERROR(places.Check());
      const auto data = [](Tensor* t) {
        return t != nullptr ? t->data<T>() : nullptr;
      };
      PutGrad<T> grad{places,
                      put,
                      self,
                      data(input),
                      data(value),
                      data(result),
                      data(dout),
                      data(dinput),
                      data(dvalue),
                      dout->size(),
                      NumElements(values),
                      counts->data<int64_t>()};
      grad.Run();
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterAlongAxis(OpRegistry* registry) {
  OpDef take("take_along_axis");
  take.Input("Input").Input("Index").Output("Result");
  take.RequiredAttr("Axis", AttrType::kInt);
  take.Infer(InferTake).Reference(BindTake);
  take.Grad(GradSpec{
      "take_along_axis_grad", {"Input", "Index"}, {}, {"Result"}, {"Input"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(take)));

  OpDef take_grad("take_along_axis_grad");
  take_grad.Input("Input").Input("Index").Input("Result@GRAD");
  take_grad.Output("Input@GRAD").RequiredAttr("Axis", AttrType::kInt);
  take_grad.Infer(InferGradLikeInput).NoGrad().Reference(BindTake);
  PD_RETURN_IF_ERROR(registry->Add(std::move(take_grad)));

  const auto add_attrs = [](OpDef* op) {
    op->RequiredAttr("Axis", AttrType::kInt);
    op->Attr("Reduce", std::string("assign")).Attr("Include_self", true);
  };
  OpDef put("put_along_axis");
  put.Input("Input").Input("Index").Input("Value").Output("Result");
  add_attrs(&put);
  put.Infer(InferPut).Reference(BindPut);
  put.Grad(GradSpec{"put_along_axis_grad",
                    {"Input", "Index", "Value"},
                    {"Result"},
                    {"Result"},
                    {"Input", "Value"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(put)));

  OpDef put_grad("put_along_axis_grad");
  put_grad.OptionalInput("Input").Input("Index").OptionalInput("Value");
  put_grad.OptionalInput("Result").Input("Result@GRAD");
  put_grad.OptionalOutput("Input@GRAD").OptionalOutput("Value@GRAD");
  add_attrs(&put_grad);
  put_grad.Infer(InferPutGrad).NoGrad().Reference(BindPutGrad);
  return registry->Add(std::move(put_grad));
}

}  // namespace pd
