// SPDX-License-Identifier: Apache-2.0
// Operators that change shapes and dtypes, and those that make tensors.
#include <algorithm>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

using Ints = OnnxNode::Ints;

// A tensor of more elements is left to an op.
constexpr int64_t kMaxMade = 1 << 20;

void ImportCast(OnnxNode* node) {
  const std::string x = node->In(0);
  node->Give(0, node->Cast(x, node->ElementType(node->Int("to", 0))));
}

void ImportCastLike(OnnxNode* node) {
  node->Give(0, node->Cast(node->In(0), node->TypeOf(node->In(1))));
}

void ImportReshape(OnnxNode* node) {
  const std::string x = node->In(0);
  auto shape = node->IntsOr("shape", 1);
  const bool allow_zero = node->Int("allowzero", 0) != 0;
  if (!shape.has_value() && allow_zero) shape = node->NeedInts(1);
  if (!node->ok()) return;
  if (!shape.has_value()) return node->Give(0, node->ReshapeBy(x, node->In(1)));
  const bool zero = std::count(shape->begin(), shape->end(), 0) > 0;
  // An extent that is really 0 makes the tensor empty, so any will do.
  if (zero && allow_zero)
    return node->Give(0, node->Full(*shape, 0, node->TypeOf(x)));
  node->Give(0, node->Reshape(x, *shape));
}

void ImportFlatten(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t rank = node->Rank(x);
  int64_t axis = node->Int("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank)
    return node->Fail(
        InvalidArgument("axis is %d; expected [-%d, %d]", axis, rank, rank));
  const auto flatten = [&](const std::string& t, int64_t begin, int64_t end) {
    return node->Unary("flatten_contiguous_range", t,
                       {{"start_axis", static_cast<int32_t>(begin)},
                        {"stop_axis", static_cast<int32_t>(end)}});
  };
  if (rank == 0) return node->Give(0, node->Reshape(x, {1, 1}));
  if (axis == 0)
    return node->Give(0, node->Unsqueeze(flatten(x, 0, rank - 1), {0}));
  if (axis == rank)
    return node->Give(0, node->Unsqueeze(flatten(x, 0, rank - 1), {1}));
  node->Give(0, flatten(flatten(x, axis, rank - 1), 0, axis - 1));
}

void ImportSqueeze(OnnxNode* node) {
  const std::string x = node->In(0);
  const auto axes = node->NeedIntsOr("axes", 1);
  if (!node->ok()) return;
  Ints drop = axes.value_or(Ints());
  if (!axes.has_value()) {
    const Shape& shape = node->ShapeOf(x);
    if (IsDynamic(shape))
      return node->Fail(Unimplemented(
          "without axes every extent must be known; the shape is %s",
          ToString(shape)));
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] == 1) drop.push_back(static_cast<int64_t>(i));
  }
  node->Give(0, node->Squeeze(x, node->Axes(drop, node->Rank(x))));
}

void ImportUnsqueeze(OnnxNode* node) {
  const std::string x = node->In(0);
  const auto axes = node->NeedIntsOr("axes", 1);
  if (!node->ok()) return;
  if (!axes.has_value()) return node->Fail(InvalidArgument("it has no axes"));
  const auto count = static_cast<int64_t>(axes->size());
  Ints sorted = node->Axes(*axes, node->Rank(x) + count);
  std::sort(sorted.begin(), sorted.end());
  node->Give(0, node->Unsqueeze(x, sorted));
}

void ImportTranspose(OnnxNode* node) {
  const std::string x = node->In(0);
  Ints perm(static_cast<size_t>(node->Rank(x)));
  std::iota(perm.rbegin(), perm.rend(), 0);
  if (node->HasAttr("perm")) perm = node->AttrInts("perm");
  node->Give(0, node->Transpose(x, perm));
}

void ImportConcat(OnnxNode* node) {
  const OnnxNode::Names xs = node->Ins();
  if (xs.empty()) return node->Fail(InvalidArgument("it has no inputs"));
  const int64_t axis = node->Axis(node->Int("axis", 1), node->Rank(xs[0]));
  node->Give(0, node->Concat(xs, axis));
}

void ImportSplit(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t axis = node->Axis(node->Int("axis", 0), node->Rank(x));
  auto sections = node->NeedIntsOr("split", 1);
  const int64_t extent = node->Extent(x, axis);
  const auto parts = static_cast<int64_t>(node->OutputCount());
  if (!node->ok() || parts == 0) return;
  if (!sections.has_value()) {
    if (extent < 0) {
      const auto outs = node->Split(x, axis, node->OutputCount());
      for (size_t i = 0; i < outs.size(); ++i) node->Give(i, outs[i]);
      return;
    }
    // The last part may be the smaller one.
    const int64_t size = (extent + parts - 1) / parts;
    sections.emplace();
    for (int64_t i = 0; i < parts; ++i)
      sections->push_back(
          std::max<int64_t>(0, std::min(size, extent - i * size)));
  }
  int64_t sum = 0;
  for (const int64_t section : *sections) {
    if (section < 0 || section > (int64_t{1} << 31))
      return node->Fail(InvalidArgument("a part has %d elements", section));
    sum += section;
  }
  if (static_cast<int64_t>(sections->size()) != parts ||
      (extent >= 0 && sum != extent))
    return node->Fail(
        InvalidArgument("%d elements are split into %d parts of %s", extent,
                        parts, ToString(*sections)));
  if (parts == 1) return node->Give(0, x);
  int64_t begin = 0;
  for (size_t i = 0; i < sections->size(); ++i) {
    const int64_t end = begin + (*sections)[i];
    node->Give(i, node->Slice(x, {axis}, {begin}, {end}));
    begin = end;
  }
}

// Bounds of a negative step in PaddlePaddle's words: -1 as an end is "to the
// first element, with it".
void NormalizeBackwards(int64_t extent, int64_t* start, int64_t* end) {
  constexpr int64_t kFar = int64_t{1} << 31;
  if (extent < 0) {
    if (*end < -kFar) *end = -1;
    return;
  }
  if (*start < 0) *start += extent;
  *start = std::clamp<int64_t>(*start, -1, extent - 1);
  if (*end < 0) *end += extent;
  *end = std::clamp<int64_t>(*end, -1, extent - 1);
}

void SliceByTensors(OnnxNode* node, const std::string& x, const Ints& axes,
                    const Ints& steps) {
  OnnxNode::Slots inputs = {{"Input", {x}}};
  OnnxNode::Attrs attrs = {{"axes", OnnxAttrInts(axes)}};
  for (size_t i : {1, 2}) {
    const char* name = i == 1 ? "starts" : "ends";
    if (const auto known = node->KnownInts(i)) {
      attrs[name] = OnnxAttrInts(*known);
    } else {
      inputs.push_back({i == 1 ? "StartsTensor" : "EndsTensor", {node->In(i)}});
      attrs[name] = std::vector<int32_t>(axes.size(), -1);
    }
  }
  attrs["infer_flags"] = std::vector<int32_t>(axes.size(), -1);
  const bool strided =
      std::any_of(steps.begin(), steps.end(), [](int64_t s) { return s != 1; });
  if (strided) attrs["strides"] = OnnxAttrInts(steps);
  node->Give(0, node->Emit(strided ? "strided_slice" : "slice", inputs,
                           std::move(attrs)));
}

void ImportSlice(OnnxNode* node) {
  const std::string x = node->In(0);
  const bool by_attr = node->opset() < 10;
  const auto starts = node->IntsOr("starts", by_attr ? 99 : 1);
  const auto ends = node->IntsOr("ends", by_attr ? 99 : 2);
  size_t count = starts.has_value() ? starts->size() : 0;
  if (!starts.has_value() && node->ok()) {
    const Shape& shape = node->ShapeOf(node->In(1));
    if (shape.size() != 1 || shape[0] < 0)
      return node->Fail(FailedPrecondition("the number of axes is not known"));
    count = static_cast<size_t>(shape[0]);
  }
  Ints axes(count), steps(count, 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (auto given = node->NeedIntsOr("axes", by_attr ? 99 : 3)) axes = *given;
  if (node->Has(4)) steps = node->NeedInts(4);
  axes = node->Axes(axes, node->Rank(x));
  if (!node->ok()) return;
  if (axes.size() != count || steps.size() != count ||
      (ends.has_value() && ends->size() != count))
    return node->Fail(
        InvalidArgument("%d starts, %d axes, %d steps; expected as many", count,
                        axes.size(), steps.size()));
  if (!starts.has_value() || !ends.has_value()) {
    if (std::any_of(steps.begin(), steps.end(), [](auto s) { return s < 0; }))
      node->NeedInts(ends.has_value() ? 1 : 2);
    return SliceByTensors(node, x, axes, steps);
  }
  Ints begin = *starts, end = *ends;
  for (size_t i = 0; i < count; ++i) {
    if (steps[i] == 0) return node->Fail(InvalidArgument("a step is 0"));
    if (steps[i] < 0)
      NormalizeBackwards(node->Extent(x, axes[i]), &begin[i], &end[i]);
  }
  node->Give(0, node->Slice(x, axes, begin, end, steps));
}

void ImportExpand(OnnxNode* node) {
  const std::string x = node->In(0);
  const Shape from = node->ShapeOf(x);
  const auto shape = node->KnownInts(1);
  if (!node->ok()) return;
  if (!shape.has_value()) {
    const std::string ones = node->Emit(
        "fill_constant", {{"ShapeTensor", {node->In(1)}}},
        {{"dtype", static_cast<int32_t>(node->TypeOf(x))}, {"value", 1.0f}});
    const Shape& length = node->ShapeOf(node->In(1));
    if (node->ok() && (length.size() != 1 || length[0] < 0))
      return node->Fail(
          FailedPrecondition("the length of the shape is not known"));
    return node->Give(0, node->Broadcast({x, ones}).front());
  }
  Ints to = *shape;
  if (to.size() < from.size())
    to.insert(to.begin(), from.size() - to.size(), 1);
  const size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t& extent = to[lead + i];
    if (extent == 1) extent = from[i];  // -1 keeps it too
    if (extent < -1 || (from[i] > 1 && extent != from[i]))
      return node->Fail(InvalidArgument("shape %s does not broadcast to %s",
                                        ToString(from), ToString(*shape)));
  }
  node->Give(0, to == from && !IsDynamic(to) ? x : node->Expand(x, to));
}

void ImportTile(OnnxNode* node) {
  const std::string x = node->In(0);
  if (const auto repeats = node->KnownInts(1))
    return node->Give(
        0, node->Unary("tile", x, {{"repeat_times", OnnxAttrInts(*repeats)}}));
  node->Give(0,
             node->Emit("tile", {{"X", {x}}, {"RepeatTimes", {node->In(1)}}}));
}

void ImportShape(OnnxNode* node) {
  const std::string x = node->In(0);
  const Shape shape = node->ShapeOf(x);
  const auto rank = static_cast<int64_t>(shape.size());
  const auto bound = [&](const char* name, int64_t otherwise) {
    int64_t at = node->Int(name, otherwise);
    if (at < 0) at += rank;
    return std::clamp<int64_t>(at, 0, rank);
  };
  const int64_t start = bound("start", 0);
  const int64_t end = std::max(start, bound("end", rank));
  const Shape part(shape.begin() + start, shape.begin() + end);
  if (!node->ok()) return;
  if (!IsDynamic(part))
    return node->GiveConstant(
        0, MakeArray({static_cast<int64_t>(part.size())}, part));
  const std::string all = node->ShapeVar(x);
  node->Give(0,
             end - start == rank ? all : node->Slice(all, {0}, {start}, {end}));
}

void ImportSize(OnnxNode* node) {
  const std::string x = node->In(0);
  const Shape& shape = node->ShapeOf(x);
  if (!node->ok()) return;
  if (!IsDynamic(shape))
    return node->GiveConstant(0, MakeArray<int64_t>({}, {NumElements(shape)}));
  node->Give(0,
             node->Cast(node->Emit("size", {{"Input", {x}}}), DType::kInt64));
}

void ImportConstant(OnnxNode* node) {
  if (const Array* value = node->Tensor("value"))
    return node->GiveConstant(0, *value);
  if (node->HasAttr("value_float"))
    return node->GiveConstant(
        0, MakeArray<float>({}, {node->Float("value_float", 0)}));
  if (node->HasAttr("value_int"))
    return node->GiveConstant(
        0, MakeArray<int64_t>({}, {node->Int("value_int", 0)}));
  if (node->HasAttr("value_floats")) {
    const auto values = node->Floats("value_floats", {});
    return node->GiveConstant(
        0, MakeArray({static_cast<int64_t>(values.size())}, values));
  }
  if (node->HasAttr("value_ints")) {
    const Ints values = node->AttrInts("value_ints");
    return node->GiveConstant(
        0, MakeArray({static_cast<int64_t>(values.size())}, values));
  }
  node->Fail(Unimplemented("a constant that is neither tensor nor numbers"));
}

void ImportConstantOfShape(OnnxNode* node) {
  double number = 0;
  DType dtype = DType::kFloat32;
  if (const Array* value = node->Tensor("value")) {
    if (value->size() != 1)
      return node->Fail(
          InvalidArgument("its value has %d elements", value->size()));
    number = OnnxNumbers(*value)[0];
    dtype = value->dtype;
  }
  if (const auto shape = node->KnownInts(0)) {
    for (const int64_t extent : *shape)
      if (extent < 0)
        return node->Fail(InvalidArgument("shape is %s", ToString(*shape)));
    return node->Give(0, node->Full(*shape, number, dtype));
  }
  const std::string shape = node->In(0);
  const Shape& length = node->ShapeOf(shape);
  if (node->ok() && (length.size() != 1 || length[0] < 0))
    return node->Fail(
        FailedPrecondition("the length of the shape is not known"));
  node->Give(0, node->Emit("fill_constant", {{"ShapeTensor", {shape}}},
                           {{"dtype", static_cast<int32_t>(dtype)},
                            {"value", static_cast<float>(number)},
                            {"str_value", absl::StrFormat("%.17g", number)}}));
}

void ImportRange(OnnxNode* node) {
  const Array* parts[] = {node->Known(0), node->Known(1), node->Known(2)};
  if (parts[0] != nullptr && parts[1] != nullptr && parts[2] != nullptr) {
    const double start = node->NeedNumber(0), limit = node->NeedNumber(1);
    const double step = node->NeedNumber(2);
    if (!node->ok()) return;
    const double count = std::ceil((limit - start) / step);
    if (step == 0 || !(count < static_cast<double>(kMaxMade)))
      return node->Fail(
          InvalidArgument("a range from %g to %g by %g", start, limit, step));
    std::vector<double> values;
    for (int64_t i = 0; i < static_cast<int64_t>(count); ++i)
      values.push_back(start + static_cast<double>(i) * step);
    return node->GiveConstant(
        0, OnnxArray(parts[0]->dtype, {static_cast<int64_t>(values.size())},
                     values));
  }
  const auto one = [&](size_t i) { return node->Reshape(node->In(i), {1}); };
  node->Give(0, node->Emit("range", {{"Start", {one(0)}},
                                     {"End", {one(1)}},
                                     {"Step", {one(2)}}}));
}

void ImportEyeLike(OnnxNode* node) {
  const std::string x = node->In(0);
  const Shape shape = node->ShapeOf(x);
  const DType dtype = node->HasAttr("dtype")
                          ? node->ElementType(node->Int("dtype", 0))
                          : node->TypeOf(x);
  if (!node->ok()) return;
  if (shape.size() != 2 || IsDynamic(shape) || shape[1] > kMaxMade ||
      shape[0] > kMaxMade || shape[0] * shape[1] > kMaxMade)
    return node->Fail(
        Unimplemented("of a tensor of shape %s", ToString(shape)));
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  const int64_t k = node->Int("k", 0);
  for (int64_t i = 0; i < shape[0]; ++i)
    if (k < shape[1] && k > -shape[0] && i + k >= 0 && i + k < shape[1])
      values[static_cast<size_t>(i * shape[1] + i + k)] = 1;
  node->GiveConstant(0, OnnxArray(dtype, shape, values));
}

void ImportTrilu(OnnxNode* node) {
  const std::string x = node->In(0);
  const double k = node->Has(1) ? node->NeedNumber(1) : 0;
  node->Give(
      0, node->Unary("tril_triu", x,
                     {{"diagonal", OnnxAttrInts({static_cast<int64_t>(k)})[0]},
                      {"lower", node->Int("upper", 1) == 0}}));
}

// Channel c * b * b + i of a new tensor is channel i * C + c of x, or back.
std::string RegroupChannels(OnnxNode* node, const std::string& x,
                            int64_t blocks, bool back) {
  const int64_t all = node->Extent(x, 1);
  if (node->ok() &&
      (blocks < 1 || all < 0 || all % blocks != 0 || all > kMaxMade))
    node->Fail(InvalidArgument("%d channels for blocks of %d", all, blocks));
  if (!node->ok()) return "";
  Ints index(static_cast<size_t>(all));
  const int64_t channels = all / blocks;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < blocks; ++i) {
      const auto a = static_cast<size_t>(c * blocks + i);
      const auto b = static_cast<size_t>(i * channels + c);
      back ? index[b] = c * blocks + i : index[a] = i * channels + c;
    }
  return node->Gather(x, node->ConstInts(index), 1);
}

int64_t BlockSize(OnnxNode* node) {
  const int64_t block = node->Int("blocksize", 0);
  if (block < 1 || block > 1024)
    node->Fail(InvalidArgument("blocksize is %d", block));
  return block;
}

void ImportDepthToSpace(OnnxNode* node) {
  std::string x = node->In(0);
  const int64_t block = BlockSize(node);
  if (node->Str("mode", "DCR") == "DCR")
    x = RegroupChannels(node, x, block * block, false);
  node->Give(0, node->Unary("pixel_shuffle", x,
                            {{"upscale_factor", static_cast<int32_t>(block)}}));
}

void ImportSpaceToDepth(OnnxNode* node) {
  const int64_t block = BlockSize(node);
  const std::string x =
      node->Unary("pixel_unshuffle", node->In(0),
                  {{"downscale_factor", static_cast<int32_t>(block)}});
  const std::string mode = node->Str("mode", "DCR");
  if (mode == "CRD") return node->Give(0, x);
  if (mode != "DCR") return node->Fail(InvalidArgument("mode '%s'", mode));
  node->Give(0, RegroupChannels(node, x, block * block, true));
}

// A dropout that is not training passes on what it gets.
void ImportDropout(OnnxNode* node) {
  const std::string x = node->In(0);
  const bool trains = node->Has(2) && node->NeedNumber(2) != 0;
  if (trains && (!node->Has(1) || node->NeedNumber(1) != 0) && node->ok())
    return node->Fail(
        Unimplemented("dropout in training mode gives random numbers"));
  node->Give(0, x);
  if (node->Wants(1))
    node->Give(
        1, node->FullLike(x, 1,
                          node->opset() < 10 ? node->TypeOf(x) : DType::kBool));
}

}  // namespace

OnnxImportEntries ShapeImports() {
  return {
      {"Cast", ImportCast},
      {"CastLike", ImportCastLike},
      {"Concat", ImportConcat},
      {"Constant", ImportConstant},
      {"ConstantOfShape", ImportConstantOfShape},
      {"DepthToSpace", ImportDepthToSpace},
      {"Dropout", ImportDropout},
      {"Expand", ImportExpand},
      {"EyeLike", ImportEyeLike},
      {"Flatten", ImportFlatten},
      {"Range", ImportRange},
      {"Reshape", ImportReshape},
      {"Shape", ImportShape},
      {"Size", ImportSize},
      {"Slice", ImportSlice},
      {"SpaceToDepth", ImportSpaceToDepth},
      {"Split", ImportSplit},
      {"Squeeze", ImportSqueeze},
      {"Tile", ImportTile},
      {"Transpose", ImportTranspose},
      {"Trilu", ImportTrilu},
      {"Unsqueeze", ImportUnsqueeze},
  };
}

}  // namespace pd
