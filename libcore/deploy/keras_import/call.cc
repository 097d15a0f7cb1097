// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/keras_import/call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

using ValueKind = KerasValue::Kind;

constexpr int64_t kMostConfig = int64_t{1} << 20;

}  // namespace

bool KerasCall::Has(const char* name) const {
  return Config(name).kind != ValueKind::kNone;
}

int64_t KerasCall::Int(const char* name, int64_t otherwise) {
  const KerasValue& value = Config(name);
  if (value.kind == ValueKind::kNone) return otherwise;
  if (value.kind == ValueKind::kInt && value.i >= 0 && value.i <= kMostConfig)
    return value.i;
  Fail(InvalidArgument("'%s' is no number in [0, %d]", name, kMostConfig));
  return otherwise;
}

double KerasCall::Number(const char* name, double otherwise) {
  const KerasValue& value = Config(name);
  if (value.kind == ValueKind::kNone) return otherwise;
  if (value.kind == ValueKind::kInt || value.kind == ValueKind::kFloat)
    return value.f;
  // A NumPy array of one number.
  if (value.kind == ValueKind::kDict &&
      (value["value"].kind == ValueKind::kFloat ||
       value["value"].kind == ValueKind::kInt))
    return value["value"].f;
  Fail(InvalidArgument("'%s' is no number", name));
  return otherwise;
}

bool KerasCall::Flag(const char* name, bool otherwise) {
  const KerasValue& value = Config(name);
  if (value.kind == ValueKind::kNone) return otherwise;
  if (value.kind == ValueKind::kBool || value.kind == ValueKind::kInt)
    return value.i != 0;
  Fail(InvalidArgument("'%s' is neither true nor false", name));
  return otherwise;
}

std::string KerasCall::Text(const char* name, const char* otherwise) {
  const KerasValue& value = Config(name);
  return value.kind == ValueKind::kText ? value.text : otherwise;
}

KerasCall::Ints KerasCall::IntList(const char* name) {
  const KerasValue& value = Config(name);
  std::vector<KerasValue> all = value.list;
  if (value.kind == ValueKind::kInt) all = {value};
  Ints ints;
  for (const KerasValue& item : all) {
    if (item.kind != ValueKind::kInt || item.i < -kMostConfig ||
        item.i > kMostConfig) {
      Fail(InvalidArgument("'%s' is no list of numbers in [-%d, %d]", name,
                           kMostConfig, kMostConfig));
      return {};
    }
    ints.push_back(item.i);
  }
  return ints;
}

KerasCall::Ints KerasCall::IntsOf(const char* name, size_t count,
                                  int64_t otherwise) {
  Ints ints = IntList(name);
  if (ints.empty()) ints = {otherwise};
  if (ints.size() == 1) ints.resize(count, ints[0]);
  if (ints.size() != count ||
      std::any_of(ints.begin(), ints.end(), [](int64_t i) { return i < 0; })) {
    Fail(InvalidArgument("'%s' is %s; expected %d numbers", name,
                         ToString(ints), count));
    ints.assign(count, otherwise);
  }
  return ints;
}

bool KerasCall::Option(const char* name) const {
  if (arguments_.options == nullptr) return false;
  const auto option = arguments_.options->find(name);
  return option != arguments_.options->end() && option->second.i != 0;
}

KerasTensor& KerasCall::In(size_t i) {
  static thread_local KerasTensor none;
  if (i < arguments_.args.size()) return *arguments_.args[i];
  Fail(InvalidArgument("it has %d inputs", arguments_.args.size()));
  none = KerasTensor();
  return none;
}

KerasTensor* KerasCall::Named(const char* name) {
  const auto named = arguments_.named.find(name);
  return named == arguments_.named.end() || named->second.empty()
             ? nullptr
             : named->second[0];
}

std::string KerasCall::Spatial() {
  return front() ? X() : graph_->Front(&In());
}

Shape KerasCall::SpatialShape() {
  const Shape& shape = In().shape;
  if (shape.size() < 3)
    Fail(InvalidArgument("a tensor of %s", ToString(shape)));
  if (!ok()) return {};
  return front() ? Shape(shape.begin() + 2, shape.end()) : SpatialOf(shape);
}

int64_t KerasCall::Channels() {
  const Shape& shape = In().shape;
  if (shape.size() < 2) return 1;
  const int64_t channels = front() ? shape[1] : shape.back();
  if (channels < 1) Fail(InvalidArgument("a tensor of %s", ToString(shape)));
  return channels;
}

void KerasCall::WantRank(int64_t rank) {
  if (Rank() != rank)
    Fail(InvalidArgument("a tensor of shape %s; expected %d axes",
                         ToString(In().shape), rank));
}

int64_t KerasCall::Axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  Fail(InvalidArgument("axis %d of a tensor of %d axes", axis, rank));
  return 0;
}

void KerasCall::WantUnmasked() {
  for (const KerasTensor* x : arguments_.args)
    if (!x->mask.empty())
      Fail(Unimplemented("an input with a mask (mask_zero of an Embedding)"));
}

void KerasCall::WantWeights(size_t count) {
  if (layer_.weights.size() != count)
    Fail(DataLoss("the file has %d weights for it; expected %d",
                  layer_.weights.size(), count));
}

const Array& KerasCall::Weight(size_t i, int64_t rank) {
  static const auto* none = new Array(MakeArray<float>({}, {0}));
  if (i >= layer_.weights.size()) {
    Fail(DataLoss("the file has %d weights for it", layer_.weights.size()));
    return *none;
  }
  const Array& weight = layer_.weights[i];
  if (rank < 0 || static_cast<int64_t>(weight.shape.size()) == rank)
    return weight;
  Fail(DataLoss("weight %d has shape %s; expected %d axes", i,
                ToString(weight.shape), rank));
  return *none;
}

std::string KerasCall::Param(const char* name, const Array& array) {
  return graph_->Weight(absl::StrCat(path_, "/", name), array);
}

std::string KerasCall::Param(const char* name,
                             const absl::StatusOr<Array>& array) {
  if (array.ok()) return Param(name, *array);
  Fail(array.status());
  return "";
}

void KerasCall::Give(const std::string& name, const Shape& shape) {
  KerasTensor x;
  static_cast<LayoutTensor&>(x) = graph_->Made(name, shape, false, In().dtype);
  Give(std::move(x));
}

KerasTensor KerasCall::FromSpatial(const std::string& name,
                                   const Shape& spatial, int64_t channels) {
  const int64_t batch = In().shape.empty() ? -1 : In().shape[0];
  Shape shape = WithSpatial(batch, spatial, channels);
  if (front()) {
    shape.pop_back();
    shape.insert(shape.begin() + 1, channels);
  }
  KerasTensor x;
  static_cast<LayoutTensor&>(x) = graph_->Made(name, shape, !front());
  return x;
}

KerasTensor KerasCall::Activated(KerasTensor x) {
  return Activate(std::move(x), Config("activation"));
}

}  // namespace pd
