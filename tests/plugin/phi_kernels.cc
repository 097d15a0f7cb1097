// SPDX-License-Identifier: Apache-2.0
// Kernels of the host in the C++ form: every kind of argument, and some that
// fail.
#include <stdexcept>

#include "paddle/phi/extension.h"

// An int8 product, which pdkit has not.
template <typename T, typename Context>
void Dot(const Context& dev_ctx, const phi::DenseTensor& x,
         const phi::DenseTensor& y, phi::DenseTensor* out) {
  T* sums = dev_ctx.template Alloc<T>(out);
  const int64_t n = x.dims()[x.dims().size() - 1];
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (i % n == 0) sums[i / n] = T(0);
    sums[i / n] = static_cast<T>(sums[i / n] + x.data<T>()[i] * y.data<T>()[i]);
  }
}
PD_REGISTER_BUILTIN_KERNEL(dot, CPU, ALL_LAYOUT, Dot, int8_t) {
  kernel->OutputAt(0).SetDataType(kernel_key.dtype());
}

// A list, and a number that may be of any type.
template <typename T, typename Context>
void Concat(const Context& dev_ctx,
            const std::vector<const phi::DenseTensor*>& x,
            const phi::Scalar& axis, phi::DenseTensor* out) {
  PD_CHECK(axis.to<int>() == 0, "this kernel joins along the first axis");
  T* to = dev_ctx.template Alloc<T>(out);
  for (const phi::DenseTensor* part : x)
    to = std::copy(part->data<T>(), part->data<T>() + part->numel(), to);
}
PD_REGISTER_KERNEL(concat, CPU, ALL_LAYOUT, Concat, float, double) {}

// No inputs; a list of integers, a number, an element type.
template <typename T, typename Context>
void Full(const Context& dev_ctx, const phi::IntArray& shape,
          const phi::Scalar& value, phi::DataType dtype,
          phi::DenseTensor* out) {
  PD_CHECK(dtype == out->dtype(), "one type is ", dtype, ", the other ",
           out->dtype());
  out->Resize(phi::make_ddim(shape.GetData()));
  T* to = dev_ctx.template Alloc<T>(out);
  std::fill(to, to + out->numel(), value.to<T>());
}
PD_REGISTER_KERNEL(full, CPU, ALL_LAYOUT, Full, float, int64_t) {}

// Inputs that may be absent, several outputs, numbers; no context.
template <typename T, typename Context>
void LayerNorm(const phi::DenseTensor& x,
               const paddle::optional<phi::DenseTensor>& scale,
               const paddle::optional<phi::DenseTensor>& bias, float epsilon,
               int begin_norm_axis, phi::DenseTensor* y, phi::DenseTensor* mean,
               phi::DenseTensor* variance) {
  const Context dev_ctx;  // of the host
  const phi::DDim dims = x.dims();
  int64_t rows = 1;
  for (int i = 0; i < begin_norm_axis; ++i) rows *= dims[i];
  const int64_t n = x.numel() / rows;
  T* to = dev_ctx.template Alloc<T>(y);
  T* means = dev_ctx.template Alloc<T>(mean);
  T* variances = dev_ctx.template Alloc<T>(variance);
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = x.data<T>() + r * n;
    T sum = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) sum += row[i];
    means[r] = sum / static_cast<T>(n);
    for (int64_t i = 0; i < n; ++i)
      squares += (row[i] - means[r]) * (row[i] - means[r]);
    variances[r] = squares / static_cast<T>(n);
    for (int64_t i = 0; i < n; ++i) {
      T v = (row[i] - means[r]) / std::sqrt(variances[r] + T(epsilon));
      if (scale) v *= scale->data<T>()[i];
      if (bias) v += bias->data<T>()[i];
      to[r * n + i] = v;
    }
  }
}
PD_REGISTER_KERNEL(layer_norm, CPU, NCHW, LayerNorm, float, double) {}

// An attribute that is a number, and results in memory of its own.
template <typename T, typename Context>
void Softmax(const Context& dev_ctx, const phi::DenseTensor& x, int axis,
             phi::DenseTensor* out) {
  PD_CHECK(axis == -1 || axis == x.dims().size() - 1,
           "this kernel knows the last axis, not ", axis);
  phi::DenseTensor made;
  made.Resize(x.dims());
  T* to = dev_ctx.template Alloc<T>(&made);
  const int64_t n = x.dims()[x.dims().size() - 1];
  for (int64_t r = 0; r < x.numel(); r += n) {
    const T* row = x.data<T>() + r;
    const T most = *std::max_element(row, row + n);
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += to[r + i] = std::exp(row[i] - most);
    for (int64_t i = 0; i < n; ++i) to[r + i] /= sum;
  }
  out->ShareDataWith(made);
}
PD_REGISTER_KERNEL(softmax, CPU, ALL_LAYOUT, Softmax, float, double) {}

// Fails in the way that its first element says.
template <typename T, typename Context>
void Tanh(const Context& dev_ctx, const phi::DenseTensor& x,
          phi::DenseTensor* out) {
  switch (static_cast<int>(x.data<T>()[0])) {
    case 1:
      throw std::runtime_error("out of ideas");
    case 2:
      throw 7;
    case 3:
      return;
    case 4:
      dev_ctx.template Alloc<double>(out);
      return;
    case 5:
      out->Resize({7});
      dev_ctx.template Alloc<T>(out);
      return;
    case 6:
      x.data<double>();
      return;
    case 7:
      out->Resize({-1});
      dev_ctx.template Alloc<T>(out);
      return;
    case 8:
      out->Resize({int64_t{1} << 40, int64_t{1} << 40});
      dev_ctx.template Alloc<T>(out);
      return;
    case 9: {
      volatile int* volatile nothing = nullptr;
      *nothing = 1;
      return;
    }
    default:
      break;
  }
  T* to = dev_ctx.template Alloc<T>(out);
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = std::tanh(x.data<T>()[i]);
}
PD_REGISTER_KERNEL(tanh, CPU, ALL_LAYOUT, Tanh, float) {}

// This kernel is for a device without a driver: it is never asked.
template <typename T, typename Context>
void Relu(const Context& dev_ctx, const phi::DenseTensor& x,
          phi::DenseTensor* out) {
  dev_ctx.template Alloc<T>(out);
  (void)x;
}
PD_REGISTER_PLUGIN_KERNEL(relu, NoSuchDevice, ALL_LAYOUT, Relu, float,
                          phi::dtype::float16) {}

// An argument of later releases than the op.
template <typename T, typename Context>
void Argsort(const Context& dev_ctx, const phi::DenseTensor& x, int axis,
             bool descending, bool stable, phi::DenseTensor* out,
             phi::DenseTensor* indices) {
  PD_CHECK(axis == -1 && x.dims().size() == 1 && descending && !stable);
  int64_t* order = dev_ctx.template Alloc<int64_t>(indices);
  T* to = dev_ctx.template Alloc<T>(out);
  std::iota(order, order + x.numel(), 0);
  std::sort(order, order + x.numel(), [&](int64_t a, int64_t b) {
    return x.data<T>()[a] > x.data<T>()[b];
  });
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = x.data<T>()[order[i]];
}
PD_REGISTER_KERNEL(argsort, CPU, ALL_LAYOUT, Argsort, float) {
  kernel->OutputAt(1).SetDataType(phi::DataType::INT64);
}

// The element type is that of the output.
template <typename T, typename Context>
void FullLike(const Context& dev_ctx, const phi::DenseTensor& x,
              const phi::Scalar& value, phi::DataType dtype,
              phi::DenseTensor* out) {
  PD_CHECK(dtype == out->dtype() && x.dtype() != dtype);
  T* to = dev_ctx.template Alloc<T>(out);
  std::fill(to, to + out->numel(), value.to<T>());
}
PD_REGISTER_KERNEL(full_like, CPU, ALL_LAYOUT, FullLike, int64_t) {}

// Other arguments than those of PaddlePaddle's kernel.
template <typename T, typename Context>
void Abs(const Context& dev_ctx, const phi::DenseTensor& x, float scale,
         phi::DenseTensor* out) {
  T* to = dev_ctx.template Alloc<T>(out);
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = x.data<T>()[i] * T(scale);
}
PD_REGISTER_KERNEL(abs, CPU, ALL_LAYOUT, Abs, float) {}
