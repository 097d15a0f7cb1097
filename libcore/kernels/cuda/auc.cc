// SPDX-License-Identifier: Apache-2.0
// auc and average_accumulates; the kernels are in auc.cu.
#include <string>

#include "libcore/kernels/cuda/auc_arguments.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/metric/auc.h"

namespace pd::cuda {
namespace {

absl::StatusOr<AucArgs> ReadAuc(BindContext* context, DeviceBinding* binding) {
  const Tensor *predict = context->Input("Predict"),
               *label = context->Input("Label"),
               *weight = context->Input("InsTagWeight");
  PD_RETURN_IF_ERROR(OnlyFloat32({predict, weight}));
  PD_ASSIGN_OR_RETURN(const AucLayout layout, AucLayoutOf(context->op()));
  if (predict->rank() != 2 || predict->size() == 0 ||
      (weight != nullptr && weight->size() == 0))
    return Unimplemented("'Predict' has shape %s", ToString(predict->shape()));
  if (label->dtype() != DType::kInt64 && label->dtype() != DType::kInt32)
    return Unimplemented("labels of dtype %s", Name(label->dtype()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Label", label->dtype(), predict->dim(0)));
  for (const char* slot : {"StatPos", "StatNeg"}) {
    const Tensor* stat = context->Input(slot);
    if (stat->dtype() != DType::kInt64 || stat->size() < layout.Elements())
      return InvalidArgument("'%s' is %s %s; expected int64 of %d elements",
                             slot, Name(stat->dtype()), ToString(stat->shape()),
                             layout.Elements());
  }
  AucArgs args{};
  args.rows = predict->dim(0);
  args.width = predict->dim(1);
  args.buckets = layout.buckets;
  args.slide = layout.slide;
  args.labels64 = label->dtype() == DType::kInt64;
  PD_ASSIGN_OR_RETURN(args.bad,
                      binding->ErrorFlag("'Predict' of auc holds a number "
                                         "outside [0, 1]"));
  PD_ASSIGN_OR_RETURN(args.ended, binding->ErrorFlag("'StatPos' of auc ends in "
                                                     "less than 0 batches"));
  return args;
}

absl::StatusOr<Step> BindAuc(BindContext* context, DeviceBinding* binding) {
  Tensor *predict = context->Input("Predict"), *label = context->Input("Label"),
         *weight = context->Input("InsTagWeight"),
         *area = context->Output("AUC");
  Tensor* in[] = {context->Input("StatPos"), context->Input("StatNeg")};
  Tensor* out[] = {context->Output("StatPosOut"),
                   context->Output("StatNegOut")};
  if (area == nullptr || out[0] == nullptr || out[1] == nullptr)
    return Unimplemented("an output is missing");
  PD_ASSIGN_OR_RETURN(const AucArgs args, ReadAuc(context, binding));
  using Start = Starter<AucArgs>;
  PD_ASSIGN_OR_RETURN(const auto count, Start::Find(binding, "auc_count"));
  PD_ASSIGN_OR_RETURN(const auto to_area, Start::Find(binding, "auc_area"));
  Tensor* const parts = context->Scratch(kThreads * sizeof(double));
  return Step([=, in0 = in[0], in1 = in[1], out0 = out[0],
               out1 = out[1]](const RunContext&) {
    AucArgs run = args;
    run.predict = At(predict);
    run.weight = At(weight);
    run.labels = label->raw();
    run.in[0] = in0->data<int64_t>();
    run.in[1] = in1->data<int64_t>();
    run.out[0] = out0->data<int64_t>();
    run.out[1] = out1->data<int64_t>();
    run.area = area->data<double>();
    run.parts = parts->data<double>();
    PD_RETURN_IF_ERROR(count.Elements(run.buckets, run));
    return to_area.Blocks(1, run);
  });
}

// The variables of average_accumulates that end in these names.
struct Averages {
  Tensor *in[3], *out[3];
};
absl::StatusOr<Averages> ReadAverages(BindContext* context,
                                      const char* const (&names)[3],
                                      DType dtype, int64_t n) {
  Averages a{};
  for (int i = 0; i < 3; ++i) {
    const std::string in = absl::StrCat("in_", names[i]);
    a.in[i] = context->Input(in);
    a.out[i] = context->Output(absl::StrCat("out_", names[i]));
    if (a.in[i] == nullptr || a.out[i] == nullptr)
      return Unimplemented("'%s' is missing", in);
    PD_RETURN_IF_ERROR(ExpectElements(*context, in, dtype, n));
  }
  return a;
}

absl::StatusOr<Step> BindAverages(BindContext* context,
                                  DeviceBinding* binding) {
  Tensor* param = context->Input("param");
  PD_RETURN_IF_ERROR(OnlyFloat32({param}));
  PD_ASSIGN_OR_RETURN(const Averages sums,
                      ReadAverages(context, {"sum_1", "sum_2", "sum_3"},
                                   DType::kFloat32, param->size()));
  PD_ASSIGN_OR_RETURN(
      const Averages counts,
      ReadAverages(context,
                   {"num_accumulates", "old_num_accumulates", "num_updates"},
                   DType::kInt64, 1));
  AverageArgs args{};
  args.n = param->size();
  args.window = context->Attr<float>("average_window");
  args.most = context->Attr<int64_t>("max_average_window");
  args.least = context->Attr<int64_t>("min_average_window");
  if (args.least > args.most)
    return InvalidArgument(
        "attr 'min_average_window' is %d; 'max_average_window' is %d",
        args.least, args.most);
  args.in_place =
      context->op().In("in_sum_1") == context->op().Out("out_sum_1");
  using Start = Starter<AverageArgs>;
  PD_ASSIGN_OR_RETURN(const auto add, Start::Find(binding, "average_sums"));
  PD_ASSIGN_OR_RETURN(const auto count, Start::Find(binding, "average_counts"));
  return Step([=](const RunContext&) {
    AverageArgs run = args;
    run.param = At(param);
    for (int i = 0; i < 3; ++i) {
      run.in[i] = At(sums.in[i]);
      run.out[i] = At(sums.out[i]);
      run.counts_in[i] = counts.in[i]->data<int64_t>();
      run.counts_out[i] = counts.out[i]->data<int64_t>();
    }
    PD_RETURN_IF_ERROR(add.Elements(run.n, run));
    return count.Blocks(1, run);
  });
}

}  // namespace

void AddAuc(KernelTable* kernels) {
  kernels->Add("auc", {"cuda", BindAuc});
  kernels->Add("average_accumulates", {"cuda", BindAverages});
}

}  // namespace pd::cuda
