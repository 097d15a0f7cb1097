// SPDX-License-Identifier: Apache-2.0
// Convolutions, pools and resizing of pictures, [N, C, H, W].
#include "absl/strings/str_cat.h"
#include "libcore/bundle/lowerings.h"
#include "libcore/bundle/runtime/bundle_format.h"
#include "libcore/bundle/runtime/panels.h"

namespace pd {
namespace {

void ExpectPicture(BundleOp* op, const char* slot, const char* format) {
  op->ExpectFloat(slot);
  const std::string layout = op->Str(format);
  if (layout != "NCHW" && layout != "AnyLayout")
    op->Refuse(absl::StrCat("attr '", format, "' is '", layout, "'"));
  if (const size_t rank = op->ShapeOf(slot).size(); rank != 4)
    op->Refuse(absl::StrCat("'", slot, "' has rank ", rank, "; expected 4"));
}

// The numbers of pd_run::WindowInts.
BundleOp::Ints WindowOf(BundleOp* op, const BundleOp::Ints& kernel,
                        const BundleOp::Ints& dilations) {
  const BundleOp::Ints strides = op->IntsOf("strides");
  BundleOp::Ints pads = op->IntsOf("paddings");
  const std::string algorithm = op->Str("padding_algorithm");
  if (pads.size() == 2) pads = {pads[0], pads[0], pads[1], pads[1]};
  if (algorithm != "EXPLICIT") pads = {0, 0, 0, 0};
  if (strides.size() != 2 || kernel.size() != 2 || dilations.size() != 2 ||
      pads.size() != 4) {
    op->Refuse("its window has not two dimensions");
    return {};
  }
  return {kernel[0],          kernel[1], strides[0], strides[1], dilations[0],
          dilations[1],       pads[0],   pads[1],    pads[2],    pads[3],
          algorithm == "SAME"};
}

// Matrices [rows, depth] of groups, one behind the other, in panels. The
// strides are those between rows and between numbers of a row.
Array PackGroups(const Array& filter, int64_t groups, int64_t rows,
                 int64_t depth, int64_t row_stride, int64_t stride) {
  const int64_t each = pd_run::RowPanels(rows) * pd_run::kPanelRows * depth;
  std::byte* bytes = nullptr;
  Array packed = NewCopy(DType::kFloat32, {groups * each}, &bytes);
  for (int64_t g = 0; g < groups; ++g)
    pd_run::PackLines(filter.data<float>() + g * rows * depth, rows, depth,
                      row_stride, stride, pd_run::kPanelRows,
                      reinterpret_cast<float*>(bytes) + g * each);
  return packed;
}

// Filters [out, in / groups, h, w], a row for each output channel.
Array PackFilters(const Array& filter, int64_t groups) {
  const int64_t depth = NumElements(filter.shape, 1, filter.shape.size());
  return PackGroups(filter, groups, filter.shape[0] / groups, depth, depth, 1);
}

// Filters [in, out / groups, h, w], a row for each output channel and tap.
Array PackTransposed(const Array& filter, int64_t groups) {
  const int64_t rows = NumElements(filter.shape, 1, filter.shape.size());
  return PackGroups(filter, groups, rows, filter.shape[0] / groups, 1, rows);
}

// The filters of a convolution of pictures; null, and an error, where they are
// no parameter or do not divide into groups.
const Array* GroupedFilter(BundleOp* op, int64_t groups) {
  const Array* filter = op->Param("Filter");
  if (filter == nullptr) return nullptr;
  if (filter->shape.size() == 4 && groups >= 1 &&
      filter->shape[0] % groups == 0 && filter->size() > 0)
    return filter;
  op->Refuse("its filters do not divide into groups");
  return nullptr;
}

void LowerConv(BundleOp* op) {
  ExpectPicture(op, "Input", "data_format");
  const uint32_t x = op->In("Input");
  const int64_t groups = op->Int("groups");
  const Array* filter = GroupedFilter(op, groups);
  if (filter == nullptr) return;
  BundleOp::Ints ints = WindowOf(op, {filter->shape[2], filter->shape[3]},
                                 op->IntsOf("dilations"));
  ints.insert(ints.end(), {filter->shape[0], groups, 0});
  const bool depthwise = groups > 1 && filter->shape[1] == 1;
  const uint32_t weights =
      op->Packed(op->desc().In("Filter"),
                 depthwise ? "|rows" : absl::StrCat("|panels|", groups), [&] {
                   if (!depthwise) return PackFilters(*filter, groups);
                   Array flat = *filter;
                   flat.shape = {filter->size()};
                   return flat;
                 });
  op->Give("Output", depthwise ? "depthwise_conv" : "conv",
           {x, weights, op->OptionalIn("Bias")}, std::move(ints), NoFunction());
}

void LowerConvTranspose(BundleOp* op) {
  ExpectPicture(op, "Input", "data_format");
  const uint32_t x = op->In("Input");
  const int64_t groups = op->Int("groups");
  const Array* filter = GroupedFilter(op, groups);
  if (filter == nullptr) return;
  BundleOp::Ints ints = WindowOf(op, {filter->shape[2], filter->shape[3]},
                                 op->IntsOf("dilations"));
  ints.insert(ints.end(), {filter->shape[1] * groups, groups, 0});
  for (const char* name : {"output_padding", "output_size"}) {
    BundleOp::Ints extents = op->IntsOf(name);
    if (extents.empty()) extents = {0, 0};
    if (extents.size() != 2)
      op->Refuse(absl::StrCat("attr '", name, "' has not two numbers"));
    ints.insert(ints.end(), extents.begin(), extents.end());
  }
  const uint32_t weights =
      op->Packed(op->desc().In("Filter"), absl::StrCat("|transposed|", groups),
                 [&] { return PackTransposed(*filter, groups); });
  op->Give("Output", "conv_transpose", {x, weights, op->OptionalIn("Bias")},
           std::move(ints), NoFunction());
}

void LowerPool(BundleOp* op) {
  ExpectPicture(op, "X", "data_format");
  const std::string kind = op->Str("pooling_type");
  if (kind != "max" && kind != "avg")
    op->Refuse(absl::StrCat("attr 'pooling_type' is '", kind, "'"));
  const bool global = op->Bool("global_pooling");
  BundleOp::Ints kernel = op->IntsOf("ksize");
  if (global) kernel = {1, 1};
  BundleOp::Ints ints = WindowOf(op, kernel, {1, 1});
  ints.insert(ints.end(),
              {kind == "max", op->Bool("ceil_mode"), op->Bool("exclusive"),
               op->Bool("adaptive"), global});
  op->Give("Out", "pool", {op->In("X")}, std::move(ints));
}

// Channels [C r r] of each position become r by r positions of C channels.
void LowerPixelShuffle(BundleOp* op) {
  ExpectPicture(op, "X", "data_format");
  const int64_t by = op->Int("upscale_factor");
  const Shape& x = op->ShapeOf("X");
  const int64_t channels = x.size() == 4 ? x[1] : -1;
  if (by < 1 || by > channels || channels % (by * by) != 0)
    return op->Refuse("its channels are not known, or do not divide");
  using pd_run::ReshapeMode;
  uint32_t y = op->Emit("transpose", {op->In("X")}, {0, 2, 3, 1});
  y = op->Reshape(ReshapeMode::kReshape, y,
                  {0, 0, 0, channels / (by * by), by, by});
  y = op->Emit("transpose", {y}, {0, 3, 1, 4, 2, 5});
  y = op->Reshape(ReshapeMode::kFlatten, y, {2, 3});
  op->Alias("Out", op->Reshape(ReshapeMode::kFlatten, y, {3, 4}));
}

void LowerResize(BundleOp* op) {
  ExpectPicture(op, "X", "data_layout");
  const bool linear = op->type().rfind("bilinear", 0) == 0;
  const bool corners = op->Bool("align_corners");
  const bool second = op->type().find("_v2") != std::string::npos;
  float scale_h = 0, scale_w = 0;
  const Attribute* scale = op->desc().FindAttr("scale");
  if (const auto* list =
          scale == nullptr ? nullptr : std::get_if<std::vector<float>>(scale)) {
    if (!list->empty()) {
      scale_h = list->front();
      scale_w = list->size() > 1 ? (*list)[1] : scale_h;
    }
  } else if (scale != nullptr && op->Float("scale") > 0) {
    scale_h = scale_w = static_cast<float>(op->Float("scale"));
  }
  if (scale_h < 0 || scale_w < 0) op->Refuse("its scale is below 0");
  const uint32_t size = op->IntVector("OutSize", "SizeTensor");
  op->Give("Out", "resize", {op->In("X"), size},
           {linear, corners, op->Int("align_mode") == 0 && !corners,
            op->Int("out_h"), op->Int("out_w")},
           {scale_h, scale_w, second ? 1.0f : 0.0f});
}

}  // namespace

Lowerings WindowLowerings() {
  return {
      {"bilinear_interp", LowerResize},
      {"bilinear_interp_v2", LowerResize},
      {"conv2d", LowerConv},
      {"conv2d_transpose", LowerConvTranspose},
      {"depthwise_conv2d", LowerConv},
      {"depthwise_conv2d_transpose", LowerConvTranspose},
      {"nearest_interp", LowerResize},
      {"nearest_interp_v2", LowerResize},
      {"pixel_shuffle", LowerPixelShuffle},
      {"pool2d", LowerPool},
  };
}

}  // namespace pd
