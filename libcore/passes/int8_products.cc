// SPDX-License-Identifier: Apache-2.0
// Parts 3 and 4 of int8_chains: an op whose inputs are dequantized, with what
// follows it and has no other reader:
//   product [* scales] [+ bias] [batch_norm] [+ residual] [activation]
//   [int8_quantize]
#include <algorithm>
#include <string>
#include <utility>

#include "libcore/ops/linalg/product_attrs.h"
#include "libcore/ops/quantize/int8.h"
#include "libcore/passes/int8_program.h"

namespace pd {
namespace {

const std::vector<const char*> kConvAttrs = {
    "strides",   "paddings", "padding_algorithm",
    "dilations", "groups",   "data_format"};
const std::vector<const char*> kPoolAttrs = {
    "pooling_type",   "ksize",    "strides",   "paddings",  "padding_algorithm",
    "global_pooling", "adaptive", "ceil_mode", "exclusive", "data_format"};

const std::vector<const char*> kTransposeAttrs = {"output_padding",
                                                  "output_size"};

bool IsTranspose(const OpDesc& op) { return op.type == "conv2d_transpose"; }

bool IsConv(const OpDesc& op) {
  return op.type == "conv2d" || op.type == "depthwise_conv2d" ||
         IsTranspose(op);
}

// The activation as attributes of an int8 op; false for another op.
bool ReadActivation(const OpDesc& op, OpDesc* to) {
  const auto set = [&](const char* name, float a, float b, float c) {
    to->attrs["activation"] = std::string(name);
    to->attrs["act_a"] = a;
    to->attrs["act_b"] = b;
    to->attrs["act_c"] = c;
    return true;
  };
  if (op.type == "relu") return set("relu", 0, 0, 0);
  if (op.type == "relu6") return set("clip", 0, op.Attr<float>("threshold"), 0);
  if (op.type == "leaky_relu")
    return set("leaky_relu", op.Attr<float>("alpha"), 0, 0);
  if (op.type == "hard_swish")
    return set("hard_swish", op.Attr<float>("threshold"),
               1.0f / op.Attr<float>("scale"), op.Attr<float>("offset"));
  if (op.type == "hard_sigmoid")
    return set("hard_sigmoid", op.Attr<float>("slope"),
               op.Attr<float>("offset"), 0);
  if (op.type == "clip" && op.Input("Min").empty() && op.Input("Max").empty())
    return set("clip", op.Attr<float>("min"), op.Attr<float>("max"), 0);
  return false;
}

// Whether output channels are the second axis of the weights, not the first.
bool OutputsAreLast(const OpDesc& made) {
  return made.type == "int8_conv2d_transpose" ||
         (made.type == "int8_matmul" && !made.Attr<bool>("trans_y"));
}

// Products as int8 ops that still read numbers; false for another op, or one
// that has no such form.
bool ReadConv(const OpDesc& from, OpDesc* made) {
  if (!IsConv(from) || from.Attr<std::string>("data_format") == "NHWC" ||
      !from.Input("Bias").empty() || !from.Input("ResidualData").empty())
    return false;
  made->type = "int8_conv2d";
  CopyAttrs(from, kConvAttrs, made);
  if (IsTranspose(from)) {
    // Of groups, and of sizes in tensors, there is none.
    if (from.Attr<int32_t>("groups") != 1 || NamesOf(from.inputs).size() != 2)
      return false;
    made->type = "int8_conv2d_transpose";
    CopyAttrs(from, kTransposeAttrs, made);
  }
  made->SetInput("Input", from.Input("Input"));
  made->SetInput("Filter", from.Input("Filter"));
  return true;
}

// `shape` is X's; null: not known.
bool ReadMatrix(const OpDesc& from, const Shape* shape, OpDesc* made) {
  if (!IsProduct(from.type) || shape == nullptr || shape->size() < 2)
    return false;
  const ProductAttrs product = ProductAttrsOf(from);
  if (product.trans_x || product.alpha != 1.0f || product.y_num_col_dims != 1)
    return false;
  made->type = "int8_matmul";
  made->attrs["trans_y"] = product.trans_y;
  made->attrs["x_num_col_dims"] = from.type == "mul"
                                      ? product.x_num_col_dims
                                      : static_cast<int32_t>(shape->size()) - 1;
  made->SetInput("Input", from.Input("X"));
  made->SetInput("Filter", from.Input("Y"));
  return true;
}

bool ReadFc(const OpDesc& from, OpDesc* made) {
  if (from.type != "fc") return false;
  const std::string& activation = from.Attr<std::string>("activation_type");
  if (from.Attr<bool>("padding_weights") ||
      (!activation.empty() && activation != "relu"))
    return false;
  made->type = "int8_matmul";
  made->attrs["x_num_col_dims"] = from.Attr<int32_t>("in_num_col_dims");
  made->attrs["activation"] = activation;
  made->SetInput("Input", from.Input("Input"));
  made->SetInput("Filter", from.Input("W"));
  if (!from.Input("Bias").empty()) made->SetInput("Bias", from.Input("Bias"));
  return true;
}

void ReadFrom(const OpDesc& dequantize, const std::string& slot, OpDesc* to) {
  to->attrs[slot + "_scale"] = dequantize.Attr<float>("x_scale");
  to->attrs[slot + "_zero"] = dequantize.Attr<int32_t>("x_zero");
}

}  // namespace

// The int8 op that grows while its chain is followed.
struct Int8Program::Chain {
  OpDesc made;
  size_t first = 0;             // the op that began it
  std::vector<size_t> covered;  // all others, in order
  std::string out;              // its output
  bool is_conv = false;
  int64_t channels = 0;  // of a product's output
  bool scaled = true;    // false: its weights' scale is yet to come
  bool has_bias = false, has_norm = false, has_residual = false;
  bool has_activation = false, is_quantized = false;
  int elsewhere = kNone;  // an int8_quantize behind the chain's last op
};

// Weights that are dequantized or quantized on the way, or integers as they
// are, whose scale follows the product.
bool Int8Program::FindWeights(const std::string& name, Chain* chain) const {
  OpDesc& made = chain->made;
  if (Constant(name) != nullptr) {
    made.SetInput("Filter", {name});
    made.attrs["filter_levels"] = 1.0f;
    chain->scaled = false;
    return true;
  }
  const int writer = graph_->OnlyWriter(name);
  if (writer == kNone) return false;
  const OpDesc& from = op(writer);
  const bool whole = from.type == "fake_quantize_dequantize_abs_max";
  const bool integers = from.type == "dequantize_linear";
  if ((!whole && !integers &&
       from.type != "fake_channel_wise_quantize_dequantize_abs_max") ||
      Constant(from.In("X")) == nullptr ||
      from.Attr<int32_t>("bit_length") != 8)
    return false;
  const Tensor& filter = *Constant(from.In("X"));
  const bool right_axis = whole || from.Attr<int32_t>("quant_axis") ==
                                       (OutputsAreLast(made) ? 1 : 0);
  made.SetInput("Filter", {from.In("X")});
  if (integers) {
    const Tensor* scale = Constant(from.In("Scale"));
    if (from.Attr<bool>("only_observer") || scale == nullptr ||
        (scale->size() != 1 && !right_axis) || filter.rank() < 2)
      return false;
    made.SetInput("FilterScale", {from.In("Scale")});
    made.attrs["filter_levels"] = 127.0f;
    return true;
  }
  made.attrs["filter_levels"] = 127.0f;
  made.attrs["filter_floats"] = true;
  made.attrs["filter_round"] = from.Attr<int32_t>("round_type");
  made.attrs["filter_whole"] = whole;
  return right_axis;
}

bool Int8Program::FindProduct(size_t at, Chain* chain) const {
  const OpDesc& from = graph_->op(at);
  OpDesc& made = chain->made;
  chain->first = at;
  chain->is_conv = IsConv(from);
  if (!ReadConv(from, &made) && !ReadFc(from, &made) &&
      !ReadMatrix(from, ShapeOf(from.In("X")), &made))
    return false;
  CompleteAttrs(context_, &made);
  chain->out = from.Out(chain->is_conv ? "Output" : "Out");
  chain->has_bias = !made.Input("Bias").empty();
  chain->has_activation = !made.Attr<std::string>("activation").empty();
  const std::string y = made.In("Filter");
  const int dequantize = WriterOf(made.In("Input"), "int8_dequantize");
  if (dequantize == kNone || !FindWeights(y, chain)) return false;
  const Tensor& filter = *Constant(made.In("Filter"));
  if (filter.rank() != (chain->is_conv ? 4u : 2u)) return false;
  made.SetInput("Input", {op(dequantize).In("X")});
  ReadFrom(op(dequantize), "x", &made);
  chain->channels = filter.dim(OutputsAreLast(made) ? 1 : 0);
  if (!chain->has_bias) return true;
  const Tensor* bias = Constant(made.In("Bias"));
  return chain->scaled && bias != nullptr && bias->dtype() == DType::kFloat32 &&
         bias->size() == chain->channels;
}

// Behind integers as weights stands what gives the sums their scale.
bool Int8Program::FindScales(Chain* chain) const {
  if (chain->scaled) return true;
  const int next = OnlyReader(chain->out);
  if (next == kNone) return false;
  const OpDesc& from = op(next);
  OpDesc& made = chain->made;
  if (from.type == "fake_dequantize_max_abs") {
    const std::optional<float> scale = ScaleOf(from.In("Scale"));
    if (!scale.has_value()) return false;
    made.attrs["x_scale"] = made.Attr<float>("x_scale") * *scale;
    made.attrs["filter_levels"] = from.Attr<float>("max_range");
  } else if (from.type == "fake_channel_wise_dequantize_max_abs") {
    const std::vector<std::string>& scales = from.Input("Scales");
    const auto bits = from.Attr<std::vector<int32_t>>("quant_bits");
    if (scales.size() != 2 || bits != std::vector<int32_t>{8, 8} ||
        Constant(scales[0]) == nullptr)
      return false;
    // The sums' channels lie along this axis.
    const Shape* shape = ShapeOf(chain->out);
    const int32_t axis = std::max(from.Attr<int32_t>("x_num_col_dims"), 1);
    if (shape == nullptr ||
        axis != (chain->is_conv ? 1 : static_cast<int>(shape->size()) - 1))
      return false;
    const std::optional<float> scale = ScaleOf(scales[1]);
    if (!scale.has_value()) return false;
    made.SetInput("FilterScale", {scales[0]});
    made.attrs["filter_levels"] = 127.0f;
    made.attrs["x_scale"] = made.Attr<float>("x_scale") * (*scale / 127.0f);
  } else {
    return false;
  }
  chain->covered.push_back(At(next));
  chain->out = from.Out("Out");
  return true;
}

// Whether the weights are what int8.h says, and no sum overflows.
bool Int8Program::ReadsWeights(const Chain& chain) const {
  const OpDesc& made = chain.made;
  const std::string& scale = made.In("FilterScale");
  const auto weights =
      ReadInt8Weights(made, *Constant(made.In("Filter")),
                      scale.empty() ? nullptr : Constant(scale), nullptr);
  return weights.ok() && weights->LargestSum() < (int64_t{1} << 31) / 256;
}

// One number for each channel, constant, perhaps in another shape.
bool Int8Program::TakeBias(const OpDesc& add, Chain* chain) const {
  if (chain->has_bias || chain->has_norm || chain->has_residual ||
      chain->channels == 0 || add.In("X") != chain->out)
    return false;
  std::string name = add.In("Y");
  const Shape* shape = ShapeOf(name);
  const Shape* sum = ShapeOf(chain->out);
  if (shape == nullptr || sum == nullptr) return false;
  // The axis of the sum that the bias' axis of channels meets.
  const int32_t axis = add.Attr<int32_t>("axis");
  const size_t start = axis < 0
                           ? sum->size() - std::min(sum->size(), shape->size())
                           : static_cast<size_t>(axis);
  const size_t channel = chain->is_conv ? 1 : sum->size() - 1;
  for (size_t i = 0; i < shape->size(); ++i)
    if ((*shape)[i] != (start + i == channel ? chain->channels : 1))
      return false;
  if (start > channel || start + shape->size() <= channel) return false;
  for (const char* type : {"reshape2", "unsqueeze2", "reshape"})
    if (const int writer = WriterOf(name, type); writer != kNone)
      name = op(writer).In("X");
  const Tensor* bias = Constant(name);
  if (bias == nullptr || bias->dtype() != DType::kFloat32 ||
      bias->size() != chain->channels)
    return false;
  chain->made.SetInput("Bias", {name});
  chain->has_bias = true;
  return true;
}

bool Int8Program::TakeResidual(const OpDesc& add, Chain* chain) const {
  if (chain->has_residual || chain->channels == 0) return false;
  const std::string& other = add.In(add.In("X") == chain->out ? "Y" : "X");
  const Shape *one = ShapeOf(chain->out), *two = ShapeOf(other);
  if (other == chain->out || one == nullptr || two == nullptr || *one != *two)
    return false;
  std::string name = other;
  if (const int from = WriterOf(other, "int8_dequantize"); from != kNone) {
    name = op(from).In("X");
    ReadFrom(op(from), "y", &chain->made);
  }
  chain->made.SetInput("ResidualData", {name});
  chain->has_residual = true;
  return true;
}

bool Int8Program::TakeNorm(const OpDesc& norm, Chain* chain) const {
  const bool fixed =
      norm.Attr<bool>("is_test") || norm.Attr<bool>("use_global_stats");
  if (chain->has_norm || chain->has_residual || !chain->is_conv || !fixed ||
      norm.Attr<std::string>("data_layout") == "NHWC")
    return false;
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance"}) {
    const Tensor* tensor = graph_->IsWanted(norm.In(slot))
                               ? context_.value(norm.In(slot))
                               : nullptr;
    if (tensor == nullptr || tensor->dtype() != DType::kFloat32 ||
        tensor->size() != chain->channels)
      return false;
    chain->made.SetInput(std::string("Norm") + slot, {norm.In(slot)});
  }
  chain->made.attrs["norm_epsilon"] = norm.Attr<float>("epsilon");
  chain->has_norm = true;
  return true;
}

bool Int8Program::TakeNext(int next, Chain* chain) const {
  const OpDesc& from = op(next);
  if (from.type == "int8_quantize") {
    for (const char* name : {"out_factor", "out_zero", "out_low", "out_high"})
      chain->made.attrs[name] = from.attrs.at(name);
    chain->is_quantized = true;
    chain->out = from.Out("Out");
    return true;
  }
  if (chain->has_activation) return false;
  if (ReadActivation(from, &chain->made)) {
    chain->has_activation = true;
    chain->out = from.Out("Out");
    return true;
  }
  if (from.type == "batch_norm") {
    if (!TakeNorm(from, chain)) return false;
    chain->out = from.Out("Y");
    return true;
  }
  if (from.type != "elementwise_add" ||
      (!TakeBias(from, chain) && !TakeResidual(from, chain)))
    return false;
  chain->out = from.Out("Out");
  return true;
}

void Int8Program::Follow(Chain* chain) const {
  while (!chain->is_quantized) {
    const int next = OnlyReader(chain->out);
    if (next == kNone || At(next) <= chain->first || !TakeNext(next, chain))
      return;
    chain->covered.push_back(At(next));
  }
}

// Nobody writes what the chain reads before it runs at its new place, and the
// residual is there by then.
bool Int8Program::IsSafe(const Chain& chain) const {
  const size_t last =
      chain.covered.empty() ? chain.first : chain.covered.back();
  const std::vector<std::string> read = NamesOf(chain.made.inputs);
  for (size_t i = chain.first + 1; i < graph_->size(); ++i) {
    if (graph_->IsRemoved(i) ||
        std::count(chain.covered.begin(), chain.covered.end(), i) > 0)
      continue;
    for (const std::string& written : NamesOf(graph_->op(i).outputs)) {
      if (std::count(read.begin(), read.end(), written) == 0) continue;
      const bool residual = chain.made.In("ResidualData") == written;
      if (residual ? i > last : i < last) return false;
    }
  }
  return true;
}

void Int8Program::PutChain(const Chain& chain) {
  OpDesc made = chain.made;
  const bool product = chain.channels > 0;
  made.SetOutput(product ? "Output" : "Out", {chain.out});
  std::vector<size_t> others = {chain.first};
  others.insert(others.end(), chain.covered.begin(), chain.covered.end());
  const size_t last = others.back();
  others.pop_back();
  if (chain.elsewhere != kNone) others.push_back(At(chain.elsewhere));
  if (chain.is_quantized) MakeBytes(chain.out);
  Put(static_cast<int>(last), std::move(made), others);
}

// Others want the number too that an int8_quantize reads: the op gives both.
void Int8Program::GiveBoth(Chain* chain) const {
  if (chain->is_quantized) return;
  int quantize = kNone;
  for (const size_t i : graph_->Readers(chain->out)) {
    if (graph_->op(i).type != "int8_quantize") continue;
    if (quantize != kNone) return;
    quantize = static_cast<int>(i);
  }
  if (quantize == kNone) return;
  chain->made.SetOutput("OutputFloat", {chain->out});
  TakeNext(quantize, chain);
  chain->elsewhere = quantize;
}

void Int8Program::TakeProducts() {
  for (size_t i = 0; i < graph_->size(); ++i) {
    if (graph_->IsRemoved(i)) continue;
    Chain chain;
    if (!FindProduct(i, &chain) || !FindScales(&chain) || !ReadsWeights(chain))
      continue;
    Follow(&chain);
    if (!IsSafe(chain)) continue;
    GiveBoth(&chain);
    PutChain(chain);
  }
}

// A sum or product of two dequantized tensors.
bool Int8Program::FindPair(size_t at, Chain* chain) const {
  const OpDesc& from = graph_->op(at);
  const bool adds = from.type == "elementwise_add";
  if (!adds && from.type != "elementwise_mul") return false;
  std::string x = from.In("X"), y = from.In("Y");
  const Shape *one = ShapeOf(x), *two = ShapeOf(y);
  if (one == nullptr || two == nullptr) return false;
  const bool per_channel = one->size() == 4 && two->size() == 4 &&
                           (*two)[0] == (*one)[0] && (*two)[1] == (*one)[1] &&
                           (*two)[2] == 1 && (*two)[3] == 1;
  if (*one != *two && !per_channel) return false;
  const int a = WriterOf(x, "int8_dequantize");
  const int b = WriterOf(y, "int8_dequantize");
  if (a == kNone || b == kNone) return false;
  chain->first = at;
  chain->out = from.Out("Out");
  chain->made.type = "int8_elementwise";
  chain->made.attrs["operation"] = std::string(adds ? "add" : "mul");
  chain->made.SetInput("X", {op(a).In("X")});
  chain->made.SetInput("Y", {op(b).In("X")});
  ReadFrom(op(a), "x", &chain->made);
  ReadFrom(op(b), "y", &chain->made);
  return true;
}

bool Int8Program::FindAverage(size_t at, Chain* chain) const {
  const OpDesc& from = graph_->op(at);
  const Shape* shape = ShapeOf(from.In("X"));
  if (from.type != "pool2d" ||
      from.Attr<std::string>("pooling_type") != "avg" ||
      from.Attr<std::string>("data_format") == "NHWC" || shape == nullptr ||
      shape->size() != 4)
    return false;
  const int dequantize = WriterOf(from.In("X"), "int8_dequantize");
  if (dequantize == kNone) return false;
  chain->first = at;
  chain->out = from.Out("Out");
  chain->made.type = "int8_pool2d";
  CopyAttrs(from, kPoolAttrs, &chain->made);
  chain->made.SetInput("X", {op(dequantize).In("X")});
  ReadFrom(op(dequantize), "x", &chain->made);
  return true;
}

bool Int8Program::FindActivation(size_t at, Chain* chain) const {
  const OpDesc& from = graph_->op(at);
  const int dequantize = WriterOf(from.In("X"), "int8_dequantize");
  if (dequantize == kNone || !ReadActivation(from, &chain->made)) return false;
  chain->first = at;
  chain->out = from.Out("Out");
  chain->has_activation = true;
  chain->made.type = "int8_quantize";
  chain->made.SetInput("X", {op(dequantize).In("X")});
  ReadFrom(op(dequantize), "x", &chain->made);
  return true;
}

void Int8Program::TakeElementwise() {
  for (size_t i = 0; i < graph_->size(); ++i) {
    if (graph_->IsRemoved(i)) continue;
    Chain pair, average, activation;
    if (FindPair(i, &pair)) {
      Follow(&pair);
      if (IsSafe(pair)) PutChain(pair);
    } else if (FindAverage(i, &average)) {
      Follow(&average);
      if (IsSafe(average)) PutChain(average);
    } else if (FindActivation(i, &activation)) {
      Follow(&activation);
      if (activation.is_quantized && IsSafe(activation)) PutChain(activation);
    }
  }
}

}  // namespace pd
