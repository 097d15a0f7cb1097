// SPDX-License-Identifier: Apache-2.0
// Code that the parameter updates (sgd, momentum, adam, ...) share.
#ifndef PD_LIBCORE_OPS_OPTIMIZER_UPDATE_H_
#define PD_LIBCORE_OPS_OPTIMIZER_UPDATE_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/half.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/infer_context.h"
#include "libcore/ops/op_def.h"

namespace pd {

/// Elements of a parameter that one thread updates at least.
inline constexpr int64_t kUpdateGrain = 8192;

/// The only element of a floating-point tensor: learning rates, powers of
/// beta. PaddlePaddle stores them as [1] or [].
inline double ScalarOf(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat64:
      return tensor.data<double>()[0];
    case DType::kFloat16:
      return double{tensor.data<Float16>()[0]};
    case DType::kBFloat16:
      return double{tensor.data<BFloat16>()[0]};
    default:
      return double{tensor.data<float>()[0]};
  }
}

/// Sets the only element of a float32 or float64 tensor.
inline void SetScalar(Tensor* tensor, double value) {
  if (tensor->dtype() == DType::kFloat64)
    tensor->data<double>()[0] = value;
  else
    tensor->data<float>()[0] = static_cast<float>(value);
}

/// Copies the bytes of a tensor, unless both have the same ones.
void CopyUnlessSame(const Tensor* from, Tensor* to);

/// Sets every output `slots[i] + "Out"` to the meta of input `slots[i]`, for
/// each of its variables.
absl::Status InferUpdate(InferContext* context,
                         std::initializer_list<absl::string_view> slots);

/// InvalidArgument unless `tensor` is a floating-point tensor of one element.
absl::Status CheckScalar(absl::string_view slot, const Tensor* tensor);

/// InvalidArgument unless the i-th variables of both slots have one shape and
/// dtype.
absl::Status CheckAlike(const BindContext& context, absl::string_view a,
                        absl::string_view b, size_t i = 0);

/// "merged_..." of an update: its slots, as lists, and its attributes.
OpDef MergedUpdate(const OpDef& update);

/// One step after the other; InvalidArgument without any: 'Param' is empty.
absl::StatusOr<Step> UpdateAll(std::vector<Step> steps);

/// Tensors of every update. A parameter in fp16 or bf16 may come with a master
/// copy in float32, which is what is updated; the parameter is then its
/// rounded copy.
struct UpdatedParam {
  Tensor *param = nullptr, *param_out = nullptr;
  Tensor *master = nullptr, *master_out = nullptr;  ///< null: none
  Tensor* grad = nullptr;  ///< of the parameter's dtype or of StateType
  Tensor* rate = nullptr;
};

/// Reads and checks the i-th Param, MasterParam (where multi_precision is
/// set), Grad, LearningRate (one for all, or one each), and their outputs.
absl::StatusOr<UpdatedParam> ReadUpdatedParam(BindContext* context,
                                              size_t i = 0);

/// The dtype of moments and master copies: float32 for half precision, else
/// the parameter's own.
inline DType StateType(DType param) {
  return param == DType::kFloat16 || param == DType::kBFloat16 ? DType::kFloat32
                                                               : param;
}

/// A state of the i-th parameter: its shape, StateType.
struct UpdatedState {
  Tensor *in = nullptr, *out = nullptr;
};
absl::StatusOr<UpdatedState> ReadUpdatedState(BindContext* context,
                                              const UpdatedParam& param,
                                              absl::string_view slot,
                                              absl::string_view out_slot,
                                              size_t i = 0);

/// Calls `body(TypeTag<T>, TypeTag<G>, TypeTag<M>)` for the types of the
/// parameter, of the gradient, and of the states (in which is computed).
template <typename Body>
absl::StatusOr<Step> DispatchUpdate(const UpdatedParam& p, const Body& body) {
  const bool same = p.grad->dtype() == p.param->dtype();
  switch (p.param->dtype()) {
    case DType::kFloat32:
      return body(TypeTag<float>{}, TypeTag<float>{}, TypeTag<float>{});
    case DType::kFloat64:
      return body(TypeTag<double>{}, TypeTag<double>{}, TypeTag<double>{});
    case DType::kFloat16:
      return same
                 ? body(TypeTag<Float16>{}, TypeTag<Float16>{},
                        TypeTag<float>{})
                 : body(TypeTag<Float16>{}, TypeTag<float>{}, TypeTag<float>{});
    case DType::kBFloat16:
      return same ? body(TypeTag<BFloat16>{}, TypeTag<BFloat16>{},
                         TypeTag<float>{})
                  : body(TypeTag<BFloat16>{}, TypeTag<float>{},
                         TypeTag<float>{});
    default:
      return Unimplemented("no kernel for dtype %s", Name(p.param->dtype()));
  }
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_OPTIMIZER_UPDATE_H_
