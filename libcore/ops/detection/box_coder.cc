// SPDX-License-Identifier: Apache-2.0
// box_coder: boxes relative to prior boxes, and back.
//   encode_center_size: TargetBox [N, 4], PriorBox [M, 4] -> [N, M, 4] with
//     (centre - prior centre) / prior extent, log |extent / prior extent|, over
//     the variance
//   decode_center_size: TargetBox [N, M, 4] is such; the prior is that of the
//     column (axis 0) or of the row (axis 1)
// PriorBoxVar [M, 4] or attr variance (4 numbers) or neither. A box that is not
// normalized is one pixel longer than its corners are apart.
// box_decoder_and_assign: decodes TargetBox [N, 4 C] for every class with
// log extents clipped at box_clip, and picks the box of the best class that is
// not class 0. No gradients.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// An axis of a box.
template <typename T>
struct Extent {
  T centre, size;
};

template <typename T>
Extent<T> AxisOf(const T* box, int axis, T extra) {
  const T size = box[axis + 2] - box[axis] + extra;
  return {box[axis] + size / 2, size};
}

template <typename T>
void Encode(const T* box, const T* prior, T extra, T* out) {
  for (int k = 0; k < 2; ++k) {
    const Extent<T> from = AxisOf(prior, k, extra);
    const T centre = (box[k + 2] + box[k]) / 2;
    const T size = box[k + 2] - box[k] + extra;
    out[k] = (centre - from.centre) / from.size;
    out[k + 2] = std::log(std::fabs(size / from.size));
  }
}

template <typename T>
void DecodeBox(const T* delta, const T* prior, const T* variance, T extra,
               T* out) {
  for (int k = 0; k < 2; ++k) {
    const Extent<T> from = AxisOf(prior, k, extra);
    const T centre = variance[k] * delta[k] * from.size + from.centre;
    const T size = std::exp(variance[k + 2] * delta[k + 2]) * from.size;
    out[k] = centre - size / 2;
    out[k + 2] = centre + size / 2 - extra;
  }
}

struct BoxCoder {
  Tensor *priors, *variances, *targets, *out;
  std::vector<float> variance;
  bool encodes = true, normalized = true;
  int64_t rows = 0, columns = 0;
  int32_t axis = 0;

  /// Which prior an element of Out belongs to.
  int64_t Prior(int64_t row, int64_t column) const {
    return encodes || axis == 0 ? column : row;
  }
};

template <typename T>
void RunBoxCoder(const BoxCoder& c) {
  const T extra = c.normalized ? T(0) : T(1);
  std::array<T, 4> shared = {T(1), T(1), T(1), T(1)};
  for (size_t i = 0; i < c.variance.size(); ++i)
    shared[i] = static_cast<T>(c.variance[i]);
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.columns; ++j) {
      const int64_t p = c.Prior(i, j);
      const T* prior = c.priors->data<T>() + p * 4;
      const T* variance = c.variances == nullptr
                              ? shared.data()
                              : c.variances->data<T>() + p * 4;
      T* out = c.out->data<T>() + (i * c.columns + j) * 4;
      if (!c.encodes) {
        DecodeBox(c.targets->data<T>() + (i * c.columns + j) * 4, prior,
                  variance, extra, out);
        continue;
      }
      Encode(c.targets->data<T>() + i * 4, prior, extra, out);
      for (int k = 0; k < 4; ++k) out[k] /= variance[k];
    }
}

absl::StatusOr<bool> Encodes(const OpDesc& op) {
  const auto& type = std::get<std::string>(*op.FindAttr("code_type"));
  if (type == "encode_center_size") return true;
  if (type == "decode_center_size") return false;
  return InvalidArgument("attr 'code_type' is '%s'", type);
}

absl::Status CheckCoder(const OpDesc& op, const Shape& priors,
                        const Shape& targets) {
  PD_ASSIGN_OR_RETURN(const bool encodes, Encodes(op));
  const auto axis = std::get<int32_t>(*op.FindAttr("axis"));
  if (axis != 0 && axis != 1)
    return InvalidArgument("attr 'axis' is %d; expected 0 or 1", axis);
  const auto& variance = std::get<std::vector<float>>(*op.FindAttr("variance"));
  if (!variance.empty() && variance.size() != 4)
    return InvalidArgument("attr 'variance' has %d numbers; expected 0 or 4",
                           variance.size());
  const auto differ = [](int64_t a, int64_t b) {
    return a >= 0 && b >= 0 && a != b;
  };
  if (priors.size() != 2 || differ(priors[1], 4))
    return InvalidArgument("'PriorBox' has shape %s; expected [-1, 4]",
                           ToString(priors));
  if (targets.size() != (encodes ? 2 : 3) || differ(targets.back(), 4) ||
      (!encodes && differ(targets[axis == 0 ? 1 : 0], priors[0])))
    return InvalidArgument("'TargetBox' has shape %s; 'PriorBox' has %s",
                           ToString(targets), ToString(priors));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindBoxCoder(BindContext* context) {
  BoxCoder coder;
  coder.priors = context->Input("PriorBox");
  coder.variances = context->Input("PriorBoxVar");
  coder.targets = context->Input("TargetBox");
  coder.out = context->Output("OutputBox");
  PD_RETURN_IF_ERROR(
      CheckCoder(context->op(), coder.priors->shape(), coder.targets->shape()));
  PD_ASSIGN_OR_RETURN(coder.encodes, Encodes(context->op()));
  coder.variance = context->Attr<std::vector<float>>("variance");
  coder.normalized = context->Attr<bool>("box_normalized");
  coder.axis = context->Attr<int32_t>("axis");
  const DType dtype = coder.targets->dtype();
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "PriorBox", dtype, coder.priors->shape()));
  PD_RETURN_IF_ERROR(ExpectOptionalInput(*context, "PriorBoxVar", dtype,
                                         coder.priors->shape()));
  if (coder.variances != nullptr && !coder.variance.empty())
    return InvalidArgument(
        "both 'PriorBoxVar' and attr 'variance' are there; expected one");
  coder.rows = coder.targets->dim(0);
  coder.columns = coder.encodes ? coder.priors->dim(0) : coder.targets->dim(1);
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([coder](const RunContext&) {
      RunBoxCoder<T>(coder);
      return absl::OkStatus();
    });
  });
}

absl::Status InferBoxCoder(InferContext* context) {
  const Shape& priors = context->Input("PriorBox").shape;
  const TensorMeta& targets = context->Input("TargetBox");
  PD_RETURN_IF_ERROR(CheckCoder(context->op(), priors, targets.shape));
  PD_ASSIGN_OR_RETURN(const bool encodes, Encodes(context->op()));
  TensorMeta out = targets;  // its sequences, too
  out.value = nullptr;
  out.shape = {targets.shape[0], encodes ? priors[0] : targets.shape[1], 4};
  context->SetOutput("OutputBox", out);
  return absl::OkStatus();
}

struct BoxAssigner {
  Tensor *priors, *variance, *targets, *scores, *decoded, *assigned;
  float clip = 0;
};

template <typename T>
void RunAssigner(const BoxAssigner& a) {
  const int64_t rois = a.targets->dim(0), classes = a.scores->dim(1);
  const T clip = static_cast<T>(a.clip);
  static constexpr std::array<T, 4> kOnes = {T(1), T(1), T(1), T(1)};
  const T* variance =
      a.variance == nullptr ? kOnes.data() : a.variance->data<T>();
  for (int64_t i = 0; i < rois; ++i) {
    const T* prior = a.priors->data<T>() + i * 4;
    for (int64_t c = 0; c < classes; ++c) {
      const int64_t at = (i * classes + c) * 4;
      const T* delta = a.targets->data<T>() + at;
      T* box = a.decoded->data<T>() + at;
      for (int k = 0; k < 2; ++k) {
        const Extent<T> from = AxisOf(prior, k, T(1));
        const T size =
            std::exp(std::min(variance[k + 2] * delta[k + 2], clip)) *
            from.size;
        const T centre = variance[k] * delta[k] * from.size + from.centre;
        box[k] = centre - size / 2;
        box[k + 2] = centre + size / 2 - 1;
      }
    }
    const T* score = a.scores->data<T>() + i * classes;
    int64_t best = 0;
    T highest = T(-1);
    for (int64_t c = 1; c < classes; ++c) {
      if (!(score[c] > highest)) continue;
      highest = score[c];
      best = c;
    }
    const T* chosen =
        best > 0 ? a.decoded->data<T>() + (i * classes + best) * 4 : prior;
    std::copy_n(chosen, 4, a.assigned->data<T>() + i * 4);
  }
}

absl::Status CheckAssigner(const Shape& priors, const Shape& targets,
                           const Shape& scores) {
  const auto differ = [](int64_t a, int64_t b) {
    return a >= 0 && b >= 0 && a != b;
  };
  if (priors.size() != 2 || targets.size() != 2 || scores.size() != 2 ||
      differ(priors[1], 4) || differ(priors[0], targets[0]) ||
      differ(priors[0], scores[0]) ||
      (scores[1] >= 0 && targets[1] >= 0 &&
       (targets[1] % 4 != 0 || targets[1] / 4 != scores[1])))
    return InvalidArgument(
        "'PriorBox' has shape %s, 'TargetBox' %s, 'BoxScore' %s; expected "
        "[n, 4], [n, 4 classes], [n, classes]",
        ToString(priors), ToString(targets), ToString(scores));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindAssigner(BindContext* context) {
  BoxAssigner a;
  a.priors = context->Input("PriorBox");
  a.variance = context->Input("PriorBoxVar");
  a.targets = context->Input("TargetBox");
  a.scores = context->Input("BoxScore");
  a.decoded = context->Output("DecodeBox");
  a.assigned = context->Output("OutputAssignBox");
  a.clip = context->Attr<float>("box_clip");
  PD_RETURN_IF_ERROR(
      CheckAssigner(a.priors->shape(), a.targets->shape(), a.scores->shape()));
  const DType dtype = a.targets->dtype();
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "PriorBox", dtype, a.priors->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "BoxScore", dtype, a.scores->shape()));
  if (a.variance != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "PriorBoxVar", dtype, 4));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([a](const RunContext&) {
      RunAssigner<T>(a);
      return absl::OkStatus();
    });
  });
}

absl::Status InferAssigner(InferContext* context) {
  const TensorMeta& priors = context->Input("PriorBox");
  const TensorMeta& targets = context->Input("TargetBox");
  PD_RETURN_IF_ERROR(CheckAssigner(priors.shape, targets.shape,
                                   context->Input("BoxScore").shape));
  TensorMeta out = targets;
  out.value = nullptr;
  context->SetOutput("DecodeBox", out);
  out.shape = {targets.shape[0], 4};
  context->SetOutput("OutputAssignBox", out);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterBoxCoder(OpRegistry* registry) {
  OpDef op("box_coder");
  op.Input("PriorBox").OptionalInput("PriorBoxVar").Input("TargetBox");
  op.Output("OutputBox");
  op.Attr("code_type", std::string("encode_center_size"));
  op.Attr("box_normalized", true).Attr("axis", int32_t{0});
  op.Attr("variance", std::vector<float>{});
  op.Infer(InferBoxCoder).NoGrad().Reference(BindBoxCoder);
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef assign("box_decoder_and_assign");
  assign.Input("PriorBox").OptionalInput("PriorBoxVar").Input("TargetBox");
  assign.Input("BoxScore").Output("DecodeBox").Output("OutputAssignBox");
  assign.Attr("box_clip", 4.135f);
  assign.Infer(InferAssigner).NoGrad().Reference(BindAssigner);
  return registry->Add(std::move(assign));
}

}  // namespace pd
