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
#include "libcore/passes/op_graph.h"

namespace pd {
namespace {

struct Chain {
  size_t conv = 0, norm = 0;
  int bias_add = kNone;
};

class Folder {
 public:
  Folder(const PassContext& context, ProgramDesc* program, FoldFactors* factors)
      : context_(context), graph_(context, program), factors_(factors) {}

  absl::StatusOr<int> Run() {
    int folded = 0;
    for (size_t i = 0; i < graph_.size(); ++i) {
      Chain chain;
      if (graph_.IsRemoved(i) || !FindChain(i, &chain)) continue;
      PD_RETURN_IF_ERROR(Fold(chain));
      ++folded;
    }
    graph_.Finish();
    return folded;
  }

 private:
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
    return norm.AttrOr("use_global_stats", false) ||
           (norm.AttrOr("is_test", false) &&
            !norm.AttrOr("trainable_statistics", false));
  }

  bool IsBiasAdd(const OpDesc& op) const {
    return op.type == "elementwise_add" && IsConstant(op.In("Y"), 1) &&
           op.AttrOr<int32_t>("axis", -1) == 1;
  }

  // Whether op `i` is a batch_norm that can be folded, with its chain.
  bool FindChain(size_t i, Chain* chain) const {
    const OpDesc& norm = graph_.op(i);
    if (norm.type != "batch_norm" || !UsesGivenStatistics(norm) ||
        norm.AttrOr<std::string>("data_layout", "NCHW") != "NCHW" ||
        !IsStatistic(norm.In("Mean")) || !IsStatistic(norm.In("Variance")))
      return false;
    for (const char* slot : {"Scale", "Bias"})
      if (norm.Input(slot).empty() || !IsConstant(norm.In(slot), 1))
        return false;
    chain->norm = i;
    std::string input = norm.In("X");
    int maker = MakerFor(input, i);
    if (maker != kNone && IsBiasAdd(graph_.op(At(maker)))) {
      chain->bias_add = maker;
      input = graph_.op(At(maker)).In("X");
      maker = MakerFor(input, At(maker));
    }
    if (maker == kNone) return false;
    chain->conv = At(maker);
    const OpDesc& conv = graph_.op(chain->conv);
    return (conv.type == "conv2d" || conv.type == "depthwise_conv2d") &&
           IsConstant(conv.In("Filter"), 4) &&
           graph_.Var(conv.In("Filter"))->shape[0] ==
               graph_.Var(norm.In("Scale"))->shape[0] &&
           conv.AttrOr<std::string>("data_format", "NCHW") != "NHWC";
  }

  // The op that makes what `reader` alone reads.
  int MakerFor(const std::string& name, size_t reader) const {
    return graph_.OnlyReader(name) == static_cast<int>(reader)
               ? graph_.OnlyWriter(name)
               : kNone;
  }

  // The factor and the addend of each channel.
  struct Factors {
    std::vector<double> by, plus;
  };
  Factors FactorsOf(const Chain& chain) const {
    const OpDesc& norm = graph_.op(chain.norm);
    const auto values = [&](const OpDesc& op, const char* slot) {
      return ToArray(*context_.value(op.In(slot)));
    };
    const Array scale = values(norm, "Scale"), shift = values(norm, "Bias"),
                mean = values(norm, "Mean"),
                variance = values(norm, "Variance");
    Array bias;
    if (chain.bias_add != kNone)
      bias = values(graph_.op(At(chain.bias_add)), "Y");
    const double epsilon = norm.AttrOr<float>("epsilon", 1e-5f);
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

  absl::Status Fold(const Chain& chain) {
    OpDesc conv = graph_.op(chain.conv);
    const std::string& filter = conv.In("Filter");
    // Variables made for another plan are reused: the old values may be gone.
    const auto multiply = [&](float* out) {
      const std::vector<double> by = FactorsOf(chain).by;
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
      for (const double plus : FactorsOf(chain).plus)
        *out++ = static_cast<float>(plus);
    };
    PD_ASSIGN_OR_RETURN(const std::string made, Define(filter, multiply));
    PD_ASSIGN_OR_RETURN(const std::string bias,
                        Define(graph_.op(chain.norm).In("Bias"), add));
    conv.SetInput("Filter", {made});
    Rewrite(chain, std::move(conv), bias);
    return absl::OkStatus();
  }

  // The batch norm's place becomes the addition of the bias.
  void Rewrite(const Chain& chain, OpDesc conv, const std::string& bias) {
    OpDesc add;
    add.type = "elementwise_add";
    add.SetInput("X", {conv.Out("Output")});
    add.SetInput("Y", {bias});
    add.SetOutput("Out", {graph_.op(chain.norm).Out("Y")});
    add.attrs = {{"axis", int32_t{1}},
                 {std::string(kOpRoleAttr), int32_t{kRoleForward}}};
    CopyOpAttrs({&graph_.op(chain.norm)}, &add);
    graph_.Replace(chain.conv, std::move(conv), {});
    std::vector<size_t> others;
    if (chain.bias_add != kNone) others.push_back(At(chain.bias_add));
    graph_.Replace(chain.norm, std::move(add), others);
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
