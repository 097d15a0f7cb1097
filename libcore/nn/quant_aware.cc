// SPDX-License-Identifier: Apache-2.0
// The ops of PaddlePaddle's ImperativeQuantAware:
//   x -> fake_quantize_dequantize_moving_average_abs_max -> conv2d -> ...
//   w -> fake_channel_wise_quantize_dequantize_abs_max -----^
// and a moving_average_abs_max_scale behind every layer, which only records the
// range of its result (PaddlePaddle's out_threshold).
// Names are PaddlePaddle's too. In a layer that the job calls conv1:
//   conv1._fake_quant_weight._scale
//   conv1._fake_quant_input._scale, ._state, ._accum
//   conv1._ma_output_scale._scale, ._state, ._accum
// and in one without a name, whose weight is conv2d_0.w_0:
//   conv2d_0.w_0.scale_0
//   conv2d_0.scale_0, .state_0, .accum_0
// First values are those of its layers (FakeQuantMovingAverageAbsMax, ...).
#include "libcore/nn/quant_aware.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/initializer.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_text.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace {

// A layer's op with a weight: its slots, and the weight's axis of channels.
struct WeightOp {
  job::QuantLayer::Kind kind;
  const char *input, *weight;
  int32_t axis;
};

const WeightOp* FindWeightOp(const std::string& type) {
  static const auto* const kOps = new std::map<std::string, WeightOp>{
      {"conv2d", {job::QuantLayer::conv2d, "Input", "Filter", 0}},
      {"depthwise_conv2d", {job::QuantLayer::conv2d, "Input", "Filter", 0}},
      {"conv2d_transpose",
       {job::QuantLayer::conv2d_transpose, "Input", "Filter", 1}},
      {"depthwise_conv2d_transpose",
       {job::QuantLayer::conv2d_transpose, "Input", "Filter", 1}},
      {"matmul_v2", {job::QuantLayer::linear, "X", "Y", 1}},
      {"mul", {job::QuantLayer::linear, "X", "Y", 1}}};
  const auto it = kOps->find(type);
  return it == kOps->end() ? nullptr : &it->second;
}

// PaddlePaddle's name of the layer that has this weight.
struct Owner {
  std::string prefix;
  bool structured = true;  // the job gives the layer its name

  explicit Owner(const std::string& weight) : prefix(weight) {
    const size_t dot = weight.rfind('.');
    if (dot == std::string::npos) return;
    const std::string member = weight.substr(dot + 1);
    const bool numbered =
        absl::StartsWith(member, "w_") && member.size() > 2 &&
        absl::ascii_isdigit(static_cast<unsigned char>(member[2]));
    if (member != "weight" && !numbered) return;
    prefix = weight.substr(0, dot);
    structured = !numbered;
  }
  Owner(std::string name, bool named)
      : prefix(std::move(name)), structured(named) {}

  // "conv1._fake_quant_input._scale" or "conv2d_0.scale_0"
  std::string Variable(const char* layer, const char* variable) const {
    return structured ? absl::StrCat(prefix, ".", layer, "._", variable)
                      : absl::StrCat(prefix, ".", variable, "_0");
  }
};

struct First {
  double scale, state, accum;
};

class QuantAware {
 public:
  QuantAware(const LoadedJob& job, const OpRegistry& registry,
             BuiltModel* built)
      : job_(job),
        quant_(job.proto().quant()),
        registry_(registry),
        built_(built),
        startup_(&registry, &built->startup) {
    for (const LayerInfo& layer : built->layers)
      layers_.emplace(
          absl::StrCat("/", absl::StrReplaceAll(layer.name, {{".", "/"}}), "/"),
          &layer);
    for (const int kind : quant_.quantizable_layer_type()) kinds_.insert(kind);
  }

  absl::Status Run() {
    PD_RETURN_IF_ERROR(Rewrite(&built_->main, /*test=*/false));
    PD_RETURN_IF_ERROR(CheckSkips());
    if (weights_.empty())
      return job_.At(
          InvalidArgument(
              "the model has no layer to quantize%s",
              seen_.empty() ? "; expected a conv2d, linear or conv2d_transpose "
                              "of the kinds asked for, with a weight"
                            : ": 'skip' leaves all of them out"),
          quant_);
    return Rewrite(&built_->test, /*test=*/true);
  }

 private:
  absl::Status Rewrite(ProgramDesc* program, bool test) {
    test_ = test;
    done_.clear();
    const std::vector<OpDesc> ops = std::move(program->global().ops);
    program->global().ops.clear();
    BlockBuilder main(&registry_, program);
    main_ = &main;
    // The last op that writes each variable, and the layers that end there.
    std::map<std::string, size_t> makers;
    for (size_t i = 0; i < ops.size(); ++i)
      for (const auto& [slot, names] : ops[i].outputs)
        for (const std::string& name : names) makers[name] = i;
    std::map<size_t, const LayerInfo*> ends;
    for (const LayerInfo& layer : built_->layers) {
      const auto maker = makers.find(layer.output);
      if (maker != makers.end()) ends.emplace(maker->second, &layer);
    }
    for (size_t i = 0; i < ops.size(); ++i) {
      OpDesc op = ops[i];
      const LayerInfo* layer = LayerOf(op);
      if (layer != nullptr) PD_RETURN_IF_ERROR(Quantize(*layer, &op));
      main.block().ops.push_back(std::move(op));
      const auto end = ends.find(i);
      if (end != ends.end() && end->second == layer)
        PD_RETURN_IF_ERROR(Observe(*layer));
    }
    return absl::OkStatus();
  }

  const LayerInfo* LayerOf(const OpDesc& op) const {
    const auto it = layers_.find(op.AttrOr<std::string>("op_namescope", ""));
    return it == layers_.end() ? nullptr : it->second;
  }

  // The op's kind where it is a product of an activation and a weight.
  const WeightOp* Quantizable(const OpDesc& op) const {
    const WeightOp* known = FindWeightOp(op.type);
    if (known == nullptr) return nullptr;
    if (!kinds_.empty() && kinds_.count(known->kind) == 0) return nullptr;
    const VarDesc* weight = main_->FindVar(op.In(known->weight));
    const VarDesc* input = main_->FindVar(op.In(known->input));
    if (weight == nullptr || input == nullptr || !weight->is_parameter ||
        input->is_parameter || weight->dtype != DType::kFloat32 ||
        input->dtype != DType::kFloat32)
      return nullptr;
    // A linear layer's weight is [in, out]; another product is none.
    if (known->kind == job::QuantLayer::linear &&
        (weight->shape.size() != 2 || op.AttrOr("trans_y", false) ||
         op.AttrOr("trans_x", false)))
      return nullptr;
    return known;
  }

  bool Skips(const std::vector<std::string>& names) {
    seen_.insert(names.begin(), names.end());
    bool skips = false;
    for (const std::string& pattern : quant_.skip())
      for (const std::string& name : names)
        if (pattern == name || fnmatch(pattern.c_str(), name.c_str(), 0) == 0) {
          used_.insert(pattern);
          skips = true;
        }
    return skips;
  }

  absl::Status CheckSkips() const {
    for (int i = 0; i < quant_.skip_size(); ++i) {
      const std::string& pattern = quant_.skip(i);
      if (used_.count(pattern) > 0) continue;
      const std::string nearest = Nearest(pattern, seen_);
      return job_.At(
          InvalidArgument(
              "'%s' matches no layer that would be quantized%s", pattern,
              nearest.empty()
                  ? ""
                  : absl::StrCat(", did you mean '", nearest, "'?")),
          quant_, ElementPath("skip", i));
    }
    return absl::OkStatus();
  }

  absl::Status Quantize(const LayerInfo& layer, OpDesc* op) {
    const WeightOp* known = Quantizable(*op);
    if (known == nullptr) return absl::OkStatus();
    const std::string weight = op->In(known->weight);
    const Owner owner(weight);
    if (Skips({layer.name, owner.prefix})) return absl::OkStatus();
    // Only what training has seen has a scale.
    if (test_ && weights_.count(weight) == 0) return absl::OkStatus();
    scope_ = op->AttrOr<std::string>("op_namescope", "");
    const std::string input = op->In(known->input);
    if (!test_) {
      const auto shared = done_.find(input);
      weights_.emplace(weight, shared == done_.end() ? owner : shared->second);
    }
    PD_RETURN_IF_ERROR(QuantizeInput(weights_.at(weight), input));
    PD_RETURN_IF_ERROR(QuantizeWeight(owner, weight, known->axis));
    op->SetInput(known->input, {Quantized(input)});
    op->SetInput(known->weight, {Quantized(weight)});
    return absl::OkStatus();
  }

  static std::string Quantized(const std::string& name) {
    return absl::StrCat(name, ".quantized.dequantized");
  }

  absl::Status QuantizeInput(const Owner& owner, const std::string& x) {
    if (!done_.emplace(x, owner).second) return absl::OkStatus();
    const bool moving = quant_.activation_quantize_type() ==
                        job::ActivationScale::moving_average_abs_max;
    OpDesc op = NewOp(moving ? "fake_quantize_dequantize_moving_average_abs_max"
                             : "fake_quantize_dequantize_abs_max",
                      x, quant_.activation_bits());
    if (moving)
      return AddAverage(owner, "_fake_quant_input", {0.001, 1, 1}, "InScale",
                        std::move(op));
    op.SetOutput("OutScale", {absl::StrCat(x, "@scale")});
    return main_->Append(std::move(op));
  }

  absl::Status QuantizeWeight(const Owner& owner, const std::string& weight,
                              int32_t axis) {
    if (!done_.emplace(weight, owner).second) return absl::OkStatus();
    const bool channels =
        quant_.weight_quantize_type() == job::WeightScale::channel_wise_abs_max;
    OpDesc op = NewOp(channels ? "fake_channel_wise_quantize_dequantize_abs_max"
                               : "fake_quantize_dequantize_abs_max",
                      weight, quant_.weight_bits());
    if (channels) op.attrs["quant_axis"] = axis;
    const std::string scale =
        owner.structured ? owner.Variable("_fake_quant_weight", "scale")
                         : absl::StrCat(weight, ".scale_0");
    const Shape& shape = main_->FindVar(weight)->shape;
    const Shape scales = {channels ? shape[static_cast<size_t>(axis)] : 1};
    PD_RETURN_IF_ERROR(Keep(scale, scales, channels ? 0.0 : 0.001));
    op.SetOutput("OutScale", {scale});
    return main_->Append(std::move(op));
  }

  absl::Status Observe(const LayerInfo& layer) {
    const VarDesc* var = main_->FindVar(layer.output);
    if (var->dtype != DType::kFloat32 || var->kind != VarKind::kLodTensor ||
        var->persistable)
      return absl::OkStatus();
    const std::string mark = absl::StrCat(layer.output, "@observed");
    const Owner owner(absl::StrReplaceAll(layer.name, {{"/", "."}}), true);
    if (!done_.emplace(mark, owner).second) return absl::OkStatus();
    OpDesc op;
    op.type = "moving_average_abs_max_scale";
    op.SetInput("X", {layer.output});
    scope_ =
        absl::StrCat("/", absl::StrReplaceAll(layer.name, {{".", "/"}}), "/");
    op.attrs["op_namescope"] = scope_;
    return AddAverage(owner, "_ma_output_scale", {0, 0, 0}, "", std::move(op));
  }

  OpDesc NewOp(const char* type, const std::string& x, int32_t bits) const {
    OpDesc op;
    op.type = type;
    op.SetInput("X", {x});
    op.SetOutput("Out", {Quantized(x)});
    op.attrs["bit_length"] = bits;
    op.attrs["op_namescope"] = scope_;
    return op;
  }

  // Adds the op with the variables of a moving average.
  absl::Status AddAverage(const Owner& owner, const char* layer,
                          const First& first, const char* in_scale, OpDesc op) {
    const std::string scale = owner.Variable(layer, "scale");
    const std::string state = owner.Variable(layer, "state");
    const std::string accum = owner.Variable(layer, "accum");
    PD_RETURN_IF_ERROR(Keep(scale, {1}, first.scale));
    PD_RETURN_IF_ERROR(Keep(state, {1}, first.state));
    PD_RETURN_IF_ERROR(Keep(accum, {1}, first.accum));
    if (*in_scale != '\0') op.SetInput(in_scale, {scale});
    op.SetInput("InState", {state});
    op.SetInput("InAccum", {accum});
    op.SetOutput("OutScale", {scale});
    op.SetOutput("OutState", {state});
    op.SetOutput("OutAccum", {accum});
    op.attrs["moving_rate"] = static_cast<float>(quant_.moving_rate());
    op.attrs["is_test"] = test_;
    return main_->Append(std::move(op));
  }

  // Declares a variable that lives on, and its first values.
  absl::Status Keep(const std::string& name, const Shape& shape, double value) {
    if (const VarDesc* there = main_->FindVar(name)) {
      if (there->persistable && there->shape == shape && kept_.count(name) > 0)
        return absl::OkStatus();
      return job_.At(InvalidArgument("there is a variable '%s' already", name),
                     quant_);
    }
    VarDesc var;
    var.name = name;
    var.shape = shape;
    // Parameters that nobody trains, as PaddlePaddle has them.
    var.persistable = var.is_parameter = true;
    var.stop_gradient = true;
    main_->AddVar(var);
    if (!kept_.insert(name).second) return absl::OkStatus();
    startup_.AddVar(var);
    return AppendInitializer(ConstantInitializer(value), name, shape,
                             DType::kFloat32, &startup_);
  }

  const LoadedJob& job_;
  const job::Quant& quant_;
  const OpRegistry& registry_;
  BuiltModel* built_;
  BlockBuilder startup_;
  BlockBuilder* main_ = nullptr;
  bool test_ = false;
  std::map<std::string, const LayerInfo*> layers_;  // by op_namescope
  std::set<int> kinds_;
  std::set<std::string> seen_, used_, kept_;
  std::string scope_;                     // of the ops that are added
  std::map<std::string, Owner> done_;     // variables with their ops
  std::map<std::string, Owner> weights_;  // and whose scale its input has
};

}  // namespace

absl::Status SimulateQuantization(const LoadedJob& job,
                                  const OpRegistry& registry,
                                  BuiltModel* built) {
  return QuantAware(job, registry, built).Run();
}

}  // namespace pd
