// SPDX-License-Identifier: Apache-2.0
// One transform, checked and ready to run on uint8 pictures. Internal to this
// room: pipeline.cc runs lists of them.
#ifndef PD_LIBCORE_DATA_STEP_H_
#define PD_LIBCORE_DATA_STEP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/rng.h"
#include "libcore/base/shape.h"
#include "libcore/data/picture.h"
#include "libcore/data/transforms.h"

namespace pd {

/// The class of pixels that are not in the picture: Pascal VOC's border, and
/// what losses ignore.
constexpr uint8_t kMaskBorder = 255;

class PictureStep {
 public:
  virtual ~PictureStep() = default;
  /// Changes [height, width, channels], -1 where unknown, to what Run makes of
  /// it. InvalidArgument where Run would fail.
  virtual absl::Status Infer(Shape* shape) const = 0;
  virtual absl::Status Run(RandomStream* random, TransformScratch* scratch,
                           Picture* picture) const = 0;
  /// Does to a mask, one channel of classes, what Run does to the picture with
  /// the same random numbers: moves its pixels, mixes and changes none. New
  /// ones are kMaskBorder.
  virtual absl::Status RunMask(RandomStream* random, TransformScratch* scratch,
                               Picture* mask) const = 0;
  /// Moves boxes as Run moves the pixels of a picture of this size with the
  /// same random numbers. They may reach beyond the new picture.
  virtual void MoveBoxes(RandomStream* random, int64_t height, int64_t width,
                         std::vector<PixelBox>* boxes) const = 0;
};

/// The step for a transform of pictures; null for ToTensor, Normalize and
/// Transpose, which are not. InvalidArgument names the argument.
absl::StatusOr<std::unique_ptr<PictureStep>> MakeStep(
    const Transform& transform);

/// MakeStep for one family each.
absl::StatusOr<std::unique_ptr<PictureStep>> MakeColorStep(
    const Transform& transform);

/// "Resize", ...: the name of the struct.
std::string TransformName(const Transform& transform);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_STEP_H_
