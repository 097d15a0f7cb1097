// SPDX-License-Identifier: Apache-2.0
// A list of transforms, checked against an image's shape and ready to run.
#ifndef PD_LIBCORE_DATA_PIPELINE_H_
#define PD_LIBCORE_DATA_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/base/rng.h"
#include "libcore/base/shape.h"
#include "libcore/data/picture.h"
#include "libcore/data/transforms.h"

namespace pd {

class Finish;
class PictureStep;

/// The mask and boxes that move with a picture.
struct Companions {
  Picture* mask = nullptr;  ///< the classes of its pixels
  TransformScratch* mask_scratch = nullptr;
  std::vector<PixelBox>* boxes = nullptr;
  /// Boxes of which a smaller part of their area is left are taken out.
  double min_visible = 0;
};

/// Runs on many threads at once, each with a scratch of its own.
class Pipeline {
 public:
  /// For images of `shape` [height, width, channels], -1 where they differ.
  /// InvalidArgument names the transform ("transforms[2] Normalize: ...").
  static absl::StatusOr<Pipeline> Create(const Shape& shape,
                                         const std::vector<Transform>& list);
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;
  ~Pipeline();

  DType output_dtype() const;
  /// [height, width, channels] of pictures after Apply; -1 where it depends on
  /// the image.
  const Shape& picture_shape() const { return picture_shape_; }
  /// The shape of the array that Write makes of such a picture.
  Shape ArrayShape(int64_t height, int64_t width) const;

  /// Runs all transforms but the change into an array; what goes with the
  /// picture moves alike.
  absl::Status Apply(RandomStream* random, TransformScratch* scratch,
                     Picture* picture, const Companions& others = {}) const;
  /// Writes the array's elements, output_dtype(), to `out`.
  void Write(const Picture& picture, std::byte* out) const;

 private:
  Pipeline();
  std::vector<std::unique_ptr<PictureStep>> steps_;
  std::vector<std::string> names_;
  std::unique_ptr<Finish> finish_;
  Shape picture_shape_;
};

/// The stream of random numbers that record `record` draws its transforms from
/// in `epoch`.
RandomStream TransformStream(uint64_t seed, int64_t epoch, int64_t record);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_PIPELINE_H_
