// SPDX-License-Identifier: Apache-2.0
// How the rnn op and its gradient are bound, whatever arithmetic runs them.
#ifndef PD_LIBCORE_OPS_RECURRENT_RNN_BIND_H_
#define PD_LIBCORE_OPS_RECURRENT_RNN_BIND_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/infer_context.h"
#include "libcore/ops/recurrent/rnn_layers.h"

namespace pd {

/// The inputs that both directions read, checked.
struct RnnInputs {
  RnnDims dims;
  Tensor* x = nullptr;
  Tensor* lengths = nullptr;
  std::vector<Tensor*> pre_states, weights;
  double drop = 0;  ///< the probability between layers, while training

  /// Steps of each sequence; empty: all are whole.
  std::vector<int64_t> Lengths() const;
};

/// InvalidArgument when an input is missing or does not fit the attributes.
/// Without `float_matrices` those of WeightList are the caller's to check.
absl::StatusOr<RnnInputs> ReadRnnInputs(BindContext* context,
                                        bool float_matrices = true);

/// The shapes of Out, State, Reserve and DropoutState.
absl::Status InferRnn(InferContext* context);

/// 1 where a uniform number is `drop` or more.
void FillRnnMask(const Philox& random, double drop, int64_t n, uint8_t* mask);

/// InvalidArgument unless input `i` of `slot` has elements of `like`'s dtype.
absl::Status ExpectRnnInput(const Tensor* tensor, const char* slot, size_t i,
                            const Tensor& like, int64_t elements);

template <typename T>
std::vector<T*> RnnPointers(const std::vector<Tensor*>& tensors) {
  std::vector<T*> pointers;
  for (Tensor* t : tensors)
    pointers.push_back(t != nullptr ? t->data<T>() : nullptr);
  return pointers;
}

template <typename T>
RnnData<T> RnnDataOf(const RnnInputs& inputs) {
  RnnData<T> data;
  data.x = inputs.x->data<T>();
  for (T* p : RnnPointers<T>(inputs.pre_states)) data.pre_states.push_back(p);
  for (T* p : RnnPointers<T>(inputs.weights)) data.weights.push_back(p);
  data.lengths = inputs.Lengths();
  data.keep_factor =
      static_cast<T>(inputs.drop < 1 ? 1 / (1 - inputs.drop) : 0);
  return data;
}

/// The forward pass on elements of type T.
template <typename T, typename Math>
absl::StatusOr<Step> BindRnnWith(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const RnnInputs inputs, ReadRnnInputs(context));
  const RnnDims& d = inputs.dims;
  Tensor* out = context->Output("Out");
  std::vector<Tensor*> states;
  for (size_t i = 0; i < d.states(); ++i)
    states.push_back(context->Output("State", i));
  Tensor* reserve = context->Output("Reserve");
  if (reserve == nullptr || reserve->size() != d.reserve())
    reserve = context->Scratch(static_cast<size_t>(d.reserve()) * sizeof(T));
  const int64_t mask_size = (d.layers - 1) * d.layer_out();
  Tensor* mask = nullptr;
  if (inputs.drop > 0) {
    mask = context->Output("DropoutState");
    if (mask == nullptr || mask->size() != mask_size)
      mask = context->Scratch(static_cast<size_t>(mask_size));
  }
  const int32_t seed = context->Attr<int32_t>("seed");
  const uint64_t stream = StreamOf(context->op().Out("Out"));
  using Layers = RnnLayers<T, Math>;
  Tensor* scratch = context->Scratch(
      static_cast<size_t>(Layers::ForwardScratch(d)) * sizeof(T));
  const int64_t reserve_size = d.reserve();
  return Step([=](const RunContext& run) {
    RnnData<T> data = RnnDataOf<T>(inputs);
    data.reserve = reserve->data<T>();
    // Steps past the end of a sequence leave their part as it is.
    if (!data.lengths.empty()) std::fill_n(data.reserve, reserve_size, T(0));
    data.out = out->data<T>();
    data.states = RnnPointers<T>(states);
    if (mask != nullptr) {
      const Philox random =
          seed != 0
              ? Philox(static_cast<uint64_t>(seed), stream)
              : Philox(run.seed, stream + run.step * 0x9E3779B97F4A7C15ull);
      FillRnnMask(random, inputs.drop, mask_size, mask->data<uint8_t>());
      data.mask = mask->data<uint8_t>();
    }
    Layers(inputs.dims, data, scratch->data<T>()).Forward();
    return absl::OkStatus();
  });
}

/// The gradient.
template <typename T, typename Math>
absl::StatusOr<Step> BindRnnGradWith(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const RnnInputs inputs, ReadRnnInputs(context));
  const RnnDims& d = inputs.dims;
  const DType dtype = inputs.x->dtype();
  Tensor* out = context->Input("Out");
  Tensor* reserve = context->Input("Reserve");
  Tensor* dout = context->Input("Out@GRAD");
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out", dtype, d.layer_out()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Reserve", dtype, d.reserve()));
  if (dout != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "Out@GRAD", dtype, d.layer_out()));
  Tensor* mask = nullptr;
  if (inputs.drop > 0) {
    mask = context->Input("DropoutState");
    PD_RETURN_IF_ERROR(ExpectElements(*context, "DropoutState", DType::kUInt8,
                                      (d.layers - 1) * d.layer_out()));
  }
  std::vector<Tensor*> dstates, dpre_states, dweights;
  for (size_t i = 0; i < d.states(); ++i) {
    dstates.push_back(context->Input("State@GRAD", i));
    dpre_states.push_back(context->Output("PreState@GRAD", i));
    if (dstates[i] != nullptr)
      PD_RETURN_IF_ERROR(ExpectRnnInput(dstates[i], "State@GRAD", i, *inputs.x,
                                        inputs.pre_states[i]->size()));
  }
  for (size_t i = 0; i < d.weights(); ++i)
    dweights.push_back(context->Output("WeightList@GRAD", i));
  Tensor* dx = context->Output("Input@GRAD");
  using Layers = RnnLayers<T, Math>;
  Tensor* scratch = context->Scratch(
      static_cast<size_t>(Layers::BackwardScratch(d)) * sizeof(T));
  return Step([=](const RunContext&) {
    RnnData<T> data = RnnDataOf<T>(inputs);
    data.reserve = reserve->data<T>();
    data.out = out->data<T>();
    if (mask != nullptr) data.mask = mask->data<uint8_t>();
    if (dout != nullptr) data.dout = dout->data<T>();
    for (T* p : RnnPointers<T>(dstates)) data.dstates.push_back(p);
    if (dx != nullptr) data.dx = dx->data<T>();
    data.dpre_states = RnnPointers<T>(dpre_states);
    data.dweights = RnnPointers<T>(dweights);
    Layers(inputs.dims, data, scratch->data<T>()).Backward();
    return absl::OkStatus();
  });
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RECURRENT_RNN_BIND_H_
