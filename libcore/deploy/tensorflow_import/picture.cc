// SPDX-License-Identifier: Apache-2.0
// Operators over pictures, whose channels an attribute puts last or first:
// nodes of ONNX want them first.
#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/node.h"
#include "libcore/deploy/tensorflow_import/call.h"

namespace pd {
namespace {

using Attrs = TfCall::Attrs;
using Ints = TfCall::Ints;

// The picture that a node takes: how many axes it has, and where its channels
// are.
struct Picture {
  int64_t rank = 4;
  bool last = true;
};

Picture PictureOf(TfCall* call, int64_t rank) {
  Picture p;
  p.rank = rank;
  const std::string format =
      call->Text("data_format", rank == 5 ? "NDHWC" : "NHWC");
  p.last = format == "NHWC" || format == "NDHWC";
  if (!p.last && format != "NCHW" && format != "NCDHW")
    call->Fail(Unimplemented("data_format '%s'", format));
  const int64_t given = call->Rank(0);
  if (call->ok() && given >= 0 && given != rank)
    call->Fail(
        InvalidArgument("an input of %d dimensions; expected %d", given, rank));
  return p;
}

std::string TakePicture(TfCall* call, const Picture& p, size_t i) {
  TfValue* value = call->Value(i);
  if (value != nullptr && value->rank < 0) value->rank = p.rank;
  return p.last ? call->InFirst(i) : call->In(i);
}

void GivePicture(TfCall* call, const Picture& p, const std::string& value) {
  if (p.last)
    call->GiveFirst(value, p.rank);
  else
    call->Give(value, p.rank);
}

// The numbers for the spatial axes of a list with one for each axis.
Ints SpatialOf(TfCall* call, const char* name, const Picture& p) {
  Ints all = call->IntList(name);
  if (all.empty()) all.assign(static_cast<size_t>(p.rank), 1);
  const auto channel = static_cast<size_t>(p.last ? p.rank - 1 : 1);
  if (all.size() != static_cast<size_t>(p.rank) || all[0] != 1 ||
      all[channel] != 1) {
    call->Fail(Unimplemented("%s %s", name, ToString(all)));
    return Ints(static_cast<size_t>(p.rank - 2), 1);
  }
  all.erase(all.begin() + static_cast<int64_t>(channel));
  all.erase(all.begin());
  return all;
}

// Larger windows are over nothing that fits into memory.
constexpr int64_t kLargestWindow = 1 << 24;

bool IsWindow(const Ints& values) {
  return std::all_of(values.begin(), values.end(),
                     [](int64_t v) { return v >= 1 && v <= kLargestWindow; });
}

// Pads of a window over `kernel`, which may be empty where it is not known.
void SetPads(TfCall* call, const Picture& p, const Ints& kernel,
             const Ints& strides, const Ints& dilations, Attrs* attrs) {
  const std::string padding = call->Text("padding", "");
  const auto spatial = static_cast<size_t>(p.rank - 2);
  Ints pads(2 * spatial, 0);
  if (padding == "EXPLICIT") {
    const Ints given = call->IntList("explicit_paddings");
    if (given.size() != static_cast<size_t>(2 * p.rank))
      return call->Fail(
          InvalidArgument("explicit_paddings %s", ToString(given)));
    for (size_t i = 0; i < spatial; ++i) {
      const size_t axis = i + (p.last ? 1 : 2);
      pads[i] = given[2 * axis];
      pads[spatial + i] = given[2 * axis + 1];
    }
  } else if (padding == "SAME") {
    // With steps of 1 the pads do not depend on extents.
    const bool still = std::all_of(strides.begin(), strides.end(),
                                   [](int64_t s) { return s == 1; });
    if (kernel.empty() || !still || !IsWindow(kernel) || !IsWindow(dilations)) {
      (*attrs)["auto_pad"] = OnnxText("SAME_UPPER");
      return;
    }
    for (size_t i = 0; i < spatial; ++i) {
      const int64_t all = (kernel[i] - 1) * dilations[i];
      pads[i] = all / 2;
      pads[spatial + i] = all - all / 2;
    }
  } else if (padding != "VALID") {
    return call->Fail(Unimplemented("padding '%s'", padding));
  }
  (*attrs)["pads"] = OnnxInts(pads);
}

// The spatial extents of a filter that is known.
Ints KernelOf(TfCall* call, size_t i, int64_t rank) {
  const Array* filter = call->Known(i);
  if (filter == nullptr) return {};
  if (static_cast<int64_t>(filter->shape.size()) != rank) {
    call->Fail(
        InvalidArgument("a filter of shape %s", ToString(filter->shape)));
    return {};
  }
  return Ints(filter->shape.begin(), filter->shape.end() - 2);
}

// [spatial axes, in, out] as [out, in, spatial axes].
Ints FilterPerm(int64_t rank) {
  Ints perm = {rank - 1, rank - 2};
  for (int64_t i = 0; i < rank - 2; ++i) perm.push_back(i);
  return perm;
}

Attrs WindowAttrsOf(TfCall* call, const Picture& p, const Ints& kernel) {
  const Ints strides = SpatialOf(call, "strides", p);
  const Ints dilations = SpatialOf(call, "dilations", p);
  Attrs attrs = {{"strides", OnnxInts(strides)},
                 {"dilations", OnnxInts(dilations)}};
  SetPads(call, p, kernel, strides, dilations, &attrs);
  return attrs;
}

void Convolve(TfCall* call, int64_t rank) {
  const Picture p = PictureOf(call, rank);
  const Ints kernel = KernelOf(call, 1, rank);
  Attrs attrs = WindowAttrsOf(call, p, kernel);
  const std::string x = TakePicture(call, p, 0);
  const std::string filter = call->TransposedFilter(1, FilterPerm(rank));
  GivePicture(call, p,
              call->Emit("tensorflow:Conv", {x, filter}, std::move(attrs)));
}

void ImportConv2D(TfCall* call) { Convolve(call, 4); }
void ImportConv3D(TfCall* call) { Convolve(call, 5); }

// [H, W, C, M]: M filters for each channel.
void ImportDepthwise(TfCall* call) {
  const Picture p = PictureOf(call, 4);
  const Ints kernel = KernelOf(call, 1, 4);
  const Array* known = call->Known(1);
  if (call->ok() && known == nullptr)
    call->Fail(Unimplemented("a filter that is no constant"));
  if (!call->ok()) return;
  const int64_t channels = known->shape[2], count = known->shape[3];
  Attrs attrs = WindowAttrsOf(call, p, kernel);
  attrs["group"] = OnnxInt(channels);
  const std::string x = TakePicture(call, p, 0);
  const std::string filter =
      call->TransposedFilter(1, {2, 3, 0, 1}, ".depthwise");
  if (!call->ok()) return;
  call->build().graph.initializers.at(filter).shape = {channels * count, 1,
                                                       kernel[0], kernel[1]};
  GivePicture(call, p, call->Emit("Conv", {x, filter}, std::move(attrs)));
}

// The extents that input 0 says of the output: from a constant, or from a
// Pack whose spatial elements are constants.
Ints WantedExtents(TfCall* call, const Picture& p) {
  Ints all(static_cast<size_t>(p.rank), -1);
  if (const auto known = call->KnownInts(0)) {
    all = *known;
  } else if (const TfNode* pack = call->Maker(call->node(), 0, "Pack")) {
    for (size_t i = 0; i < pack->inputs.size() && i < all.size(); ++i) {
      const TfNode* number = call->Maker(*pack, i, "Const");
      const auto value =
          number == nullptr
              ? call->build().graph.initializers.end()
              : call->build().graph.initializers.find(number->name);
      if (value == call->build().graph.initializers.end()) continue;
      const auto ints = OnnxInts(value->second);
      if (ints.has_value() && ints->size() == 1) all[i] = (*ints)[0];
    }
  }
  // Sizes that leave batch and channels away.
  const auto spatial = static_cast<size_t>(p.rank - 2);
  if (all.size() == spatial) return all;
  if (all.size() != static_cast<size_t>(p.rank)) return {};
  const auto begin = all.begin() + (p.last ? 1 : 2);
  return Ints(begin, begin + static_cast<int64_t>(spatial));
}

void ImportConvTransposed(TfCall* call) {
  const int64_t rank = call->node().op == "Conv2DBackpropInput" ? 4 : 5;
  Picture p;
  p.rank = rank;
  const std::string format =
      call->Text("data_format", rank == 5 ? "NDHWC" : "NHWC");
  p.last = format == "NHWC" || format == "NDHWC";
  const Ints extents = WantedExtents(call, p);
  Attrs attrs = {{"strides", OnnxInts(SpatialOf(call, "strides", p))},
                 {"dilations", OnnxInts(SpatialOf(call, "dilations", p))}};
  const std::string padding = call->Text("padding", "");
  if (padding != "SAME" && padding != "VALID")
    call->Fail(Unimplemented("padding '%s'", padding));
  if (extents.empty() ||
      std::any_of(extents.begin(), extents.end(),
                  [](int64_t e) { return e < 1 || e > kLargestWindow; }))
    call->Fail(Unimplemented("an output whose extents are not known (%s)",
                             ToString(extents)));
  if (!call->ok()) return;
  attrs["output_shape"] = OnnxInts(extents);
  attrs["auto_pad"] = OnnxText(padding == "SAME" ? "SAME_UPPER" : "VALID");
  const std::string x = TakePicture(call, p, 2);
  // [spatial axes, out, in] as [in, out, spatial axes].
  const std::string filter = call->TransposedFilter(1, FilterPerm(rank));
  GivePicture(call, p,
              call->Emit("ConvTranspose", {x, filter}, std::move(attrs)));
}

void Pool(TfCall* call, int64_t rank) {
  const Picture p = PictureOf(call, rank);
  const Ints kernel = SpatialOf(call, "ksize", p);
  const Ints strides = SpatialOf(call, "strides", p);
  Attrs attrs = {{"kernel_shape", OnnxInts(kernel)},
                 {"strides", OnnxInts(strides)}};
  SetPads(call, p, kernel, strides, Ints(kernel.size(), 1), &attrs);
  GivePicture(call, p,
              call->Emit(call->onnx_type(), {TakePicture(call, p, 0)},
                         std::move(attrs)));
}

void ImportPool2D(TfCall* call) { Pool(call, 4); }
void ImportPool3D(TfCall* call) { Pool(call, 5); }

void ImportFusedNorm(TfCall* call) {
  const Picture p =
      PictureOf(call, call->Text("data_format", "NHWC").size() == 5 ? 5 : 4);
  if (call->Bool("is_training", true))
    call->Fail(Unimplemented(
        "a batch norm that trains; it should be saved with is_training=False"));
  const std::string x = TakePicture(call, p, 0);
  GivePicture(
      call, p,
      call->Emit("BatchNormalization",
                 {x, call->In(1), call->In(2), call->In(3), call->In(4)},
                 {{"epsilon", OnnxFloat(call->Float("epsilon", 1e-4))}}));
}

// The sum goes over 2 r + 1 channels, and alpha is not divided by their number.
void ImportLocalNorm(TfCall* call) {
  const Picture p = PictureOf(call, 4);
  const int64_t radius = call->Int("depth_radius", 5);
  if (call->ok() && (radius < 0 || radius > kLargestWindow))
    call->Fail(InvalidArgument("depth_radius is %d", radius));
  if (!call->ok()) return;
  const int64_t size = 2 * radius + 1;
  GivePicture(call, p,
              call->Emit("LRN", {TakePicture(call, p, 0)},
                         {{"size", OnnxInt(size)},
                          {"alpha", OnnxFloat(call->Float("alpha", 1) *
                                              static_cast<double>(size))},
                          {"beta", OnnxFloat(call->Float("beta", 0.5))},
                          {"bias", OnnxFloat(call->Float("bias", 1))}}));
}

void ImportResizing(TfCall* call) {
  const Picture p = PictureOf(call, 4);
  const std::string mode = call->onnx_type();
  const bool corners = call->Bool("align_corners");
  const bool half = call->Bool("half_pixel_centers");
  const bool nearest = mode == "nearest";
  std::string x = TakePicture(call, p, 0);
  const DType dtype = call->Type("T");
  if (!nearest && dtype != DType::kFloat32) x = call->Cast(x, DType::kFloat32);
  const char* coordinates = corners   ? "align_corners"
                            : !half   ? "asymmetric"
                            : nearest ? "tf_half_pixel_for_nn"
                                      : "half_pixel";
  Attrs attrs = {{"mode", OnnxText(mode)},
                 {"axes", OnnxInts({2, 3})},
                 {"coordinate_transformation_mode", OnnxText(coordinates)}};
  if (nearest)
    attrs["nearest_mode"] = OnnxText(corners ? "round_prefer_ceil" : "floor");
  GivePicture(
      call, p,
      call->Emit("Resize", {x, "", "", call->InInt64(1)}, std::move(attrs)));
}

void ImportBlocks(TfCall* call) {
  const Picture p = PictureOf(call, 4);
  GivePicture(call, p,
              call->Emit(call->onnx_type(), {TakePicture(call, p, 0)},
                         {{"blocksize", OnnxInt(call->Int("block_size", 1))}}));
}

// Pads of [axis, begin or end] as ONNX has them: all begins, then all ends.
void ImportPad(TfCall* call) {
  const Ints given = call->NeedInts(1);
  if (!call->ok()) return;
  const auto rank = static_cast<int64_t>(given.size() / 2);
  const bool first = call->IsFirst(0);
  if (given.size() % 2 != 0 || (first && rank != call->Rank(0)))
    return call->Fail(InvalidArgument("paddings %s", ToString(given)));
  const Ints perm = ChannelsFirst(rank);
  Ints pads(given.size());
  for (int64_t i = 0; i < rank; ++i) {
    const auto from =
        static_cast<size_t>(first ? perm[static_cast<size_t>(i)] : i);
    pads[static_cast<size_t>(i)] = given[2 * from];
    pads[static_cast<size_t>(rank + i)] = given[2 * from + 1];
  }
  const std::string mode = call->Text("mode", "");
  const bool mirror = call->node().op == "MirrorPad";
  TfCall::Names inputs = {first ? call->InFirst(0) : call->In(0),
                          call->ConstInts(pads)};
  if (call->node().op == "PadV2") inputs.push_back(call->In(2));
  const std::string y = call->Emit(
      mirror && mode == "SYMMETRIC" ? "tensorflow:SymmetricPad" : "Pad", inputs,
      {{"mode", OnnxText(mirror ? "reflect" : "constant")}});
  if (first)
    call->GiveFirst(y, rank);
  else
    call->Give(y, rank);
}

}  // namespace

TfImportEntries TfPictureImports() {
  return {
      {"AvgPool", ImportPool2D, "AveragePool"},
      {"AvgPool3D", ImportPool3D, "AveragePool"},
      {"Conv2D", ImportConv2D},
      {"Conv2DBackpropInput", ImportConvTransposed},
      {"Conv3D", ImportConv3D},
      {"Conv3DBackpropInputV2", ImportConvTransposed},
      {"DepthToSpace", ImportBlocks, "DepthToSpace"},
      {"DepthwiseConv2dNative", ImportDepthwise},
      {"FusedBatchNorm", ImportFusedNorm},
      {"FusedBatchNormV2", ImportFusedNorm},
      {"FusedBatchNormV3", ImportFusedNorm},
      {"LRN", ImportLocalNorm},
      {"MaxPool", ImportPool2D, "MaxPool"},
      {"MaxPool3D", ImportPool3D, "MaxPool"},
      {"MirrorPad", ImportPad},
      {"Pad", ImportPad},
      {"PadV2", ImportPad},
      {"ResizeBilinear", ImportResizing, "linear"},
      {"ResizeNearestNeighbor", ImportResizing, "nearest"},
      {"SpaceToDepth", ImportBlocks, "SpaceToDepth"},
  };
}

}  // namespace pd
