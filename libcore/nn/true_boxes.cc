// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/true_boxes.h"

#include "libcore/base/error.h"

namespace pd {

TrueBoxes UnpadTrueBoxes(OpChain* ops, const std::string& boxes,
                         const std::string& labels) {
  const auto corner = [&](int32_t begin) {
    return ops->Op("slice", {{"Input", boxes}}, {"Out"},
                   {{"axes", std::vector<int32_t>{2}},
                    {"starts", std::vector<int32_t>{begin}},
                    {"ends", std::vector<int32_t>{begin + 2}}});
  };
  const std::string low = corner(0), high = corner(2);
  const std::string sides =
      ops->Cast(ops->Binary("greater_than", high, low), DType::kFloat32);
  const std::string counts = ops->Cast(
      ops->Reduce("reduce_sum", ops->Reduce("reduce_min", sides, {2}), {1}),
      DType::kInt64);
  const auto rows = [&](const std::string& padded) {
    return ops->Op("sequence_unpad", {{"X", padded}, {"Length", counts}},
                   {"Out"});
  };
  TrueBoxes truths;
  truths.boxes = rows(boxes);
  if (!labels.empty())
    truths.labels = rows(ops->Unsqueeze(ops->Unsqueeze(labels, 2), 3));
  return truths;
}

absl::StatusOr<ImageExtent> KnownExtent(const Shape& images) {
  if (images.size() != 4 || images[2] < 1 || images[3] < 1)
    return InvalidArgument(
        "the images are %s; expected [N, C, H, W] of a known size",
        ToString(images));
  return ImageExtent{images[2], images[3]};
}

namespace {

std::string Four(OpChain* ops, double across, double down, double last_across,
                 double last_down) {
  return ops->Values({4}, DType::kFloat32,
                     {across, down, last_across, last_down});
}

std::string Sides(OpChain* ops, const ImageExtent& image) {
  const auto w = static_cast<double>(image.width);
  const auto h = static_cast<double>(image.height);
  return Four(ops, w, h, w, h);
}

}  // namespace

std::string PixelsOfParts(OpChain* ops, const std::string& boxes,
                          const ImageExtent& image) {
  return ops->Sub(ops->Mul(boxes, Sides(ops, image)), Four(ops, 0, 0, 1, 1));
}

std::string PartsOfPixels(OpChain* ops, const std::string& boxes,
                          const ImageExtent& image) {
  return ops->Div(ops->Add(boxes, Four(ops, 0, 0, 1, 1)), Sides(ops, image));
}

std::string ForEachImage(OpChain* ops, const std::string& like,
                         const std::vector<double>& numbers) {
  const auto count = static_cast<int32_t>(numbers.size());
  const std::string ones =
      ops->Op("fill_constant_batch_size_like", {{"Input", like}}, {"Out"},
              {{"shape", std::vector<int32_t>{-1, count}},
               {"dtype", static_cast<int32_t>(DType::kFloat32)},
               {"value", 1.0f}});
  return ops->Mul(ones, ops->Values({count}, DType::kFloat32, numbers));
}

std::string NoCrowd(OpChain* ops, const std::string& boxes) {
  const std::string column = ops->Op("slice", {{"Input", boxes}}, {"Out"},
                                     {{"axes", std::vector<int32_t>{1}},
                                      {"starts", std::vector<int32_t>{0}},
                                      {"ends", std::vector<int32_t>{1}}});
  return ops->Unary(
      "fill_any_like", column,
      {{"value", 0.0f}, {"dtype", static_cast<int32_t>(DType::kInt32)}});
}

std::string ByAnchor(OpChain* ops, const std::string& x, int32_t width) {
  const std::string turned =
      ops->Op("transpose2", {{"X", x}}, {"Out", "XShape"},
              {{"axis", std::vector<int32_t>{0, 2, 3, 1}}});
  return ops->Reshape(turned, {-1, width});
}

}  // namespace pd
