// SPDX-License-Identifier: Apache-2.0
// Looking up by index, constants, casts, choices.
#include <cstdlib>
#include <cstring>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"

namespace pd {
namespace {

// A copy of the table with zeros for one row.
std::string TableWithout(OnnxOp* op, const Array& table, int64_t row) {
  std::byte* bytes = nullptr;
  Array zeroed = NewCopy(table.dtype, table.shape, &bytes);
  std::memcpy(bytes, table.bytes.get(), table.size_bytes());
  const size_t size = zeroed.size_bytes() / static_cast<size_t>(table.shape[0]);
  std::memset(bytes + static_cast<size_t>(row) * size, 0, size);
  return op->ConstArray(zeroed);
}

// Rows of W by number. The row of padding_idx reads as zeros, whatever W
// holds.
void ConvertLookup(OnnxOp* op) {
  const Array* param = op->Param("W");
  const int64_t padding = op->Int("padding_idx");
  std::string ids = op->In("Ids");
  const int64_t rank = op->Rank("Ids");
  const bool column = op->type() == "lookup_table";  // ids end with a 1
  if (column) ids = op->Squeeze(ids, {rank - 1});
  if (padding == -1) {
    op->Give("Out", "Gather", {op->In("W"), ids}, {{"axis", int64_t{0}}});
  } else if (param != nullptr && !param->shape.empty() && padding >= 0 &&
             padding < param->shape[0]) {
    op->Ignore("W");
    op->Give("Out", "Gather", {TableWithout(op, *param, padding), ids},
             {{"axis", int64_t{0}}});
  } else {
    const std::string rows =
        op->Emit("Gather", {op->In("W"), ids}, {{"axis", int64_t{0}}});
    const std::string is_padding = op->Emit(
        "Equal",
        {ids, op->Const(static_cast<double>(padding), op->TypeOf("Ids"))});
    op->Give("Out", "Where",
             {op->Unsqueeze(is_padding, {column ? rank - 1 : rank}),
              op->Const(0, op->TypeOf("W")), rows});
  }
}

void ConvertGather(OnnxOp* op) {
  if (op->Has("Axis")) {
    op->Fail(Unimplemented("input 'Axis': the axis must be an attribute"));
    return;
  }
  std::string index = op->In("Index");
  if (op->Rank("Index") == 2) index = op->Squeeze(index, {1});
  op->Give("Out", "Gather", {op->In("X"), index},
           {{"axis", op->Int(op->type() == "gather" ? "axis" : "dim")}});
}

void ConvertGatherNd(OnnxOp* op) {
  std::string index = op->In("Index");
  if (op->TypeOf("Index") != DType::kInt64)
    index = op->Cast(index, DType::kInt64);
  op->Give("Out", "GatherND", {op->In("X"), index});
}

void ConvertOneHot(OnnxOp* op) {
  const DType dtype = op->OutVar("Out").dtype;
  if (op->Bool("allow_out_of_range")) {
    op->Fail(Unimplemented("attr 'allow_out_of_range' is true"));
    return;
  }
  const std::string depth =
      op->Has("depth_tensor")
          ? op->Reshape(op->Cast(op->In("depth_tensor"), DType::kInt64), {})
          : op->ConstInt(op->Int("depth"));
  const std::string values = op->Emit("Concat",
                                      {op->Unsqueeze(op->Const(0, dtype), {0}),
                                       op->Unsqueeze(op->Const(1, dtype), {0})},
                                      {{"axis", int64_t{0}}});
  op->Give("Out", "OneHot",
           {op->Cast(op->In("X"), DType::kInt64), depth, values},
           {{"axis", int64_t{-1}}});
}

void ConvertCast(OnnxOp* op) {
  const DType to = op->OutVar("Out").dtype;
  if (to == op->TypeOf("X"))
    op->Alias("Out", op->In("X"));
  else
    op->Give("Out", "Cast", {op->In("X")}, {{"to", OnnxNumberOf(to)}});
}

double FillValue(OnnxOp* op) {
  const std::string text = op->Str("str_value");
  return text.empty() ? op->Float("value") : std::strtod(text.c_str(), nullptr);
}

void ConvertFillConstant(OnnxOp* op) {
  const DType dtype = op->OutVar("Out").dtype;
  const std::string shape = op->RequestedShape("ShapeTensorList");
  op->Alias("Out",
            op->Emit("Expand", {op->Const(FillValue(op), dtype), shape}));
}

void ConvertFillLike(OnnxOp* op) {
  const DType dtype = op->OutVar("Out").dtype;
  // fill_zeros_like has no value.
  const double value = op->HasAttr("value") ? op->Float("value") : 0;
  op->Give("Out", "Expand",
           {op->Const(value, dtype), op->Emit("Shape", {op->In("X")})});
}

// Start, start + step, ... before end.
void ConvertRange(OnnxOp* op) {
  op->Give("Out", "Range",
           {op->Scalar(op->In("Start")), op->Scalar(op->In("End")),
            op->Scalar(op->In("Step"))});
}

// The places where a condition holds, one a row.
void ConvertWhereIndex(OnnxOp* op) {
  std::string condition = op->In("Condition");
  if (op->TypeOf("Condition") != DType::kBool)
    condition = op->Cast(condition, DType::kBool);
  op->Give("Out", "Transpose", {op->Emit("NonZero", {condition})},
           {{"perm", std::vector<int64_t>{1, 0}}});
}

void ConvertMaskedSelect(OnnxOp* op) {
  const std::string x = op->In("X"), mask = op->In("Mask");
  if (op->ShapeOf("X") != op->ShapeOf("Mask")) {
    op->Fail(Unimplemented("X of shape %s with a mask of shape %s",
                           ToString(op->ShapeOf("X")),
                           ToString(op->ShapeOf("Mask"))));
    return;
  }
  op->Give("Y", "Compress", {op->Reshape(x, {-1}), op->Reshape(mask, {-1})},
           {{"axis", int64_t{0}}});
}

// [a, b, ...] with the extent `input_dim_idx` of the input at `output_dim_idx`.
void ConvertFillBatchLike(OnnxOp* op) {
  const DType dtype = op->OutVar("Out").dtype;
  op->Give("Out", "Expand",
           {op->Const(FillValue(op), dtype), op->BatchLikeShape()});
}

void ConvertWhere(OnnxOp* op) {
  op->Give("Out", "Where", {op->In("Condition"), op->In("X"), op->In("Y")});
}

// The numbers 0, 1, ... along one of the last two axes of x, before opset 14.
std::string Places(OnnxOp* op, const std::string& x, int64_t axis) {
  return op->Counting(op->Extent(x, axis));
}

// Slice i of an axis is element i / Repeats of the input's.
void ConvertRepeatInterleave(OnnxOp* op) {
  if (op->Has("RepeatsTensor")) {
    op->Fail(Unimplemented("a number of repeats for each slice"));
    return;
  }
  const std::string x = op->In("X");
  const int64_t dim = op->Int("dim");
  const int64_t axis = dim < 0 ? dim + op->Rank("X") : dim;
  const std::string repeats = op->ConstInt(op->Int("Repeats"));
  const std::string places =
      op->Counting(op->Emit("Mul", {op->Extent(x, axis), repeats}));
  op->Give("Out", "Gather", {x, op->Emit("Div", {places, repeats})},
           {{"axis", axis}});
}

// Whether j < X, for j from 0 to maxlen: the attribute, a tensor, or, where it
// is negative, the largest of X.
void ConvertSequenceMask(OnnxOp* op) {
  const std::string lengths = op->Cast(op->In("X"), DType::kInt64);
  const int64_t most = op->Int("maxlen");
  std::string width;
  if (op->Has("MaxLenTensor")) {
    const std::string given =
        op->Scalar(op->Cast(op->In("MaxLenTensor"), DType::kInt64));
    width =
        op->Emit("Where", {op->Emit("Less", {given, op->ConstInt(0)}),
                           op->Reduce("ReduceMax", lengths, {}, false), given});
  } else {
    width = most >= 0 ? op->ConstInt(most)
                      : op->Reduce("ReduceMax", lengths, {}, false);
  }
  const std::string below = op->Emit(
      "Less", {op->Counting(width), op->Unsqueeze(lengths, {op->Rank("X")})});
  op->Give("Y", "Cast", {below}, {{"to", OnnxNumberOf(op->OutVar("Y").dtype)}});
}

// Elements outside of a triangle become 0, infinities too.
void ConvertTriangle(OnnxOp* op) {
  const std::string x = op->In("X");
  const int64_t diagonal = op->Int("diagonal");
  const bool lower = op->Bool("lower");
  if (op->opset() >= 14) {
    op->Give("Out", "Trilu", {x, op->ConstInt(diagonal)},
             {{"upper", lower ? int64_t{0} : int64_t{1}}});
    return;
  }
  if (op->opset() < 11) {
    op->Fail(Unimplemented("ONNX has Range since opset 11"));
    return;
  }
  const int64_t rank = op->Rank("X");
  const std::string row = op->Unsqueeze(Places(op, x, rank - 2), {1});
  const std::string past =
      op->Emit("Sub", {Places(op, x, rank - 1), row});  // of the main diagonal
  const std::string limit = op->ConstInt(diagonal);
  op->Give("Out", "Where",
           {lower ? op->Emit("Greater", {past, limit})
                  : op->Emit("Less", {past, limit}),
            op->Const(0, op->TypeOf("X")), x});
}

void ConvertPixelShuffle(OnnxOp* op) {
  if (op->Str("data_format") != "NCHW") {
    op->Fail(Unimplemented("attr 'data_format' is '%s'; expected 'NCHW'",
                           op->Str("data_format")));
    return;
  }
  if (op->opset() < 11) {
    op->Fail(Unimplemented("ONNX's DepthToSpace without mode CRD"));
    return;
  }
  op->Give(
      "Out", "DepthToSpace", {op->In("X")},
      {{"blocksize", op->Int("upscale_factor")}, {"mode", std::string("CRD")}});
}

// Groups of channels, their first ones first, then their second ones: the axis
// of channels becomes two, which change places.
void ConvertChannelShuffle(OnnxOp* op) {
  const bool old = op->type() == "shuffle_channel";
  const bool last = !old && op->Str("data_format") == "NHWC";
  const int64_t groups = op->Int(old ? "group" : "groups");
  const Shape& x = op->ShapeOf("X");
  const int64_t channels = x.size() == 4 ? x[last ? 3 : 1] : -1;
  if (channels < 0 || groups < 1 || channels % groups != 0) {
    op->Fail(
        Unimplemented("X of shape %s in %d groups; its channels must be known, "
                      "and a multiple",
                      ToString(x), groups));
    return;
  }
  const std::string in = op->In("X");
  const std::string shape =
      IsDynamic(x) ? op->Emit("Shape", {in}) : op->ConstInts(x);
  const std::vector<int64_t> parts =
      last ? std::vector<int64_t>{-1, groups, channels / groups}
           : std::vector<int64_t>{0, groups, channels / groups, -1};
  const std::vector<int64_t> order =
      last ? std::vector<int64_t>{0, 2, 1} : std::vector<int64_t>{0, 2, 1, 3};
  op->Give("Out", "Reshape",
           {op->Transpose(op->Reshape(in, parts), order), shape});
}

}  // namespace

OnnxConverters IndexConverters() {
  return {
      {"cast", ConvertCast},
      {"channel_shuffle", ConvertChannelShuffle},
      {"fill_any_like", ConvertFillLike},
      {"fill_constant", ConvertFillConstant},
      {"fill_constant_batch_size_like", ConvertFillBatchLike},
      {"fill_zeros_like", ConvertFillLike},
      {"gather", ConvertGather},
      {"gather_nd", ConvertGatherNd},
      {"index_select", ConvertGather},
      {"lookup_table", ConvertLookup},
      {"lookup_table_v2", ConvertLookup},
      {"masked_select", ConvertMaskedSelect},
      {"one_hot_v2", ConvertOneHot},
      {"pixel_shuffle", ConvertPixelShuffle},
      {"range", ConvertRange},
      {"repeat_interleave", ConvertRepeatInterleave},
      {"sequence_mask", ConvertSequenceMask},
      {"shuffle_channel", ConvertChannelShuffle},
      {"tril_triu", ConvertTriangle},
      {"where", ConvertWhere},
      {"where_index", ConvertWhereIndex},
  };
}

}  // namespace pd
