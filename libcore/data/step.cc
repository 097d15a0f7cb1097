// SPDX-License-Identifier: Apache-2.0
// The transforms that move pixels: resize, crops, flips, pad, rotation.
#include "libcore/data/step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/geometry.h"
#include "libcore/data/resample.h"

namespace pd {
namespace {

constexpr int64_t kMaxSide = 1 << 16;
constexpr std::array<uint8_t, 3> kMaskFill = {kMaskBorder, kMaskBorder,
                                              kMaskBorder};

struct Size {
  int64_t height = 0, width = 0;
};

absl::StatusOr<Size> SizeOfList(const std::vector<int>& size) {
  if (size.empty() || size.size() > 2)
    return InvalidArgument("size has %d numbers; expected 1 or 2", size.size());
  const Size result = {size.front(), size.back()};
  for (int64_t side : {result.height, result.width}) {
    if (side < 1 || side > kMaxSide)
      return InvalidArgument("size holds %d; expected 1 to %d", side, kMaxSide);
  }
  return result;
}

absl::StatusOr<Padding> PaddingOfList(const std::vector<int>& padding) {
  for (int side : padding) {
    if (side < 0 || side > kMaxSide)
      return InvalidArgument("padding holds %d; expected 0 to %d", side,
                             kMaxSide);
  }
  switch (padding.size()) {
    case 0:
      return Padding{};
    case 1:
      return Padding{padding[0], padding[0], padding[0], padding[0]};
    case 2:
      return Padding{padding[0], padding[1], padding[0], padding[1]};
    case 4:
      return Padding{padding[0], padding[1], padding[2], padding[3]};
    default:
      return InvalidArgument("padding has %d numbers; expected 1, 2 or 4",
                             padding.size());
  }
}

absl::StatusOr<std::array<uint8_t, 3>> ColorOfList(
    const std::vector<float>& fill) {
  if (fill.size() != 1 && fill.size() != 3)
    return InvalidArgument("fill has %d numbers; expected 1 or 3", fill.size());
  std::array<uint8_t, 3> color;
  for (size_t c = 0; c < 3; ++c) {
    const float value = fill.size() == 1 ? fill[0] : fill[c];
    if (!(value >= 0 && value <= 255))
      return InvalidArgument("fill holds %g; expected 0 to 255", value);
    color[c] = static_cast<uint8_t>(value);
  }
  return color;
}

absl::Status CheckProbability(float prob) {
  if (prob >= 0 && prob <= 1) return absl::OkStatus();
  return InvalidArgument("prob is %g; expected 0 to 1", prob);
}

absl::Status CheckRange(const char* name, const std::vector<float>& range) {
  if (range.size() == 2 && range[0] > 0 && range[0] <= range[1] &&
      std::isfinite(range[1]))
    return absl::OkStatus();
  return InvalidArgument("%s must be two positive numbers, the lower first",
                         name);
}

// First enlarges boxes, then moves them.
void ScaleAndShift(double across, double down, double right, double below,
                   std::vector<PixelBox>* boxes) {
  for (PixelBox& box : *boxes) {
    box.xmin = box.xmin * across + right;
    box.xmax = box.xmax * across + right;
    box.ymin = box.ymin * down + below;
    box.ymax = box.ymax * down + below;
  }
}

double Ratio(int64_t a, int64_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

class ResizeStep : public PictureStep {
 public:
  ResizeStep(const Size& size, bool edge, Interpolation interpolation)
      : size_(size), edge_(edge), interpolation_(interpolation) {}
  absl::Status Infer(Shape* shape) const override {
    const Size to = Target((*shape)[0], (*shape)[1]);
    (*shape)[0] = to.height;
    (*shape)[1] = to.width;
    return absl::OkStatus();
  }
  absl::Status Run(RandomStream*, TransformScratch* scratch,
                   Picture* picture) const override {
    const Size to = Target(picture->height, picture->width);
    return ResizePicture(to.height, to.width, interpolation_, picture, scratch);
  }
  absl::Status RunMask(RandomStream*, TransformScratch* scratch,
                       Picture* mask) const override {
    const Size to = Target(mask->height, mask->width);
    return ResizePicture(to.height, to.width, Interpolation::kNearest, mask,
                         scratch);
  }
  void MoveBoxes(RandomStream*, int64_t height, int64_t width,
                 std::vector<PixelBox>* boxes) const override {
    const Size to = Target(height, width);
    ScaleAndShift(Ratio(to.width, width), Ratio(to.height, height), 0, 0,
                  boxes);
  }

 private:
  Size Target(int64_t height, int64_t width) const {
    if (!edge_) return size_;
    if (height < 0 || width < 0) return {-1, -1};
    const int64_t edge = size_.height;
    if (width == height) return {edge, edge};
    // An extreme picture would become one without pixels.
    if (width < height) return {edge * height / width, edge};
    return {edge, edge * width / height};
  }
  Size size_;
  bool edge_;
  Interpolation interpolation_;
};

class CenterCropStep : public PictureStep {
 public:
  explicit CenterCropStep(const Size& size) : size_(size) {}
  absl::Status Infer(Shape* shape) const override {
    (*shape)[0] = size_.height;
    (*shape)[1] = size_.width;
    return absl::OkStatus();
  }
  absl::Status Run(RandomStream*, TransformScratch* scratch,
                   Picture* picture) const override {
    return CropPicture(Margin(picture->height, size_.height),
                       Margin(picture->width, size_.width), size_.height,
                       size_.width, picture, scratch);
  }
  absl::Status RunMask(RandomStream* random, TransformScratch* scratch,
                       Picture* mask) const override {
    // By an even number on each side, so that rounding stays what it is.
    const auto missing = [](int64_t want, int64_t have) {
      return std::max<int64_t>((want - have + 1) / 2 * 2, 0);
    };
    const int64_t wide = missing(size_.width, mask->width);
    const int64_t high = missing(size_.height, mask->height);
    PD_RETURN_IF_ERROR(PadPicture({wide, high, wide, high},
                                  PaddingMode::kConstant, kMaskFill, mask,
                                  scratch));
    return Run(random, scratch, mask);
  }
  void MoveBoxes(RandomStream*, int64_t height, int64_t width,
                 std::vector<PixelBox>* boxes) const override {
    ScaleAndShift(1, 1, -static_cast<double>(Margin(width, size_.width)),
                  -static_cast<double>(Margin(height, size_.height)), boxes);
  }

 private:
  // Python's round: to even.
  static int64_t Margin(int64_t have, int64_t want) {
    return static_cast<int64_t>(
        std::nearbyint(static_cast<double>(have - want) / 2.0));
  }
  Size size_;
};

class PadStep : public PictureStep {
 public:
  PadStep(const Padding& padding, PaddingMode mode,
          const std::array<uint8_t, 3>& fill)
      : padding_(padding), mode_(mode), fill_(fill) {}
  absl::Status Infer(Shape* shape) const override {
    if ((*shape)[0] >= 0) (*shape)[0] += padding_.top + padding_.bottom;
    if ((*shape)[1] >= 0) (*shape)[1] += padding_.left + padding_.right;
    return absl::OkStatus();
  }
  absl::Status Run(RandomStream*, TransformScratch* scratch,
                   Picture* picture) const override {
    return PadPicture(padding_, mode_, fill_, picture, scratch);
  }
  absl::Status RunMask(RandomStream*, TransformScratch* scratch,
                       Picture* mask) const override {
    return PadPicture(padding_, mode_, kMaskFill, mask, scratch);
  }
  void MoveBoxes(RandomStream*, int64_t, int64_t,
                 std::vector<PixelBox>* boxes) const override {
    ScaleAndShift(1, 1, static_cast<double>(padding_.left),
                  static_cast<double>(padding_.top), boxes);
  }

 private:
  Padding padding_;
  PaddingMode mode_;
  std::array<uint8_t, 3> fill_;
};

class RandomCropStep : public PictureStep {
 public:
  RandomCropStep(const Size& size, const Padding& padding, bool pad_if_needed,
                 PaddingMode mode, const std::array<uint8_t, 3>& fill)
      : size_(size),
        padding_(padding),
        pad_if_needed_(pad_if_needed),
        mode_(mode),
        fill_(fill) {}
  absl::Status Infer(Shape* shape) const override {
    const int64_t height = (*shape)[0], width = (*shape)[1];
    if (height >= 0 && width >= 0) {
      PD_RETURN_IF_ERROR(CheckFits(height + padding_.top + padding_.bottom,
                                   width + padding_.left + padding_.right));
    }
    *shape = {size_.height, size_.width, (*shape)[2]};
    return absl::OkStatus();
  }
  absl::Status Run(RandomStream* random, TransformScratch* scratch,
                   Picture* picture) const override {
    return Crop(fill_, random, scratch, picture);
  }
  absl::Status RunMask(RandomStream* random, TransformScratch* scratch,
                       Picture* mask) const override {
    return Crop(kMaskFill, random, scratch, mask);
  }
  void MoveBoxes(RandomStream* random, int64_t height, int64_t width,
                 std::vector<PixelBox>* boxes) const override {
    const Size padded = {height + padding_.top + padding_.bottom,
                         width + padding_.left + padding_.right};
    const Place place = Draw(random, padded);
    ScaleAndShift(
        1, 1, static_cast<double>(padding_.left + place.wide - place.left),
        static_cast<double>(padding_.top + place.high - place.top), boxes);
  }

 private:
  // How much a picture of that size is padded on each side, and which part of
  // it is taken then.
  struct Place {
    int64_t wide, high, top, left;
  };
  Place Draw(RandomStream* random, const Size& picture) const {
    Place place;
    // As paddle: by the whole difference on both sides.
    place.wide = std::max<int64_t>(size_.width - picture.width, 0);
    place.high = std::max<int64_t>(size_.height - picture.height, 0);
    const auto draw = [random](int64_t room) {
      return static_cast<int64_t>(
          random->Below(static_cast<uint64_t>(room + 1)));
    };
    place.top = draw(picture.height + 2 * place.high - size_.height);
    place.left = draw(picture.width + 2 * place.wide - size_.width);
    return place;
  }
  absl::Status Crop(const std::array<uint8_t, 3>& fill, RandomStream* random,
                    TransformScratch* scratch, Picture* picture) const {
    PD_RETURN_IF_ERROR(PadPicture(padding_, mode_, fill, picture, scratch));
    PD_RETURN_IF_ERROR(CheckFits(picture->height, picture->width));
    const Place place = Draw(random, {picture->height, picture->width});
    PD_RETURN_IF_ERROR(
        PadPicture({place.wide, place.high, place.wide, place.high}, mode_,
                   fill, picture, scratch));
    return CropPicture(place.top, place.left, size_.height, size_.width,
                       picture, scratch);
  }
  absl::Status CheckFits(int64_t height, int64_t width) const {
    if (pad_if_needed_ || (height >= size_.height && width >= size_.width))
      return absl::OkStatus();
    return InvalidArgument(
        "size is [%d, %d] but the padded image is [%d, %d]; expected a smaller "
        "size, more padding, or pad_if_needed",
        size_.height, size_.width, height, width);
  }
  Size size_;
  Padding padding_;
  bool pad_if_needed_;
  PaddingMode mode_;
  std::array<uint8_t, 3> fill_;
};

class RandomResizedCropStep : public PictureStep {
 public:
  RandomResizedCropStep(const Size& size, const std::vector<float>& scale,
                        const std::vector<float>& ratio,
                        Interpolation interpolation)
      : size_(size),
        scale_{scale[0], scale[1]},
        ratio_{ratio[0], ratio[1]},
        interpolation_(interpolation) {}
  absl::Status Infer(Shape* shape) const override {
    *shape = {size_.height, size_.width, (*shape)[2]};
    return absl::OkStatus();
  }
  absl::Status Run(RandomStream* random, TransformScratch* scratch,
                   Picture* picture) const override {
    return Crop(interpolation_, random, scratch, picture);
  }
  absl::Status RunMask(RandomStream* random, TransformScratch* scratch,
                       Picture* mask) const override {
    return Crop(Interpolation::kNearest, random, scratch, mask);
  }
  void MoveBoxes(RandomStream* random, int64_t height, int64_t width,
                 std::vector<PixelBox>* boxes) const override {
    int64_t top, left;
    const Size crop = Draw(random, {height, width}, &top, &left);
    ScaleAndShift(1, 1, -static_cast<double>(left), -static_cast<double>(top),
                  boxes);
    ScaleAndShift(Ratio(size_.width, crop.width),
                  Ratio(size_.height, crop.height), 0, 0, boxes);
  }

 private:
  absl::Status Crop(Interpolation interpolation, RandomStream* random,
                    TransformScratch* scratch, Picture* picture) const {
    int64_t top, left;
    const Size crop =
        Draw(random, {picture->height, picture->width}, &top, &left);
    PD_RETURN_IF_ERROR(
        CropPicture(top, left, crop.height, crop.width, picture, scratch));
    return ResizePicture(size_.height, size_.width, interpolation, picture,
                         scratch);
  }
  Size Draw(RandomStream* random, const Size& picture, int64_t* top,
            int64_t* left) const {
    const int64_t height = picture.height, width = picture.width;
    const double area = static_cast<double>(height) * width;
    constexpr int kAttempts = 10;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const double target = random->Uniform(scale_[0], scale_[1]) * area;
      const double aspect =
          std::exp(random->Uniform(std::log(ratio_[0]), std::log(ratio_[1])));
      const Size crop = {
          static_cast<int64_t>(std::nearbyint(std::sqrt(target / aspect))),
          static_cast<int64_t>(std::nearbyint(std::sqrt(target * aspect)))};
      if (crop.width < 1 || crop.width > width || crop.height < 1 ||
          crop.height > height)
        continue;
      *top = random->Below(static_cast<uint64_t>(height - crop.height + 1));
      *left = random->Below(static_cast<uint64_t>(width - crop.width + 1));
      return crop;
    }
    // The largest central crop with an allowed ratio.
    Size crop = {height, width};
    const double whole = static_cast<double>(width) / height;
    if (whole < ratio_[0])
      crop.height = static_cast<int64_t>(std::nearbyint(width / ratio_[0]));
    if (whole > ratio_[1])
      crop.width = static_cast<int64_t>(std::nearbyint(height * ratio_[1]));
    *top = (height - crop.height) / 2;
    *left = (width - crop.width) / 2;
    return crop;
  }
  Size size_;
  std::array<float, 2> scale_, ratio_;
  Interpolation interpolation_;
};

class FlipStep : public PictureStep {
 public:
  FlipStep(bool horizontally, float prob)
      : horizontally_(horizontally), prob_(prob) {}
  absl::Status Infer(Shape*) const override { return absl::OkStatus(); }
  absl::Status Run(RandomStream* random, TransformScratch* scratch,
                   Picture* picture) const override {
    if (!(random->Uniform() < prob_)) return absl::OkStatus();
    return FlipPicture(horizontally_, picture, scratch);
  }
  absl::Status RunMask(RandomStream* random, TransformScratch* scratch,
                       Picture* mask) const override {
    return Run(random, scratch, mask);
  }
  void MoveBoxes(RandomStream* random, int64_t height, int64_t width,
                 std::vector<PixelBox>* boxes) const override {
    if (!(random->Uniform() < prob_)) return;
    for (PixelBox& box : *boxes) {
      double& low = horizontally_ ? box.xmin : box.ymin;
      double& high = horizontally_ ? box.xmax : box.ymax;
      const auto side = static_cast<double>(horizontally_ ? width : height);
      std::swap(low, high);
      low = side - low;
      high = side - high;
    }
  }

 private:
  bool horizontally_;
  float prob_;
};

class RotationStep : public PictureStep {
 public:
  RotationStep(float low, float high, Rotation rotation)
      : low_(low), high_(high), rotation_(std::move(rotation)) {}
  absl::Status Infer(Shape* shape) const override {
    if (rotation_.expand) *shape = {-1, -1, (*shape)[2]};
    return absl::OkStatus();
  }
  absl::Status Run(RandomStream* random, TransformScratch* scratch,
                   Picture* picture) const override {
    return RotatePicture(random->Uniform(low_, high_), rotation_, picture,
                         scratch);
  }
  absl::Status RunMask(RandomStream* random, TransformScratch* scratch,
                       Picture* mask) const override {
    Rotation rotation = rotation_;
    rotation.interpolation = Interpolation::kNearest;
    rotation.fill = kMaskFill;
    return RotatePicture(random->Uniform(low_, high_), rotation, mask, scratch);
  }
  void MoveBoxes(RandomStream* random, int64_t height, int64_t width,
                 std::vector<PixelBox>* boxes) const override {
    RotateBoxes(random->Uniform(low_, high_), rotation_, height, width, boxes);
  }

 private:
  float low_, high_;
  Rotation rotation_;
};

struct Maker {
  using Result = absl::StatusOr<std::unique_ptr<PictureStep>>;

  Result operator()(const transforms::Resize& t) const {
    PD_ASSIGN_OR_RETURN(const Size size, SizeOfList(t.size));
    PD_ASSIGN_OR_RETURN(const auto how, InterpolationFromName(t.interpolation));
    return std::make_unique<ResizeStep>(size, t.size.size() == 1, how);
  }
  Result operator()(const transforms::RandomResizedCrop& t) const {
    PD_ASSIGN_OR_RETURN(const Size size, SizeOfList(t.size));
    PD_ASSIGN_OR_RETURN(const auto how, InterpolationFromName(t.interpolation));
    PD_RETURN_IF_ERROR(CheckRange("scale", t.scale));
    PD_RETURN_IF_ERROR(CheckRange("ratio", t.ratio));
    return std::make_unique<RandomResizedCropStep>(size, t.scale, t.ratio, how);
  }
  Result operator()(const transforms::CenterCrop& t) const {
    PD_ASSIGN_OR_RETURN(const Size size, SizeOfList(t.size));
    return std::make_unique<CenterCropStep>(size);
  }
  Result operator()(const transforms::RandomCrop& t) const {
    PD_ASSIGN_OR_RETURN(const Size size, SizeOfList(t.size));
    PD_ASSIGN_OR_RETURN(const Padding padding, PaddingOfList(t.padding));
    PD_ASSIGN_OR_RETURN(const auto mode, PaddingModeFromName(t.padding_mode));
    PD_ASSIGN_OR_RETURN(const auto fill, ColorOfList(t.fill));
    return std::make_unique<RandomCropStep>(size, padding, t.pad_if_needed,
                                            mode, fill);
  }
  Result operator()(const transforms::RandomHorizontalFlip& t) const {
    PD_RETURN_IF_ERROR(CheckProbability(t.prob));
    return std::make_unique<FlipStep>(true, t.prob);
  }
  Result operator()(const transforms::RandomVerticalFlip& t) const {
    PD_RETURN_IF_ERROR(CheckProbability(t.prob));
    return std::make_unique<FlipStep>(false, t.prob);
  }
  Result operator()(const transforms::Pad& t) const {
    if (t.padding.empty()) return InvalidArgument("padding is missing");
    PD_ASSIGN_OR_RETURN(const Padding padding, PaddingOfList(t.padding));
    PD_ASSIGN_OR_RETURN(const auto mode, PaddingModeFromName(t.padding_mode));
    PD_ASSIGN_OR_RETURN(const auto fill, ColorOfList(t.fill));
    return std::make_unique<PadStep>(padding, mode, fill);
  }
  Result operator()(const transforms::RandomRotation& t) const {
    Rotation rotation;
    PD_ASSIGN_OR_RETURN(rotation.interpolation,
                        InterpolationFromName(t.interpolation));
    if (rotation.interpolation > Interpolation::kBicubic)
      return InvalidArgument(
          "interpolation is '%s'; expected nearest, bilinear or bicubic",
          t.interpolation);
    PD_ASSIGN_OR_RETURN(rotation.fill, ColorOfList(t.fill));
    rotation.expand = t.expand;
    rotation.center = t.center;
    if (!t.center.empty() && t.center.size() != 2)
      return InvalidArgument("center has %d numbers; expected 2",
                             t.center.size());
    for (float coordinate : t.center) {
      if (!(std::fabs(coordinate) <= kMaxSide))
        return InvalidArgument("center holds %g; expected at most %d",
                               coordinate, kMaxSide);
    }
    if (t.degrees.empty() || t.degrees.size() > 2)
      return InvalidArgument("degrees has %d numbers; expected 1 or 2",
                             t.degrees.size());
    const float high = t.degrees.back();
    const float low = t.degrees.size() == 1 ? -high : t.degrees[0];
    if (!std::isfinite(low) || !std::isfinite(high) ||
        (t.degrees.size() == 1 && high < 0))
      return InvalidArgument("degrees holds %g; expected 0 or more", high);
    return std::make_unique<RotationStep>(low, high, std::move(rotation));
  }
  template <typename Other>
  Result operator()(const Other&) const {
    return std::unique_ptr<PictureStep>();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<PictureStep>> MakeStep(
    const Transform& transform) {
  PD_ASSIGN_OR_RETURN(auto step, std::visit(Maker(), transform));
  if (step != nullptr) return step;
  return MakeColorStep(transform);
}

std::string TransformName(const Transform& transform) {
  // In the order of the variant's alternatives.
  static constexpr const char* kNames[] = {
      "ToTensor",           "Normalize",
      "Transpose",          "Resize",
      "RandomResizedCrop",  "CenterCrop",
      "RandomCrop",         "RandomHorizontalFlip",
      "RandomVerticalFlip", "Pad",
      "Grayscale",          "BrightnessTransform",
      "ContrastTransform",  "SaturationTransform",
      "HueTransform",       "ColorJitter",
      "RandomRotation"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) ==
                std::variant_size_v<Transform>);
  return kNames[transform.index()];
}

}  // namespace pd
