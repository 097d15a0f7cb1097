// SPDX-License-Identifier: Apache-2.0
// oneDNN's convolution and pooling.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "libcore/kernels/onednn/dnnl_internal.h"

namespace pd {
namespace onednn {
namespace {

struct Dims {
  dnnl_dims_t d;
  explicit Dims(const std::vector<int64_t>& from, int64_t minus = 0) {
    for (size_t i = 0; i < from.size() && i < DNNL_MAX_NDIMS; ++i)
      d[i] = from[i] - minus;
  }
};

struct ConvMds {
  dnnl_memory_desc_t src, weights, bias, dst;
  bool has_bias = false;
  const dnnl_memory_desc_t* Bias() const { return has_bias ? &bias : nullptr; }
};

absl::StatusOr<ConvMds> ReadMds(const Convolution& c) {
  ConvMds m;
  PD_ASSIGN_OR_RETURN(m.src, ToDnnl(c.src));
  PD_ASSIGN_OR_RETURN(m.weights, ToDnnl(c.weights));
  PD_ASSIGN_OR_RETURN(m.dst, ToDnnl(c.dst));
  m.has_bias = !c.bias.shape.empty();
  if (m.has_bias) {
    PD_ASSIGN_OR_RETURN(m.bias, ToDnnl(c.bias));
  }
  return m;
}

// Whether Winograd's F(4x4, 3x3) promises to be faster than the direct sum. In
// units of one multiplication or addition of the direct convolution: 36
// products for a tile of 16 results, and the transformations of tiles and
// weights, whose prices were fitted to measurements of sizes from 8 x 8 x 16 to
// 224 x 224 x 64.
bool WorthWinograd(const Convolution& c) {
  constexpr double kTile = 4, kDirect = 2 * 9, kProducts = 2 * 36;
  constexpr double kPerWeight = 7500, kPerTile = 3000, kMargin = 1.15;
  const Shape& w = c.weights.shape;
  if (w.size() != 4 || w[2] != 3 || w[3] != 3) return false;
  for (size_t i = 0; i < 2; ++i)
    if (c.strides[i] != 1 || c.dilations[i] != 1) return false;
  const Shape& out = c.dst.shape;
  const auto extent = [&](size_t i) { return static_cast<double>(out[i]); };
  const double tiles =
      extent(0) * std::ceil(extent(2) / kTile) * std::ceil(extent(3) / kTile);
  const double from = static_cast<double>(w[1]), to = static_cast<double>(w[0]);
  const double winograd = from * to * (kProducts * tiles + kPerWeight) +
                          (from + to) * tiles * kPerTile;
  const double direct = kDirect * from * to * extent(0) * extent(2) * extent(3);
  return kMargin * winograd < direct;
}

// make(algorithm) of the algorithm that should be fastest of those that there
// are for this convolution and CPU. oneDNN's own reference, a thousand times
// slower, counts as none.
template <typename Make>
absl::StatusOr<PdPtr> FastestPd(const Convolution& c, const Make& make) {
  if (c.winograd && WorthWinograd(c)) {
    absl::StatusOr<PdPtr> pd = make(dnnl_convolution_winograd);
    if (pd.ok() || !absl::IsUnimplemented(pd.status())) return pd;
  }
  PD_ASSIGN_OR_RETURN(PdPtr pd, make(dnnl_convolution_direct));
  if (absl::StartsWith(ImplementationOf(*pd), "ref"))
    return Unimplemented("oneDNN has only a reference for this");
  return pd;
}

absl::StatusOr<PdPtr> ForwardPd(const Convolution& c, const ConvMds& m) {
  return FastestPd(c, [&](dnnl_alg_kind_t algorithm) -> absl::StatusOr<PdPtr> {
    // Not for inference alone: weights for Winograd would lie in a form of
    // oneDNN's own, four times as large.
    dnnl_convolution_desc_t desc;
    PD_DNNL(dnnl_dilated_convolution_forward_desc_init, &desc,
            dnnl_forward_training, algorithm, &m.src, &m.weights, m.Bias(),
            &m.dst, Dims(c.strides).d, Dims(c.dilations, 1).d,
            Dims(c.pad_before).d, Dims(c.pad_after).d);
    return MakePd(&desc, {c.sum, c.relu}, nullptr);
  });
}

absl::StatusOr<dnnl_pooling_desc_t> PoolDesc(const Pooling& p,
                                             dnnl_prop_kind_t kind) {
  PD_ASSIGN_OR_RETURN(const dnnl_memory_desc_t src, ToDnnl(p.src));
  PD_ASSIGN_OR_RETURN(const dnnl_memory_desc_t dst, ToDnnl(p.dst));
  const dnnl_alg_kind_t algorithm =
      p.kind == Pooling::Kind::kMax       ? dnnl_pooling_max
      : p.kind == Pooling::Kind::kAverage ? dnnl_pooling_avg_exclude_padding
                                          : dnnl_pooling_avg_include_padding;
  dnnl_pooling_desc_t desc;
  if (kind == dnnl_backward_data)
    PD_DNNL(dnnl_pooling_backward_desc_init, &desc, algorithm, &src, &dst,
            Dims(p.strides).d, Dims(p.kernel).d, Dims(p.pad_before).d,
            Dims(p.pad_after).d);
  else
    PD_DNNL(dnnl_pooling_forward_desc_init, &desc, kind, algorithm, &src, &dst,
            Dims(p.strides).d, Dims(p.kernel).d, Dims(p.pad_before).d,
            Dims(p.pad_after).d);
  return desc;
}

}  // namespace

absl::StatusOr<PrimitivePtr> ConvolutionForward(const Convolution& c) {
  PD_ASSIGN_OR_RETURN(const ConvMds m, ReadMds(c));
  PD_ASSIGN_OR_RETURN(PdPtr pd, ForwardPd(c, m));
  return Finish(std::move(pd));
}

absl::StatusOr<PrimitivePtr> ConvolutionBackwardData(const Convolution& c) {
  PD_ASSIGN_OR_RETURN(const ConvMds m, ReadMds(c));
  PD_ASSIGN_OR_RETURN(const PdPtr hint, ForwardPd(c, m));
  const auto make = [&](dnnl_alg_kind_t algorithm) -> absl::StatusOr<PdPtr> {
    dnnl_convolution_desc_t desc;
    PD_DNNL(dnnl_dilated_convolution_backward_data_desc_init, &desc, algorithm,
            &m.src, &m.weights, &m.dst, Dims(c.strides).d,
            Dims(c.dilations, 1).d, Dims(c.pad_before).d, Dims(c.pad_after).d);
    return MakePd(&desc, {}, hint.get());
  };
  PD_ASSIGN_OR_RETURN(PdPtr pd, FastestPd(c, make));
  return Finish(std::move(pd));
}

absl::StatusOr<PrimitivePtr> ConvolutionBackwardWeights(const Convolution& c) {
  PD_ASSIGN_OR_RETURN(const ConvMds m, ReadMds(c));
  PD_ASSIGN_OR_RETURN(const PdPtr hint, ForwardPd(c, m));
  const auto make = [&](dnnl_alg_kind_t algorithm) -> absl::StatusOr<PdPtr> {
    dnnl_convolution_desc_t desc;
    PD_DNNL(dnnl_dilated_convolution_backward_weights_desc_init, &desc,
            algorithm, &m.src, &m.weights, m.Bias(), &m.dst, Dims(c.strides).d,
            Dims(c.dilations, 1).d, Dims(c.pad_before).d, Dims(c.pad_after).d);
    return MakePd(&desc, {}, hint.get());
  };
  PD_ASSIGN_OR_RETURN(PdPtr pd, FastestPd(c, make));
  return Finish(std::move(pd));
}

absl::StatusOr<PrimitivePtr> PoolingForward(const Pooling& p) {
  PD_ASSIGN_OR_RETURN(const dnnl_pooling_desc_t desc,
                      PoolDesc(p, dnnl_forward_training));
  PD_ASSIGN_OR_RETURN(PdPtr pd, MakePd(&desc, {}, nullptr));
  return Finish(std::move(pd));
}

absl::StatusOr<PrimitivePtr> PoolingBackward(const Pooling& p) {
  PD_ASSIGN_OR_RETURN(const dnnl_pooling_desc_t forward,
                      PoolDesc(p, dnnl_forward_training));
  PD_ASSIGN_OR_RETURN(const PdPtr hint, MakePd(&forward, {}, nullptr));
  PD_ASSIGN_OR_RETURN(const dnnl_pooling_desc_t desc,
                      PoolDesc(p, dnnl_backward_data));
  PD_ASSIGN_OR_RETURN(PdPtr pd, MakePd(&desc, {}, hint.get()));
  return Finish(std::move(pd));
}

}  // namespace onednn
}  // namespace pd
