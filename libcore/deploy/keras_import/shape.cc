// SPDX-License-Identifier: Apache-2.0
// Layers of Keras that move, cut, pad, repeat or join.
#include <algorithm>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/deploy/keras_import/call.h"

namespace pd {
namespace {

using Attrs = KerasCall::Attrs;
using Ints = KerasCall::Ints;

// The product of extents; -1 where one is not known.
int64_t ProductOf(KerasCall* call, const Shape& extents) {
  if (IsDynamic(extents)) return -1;
  const auto bytes = CheckedBytes(extents, 1);
  if (bytes.ok()) return *bytes;
  call->Fail(bytes.status());
  return -1;
}

void ImportFlatten(KerasCall* call) {
  KerasTensor& x = call->In();
  if (x.rank() < 1) call->Fail(InvalidArgument("a tensor without axes"));
  if (!call->ok()) return;
  std::string in = call->X();
  if (call->front() && x.rank() > 2) {
    Ints perm = {0};
    for (int64_t i = 2; i < x.rank(); ++i) perm.push_back(i);
    perm.push_back(1);
    in = call->graph().Transpose(in, perm);
  }
  const int64_t columns =
      ProductOf(call, Shape(x.shape.begin() + 1, x.shape.end()));
  call->Give(call->graph().Reshape(in, {0, columns}), {x.shape[0], columns});
}

void ImportReshape(KerasCall* call) {
  KerasTensor& x = call->In();
  Shape target = call->IntList("target_shape");
  if (x.rank() < 1) call->Fail(InvalidArgument("a tensor without axes"));
  for (const int64_t extent : target)
    if (extent == 0 || extent < -1)
      call->Fail(Unimplemented("a shape of %s", ToString(target)));
  if (!call->ok()) return;
  const int64_t all =
      ProductOf(call, Shape(x.shape.begin() + 1, x.shape.end()));
  const auto left = std::find(target.begin(), target.end(), -1);
  if (left != target.end() && all >= 0) {
    *left = 1;
    const int64_t known = ProductOf(call, target);
    *left = known > 0 && all % known == 0 ? all / known : -1;
  }
  Shape shape = {0};
  shape.insert(shape.end(), target.begin(), target.end());
  const std::string y = call->graph().Reshape(call->X(), shape);
  shape[0] = x.shape[0];
  call->Give(y, shape);
}

void ImportPermute(KerasCall* call) {
  const Ints dims = call->IntList("dims");
  KerasTensor& x = call->In();
  Ints perm = {0};
  perm.insert(perm.end(), dims.begin(), dims.end());
  Ints sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  Ints all(static_cast<size_t>(x.rank()));
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all)
    call->Fail(InvalidArgument("dims %s of shape %s", ToString(dims),
                               ToString(x.shape)));
  if (!call->ok()) return;
  Shape shape;
  for (const int64_t axis : perm)
    shape.push_back(x.shape[static_cast<size_t>(axis)]);
  call->Give(call->graph().Transpose(call->X(), perm), shape);
}

void ImportRepeat(KerasCall* call) {
  call->WantRank(2);
  const int64_t n = call->Int("n", 1);
  if (!call->ok()) return;
  LayoutGraph& graph = call->graph();
  const std::string row =
      graph.Emit("Unsqueeze", {call->X(), graph.ConstInts({1})});
  const Shape& shape = call->In().shape;
  call->Give(graph.Emit("Tile", {row, graph.ConstInts({1, n, 1})}),
             {shape[0], n, shape[1]});
}

constexpr int64_t kMostSide = int64_t{1} << 20;

// "padding" or "cropping": a number, one for each axis, or two for each.
std::vector<std::pair<int64_t, int64_t>> Sides(KerasCall* call,
                                               const char* name) {
  const auto axes = static_cast<size_t>(std::max<int64_t>(call->Rank() - 2, 0));
  const KerasValue& value = call->Config(name);
  std::vector<std::pair<int64_t, int64_t>> sides;
  const bool pairs = !value.list.empty() && !value.list[0].list.empty();
  if (pairs) {
    for (const KerasValue& item : value.list)
      if (item.list.size() == 2)
        sides.push_back({item.list[0].i, item.list[1].i});
  } else {
    const Ints ints = call->IntList(name);
    if (axes == 1 && ints.size() == 2) {
      sides.push_back({ints[0], ints[1]});
    } else {
      for (size_t i = 0; i < axes && !ints.empty(); ++i) {
        const int64_t side = ints[std::min(i, ints.size() - 1)];
        sides.push_back({side, side});
      }
    }
  }
  const bool bad =
      std::any_of(sides.begin(), sides.end(), [](const auto& side) {
        return side.first < 0 || side.second < 0 || side.first > kMostSide ||
               side.second > kMostSide;
      });
  if (axes < 1 || bad || sides.size() != axes)
    call->Fail(InvalidArgument("'%s' for %d axes", name, axes));
  return sides;
}

void ImportZeroPadding(KerasCall* call) {
  const auto sides = Sides(call, "padding");
  Shape spatial = call->SpatialShape();
  if (!call->ok()) return;
  Ints pads(2 * (sides.size() + 2), 0);
  for (size_t i = 0; i < sides.size(); ++i) {
    pads[2 + i] = sides[i].first;
    pads[4 + sides.size() + i] = sides[i].second;
    if (spatial[i] >= 0) spatial[i] += sides[i].first + sides[i].second;
  }
  LayoutGraph& graph = call->graph();
  const std::string x = call->Spatial();
  call->Give(call->FromSpatial(
      graph.Emit("Pad",
                 {x, graph.ConstInts(pads), graph.Scalar(0, call->In().dtype)}),
      spatial, call->Channels()));
}

void ImportCropping(KerasCall* call) {
  const auto sides = Sides(call, "cropping");
  Shape spatial = call->SpatialShape();
  if (!call->ok()) return;
  Ints axes, starts, ends;
  for (size_t i = 0; i < sides.size(); ++i) {
    const int64_t cut = sides[i].first + sides[i].second;
    axes.push_back(2 + static_cast<int64_t>(i));
    starts.push_back(sides[i].first);
    ends.push_back(sides[i].second == 0 ? INT64_MAX : -sides[i].second);
    if (spatial[i] >= 0 && spatial[i] <= cut)
      call->Fail(InvalidArgument("%d cut off of %d", cut, spatial[i]));
    if (spatial[i] >= 0) spatial[i] -= cut;
  }
  const std::string x = call->Spatial();
  call->Give(call->FromSpatial(call->graph().Slice(x, axes, starts, ends),
                               spatial, call->Channels()));
}

void ImportUpsample1d(KerasCall* call) {
  call->WantRank(3);
  const Ints size = call->IntsOf("size", 1, 2);
  const int64_t channels = call->Channels();
  if (!call->ok()) return;
  const Shape& shape = call->In().shape;
  LayoutGraph& graph = call->graph();
  const std::string steps =
      graph.Emit("Unsqueeze", {call->X(), graph.ConstInts({2})});
  const std::string all =
      graph.Emit("Tile", {steps, graph.ConstInts({1, 1, size[0], 1})});
  const int64_t extent = shape[1] < 0 ? -1 : shape[1] * size[0];
  call->Give(graph.Reshape(all, {0, extent, channels}),
             {shape[0], extent, channels});
}

void ImportUpsample2d(KerasCall* call) {
  call->WantRank(4);
  const Ints size = call->IntsOf("size", 2, 2);
  const std::string mode = call->Text("interpolation", "nearest");
  Shape spatial = call->SpatialShape();
  if (mode != "nearest" && mode != "bilinear")
    call->Fail(Unimplemented("interpolation '%s'", mode));
  if (!call->ok()) return;
  for (size_t i = 0; i < 2; ++i)
    if (spatial[i] >= 0) spatial[i] *= size[i];
  const bool nearest = mode == "nearest";
  Attrs attrs = {{"mode", OnnxText(nearest ? "nearest" : "linear")},
                 {"coordinate_transformation_mode",
                  OnnxText(nearest ? "asymmetric" : "half_pixel")}};
  if (nearest) attrs["nearest_mode"] = OnnxText("floor");
  const std::vector<float> scales = {1, 1, static_cast<float>(size[0]),
                                     static_cast<float>(size[1])};
  const std::string x = call->Spatial();
  call->Give(call->FromSpatial(
      call->graph().Emit(
          "Resize",
          {x, "", call->graph().Constant(MakeArray<float>({4}, scales))},
          attrs),
      spatial, call->Channels()));
}

// Inputs of fewer axes than others get them behind the batch.
std::vector<LayoutTensor*> SameRanks(KerasCall* call, size_t least,
                                     size_t most) {
  if (call->inputs() < least || call->inputs() > most)
    call->Fail(InvalidArgument("it has %d inputs", call->inputs()));
  std::vector<LayoutTensor*> xs;
  int64_t rank = 0;
  for (size_t i = 0; i < call->inputs(); ++i)
    rank = std::max(rank, call->Rank(i));
  for (size_t i = 0; i < call->inputs(); ++i) {
    KerasTensor& x = call->In(i);
    if (x.rank() != rank && x.rank() != 0)
      call->Fail(Unimplemented("inputs of %d and %d axes", x.rank(), rank));
    xs.push_back(&x);
  }
  return xs;
}

// A step of a sum counts where one of the inputs has it in Keras 3, if all have
// masks, and where all that have masks have it before.
std::string MergedMask(KerasCall* call) {
  KerasCall::Names masks;
  for (const KerasTensor* x : call->arguments().args)
    if (!x->mask.empty()) masks.push_back(x->mask);
  const bool newer = call->keras() > 2;
  if (masks.empty() || (newer && masks.size() < call->inputs())) return "";
  std::string mask = masks[0];
  for (size_t i = 1; i < masks.size(); ++i)
    if (masks[i] != mask)
      mask = call->graph().Emit(newer ? "Or" : "And", {mask, masks[i]});
  return mask;
}

// Joined by their last axis, steps count which all inputs have.
std::string JoinedMask(KerasCall* call, int64_t axis) {
  std::string mask;
  for (const KerasTensor* x : call->arguments().args) {
    if (x->mask.empty() || x->mask == mask) continue;
    if (x->rank() != 3 || axis != 2) {
      call->WantUnmasked();
      return "";
    }
    mask = mask.empty() ? x->mask : call->graph().Emit("And", {mask, x->mask});
  }
  return mask;
}

constexpr size_t kAnyNumber = 1000;

void Merge(KerasCall* call, const char* op_type, size_t least, size_t most) {
  const std::vector<LayoutTensor*> xs = SameRanks(call, least, most);
  if (!call->ok()) return;
  KerasTensor out;
  static_cast<LayoutTensor&>(out) = call->graph().Broadcast(op_type, xs);
  out.mask = MergedMask(call);
  call->Give(out);
}

void ImportAdd(KerasCall* call) {
  Merge(call, call->inputs() == 2 ? "Add" : "Sum", 2, kAnyNumber);
}
void ImportAverage(KerasCall* call) { Merge(call, "Mean", 2, kAnyNumber); }
void ImportMaximum(KerasCall* call) { Merge(call, "Max", 2, kAnyNumber); }
void ImportMinimum(KerasCall* call) { Merge(call, "Min", 2, kAnyNumber); }
void ImportDivide(KerasCall* call) { Merge(call, "Div", 2, 2); }
void ImportSubtract(KerasCall* call) { Merge(call, "Sub", 2, 2); }

void ImportMultiply(KerasCall* call) {
  const std::vector<LayoutTensor*> xs = SameRanks(call, 2, kAnyNumber);
  if (!call->ok()) return;
  KerasTensor out;
  static_cast<LayoutTensor&>(out) = *xs[0];
  for (size_t i = 1; i < xs.size(); ++i)
    static_cast<LayoutTensor&>(out) =
        call->graph().Broadcast("Mul", {&out, xs[i]});
  out.mask = MergedMask(call);
  call->Give(out);
}

void ImportConcatenate(KerasCall* call) {
  const std::vector<LayoutTensor*> xs = SameRanks(call, 1, kAnyNumber);
  const Ints axes = call->IntList("axis");
  if (xs.empty() || axes.size() > 1 || !call->ok())
    return call->Fail(InvalidArgument("it has %d inputs", xs.size()));
  const int64_t rank = xs[0]->rank();
  const int64_t axis = call->Axis(axes.empty() ? -1 : axes[0], rank);
  for (const LayoutTensor* x : xs)
    if (x->rank() != rank)
      call->Fail(Unimplemented("inputs of %d and %d axes", x->rank(), rank));
  if (!call->ok()) return;
  LayoutGraph& graph = call->graph();
  const bool front =
      std::any_of(xs.begin(), xs.end(),
                  [](const LayoutTensor* x) { return !x->front.empty(); });
  KerasCall::Names names;
  Shape shape = xs[0]->shape;
  int64_t& extent = shape[static_cast<size_t>(axis)];
  extent = 0;
  for (LayoutTensor* x : xs) {
    names.push_back(front ? graph.Front(x) : graph.Plain(x));
    const int64_t added = x->shape[static_cast<size_t>(axis)];
    extent = added < 0 || extent < 0 ? -1 : extent + added;
  }
  const std::string y =
      graph.Emit("Concat", names,
                 {{"axis", OnnxInt(front ? FrontAxis(axis, rank) : axis)}});
  KerasTensor out;
  static_cast<LayoutTensor&>(out) = graph.Made(y, shape, front, xs[0]->dtype);
  out.mask = JoinedMask(call, axis);
  call->Give(out);
}

// x over its norm along an axis.
std::string Normalized(KerasCall* call, const std::string& x, int64_t axis) {
  LayoutGraph& graph = call->graph();
  const std::string square =
      graph.Reduce("ReduceSum", graph.Emit("Mul", {x, x}), {axis}, true);
  return graph.Emit(
      "Div",
      {x,
       graph.Emit("Sqrt", {graph.Emit("Max", {square, graph.Scalar(1e-12)})})});
}

// The product of matrices of a batch, summed over an axis of each.
void ImportDot(KerasCall* call) {
  if (call->inputs() != 2)
    call->Fail(InvalidArgument("it has %d inputs", call->inputs()));
  Ints axes = call->IntList("axes");
  if (axes.size() == 1) axes.push_back(axes[0]);
  if (axes.size() != 2) call->Fail(InvalidArgument("'axes' are missing"));
  if (!call->ok()) return;
  LayoutGraph& graph = call->graph();
  std::string xs[2];
  Shape shape = {call->In(0).shape.empty() ? -1 : call->In(0).shape[0]};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t rank = call->Rank(i);
    const int64_t axis = call->Axis(axes[i], rank);
    if (call->ok() && (rank < 2 || rank > 3 || axis == 0))
      call->Fail(Unimplemented("axis %d of %d", axis, rank));
    if (!call->ok()) return;
    xs[i] = call->X(i);
    if (call->Flag("normalize", false)) xs[i] = Normalized(call, xs[i], axis);
    // [batch, rows, sum] and [batch, sum, columns]
    if (rank == 2) {
      xs[i] =
          graph.Emit("Unsqueeze", {xs[i], graph.ConstInts({i == 0 ? 1 : 2})});
    } else if (axis != (i == 0 ? 2 : 1)) {
      xs[i] = graph.Transpose(xs[i], {0, 2, 1});
    }
    if (rank == 3) shape.push_back(call->In(i).shape[axis == 1 ? 2 : 1]);
  }
  std::string y = graph.Emit("MatMul", {xs[0], xs[1]});
  if (call->Rank(0) == 2 && call->Rank(1) == 2) {
    y = graph.Emit("Squeeze", {y, graph.ConstInts({2})});
    shape.push_back(1);
  } else if (shape.size() == 2) {
    y = graph.Emit("Squeeze",
                   {y, graph.ConstInts({call->Rank(0) == 2 ? 1 : 2})});
  }
  call->Give(y, shape);
}

// A layer for each step: those that look at the last axis alone are as they
// are, for others steps become records of the batch.
void ImportTimeDistributed(KerasCall* call) {
  const KerasValue& config = call->Config("layer");
  KerasLayer inner;
  inner.class_name = config["class_name"].text;
  inner.name = config["config"]["name"].text;
  inner.config = config["config"];
  inner.weights = call->layer().weights;
  auto* const import = KerasImporter(inner.class_name);
  KerasTensor x = call->In();
  if (import == nullptr || inner.class_name == "TimeDistributed")
    call->Fail(Unimplemented("layer '%s' of class '%s'", inner.name,
                             inner.class_name));
  if (call->ok() && x.rank() < 3)
    call->Fail(InvalidArgument("a tensor of %s", ToString(x.shape)));
  if (!call->ok()) return;
  const bool alone = inner.class_name == "Dense" && x.rank() == 3;
  const Shape shape = x.shape;
  LayoutGraph& graph = call->graph();
  if (!alone) {
    Shape records(shape.begin() + 1, shape.end());
    records[0] = -1;
    const std::string all = graph.Reshape(graph.Plain(&x), records);
    static_cast<LayoutTensor&>(x) = graph.Made(all, records, false, x.dtype);
  }
  x.mask.clear();
  KerasCall::Arguments arguments;
  arguments.args = {&x};
  KerasCall each(inner, arguments, call->path(), call->keras(), &graph);
  import(&each);
  if (!call->ok() || each.outputs().size() != 1)
    return call->Fail(Unimplemented("several outputs"));
  KerasTensor out = each.outputs()[0];
  if (!alone) {
    Shape back = out.shape;
    back[0] = shape[1];
    back.insert(back.begin(), -1);
    const std::string y = graph.Reshape(graph.Plain(&out), back);
    back[0] = shape[0];
    static_cast<LayoutTensor&>(out) = graph.Made(y, back, false, out.dtype);
  }
  out.mask = call->In().mask;
  call->Give(out);
}

}  // namespace

KerasImportEntries KerasShapeImports() {
  return {
      {"Add", ImportAdd},
      {"Average", ImportAverage},
      {"Concatenate", ImportConcatenate},
      {"Cropping1D", ImportCropping},
      {"Cropping2D", ImportCropping},
      {"Cropping3D", ImportCropping},
      {"Divide", ImportDivide},
      {"Dot", ImportDot},
      {"Flatten", ImportFlatten},
      {"Maximum", ImportMaximum},
      {"Minimum", ImportMinimum},
      {"Multiply", ImportMultiply},
      {"Permute", ImportPermute},
      {"RepeatVector", ImportRepeat},
      {"Reshape", ImportReshape},
      {"Subtract", ImportSubtract},
      {"TimeDistributed", ImportTimeDistributed},
      {"UpSampling1D", ImportUpsample1d},
      {"UpSampling2D", ImportUpsample2d},
      {"ZeroPadding1D", ImportZeroPadding},
      {"ZeroPadding2D", ImportZeroPadding},
      {"ZeroPadding3D", ImportZeroPadding},
  };
}

}  // namespace pd
