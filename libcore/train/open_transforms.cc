// SPDX-License-Identifier: Apache-2.0
// Transforms from their messages.
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_data.h"
#include "libcore/train/open_internal.h"

namespace pd {
namespace {

std::string NameOf(job::Interpolation::Kind kind) {
  return job::Interpolation::Kind_Name(kind);
}

transforms::ColorJitter ColorJitterOf(const job::ColorJitter& t) {
  transforms::ColorJitter jitter;
  if (t.brightness_size() > 0)
    jitter.brightness = ListOf<float>(t.brightness());
  if (t.contrast_size() > 0) jitter.contrast = ListOf<float>(t.contrast());
  if (t.saturation_size() > 0)
    jitter.saturation = ListOf<float>(t.saturation());
  if (t.hue_size() > 0) jitter.hue = ListOf<float>(t.hue());
  return jitter;
}

transforms::RandomCrop RandomCropOf(const job::RandomCrop& t) {
  transforms::RandomCrop crop;
  crop.size = ListOf<int>(t.size());
  crop.padding = ListOf<int>(t.padding());
  crop.pad_if_needed = t.pad_if_needed();
  if (t.fill_size() > 0) crop.fill = ListOf<float>(t.fill());
  crop.padding_mode = job::PaddingMode::Kind_Name(t.padding_mode());
  return crop;
}

transforms::RandomResizedCrop RandomResizedCropOf(
    const job::RandomResizedCrop& t) {
  transforms::RandomResizedCrop crop;
  crop.size = ListOf<int>(t.size());
  if (t.scale_size() > 0) crop.scale = ListOf<float>(t.scale());
  if (t.ratio_size() > 0) crop.ratio = ListOf<float>(t.ratio());
  crop.interpolation = NameOf(t.interpolation());
  return crop;
}

transforms::Pad PadOf(const job::Pad& t) {
  transforms::Pad pad;
  pad.padding = ListOf<int>(t.padding());
  if (t.fill_size() > 0) pad.fill = ListOf<float>(t.fill());
  pad.padding_mode = job::PaddingMode::Kind_Name(t.padding_mode());
  return pad;
}

transforms::Normalize NormalizeOf(const job::Normalize& t) {
  transforms::Normalize normalize;
  if (t.mean_size() > 0) normalize.mean = ListOf<float>(t.mean());
  if (t.std_size() > 0) normalize.std = ListOf<float>(t.std());
  normalize.data_format = job::DataFormat::Kind_Name(t.data_format());
  normalize.to_rgb = t.to_rgb();
  return normalize;
}

transforms::RandomRotation RandomRotationOf(const job::RandomRotation& t) {
  transforms::RandomRotation rotation;
  rotation.degrees = ListOf<float>(t.degrees());
  rotation.interpolation = NameOf(t.interpolation());
  rotation.expand = t.expand();
  rotation.center = ListOf<float>(t.center());
  if (t.fill_size() > 0) rotation.fill = ListOf<float>(t.fill());
  return rotation;
}

transforms::Transpose TransposeOf(const job::TransposeImage& t) {
  transforms::Transpose transpose;
  if (t.order_size() > 0) transpose.order = ListOf<int>(t.order());
  return transpose;
}

Transform TransformOf(const job::Transform& t) {
  switch (t.kind_case()) {
    case job::Transform::kResize:
      return transforms::Resize{ListOf<int>(t.resize().size()),
                                NameOf(t.resize().interpolation())};
    case job::Transform::kCenterCrop:
      return transforms::CenterCrop{ListOf<int>(t.center_crop().size())};
    case job::Transform::kRandomCrop:
      return RandomCropOf(t.random_crop());
    case job::Transform::kRandomResizedCrop:
      return RandomResizedCropOf(t.random_resized_crop());
    case job::Transform::kRandomHorizontalFlip:
      return transforms::RandomHorizontalFlip{
          static_cast<float>(t.random_horizontal_flip().prob())};
    case job::Transform::kRandomVerticalFlip:
      return transforms::RandomVerticalFlip{
          static_cast<float>(t.random_vertical_flip().prob())};
    case job::Transform::kPad:
      return PadOf(t.pad());
    case job::Transform::kColorJitter:
      return ColorJitterOf(t.color_jitter());
    case job::Transform::kGrayscale:
      return transforms::Grayscale{t.grayscale().num_output_channels()};
    case job::Transform::kToTensor:
      return transforms::ToTensor{
          job::DataFormat::Kind_Name(t.to_tensor().data_format())};
    case job::Transform::kNormalize:
      return NormalizeOf(t.normalize());
    case job::Transform::kTranspose:
      return TransposeOf(t.transpose());
    case job::Transform::kBrightnessTransform:
      return transforms::BrightnessTransform{
          ListOf<float>(t.brightness_transform().value())};
    case job::Transform::kContrastTransform:
      return transforms::ContrastTransform{
          ListOf<float>(t.contrast_transform().value())};
    case job::Transform::kSaturationTransform:
      return transforms::SaturationTransform{
          ListOf<float>(t.saturation_transform().value())};
    case job::Transform::kHueTransform:
      return transforms::HueTransform{ListOf<float>(t.hue_transform().value())};
    case job::Transform::kRandomRotation:
      return RandomRotationOf(t.random_rotation());
    case job::Transform::KIND_NOT_SET:
      break;
  }
  PD_INVARIANT(!"a transform without a kind passed the job's check");
  return transforms::ToTensor{};
}

}  // namespace

std::vector<Transform> TransformsOf(const job::DataSet& set) {
  std::vector<Transform> list;
  for (const job::Transform& transform : set.transform())
    list.push_back(TransformOf(transform));
  return list;
}

}  // namespace pd
