// SPDX-License-Identifier: Apache-2.0
// Pieces that several families of layers are made of: axes, windows, borders,
// activations by name. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_LAYERS_LAYER_ARGS_H_
#define PD_LIBCORE_NN_LAYERS_LAYER_ARGS_H_

#include <string>
#include <vector>

#include "libcore/nn/layers/layer_context.h"

namespace pd {

using Ints = std::vector<int32_t>;

/// Positions in 1 to 3 axes, and channels before or behind them.
struct Space {
  int axes = 2;
  bool channels_last = false;

  int channel_axis() const { return channels_last ? axes + 1 : 1; }
  /// The first axis of positions.
  int first_axis() const { return channels_last ? 1 : 2; }
  /// "NCHW"; that of images for one axis, which ops take as images of height 1.
  std::string format() const;
  /// "images [N, C, H, W]"
  std::string described() const;
  /// "height" of axis 0 of images.
  const char* axis_name(int axis) const;
};

/// InvalidArgument unless input `i` has the space's rank.
absl::Status ExpectSpace(LayerContext* c, const Space& space, size_t i = 0);

/// One number of a job goes for all axes; `otherwise` where there is none.
template <typename List>
Ints Spread(const List& list, int axes, int32_t otherwise) {
  if (list.size() > 1) return Ints(list.begin(), list.end());
  return Ints(static_cast<size_t>(axes), list.empty() ? otherwise : list[0]);
}

/// A window's sizes, axis by axis, as a job gives them.
struct Windows {
  Ints kernel, stride, dilation;
  Ints padding;  ///< one for each axis, or two: before and behind
  std::string algorithm = "EXPLICIT";

  int32_t before(int axis) const;
  int32_t behind(int axis) const;
};

/// InvalidArgument when a window is larger than the input with its padding.
absl::Status CheckFits(LayerContext* c, const Space& space, const Windows& w,
                       const std::string& x);

/// Ops take one axis as images of height 1: puts that axis into `x`, or takes
/// it away; x itself for other spaces.
absl::StatusOr<std::string> Lift(LayerContext* c, const Space& space,
                                 const std::string& x);
absl::StatusOr<std::string> Lower(LayerContext* c, const Space& space,
                                  const std::string& x);
/// The same of numbers: [3] becomes [height, 3].
Ints Lift(const Space& space, Ints numbers, int32_t height);
/// The windows' paddings as ops take them.
Ints LiftedPadding(const Space& space, const Windows& w);

absl::StatusOr<std::string> Unsqueeze(LayerContext* c, const std::string& x,
                                      Ints axes);
absl::StatusOr<std::string> Squeeze(LayerContext* c, const std::string& x,
                                    Ints axes);
absl::StatusOr<std::string> Reshape(LayerContext* c, const std::string& x,
                                    Ints shape);
absl::StatusOr<std::string> Scale(LayerContext* c, const std::string& x,
                                  double scale, double bias = 0);

/// paddle.nn.functional.pad: `padding` before and behind each axis of
/// positions; `mode` is "constant", "reflect", "replicate" or "circular".
absl::StatusOr<std::string> PadAround(LayerContext* c, const Space& space,
                                      const std::string& x, const Ints& padding,
                                      const std::string& mode,
                                      double value = 0);

/// The activation that the job names, "relu" with its defaults or its layer's
/// text, "gelu { approximate: true }". `field` is the field that named it.
absl::StatusOr<std::string> AppendActivation(LayerContext* c,
                                             const std::string& x,
                                             const std::string& text,
                                             const char* field);

/// Arguments that batch norms of all ranks share.
struct BatchNormArgs {
  int64_t channels = 0;
  double momentum = 0.9, epsilon = 1e-5;
  const job::ParamAttr* weight_attr = nullptr;  ///< null: stays 1
  const job::ParamAttr* bias_attr = nullptr;    ///< null: stays 0
  bool channels_last = false;
  bool use_global_stats = false;
  bool trainable_statistics = false;
};
absl::StatusOr<std::string> AppendBatchNorm(LayerContext* c,
                                            const std::string& x,
                                            const BatchNormArgs& args);

}  // namespace pd

#endif  // PD_LIBCORE_NN_LAYERS_LAYER_ARGS_H_
