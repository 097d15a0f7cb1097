// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/equalize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "libcore/ops/linalg/product_attrs.h"
#include "libcore/passes/op_graph.h"
#include "libcore/quant/op_table.h"

namespace pd {
namespace {

constexpr int kMostRounds = 100;
constexpr double kStill = 0.01;

bool IsConv(const OpDesc& op) {
  return op.type == "conv2d" || op.type == "depthwise_conv2d";
}

// A layer's weight, seen by channel.
struct Layer {
  std::string weight;
  Shape shape;
  int64_t groups = 1;
  int axis = 0;  ///< of the outputs; of a product the other one is the inputs'

  int64_t outputs() const { return shape[static_cast<size_t>(axis)]; }
  bool is_conv() const { return shape.size() == 4; }

  // Calls body(element) for the elements of an output channel.
  template <typename Body>
  void ForOutput(int64_t channel, const Body& body) const {
    const int64_t each = NumElements(shape) / outputs();
    for (int64_t i = 0; i < each; ++i)
      body(axis == 0 ? channel * each + i : i * outputs() + channel);
  }

  // For those that input channel `channel` of `all` is multiplied by: of a
  // product, whose channels may be images, each has as many inputs.
  template <typename Body>
  void ForInput(int64_t channel, int64_t all, const Body& body) const {
    if (is_conv()) {
      const int64_t each = shape[1], taps = shape[2] * shape[3];
      const int64_t out = shape[0] / groups, group = channel / each;
      for (int64_t o = group * out; o < (group + 1) * out; ++o)
        for (int64_t t = 0; t < taps; ++t)
          body((o * each + channel % each) * taps + t);
      return;
    }
    const int64_t inputs = shape[static_cast<size_t>(1 - axis)];
    const int64_t n = inputs / all;
    for (int64_t k = channel * n; k < (channel + 1) * n; ++k)
      for (int64_t o = 0; o < outputs(); ++o)
        body(axis == 0 ? o * inputs + k : k * outputs() + o);
  }
  int64_t inputs() const {
    return is_conv() ? shape[1] * groups : shape[static_cast<size_t>(1 - axis)];
  }
};

struct Pair {
  Layer first, second;
  std::vector<std::string> biases;  // between them
};

class Equalizer {
 public:
  explicit Equalizer(InferenceModel* model)
      : model_(model),
        context_(ContextOf(*model)),
        graph_(context_, &model->program) {}

  int Run() {
    std::vector<Pair> pairs;
    for (size_t i = 0; i < graph_.size(); ++i) {
      Pair pair;
      if (LayerOf(i, &pair.first) && Follow(i, &pair))
        pairs.push_back(std::move(pair));
    }
    for (int round = 0; round < kMostRounds; ++round) {
      double most = 0;
      for (const Pair& pair : pairs) most = std::max(most, Balance(pair));
      if (most < kStill) break;
    }
    for (auto& [name, values] : values_)
      model_->params[name] =
          MakeArray<float>(model_->params.at(name).shape, values);
    return static_cast<int>(pairs.size());
  }

 private:
  static PassContext ContextOf(const InferenceModel& model) {
    PassContext context;
    context.keep.insert(model.names.fetches.begin(), model.names.fetches.end());
    return context;
  }
  const Array* Param(const std::string& name) const {
    const auto it = model_->params.find(name);
    return it == model_->params.end() || it->second.dtype != DType::kFloat32
               ? nullptr
               : &it->second;
  }
  // Whether changing it changes nothing else.
  bool IsOwn(const std::string& name) const {
    return graph_.Readers(name).size() == 1 && graph_.IsUnwritten(name);
  }

  bool LayerOf(size_t i, Layer* layer) const {
    const OpDesc& op = graph_.op(i);
    const bool conv = IsConv(op);
    if (!conv && !IsProduct(op.type)) return false;
    layer->weight = op.In(conv ? "Filter" : "Y");
    const Array* weight = Param(layer->weight);
    if (weight == nullptr || !IsOwn(layer->weight) ||
        weight->shape.size() != (conv ? 4u : 2u))
      return false;
    layer->shape = weight->shape;
    if (conv) {
      layer->groups = op.Attr<int32_t>("groups");
      return op.In("Bias").empty() &&
             op.Attr<std::string>("data_format") != "NHWC";
    }
    const ProductAttrs product = ProductAttrsOf(op);
    layer->axis = product.trans_y ? 0 : 1;
    return !product.trans_x && product.alpha == 1;
  }

  // From op `i` to the layer that reads what it gives.
  bool Follow(size_t i, Pair* pair) const {
    const bool conv = IsConv(graph_.op(i));
    bool flat = !conv;
    std::string name = graph_.op(i).Out(conv ? "Output" : "Out");
    for (int at = graph_.OnlyReader(name); at != kNone;
         at = graph_.OnlyReader(name)) {
      const OpDesc& op = graph_.op(At(at));
      if (LayerOf(At(at), &pair->second)) {
        const bool reads = op.In(IsConv(op) ? "Input" : "X") == name;
        const int64_t in = pair->second.inputs(), out = pair->first.outputs();
        return reads && IsConv(op) != flat &&
               (flat ? in % out == 0 : in == out);
      }
      if (op.type == "elementwise_add") {
        const std::string bias = BiasOf(op, name, flat, pair->first.outputs());
        if (bias.empty()) return false;
        pair->biases.push_back(bias);
      } else if (IsFlattening(op)) {
        if (flat) return false;
        flat = true;
      } else if (!IsProportional(op, conv && !flat)) {
        return false;
      }
      name = op.Out("Out");
    }
    return false;
  }

  // [N, C, H, W] -> [N, C * H * W]
  bool IsFlattening(const OpDesc& op) const {
    if (op.type != "flatten_contiguous_range" && op.type != "flatten2" &&
        op.type != "reshape2" && op.type != "squeeze2")
      return false;
    const VarDesc* in = graph_.Var(op.In("X"));
    const VarDesc* out = graph_.Var(op.Out("Out"));
    if (in == nullptr || out == nullptr || in->shape.size() != 4 ||
        out->shape.size() != 2)
      return false;
    const Shape inner(in->shape.begin() + 1, in->shape.end());
    const bool known = std::all_of(inner.begin(), inner.end(),
                                   [](int64_t n) { return n > 0; });
    return known && out->shape[1] == NumElements(inner);
  }

  static bool IsProportional(const OpDesc& op, bool image) {
    if (op.type == "relu" || op.type == "leaky_relu") return true;
    if (op.type == "dropout") return op.Attr<bool>("is_test");
    return image && op.type == "pool2d" &&
           op.Attr<std::string>("data_format") != "NHWC";
  }

  // The parameter with an element for each channel that the op adds to `name`,
  // through a reshape2 or not; "" for anything else.
  std::string BiasOf(const OpDesc& add, const std::string& name, bool flat,
                     int64_t channels) const {
    const std::string y = add.In("Y");
    const int32_t axis = add.Attr<int32_t>("axis");
    if (add.In("X") != name) return "";
    const auto fits = [&](const std::string& bias) {
      const Array* value = Param(bias);
      return value != nullptr && value->size() == channels && IsOwn(bias);
    };
    if (fits(y)) {
      const Shape& shape = Param(y)->shape;
      if (shape.size() == 1) return (flat ? axis != 0 : axis == 1) ? y : "";
      return !flat && shape == Shape{1, channels, 1, 1} ? y : "";
    }
    const int writer = graph_.OnlyWriter(y);
    if (flat || writer == kNone || graph_.OnlyReader(y) == kNone) return "";
    const OpDesc& reshape = graph_.op(At(writer));
    const VarDesc* shaped = graph_.Var(y);
    return reshape.type == "reshape2" && shaped != nullptr &&
                   shaped->shape == Shape{1, channels, 1, 1} &&
                   fits(reshape.In("X"))
               ? reshape.In("X")
               : "";
  }

  std::vector<float>& Values(const std::string& name) {
    auto [it, added] = values_.emplace(name, std::vector<float>());
    if (added) {
      const Array& value = model_->params.at(name);
      it->second.assign(value.data<float>(),
                        value.data<float>() + value.size());
    }
    return it->second;
  }

  // Gives how far the greatest change was from none.
  double Balance(const Pair& pair) {
    std::vector<float>& first = Values(pair.first.weight);
    std::vector<float>& second = Values(pair.second.weight);
    const int64_t channels = pair.first.outputs();
    double most = 0;
    for (int64_t c = 0; c < channels; ++c) {
      float r = 0, t = 0;
      pair.first.ForOutput(c, [&](int64_t i) {
        r = std::max(r, std::fabs(first[static_cast<size_t>(i)]));
      });
      pair.second.ForInput(c, channels, [&](int64_t i) {
        t = std::max(t, std::fabs(second[static_cast<size_t>(i)]));
      });
      // Dead channels have nothing to balance; NaN is found later.
      if (!(r > 1e-20f && t > 1e-20f && std::isfinite(r) && std::isfinite(t)))
        continue;
      const auto s = static_cast<float>(std::sqrt(static_cast<double>(r) / t));
      most = std::max(most, std::fabs(std::log(static_cast<double>(s))));
      pair.first.ForOutput(
          c, [&](int64_t i) { first[static_cast<size_t>(i)] /= s; });
      pair.second.ForInput(
          c, channels, [&](int64_t i) { second[static_cast<size_t>(i)] *= s; });
      for (const std::string& bias : pair.biases)
        Values(bias)[static_cast<size_t>(c)] /= s;
    }
    return most;
  }

  InferenceModel* model_;
  const PassContext context_;
  OpGraph graph_;
  std::map<std::string, std::vector<float>> values_;
};

}  // namespace

int EqualizeLayers(InferenceModel* model) { return Equalizer(model).Run(); }

}  // namespace pd
