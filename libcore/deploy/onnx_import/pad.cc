// SPDX-License-Identifier: Apache-2.0
// Pad. Constants go through `pad`; reflections, edges and wraps of the last
// axes through `pad3d`, whose tensors have five axes; of other axes by picking
// rows, for which extents must be known. Negative pads cut off.
#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

using Ints = OnnxNode::Ints;

// Larger pads are no pads of anything that fits into memory.
constexpr int64_t kMaxPad = int64_t{1} << 30;

struct Pads {
  Ints begin, end;  // by axis
};

// The axes that are cut, and what is left to be padded.
std::string Cut(OnnxNode* node, const std::string& x, Pads* pads) {
  Ints axes, starts, ends;
  for (size_t i = 0; i < pads->begin.size(); ++i) {
    if (pads->begin[i] >= 0 && pads->end[i] >= 0) continue;
    axes.push_back(static_cast<int64_t>(i));
    starts.push_back(std::max<int64_t>(0, -pads->begin[i]));
    ends.push_back(pads->end[i] < 0 ? pads->end[i] : int64_t{1} << 31);
    pads->begin[i] = std::max<int64_t>(0, pads->begin[i]);
    pads->end[i] = std::max<int64_t>(0, pads->end[i]);
  }
  return axes.empty() ? x : node->Slice(x, axes, starts, ends);
}

std::string Constant(OnnxNode* node, const std::string& x, const Pads& pads,
                     double value) {
  Ints paddings;
  for (size_t i = 0; i < pads.begin.size(); ++i) {
    paddings.push_back(pads.begin[i]);
    paddings.push_back(pads.end[i]);
  }
  return node->Unary("pad", x,
                     {{"paddings", OnnxAttrInts(paddings)},
                      {"pad_value", static_cast<float>(value)}});
}

// Which element stands at place i of an axis of `n`.
int64_t Source(const std::string& mode, int64_t i, int64_t n) {
  if (mode == "edge") return std::clamp<int64_t>(i, 0, n - 1);
  const auto wrapped = [](int64_t a, int64_t b) { return (a % b + b) % b; };
  if (mode == "wrap") return wrapped(i, n);
  if (n == 1) return 0;
  const int64_t at = wrapped(i, 2 * (n - 1));
  return at < n ? at : 2 * (n - 1) - at;
}

std::string ByRows(OnnxNode* node, std::string x, const Pads& pads,
                   const std::string& mode) {
  for (size_t axis = 0; axis < pads.begin.size() && node->ok(); ++axis) {
    if (pads.begin[axis] == 0 && pads.end[axis] == 0) continue;
    const int64_t extent = node->Extent(x, static_cast<int64_t>(axis));
    if (extent < 1) {
      node->Fail(Unimplemented("mode '%s' on axis %d of extent %d", mode, axis,
                               extent));
      return "";
    }
    Ints index;
    for (int64_t i = -pads.begin[axis]; i < extent + pads.end[axis]; ++i)
      index.push_back(Source(mode, i, extent));
    x = node->Gather(x, node->ConstInts(index), static_cast<int64_t>(axis));
  }
  return x;
}

// The first axis that is padded when pad3d can do it, with as many axes of
// extent 1 put in as it wants; -1 otherwise.
int64_t LeadFor3d(const Pads& pads) {
  const size_t rank = pads.begin.size();
  size_t first = 0;
  while (first < rank && pads.begin[first] == 0 && pads.end[first] == 0)
    ++first;
  return rank - first <= 3 && rank <= 5 ? static_cast<int64_t>(first) : -1;
}

std::string By3d(OnnxNode* node, const std::string& x, const Pads& pads,
                 const std::string& mode, int64_t first) {
  // [N, C, D, H, W]: two axes in front, three that are padded.
  const auto rank = static_cast<int64_t>(pads.begin.size());
  const int64_t padded = rank - first;
  Ints added;
  if (first < 2)
    for (int64_t i = first; i < 2; ++i) added.push_back(i);
  // Axes in front beyond two are among the padded ones, with pads of 0.
  const int64_t front = std::max<int64_t>(first, 2);
  for (int64_t i = front + padded; i < 5; ++i) added.push_back(i - padded);
  std::sort(added.begin(), added.end());
  std::vector<int32_t> paddings;
  for (int64_t i = rank - 1; i >= std::max<int64_t>(0, rank - 3); --i) {
    const auto at = static_cast<size_t>(i);
    paddings.push_back(OnnxAttrInts({pads.begin[at]})[0]);
    paddings.push_back(OnnxAttrInts({pads.end[at]})[0]);
  }
  paddings.resize(static_cast<size_t>(2 * std::min<int64_t>(3, padded)));
  paddings.resize(6, 0);
  const std::string wide = added.empty() ? x : node->Unsqueeze(x, added);
  const std::string out =
      node->Unary("pad3d", wide,
                  {{"paddings", paddings},
                   {"mode", std::string(mode == "edge"   ? "replicate"
                                        : mode == "wrap" ? "circular"
                                                         : "reflect")},
                   {"value", 0.0f}});
  return added.empty() ? out : node->Squeeze(out, added);
}

Pads PadsOf(OnnxNode* node, int64_t rank) {
  const bool by_attr = node->opset() < 11;
  const auto given = node->NeedIntsOr(
      node->HasAttr("paddings") ? "paddings" : "pads", by_attr ? 99 : 1);
  Ints axes;
  for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  if (node->Has(3)) axes = node->Axes(node->NeedInts(3), rank);
  Pads pads = {Ints(static_cast<size_t>(rank)),
               Ints(static_cast<size_t>(rank))};
  if (!node->ok()) return pads;
  if (!given.has_value() || given->size() != 2 * axes.size()) {
    node->Fail(InvalidArgument("%d pads for %d axes",
                               given.value_or(Ints()).size(), axes.size()));
    return pads;
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    pads.begin[axis] = (*given)[i];
    pads.end[axis] = (*given)[axes.size() + i];
    if (std::abs(pads.begin[axis]) > kMaxPad ||
        std::abs(pads.end[axis]) > kMaxPad)
      node->Fail(InvalidArgument("pads are %s", ToString(*given)));
  }
  return pads;
}

void ImportPad(OnnxNode* node) {
  std::string x = node->In(0);
  Pads pads = PadsOf(node, node->Rank(x));
  double value = node->Float("value", 0);
  if (node->Has(2)) value = node->NeedNumber(2);
  const std::string mode = node->Str("mode", "constant");
  if (!node->ok()) return;
  if (mode != "constant" && mode != "reflect" && mode != "edge" &&
      mode != "wrap")
    return node->Fail(InvalidArgument("mode is '%s'", mode));
  x = Cut(node, x, &pads);
  const auto none = [](int64_t p) { return p == 0; };
  if (std::all_of(pads.begin.begin(), pads.begin.end(), none) &&
      std::all_of(pads.end.begin(), pads.end.end(), none))
    return node->Give(0, x);
  const DType dtype = node->TypeOf(x);
  const bool by_value = mode == "constant";
  if (by_value && (dtype == DType::kFloat32 || dtype == DType::kFloat64))
    return node->Give(0, Constant(node, x, pads, value));
  if (by_value) {
    // Integers and bools as float64, which holds those of 53 bits.
    const std::string wide = node->Cast(x, DType::kFloat64);
    return node->Give(0, node->Cast(Constant(node, wide, pads, value), dtype));
  }
  const int64_t first = LeadFor3d(pads);
  if (first < 0 || !IsDynamic(node->ShapeOf(x)))
    return node->Give(0, ByRows(node, x, pads, mode));
  node->Give(0, By3d(node, x, pads, mode, first));
}

// The middle of each axis, or zeros around it.
void ImportCenterCropPad(OnnxNode* node) {
  std::string x = node->In(0);
  const auto rank = static_cast<size_t>(node->Rank(x));
  Ints axes(rank);
  for (size_t i = 0; i < rank; ++i) axes[i] = static_cast<int64_t>(i);
  axes = node->Axes(node->AttrInts("axes", axes), node->Rank(x));
  const Ints sizes = node->NeedInts(1);
  Pads pads = {Ints(rank), Ints(rank)};
  if (!node->ok()) return;
  if (sizes.size() != axes.size())
    return node->Fail(
        InvalidArgument("%d sizes for %d axes", sizes.size(), axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t extent = node->Extent(x, axes[i]);
    const int64_t more = sizes[i] - extent;
    if (extent < 0 || sizes[i] < 0 || more > kMaxPad)
      return node->Fail(
          Unimplemented("an extent of %d made %d", extent, sizes[i]));
    // The odd element is cut off, or added, at the end.
    const int64_t begin = more < 0 ? -(-more / 2) : more / 2;
    pads.begin[static_cast<size_t>(axes[i])] = begin;
    pads.end[static_cast<size_t>(axes[i])] = more - begin;
  }
  x = Cut(node, x, &pads);
  const DType dtype = node->TypeOf(x);
  const std::string wide =
      IsFloating(dtype) ? x : node->Cast(x, DType::kFloat64);
  node->Give(0, node->Cast(Constant(node, wide, pads, 0), dtype));
}

// Blocks of columns added up in an image.
void ImportCol2Im(OnnxNode* node) {
  const Ints image = node->NeedInts(1), block = node->NeedInts(2);
  const size_t rank = image.size();
  const Ints pads = node->AttrInts("pads", Ints(2 * rank));
  const Ints strides = node->AttrInts("strides", Ints(rank, 1));
  const Ints dilations = node->AttrInts("dilations", Ints(rank, 1));
  if (!node->ok()) return;
  if (rank != 2 || block.size() != 2 || pads.size() != 4 ||
      strides.size() != 2 || dilations.size() != 2)
    return node->Fail(Unimplemented("an image of %d axes", rank));
  node->Give(0, node->Emit("fold", {{"X", {node->In(0)}}},
                           {{"output_sizes", OnnxAttrInts(image)},
                            {"kernel_sizes", OnnxAttrInts(block)},
                            {"strides", OnnxAttrInts(strides)},
                            {"paddings", OnnxAttrInts(pads)},
                            {"dilations", OnnxAttrInts(dilations)}},
                           "Y"));
}

}  // namespace

OnnxImportEntries PadImports() {
  return {
      {"CenterCropPad", ImportCenterCropPad},
      {"Col2Im", ImportCol2Im},
      {"Pad", ImportPad},
  };
}

}  // namespace pd
