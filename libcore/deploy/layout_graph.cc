// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/layout_graph.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/torch_window.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr int64_t kMostExtent = int64_t{1} << 40;

template <typename T>
Array OneNumber(double value) {
  return MakeArray<T>({}, {static_cast<T>(value)});
}

}  // namespace

Shape SpatialOf(const Shape& shape) {
  return shape.size() < 2 ? Shape() : Shape(shape.begin() + 1, shape.end() - 1);
}

int64_t FrontAxis(int64_t axis, int64_t rank) {
  if (axis == 0 || rank < 3) return axis;
  return axis == rank - 1 ? 1 : axis + 1;
}

Shape WithSpatial(int64_t batch, const Shape& spatial, int64_t channels) {
  Shape shape = {batch};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  shape.push_back(channels);
  return shape;
}

Shape BroadcastShape(const Shape& a, const Shape& b) {
  Shape out = a.size() < b.size() ? b : a;
  const Shape& other = a.size() < b.size() ? a : b;
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t& extent = out[out.size() - other.size() + i];
    if (extent == 1 || (extent < 0 && other[i] > 1)) extent = other[i];
  }
  return out;
}

absl::StatusOr<Array> PermutedArray(const Array& array,
                                    const std::vector<int64_t>& perm) {
  PD_INVARIANT(perm.size() == array.shape.size());
  const std::vector<int64_t> strides = RowMajorStrides(array.shape);
  TorchWindow window;
  for (const int64_t axis : perm) {
    window.shape.push_back(array.shape[static_cast<size_t>(axis)]);
    window.strides.push_back(strides[static_cast<size_t>(axis)]);
  }
  std::byte* to = nullptr;
  PD_ASSIGN_OR_RETURN(Array out, NewArray(array.dtype, window.shape, &to));
  if (array.size() > 0)
    Gather(window, array.bytes.get(), SizeOf(array.dtype), to);
  return out;
}

void LayoutGraph::Begin(const std::string& name) {
  name_ = name;
  first_node_ = graph.nodes.size();
}

std::string LayoutGraph::Emit(const char* op_type, const Names& inputs,
                              Attrs attrs) {
  return EmitMany(op_type, inputs, 1, std::move(attrs))[0];
}

LayoutGraph::Names LayoutGraph::EmitMany(const char* op_type,
                                         const Names& inputs, size_t outputs,
                                         Attrs attrs) {
  if (!ok()) return Names(outputs);
  OnnxFileNode node;
  node.op_type = op_type;
  node.name = name_;
  node.inputs = inputs;
  node.attrs = std::move(attrs);
  for (size_t i = 0; i < outputs; ++i)
    node.outputs.push_back(absl::StrCat(name_, "@", next_++));
  graph.nodes.push_back(node);
  return node.outputs;
}

std::string LayoutGraph::Constant(const Array& array) {
  if (!ok()) return "";
  const std::string name = absl::StrCat("constant_", next_++);
  graph.initializers[name] = array;
  return name;
}

std::string LayoutGraph::Weight(const std::string& name, const Array& array) {
  if (ok()) graph.initializers.emplace(name, array);
  return name;
}

std::string LayoutGraph::ConstInts(const Ints& values) {
  return Constant(MakeArray({static_cast<int64_t>(values.size())}, values));
}

std::string LayoutGraph::Scalar(double value, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return Constant(OneNumber<float>(value));
    case DType::kInt64:
      return Constant(OneNumber<int64_t>(value));
    case DType::kInt32:
      return Constant(OneNumber<int32_t>(value));
    default:
      return Cast(Constant(OneNumber<double>(value)), dtype);
  }
}

std::string LayoutGraph::Cast(const std::string& x, DType dtype) {
  const auto type = OnnxElementType(dtype);
  if (type.ok()) return Emit("Cast", {x}, {{"to", OnnxInt(*type)}});
  Fail(type.status());
  return "";
}

std::string LayoutGraph::Transpose(const std::string& x, const Ints& perm) {
  return Emit("Transpose", {x}, {{"perm", OnnxInts(perm)}});
}

std::string LayoutGraph::Reshape(const std::string& x, const Ints& shape) {
  if (std::count(shape.begin(), shape.end(), -1) > 1)
    Fail(Unimplemented("shape %s, with several extents that are not known",
                       ToString(shape)));
  return Emit("Reshape", {x, ConstInts(shape)});
}

std::string LayoutGraph::Slice(const std::string& x, const Ints& axes,
                               const Ints& starts, const Ints& ends,
                               const Ints& steps) {
  Names inputs = {x, ConstInts(starts), ConstInts(ends), ConstInts(axes)};
  if (!steps.empty()) inputs.push_back(ConstInts(steps));
  return Emit("Slice", inputs);
}

std::string LayoutGraph::Flip(const std::string& x, int64_t axis) {
  return Slice(x, {axis}, {-1}, {INT64_MIN}, {-1});
}

std::string LayoutGraph::Reduce(const char* op_type, const std::string& x,
                                const Ints& axes, bool keep) {
  return Emit(op_type, {x, ConstInts(axes)}, {{"keepdims", OnnxInt(keep)}});
}

const std::string& LayoutGraph::Plain(LayoutTensor* x) {
  if (x->plain.empty() && !x->front.empty() && ok())
    x->plain = Transpose(x->front, ChannelsLast(x->rank()));
  return x->plain;
}

const std::string& LayoutGraph::Front(LayoutTensor* x) {
  if (x->rank() < 3) return Plain(x);
  if (x->front.empty() && !x->plain.empty() && ok())
    x->front = Transpose(x->plain, ChannelsFirst(x->rank()));
  return x->front;
}

const std::string& LayoutGraph::Any(LayoutTensor* x) {
  return x->front.empty() ? x->plain : x->front;
}

LayoutTensor LayoutGraph::Made(const std::string& name, const Shape& shape,
                               bool front, DType dtype) {
  LayoutTensor x;
  x.shape = shape;
  x.dtype = dtype;
  (front && shape.size() > 2 ? x.front : x.plain) = name;
  for (const int64_t extent : shape)
    if (extent < -1 || extent > kMostExtent)
      Fail(Unimplemented("a tensor of shape %s", ToString(shape)));
  return x;
}

void LayoutGraph::Rename(LayoutTensor* x, const std::string& name) {
  if (!ok() || x->plain.empty() || graph.initializers.count(name) > 0) return;
  bool made = false;
  for (size_t k = first_node_; k < graph.nodes.size(); ++k)
    for (const std::string& output : graph.nodes[k].outputs)
      made = made || output == x->plain;
  if (!made || !TakeName(name)) return;
  for (size_t k = first_node_; k < graph.nodes.size(); ++k)
    for (Names* names : {&graph.nodes[k].inputs, &graph.nodes[k].outputs})
      std::replace(names->begin(), names->end(), x->plain, name);
  x->plain = name;
}

LayoutTensor LayoutGraph::Elementwise(const char* op_type, LayoutTensor* x,
                                      const Names& others, Attrs attrs) {
  const bool front = !x->front.empty();
  Names inputs = {Any(x)};
  inputs.insert(inputs.end(), others.begin(), others.end());
  return Made(Emit(op_type, inputs, std::move(attrs)), x->shape, front,
              x->dtype);
}

LayoutTensor LayoutGraph::Broadcast(const char* op_type,
                                    const std::vector<LayoutTensor*>& xs) {
  bool front = false;
  Shape shape = xs[0]->shape;
  for (const LayoutTensor* x : xs) {
    front = front || !x->front.empty();
    shape = BroadcastShape(shape, x->shape);
  }
  Names inputs;
  for (LayoutTensor* x : xs) inputs.push_back(front ? Front(x) : Plain(x));
  return Made(Emit(op_type, inputs), shape, front, xs[0]->dtype);
}

LayoutGraph::Attrs LayoutGraph::WindowAttrs(const LayoutWindow& window,
                                            const Shape& spatial) {
  const size_t axes = window.kernel.size();
  Attrs attrs = {{"strides", OnnxInts(window.strides)}};
  if (std::count(window.dilations.begin(), window.dilations.end(), 1) !=
      static_cast<int64_t>(axes))
    attrs["dilations"] = OnnxInts(window.dilations);
  Ints pads(2 * axes, 0);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t reach = (window.kernel[i] - 1) * window.dilations[i];
    if (window.causal) pads[i] = reach;
    if (!window.same) continue;
    const int64_t stride = window.strides[i];
    if (stride > 1 && spatial[i] < 0) {
      attrs["auto_pad"] = OnnxText("SAME_UPPER");
      return attrs;
    }
    const int64_t steps =
        stride == 1 ? 0 : (spatial[i] + stride - 1) / stride - 1;
    const int64_t all = std::max<int64_t>(
        stride == 1 ? reach : steps * stride + reach + 1 - spatial[i], 0);
    pads[i] = all / 2;
    pads[axes + i] = all - all / 2;
  }
  attrs["pads"] = OnnxInts(pads);
  return attrs;
}

Shape LayoutGraph::WindowExtents(const LayoutWindow& window,
                                 const Shape& spatial) {
  Shape out;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t stride = window.strides[i];
    const int64_t reach = (window.kernel[i] - 1) * window.dilations[i];
    const bool padded = window.same || window.causal;
    if (spatial[i] >= 0 && !padded && spatial[i] <= reach)
      Fail(InvalidArgument("a window of %d over an extent of %d", reach + 1,
                           spatial[i]));
    out.push_back(spatial[i] < 0
                      ? -1
                      : (spatial[i] - (padded ? 0 : reach) - 1) / stride + 1);
  }
  return out;
}

}  // namespace pd
