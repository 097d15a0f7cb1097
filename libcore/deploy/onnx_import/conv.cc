// SPDX-License-Identifier: Apache-2.0
// Convolutions over one to three axes; one axis is two with an extent of 1.
#include "libcore/deploy/onnx_import/conv.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"
#include "libcore/deploy/onnx_import/window.h"

namespace pd {
namespace {

using Ints = OnnxNode::Ints;

// The word of the table for nodes whose groups follow from the channels.
constexpr char kByChannels[] = "by channels";

Ints KernelOf(OnnxNode* node, const std::string& w) {
  const Shape& shape = node->ShapeOf(w);
  if (shape.size() < 3 || IsDynamic(shape)) {
    if (node->HasAttr("kernel_shape")) return {};
    node->Fail(Unimplemented("a filter of shape %s", ToString(shape)));
    return {};
  }
  return Ints(shape.begin() + 2, shape.end());
}

// TensorFlow does not say the number of groups: as many as the filter's
// channels fit into those of x.
int64_t GroupsOf(OnnxNode* node, const std::string& x,
                 const std::string& filter) {
  if (absl::string_view(node->op_type()) != kByChannels)
    return node->Int("group", 1);
  const int64_t all = node->Extent(x, 1), each = node->Extent(filter, 1);
  if (node->ok() && (all < 1 || each < 1 || all % each != 0))
    node->Fail(InvalidArgument("%d channels; the filter is for %d", all, each));
  return node->ok() ? all / each : 1;
}

OnnxNode::Attrs WindowAttrs(const ImportWindow& w, int64_t groups) {
  return {
      {"strides", OnnxAttrInts(w.strides)},
      {"dilations", OnnxAttrInts(w.dilations)},
      {"paddings", OnnxAttrInts(w.pads)},
      {"padding_algorithm", std::string(w.same_upper ? "SAME" : "EXPLICIT")},
      {"groups", OnnxAttrInts({groups})[0]}};
}

// The pads as PaddlePaddle's programs usually have them.
void Shorten(Ints* pads) {
  Ints half;
  for (size_t i = 0; i < pads->size(); i += 2) {
    if ((*pads)[i] != (*pads)[i + 1]) return;
    half.push_back((*pads)[i]);
  }
  *pads = half;
}

void GiveWithBias(OnnxNode* node, const std::string& out) {
  if (!node->Has(2)) return node->Give(0, out);
  node->Give(0,
             node->Emit("elementwise_add", {{"X", {out}}, {"Y", {node->In(2)}}},
                        {{"axis", static_cast<int32_t>(1)}}));
}

void ImportConv(OnnxNode* node) {
  GiveWithBias(node, OnnxConvolve(node, node->In(0), node->In(1)));
}

// output_shape instead of pads: what is too much is cut off.
void PadsForOutput(OnnxNode* node, const Shape& x, Ints* extra,
                   ImportWindow* w) {
  const std::string mode = node->Str("auto_pad", "NOTSET");
  Ints want = node->AttrInts("output_shape");
  if (want.empty() && mode.compare(0, 4, "SAME") != 0) return;
  const size_t rank = w->rank();
  if (want.size() == rank + 2) want.erase(want.begin(), want.begin() + 2);
  if (!want.empty() && want.size() != rank)
    return node->Fail(InvalidArgument("output_shape is %s", ToString(want)));
  for (size_t i = 0; i < rank; ++i) {
    if (x[i + 2] < 0)
      return node->Fail(
          Unimplemented("output_shape or auto_pad for shape %s", ToString(x)));
    const int64_t out = want.empty() ? x[i + 2] * w->strides[i] : want[i];
    const int64_t all = (x[i + 2] - 1) * w->strides[i] + (*extra)[i] +
                        (w->kernel[i] - 1) * w->dilations[i] + 1 - out;
    // An output that reaches farther than the windows is 0 there.
    if (all < 0) (*extra)[i] -= all;
    const int64_t half = std::max<int64_t>(0, all) / 2;
    const int64_t rest = std::max<int64_t>(0, all) - half;
    const bool upper = mode == "SAME_UPPER";
    w->pads[2 * i] = upper ? half : rest;
    w->pads[2 * i + 1] = upper ? rest : half;
  }
}

void ImportConvTranspose(OnnxNode* node) {
  std::string x = node->In(0), filter = node->In(1);
  ImportWindow w = ImportWindowOf(node, x, KernelOf(node, filter));
  Ints extra = node->AttrInts("output_padding", Ints(w.rank(), 0));
  if (node->ok() && extra.size() != w.rank())
    node->Fail(InvalidArgument("output_padding is %s", ToString(extra)));
  if (!node->ok()) return;
  w.same_upper = false;
  PadsForOutput(node, node->ShapeOf(x), &extra, &w);
  const bool one = w.rank() == 1;
  if (one) {
    AddAxis(&w);
    extra.insert(extra.begin(), 0);
    x = node->Unsqueeze(x, {2});
    filter = node->Unsqueeze(filter, {2});
  }
  // PaddlePaddle wants an output padding below the stride, and an end pad that
  // is smaller by it is the same.
  bool fits = true;
  for (size_t i = 0; i < extra.size(); ++i)
    fits = fits && w.pads[2 * i + 1] >= extra[i];
  if (fits)
    for (size_t i = 0; i < extra.size(); ++i) {
      w.pads[2 * i + 1] -= extra[i];
      extra[i] = 0;
    }
  Shorten(&w.pads);
  OnnxNode::Attrs attrs = WindowAttrs(w, node->Int("group", 1));
  if (std::any_of(extra.begin(), extra.end(), [](auto e) { return e != 0; }))
    attrs["output_padding"] = OnnxAttrInts(extra);
  std::string out = node->Emit(
      w.rank() == 3 ? "conv3d_transpose" : "conv2d_transpose",
      {{"Input", {x}}, {"Filter", {filter}}}, std::move(attrs), "Output");
  if (one) out = node->Squeeze(out, {2});
  GiveWithBias(node, out);
}

}  // namespace

std::string OnnxConvolve(OnnxNode* node, std::string x, std::string filter) {
  ImportWindow w = ImportWindowOf(node, x, KernelOf(node, filter));
  if (!node->ok()) return "";
  if (w.same_upper && std::any_of(w.dilations.begin(), w.dilations.end(),
                                  [](int64_t d) { return d != 1; }))
    node->Fail(Unimplemented("auto_pad with dilations over shape %s",
                             ToString(node->ShapeOf(x))));
  const int64_t groups = GroupsOf(node, x, filter);
  const bool one = w.rank() == 1;
  if (one) {
    AddAxis(&w);
    x = node->Unsqueeze(x, {2});
    filter = node->Unsqueeze(filter, {2});
  }
  Shorten(&w.pads);
  const std::string out = node->Emit(w.rank() == 3 ? "conv3d" : "conv2d",
                                     {{"Input", {x}}, {"Filter", {filter}}},
                                     WindowAttrs(w, groups), "Output");
  return one ? node->Squeeze(out, {2}) : out;
}

OnnxImportEntries ConvImports() {
  return {{"Conv", ImportConv},
          {"ConvTranspose", ImportConvTranspose},
          {"tensorflow:Conv", ImportConv, kByChannels}};
}

}  // namespace pd
