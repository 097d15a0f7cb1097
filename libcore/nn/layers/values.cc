// SPDX-License-Identifier: Apache-2.0
// Layers that pick, repeat and make values: squeeze, split, stack, slice,
// gather, one_hot, tile, where, cast, ...; full, arange, constant, parameter.
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/op_chain.h"
#include "libcore/nn/output_names.h"

namespace pd {
namespace {

template <typename List>
std::vector<int32_t> ToInts(const List& list) {
  return std::vector<int32_t>(list.begin(), list.end());
}

OpDesc OpOn(const char* type, const char* slot, const std::string& x) {
  OpDesc op;
  op.type = type;
  op.SetInput(slot, {x});
  return op;
}

absl::StatusOr<std::string> BuildSqueeze(LayerContext* c) {
  const bool out = c->layer().has_squeeze();
  const auto& axis =
      out ? c->layer().squeeze().axis() : c->layer().unsqueeze().axis();
  OpDesc op = OpOn(out ? "squeeze2" : "unsqueeze2", "X", c->input());
  op.attrs["axes"] = ToInts(axis);
  return c->Append(std::move(op), {"Out", "XShape"});
}

// An op with a list of `count` outputs in `slot`: the first, then "LAYER:1".
absl::StatusOr<std::string> Pieces(OpDesc op, const char* slot, int64_t count,
                                   LayerContext* c) {
  const std::string first = c->main()->UniqueTemporary(op.type);
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) {
    names.push_back(TemporaryBeside(first, static_cast<size_t>(i)));
    if (i > 0) c->AddOutput(absl::StrCat(i), names.back());
  }
  op.SetOutput(slot, std::move(names));
  const absl::Status status = c->main()->Append(std::move(op));
  if (!status.ok()) return Annotate(status, c->Described());
  return first;
}

constexpr int64_t kMostPieces = 65536;

absl::StatusOr<std::string> SplitInto(int64_t count,
                                      std::vector<int32_t> sections, int axis,
                                      LayerContext* c) {
  PD_ASSIGN_OR_RETURN(const int at,
                      NormalizeAxis(axis, c->shape().size(), "axis"));
  const int64_t extent = c->shape()[static_cast<size_t>(at)];
  if (sections.empty() && (count < 1 || count > kMostPieces ||
                           (extent >= 0 && extent % count != 0)))
    return c->Misfit(
        absl::StrCat("axis ", axis, " to have ", count, " equal pieces"));
  OpDesc op = OpOn("split", "X", c->input());
  // PaddlePaddle's kernel takes no axis below 0: it splits elsewhere.
  op.attrs = {{"num", sections.empty() ? static_cast<int32_t>(count) : 0},
              {"sections", sections},
              {"axis", int32_t{at}}};
  return Pieces(std::move(op), "Out", count, c);
}

absl::StatusOr<std::string> BuildSplit(LayerContext* c) {
  if (c->layer().has_chunk())
    return SplitInto(c->layer().chunk().chunks(), {}, c->layer().chunk().axis(),
                     c);
  const job::Split& p = c->layer().split();
  if (p.num_or_sections_size() == 1)
    return SplitInto(p.num_or_sections(0), {}, p.axis(), c);
  return SplitInto(p.num_or_sections_size(), ToInts(p.num_or_sections()),
                   p.axis(), c);
}

absl::StatusOr<std::string> BuildUnstack(LayerContext* c) {
  const int axis = c->layer().unstack().axis();
  PD_ASSIGN_OR_RETURN(const int at,
                      NormalizeAxis(axis, c->shape().size(), "axis"));
  const int64_t extent = c->shape()[static_cast<size_t>(at)];
  if (extent < 1 || extent > kMostPieces)
    return c->Misfit(absl::StrCat("a known extent on axis ", axis));
  OpDesc op = OpOn("unstack", "X", c->input());
  op.attrs = {{"axis", int32_t{axis}}, {"num", static_cast<int32_t>(extent)}};
  return Pieces(std::move(op), "Y", extent, c);
}

absl::StatusOr<std::string> BuildStack(LayerContext* c) {
  OpDesc op;
  op.type = "stack";
  std::vector<std::string> names;
  for (size_t i = 0; i < c->input_count(); ++i) names.push_back(c->input(i));
  op.SetInput("X", std::move(names));
  op.attrs["axis"] = int32_t{c->layer().stack().axis()};
  return c->Append(std::move(op), {"Y"});
}

absl::StatusOr<std::string> BuildSlice(LayerContext* c) {
  const bool strided = c->layer().has_strided_slice();
  const job::Slice& a = c->layer().slice();
  const job::StridedSlice& b = c->layer().strided_slice();
  const auto axes = strided ? ToInts(b.axes()) : ToInts(a.axes());
  const auto starts = strided ? ToInts(b.starts()) : ToInts(a.starts());
  const auto ends = strided ? ToInts(b.ends()) : ToInts(a.ends());
  const auto strides = ToInts(b.strides());
  if (starts.size() != axes.size() || ends.size() != axes.size() ||
      (strided && strides.size() != axes.size()))
    return InvalidArgument(
        "there are %d axes, %d starts and %d ends%s; expected one each for "
        "each axis",
        axes.size(), starts.size(), ends.size(),
        strided ? absl::StrCat(" and ", strides.size(), " strides") : "");
  OpDesc op = OpOn(strided ? "strided_slice" : "slice", "Input", c->input());
  op.attrs = {{"axes", axes},
              {"starts", starts},
              {"ends", ends},
              {"infer_flags", std::vector<int32_t>(axes.size(), 1)},
              {"decrease_axis", std::vector<int32_t>{}}};
  if (strided) op.attrs["strides"] = strides;
  return c->Append(std::move(op), {"Out"});
}

absl::Status ExpectNumbers(LayerContext* c) {
  if (IsInteger(c->dtype(1))) return absl::OkStatus();
  return c->Misfit(
      absl::StrCat("integers as its second input, not ", Name(c->dtype(1))), 1);
}

absl::StatusOr<std::string> BuildGather(LayerContext* c) {
  PD_RETURN_IF_ERROR(ExpectNumbers(c));
  const job::Layer& layer = c->layer();
  const bool along = layer.has_take_along_axis();
  OpDesc op = OpOn(c->kind().c_str(), along ? "Input" : "X", c->input(0));
  op.SetInput("Index", {c->input(1)});
  if (layer.has_gather()) op.attrs["axis"] = int32_t{layer.gather().axis()};
  if (layer.has_index_select())
    op.attrs["dim"] = int32_t{layer.index_select().axis()};
  if (along) op.attrs["Axis"] = int32_t{layer.take_along_axis().axis()};
  return c->Append(std::move(op), {along ? "Result" : "Out"});
}

absl::StatusOr<std::string> BuildOneHot(LayerContext* c) {
  if (!IsInteger(c->dtype()))
    return c->Misfit(absl::StrCat("class numbers, not ", Name(c->dtype())));
  return c->Unary("one_hot_v2", c->input(),
                  {{"depth", int32_t{c->layer().one_hot().num_classes()}},
                   {"dtype", static_cast<int32_t>(DType::kFloat32)},
                   {"allow_out_of_range", false}});
}

absl::StatusOr<std::string> BuildTile(LayerContext* c) {
  return c->Unary("tile", c->input(),
                  {{"repeat_times", ToInts(c->layer().tile().repeat_times())}});
}

absl::StatusOr<std::string> BuildExpand(LayerContext* c) {
  return c->Unary("expand_v2", c->input(),
                  {{"shape", ToInts(c->layer().expand().shape())}});
}

absl::StatusOr<std::string> BuildExpandAs(LayerContext* c) {
  OpDesc op = OpOn("expand_as_v2", "X", c->input(0));
  op.SetInput("Y", {c->input(1)});
  op.attrs["target_shape"] = ToInts(c->shape(1));
  return c->Append(std::move(op), {"Out"});
}

absl::StatusOr<std::string> BuildFlip(LayerContext* c) {
  return c->Unary("flip", c->input(),
                  {{"axis", ToInts(c->layer().flip().axis())}});
}

absl::StatusOr<std::string> BuildRoll(LayerContext* c) {
  const job::Roll& p = c->layer().roll();
  if (!p.axis().empty() && p.axis_size() != p.shifts_size())
    return InvalidArgument("there are %d shifts and %d axes; expected as many",
                           p.shifts_size(), p.axis_size());
  return c->Unary(
      "roll", c->input(),
      {{"shifts", std::vector<int64_t>(p.shifts().begin(), p.shifts().end())},
       {"axis", std::vector<int64_t>(p.axis().begin(), p.axis().end())}});
}

absl::StatusOr<std::string> BuildCast(LayerContext* c) {
  return c->Unary(
      "cast", c->input(),
      {{"in_dtype", static_cast<int32_t>(c->dtype())},
       {"out_dtype", static_cast<int32_t>(c->layer().cast().dtype())}});
}

// The op wants three tensors of one shape; PaddlePaddle's function brings them
// to it by adding zeros of the others' shapes.
absl::StatusOr<std::string> BuildWhere(LayerContext* c) {
  if (c->dtype(0) != DType::kBool)
    return c->Misfit(
        absl::StrCat("a first input of true and false (a comparison), not ",
                     Name(c->dtype(0))));
  OpChain chain(c->main());
  std::string condition = c->input(0), x = c->input(1), y = c->input(2);
  if (c->shape(0) != c->shape(1) || c->shape(0) != c->shape(2)) {
    const auto zeros = [&](const std::string& of, DType dtype) {
      return chain.Unary(
          "fill_any_like", of,
          {{"value", 0.0f}, {"dtype", static_cast<int32_t>(dtype)}});
    };
    const DType dtype = c->dtype(1);
    const std::string as_number = chain.Cast(condition, dtype);
    const std::string all = chain.Add(
        chain.Add(zeros(x, dtype), zeros(y, dtype)), zeros(as_number, dtype));
    x = chain.Add(x, all);
    y = chain.Add(y, all);
    condition = chain.Cast(chain.Add(as_number, all), DType::kBool);
  }
  auto result = chain.Give(chain.Op(
      "where", {{"Condition", condition}, {"X", x}, {"Y", y}}, {"Out"}));
  if (!result.ok()) return Annotate(result.status(), c->Described());
  return result;
}

absl::StatusOr<std::string> BuildTriangle(LayerContext* c) {
  const bool lower = c->layer().has_tril();
  const job::Triangle& p = lower ? c->layer().tril() : c->layer().triu();
  return c->Unary("tril_triu", c->input(),
                  {{"diagonal", int32_t{p.diagonal()}}, {"lower", lower}});
}

absl::StatusOr<std::string> BuildFull(LayerContext* c) {
  const job::Full& p = c->layer().full();
  OpChain chain(c->main());
  return chain.Give(chain.Full(Shape(p.shape().begin(), p.shape().end()),
                               static_cast<DType>(p.dtype()), p.fill_value()));
}

absl::StatusOr<std::string> BuildFullLike(LayerContext* c) {
  const job::FullLike& p = c->layer().full_like();
  const int32_t dtype =
      p.has_dtype() ? static_cast<int32_t>(p.dtype()) : int32_t{-1};
  return c->Unary(
      "fill_any_like", c->input(),
      {{"value", static_cast<float>(p.fill_value())}, {"dtype", dtype}});
}

absl::StatusOr<std::string> ValuesOf(const std::vector<double>& values,
                                     Shape shape, DType dtype,
                                     LayerContext* c) {
  OpChain chain(c->main());
  return chain.Give(chain.Values(shape, dtype, values));
}

// The numbers are known here, so they are written out.
absl::StatusOr<std::string> BuildArange(LayerContext* c) {
  const job::Arange& p = c->layer().arange();
  const double count = std::ceil((p.end() - p.start()) / p.step());
  if (!(count >= 1 && count <= 1 << 20))
    return InvalidArgument(
        "from %g to %g by %g there are no numbers, or more than %d", p.start(),
        p.end(), p.step(), 1 << 20);
  std::vector<double> values;
  for (int i = 0; i < static_cast<int>(count); ++i)
    values.push_back(p.start() + i * p.step());
  const auto extent = static_cast<int64_t>(values.size());
  return ValuesOf(values, {extent}, static_cast<DType>(p.dtype()), c);
}

absl::StatusOr<std::string> BuildConstant(LayerContext* c) {
  const job::ConstantTensor& p = c->layer().constant();
  Shape shape(p.shape().begin(), p.shape().end());
  if (shape.empty()) shape = {p.value_size()};
  double count = 1;
  for (const int64_t extent : shape) count *= static_cast<double>(extent);
  if (count != p.value_size())
    return InvalidArgument("there are %d numbers; shape %s has %g",
                           p.value_size(), ToString(shape), count);
  return ValuesOf(std::vector<double>(p.value().begin(), p.value().end()),
                  shape, static_cast<DType>(p.dtype()), c);
}

absl::StatusOr<std::string> BuildParameter(LayerContext* c) {
  const job::Parameter& p = c->layer().parameter();
  const Shape shape(p.shape().begin(), p.shape().end());
  if (p.is_bias()) return c->Bias(p.attr(), shape, "");
  return c->Weight(p.attr(), shape, XavierUniformInitializer(), "");
}

}  // namespace

void AddValueLayers(LayerTable* table) {
  using L = job::Layer;
  (*table)[L::kSqueeze] = {BuildSqueeze};
  (*table)[L::kUnsqueeze] = {BuildSqueeze};
  (*table)[L::kSplit] = {BuildSplit};
  (*table)[L::kChunk] = {BuildSplit};
  (*table)[L::kUnstack] = {BuildUnstack};
  (*table)[L::kStack] = {BuildStack, 1, kAnyInputs};
  (*table)[L::kSlice] = {BuildSlice};
  (*table)[L::kStridedSlice] = {BuildSlice};
  for (const int kind : {L::kGather, L::kGatherNd, L::kIndexSelect,
                         L::kIndexSample, L::kTakeAlongAxis})
    (*table)[kind] = {BuildGather, 2, 2};
  (*table)[L::kOneHot] = {BuildOneHot};
  (*table)[L::kTile] = {BuildTile};
  (*table)[L::kExpand] = {BuildExpand};
  (*table)[L::kExpandAs] = {BuildExpandAs, 2, 2};
  (*table)[L::kFlip] = {BuildFlip};
  (*table)[L::kRoll] = {BuildRoll};
  (*table)[L::kCast] = {BuildCast};
  (*table)[L::kWhere] = {BuildWhere, 3, 3};
  (*table)[L::kTril] = {BuildTriangle};
  (*table)[L::kTriu] = {BuildTriangle};
  (*table)[L::kFull] = {BuildFull, 0, 0};
  (*table)[L::kFullLike] = {BuildFullLike};
  (*table)[L::kArange] = {BuildArange, 0, 0};
  (*table)[L::kConstant] = {BuildConstant, 0, 0};
  (*table)[L::kParameter] = {BuildParameter, 0, 0};
}

}  // namespace pd
