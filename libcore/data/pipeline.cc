// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/pipeline.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/finish.h"
#include "libcore/data/step.h"

namespace pd {
namespace {

absl::Status AddToFinish(const Transform& transform, Finish* finish) {
  if (const auto* t = std::get_if<transforms::ToTensor>(&transform))
    return finish->Add(*t);
  if (const auto* t = std::get_if<transforms::Normalize>(&transform))
    return finish->Add(*t);
  return finish->Add(std::get<transforms::Transpose>(transform));
}

// Ends boxes at the picture's edges, and takes out those that are gone.
void CutBoxes(const Picture& picture, const Companions& with) {
  const auto width = static_cast<double>(picture.width);
  const auto height = static_cast<double>(picture.height);
  const auto is_gone = [&](PixelBox& box) {
    const double area = (box.xmax - box.xmin) * (box.ymax - box.ymin);
    box.xmin = std::clamp(box.xmin, 0.0, width);
    box.xmax = std::clamp(box.xmax, 0.0, width);
    box.ymin = std::clamp(box.ymin, 0.0, height);
    box.ymax = std::clamp(box.ymax, 0.0, height);
    const double left = (box.xmax - box.xmin) * (box.ymax - box.ymin);
    box.visible *= left / area;
    return !(left > 0) || box.visible < with.min_visible;
  };
  with.boxes->erase(
      std::remove_if(with.boxes->begin(), with.boxes->end(), is_gone),
      with.boxes->end());
}

// Spreads the bits of x over all 64 (the finaliser of MurmurHash3).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

}  // namespace

Pipeline::Pipeline() = default;
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;
Pipeline::~Pipeline() = default;

absl::StatusOr<Pipeline> Pipeline::Create(const Shape& shape,
                                          const std::vector<Transform>& list) {
  Pipeline pipeline;
  Shape now = shape;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string name =
        absl::StrFormat("transforms[%d] %s", i, TransformName(list[i]));
    auto step = MakeStep(list[i]);
    if (!step.ok()) return Annotate(step.status(), name);
    absl::Status status;
    if (*step == nullptr) {
      if (pipeline.finish_ == nullptr)
        pipeline.finish_ = std::make_unique<Finish>(now[2]);
      status = AddToFinish(list[i], pipeline.finish_.get());
    } else if (pipeline.finish_ != nullptr) {
      status = InvalidArgument(
          "it must come before ToTensor, Normalize and Transpose");
    } else {
      status = (*step)->Infer(&now);
      pipeline.steps_.push_back(*std::move(step));
      pipeline.names_.push_back(name);
    }
    if (!status.ok()) return Annotate(status, name);
  }
  if (pipeline.finish_ == nullptr)
    pipeline.finish_ = std::make_unique<Finish>(now[2]);
  pipeline.picture_shape_ = std::move(now);
  return pipeline;
}

DType Pipeline::output_dtype() const { return finish_->dtype(); }

absl::Status Pipeline::Apply(RandomStream* random, TransformScratch* scratch,
                             Picture* picture, const Companions& others) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    RandomStream of_mask = *random, of_boxes = *random;
    if (others.boxes != nullptr)
      steps_[i]->MoveBoxes(&of_boxes, picture->height, picture->width,
                           others.boxes);
    absl::Status status = steps_[i]->Run(random, scratch, picture);
    if (status.ok() && others.mask != nullptr)
      status = steps_[i]->RunMask(&of_mask, others.mask_scratch, others.mask);
    if (!status.ok()) return Annotate(status, names_[i]);
    if (others.boxes != nullptr) CutBoxes(*picture, others);
  }
  return absl::OkStatus();
}

Shape Pipeline::ArrayShape(int64_t height, int64_t width) const {
  const auto shape = finish_->OutputShape(height, width);
  return {shape.begin(), shape.end()};
}

void Pipeline::Write(const Picture& picture, std::byte* out) const {
  finish_->Run(picture, out);
}

RandomStream TransformStream(uint64_t seed, int64_t epoch, int64_t record) {
  constexpr uint64_t kPurpose = StreamOf("data.transforms");
  const uint64_t stream = Mix(kPurpose ^ static_cast<uint64_t>(epoch)) +
                          static_cast<uint64_t>(record);
  return RandomStream(seed, Mix(stream));
}

bool IsRandom(const Transform& t) {
  using namespace transforms;  // NOLINT: the list is all of them
  return std::holds_alternative<RandomResizedCrop>(t) ||
         std::holds_alternative<RandomCrop>(t) ||
         std::holds_alternative<RandomHorizontalFlip>(t) ||
         std::holds_alternative<RandomVerticalFlip>(t) ||
         std::holds_alternative<BrightnessTransform>(t) ||
         std::holds_alternative<ContrastTransform>(t) ||
         std::holds_alternative<SaturationTransform>(t) ||
         std::holds_alternative<HueTransform>(t) ||
         std::holds_alternative<ColorJitter>(t) ||
         std::holds_alternative<RandomRotation>(t);
}

int64_t PictureChannels(const Shape& input,
                        const std::vector<Transform>& transforms) {
  for (const int64_t channels : {3, 1}) {
    const auto pipeline = Pipeline::Create({-1, -1, channels}, transforms);
    if (!pipeline.ok()) continue;
    const Shape& picture = pipeline->picture_shape();
    const Shape array = pipeline->ArrayShape(picture[0], picture[1]);
    bool fits = array.size() + 1 == input.size();
    for (size_t i = 0; fits && i < array.size(); ++i)
      fits = array[i] < 0 || input[i + 1] < 0 || array[i] == input[i + 1];
    if (fits) return channels;
  }
  // Pixels in a row: one for each of the input's numbers, or three.
  int64_t numbers = 1;
  for (size_t i = 1; i < input.size(); ++i) numbers *= input[i];
  const auto pipeline = Pipeline::Create({-1, -1, 1}, transforms);
  if (!pipeline.ok()) return 3;
  const Shape& picture = pipeline->picture_shape();
  return picture[0] * picture[1] == numbers ? 1 : 3;
}

}  // namespace pd
