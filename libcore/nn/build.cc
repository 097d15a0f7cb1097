// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/build.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_check.h"
#include "libcore/nn/job_text.h"
#include "libcore/nn/layers/layer_context.h"
#include "libcore/nn/loss.h"
#include "libcore/program/block_builder.h"
#include "libcore/program/prune.h"

namespace pd {
namespace {

constexpr int kMaxDepth = 32;
constexpr size_t kMaxLayers = 100000;

using Layers = google::protobuf::RepeatedPtrField<job::Layer>;
// What names mean among the layers of a model or of a block.
using Names = std::map<std::string, LayerInput>;

BuiltModel EmptyModel() {
  BuiltModel built;
  for (ProgramDesc* program : {&built.main, &built.startup}) {
    program->version = 2003000;
    program->blocks.emplace_back();
  }
  return built;
}

class ModelBuilder {
 public:
  ModelBuilder(const LoadedJob& job, const OpRegistry& registry)
      : job_(job),
        built_(EmptyModel()),
        main_(&registry, &built_.main),
        startup_(&registry, &built_.startup),
        parts_{&main_, &startup_, &built_} {}

  absl::StatusOr<BuiltModel> Build() {
    PD_RETURN_IF_ERROR(DeclareInputs());
    const job::Model& model = job_.proto().model();
    LayerInput last;
    if (model.input_size() == 1) last = names_[model.input(0).name()];
    PD_RETURN_IF_ERROR(
        BuildLayers(model.layer(), model.layer(), "", "", last, 0, &names_)
            .status());
    PD_RETURN_IF_ERROR(FindOutputs());
    PD_RETURN_IF_ERROR(BuildLosses());
    for (const job::Metric& metric : job_.proto().metric())
      PD_RETURN_IF_ERROR(BuildMetric(metric));
    built_.test = CloneForTest(built_.main);
    return std::move(built_);
  }

 private:
  absl::Status DeclareInputs() {
    for (const job::Input& input : job_.proto().model().input()) {
      VarDesc var;
      var.name = input.name();
      var.dtype = static_cast<DType>(input.dtype());
      var.shape = Shape(input.shape().begin(), input.shape().end());
      var.need_check_feed = true;
      var.stop_gradient = true;
      main_.AddVar(var);
      names_[input.name()] = {input.name(),
                              absl::StrCat("input '", input.name(), "'")};
      built_.inputs.push_back(std::move(var));
    }
    return absl::OkStatus();
  }

  // Builds `layers`; `written` are the same as the job holds them, for places.
  // `prefix` is put before names ("stage1.0/"), `used` behind places. Gives
  // what the last one gives.
  absl::StatusOr<LayerInput> BuildLayers(
      const Layers& layers, const Layers& written, const std::string& prefix,
      const std::string& used, LayerInput last, int depth, Names* names) {
    std::map<std::string, int> numbers;
    for (int i = 0; i < layers.size(); ++i) {
      const job::Layer& layer = layers[i];
      if (built_.layers.size() >= kMaxLayers)
        return job_.At(
            InvalidArgument("there are more than %d layers", kMaxLayers),
            written[i]);
      const std::string kind = KindOf(layer);
      const std::string name = layer.has_name()
                                   ? layer.name()
                                   : absl::StrCat(kind, "_", numbers[kind]);
      ++numbers[kind];
      if (names->count(name) > 0)
        return job_.At(InvalidArgument("the name '%s' is taken; give this "
                                       "layer another",
                                       name),
                       written[i]);
      const std::string place = job_.Where(written[i]) + used;
      auto made = BuildOne(layer, written[i], prefix + name, place, last, depth,
                           *names);
      if (!made.ok()) return made.status();
      last = *made;
      (*names)[name] = last;
    }
    return last;
  }

  static std::string KindOf(const job::Layer& layer) {
    const auto* field = layer.GetReflection()->GetOneofFieldDescriptor(
        layer, layer.GetDescriptor()->FindOneofByName("kind"));
    return field->name();
  }

  absl::StatusOr<LayerInput> BuildOne(const job::Layer& layer,
                                      const job::Layer& written,
                                      const std::string& full_name,
                                      const std::string& place,
                                      const LayerInput& last, int depth,
                                      const Names& names) {
    std::vector<LayerInput> inputs;
    const absl::Status found =
        FindInputs(layer, full_name, last, names, &inputs);
    if (!found.ok()) return Annotate(found, place);
    if (layer.has_block())
      return UseBlock(layer, written, full_name, place, inputs, depth);
    const LayerFn build = FindLayer(layer.kind_case());
    PD_INVARIANT(build != nullptr);
    LayerContext context(layer, full_name, inputs, parts_);
    absl::StatusOr<std::string> variable =
        inputs.size() > 1 && !TakesSeveral(layer)
            ? InvalidArgument("layer '%s' (%s) takes one input; it names %d",
                              full_name, context.kind(), inputs.size())
            : build(&context);
    if (!variable.ok()) return Annotate(variable.status(), place);
    built_.layers.push_back(
        {full_name, context.kind(), *variable, context.parameters()});
    return LayerInput{*variable, absl::StrCat("layer '", full_name, "'")};
  }

  static bool TakesSeveral(const job::Layer& layer) {
    return layer.has_add() || layer.has_multiply() || layer.has_concat();
  }

  absl::Status FindInputs(const job::Layer& layer, const std::string& full_name,
                          const LayerInput& last, const Names& names,
                          std::vector<LayerInput>* inputs) {
    if (layer.input().empty()) {
      if (last.variable.empty())
        return InvalidArgument(
            "layer '%s' names no input and there is no "
            "layer before it; the model has %d inputs",
            full_name, built_.inputs.size());
      inputs->push_back(last);
      return absl::OkStatus();
    }
    for (const std::string& name : layer.input()) {
      PD_ASSIGN_OR_RETURN(
          LayerInput input,
          Find(name, absl::StrCat("layer '", full_name, "'"), names));
      inputs->push_back(std::move(input));
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<LayerInput> Find(const std::string& name,
                                         const std::string& who,
                                         const Names& names) {
    const auto it = names.find(name);
    if (it != names.end()) return it->second;
    std::vector<std::string> known;
    for (const auto& entry : names) known.push_back(entry.first);
    const std::string nearest = Nearest(name, known);
    return InvalidArgument(
        "%s reads '%s'; no layer before it and no input has that name%s", who,
        name,
        nearest.empty() ? "" : absl::StrCat(", did you mean '", nearest, "'?"));
  }

  // Puts the layers of a block in, `repeat` times.
  absl::StatusOr<LayerInput> UseBlock(const job::Layer& layer,
                                      const job::Layer& written,
                                      const std::string& full_name,
                                      const std::string& place,
                                      std::vector<LayerInput> inputs,
                                      int depth) {
    const job::UseBlock& use = layer.block();
    const job::Block* block = nullptr;
    std::vector<std::string> known;
    for (const job::Block& b : job_.proto().model().block()) {
      known.push_back(b.name());
      if (b.name() == use.use()) block = &b;
    }
    if (block == nullptr) {
      const std::string nearest = Nearest(use.use(), known);
      return Annotate(
          InvalidArgument("there is no block '%s'%s", use.use(),
                          nearest.empty() ? ""
                                          : absl::StrCat(", did you mean '",
                                                         nearest, "'?")),
          place);
    }
    if (depth >= kMaxDepth)
      return Annotate(InvalidArgument("blocks use each other more than %d "
                                      "deep; does '%s' use itself?",
                                      kMaxDepth, use.use()),
                      place);
    job::Block copy = *block;
    const absl::Status set = SetArguments(use, *block, &copy);
    if (!set.ok()) return Annotate(set, place);
    const int wanted = std::max(1, block->input_size());
    if (static_cast<int>(inputs.size()) != wanted ||
        (use.repeat() > 1 && wanted != 1))
      return Annotate(
          InvalidArgument(
              "block '%s' has %d inputs%s; layer '%s' names %d", block->name(),
              wanted, use.repeat() > 1 ? " (to repeat it, it needs one)" : "",
              full_name, inputs.size()),
          place);
    const std::string used =
        absl::StrCat(" (used at ", job_.Where(written), ")");
    for (int r = 0; r < use.repeat(); ++r) {
      const std::string name =
          use.repeat() > 1 ? absl::StrCat(full_name, ".", r) : full_name;
      PD_ASSIGN_OR_RETURN(LayerInput out,
                          PutBlock(copy, *block, name, used, inputs, depth));
      inputs = {{out.variable, absl::StrCat("layer '", name, "'")}};
    }
    return inputs[0];
  }

  absl::StatusOr<LayerInput> PutBlock(const job::Block& block,
                                      const job::Block& written,
                                      const std::string& name,
                                      const std::string& used,
                                      const std::vector<LayerInput>& inputs,
                                      int depth) {
    Names inside;
    if (block.input().empty()) inside["input"] = inputs[0];
    for (int i = 0; i < block.input_size(); ++i)
      inside[block.input(i)] = inputs[static_cast<size_t>(i)];
    const LayerInput first = inputs.size() == 1 ? inputs[0] : LayerInput();
    PD_ASSIGN_OR_RETURN(LayerInput last,
                        BuildLayers(block.layer(), written.layer(), name + "/",
                                    used, first, depth + 1, &inside));
    if (!block.has_output()) return last;
    auto found =
        Find(block.output(),
             absl::StrCat("the output of block '", block.name(), "'"), inside);
    if (!found.ok()) return job_.At(found.status(), written, "output");
    return found;
  }

  // "channels=64": sets the fields that the block's argument names.
  absl::Status SetArguments(const job::UseBlock& use, const job::Block& written,
                            job::Block* block) {
    for (const std::string& text : use.set()) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos)
        return InvalidArgument("'set' is '%s'; expected NAME=VALUE", text);
      const std::string name = text.substr(0, equals);
      const job::Argument* argument = nullptr;
      std::vector<std::string> known;
      for (const job::Argument& a : written.argument()) {
        known.push_back(a.name());
        if (a.name() == name) argument = &a;
      }
      if (argument == nullptr) {
        const std::string nearest = Nearest(name, known);
        return InvalidArgument(
            "block '%s' has no argument '%s'%s", written.name(), name,
            nearest.empty() ? ""
                            : absl::StrCat(", did you mean '", nearest, "'?"));
      }
      for (const std::string& path : argument->sets()) {
        const size_t dot = path.find('.');
        const std::string rest =
            dot == std::string::npos ? "" : path.substr(dot);
        Places places;
        const absl::Status status =
            SetByPath(absl::StrCat("layer[", path.substr(0, dot), "]", rest),
                      text.substr(equals + 1), "", block, &places);
        if (!status.ok())
          return Annotate(status, absl::StrCat("argument '", name,
                                               "' of block '", written.name(),
                                               "', which sets '", path, "'"));
      }
    }
    return CheckRules(*block, "block");
  }

  absl::Status FindOutputs() {
    const job::Model& model = job_.proto().model();
    if (model.output().empty()) {
      built_.outputs = {built_.layers.back().output};
      return absl::OkStatus();
    }
    for (int i = 0; i < model.output_size(); ++i) {
      auto found = Find(model.output(i), "the model's output", names_);
      if (!found.ok())
        return job_.At(found.status(), model, ElementPath("output", i));
      built_.outputs.push_back(found->variable);
    }
    return absl::OkStatus();
  }

  // The variable that a loss or metric looks at.
  template <typename Part>
  absl::StatusOr<std::string> Judged(const Part& part, const char* what) {
    if (!part.has_input()) {
      if (built_.outputs.size() == 1) return built_.outputs[0];
      return job_.At(InvalidArgument("the model has %d outputs; say with "
                                     "'input' which one the %s takes",
                                     built_.outputs.size(), what),
                     part);
    }
    auto found = Find(part.input(), absl::StrCat("the ", what), names_);
    if (!found.ok()) return job_.At(found.status(), part, "input");
    return found->variable;
  }

  absl::Status DeclareLabel(const std::string& name, const LabelSpec& spec) {
    if (main_.FindVar(name) != nullptr) return absl::OkStatus();
    VarDesc var;
    var.name = name;
    var.dtype = spec.dtype;
    var.shape = spec.shape;
    var.need_check_feed = true;
    var.stop_gradient = true;
    main_.AddVar(var);
    built_.labels.push_back(std::move(var));
    return absl::OkStatus();
  }

  absl::Status BuildLosses() {
    std::vector<std::string> losses;
    for (const job::Loss& loss : job_.proto().loss()) {
      PD_ASSIGN_OR_RETURN(const std::string input, Judged(loss, "loss"));
      PD_RETURN_IF_ERROR(DeclareLabel(
          loss.label(), LabelOf(loss, main_.FindVar(input)->shape)));
      auto value = BuildLoss(loss, input, loss.label(), &main_);
      if (!value.ok()) return job_.At(value.status(), loss);
      losses.push_back(*value);
    }
    if (losses.empty()) return absl::OkStatus();
    built_.loss = losses[0];
    if (losses.size() == 1) return absl::OkStatus();
    OpDesc op;
    op.type = "sum";
    op.SetInput("X", losses);
    built_.loss = main_.UniqueTemporary("sum");
    op.SetOutput("Out", {built_.loss});
    return job_.At(main_.Append(std::move(op)), job_.proto().loss(0));
  }

  absl::Status BuildMetric(const job::Metric& metric) {
    PD_ASSIGN_OR_RETURN(const std::string input, Judged(metric, "metric"));
    LabelSpec spec;
    spec.dtype = DType::kInt64;
    spec.shape = main_.FindVar(input)->shape;
    if (!spec.shape.empty()) spec.shape.back() = 1;
    PD_RETURN_IF_ERROR(DeclareLabel(metric.label(), spec));
    built_.metrics.push_back({input, metric.label()});
    return job_.At(CheckAccuracy(metric.accuracy(), *main_.FindVar(input),
                                 *main_.FindVar(metric.label())),
                   metric);
  }

  const LoadedJob& job_;
  BuiltModel built_;
  BlockBuilder main_, startup_;
  ModelParts parts_;
  Names names_;
};

}  // namespace

absl::StatusOr<BuiltModel> BuildModel(const LoadedJob& job,
                                      const OpRegistry& registry) {
  return ModelBuilder(job, registry).Build();
}

}  // namespace pd
