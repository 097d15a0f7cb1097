// SPDX-License-Identifier: Apache-2.0
// conv2d [+ elementwise_add of a bias per channel] -> batch_norm
//   -> conv2d -> elementwise_add
//
// The same with depthwise_conv2d. The filter and the bias are multiplied with
// what the batch norm multiplies by, in float64, once.
#include "libcore/passes/fold_batch_norms.h"

#include <cmath>
#include <functional>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/passes/pattern.h"

namespace pd {
namespace {

class Folder {
 public:
  Folder(const PassContext& context, ProgramDesc* program, FoldFactors* factors)
      : context_(context), graph_(context, program), factors_(factors) {}

  absl::StatusOr<int> Run() {
    const Pattern chain = Chain();
    const Matcher matcher(&graph_, {&chain});
    int folded = 0;
    for (size_t i = 0; i < graph_.size(); ++i) {
      if (graph_.IsRemoved(i)) continue;
      const std::optional<Match> match = matcher.MatchAt(chain, i);
      if (!match.has_value() || match->HasGradients()) continue;
      PD_RETURN_IF_ERROR(Fold(*match));
      ++folded;
    }
    graph_.Finish();
    return folded;
  }

 private:
  Pattern Chain() const {
    return {
        PatternOp{"conv", {"conv2d", "depthwise_conv2d"}, {"Input"}, "Output"}
            .If([this](const Match&, const OpDesc& conv) {
              return IsConstant(conv.In("Filter"), 4) &&
                     conv.Attr<std::string>("data_format") != "NHWC";
            }),
        PatternOp{"bias", {"elementwise_add"}, {"X"}, "Out"}
            .Optional()
            .Attr("axis", int32_t{1})
            .If([this](const Match&, const OpDesc& add) {
              return IsConstant(add.In("Y"), 1);
            }),
        PatternOp{"norm", {"batch_norm"}, {"X"}, "Y"}.If(
            [this](const Match& match, const OpDesc& norm) {
              return MayFold(match.op("conv"), norm);
            })};
  }

  // Whether only one op reads it, and finds the same values in every run.
  bool IsConstant(const std::string& name, size_t rank) const {
    const VarDesc* var = graph_.Var(name);
    return var != nullptr && var->persistable &&
           var->dtype == DType::kFloat32 && var->shape.size() == rank &&
           !IsDynamic(var->shape) && graph_.IsUnwritten(name) &&
           graph_.Readers(name).size() == 1 && context_.keep.count(name) == 0 &&
           (context_.value(name) != nullptr ||
            context_.value(name + kFolded) != nullptr);
  }

  // The statistics are read and written: by the batch norm alone.
  bool IsStatistic(const std::string& name) const {
    const Tensor* value =
        graph_.Readers(name).size() == 1 ? context_.value(name) : nullptr;
    return value != nullptr && value->dtype() == DType::kFloat32;
  }

  bool UsesGivenStatistics(const OpDesc& norm) const {
    return norm.Attr<bool>("use_global_stats") ||
           (norm.Attr<bool>("is_test") &&
            !norm.Attr<bool>("trainable_statistics"));
  }

  bool MayFold(const OpDesc& conv, const OpDesc& norm) const {
    return UsesGivenStatistics(norm) &&
           norm.Attr<std::string>("data_layout") == "NCHW" &&
           IsStatistic(norm.In("Mean")) && IsStatistic(norm.In("Variance")) &&
           IsConstant(norm.In("Scale"), 1) && IsConstant(norm.In("Bias"), 1) &&
           graph_.Var(conv.In("Filter"))->shape[0] ==
               graph_.Var(norm.In("Scale"))->shape[0];
  }

  // The factor and the addend of each channel.
  struct Factors {
    std::vector<double> by, plus;
  };
  Factors FactorsOf(const Match& match) const {
    const OpDesc& norm = match.op("norm");
    const auto values = [&](const OpDesc& op, const char* slot) {
      return ToArray(*context_.value(op.In(slot)));
    };
    const Array scale = values(norm, "Scale"), shift = values(norm, "Bias"),
                mean = values(norm, "Mean"),
                variance = values(norm, "Variance");
    Array bias;
    if (match.Has("bias")) bias = values(match.op("bias"), "Y");
    const double epsilon = norm.Attr<float>("epsilon");
    Factors factors;
    for (int64_t c = 0; c < scale.size(); ++c) {
      const double by = scale.data<float>()[c] /
                        std::sqrt(variance.data<float>()[c] + epsilon);
      const double b = bias.bytes != nullptr ? bias.data<float>()[c] : 0.0;
      factors.by.push_back(by);
      factors.plus.push_back((b - mean.data<float>()[c]) * by +
                             shift.data<float>()[c]);
    }
    return factors;
  }

  // The name that ops find by it what `make` writes.
  absl::StatusOr<std::string> Define(
      const std::string& of, const std::function<void(float* out)>& make) {
    VarDesc var = *graph_.Var(of);
    PD_ASSIGN_OR_RETURN(var.name, context_.define(of, make));
    graph_.Declare(var);
    return var.name;
  }

  absl::Status Fold(const Match& match) {
    OpDesc conv = match.op("conv");
    const std::string& filter = conv.In("Filter");
    // Variables made for another plan are reused: the old values may be gone.
    const auto multiply = [&](float* out) {
      const std::vector<double> by = FactorsOf(match).by;
      const Tensor& old = *context_.value(filter);
      const Array rows = old.layout() == nullptr ? Array() : ToArray(old);
      const float* from =
          rows.bytes == nullptr ? old.data<float>() : rows.data<float>();
      const size_t each = static_cast<size_t>(old.size()) / by.size();
      for (size_t c = 0; c < by.size(); ++c)
        for (size_t i = c * each; i < (c + 1) * each; ++i)
          out[i] = static_cast<float>(from[i] * by[c]);
      if (factors_ != nullptr) (*factors_)[filter] = by;
    };
    const auto add = [&](float* out) {
      for (const double plus : FactorsOf(match).plus)
        *out++ = static_cast<float>(plus);
    };
    PD_ASSIGN_OR_RETURN(const std::string made, Define(filter, multiply));
    PD_ASSIGN_OR_RETURN(const std::string bias,
                        Define(match.op("norm").In("Bias"), add));
    conv.SetInput("Filter", {made});
    Rewrite(match, std::move(conv), bias);
    return absl::OkStatus();
  }

  // The batch norm's place becomes the addition of the bias.
  void Rewrite(const Match& match, OpDesc conv, const std::string& bias) {
    const OpDesc& norm = match.op("norm");
    OpDesc add;
    add.type = "elementwise_add";
    add.SetInput("X", conv.Output("Output"));
    add.SetInput("Y", {bias});
    add.SetOutput("Out", norm.Output("Y"));
    add.attrs = {{"axis", int32_t{1}},
                 {std::string(kOpRoleAttr), int32_t{kRoleForward}}};
    CopyOpAttrs({&norm}, &add);
    std::vector<size_t> others;
    if (match.Has("bias")) others.push_back(match.at("bias"));
    graph_.Replace(match.at("conv"), std::move(conv), {});
    graph_.Replace(match.at("norm"), std::move(add), others);
  }

  const PassContext& context_;
  OpGraph graph_;
  FoldFactors* const factors_;
};

}  // namespace

absl::StatusOr<int> FoldBatchNorms(const PassContext& context,
                                   ProgramDesc* program, FoldFactors* factors) {
  return Folder(context, program, factors).Run();
}

absl::Status FoldBatchNorms(const PassContext& context, ProgramDesc* program) {
  if (context.define == nullptr) return absl::OkStatus();
  return FoldBatchNorms(context, program, nullptr).status();
}

}  // namespace pd
