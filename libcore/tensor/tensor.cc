// SPDX-License-Identifier: Apache-2.0
#include "libcore/tensor/tensor.h"

#include <complex>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/memory_limit.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/base/zeroed.h"

namespace pd {
namespace {

using Offsets = std::vector<std::vector<int64_t>>;

Offsets OffsetsOf(const Tensor& t) {
  if (t.layout() != nullptr) return t.layout()->Offsets();
  Layout row_major;
  row_major.shape = row_major.padded = t.shape();
  row_major.strides = RowMajorStrides(t.shape());
  return row_major.Offsets();
}

// Where elements lie in two tensors of one shape.
struct Places {
  Shape shape;  // without extents of 1, but of one dimension at least
  Offsets from, to;

  Places(const Tensor& a, const Tensor& b)
      : from(OffsetsOf(a)), to(OffsetsOf(b)) {
    size_t kept = 0;
    for (size_t d = 0; d < a.shape().size(); ++d) {
      if (a.shape()[d] == 1) continue;
      shape.push_back(a.shape()[d]);
      from[kept].swap(from[d]);
      to[kept++].swap(to[d]);
    }
    if (kept == 0) shape = {1};
    from.resize(shape.size(), {0});  // where no dimension is there at all
    to.resize(shape.size(), {0});
  }
};

// Copies elements of type T; threads share the rows of the last dimension.
template <typename T>
void CopyRows(const Places& p, const T* from, T* to) {
  const auto width = static_cast<size_t>(p.shape.back());
  const size_t outer = p.shape.size() - 1;
  const auto copy_rows = [&](int64_t begin, int64_t end) {
    std::vector<size_t> at(outer);
    int64_t rest = begin;
    for (size_t d = outer; d-- > 0; rest /= p.shape[d])
      at[d] = static_cast<size_t>(rest % p.shape[d]);
    for (int64_t row = begin; row < end; ++row) {
      const T* source = from;
      T* target = to;
      for (size_t d = 0; d < outer; ++d) {
        source += p.from[d][at[d]];
        target += p.to[d][at[d]];
      }
      for (size_t i = 0; i < width; ++i)
        target[p.to[outer][i]] = source[p.from[outer][i]];
      for (size_t d = outer; d-- > 0;) {
        if (++at[d] < static_cast<size_t>(p.shape[d])) break;
        at[d] = 0;
      }
    }
  };
  constexpr int64_t kGrain = 16384;  // elements per thread at least
  const int64_t rows = NumElements(p.shape) / p.shape.back();
  ParallelFor(rows, kGrain / p.shape.back() + 1, copy_rows);
}

void AllocateCopy(Tensor* copy) {
  if (!copy->Allocate().ok()) throw std::bad_alloc();
}

}  // namespace

void Tensor::Reset(DType dtype, Shape shape) {
  dtype_ = dtype;
  shape_ = std::move(shape);
  lod_.clear();
  layout_ = nullptr;
  data_ = nullptr;
  owner_ = nullptr;
  capacity_ = 0;
}

absl::Status Tensor::Allocate() {
  constexpr size_t kAlignment = 64;
  Attach(nullptr);  // frees the old bytes before it asks for more
  PD_RETURN_IF_ERROR(CheckTensorSize(dtype_, shape_));
  // A tail for whole-vector reads.
  auto made = ZeroedBytes(bytes() + 64, kAlignment);
  if (!made.ok())
    return Annotate(made.status(), absl::StrCat("a tensor of ", Name(dtype_),
                                                " ", ToString(shape_)));
  owner_ = *std::move(made);
  data_ = owner_.get();
  capacity_ = bytes();
  return absl::OkStatus();
}

absl::Status Tensor::Resize(DType dtype, Shape shape) {
  dtype_ = dtype;
  shape_ = std::move(shape);
  lod_.clear();
  layout_ = nullptr;
  // Bytes that a copy of this tensor shares are not this tensor's to write.
  if (data_ == nullptr || owner_.use_count() != 1 || bytes() > capacity_)
    return Allocate();
  return CheckTensorSize(dtype_, shape_);
}

void CopyElements(const Tensor& from, Tensor* to) {
  PD_INVARIANT(from.dtype() == to->dtype() && from.shape() == to->shape());
  if (SameLayout(from.layout(), to->layout())) {
    if (to->bytes() > 0) std::memcpy(to->raw(), from.raw(), to->bytes());
    return;
  }
  if (to->physical_size() != to->size()) std::memset(to->raw(), 0, to->bytes());
  if (from.size() == 0) return;
  const Places places(from, *to);
  const auto copy = [&](auto zero) {
    using T = decltype(zero);
    CopyRows(places, static_cast<const T*>(from.raw()),
             static_cast<T*>(to->raw()));
  };
  switch (SizeOf(from.dtype())) {
    case 1:
      return copy(uint8_t{});
    case 2:
      return copy(uint16_t{});
    case 4:
      return copy(uint32_t{});
    case 8:
      return copy(uint64_t{});
    default:
      return copy(std::complex<double>{});
  }
}

Tensor CloneOf(const Tensor& tensor) {
  Tensor copy = tensor;
  if (tensor.raw() != nullptr) {
    AllocateCopy(&copy);
    if (copy.bytes() > 0) std::memcpy(copy.raw(), tensor.raw(), copy.bytes());
  }
  return copy;
}

Array ToArray(const Tensor& tensor) {
  std::byte* bytes = nullptr;
  Array array = NewCopy(tensor.dtype(), tensor.shape(), &bytes);
  array.lod = tensor.lod();
  Tensor view(tensor.dtype(), tensor.shape());
  view.Attach(bytes);
  CopyElements(tensor, &view);
  return array;
}

Tensor ToTensor(const Array& array) {
  Tensor tensor(array.dtype, array.shape);
  tensor.set_lod(array.lod);
  AllocateCopy(&tensor);
  if (array.size_bytes() > 0)
    std::memcpy(tensor.raw(), array.bytes.get(), array.size_bytes());
  return tensor;
}

}  // namespace pd
