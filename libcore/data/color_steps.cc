// SPDX-License-Identifier: Apache-2.0
// Grayscale and the four jitters; masks stay as they are.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/color.h"
#include "libcore/data/step.h"

namespace pd {
namespace {

using AdjustFunction = absl::Status (*)(float, Picture*, TransformScratch*);

// A factor's range and what it is for.
struct Jitter {
  AdjustFunction adjust = nullptr;
  float low = 0, high = 0;
  bool identity = false;  // always the factor that changes nothing
};

// paddle's _check_input: one number around `center`, or a range in `bound`.
absl::StatusOr<Jitter> MakeJitter(const char* name,
                                  const std::vector<float>& value, float center,
                                  std::pair<float, float> bound,
                                  AdjustFunction adjust) {
  Jitter jitter;
  jitter.adjust = adjust;
  if (value.size() == 1) {
    if (!(value[0] >= 0))
      return InvalidArgument("%s is %g; expected 0 or more", name, value[0]);
    jitter.low = center - value[0];
    jitter.high = center + value[0];
    if (center > 0) jitter.low = std::max(jitter.low, 0.0f);
  } else if (value.size() == 2) {
    jitter.low = value[0];
    jitter.high = value[1];
  } else {
    return InvalidArgument("%s has %d numbers; expected 1 or 2", name,
                           value.size());
  }
  if (!(bound.first <= jitter.low && jitter.low <= jitter.high &&
        jitter.high <= bound.second)) {
    return InvalidArgument(
        "%s gives the range [%g, %g]; expected a range within [%g, %g]", name,
        jitter.low, jitter.high, bound.first, bound.second);
  }
  jitter.identity = jitter.low == center && jitter.high == center;
  return jitter;
}

constexpr std::pair<float, float> kFactors = {0.0f, HUGE_VALF};
constexpr std::pair<float, float> kHues = {-0.5f, 0.5f};

absl::Status RunJitter(const Jitter& jitter, RandomStream* random,
                       TransformScratch* scratch, Picture* picture) {
  if (jitter.identity) return absl::OkStatus();
  return jitter.adjust(random->Uniform(jitter.low, jitter.high), picture,
                       scratch);
}

// Steps that move no pixels.
class ColorStep : public PictureStep {
 public:
  absl::Status RunMask(RandomStream*, TransformScratch*,
                       Picture*) const override {
    return absl::OkStatus();
  }
  void MoveBoxes(RandomStream*, int64_t, int64_t,
                 std::vector<PixelBox>*) const override {}
};

class JitterStep : public ColorStep {
 public:
  explicit JitterStep(const Jitter& jitter) : jitter_(jitter) {}
  absl::Status Infer(Shape*) const override { return absl::OkStatus(); }
  absl::Status Run(RandomStream* random, TransformScratch* scratch,
                   Picture* picture) const override {
    return RunJitter(jitter_, random, scratch, picture);
  }

 private:
  Jitter jitter_;
};

class ColorJitterStep : public ColorStep {
 public:
  explicit ColorJitterStep(const std::array<Jitter, 4>& jitters)
      : jitters_(jitters) {}
  absl::Status Infer(Shape*) const override { return absl::OkStatus(); }
  absl::Status Run(RandomStream* random, TransformScratch* scratch,
                   Picture* picture) const override {
    std::array<int, 4> order = {0, 1, 2, 3};
    for (size_t i = order.size() - 1; i > 0; --i)
      std::swap(order[i], order[random->Below(i + 1)]);
    for (int which : order)
      PD_RETURN_IF_ERROR(RunJitter(jitters_[which], random, scratch, picture));
    return absl::OkStatus();
  }

 private:
  std::array<Jitter, 4> jitters_;
};

class GrayscaleStep : public ColorStep {
 public:
  explicit GrayscaleStep(int channels) : channels_(channels) {}
  absl::Status Infer(Shape* shape) const override {
    (*shape)[2] = channels_;
    return absl::OkStatus();
  }
  absl::Status Run(RandomStream*, TransformScratch* scratch,
                   Picture* picture) const override {
    return ToGrayscale(channels_, picture, scratch);
  }

 private:
  int channels_;
};

absl::StatusOr<std::unique_ptr<PictureStep>> Wrap(
    absl::StatusOr<Jitter> jitter) {
  PD_RETURN_IF_ERROR(jitter.status());
  return std::make_unique<JitterStep>(*jitter);
}

struct Maker {
  using Result = absl::StatusOr<std::unique_ptr<PictureStep>>;

  Result operator()(const transforms::Grayscale& t) const {
    if (t.num_output_channels != 1 && t.num_output_channels != 3)
      return InvalidArgument("num_output_channels is %d; expected 1 or 3",
                             t.num_output_channels);
    return std::make_unique<GrayscaleStep>(t.num_output_channels);
  }
  Result operator()(const transforms::BrightnessTransform& t) const {
    return Wrap(MakeJitter("value", t.value, 1, kFactors, AdjustBrightness));
  }
  Result operator()(const transforms::ContrastTransform& t) const {
    return Wrap(MakeJitter("value", t.value, 1, kFactors, AdjustContrast));
  }
  Result operator()(const transforms::SaturationTransform& t) const {
    return Wrap(MakeJitter("value", t.value, 1, kFactors, AdjustSaturation));
  }
  Result operator()(const transforms::HueTransform& t) const {
    return Wrap(MakeJitter("value", t.value, 0, kHues, AdjustHue));
  }
  Result operator()(const transforms::ColorJitter& t) const {
    std::array<Jitter, 4> jitters;
    PD_ASSIGN_OR_RETURN(jitters[0], MakeJitter("brightness", t.brightness, 1,
                                               kFactors, AdjustBrightness));
    PD_ASSIGN_OR_RETURN(jitters[1], MakeJitter("contrast", t.contrast, 1,
                                               kFactors, AdjustContrast));
    PD_ASSIGN_OR_RETURN(jitters[2], MakeJitter("saturation", t.saturation, 1,
                                               kFactors, AdjustSaturation));
    PD_ASSIGN_OR_RETURN(jitters[3],
                        MakeJitter("hue", t.hue, 0, kHues, AdjustHue));
    return std::make_unique<ColorJitterStep>(jitters);
  }
  template <typename Other>
  Result operator()(const Other&) const {
    return std::unique_ptr<PictureStep>();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<PictureStep>> MakeColorStep(
    const Transform& transform) {
  return std::visit(Maker(), transform);
}

}  // namespace pd
