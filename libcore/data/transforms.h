// SPDX-License-Identifier: Apache-2.0
// The transforms of paddle.vision.transforms as plain structs: their names,
// arguments, defaults and order of application. Where PaddlePaddle's result
// depends on the image backend, ours is that of its default one, 'pil', bit
// for bit. Arguments that are "int or pair" are lists of one or two numbers.
//
// Differences, all of them refusals or repairs of what PaddlePaddle gets
// wrong: a single mean or std counts for every channel (there: for three); a
// single fill is grey (there, in Pad, red); to_rgb needs data_format 'HWC'
// (there, 'CHW' mirrors the picture); images must be uint8 until ToTensor,
// Normalize or Transpose, which come last.
#ifndef PD_LIBCORE_DATA_TRANSFORMS_H_
#define PD_LIBCORE_DATA_TRANSFORMS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "libcore/base/shape.h"

namespace pd::transforms {

/// uint8 [H, W, C] to float32 in [0, 1], [C, H, W] or [H, W, C].
struct ToTensor {
  std::string data_format = "CHW";
};

/// (image - mean) / std per channel, float32. A grey image that is not yet a
/// tensor becomes [1, H, W].
struct Normalize {
  std::vector<float> mean = {0.0f};
  std::vector<float> std = {1.0f};
  std::string data_format = "CHW";
  bool to_rgb = false;  ///< reverses the channels first
};

/// Reorders the axes; [H, W, C] to [C, H, W] by default.
struct Transpose {
  std::vector<int> order = {2, 0, 1};
};

/// One number: the shorter edge becomes it. Two: [height, width].
/// interpolation: nearest, bilinear, bicubic, box, hamming, lanczos.
struct Resize {
  std::vector<int> size;
  std::string interpolation = "bilinear";
};

/// A crop of random area and aspect ratio, resized to `size`.
struct RandomResizedCrop {
  std::vector<int> size;
  std::vector<float> scale = {0.08f, 1.0f};
  std::vector<float> ratio = {3.0f / 4, 4.0f / 3};
  std::string interpolation = "bilinear";
};

/// The middle of the image; black where it is smaller than `size`.
struct CenterCrop {
  std::vector<int> size;
};

/// padding: none, one number, [left/right, top/bottom], or [left, top, right,
/// bottom]. padding_mode: constant, edge, reflect, symmetric.
struct RandomCrop {
  std::vector<int> size;
  std::vector<int> padding;
  bool pad_if_needed = false;
  std::vector<float> fill = {0};
  std::string padding_mode = "constant";
};

struct RandomHorizontalFlip {
  float prob = 0.5f;
};

struct RandomVerticalFlip {
  float prob = 0.5f;
};

/// Arguments as RandomCrop's.
struct Pad {
  std::vector<int> padding;
  std::vector<float> fill = {0};
  std::string padding_mode = "constant";
};

struct Grayscale {
  int num_output_channels = 1;  ///< 1 or 3
};

/// A factor drawn from [max(0, 1 - value), 1 + value], or from [low, high].
struct BrightnessTransform {
  std::vector<float> value;
};
struct ContrastTransform {
  std::vector<float> value;
};
struct SaturationTransform {
  std::vector<float> value;
};
/// A shift drawn from [-value, value] or [low, high] within [-0.5, 0.5].
struct HueTransform {
  std::vector<float> value;
};

/// The four above in random order.
struct ColorJitter {
  std::vector<float> brightness = {0};
  std::vector<float> contrast = {0};
  std::vector<float> saturation = {0};
  std::vector<float> hue = {0};
};

/// degrees: one number d for [-d, d], or [low, high], counter-clockwise.
/// interpolation: nearest, bilinear, bicubic. center: none or [x, y].
struct RandomRotation {
  std::vector<float> degrees;
  std::string interpolation = "nearest";
  bool expand = false;
  std::vector<float> center;
  std::vector<float> fill = {0};
};

}  // namespace pd::transforms

namespace pd {

using Transform = std::variant<
    transforms::ToTensor, transforms::Normalize, transforms::Transpose,
    transforms::Resize, transforms::RandomResizedCrop, transforms::CenterCrop,
    transforms::RandomCrop, transforms::RandomHorizontalFlip,
    transforms::RandomVerticalFlip, transforms::Pad, transforms::Grayscale,
    transforms::BrightnessTransform, transforms::ContrastTransform,
    transforms::SaturationTransform, transforms::HueTransform,
    transforms::ColorJitter, transforms::RandomRotation>;

/// True for what draws random numbers.
bool IsRandom(const Transform& transform);

/// The channels, 3 or 1, that pictures need so that the transforms make of them
/// what a network is fed, [records, ...] of shape `input`; 3 where both or
/// neither would do.
int64_t PictureChannels(const Shape& input,
                        const std::vector<Transform>& transforms);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_TRANSFORMS_H_
