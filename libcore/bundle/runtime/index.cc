// SPDX-License-Identifier: Apache-2.0
// gather: the parts of a tensor along an axis that an index names, as an
// embedding looks up the rows of its table.
#include <algorithm>
#include <cstring>

#include "libcore/bundle/runtime/attributes.h"
#include "libcore/bundle/runtime/axis_view.h"
#include "libcore/bundle/runtime/kernels.h"

namespace pd_run {
namespace {

bool PrepareGather(Call* call) {
  const Tensor &x = call->In(0), &index = call->In(1);
  int axis = 0;
  if (!call->Axis(GatherInts::kAxis, x.shape.rank, &axis)) return false;
  if (index.dtype != DType::kInt64 && index.dtype != DType::kInt32)
    return call->Fail("its index is %s; expected integers", Name(index.dtype));
  if (x.shape.rank - 1 + index.shape.rank > kMaxRank)
    return call->Fail("more than %d dimensions", kMaxRank);
  Shape out;
  for (int i = 0; i < axis; ++i) out.Append(x.shape[i]);
  for (int i = 0; i < index.shape.rank; ++i) out.Append(index.shape[i]);
  for (int i = axis + 1; i < x.shape.rank; ++i) out.Append(x.shape[i]);
  return call->Give(0, x.dtype, out);
}

int64_t IndexAt(const Tensor& index, int64_t i) {
  return index.dtype == DType::kInt64 ? index.as<int64_t>()[i]
                                      : index.as<int32_t>()[i];
}

bool RunGather(Call* call) {
  const Tensor &x = call->In(0), &index = call->In(1);
  int axis = 0;
  if (!call->Axis(GatherInts::kAxis, x.shape.rank, &axis)) return false;
  const AxisView view(x.shape, axis);
  const int64_t count = index.size();
  const size_t part = static_cast<size_t>(view.inner) * SizeOf(x.dtype);
  const int64_t padding = call->Int(GatherInts::kPadding);
  char* to = call->Out(0).as<char>();
  if (call->Out(0).size() == 0) return true;
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < count; ++i, to += part) {
      const int64_t at = IndexAt(index, i);
      if (at < 0 || at >= view.extent)
        return call->Fail("index %lld at %lld; expected 0 to %lld",
                          static_cast<long long>(at), static_cast<long long>(i),
                          static_cast<long long>(view.extent - 1));
      if (at == padding)
        std::fill_n(to, part, '\0');
      else
        std::memcpy(
            to, x.as<char>() + static_cast<size_t>(o * view.extent + at) * part,
            part);
    }
  return true;
}

}  // namespace

const Kernel kGather = {
    "gather", {2, 2},        {1, 1},   {GatherInts::kAll, GatherInts::kAll},
    {0, 0},   PrepareGather, RunGather};

}  // namespace pd_run
