// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/values.h"

#include <complex>
#include <cstring>
#include <utility>

#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/block_runner.h"

namespace pd {
namespace {

absl::Status SameDense(const Tensor& part, const Tensor& sum) {
  if (part.shape() != sum.shape() || part.dtype() != sum.dtype())
    return InvalidArgument("gradients %s%s and %s%s of one variable",
                           Name(sum.dtype()), ToString(sum.shape()),
                           Name(part.dtype()), ToString(part.shape()));
  return absl::OkStatus();
}

absl::Status SameRows(const Tensor& part, const Tensor& sum) {
  Shape row = sum.shape();
  if (!row.empty() && part.rank() == row.size()) row[0] = part.dim(0);
  if (row.empty() || row != part.shape() || part.dtype() != sum.dtype() ||
      part.height() != sum.height())
    return InvalidArgument("rows %s and %s of one variable",
                           ToString(sum.shape()), ToString(part.shape()));
  return absl::OkStatus();
}

class OfTheHost : public Values {
 public:
  absl::StatusOr<Tensor> Clone(const Tensor& value) override {
    return CloneOf(value);
  }
  absl::StatusOr<Tensor> OnHost(const Tensor& value) override { return value; }
  absl::StatusOr<Tensor> Join(const std::vector<Tensor>& parts, int64_t outer,
                              const Shape& shape) override {
    Tensor whole(parts.front().dtype(), shape);
    PD_RETURN_IF_ERROR(whole.Allocate());
    CopyParts(
        parts, outer,
        [](char* at, char* part, size_t bytes) {
          std::memcpy(at, part, bytes);
        },
        &whole);
    return whole;
  }
  absl::StatusOr<std::vector<Tensor>> Split(
      const Tensor& whole, int64_t outer,
      const std::vector<Tensor>& like) override {
    std::vector<Tensor> parts;
    for (const Tensor& one : like) {
      parts.emplace_back(one.dtype(), one.shape());
      PD_RETURN_IF_ERROR(parts.back().Allocate());
      parts.back().set_lod(one.lod());
    }
    Tensor from = whole;
    CopyParts(
        parts, outer,
        [](char* at, char* part, size_t bytes) {
          std::memcpy(part, at, bytes);
        },
        &from);
    return parts;
  }

 protected:
  absl::Status CopyBytes(const Tensor& from, Tensor* to) override {
    CopyElements(from, to);
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Zeros(const Tensor& like) override {
    Tensor zeros(like.dtype(), like.shape());
    PD_RETURN_IF_ERROR(zeros.Allocate());
    return zeros;
  }
  absl::Status Add(const Tensor& part, Tensor* sum) override {
    return DispatchTypes<float, double, std::complex<float>,
                         std::complex<double>>(
        part.dtype(), [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          const T* from = part.data<T>();
          T* to = sum->data<T>();
          for (int64_t i = 0; i < part.size(); ++i) to[i] += from[i];
          return absl::OkStatus();
        });
  }
  absl::StatusOr<Tensor> Append(const Tensor& a, const Tensor& b) override {
    Shape shape = a.shape();
    shape[0] += b.dim(0);
    Tensor both(a.dtype(), shape);
    PD_RETURN_IF_ERROR(both.Allocate());
    both.set_kind(VarKind::kSelectedRows);
    both.set_height(a.height());
    both.rows() = a.rows();
    both.rows().insert(both.rows().end(), b.rows().begin(), b.rows().end());
    if (a.bytes() > 0) std::memcpy(both.raw(), a.raw(), a.bytes());
    if (b.bytes() > 0)
      std::memcpy(both.data<char>() + a.bytes(), b.raw(), b.bytes());
    return both;
  }

 private:
  // Calls `copy` with every row of every part and where it lies in the whole.
  template <typename Copy>
  static void CopyParts(const std::vector<Tensor>& parts, int64_t outer,
                        const Copy& copy, Tensor* whole) {
    const auto rows = static_cast<size_t>(outer);
    if (rows == 0) return;
    const size_t row = whole->bytes() / rows;
    size_t at = 0;
    for (Tensor part : parts) {
      const size_t width = part.bytes() / rows;
      for (size_t r = 0; width > 0 && r < rows; ++r)
        copy(whole->data<char>() + r * row + at, part.data<char>() + r * width,
             width);
      at += width;
    }
  }
};

}  // namespace

Values* HostValues() {
  static Values* const kValues = new OfTheHost;
  return kValues;
}

Values* ValuesOf(BindContext* context) {
  BlockRunner* blocks = context->blocks();
  return blocks == nullptr ? HostValues() : blocks->values();
}

absl::Status Values::Copy(const Tensor& from, Tensor* to) {
  if (from.kind() != VarKind::kLodTensor || from.dtype() != to->dtype() ||
      from.shape() != to->shape())
    return InvalidArgument("the variable holds %s%s; the op makes %s%s",
                           Name(to->dtype()), ToString(to->shape()),
                           Name(from.dtype()), ToString(from.shape()));
  return CopyBytes(from, to);
}

absl::Status Values::Accumulate(const Tensor& part, Tensor* sum) {
  if (!sum->has_value()) {
    PD_ASSIGN_OR_RETURN(*sum, Clone(part));
    return absl::OkStatus();
  }
  if (part.kind() != sum->kind())
    return InvalidArgument("a dense and a sparse gradient of one variable");
  if (part.kind() == VarKind::kSelectedRows) {
    PD_RETURN_IF_ERROR(SameRows(part, *sum));
    PD_ASSIGN_OR_RETURN(*sum, Append(*sum, part));
    return absl::OkStatus();
  }
  if (!part.is_array()) {
    PD_RETURN_IF_ERROR(SameDense(part, *sum));
    return Add(part, sum);
  }
  if (sum->elements().size() < part.elements().size())
    sum->elements().resize(part.elements().size());
  for (size_t i = 0; i < part.elements().size(); ++i) {
    if (!part.elements()[i].has_value()) continue;
    // Others may share it.
    PD_ASSIGN_OR_RETURN(Tensor element, Clone(sum->elements()[i]));
    PD_RETURN_IF_ERROR(Accumulate(part.elements()[i], &element));
    sum->elements()[i] = std::move(element);
  }
  return absl::OkStatus();
}

absl::Status Values::ZerosLike(const Tensor& like, Tensor* out) {
  if (like.is_array()) {
    std::vector<Tensor> zeros(like.elements().size());
    for (size_t i = 0; i < zeros.size(); ++i)
      if (like.elements()[i].has_value())
        PD_RETURN_IF_ERROR(ZerosLike(like.elements()[i], &zeros[i]));
    out->set_kind(VarKind::kLodTensorArray);
    out->elements() = std::move(zeros);
    return absl::OkStatus();
  }
  if (like.kind() == VarKind::kSelectedRows) {
    Shape shape = like.shape();
    shape[0] = 0;
    const int64_t height = like.height();
    Tensor none(like.dtype(), shape);
    PD_RETURN_IF_ERROR(none.Allocate());
    none.set_kind(VarKind::kSelectedRows);
    none.set_height(height);
    *out = std::move(none);
    return absl::OkStatus();
  }
  const LoD lod = like.lod();
  PD_ASSIGN_OR_RETURN(*out, Zeros(like));
  out->set_lod(lod);
  return absl::OkStatus();
}

}  // namespace pd
