// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/optimize.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// A chain conv -> (bias add ->) batch_norm, by the numbers of its ops.
struct Chain {
  size_t conv = 0;
  int bias_add = -1;
  size_t norm = 0;
};

class Folder {
 public:
  Folder(InferenceModel* model, FoldFactors* factors)
      : model_(model), block_(model->program.global()), factors_(factors) {}

  absl::StatusOr<int> Run() {
    int folded = 0;
    for (size_t i = 0; i < block_.ops.size(); ++i) {
      Chain chain;
      if (!FindChain(i, &chain)) continue;
      PD_RETURN_IF_ERROR(Fold(chain));
      ++folded;
    }
    std::vector<OpDesc> kept;
    for (OpDesc& op : block_.ops)
      if (!op.type.empty()) kept.push_back(std::move(op));
    block_.ops = std::move(kept);
    DropUnused(Names(), &model_->program);  // block_ is gone after it
    const BlockDesc& block = model_->program.global();
    for (auto it = model_->params.begin(); it != model_->params.end();)
      it = block.FindVar(it->first) == nullptr ? model_->params.erase(it)
                                               : std::next(it);
    return folded;
  }

 private:
  std::vector<std::string> Names() const {
    std::vector<std::string> names = model_->names.feeds;
    names.insert(names.end(), model_->names.fetches.begin(),
                 model_->names.fetches.end());
    return names;
  }

  // How many ops read the variable; a fetch counts as one more.
  int Readers(const std::string& name) const {
    int readers = 0;
    for (const OpDesc& op : block_.ops)
      for (const auto& [slot, names] : op.inputs)
        for (const std::string& n : names) readers += n == name;
    for (const std::string& n : model_->names.fetches) readers += n == name;
    return readers;
  }

  // The op that makes the variable, -1 when there is none or several.
  int Maker(const std::string& name) const {
    int maker = -1;
    for (size_t i = 0; i < block_.ops.size(); ++i)
      for (const auto& [slot, names] : block_.ops[i].outputs)
        for (const std::string& n : names) {
          if (n != name) continue;
          if (maker >= 0) return -1;
          maker = static_cast<int>(i);
        }
    return maker;
  }

  const Array* Param(const std::string& name) const {
    const auto it = model_->params.find(name);
    return it == model_->params.end() || it->second.dtype != DType::kFloat32
               ? nullptr
               : &it->second;
  }

  // Whether op `i` is a batch_norm that can be folded, with its chain.
  bool FindChain(size_t i, Chain* chain) const {
    const OpDesc& norm = block_.ops[i];
    if (norm.type != "batch_norm" ||
        norm.AttrOr<std::string>("data_layout", "NCHW") != "NCHW")
      return false;
    for (const char* slot : {"Scale", "Bias", "Mean", "Variance"})
      if (Param(norm.In(slot)) == nullptr) return false;
    if (Readers(norm.In("Bias")) != 1) return false;  // it is overwritten
    std::string input = norm.In("X");
    chain->norm = i;
    int maker = Readers(input) == 1 ? Maker(input) : -1;
    if (maker >= 0 && IsBiasAdd(block_.ops[static_cast<size_t>(maker)])) {
      chain->bias_add = maker;
      input = block_.ops[static_cast<size_t>(maker)].In("X");
      maker = Readers(input) == 1 ? Maker(input) : -1;
    }
    if (maker < 0) return false;
    chain->conv = static_cast<size_t>(maker);
    const OpDesc& conv = block_.ops[chain->conv];
    const Array* filter = Param(conv.In("Filter"));
    return (conv.type == "conv2d" || conv.type == "depthwise_conv2d") &&
           filter != nullptr && filter->shape.size() == 4 &&
           filter->shape[0] == Param(norm.In("Scale"))->size() &&
           Readers(conv.In("Filter")) == 1 &&
           conv.AttrOr<std::string>("data_format", "NCHW") != "NHWC";
  }

  bool IsBiasAdd(const OpDesc& op) const {
    const Array* bias =
        op.type == "elementwise_add" ? Param(op.In("Y")) : nullptr;
    return bias != nullptr && bias->shape.size() == 1 &&
           op.AttrOr<int32_t>("axis", -1) == 1 && Readers(op.In("Y")) == 1;
  }

  absl::Status Fold(const Chain& chain) {
    OpDesc& conv = block_.ops[chain.conv];
    OpDesc& norm = block_.ops[chain.norm];
    const double epsilon = norm.AttrOr<float>("epsilon", 1e-5f);
    const Array old_filter = *Param(conv.In("Filter"));
    const int64_t channels = old_filter.shape[0];
    const int64_t each = old_filter.size() / channels;
    const float* scale = Param(norm.In("Scale"))->data<float>();
    const float* shift = Param(norm.In("Bias"))->data<float>();
    const float* mean = Param(norm.In("Mean"))->data<float>();
    const float* variance = Param(norm.In("Variance"))->data<float>();
    const float* bias =
        chain.bias_add < 0
            ? nullptr
            : Param(block_.ops[static_cast<size_t>(chain.bias_add)].In("Y"))
                  ->data<float>();
    std::vector<float> filter(static_cast<size_t>(old_filter.size()));
    std::vector<float> new_bias(static_cast<size_t>(channels));
    std::vector<double> factors;
    for (int64_t c = 0; c < channels; ++c) {
      const double s = scale[c] / std::sqrt(variance[c] + epsilon);
      const double b = bias != nullptr ? bias[c] : 0.0;
      factors.push_back(s);
      new_bias[static_cast<size_t>(c)] =
          static_cast<float>((b - mean[c]) * s + shift[c]);
      for (int64_t i = c * each; i < (c + 1) * each; ++i)
        filter[static_cast<size_t>(i)] =
            static_cast<float>(old_filter.data<float>()[i] * s);
    }
    model_->params[conv.In("Filter")] =
        MakeArray<float>(old_filter.shape, filter);
    if (factors_ != nullptr) (*factors_)[conv.In("Filter")] = factors;
    // The batch norm's place becomes the bias add, its Bias the new bias.
    const std::string name = norm.In("Bias");
    model_->params[name] = MakeArray<float>({channels}, new_bias);
    OpDesc add;
    add.type = "elementwise_add";
    add.SetInput("X", {conv.Out("Output")});
    add.SetInput("Y", {name});
    add.SetOutput("Out", {norm.Out("Y")});
    add.attrs = {{"axis", int32_t{1}},
                 {std::string(kOpRoleAttr), int32_t{kRoleForward}}};
    if (chain.bias_add >= 0)
      block_.ops[static_cast<size_t>(chain.bias_add)] = OpDesc();
    norm = std::move(add);
    return absl::OkStatus();
  }

  InferenceModel* model_;
  BlockDesc& block_;
  FoldFactors* const factors_;
};

}  // namespace

absl::StatusOr<int> FoldBatchNorms(InferenceModel* model,
                                   FoldFactors* factors) {
  return Folder(model, factors).Run();
}

namespace {

struct ModelPass {
  const char* name;
  absl::StatusOr<int> (*run)(InferenceModel* model, FoldFactors* factors);
  const char* done;  // behind the number that `run` gives
};
constexpr ModelPass kModelPasses[] = {
    {"fold_batch_norms", FoldBatchNorms, "batch norms folded"},
};

}  // namespace

std::vector<std::string> ModelPassNames() {
  std::vector<std::string> names;
  for (const ModelPass& pass : kModelPasses) names.push_back(pass.name);
  return names;
}

absl::Status OptimizeModel(const PassOptions& options, InferenceModel* model) {
  const auto show = [&](const std::string& pass) {
    return options.observer == nullptr
               ? absl::OkStatus()
               : options.observer("", pass, model->program);
  };
  PD_RETURN_IF_ERROR(show(""));
  for (const ModelPass& pass : kModelPasses) {
    if (options.disabled.count(pass.name) > 0) continue;
    PD_ASSIGN_OR_RETURN(const int changes, pass.run(model, nullptr));
    LogInfo("%d %s", changes, pass.done);
    PD_RETURN_IF_ERROR(show(pass.name));
  }
  return absl::OkStatus();
}

}  // namespace pd
