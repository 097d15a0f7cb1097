// SPDX-License-Identifier: Apache-2.0
// The sums behind ModelAverage: of the parameter since the window began, in
// three parts so that small numbers are not added to large ones for long.
//   num_updates and num_accumulates are counted up
//   sum_1 += param
//   every 16384 updates: sum_2 += sum_1, sum_1 = 0
//   when num_accumulates >= min_average_window and
//        num_accumulates >= min(max_average_window,
//                               average_window * num_updates):
//     sum_3 = sum_1 + sum_2, sum_1 = sum_2 = 0,
//     old_num_accumulates = num_accumulates, num_accumulates = 0
// As in PaddlePaddle, what moves on is the sum with `param` only where it is
// updated in place, which is how ModelAverage calls it.
#include <algorithm>

#include "libcore/base/dispatch.h"
#include "libcore/ops/optimizer/update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kMaxAccumulates = 16384;

struct Averages {
  Tensor *param, *in[3], *out[3];
  Tensor *counts_in[3], *counts_out[3];  // accumulates, old, updates
  float window;
  int64_t max_window, min_window;
  bool in_place;
};

constexpr const char* kSums[] = {"sum_1", "sum_2", "sum_3"};
constexpr const char* kCounts[] = {"num_accumulates", "old_num_accumulates",
                                   "num_updates"};

std::string In(const char* name) { return std::string("in_") + name; }
std::string Out(const char* name) { return std::string("out_") + name; }

template <typename T>
void Accumulate(const Averages& a) {
  int64_t accumulates = *a.counts_in[0]->data<int64_t>() + 1;
  int64_t old = *a.counts_in[1]->data<int64_t>();
  const int64_t updates = *a.counts_in[2]->data<int64_t>() + 1;
  const bool moves = updates % kMaxAccumulates == 0;
  // Whole updates; a product that no int64 holds is beyond every maximum.
  const float window = static_cast<float>(updates) * a.window;
  const int64_t limit =
      window < 9e18f ? std::min(a.max_window, static_cast<int64_t>(window))
                     : a.max_window;
  const bool restarts = accumulates >= a.min_window && accumulates >= limit;
  const T* param = a.param->data<T>();
  for (int64_t i = 0, n = a.param->size(); i < n; ++i) {
    const T in1 = a.in[0]->data<T>()[i], in2 = a.in[1]->data<T>()[i];
    T s1 = in1 + param[i], s2 = in2, s3 = a.in[2]->data<T>()[i];
    if (moves) {
      s2 += a.in_place ? s1 : in1;
      s1 = T(0);
    }
    if (restarts) {
      s3 = a.in_place ? s1 + s2 : in1 + in2;
      s1 = s2 = T(0);
    }
    a.out[0]->data<T>()[i] = s1;
    a.out[1]->data<T>()[i] = s2;
    a.out[2]->data<T>()[i] = s3;
  }
  if (restarts) {
    old = accumulates;
    accumulates = 0;
  }
  *a.counts_out[0]->data<int64_t>() = accumulates;
  *a.counts_out[1]->data<int64_t>() = old;
  *a.counts_out[2]->data<int64_t>() = updates;
}

absl::StatusOr<Step> BindAverages(BindContext* context) {
  Averages a;
  a.param = context->Input("param");
  for (int i = 0; i < 3; ++i) {
    a.in[i] = context->Input(In(kSums[i]));
    a.out[i] = context->Output(Out(kSums[i]));
    a.counts_in[i] = context->Input(In(kCounts[i]));
    a.counts_out[i] = context->Output(Out(kCounts[i]));
    if (a.in[i]->shape() != a.param->shape() ||
        a.in[i]->dtype() != a.param->dtype())
      return InvalidArgument("'%s' is %s %s; 'param' is %s %s", In(kSums[i]),
                             Name(a.in[i]->dtype()), ToString(a.in[i]->shape()),
                             Name(a.param->dtype()),
                             ToString(a.param->shape()));
    if (a.counts_in[i]->dtype() != DType::kInt64 || a.counts_in[i]->size() != 1)
      return InvalidArgument("'%s' is %s %s; expected one int64",
                             In(kCounts[i]), Name(a.counts_in[i]->dtype()),
                             ToString(a.counts_in[i]->shape()));
  }
  a.window = context->Attr<float>("average_window");
  a.max_window = context->Attr<int64_t>("max_average_window");
  a.min_window = context->Attr<int64_t>("min_average_window");
  if (a.min_window > a.max_window)
    return InvalidArgument(
        "attr 'min_average_window' is %d; 'max_average_window' is %d",
        a.min_window, a.max_window);
  a.in_place = context->op().In("in_sum_1") == context->op().Out("out_sum_1");
  return DispatchFloat(a.param->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([a](const RunContext&) {
      Accumulate<T>(a);
      return absl::OkStatus();
    });
  });
}

absl::Status InferAverages(InferContext* context) {
  for (const char* name : kSums) context->Share(In(name), Out(name));
  for (const char* name : kCounts) context->Share(In(name), Out(name));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterAverageAccumulates(OpRegistry* registry) {
  OpDef op("average_accumulates");
  op.Input("param");
  for (const char* name : kSums) op.Input(In(name)).Output(Out(name));
  for (const char* name : kCounts) op.Input(In(name)).Output(Out(name));
  op.Attr("average_window", 0.0f);
  op.Attr("max_average_window", int64_t{9223372036854775807});
  op.Attr("min_average_window", int64_t{10000});
  op.Infer(InferAverages).NoGrad().Reference(BindAverages);
  return registry->Add(std::move(op));
}

}  // namespace pd
