// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/runtime/kernel.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace pd_run {

bool Call::Fail(const char* format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return error_->Fail(PD_RUN_BAD_DATA, "%s '%s': %s", node_->kernel->name,
                      node_->layer.c_str(), text);
}

bool Call::Expect(size_t input, DType dtype) {
  if (In(input).dtype == dtype) return true;
  return Fail("input %zu is %s; expected %s", input, Name(In(input).dtype),
              Name(dtype));
}

bool Call::ExpectFloats(size_t i, int rank) {
  if (!Expect(i, DType::kFloat32)) return false;
  if (In(i).shape.rank == rank) return true;
  return Fail("input %zu has shape %s; expected rank %d", i,
              ToString(In(i).shape).c_str(), rank);
}

bool Call::ExpectVector(size_t i, int64_t count) {
  if (!Has(i)) return true;
  if (!Expect(i, DType::kFloat32)) return false;
  if (In(i).size() == count) return true;
  return Fail("input %zu has shape %s; expected %lld elements", i,
              ToString(In(i).shape).c_str(), static_cast<long long>(count));
}

bool Call::Within(size_t i, int64_t low, int64_t high) {
  if (Int(i) >= low && Int(i) <= high) return true;
  return Fail("number %zu is %lld; expected %lld to %lld", i,
              static_cast<long long>(Int(i)), static_cast<long long>(low),
              static_cast<long long>(high));
}

bool Call::Axis(size_t i, int rank, int* axis) {
  if (!Within(i, -rank, rank - 1)) return false;
  *axis = static_cast<int>(Int(i) < 0 ? Int(i) + rank : Int(i));
  return true;
}

bool Call::Give(size_t i, DType dtype, const Shape& shape) {
  int64_t count = 0;
  if (!CountElements(shape, &count))
    return Fail("a result of shape %s cannot be", ToString(shape).c_str());
  Tensor& out = (*tensors_)[node_->outputs[i]];
  out.dtype = dtype;
  out.shape = shape;
  return true;
}

bool Call::KnownInts(size_t input, std::vector<int64_t>* values) {
  const Tensor& tensor = In(input);
  if (!tensor.known)
    return Fail("a shape depends on data that is not known before it runs");
  const auto count = static_cast<size_t>(tensor.size());
  if (tensor.dtype == DType::kInt64)
    values->assign(tensor.as<int64_t>(), tensor.as<int64_t>() + count);
  else if (tensor.dtype == DType::kInt32)
    values->assign(tensor.as<int32_t>(), tensor.as<int32_t>() + count);
  else
    return Fail("input %zu is %s; expected integers", input,
                Name(tensor.dtype));
  return true;
}

bool Call::NeedScratch(int64_t floats_each) {
  int64_t all = 0;
  // Threads do not share a line of the cache.
  const int64_t each = (floats_each + 15) / 16 * 16;
  if (!Multiply({each, threads_->count()}, &all))
    return Fail("it needs too much memory");
  scratch_each_ = std::max(scratch_each_, each);
  return true;
}

const Kernel* FindKernel(const std::string& name) {
  for (const Kernel* const* kernel = kKernels; *kernel != nullptr; ++kernel)
    if (name == (*kernel)->name) return *kernel;
  return nullptr;
}

}  // namespace pd_run
