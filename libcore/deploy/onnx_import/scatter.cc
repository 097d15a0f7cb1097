// SPDX-License-Identifier: Apache-2.0
// Writing elements by index, over PaddlePaddle's scatter of rows: what is
// indexed becomes one axis, and indices become numbers along it.
#include <algorithm>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

using Ints = OnnxNode::Ints;

bool Static(OnnxNode* node, const Shape& x, const Shape& index) {
  if (node->ok() &&
      (IsDynamic(x) || IsDynamic(index) || !CheckedBytes(x, 8).ok() ||
       !CheckedBytes(index, 8).ok() || NumElements(index) > (1 << 26)))
    node->Fail(Unimplemented("indices of shape %s into %s", ToString(index),
                             ToString(x)));
  return node->ok();
}

// Elements of `x` named along an axis become those of `updates`, have them
// added or are multiplied by them, or become the larger or smaller of both.
std::string PutAlong(OnnxNode* node, const std::string& x,
                     const std::string& index, const std::string& updates,
                     int64_t axis, const std::string& reduction) {
  if (reduction != "none" && reduction != "add" && reduction != "mul" &&
      reduction != "max" && reduction != "min") {
    node->Fail(InvalidArgument("reduction '%s'", reduction));
    return "";
  }
  const DType dtype = node->TypeOf(x);
  DType wide = dtype;
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16)
    wide = DType::kFloat32;
  if (dtype == DType::kInt8 || dtype == DType::kInt16) wide = DType::kInt32;
  if (dtype == DType::kBool) wide = DType::kUInt8;
  return node->Cast(
      node->Emit("put_along_axis",
                 {{"Input", {node->Cast(x, wide)}},
                  {"Index", {index}},
                  {"Value", {node->Cast(updates, wide)}}},
                 {{"Axis", static_cast<int32_t>(axis)},
                  {"Reduce", reduction == "none"  ? std::string("assign")
                             : reduction == "max" ? std::string("amax")
                             : reduction == "min" ? std::string("amin")
                                                  : reduction}},
                 "Result"),
      dtype);
}

// Rows of `x` at `ids` become, or have added to them, those of `updates`.
std::string ScatterRows(OnnxNode* node, const std::string& x,
                        const std::string& ids, const std::string& updates,
                        const std::string& reduction) {
  if (reduction == "none")
    return node->Emit("scatter",
                      {{"X", {x}}, {"Ids", {ids}}, {"Updates", {updates}}},
                      {{"overwrite", true}});
  if (reduction == "add")
    return node->Emit("scatter_nd_add", {{"X", {x}},
                                         {"Index", {node->Unsqueeze(ids, {1})}},
                                         {"Updates", {updates}}});
  // Rows by element: the ids of a row are all the same.
  const Shape row = node->ShapeOf(updates);
  if (!node->ok()) return "";
  const std::string index =
      row.size() == 1 ? ids : node->Expand(node->Unsqueeze(ids, {1}), row);
  return PutAlong(node, x, index, updates, 0, reduction);
}

void ImportScatterElements(OnnxNode* node) {
  const std::string x = node->In(0), updates = node->In(2);
  const Shape shape = node->ShapeOf(x), at = node->ShapeOf(node->In(1));
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = node->Axis(node->Int("axis", 0), rank);
  const std::string given = node->Str("reduction", "none");
  // How many elements of a vector are named may depend on data.
  if (rank == 1 && shape[0] > 0 && at.size() == 1 &&
      (given == "none" || given == "add"))
    return node->Give(
        0, ScatterRows(node, x,
                       node->Binary("elementwise_mod",
                                    node->Cast(node->In(1), DType::kInt64),
                                    node->ConstInts({shape[0]})),
                       updates, given));
  const bool dynamic = IsDynamic(shape) || IsDynamic(at);
  if (!dynamic && !Static(node, shape, at)) return;
  if (at.size() != shape.size() || (!dynamic && node->ShapeOf(updates) != at))
    return node->Fail(InvalidArgument(
        "indices of shape %s, updates of %s into %s", ToString(at),
        ToString(node->ShapeOf(updates)), ToString(shape)));
  const std::string& reduction = given;
  const std::string index =
      node->FromStart(node->Cast(node->In(1), DType::kInt64), x, axis);
  if (dynamic || (reduction != "none" && reduction != "add"))
    return node->Give(0, PutAlong(node, x, index, updates, axis, reduction));
  // Where each index lies but for its own axis.
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  Ints base(static_cast<size_t>(NumElements(at)));
  for (size_t i = 0; i < base.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    for (size_t d = at.size(); d-- > 0;) {
      if (static_cast<int64_t>(d) != axis) base[i] += rest % at[d] * strides[d];
      rest /= at[d];
    }
  }
  const std::string ids = node->Add(
      node->Affine(index,
                   static_cast<double>(strides[static_cast<size_t>(axis)]), 0),
      node->Constant(MakeArray(at, base)));
  const std::string out =
      ScatterRows(node, node->Reshape(x, {-1}), node->Reshape(ids, {-1}),
                  node->Reshape(updates, {-1}), reduction);
  node->Give(0, node->Reshape(out, shape));
}

void ImportScatterND(OnnxNode* node) {
  const std::string x = node->In(0), updates = node->In(2);
  const Shape shape = node->ShapeOf(x), at = node->ShapeOf(node->In(1));
  if (!Static(node, shape, at)) return;
  if (at.empty() || at.back() < 1 ||
      at.back() > static_cast<int64_t>(shape.size()))
    return node->Fail(InvalidArgument("indices of shape %s into %s",
                                      ToString(at), ToString(shape)));
  const Shape extents(shape.begin(), shape.begin() + at.back());
  const std::string index =
      node->Binary("elementwise_mod", node->Cast(node->In(1), DType::kInt64),
                   node->ConstInts(extents));
  const std::string ids = node->Reduce(
      "reduce_sum", node->Mul(index, node->ConstInts(RowMajorStrides(extents))),
      {static_cast<int64_t>(at.size()) - 1}, false);
  Shape rows(shape.begin() + at.back(), shape.end());
  Shape wanted = rows;
  rows.insert(rows.begin(), NumElements(extents));
  wanted.insert(wanted.begin(), NumElements(at) / at.back());
  const std::string reduction = node->Str("reduction", "none");
  if (reduction != "none" && reduction != "add" && rows.size() > 1) {
    rows = {rows[0], NumElements(rows, 1, rows.size())};
    wanted = {wanted[0], rows[1]};
    if (rows[1] == 0) return node->Give(0, x);
  }
  const std::string out =
      ScatterRows(node, node->Reshape(x, rows), node->Reshape(ids, {-1}),
                  node->Reshape(updates, wanted), reduction);
  node->Give(0, node->Reshape(out, shape));
}

}  // namespace

OnnxImportEntries ScatterImports() {
  return {
      {"Scatter", ImportScatterElements},
      {"ScatterElements", ImportScatterElements},
      {"ScatterND", ImportScatterND},
  };
}

}  // namespace pd
