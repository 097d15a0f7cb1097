// SPDX-License-Identifier: Apache-2.0
// True boxes of images as data sets give them, padded to one number, and as the
// operators take them that match boxes: sequences of rows. Internal to
// libcore/nn.
#ifndef PD_LIBCORE_NN_TRUE_BOXES_H_
#define PD_LIBCORE_NN_TRUE_BOXES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/nn/op_chain.h"

namespace pd {

/// The true boxes [rows, 4] of all images, and their classes [rows, 1, 1], as
/// sequences.
struct TrueBoxes {
  std::string boxes, labels;
};

/// Takes away what stands behind the boxes with width and height of each image;
/// `boxes` is [N, B, 4], `labels` [N, B] or "".
TrueBoxes UnpadTrueBoxes(OpChain* ops, const std::string& boxes,
                         const std::string& labels);

/// Height and width of images; InvalidArgument unless they are known.
struct ImageExtent {
  int64_t height = 0, width = 0;
};
absl::StatusOr<ImageExtent> KnownExtent(const Shape& images);

/// Parts of an image as pixels, the last of which belongs to the box: the
/// coordinates of the operators that sample boxes; and the reverse.
std::string PixelsOfParts(OpChain* ops, const std::string& boxes,
                          const ImageExtent& image);
std::string PartsOfPixels(OpChain* ops, const std::string& boxes,
                          const ImageExtent& image);

/// float32 [N, numbers]: these for each of the N images that `like` begins
/// with.
std::string ForEachImage(OpChain* ops, const std::string& like,
                         const std::vector<double>& numbers);

/// int32 [rows, 1] of zeros for boxes [rows, 4]: none is a crowd.
std::string NoCrowd(OpChain* ops, const std::string& boxes);

/// Scores [N, A * width, H, W] as rows [N * H * W * A, width], in the order of
/// anchors [H, W, A].
std::string ByAnchor(OpChain* ops, const std::string& x, int32_t width);

}  // namespace pd

#endif  // PD_LIBCORE_NN_TRUE_BOXES_H_
