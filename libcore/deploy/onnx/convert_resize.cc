// SPDX-License-Identifier: Apache-2.0
// Resizing along one to three axes, and sampling at given places.
#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"
#include "libcore/ops/conv/grid_sampler.h"

namespace pd {
namespace {

// Where the numbers of a resizing come from: `sizes` or `scales`, each a
// vector for all axes, the other one "".
struct ResizeTarget {
  std::string sizes, scales;
};

std::string Joined(OnnxOp* op, const OnnxValues& parts) {
  return op->Emit("Concat", parts, {{"axis", int64_t{0}}});
}

// Attribute `scale` for each axis; empty when there is none.
std::vector<float> ScalesOf(OnnxOp* op, size_t axes) {
  std::vector<float> scales;
  if (const Attribute* a = op->desc().FindAttr("scale")) {
    if (const auto* list = std::get_if<std::vector<float>>(a)) scales = *list;
    if (const auto* one = std::get_if<float>(a)) scales = {*one};
  }
  if (scales.size() == 1) scales.assign(axes, scales[0]);
  if (scales.size() < axes || !(scales[0] > 0)) return {};
  return scales;
}

// `x` has its channels in front.
ResizeTarget TargetOf(OnnxOp* op, const std::string& x, const Shape& shape) {
  const size_t axes = shape.size() - 2;
  const auto sized = [&](const std::string& extents) {
    return Joined(op,
                  {op->Slice(op->Emit("Shape", {x}), {0}, {0}, {2}), extents});
  };
  ResizeTarget target;
  for (const char* slot : {"OutSize", "SizeTensor", "Scale"}) op->Ignore(slot);
  if (op->Has("SizeTensor")) {
    target.sizes = sized(op->IntVector("SizeTensor"));
    return target;
  }
  if (op->Has("OutSize")) {
    target.sizes = sized(op->IntVector("OutSize"));
    return target;
  }
  if (op->Has("Scale")) {
    const std::string scales = op->Emit(
        "Expand",
        {op->In("Scale"), op->ConstInts({static_cast<int64_t>(axes)})});
    target.scales = Joined(op, {op->ConstFloats({1, 1}), scales});
    return target;
  }
  std::vector<float> scales = ScalesOf(op, axes);
  std::vector<int64_t> extents;
  const bool second = op->type().find("_v2") != std::string::npos;
  if (scales.empty()) {
    static constexpr const char* kAttrs[] = {"out_d", "out_h", "out_w"};
    for (size_t i = 0; i < axes; ++i)
      extents.push_back(op->Int(kAttrs[3 - axes + i]));
    if (*std::min_element(extents.begin(), extents.end()) < 1)
      op->Fail(Unimplemented("neither extents nor scales are given"));
  } else if ((!second || op->Bool("align_corners")) &&
             !IsDynamic(Shape(shape.begin() + 2, shape.end()))) {
    // The first version, and aligned corners, go by the extents.
    for (size_t i = 0; i < axes; ++i)
      extents.push_back(
          static_cast<int64_t>(static_cast<float>(shape[2 + i]) * scales[i]));
  }
  if (!extents.empty()) {
    target.sizes = sized(op->ConstInts(extents));
    return target;
  }
  scales.insert(scales.begin(), {1, 1});
  target.scales = op->ConstFloats(scales);
  return target;
}

OnnxAttrs ModeOf(OnnxOp* op, const std::string& method) {
  const bool corners = op->Bool("align_corners");
  const bool nearest = method == "nearest", cubic = method == "bicubic";
  const bool centers = cubic || (!nearest && op->Int("align_mode") == 0);
  OnnxAttrs attrs = {{"mode", std::string(nearest ? "nearest"
                                          : cubic ? "cubic"
                                                  : "linear")},
                     {"coordinate_transformation_mode",
                      std::string(corners   ? "align_corners"
                                  : centers ? "half_pixel"
                                            : "asymmetric")}};
  if (nearest)
    attrs.emplace_back("nearest_mode",
                       std::string(corners ? "round_prefer_ceil" : "floor"));
  return attrs;
}

void ConvertResize(OnnxOp* op) {
  Shape shape = op->ShapeOf("X");
  const auto rank = static_cast<int64_t>(shape.size());
  if (op->opset() < 11) {
    op->Fail(Unimplemented("ONNX's Resize without PaddlePaddle's coordinates"));
    return;
  }
  if (rank < 3 || rank > 5) {
    op->Fail(InvalidArgument("X has shape %s; expected rank 3 to 5",
                             ToString(shape)));
    return;
  }
  const std::string layout = op->Str("data_layout");
  const bool last = layout.size() > 1 && layout.back() == 'C';
  std::string x = op->In("X");
  std::vector<int64_t> to_front = {0, rank - 1}, to_back = {0};
  for (int64_t i = 1; i < rank - 1; ++i) to_front.push_back(i);
  for (int64_t i = 2; i < rank; ++i) to_back.push_back(i);
  to_back.push_back(1);
  if (last) {
    x = op->Transpose(x, to_front);
    std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  }
  const ResizeTarget target = TargetOf(op, x, shape);
  OnnxValues inputs = {x, "", target.scales, target.sizes};
  if (op->opset() < 13)  // neither could be left out then
    for (const size_t i : {1, 2})
      if (inputs[i].empty()) inputs[i] = op->ConstFloats({});
  const std::string method = op->Str("interp_method");
  const OnnxAttrs attrs = ModeOf(op, method);
  if (!last)
    op->Give("Out", "Resize", inputs, attrs);
  else
    op->Give("Out", "Transpose", {op->Emit("Resize", inputs, attrs)},
             {{"perm", to_back}});
}

// Halves between two pixels go away from zero in PaddlePaddle's nearest, to the
// even one in ONNX's.
void ConvertGridSampler(OnnxOp* op) {
  if (op->Rank("X") != 4) {
    op->Fail(Unimplemented("X of rank %d; ONNX samples pictures, of rank 4",
                           op->Rank("X")));
    return;
  }
  std::string mode = op->Str("mode");
  if (op->desc().AttrOr(kGridCubic, false))
    mode = op->opset() < 20 ? "bicubic" : "cubic";
  op->Give("Output", "GridSample", {op->In("X"), op->In("Grid")},
           {{"mode", mode},
            {"padding_mode", op->Str("padding_mode")},
            {"align_corners", int64_t{op->Bool("align_corners")}}});
}

}  // namespace

OnnxConverters ResizeConverters() {
  return {
      {"bicubic_interp", ConvertResize},
      {"bicubic_interp_v2", ConvertResize},
      {"bilinear_interp", ConvertResize},
      {"bilinear_interp_v2", ConvertResize},
      {"grid_sampler", ConvertGridSampler},
      {"linear_interp", ConvertResize},
      {"linear_interp_v2", ConvertResize},
      {"nearest_interp", ConvertResize},
      {"nearest_interp_v2", ConvertResize},
      {"trilinear_interp", ConvertResize},
      {"trilinear_interp_v2", ConvertResize},
  };
}

}  // namespace pd
