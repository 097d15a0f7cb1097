// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/sparse/sparse_tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"

#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/indices.h"

namespace pd {
namespace {

// The tensor of these parts; they fit.
Tensor Assembled(VarKind kind, std::vector<Tensor> parts, Shape shape) {
  Tensor made(parts.back().dtype(), std::move(shape));
  made.set_kind(kind);
  made.elements() = std::move(parts);
  return made;
}

// Bytes of one row of values.
size_t RowBytes(const Tensor& values) {
  return static_cast<size_t>(NumElements(values.shape(), 1, values.rank())) *
         SizeOf(values.dtype());
}

Shape WithRows(const Tensor& values, int64_t rows) {
  Shape shape = values.shape();
  shape[0] = rows;
  return shape;
}

// The order in which `keys` ascend; equal ones keep theirs.
std::vector<int64_t> Ascending(const std::vector<int64_t>& keys) {
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)];
  });
  return order;
}

absl::Status CheckCrows(const std::vector<int64_t>& crows, int64_t batches,
                        int64_t rows, int64_t nnz) {
  int64_t all = 0;
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t* at = crows.data() + b * (rows + 1);
    if (at[0] != 0)
      return InvalidArgument("crows begin at %d; expected 0", at[0]);
    for (int64_t r = 0; r < rows; ++r)
      if (at[r + 1] < at[r])
        return InvalidArgument("crows fall from %d to %d", at[r], at[r + 1]);
    all += at[rows];
    if (at[rows] > nnz) break;
  }
  if (all == nnz) return absl::OkStatus();
  return InvalidArgument("crows count %d places; the values are %d", all, nnz);
}

}  // namespace

absl::StatusOr<Tensor> IntegerTensor(DType dtype, Shape shape,
                                     const std::vector<int64_t>& values) {
  Tensor made;
  PD_RETURN_IF_ERROR(made.Resize(dtype, std::move(shape)));
  PD_INVARIANT(made.size() == static_cast<int64_t>(values.size()));
  if (dtype == DType::kInt32)
    for (const int64_t value : values)
      if (value > std::numeric_limits<int32_t>::max())
        return OutOfRange("index %d is beyond int32", value);
  if (dtype == DType::kInt32)
    std::transform(values.begin(), values.end(), made.data<int32_t>(),
                   [](int64_t v) { return static_cast<int32_t>(v); });
  else
    std::copy(values.begin(), values.end(), made.data<int64_t>());
  return made;
}

absl::StatusOr<Tensor> MakeCoo(Tensor indices, Tensor values, Shape shape) {
  PD_RETURN_IF_ERROR(CheckIndexType("indices", indices.dtype()));
  if (indices.rank() != 2 || values.rank() == 0 ||
      indices.dim(1) != values.dim(0))
    return InvalidArgument(
        "indices have shape %s and values %s; expected [sparse_dim, nnz] and "
        "[nnz, ...]",
        ToString(indices.shape()), ToString(values.shape()));
  const auto sparse = static_cast<size_t>(indices.dim(0));
  if (sparse == 0 || sparse + values.rank() - 1 != shape.size() ||
      !std::equal(values.shape().begin() + 1, values.shape().end(),
                  shape.begin() + static_cast<int64_t>(sparse)))
    return InvalidArgument(
        "indices of shape %s and values of shape %s do not fit the shape %s",
        ToString(indices.shape()), ToString(values.shape()), ToString(shape));
  PD_RETURN_IF_ERROR(CheckedBytes(shape, SizeOf(values.dtype())).status());
  const int64_t nnz = indices.dim(1);
  for (size_t d = 0; d < sparse; ++d) {
    for (int64_t k = 0; k < nnz; ++k) {
      const int64_t at = LabelAt(indices, static_cast<int64_t>(d) * nnz + k);
      if (at < 0 || at >= shape[d])
        return OutOfRange("index %d along axis %d is outside [0, %d)", at, d,
                          shape[d]);
    }
  }
  std::vector<Tensor> parts;
  parts.push_back(std::move(indices));
  parts.push_back(std::move(values));
  return Assembled(VarKind::kSparseCoo, std::move(parts), std::move(shape));
}

absl::StatusOr<Tensor> MakeCsr(Tensor rows, Tensor columns, Tensor values,
                               Shape shape) {
  PD_RETURN_IF_ERROR(CheckIndexType("crows", rows.dtype()));
  PD_RETURN_IF_ERROR(CheckIndexType("cols", columns.dtype()));
  if (shape.size() != 2 && shape.size() != 3)
    return InvalidArgument("the shape is %s; a CSR tensor has rank 2 or 3",
                           ToString(shape));
  PD_RETURN_IF_ERROR(CheckedBytes(shape, SizeOf(values.dtype())).status());
  const int64_t batches = shape.size() == 3 ? shape[0] : 1;
  const int64_t height = shape[shape.size() - 2], width = shape.back();
  if (rows.rank() != 1 || columns.rank() != 1 || values.rank() != 1 ||
      rows.dim(0) != batches * (height + 1) || columns.dim(0) != values.dim(0))
    return InvalidArgument(
        "crows, cols and values have shapes %s, %s and %s, which do not fit "
        "the shape %s",
        ToString(rows.shape()), ToString(columns.shape()),
        ToString(values.shape()), ToString(shape));
  PD_RETURN_IF_ERROR(CheckCrows(IntsOf(rows), batches, height, values.dim(0)));
  PD_RETURN_IF_ERROR(CheckIndices("cols", columns, 0, width));
  std::vector<Tensor> parts;
  parts.push_back(std::move(rows));
  parts.push_back(std::move(columns));
  parts.push_back(std::move(values));
  return Assembled(VarKind::kSparseCsr, std::move(parts), std::move(shape));
}

Places PlacesOf(const Tensor& coo) {
  const Tensor& indices = CooIndices(coo);
  const int64_t nnz = indices.dim(1);
  Places places;
  places.dtype = indices.dtype();
  places.extents.assign(coo.shape().begin(),
                        coo.shape().begin() + indices.dim(0));
  places.flat.assign(static_cast<size_t>(nnz), 0);
  for (int64_t d = 0; d < indices.dim(0); ++d)
    for (int64_t k = 0; k < nnz; ++k) {
      int64_t& at = places.flat[static_cast<size_t>(k)];
      at = at * places.extents[static_cast<size_t>(d)] +
           LabelAt(indices, d * nnz + k);
    }
  return places;
}

std::vector<int64_t> WithoutAxis(const Places& places, size_t axis) {
  const int64_t step =
      NumElements(places.extents, axis + 1, places.extents.size());
  const int64_t span = step * places.extents[axis];
  std::vector<int64_t> left;
  for (const int64_t at : places.flat)
    left.push_back(at / span * step + at % step);
  return left;
}

absl::StatusOr<Tensor> IndicesOf(const Places& places) {
  const auto rank = static_cast<int64_t>(places.extents.size());
  const auto nnz = static_cast<int64_t>(places.flat.size());
  std::vector<int64_t> indices(static_cast<size_t>(rank * nnz));
  for (int64_t k = 0; k < nnz; ++k) {
    int64_t rest = places.flat[static_cast<size_t>(k)];
    for (int64_t d = rank; d-- > 0;) {
      const int64_t extent = places.extents[static_cast<size_t>(d)];
      indices[static_cast<size_t>(d * nnz + k)] = rest % extent;
      rest /= extent;
    }
  }
  return IntegerTensor(places.dtype, {rank, nnz}, indices);
}

absl::StatusOr<Tensor> GatherRows(const Tensor& values,
                                  const std::vector<int64_t>& rows) {
  Tensor made;
  PD_RETURN_IF_ERROR(made.Resize(
      values.dtype(), WithRows(values, static_cast<int64_t>(rows.size()))));
  const size_t bytes = RowBytes(values);
  auto* to = static_cast<std::byte*>(made.raw());
  const auto* from = static_cast<const std::byte*>(values.raw());
  for (size_t k = 0; bytes > 0 && k < rows.size(); ++k)
    if (rows[k] < 0)
      std::memset(to + k * bytes, 0, bytes);
    else
      std::memcpy(to + k * bytes, from + static_cast<size_t>(rows[k]) * bytes,
                  bytes);
  return made;
}

absl::StatusOr<Tensor> SumRowsBy(const Tensor& values,
                                 const std::vector<int64_t>& group,
                                 int64_t groups) {
  Tensor sums;
  PD_RETURN_IF_ERROR(sums.Resize(values.dtype(), WithRows(values, groups)));
  if (sums.bytes() > 0) std::memset(sums.raw(), 0, sums.bytes());
  const int64_t width = NumElements(values.shape(), 1, values.rank());
  PD_RETURN_IF_ERROR(DispatchAll(values.dtype(), [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* from = values.data<T>();
    T* to = sums.data<T>();
    for (size_t k = 0; k < group.size(); ++k) {
      if (group[k] < 0) continue;
      for (int64_t j = 0; j < width; ++j) {
        T& sum = to[group[k] * width + j];
        sum = static_cast<T>(sum + from[static_cast<int64_t>(k) * width + j]);
      }
    }
    return absl::OkStatus();
  }));
  return sums;
}

absl::StatusOr<Tensor> Coalesced(const Tensor& coo) {
  const Places places = PlacesOf(coo);
  const std::vector<int64_t> order = Ascending(places.flat);
  Places once = places;
  once.flat.clear();
  std::vector<int64_t> group(order.size());
  for (const int64_t k : order) {
    const int64_t at = places.flat[static_cast<size_t>(k)];
    if (once.flat.empty() || once.flat.back() != at) once.flat.push_back(at);
    group[static_cast<size_t>(k)] = static_cast<int64_t>(once.flat.size()) - 1;
  }
  PD_ASSIGN_OR_RETURN(Tensor indices, IndicesOf(once));
  PD_ASSIGN_OR_RETURN(Tensor values,
                      SumRowsBy(SparseValues(coo), group,
                                static_cast<int64_t>(once.flat.size())));
  return MakeCoo(std::move(indices), std::move(values), coo.shape());
}

absl::StatusOr<Tensor> CooToCsr(const Tensor& coo) {
  const Tensor& indices = CooIndices(coo);
  const size_t rank = coo.rank();
  if ((rank != 2 && rank != 3) || indices.dim(0) != static_cast<int64_t>(rank))
    return InvalidArgument(
        "a COO tensor of shape %s with %d sparse axes has no CSR form; "
        "expected "
        "rank 2 or 3 and sparse axes alone",
        ToString(coo.shape()), indices.dim(0));
  const Places places = PlacesOf(coo);
  const std::vector<int64_t> order = Ascending(places.flat);
  const int64_t batches = rank == 3 ? coo.dim(0) : 1;
  const int64_t height = coo.dim(rank - 2), width = coo.dim(rank - 1);
  std::vector<int64_t> rows(static_cast<size_t>(batches * (height + 1)), 0);
  std::vector<int64_t> columns;
  columns.reserve(order.size());
  for (const int64_t k : order) {
    const int64_t at = places.flat[static_cast<size_t>(k)];
    const int64_t row = at / width;
    ++rows[static_cast<size_t>(row / height * (height + 1) + row % height + 1)];
    columns.push_back(at % width);
  }
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t r = 0; r < height; ++r) {
      const auto at = static_cast<size_t>(b * (height + 1) + r);
      rows[at + 1] += rows[at];
    }
  const auto nnz = static_cast<int64_t>(order.size());
  PD_ASSIGN_OR_RETURN(
      Tensor crows,
      IntegerTensor(places.dtype, {batches * (height + 1)}, rows));
  PD_ASSIGN_OR_RETURN(Tensor cols, IntegerTensor(places.dtype, {nnz}, columns));
  PD_ASSIGN_OR_RETURN(Tensor values, GatherRows(SparseValues(coo), order));
  return MakeCsr(std::move(crows), std::move(cols), std::move(values),
                 coo.shape());
}

absl::StatusOr<Tensor> CsrToCoo(const Tensor& csr) {
  const std::vector<int64_t> rows = IntsOf(CsrRows(csr));
  const std::vector<int64_t> columns = IntsOf(CsrColumns(csr));
  const size_t rank = csr.rank();
  const int64_t batches = rank == 3 ? csr.dim(0) : 1;
  const int64_t height = csr.dim(rank - 2), width = csr.dim(rank - 1);
  Places places;
  places.extents = csr.shape();
  places.dtype = CsrRows(csr).dtype();
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t* at = rows.data() + b * (height + 1);
    for (int64_t r = 0; r < height; ++r)
      for (int64_t k = at[r]; k < at[r + 1]; ++k)
        places.flat.push_back((b * height + r) * width +
                              columns[places.flat.size()]);
  }
  PD_ASSIGN_OR_RETURN(Tensor indices, IndicesOf(places));
  return MakeCoo(std::move(indices), CloneOf(SparseValues(csr)), csr.shape());
}

absl::StatusOr<Tensor> AsCoo(const Tensor& x) {
  if (IsCsr(x.kind())) return CsrToCoo(x);
  return x;
}

absl::StatusOr<Tensor> InForm(VarKind kind, Tensor coo) {
  if (IsCsr(kind)) return CooToCsr(coo);
  return coo;
}

absl::StatusOr<Tensor> SparseToDense(const Tensor& x) {
  PD_ASSIGN_OR_RETURN(const Tensor coo, AsCoo(x));
  Tensor dense;
  PD_RETURN_IF_ERROR(dense.Resize(x.dtype(), x.shape()));
  if (dense.bytes() == 0) return dense;
  std::memset(dense.raw(), 0, dense.bytes());
  const Tensor& values = SparseValues(coo);
  const size_t bytes = RowBytes(values);
  const Places places = PlacesOf(coo);
  for (size_t k = 0; k < places.flat.size(); ++k)
    std::memcpy(static_cast<std::byte*>(dense.raw()) +
                    static_cast<size_t>(places.flat[k]) * bytes,
                static_cast<const std::byte*>(values.raw()) + k * bytes, bytes);
  return dense;
}

absl::StatusOr<Tensor> DenseToCoo(const Tensor& x, int64_t sparse_dim) {
  const auto rank = static_cast<int64_t>(x.rank());
  if (sparse_dim < 1 || sparse_dim > rank)
    return InvalidArgument("sparse_dim is %d; expected 1 to %d, the rank of x",
                           sparse_dim, rank);
  const auto sparse = static_cast<size_t>(sparse_dim);
  Places places;
  places.extents.assign(x.shape().begin(), x.shape().begin() + sparse_dim);
  const int64_t rows = NumElements(places.extents);
  const int64_t width = NumElements(x.shape(), sparse, x.rank());
  PD_RETURN_IF_ERROR(DispatchAll(x.dtype(), [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* from = x.data<T>();
    for (int64_t row = 0; row < rows; ++row)
      if (std::any_of(from + row * width, from + (row + 1) * width,
                      [](const T& value) { return value != T(0); }))
        places.flat.push_back(row);
    return absl::OkStatus();
  }));
  Shape flat(x.shape().begin() + sparse_dim, x.shape().end());
  flat.insert(flat.begin(), rows);
  Tensor all(x.dtype(), std::move(flat));
  all.Attach(x.raw());
  PD_ASSIGN_OR_RETURN(Tensor values, GatherRows(all, places.flat));
  PD_ASSIGN_OR_RETURN(Tensor indices, IndicesOf(places));
  return MakeCoo(std::move(indices), std::move(values), x.shape());
}

bool HaveSamePlaces(const Tensor& x, const Tensor& y) {
  if (x.kind() != y.kind() || x.shape() != y.shape()) return false;
  for (size_t i = 0; i + 1 < x.elements().size(); ++i)
    if (IntsOf(x.elements()[i]) != IntsOf(y.elements()[i]) ||
        x.elements()[i].shape() != y.elements()[i].shape())
      return false;
  return true;
}

Tensor WithValues(const Tensor& x, Tensor values) {
  Tensor made = x;
  made.Reset(values.dtype(), x.shape());
  made.elements().back() = std::move(values);
  return made;
}

absl::Status Give(Tensor value, Tensor* out) {
  if (value.kind() != VarKind::kLodTensor) {
    *out = std::move(value);
    return absl::OkStatus();
  }
  // A variable of the caller keeps its bytes.
  const bool fits = out->raw() != nullptr && out->dtype() == value.dtype() &&
                    out->shape() == value.shape();
  if (!fits) PD_RETURN_IF_ERROR(out->Resize(value.dtype(), value.shape()));
  if (value.bytes() > 0) std::memcpy(out->raw(), value.raw(), value.bytes());
  return absl::OkStatus();
}

Step Giving(Tensor* out, SparseBody body) {
  return [out, body = std::move(body)](const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(Tensor value, body(Eager(run)));
    return Give(std::move(value), out);
  };
}

absl::Status AddSparse(OpRegistry* registry, OpDef op, InferFn infer,
                       BindFn bind) {
  op.Infer(infer).NoGrad().ShapeFromData();
  op.With(Trait::kReadsSparse).Reference(bind);
  return registry->Add(std::move(op));
}

absl::Status AddSparse(OpRegistry* registry, OpDef op, InferFn infer,
                       BindFn bind, GradSpec::Names inputs,
                       GradSpec::Names outputs, GradSpec::Names to,
                       BindFn bind_grad) {
  const std::string type = absl::StrCat(op.type(), "_grad");
  OpDef grad(type);
  for (const absl::string_view slot : inputs) {
    const SlotDef* input = op.FindInput(slot);
    if (input->duplicable)
      grad.OptionalInputs(slot);
    else if (input->optional)
      grad.OptionalInput(slot);
    else
      grad.Input(slot);
  }
  for (const absl::string_view slot : outputs) grad.Input(slot);
  grad.Input("out@GRAD");
  for (const absl::string_view slot : to) grad.OptionalOutput(GradName(slot));
  for (const AttrDef& attr : op.attrs()) {
    if (attr.default_value.has_value())
      grad.Attr(attr.name, *attr.default_value);
    else
      grad.RequiredAttr(attr.name, attr.type);
  }
  op.Infer(infer).ShapeFromData().With(Trait::kReadsSparse).Reference(bind);
  op.Grad(GradSpec(type, inputs, outputs, {"out"}, to));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  return AddSparse(registry, std::move(grad), InferGradLikeInput, bind_grad);
}

absl::StatusOr<Tensor> ValuesAt(const Tensor& dense, const Tensor& x) {
  PD_ASSIGN_OR_RETURN(const Tensor coo, AsCoo(x));
  const Places places = PlacesOf(coo);
  Shape rows(
      dense.shape().begin() + static_cast<int64_t>(places.extents.size()),
      dense.shape().end());
  rows.insert(rows.begin(), NumElements(places.extents));
  Tensor flat(dense.dtype(), std::move(rows));
  flat.Attach(dense.raw());
  return GatherRows(flat, places.flat);
}

std::vector<int64_t> RowsAt(const Places& of,
                            const std::vector<int64_t>& flat) {
  std::unordered_map<int64_t, int64_t> rows;
  for (size_t k = 0; k < of.flat.size(); ++k)
    rows.emplace(of.flat[k], static_cast<int64_t>(k));
  std::vector<int64_t> found;
  for (const int64_t at : flat) {
    const auto it = rows.find(at);
    found.push_back(it == rows.end() ? -1 : it->second);
  }
  return found;
}

std::vector<int64_t> CsrOrder(const Tensor& coo) {
  return Ascending(PlacesOf(coo).flat);
}

absl::Status NeedSparse(const InferContext& context, absl::string_view slot) {
  const VarKind kind = context.Input(slot).kind;
  if (IsCoo(kind) || IsCsr(kind)) return absl::OkStatus();
  return InvalidArgument("'%s' is no sparse tensor", slot);
}

absl::Status NeedDense(const InferContext& context, absl::string_view slot) {
  if (context.Input(slot).kind == VarKind::kLodTensor) return absl::OkStatus();
  return InvalidArgument("'%s' is no dense tensor", slot);
}

void SetSparse(InferContext* context, absl::string_view slot, VarKind kind,
               Shape shape, DType dtype) {
  TensorMeta meta;
  meta.kind = kind;
  meta.shape = std::move(shape);
  meta.dtype = dtype;
  context->SetOutput(slot, std::move(meta));
}

absl::Status InferLikeX(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedSparse(*context, "x"));
  const TensorMeta& x = context->Input("x");
  SetSparse(context, "out", x.kind, x.shape, x.dtype);
  return absl::OkStatus();
}

}  // namespace pd
