// SPDX-License-Identifier: Apache-2.0
// Sparse tensors with other axes. The order of the places stays as it is; CSR
// goes through COO.
//   sparse_transpose: sparse axes among themselves, dense axes likewise
//   sparse_reshape: the sparse axes; 0 keeps an extent, one -1 is what is left
//   sparse_slice: starts[i] to ends[i] along axes[i], as slice
//   sparse_sum: over one axis, or over all of them into one value. CSR: over
//     the last, which stays with extent 1 in a matrix
#include <algorithm>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/sparse/sparse_tensor.h"

namespace pd {
namespace {

absl::Status CheckPermutation(const std::vector<int32_t>& perm, size_t rank) {
  std::vector<bool> seen(rank, false);
  bool good = perm.size() == rank;
  for (const int32_t axis : perm) {
    good = good && axis >= 0 && axis < static_cast<int32_t>(rank) &&
           !seen[static_cast<size_t>(axis)];
    if (!good) break;
    seen[static_cast<size_t>(axis)] = true;
  }
  if (good) return absl::OkStatus();
  return InvalidArgument("attr 'perm' is no order of the %d axes of x", rank);
}

absl::Status InferTranspose(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedSparse(*context, "x"));
  const TensorMeta& x = context->Input("x");
  const auto& perm = context->Attr<std::vector<int32_t>>("perm");
  PD_RETURN_IF_ERROR(CheckPermutation(perm, x.shape.size()));
  Shape shape;
  for (const int32_t axis : perm)
    shape.push_back(x.shape[static_cast<size_t>(axis)]);
  SetSparse(context, "out", x.kind, std::move(shape), x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> Transposed(const Eager& eager, const Tensor& x,
                                  const std::vector<int32_t>& perm) {
  PD_ASSIGN_OR_RETURN(const Tensor coo, AsCoo(x));
  const int64_t sparse = CooIndices(coo).dim(0);
  std::vector<int64_t> axes;
  std::vector<int32_t> dense = {0};
  Shape shape;
  for (size_t i = 0; i < perm.size(); ++i) {
    const bool first = static_cast<int64_t>(i) < sparse;
    if (first != (perm[i] < sparse))
      return InvalidArgument(
          "attr 'perm' mixes the %d sparse axes of x with its dense ones",
          sparse);
    if (first)
      axes.push_back(perm[i]);
    else
      dense.push_back(perm[i] - static_cast<int32_t>(sparse) + 1);
    shape.push_back(x.dim(static_cast<size_t>(perm[i])));
  }
  PD_ASSIGN_OR_RETURN(Tensor indices, GatherRows(CooIndices(coo), axes));
  PD_ASSIGN_OR_RETURN(
      Tensor values,
      eager.Run("transpose2", {{"X", &SparseValues(coo)}}, {{"axis", dense}}));
  PD_ASSIGN_OR_RETURN(Tensor made,
                      MakeCoo(std::move(indices), std::move(values), shape));
  return InForm(x.kind(), std::move(made));
}

// The gradient goes the way back: COO keeps the order of its places.
absl::StatusOr<Step> BindTransposeGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out_grad = context->Input("out@GRAD");
  const auto& perm = context->Attr<std::vector<int32_t>>("perm");
  PD_RETURN_IF_ERROR(CheckPermutation(perm, x->rank()));
  std::vector<int32_t> back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    back[static_cast<size_t>(perm[i])] = static_cast<int32_t>(i);
  return Giving(context->Output("x@GRAD"), [=](const Eager& eager) {
    return Transposed(eager, *out_grad, back);
  });
}

absl::StatusOr<Step> BindTranspose(BindContext* context) {
  Tensor* x = context->Input("x");
  const auto perm = context->Attr<std::vector<int32_t>>("perm");
  return Giving(context->Output("out"), [=](const Eager& eager) {
    return Transposed(eager, *x, perm);
  });
}

// The integers of an attribute, or of the tensors that take its place; Name is
// "Shape" for "ShapeTensor" and "ShapeTensorList".
std::vector<int64_t> Asked(const BindContext& context, const std::string& name,
                           const char* attr) {
  if (const Tensor* tensor = context.Input(name + "Tensor"))
    return IntsOf(*tensor);
  std::vector<int64_t> ints;
  for (size_t i = 0; i < context.InputCount(name + "TensorList"); ++i)
    for (const int64_t one : IntsOf(*context.Input(name + "TensorList", i)))
      ints.push_back(one);
  return ints.empty() ? IntsAttr(context.op(), attr) : ints;
}

std::vector<int64_t> Asked(const InferContext& context, const std::string& name,
                           const char* attr) {
  return RequestedInts(context, name + "Tensor", name + "TensorList", attr);
}

// False: what such tensors ask for is known when the op runs.
bool IsKnown(const InferContext& context, const std::string& name) {
  if (context.HasInput(name + "Tensor"))
    return context.Input(name + "Tensor").value != nullptr;
  for (size_t i = 0; i < context.InputCount(name + "TensorList"); ++i)
    if (context.Input(name + "TensorList", i).value == nullptr) return false;
  return true;
}

absl::StatusOr<Shape> Reshaped(const Shape& x, std::vector<int64_t> shape) {
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && i < x.size()) shape[i] = x[i];
    if (shape[i] == -1 && open < 0)
      open = static_cast<int64_t>(i);
    else if (shape[i] < 0)
      return InvalidArgument("attr 'shape' holds %d", shape[i]);
    else
      known *= std::max<int64_t>(shape[i], 1);
    if (known > kMostBytes) return InvalidArgument("attr 'shape' is too large");
  }
  if (IsDynamic(x)) return shape;
  const int64_t all = NumElements(x);
  if (open >= 0) shape[static_cast<size_t>(open)] = all / known;
  if (NumElements(shape) != all)
    return InvalidArgument("x has shape %s, which cannot become %s",
                           ToString(x), ToString(shape));
  return shape;
}

absl::Status InferReshape(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedSparse(*context, "x"));
  const TensorMeta& x = context->Input("x");
  std::vector<int64_t> asked = Asked(*context, "Shape", "shape");
  Shape shape(asked.size(), -1);
  if (IsKnown(*context, "Shape")) {
    PD_ASSIGN_OR_RETURN(shape, Reshaped(x.shape, std::move(asked)));
  }
  SetSparse(context, "out", x.kind, std::move(shape), x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindReshape(BindContext* context) {
  Tensor* x = context->Input("x");
  PD_ASSIGN_OR_RETURN(const Shape shape,
                      Reshaped(x->shape(), Asked(*context, "Shape", "shape")));
  return Giving(
      context->Output("out"), [=](const Eager&) -> absl::StatusOr<Tensor> {
        PD_ASSIGN_OR_RETURN(const Tensor coo, AsCoo(*x));
        const size_t dense = SparseValues(coo).rank() - 1;
        Places places = PlacesOf(coo);
        if (dense >= shape.size() ||
            !std::equal(shape.end() - static_cast<int64_t>(dense), shape.end(),
                        x->shape().end() - static_cast<int64_t>(dense)))
          return InvalidArgument(
              "%s changes the %d dense axes of x, whose shape is %s",
              ToString(shape), dense, ToString(x->shape()));
        places.extents.assign(shape.begin(),
                              shape.end() - static_cast<int64_t>(dense));
        PD_ASSIGN_OR_RETURN(Tensor indices, IndicesOf(places));
        PD_ASSIGN_OR_RETURN(
            Tensor made, MakeCoo(std::move(indices), SparseValues(coo), shape));
        return InForm(x->kind(), std::move(made));
      });
}

absl::StatusOr<Step> BindReshapeGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out_grad = context->Input("out@GRAD");
  return Giving(context->Output("x@GRAD"),
                [=](const Eager&) -> absl::StatusOr<Tensor> {
                  return WithValues(*x, SparseValues(*out_grad));
                });
}

// One axis of a slice, inside of the extent.
struct Range {
  size_t axis;
  int64_t begin, end;
};

template <typename Context>
absl::StatusOr<std::vector<Range>> RangesOf(const Context& context,
                                            const Shape& shape) {
  const std::vector<int64_t> axes = Asked(context, "Axes", "axes");
  const std::vector<int64_t> starts = Asked(context, "Starts", "starts");
  const std::vector<int64_t> ends = Asked(context, "Ends", "ends");
  if (starts.size() != axes.size() || ends.size() != axes.size())
    return InvalidArgument(
        "attrs 'axes', 'starts' and 'ends' have %d, %d and %d elements",
        axes.size(), starts.size(), ends.size());
  std::vector<Range> ranges;
  for (size_t i = 0; i < axes.size(); ++i) {
    PD_ASSIGN_OR_RETURN(const int axis,
                        NormalizeAxis(axes[i], shape.size(), "axes"));
    const int64_t extent = shape[static_cast<size_t>(axis)];
    const auto inside = [&](int64_t at) {
      if (at < 0) at = std::max(at, -extent) + extent;
      return std::min(at, extent);
    };
    const int64_t begin = inside(starts[i]);
    ranges.push_back(
        {static_cast<size_t>(axis), begin, std::max(inside(ends[i]), begin)});
  }
  return ranges;
}

absl::Status InferSlice(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedSparse(*context, "x"));
  const TensorMeta& x = context->Input("x");
  Shape shape = x.shape;
  if (IsKnown(*context, "Axes") && IsKnown(*context, "Starts") &&
      IsKnown(*context, "Ends")) {
    PD_ASSIGN_OR_RETURN(const auto ranges, RangesOf(*context, x.shape));
    for (const Range& range : ranges)
      if (shape[range.axis] >= 0) shape[range.axis] = range.end - range.begin;
  } else {
    shape.assign(shape.size(), -1);
  }
  SetSparse(context, "out", x.kind, std::move(shape), x.dtype);
  return absl::OkStatus();
}

// The part of the ranges that is about sparse axes, and about dense ones.
struct SlicePlan {
  std::vector<int64_t> rows;     // of the values that stay
  std::vector<int64_t> indices;  // theirs, row by row
  Eager::Attrs dense;            // of `slice`, for the values
  bool slices_values = false;
  Shape shape;

  SlicePlan(const Tensor& coo, const std::vector<Range>& ranges)
      : shape(coo.shape()) {
    const auto sparse = static_cast<size_t>(CooIndices(coo).dim(0));
    const auto nnz = static_cast<size_t>(CooIndices(coo).dim(1));
    std::vector<int64_t> at = IntsOf(CooIndices(coo));
    std::vector<char> inside(nnz, 1);
    std::vector<int32_t> axes, starts, ends;
    for (const Range& range : ranges) {
      shape[range.axis] = range.end - range.begin;
      if (range.axis >= sparse) {
        axes.push_back(static_cast<int32_t>(range.axis - sparse + 1));
        starts.push_back(static_cast<int32_t>(range.begin));
        ends.push_back(static_cast<int32_t>(range.end));
        continue;
      }
      for (size_t k = 0; k < nnz; ++k) {
        int64_t& one = at[range.axis * nnz + k];
        if (one < range.begin || one >= range.end) inside[k] = 0;
        one -= range.begin;
      }
    }
    for (size_t k = 0; k < nnz; ++k)
      if (inside[k] != 0) rows.push_back(static_cast<int64_t>(k));
    for (size_t d = 0; d < sparse; ++d)
      for (const int64_t k : rows)
        indices.push_back(at[d * nnz + static_cast<size_t>(k)]);
    slices_values = !axes.empty();
    dense = {{"axes", axes}, {"starts", starts}, {"ends", ends}};
  }
};

absl::StatusOr<Tensor> Sliced(const Eager& eager, const Tensor& x,
                              const std::vector<Range>& ranges) {
  PD_ASSIGN_OR_RETURN(const Tensor coo, AsCoo(x));
  const SlicePlan plan(coo, ranges);
  PD_ASSIGN_OR_RETURN(Tensor values, GatherRows(SparseValues(coo), plan.rows));
  if (plan.slices_values) {
    PD_ASSIGN_OR_RETURN(values,
                        eager.Run("slice", {{"Input", &values}}, plan.dense));
  }
  const Tensor& indices = CooIndices(coo);
  PD_ASSIGN_OR_RETURN(
      Tensor places,
      IntegerTensor(indices.dtype(),
                    {indices.dim(0), static_cast<int64_t>(plan.rows.size())},
                    plan.indices));
  PD_ASSIGN_OR_RETURN(
      Tensor made, MakeCoo(std::move(places), std::move(values), plan.shape));
  return InForm(x.kind(), std::move(made));
}

absl::StatusOr<Tensor> SlicedGrad(const Eager& eager, const Tensor& x,
                                  const Tensor& out_grad,
                                  const std::vector<Range>& ranges) {
  PD_ASSIGN_OR_RETURN(const Tensor coo, AsCoo(x));
  const SlicePlan plan(coo, ranges);
  Tensor grad = SparseValues(out_grad);
  if (plan.slices_values) {
    PD_ASSIGN_OR_RETURN(Tensor values,
                        GatherRows(SparseValues(coo), plan.rows));
    PD_ASSIGN_OR_RETURN(
        std::vector<Tensor> grads,
        eager.Gradients("slice", {{"Input", &values}}, plan.dense, {}, "Out",
                        &grad, {"Input"}));
    grad = std::move(grads[0]);
  }
  PD_ASSIGN_OR_RETURN(Tensor values,
                      SumRowsBy(grad, plan.rows, SparseValues(coo).dim(0)));
  return WithValues(x, std::move(values));
}

absl::StatusOr<Step> BindSliceGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out_grad = context->Input("out@GRAD");
  PD_ASSIGN_OR_RETURN(const auto ranges, RangesOf(*context, x->shape()));
  return Giving(context->Output("x@GRAD"), [=](const Eager& eager) {
    return SlicedGrad(eager, *x, *out_grad, ranges);
  });
}

absl::StatusOr<Step> BindSlice(BindContext* context) {
  Tensor* x = context->Input("x");
  PD_ASSIGN_OR_RETURN(const auto ranges, RangesOf(*context, x->shape()));
  return Giving(context->Output("out"),
                [=](const Eager& eager) { return Sliced(eager, *x, ranges); });
}

struct SumOf {
  bool all = false;
  size_t axis = 0;
  bool keep = false;
  DType dtype;
};

template <typename Context>
absl::StatusOr<SumOf> SumOfOp(const Context& context, const TensorMeta& x) {
  SumOf sum;
  const OpDesc& op = context.op();
  const std::vector<int64_t> axes = Asked(context, "Axis", "axis");
  if (axes.size() > 1)
    return InvalidArgument("attr 'axis' holds %d axes; expected one, or none",
                           axes.size());
  sum.all = axes.empty();
  if (!sum.all) {
    PD_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axes[0], x.shape.size()));
    sum.axis = static_cast<size_t>(axis);
  }
  if (IsCsr(x.kind) && !sum.all && sum.axis + 1 != x.shape.size())
    return InvalidArgument("attr 'axis' is %d; CSR has the last axis alone",
                           axes[0]);
  sum.keep = op.Attr<bool>("keepdim") ||
             (IsCsr(x.kind) && (sum.all || x.shape.size() == 2));
  const int32_t code = op.Attr<int32_t>("dtype");
  const auto dtype = code == -1 ? x.dtype : DTypeFromCode(code);
  if (!dtype.has_value())
    return InvalidArgument("attr 'dtype' is %d, which is no dtype", code);
  sum.dtype = *dtype;
  return sum;
}

// `sparse`: the number of sparse axes; an only one is kept.
Shape ShapeOfSum(const SumOf& sum, const Shape& x, size_t sparse) {
  if (sum.all) return sum.keep ? Shape(x.size(), 1) : Shape{1};
  Shape shape = x;
  const bool keep = sum.keep || (sum.axis < sparse && sparse == 1);
  if (keep)
    shape[sum.axis] = 1;
  else
    shape.erase(shape.begin() + static_cast<int64_t>(sum.axis));
  return shape;
}

absl::Status InferSum(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedSparse(*context, "x"));
  const TensorMeta& x = context->Input("x");
  if (!IsKnown(*context, "Axis")) {
    SetSparse(context, "out", x.kind, Shape(x.shape.size(), -1), x.dtype);
    return absl::OkStatus();
  }
  PD_ASSIGN_OR_RETURN(const SumOf sum, SumOfOp(*context, x));
  const size_t sparse = x.value == nullptr || IsCsr(x.kind)
                            ? x.shape.size()
                            : static_cast<size_t>(CooIndices(*x.value).dim(0));
  SetSparse(context, "out", x.kind, ShapeOfSum(sum, x.shape, sparse),
            sum.dtype);
  return absl::OkStatus();
}

// Over a sparse axis: the places that differ in it alone become one, in order.
struct Merged {
  Places places;
  std::vector<int64_t> group;  // the place of each value

  Merged(const Tensor& coo, size_t axis, const Shape& shape) {
    const Places all = PlacesOf(coo);
    places.dtype = all.dtype;
    places.extents.assign(
        shape.begin(),
        shape.end() - static_cast<int64_t>(SparseValues(coo).rank() - 1));
    std::map<int64_t, int64_t> numbers;  // in order
    group = WithoutAxis(all, axis);
    for (const int64_t at : group) numbers[at] = 0;
    for (auto& [at, number] : numbers) {
      number = static_cast<int64_t>(places.flat.size());
      places.flat.push_back(at);
    }
    for (int64_t& at : group) at = numbers[at];
  }
};

absl::StatusOr<Tensor> SumOverPlaces(const Tensor& coo, const SumOf& sum,
                                     const Shape& shape) {
  const Merged merged(coo, sum.axis, shape);
  PD_ASSIGN_OR_RETURN(Tensor indices, IndicesOf(merged.places));
  PD_ASSIGN_OR_RETURN(
      Tensor values,
      SumRowsBy(SparseValues(coo), merged.group,
                static_cast<int64_t>(merged.places.flat.size())));
  return MakeCoo(std::move(indices), std::move(values), shape);
}

absl::StatusOr<Tensor> Cast(const Eager& eager, Tensor values, DType dtype) {
  if (values.dtype() == dtype) return values;
  return eager.Run("cast", {{"X", &values}},
                   {{"in_dtype", static_cast<int32_t>(values.dtype())},
                    {"out_dtype", static_cast<int32_t>(dtype)}});
}

absl::StatusOr<Tensor> Summed(const Eager& eager, const Tensor& x,
                              const SumOf& sum) {
  PD_ASSIGN_OR_RETURN(const Tensor coo, AsCoo(x));
  const auto sparse = static_cast<size_t>(CooIndices(coo).dim(0));
  const Shape shape = ShapeOfSum(sum, x.shape(), sparse);
  Tensor made;
  if (sum.all) {
    PD_ASSIGN_OR_RETURN(Tensor value,
                        eager.Run("reduce_sum", {{"X", &SparseValues(coo)}},
                                  {{"reduce_all", true}}));
    PD_ASSIGN_OR_RETURN(value, Cast(eager, std::move(value), sum.dtype));
    Shape values(shape.size() - (sum.keep ? sparse : 1) + 1, 1);
    PD_ASSIGN_OR_RETURN(
        value,
        eager.Run(
            "reshape2", {{"X", &value}},
            {{"shape", std::vector<int32_t>(values.begin(), values.end())}}));
    const auto rank = static_cast<int64_t>(shape.size() - values.size() + 1);
    PD_ASSIGN_OR_RETURN(
        Tensor indices,
        IntegerTensor(CooIndices(coo).dtype(), {rank, 1},
                      std::vector<int64_t>(static_cast<size_t>(rank), 0)));
    PD_ASSIGN_OR_RETURN(made,
                        MakeCoo(std::move(indices), std::move(value), shape));
  } else if (sum.axis >= sparse) {
    PD_ASSIGN_OR_RETURN(
        Tensor values,
        eager.Run("reduce_sum", {{"X", &SparseValues(coo)}},
                  {{"dim", std::vector<int32_t>{static_cast<int32_t>(
                               sum.axis - sparse + 1)}},
                   {"keep_dim", sum.keep}}));
    PD_ASSIGN_OR_RETURN(values, Cast(eager, std::move(values), sum.dtype));
    PD_ASSIGN_OR_RETURN(made,
                        MakeCoo(CooIndices(coo), std::move(values), shape));
  } else {
    PD_ASSIGN_OR_RETURN(made, SumOverPlaces(coo, sum, shape));
    PD_ASSIGN_OR_RETURN(Tensor values,
                        Cast(eager, SparseValues(made), sum.dtype));
    made = WithValues(made, std::move(values));
  }
  return InForm(x.kind(), std::move(made));
}

// Each value gets the gradient of the sum that it is in.
absl::StatusOr<Tensor> SummedGrad(const Eager& eager, const Tensor& x,
                                  const Tensor& out_grad, const SumOf& sum) {
  PD_ASSIGN_OR_RETURN(const Tensor coo, AsCoo(x));
  const auto sparse = static_cast<size_t>(CooIndices(coo).dim(0));
  Tensor& of = SparseValues(coo);
  PD_ASSIGN_OR_RETURN(Tensor grad,
                      Cast(eager, SparseValues(out_grad), x.dtype()));
  Tensor values;
  if (!sum.all && sum.axis < sparse) {
    const Merged merged(coo, sum.axis, out_grad.shape());
    PD_ASSIGN_OR_RETURN(values, GatherRows(grad, merged.group));
    return WithValues(x, std::move(values));
  }
  Eager::Attrs attrs;
  if (sum.all) {
    attrs["reduce_all"] = true;
    PD_ASSIGN_OR_RETURN(grad, eager.Run("reshape2", {{"X", &grad}},
                                        {{"shape", std::vector<int32_t>{1}}}));
  } else {
    attrs["dim"] =
        std::vector<int32_t>{static_cast<int32_t>(sum.axis - sparse + 1)};
    attrs["keep_dim"] = sum.keep;
  }
  PD_ASSIGN_OR_RETURN(
      std::vector<Tensor> grads,
      eager.Gradients("reduce_sum", {{"X", &of}}, std::move(attrs), {}, "Out",
                      &grad, {"X"}));
  return WithValues(x, std::move(grads[0]));
}

absl::StatusOr<Step> BindSumGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out_grad = context->Input("out@GRAD");
  PD_ASSIGN_OR_RETURN(const SumOf sum, SumOfOp(*context, MetaOf(*x)));
  return Giving(context->Output("x@GRAD"), [=](const Eager& eager) {
    return SummedGrad(eager, *x, *out_grad, sum);
  });
}

absl::StatusOr<Step> BindSum(BindContext* context) {
  Tensor* x = context->Input("x");
  PD_ASSIGN_OR_RETURN(const SumOf sum, SumOfOp(*context, MetaOf(*x)));
  return Giving(context->Output("out"),
                [=](const Eager& eager) { return Summed(eager, *x, sum); });
}

}  // namespace

absl::Status RegisterSparseShape(OpRegistry* registry) {
  OpDef transpose("sparse_transpose");
  transpose.Input("x").Output("out").RequiredAttr("perm", AttrType::kInts);
  absl::Status status =
      AddSparse(registry, std::move(transpose), InferTranspose, BindTranspose,
                {"x"}, {}, {"x"}, BindTransposeGrad);
  OpDef reshape("sparse_reshape");
  reshape.Input("x").OptionalInput("ShapeTensor").Output("out");
  reshape.OptionalInputs("ShapeTensorList");
  reshape.RequiredAttr("shape", AttrType::kLongs);
  status.Update(AddSparse(registry, std::move(reshape), InferReshape,
                          BindReshape, {"x"}, {}, {"x"}, BindReshapeGrad));
  OpDef slice("sparse_slice");
  slice.Input("x").Output("out");
  for (const char* name : {"Axes", "Starts", "Ends"}) {
    slice.OptionalInput(absl::StrCat(name, "Tensor"));
    slice.OptionalInputs(absl::StrCat(name, "TensorList"));
  }
  for (const char* name : {"axes", "starts", "ends"})
    slice.RequiredAttr(name, AttrType::kLongs);
  status.Update(AddSparse(registry, std::move(slice), InferSlice, BindSlice,
                          {"x", "AxesTensor", "AxesTensorList", "StartsTensor",
                           "StartsTensorList", "EndsTensor", "EndsTensorList"},
                          {}, {"x"}, BindSliceGrad));
  OpDef sum("sparse_sum");
  sum.Input("x").OptionalInput("AxisTensor").OptionalInputs("AxisTensorList");
  sum.Output("out").Attr("axis", std::vector<int64_t>());
  sum.Attr("dtype", int32_t{-1}).Attr("keepdim", false);
  status.Update(AddSparse(registry, std::move(sum), InferSum, BindSum,
                          {"x", "AxisTensor", "AxisTensorList"}, {}, {"x"},
                          BindSumGrad));
  return status;
}

}  // namespace pd
