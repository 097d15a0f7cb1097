// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/model_summary.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/build.h"
#include "libcore/program/block_builder.h"
#include "libcore/program/count_flops.h"

namespace pd {
namespace {

constexpr double kMegabyte = 1024.0 * 1024.0;

// 0 for shapes with an extent that is not known.
int64_t Elements(const Shape& shape) {
  int64_t n = 1;
  for (int64_t extent : shape) n *= std::max<int64_t>(extent, 0);
  return n;
}

double Megabytes(int64_t elements) {
  return static_cast<double>(elements) * 4 / kMegabyte;
}

class Summarizer {
 public:
  Summarizer(const OpRegistry& registry, const BuiltModel& built)
      : registry_(registry), built_(built), program_(built.test) {
    for (const ParameterSettings& p : built.parameters)
      if (p.trainable) trainable_.insert(p.name);
    for (size_t i = 0; i < program_.global().ops.size(); ++i)
      for (const auto& [slot, names] : program_.global().ops[i].outputs)
        for (const std::string& name : names) makers_.emplace(name, i);
  }

  absl::StatusOr<ModelSummary> Make() {
    PD_RETURN_IF_ERROR(InferShapes());
    int64_t outputs = 0, inputs = 0;
    for (const LayerInfo& layer : built_.test_layers) {
      LayerRow row = RowOf(layer);
      summary_.parameters += row.parameters;
      summary_.trainable += row.trainable;
      summary_.flops += row.flops;
      const VarDesc* output = Find(layer.output);
      const bool made = output == nullptr || !output->persistable;
      for (const Shape& shape : row.outputs)
        if (made) outputs += Elements(shape);
      summary_.rows.push_back(std::move(row));
    }
    for (const VarDesc& input : built_.inputs)
      inputs += Elements(ShapeOf(input.name));
    summary_.input_mb = Megabytes(inputs);
    summary_.pass_mb = Megabytes(2 * outputs);
    summary_.parameters_mb = Megabytes(summary_.parameters);
    summary_.total_mb =
        summary_.input_mb + summary_.pass_mb + summary_.parameters_mb;
    return std::move(summary_);
  }

 private:
  const VarDesc* Find(const std::string& name) const {
    return program_.global().FindVar(name);
  }
  Shape ShapeOf(const std::string& name) const {
    const VarDesc* var = Find(name);
    return var != nullptr ? var->shape : Shape();
  }
  // A batch of one record; other open extents as CountFlops takes them.
  absl::Status InferShapes() {
    BlockDesc& block = program_.global();
    for (const auto* fed : {&built_.inputs, &built_.labels})
      for (const VarDesc& input : *fed) {
        Shape& shape = block.FindVar(input.name)->shape;
        if (!shape.empty() && shape[0] < 0) shape[0] = 1;
        if (!IsDynamic(shape)) continue;
        std::replace(shape.begin(), shape.end(), int64_t{-1}, kOpenExtent);
        summary_.assumed[input.name] = shape;
      }
    // Losses come behind the layers; labels may not fit what was assumed.
    for (const OpDesc& op : block.ops) {
      const absl::Status inferred = InferOp(registry_, op, 0, &program_);
      if (!inferred.ok() && summary_.assumed.empty()) return inferred;
    }
    return absl::OkStatus();
  }

  std::vector<size_t> OpsOf(const LayerInfo& layer) const {
    std::set<size_t> ops;
    for (const std::string& variable : layer.variables)
      if (const auto it = makers_.find(variable); it != makers_.end())
        ops.insert(it->second);
    return {ops.begin(), ops.end()};
  }

  LayerRow RowOf(const LayerInfo& layer) {
    LayerRow row;
    const std::string type = PaddleClassName(layer.kind);
    row.type = absl::StrCat(type, "-", ++numbers_[type]);
    row.name = layer.name;
    row.outputs.push_back(ShapeOf(layer.output));
    const std::vector<size_t> ops = OpsOf(layer);
    const std::set<std::string> made(layer.variables.begin(),
                                     layer.variables.end());
    std::set<std::string> seen;
    for (size_t i : ops)
      for (const auto& [slot, names] : program_.global().ops[i].inputs)
        for (const std::string& name : names) {
          const VarDesc* var = Find(name);
          if (var == nullptr || !seen.insert(name).second) continue;
          if (!var->persistable) {
            if (made.count(name) == 0) row.inputs.push_back(var->shape);
            continue;
          }
          if (!counted_.insert(name).second) continue;  // shared
          row.parameters += Elements(var->shape);
          if (trainable_.count(name) > 0) row.trainable += Elements(var->shape);
        }
    if (ops.empty()) row.inputs = row.outputs;  // it hands its input on
    row.flops = FlopsOf(ops);
    return row;
  }

  int64_t FlopsOf(const std::vector<size_t>& ops) const {
    const auto shape_of = [this](const std::string& name) -> const Shape* {
      const VarDesc* var = Find(name);
      return var != nullptr ? &var->shape : nullptr;
    };
    int64_t flops = 0;
    for (size_t i : ops) {
      const OpDesc& op = program_.global().ops[i];
      flops +=
          op.type == "rnn" ? FlopsOfRnn(op) : OpFlops(op, shape_of).value_or(0);
    }
    return flops;
  }

  // Every matrix is used once for each record and position.
  int64_t FlopsOfRnn(const OpDesc& op) const {
    const Shape x = ShapeOf(op.In("Input"));
    int64_t weights = 0;
    for (const std::string& name : op.Input("WeightList"))
      if (const Shape shape = ShapeOf(name); shape.size() == 2)
        weights += Elements(shape);
    return x.size() == 3 ? 2 * std::max<int64_t>(x[0] * x[1], 0) * weights : 0;
  }

  const OpRegistry& registry_;
  const BuiltModel& built_;
  ProgramDesc program_;
  ModelSummary summary_;
  std::set<std::string> trainable_, counted_;
  std::map<std::string, size_t> makers_;  // variable -> op
  std::map<std::string, int> numbers_;
};

}  // namespace

std::string PaddleClassName(const std::string& kind) {
  static const auto* const kWords = new std::map<std::string, std::string>{
      {"relu", "ReLU"},         {"relu6", "ReLU6"},
      {"prelu", "PReLU"},       {"rrelu", "RReLU"},
      {"elu", "ELU"},           {"selu", "SELU"},
      {"celu", "CELU"},         {"gelu", "GELU"},
      {"glu", "GLU"},           {"rnn", "RNN"},
      {"birnn", "BiRNN"},       {"lstm", "LSTM"},
      {"gru", "GRU"},           {"crf", "CRF"},
      {"unpool1d", "UnPool1D"}, {"unpool2d", "UnPool2D"},
      {"unpool3d", "UnPool3D"}};
  std::string name;
  for (std::string word : std::vector<std::string>(absl::StrSplit(kind, '_'))) {
    if (const auto it = kWords->find(word); it != kWords->end()) {
      name += it->second;
      continue;
    }
    if (word.empty()) continue;
    word[0] = absl::ascii_toupper(static_cast<unsigned char>(word[0]));
    if (word.size() > 2 && word.back() == 'd' &&
        absl::ascii_isdigit(static_cast<unsigned char>(word[word.size() - 2])))
      word.back() = 'D';
    name += word;
  }
  return name;
}

absl::StatusOr<ModelSummary> SummarizeModel(const OpRegistry& registry,
                                            const LoadedJob& job) {
  PD_ASSIGN_OR_RETURN(const BuiltModel built, BuildModel(job, registry));
  return Summarizer(registry, built).Make();
}

}  // namespace pd
