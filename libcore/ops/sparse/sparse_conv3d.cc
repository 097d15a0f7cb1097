// SPDX-License-Identifier: Apache-2.0
// Windows over COO tensors [batch, depth, height, width, channels] with one
// axis of channels that is dense, or without depth.
//   sparse_conv3d: kernel [windows..., channels, filters]. A place of `out` is
//     one that a window with a place of x ends at, in order; subm: the places
//     of x, for windows around them. rulebook [3, n] has for each pair of a
//     place of x and one of `out` its number in the window, the place of x and
//     that of `out`; counter has the pairs of each number
//   sparse_maxpool: the largest of the values in each window with a place
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/sparse/sparse_tensor.h"

namespace pd {
namespace {

struct Window {
  std::vector<int64_t> sizes, paddings, dilations, strides;
  bool subm = false;

  int64_t size() const { return NumElements(sizes); }
};

absl::StatusOr<std::vector<int64_t>> PerAxis(const OpDesc& op, const char* attr,
                                             size_t axes, int64_t least) {
  const std::vector<int64_t> given = IntsAttr(op, attr);
  if (given.size() != axes)
    return InvalidArgument("attr '%s' has %d elements; expected %d", attr,
                           given.size(), axes);
  for (const int64_t one : given)
    if (one < least)
      return InvalidArgument("attr '%s' holds %d; expected at least %d", attr,
                             one, least);
  return given;
}

// `sizes`: those of the kernel.
absl::StatusOr<Window> WindowOf(const OpDesc& op, std::vector<int64_t> sizes) {
  Window window;
  const size_t axes = sizes.size();
  PD_ASSIGN_OR_RETURN(window.paddings, PerAxis(op, "paddings", axes, 0));
  PD_ASSIGN_OR_RETURN(window.dilations, PerAxis(op, "dilations", axes, 1));
  PD_ASSIGN_OR_RETURN(window.strides, PerAxis(op, "strides", axes, 1));
  window.sizes = std::move(sizes);
  window.subm = op.AttrOr<bool>("subm", false);
  for (size_t d = 0; window.subm && d < axes; ++d) {
    window.paddings[d] = window.sizes[d] / 2;
    window.strides[d] = 1;
  }
  return window;
}

// The shape of `out` with `channels` for the shape of x.
absl::StatusOr<Shape> ShapeOfWindows(const Window& window, const Shape& x,
                                     int64_t channels) {
  if ((x.size() != 4 && x.size() != 5) || window.sizes.size() + 2 != x.size())
    return InvalidArgument("x has shape %s; expected [n, d, h, w, c]",
                           ToString(x));
  Shape out = x;
  out.back() = channels;
  for (size_t d = 0; d < window.sizes.size(); ++d) {
    int64_t& extent = out[d + 1];
    if (extent < 0) continue;
    const int64_t span = window.dilations[d] * (window.sizes[d] - 1) + 1;
    const int64_t room = extent + 2 * window.paddings[d] - span;
    if (room < 0)
      return InvalidArgument(
          "a window of %d along axis %d is larger than x, %s", span, d + 1,
          ToString(x));
    extent = window.subm ? extent : room / window.strides[d] + 1;
  }
  return out;
}

// Pairs of places, by their number in the window.
struct Rulebook {
  std::vector<int64_t> number, from, to;
  Places places;  // of `out`
  std::vector<int64_t> counts;
};

Rulebook PairsOf(const Window& window, const Tensor& x, const Shape& out) {
  const Tensor& indices = CooIndices(x);
  const int64_t nnz = indices.dim(1);
  const std::vector<int64_t> at = IntsOf(indices);
  Rulebook book;
  book.places.dtype = indices.dtype();
  book.places.extents.assign(out.begin(), out.end() - 1);
  book.counts.assign(static_cast<size_t>(window.size()), 0);
  std::unordered_map<int64_t, int64_t> numbers;  // of the places of x
  if (window.subm) {
    book.places.flat = PlacesOf(x).flat;
    for (int64_t k = 0; k < nnz; ++k)
      numbers.emplace(book.places.flat[static_cast<size_t>(k)], k);
  }
  const size_t axes = window.sizes.size();
  for (int64_t w = 0; w < window.size(); ++w) {
    std::vector<int64_t> offset(axes);
    int64_t rest = w;
    for (size_t d = axes; d-- > 0;) {
      offset[d] = rest % window.sizes[d] * window.dilations[d];
      rest /= window.sizes[d];
    }
    for (int64_t k = 0; k < nnz; ++k) {
      int64_t flat = at[static_cast<size_t>(k)];  // the batch
      bool inside = true;
      for (size_t d = 0; d < axes && inside; ++d) {
        const int64_t shifted =
            at[(d + 1) * static_cast<size_t>(nnz) + static_cast<size_t>(k)] +
            window.paddings[d] - offset[d];
        const int64_t place = shifted / window.strides[d];
        inside = shifted >= 0 && shifted % window.strides[d] == 0 &&
                 place < out[d + 1];
        flat = flat * out[d + 1] + place;
      }
      if (!inside || (window.subm && numbers.count(flat) == 0)) continue;
      book.number.push_back(w);
      book.from.push_back(k);
      book.to.push_back(window.subm ? numbers[flat] : flat);
      ++book.counts[static_cast<size_t>(w)];
    }
  }
  if (window.subm) return book;
  std::vector<int64_t>& flat = book.places.flat;
  flat = book.to;
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  for (int64_t& to : book.to)
    to = std::lower_bound(flat.begin(), flat.end(), to) - flat.begin();
  return book;
}

absl::Status NeedVoxels(const InferContext& context) {
  PD_RETURN_IF_ERROR(NeedSparse(context, "x"));
  const TensorMeta& x = context.Input("x");
  if (!IsCoo(x.kind)) return InvalidArgument("x is a CSR tensor; expected COO");
  if (x.shape.size() != 4 && x.shape.size() != 5)
    return InvalidArgument("x has shape %s; expected [n, d, h, w, c]",
                           ToString(x.shape));
  if (x.value != nullptr &&
      CooIndices(*x.value).dim(0) + 1 != static_cast<int64_t>(x.shape.size()))
    return InvalidArgument(
        "x of shape %s has %d sparse axes; expected all but the channels",
        ToString(x.shape), CooIndices(*x.value).dim(0));
  if (x.dtype != DType::kFloat32 && x.dtype != DType::kFloat64)
    return InvalidArgument("x is %s; expected float32 or float64",
                           Name(x.dtype));
  return absl::OkStatus();
}

void SetBook(InferContext* context) {
  context->SetOutput("rulebook", {3, -1}, DType::kInt32);
  context->SetOutput("counter", {-1}, DType::kInt32);
}

absl::Status GiveBook(const Rulebook& book, Tensor* rulebook, Tensor* counter) {
  const auto pairs = static_cast<int64_t>(book.to.size());
  if (rulebook != nullptr) {
    std::vector<int64_t> all = book.number;
    all.insert(all.end(), book.from.begin(), book.from.end());
    all.insert(all.end(), book.to.begin(), book.to.end());
    PD_ASSIGN_OR_RETURN(*rulebook,
                        IntegerTensor(DType::kInt32, {3, pairs}, all));
  }
  if (counter != nullptr) {
    PD_ASSIGN_OR_RETURN(
        *counter,
        IntegerTensor(DType::kInt32, {static_cast<int64_t>(book.counts.size())},
                      book.counts));
  }
  return absl::OkStatus();
}

// The windows of the kernel: its extents but for the last two.
absl::Status InferConv(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedVoxels(*context));
  PD_RETURN_IF_ERROR(NeedDense(*context, "kernel"));
  const TensorMeta& x = context->Input("x");
  const TensorMeta& kernel = context->Input("kernel");
  if (context->Attr<int32_t>("groups") != 1)
    return Unimplemented("attr 'groups' is %d; expected 1",
                         context->Attr<int32_t>("groups"));
  if (kernel.shape.size() != x.shape.size() || kernel.dtype != x.dtype ||
      IsDynamic(kernel.shape) ||
      (x.shape.back() >= 0 &&
       kernel.shape[kernel.shape.size() - 2] != x.shape.back()))
    return InvalidArgument("kernel is %s%s, which does not fit x, %s%s",
                           Name(kernel.dtype), ToString(kernel.shape),
                           Name(x.dtype), ToString(x.shape));
  PD_ASSIGN_OR_RETURN(
      const Window window,
      WindowOf(context->op(), {kernel.shape.begin(), kernel.shape.end() - 2}));
  PD_ASSIGN_OR_RETURN(Shape shape,
                      ShapeOfWindows(window, x.shape, kernel.shape.back()));
  SetSparse(context, "out", VarKind::kSparseCoo, std::move(shape), x.dtype);
  SetBook(context);
  return absl::OkStatus();
}

template <typename T>
void Convolve(const Rulebook& book, const Tensor& values, const Tensor& kernel,
              Tensor* out) {
  const int64_t channels = values.dim(1), filters = out->dim(1);
  std::fill_n(out->data<T>(), out->size(), T(0));
  for (size_t i = 0; i < book.to.size(); ++i) {
    const T* x = values.data<T>() + book.from[i] * channels;
    const T* w = kernel.data<T>() + book.number[i] * channels * filters;
    T* to = out->data<T>() + book.to[i] * filters;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t f = 0; f < filters; ++f) to[f] += x[c] * w[c * filters + f];
  }
}

absl::StatusOr<Step> BindConv(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* kernel = context->Input("kernel");
  Tensor* out = context->Output("out");
  Tensor* rulebook = context->Output("rulebook");
  Tensor* counter = context->Output("counter");
  PD_ASSIGN_OR_RETURN(const Window window,
                      WindowOf(context->op(), {kernel->shape().begin(),
                                               kernel->shape().end() - 2}));
  const int64_t filters = kernel->shape().back();
  PD_ASSIGN_OR_RETURN(const Shape shape,
                      ShapeOfWindows(window, x->shape(), filters));
  return Step([=](const RunContext&) -> absl::Status {
    const Rulebook book = PairsOf(window, *x, shape);
    Tensor values;
    PD_RETURN_IF_ERROR(values.Resize(
        x->dtype(), {static_cast<int64_t>(book.places.flat.size()), filters}));
    if (x->dtype() == DType::kFloat64)
      Convolve<double>(book, SparseValues(*x), *kernel, &values);
    else
      Convolve<float>(book, SparseValues(*x), *kernel, &values);
    PD_RETURN_IF_ERROR(GiveBook(book, rulebook, counter));
    PD_ASSIGN_OR_RETURN(Tensor indices, IndicesOf(book.places));
    PD_ASSIGN_OR_RETURN(*out,
                        MakeCoo(std::move(indices), std::move(values), shape));
    return absl::OkStatus();
  });
}

template <typename T>
void ConvolveGrad(const Rulebook& book, const Tensor& values,
                  const Tensor& kernel, const Tensor& grad, T* x_grad,
                  T* kernel_grad) {
  const int64_t channels = values.dim(1), filters = grad.dim(1);
  for (size_t i = 0; i < book.to.size(); ++i) {
    const int64_t from = book.from[i] * channels;
    const int64_t w = book.number[i] * channels * filters;
    const T* g = grad.data<T>() + book.to[i] * filters;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t f = 0; f < filters; ++f) {
        const int64_t at = w + c * filters + f;
        x_grad[from + c] += g[f] * kernel.data<T>()[at];
        kernel_grad[at] += g[f] * values.data<T>()[from + c];
      }
  }
}

absl::StatusOr<Step> BindConvGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* kernel = context->Input("kernel");
  Tensor* out_grad = context->Input("out@GRAD");
  Tensor* x_grad = context->Output("x@GRAD");
  Tensor* kernel_grad = context->Output("kernel@GRAD");
  PD_ASSIGN_OR_RETURN(const Window window,
                      WindowOf(context->op(), {kernel->shape().begin(),
                                               kernel->shape().end() - 2}));
  return Step([=](const RunContext&) -> absl::Status {
    const Rulebook book = PairsOf(window, *x, out_grad->shape());
    const Tensor& values = SparseValues(*x);
    const Tensor& grad = SparseValues(*out_grad);
    Tensor of_x, of_kernel;
    for (const auto& [made, like] :
         {std::pair<Tensor*, const Tensor*>(&of_x, &values),
          {&of_kernel, kernel}}) {
      PD_RETURN_IF_ERROR(made->Resize(like->dtype(), like->shape()));
      if (made->bytes() > 0) std::memset(made->raw(), 0, made->bytes());
    }
    if (x->dtype() == DType::kFloat64)
      ConvolveGrad(book, values, *kernel, grad, of_x.data<double>(),
                   of_kernel.data<double>());
    else
      ConvolveGrad(book, values, *kernel, grad, of_x.data<float>(),
                   of_kernel.data<float>());
    if (x_grad != nullptr) *x_grad = WithValues(*x, std::move(of_x));
    if (kernel_grad == nullptr) return absl::OkStatus();
    return Give(std::move(of_kernel), kernel_grad);
  });
}

absl::Status InferMaxPool(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedVoxels(*context));
  const TensorMeta& x = context->Input("x");
  const size_t axes = x.shape.size() < 2 ? 0 : x.shape.size() - 2;
  PD_ASSIGN_OR_RETURN(auto sizes,
                      PerAxis(context->op(), "kernel_sizes", axes, 1));
  PD_RETURN_IF_ERROR(BytesOfExtents(sizes, sizeof(int64_t)).status());
  PD_ASSIGN_OR_RETURN(const Window window,
                      WindowOf(context->op(), std::move(sizes)));
  PD_ASSIGN_OR_RETURN(Shape shape,
                      ShapeOfWindows(window, x.shape, x.shape.back()));
  SetSparse(context, "out", VarKind::kSparseCoo, std::move(shape), x.dtype);
  SetBook(context);
  return absl::OkStatus();
}

template <typename T>
void TakeLargest(const Rulebook& book, const Tensor& values, Tensor* out) {
  const int64_t channels = values.dim(1);
  std::vector<char> seen(static_cast<size_t>(out->dim(0)), 0);
  for (size_t i = 0; i < book.to.size(); ++i) {
    const T* x = values.data<T>() + book.from[i] * channels;
    T* to = out->data<T>() + book.to[i] * channels;
    char& any = seen[static_cast<size_t>(book.to[i])];
    for (int64_t c = 0; c < channels; ++c)
      if (any == 0 || x[c] > to[c]) to[c] = x[c];
    any = 1;
  }
}

absl::StatusOr<Step> BindMaxPool(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out = context->Output("out");
  Tensor* rulebook = context->Output("rulebook");
  Tensor* counter = context->Output("counter");
  PD_ASSIGN_OR_RETURN(
      const Window window,
      WindowOf(context->op(), IntsAttr(context->op(), "kernel_sizes")));
  PD_ASSIGN_OR_RETURN(const Shape shape,
                      ShapeOfWindows(window, x->shape(), x->shape().back()));
  return Step([=](const RunContext&) -> absl::Status {
    const Rulebook book = PairsOf(window, *x, shape);
    Tensor values;
    PD_RETURN_IF_ERROR(values.Resize(
        x->dtype(),
        {static_cast<int64_t>(book.places.flat.size()), shape.back()}));
    if (x->dtype() == DType::kFloat64)
      TakeLargest<double>(book, SparseValues(*x), &values);
    else
      TakeLargest<float>(book, SparseValues(*x), &values);
    PD_RETURN_IF_ERROR(GiveBook(book, rulebook, counter));
    PD_ASSIGN_OR_RETURN(Tensor indices, IndicesOf(book.places));
    PD_ASSIGN_OR_RETURN(*out,
                        MakeCoo(std::move(indices), std::move(values), shape));
    return absl::OkStatus();
  });
}

// Every value that is the largest of a window gets its gradient.
template <typename T>
void LargestGrad(const Rulebook& book, const Tensor& values, const Tensor& out,
                 const Tensor& grad, T* x_grad) {
  const int64_t channels = values.dim(1);
  for (size_t i = 0; i < book.to.size(); ++i)
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t from = book.from[i] * channels + c;
      const int64_t to = book.to[i] * channels + c;
      if (values.data<T>()[from] == out.data<T>()[to])
        x_grad[from] += grad.data<T>()[to];
    }
}

absl::StatusOr<Step> BindMaxPoolGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out = context->Input("out");
  Tensor* out_grad = context->Input("out@GRAD");
  PD_ASSIGN_OR_RETURN(
      const Window window,
      WindowOf(context->op(), IntsAttr(context->op(), "kernel_sizes")));
  return Giving(
      context->Output("x@GRAD"), [=](const Eager&) -> absl::StatusOr<Tensor> {
        const Rulebook book = PairsOf(window, *x, out->shape());
        const Tensor& values = SparseValues(*x);
        Tensor made;
        PD_RETURN_IF_ERROR(made.Resize(values.dtype(), values.shape()));
        if (made.bytes() > 0) std::memset(made.raw(), 0, made.bytes());
        if (x->dtype() == DType::kFloat64)
          LargestGrad(book, values, SparseValues(*out), SparseValues(*out_grad),
                      made.data<double>());
        else
          LargestGrad(book, values, SparseValues(*out), SparseValues(*out_grad),
                      made.data<float>());
        return WithValues(*x, std::move(made));
      });
}

}  // namespace

absl::Status RegisterSparseConv3d(OpRegistry* registry) {
  OpDef conv("sparse_conv3d");
  conv.Input("x").Input("kernel").Output("out");
  conv.IntermediateOutput("rulebook").IntermediateOutput("counter");
  for (const char* name : {"paddings", "dilations", "strides"})
    conv.RequiredAttr(name, AttrType::kInts);
  conv.RequiredAttr("groups", AttrType::kInt);
  conv.RequiredAttr("subm", AttrType::kBoolean).Attr("key", std::string());
  PD_RETURN_IF_ERROR(AddSparse(registry, std::move(conv), InferConv, BindConv,
                               {"x", "kernel"}, {}, {"x", "kernel"},
                               BindConvGrad));
  OpDef pool("sparse_maxpool");
  pool.Input("x").Output("out");
  pool.IntermediateOutput("rulebook").IntermediateOutput("counter");
  for (const char* name : {"kernel_sizes", "paddings", "dilations", "strides"})
    pool.RequiredAttr(name, AttrType::kInts);
  return AddSparse(registry, std::move(pool), InferMaxPool, BindMaxPool, {"x"},
                   {"out"}, {"x"}, BindMaxPoolGrad);
}

}  // namespace pd
