// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/build.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/block_use.h"
#include "libcore/nn/forms.h"
#include "libcore/nn/gradient_gaps.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_sizes.h"
#include "libcore/nn/job_text.h"
#include "libcore/nn/judge_builder.h"
#include "libcore/nn/layer_names.h"
#include "libcore/nn/layer_part.h"
#include "libcore/nn/layer_reads.h"
#include "libcore/nn/layers/filled_caches.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/quant_aware.h"
#include "libcore/nn/row_counts.h"
#include "libcore/nn/saved_networks.h"
#include "libcore/nn/zoo/zoo.h"
#include "libcore/program/block_builder.h"
#include "libcore/program/prune.h"

namespace pd {
namespace {

constexpr int kMaxDepth = 32;
constexpr size_t kMaxLayers = 100000;

using Layers = google::protobuf::RepeatedPtrField<job::Layer>;
// Where a list of layers stands.
struct Inside {
  std::string prefix = {};  // before names: "stage1.0/"
  std::string owner = {};   // the same of the layers that own its parameters
  std::string used = {};    // behind places: " (used at job.pbtxt:5:3)"
  std::set<std::string> left_out = {};  // layers that arguments took away
  std::string in_job = {};  // where the job uses the block: "job.pbtxt:5:3"
};

// A block as one use of it has it.
struct BlockUse {
  const job::Block& block;    // with the use's arguments
  const job::Block& written;  // as the file holds it, for places
  std::set<std::string> left_out;
  // The parameters that it has, where they are another use's.
  const std::vector<BlockWeights::Copy>* lent = nullptr;
};

// A layer as the file holds it, and its place for messages.
struct Site {
  const job::Layer* written;
  std::string place;
  std::string used;    // appended to places
  std::string in_job;  // its place, or that of the use of the zoo's block
};

// A layer whose message holds others, while it is built.
struct Holder {
  const job::Layer& layer;
  const LayerName& name;
  const Site& site;
  int depth;
  // The generated names' state before a field's layer was built first.
  std::map<std::string, GeneratedNames::Mark> marks;
  bool placed = false;  // a part failed; the error has its place
};

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
  ModelBuilder(const LoadedJob& job, const OpRegistry& registry,
               job::Phase::Kind form, ParameterGroups* groups,
               GeneratedNames* generated)
      : job_(job),
        form_(form),
        built_(EmptyModel()),
        main_(&registry, &built_.main),
        startup_(&registry, &built_.startup),
        parts_{&main_,    &startup_, &built_,     groups,
               generated, form,      &has_forms_, &job.networks()} {
    parts_.filled = &filled_;
  }

  // Whether something is in one form of the network only; known after Build.
  bool has_forms() const { return has_forms_; }

  /// The model without its test program.
  absl::StatusOr<BuiltModel> Build() {
    PD_RETURN_IF_ERROR(DeclareInputs());
    const job::Model& model = job_.proto().model();
    LayerInput last;
    if (model.input_size() == 1) last = *names_.Own(model.input(0).name());
    std::map<std::string, int> numbers;
    PD_ASSIGN_OR_RETURN(last, BuildLayers(model.layer(), model.layer(), {},
                                          last, 0, &names_, &numbers));
    PD_RETURN_IF_ERROR(FindOutputs(last));
    JudgeBuilder judges(job_, parts_, names_, written_outputs_);
    PD_RETURN_IF_ERROR(judges.BuildLosses());
    PD_RETURN_IF_ERROR(CheckGradientGaps(main_.registry(), built_, named_ops_));
    if (has_forms_ || form_ == job::Phase::eval)
      PD_RETURN_IF_ERROR(NameResults(&built_, &main_));
    for (const job::Metric& metric : job_.proto().metric())
      PD_RETURN_IF_ERROR(judges.BuildMetric(metric));
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
      PD_RETURN_IF_ERROR(
          job_.At(BytesOfExtents(var.shape, SizeOf(var.dtype)).status(), input,
                  "shape"));
      main_.AddVar(var);
      names_.Set(input.name(),
                 {input.name(), absl::StrCat("input '", input.name(), "'")});
      built_.inputs.push_back(std::move(var));
    }
    return absl::OkStatus();
  }

  // Builds `layers`; `written` are the same as the file holds them, for places.
  // Gives what the last one gives; `numbers` gets how many of each kind there
  // are.
  absl::StatusOr<LayerInput> BuildLayers(const Layers& layers,
                                         const Layers& written,
                                         const Inside& inside, LayerInput last,
                                         int depth, LayerNames* names,
                                         std::map<std::string, int>* numbers) {
    std::set<std::string> all_series;
    weights_.Enter(layers, inside.prefix);
    for (int i = 0; i < layers.size(); ++i) {
      const job::Layer& layer = layers[i];
      const std::string name = NumberedName(layer, numbers);
      if (!InThisForm(layer, parts_)) continue;
      // A numbered series of blocks may go on in another use: "features.0",
      // "features.1" of one block, "features.2" of another.
      const bool series = layer.block().has_first();
      if (names->Own(name) != nullptr &&
          !(series && all_series.count(name) > 0))
        return Annotate(InvalidArgument("the name '%s' is taken; give this "
                                        "layer another",
                                        name),
                        Where(written[i]));
      LayerName called;
      called.full = inside.prefix + name;
      called.owner = inside.owner + name;
      if (layer.has_name())
        called.structured = absl::StrReplaceAll(called.owner, {{"/", "."}});
      const Site site{
          &written[i], Where(written[i]) + inside.used, inside.used,
          ZooPlace(written[i]).empty() ? Where(written[i]) : inside.in_job};
      if (inside.left_out.count(name) > 0) {
        std::vector<LayerInput> inputs;
        PD_RETURN_IF_ERROR(Annotate(
            FindInputs(layer, called.full, last, *names, &inputs), site.place));
        last = inputs[0];
        names->Set(name, last);
        continue;
      }
      PD_ASSIGN_OR_RETURN(LayerResults made,
                          BuildOne(layer, called, site, last, depth, *names));
      last = made.first;
      names->Set(name, last);
      if (series) all_series.insert(name);
      for (const LayerOutput& other : made.others)
        names->Set(absl::StrCat(name, ":", other.name),
                   {other.variable, last.maker, other.group});
      names->AddInner(made.inner);
    }
    return last;
  }

  // Where a layer, block or input was written, in the job or in the zoo.
  std::string Where(const google::protobuf::Message& part) const {
    const std::string zoo = ZooPlace(part);
    return zoo.empty() ? job_.Where(part) : zoo;
  }

  absl::StatusOr<LayerResults> BuildOne(const job::Layer& layer,
                                        const LayerName& name, const Site& site,
                                        const LayerInput& last, int depth,
                                        const LayerNames& names) {
    const LayerSpec* spec = FindLayer(layer.kind_case());
    PD_INVARIANT(spec != nullptr || layer.has_block());
    LayerReads reads;
    if (layer.has_block() || layer.input_size() > 0 ||
        TakesLast(*spec, layer, main_.registry())) {
      const absl::Status found =
          FindInputs(layer, name.full, last, names, &reads.inputs);
      if (!found.ok()) return Annotate(found, site.place);
    }
    if (!layer.has_block()) {
      const absl::Status found =
          FindFields(MessageOf(layer), name.full, names, &reads);
      if (!found.ok()) return Annotate(found, site.place);
    }
    return BuildReading(layer, name, site, std::move(reads), depth);
  }

  // A layer that reads this.
  absl::StatusOr<LayerResults> BuildReading(const job::Layer& layer,
                                            const LayerName& name,
                                            const Site& site, LayerReads reads,
                                            int depth) {
    if (++made_ > kMaxLayers)
      return Annotate(
          InvalidArgument("there are more than %d layers", kMaxLayers),
          site.place);
    if (layer.has_block())
      return UseBlock(layer, name, site, std::move(reads.inputs), depth);
    PD_RETURN_IF_ERROR(filled_.FillReads(&reads, &main_));
    const LayerSpec* spec = FindLayer(layer.kind_case());
    const int count = static_cast<int>(reads.inputs.size());
    if (count < spec->min_inputs || count > spec->max_inputs)
      return Annotate(
          InvalidArgument("layer '%s' (%s) takes %s; it names %d", name.full,
                          KindOf(layer), InputsInWords(*spec), count),
          site.place);
    Holder holder{layer, name, site, depth, {}};
    LayerContext context(
        layer, name, std::move(reads), parts_,
        [&](const char* field, LayerReads part_reads) {
          auto made = BuildPart(field, std::move(part_reads), &holder);
          holder.placed = !made.ok();
          return made;
        },
        [&](const absl::Status& error, const char* field, int index) {
          holder.placed = true;
          return Annotate(error, PlaceOfElement(holder, field, index));
        });
    const size_t first_op = built_.main.global().ops.size();
    const size_t first_in_block = main_.block().ops.size();
    std::vector<std::string> parameters;
    if (collected_ == nullptr) collected_ = &parameters;
    const absl::StatusOr<std::string> variable = spec->build(&context);
    if (!variable.ok())
      return holder.placed ? variable.status()
                           : Annotate(variable.status(), site.place);
    for (const std::string& own : context.parameters())
      if (std::count(collected_->begin(), collected_->end(), own) == 0)
        collected_->push_back(own);
    const size_t ops = main_.block().ops.size();
    const bool is_op = layer.has_op() || layer.has_custom();
    if (is_op || layer.has_model())
      for (size_t op = is_op ? ops - 1 : first_in_block; op < ops; ++op)
        named_ops_.push_back({main_.block_index(), op, name.full, site.place});
    if (collected_ == &parameters) {
      collected_ = nullptr;
      SetNameScope(name.full, first_op);
      built_.layers.push_back({name.full, context.kind(), *variable,
                               std::move(parameters), VariablesSince(first_op),
                               site.in_job});
    }
    return LayerResults{{*variable, absl::StrCat("layer '", name.full, "'")},
                        context.outputs()};
  }

  // Where element `index` of a list of the layer's message was written.
  std::string PlaceOfElement(const Holder& holder, const char* field,
                             int index) const {
    const auto& written = MessageOf(*holder.site.written);
    const auto* list = written.GetDescriptor()->FindFieldByName(field);
    // A block's argument may have made the element.
    if (list == nullptr || !list->is_repeated() ||
        index >= written.GetReflection()->FieldSize(written, list))
      return holder.site.place;
    return absl::StrCat(Where(written.GetReflection()->GetRepeatedMessage(
                            written, list, index)),
                        holder.site.used);
  }

  // Builds the layer that `field` of the holder's message holds.
  absl::StatusOr<LayerResults> BuildPart(const char* field, LayerReads reads,
                                         Holder* holder) {
    const auto& message = MessageOf(holder->layer);
    const auto* part_field = message.GetDescriptor()->FindFieldByName(field);
    const auto& part = message.GetReflection()->GetMessage(message, part_field);
    const auto& written = MessageOf(*holder->site.written);
    Site site = holder->site;
    if (written.GetDescriptor() == message.GetDescriptor() &&
        written.GetReflection()->HasField(written, part_field))
      site.place = absl::StrCat(
          Where(written.GetReflection()->GetMessage(written, part_field)),
          site.used);
    job::Layer layer;
    PD_RETURN_IF_ERROR(Annotate(MakePart(part, field, &layer), site.place));
    // Called after the holder, "rnn.cell", or as the part says.
    LayerName name = holder->name;
    const bool own_name = layer.has_name();
    if (own_name) {
      for (std::string* outer : {&name.full, &name.owner})
        *outer = outer->substr(0, outer->rfind('/') + 1) + layer.name();
      name.structured = absl::StrReplaceAll(name.owner, {{"/", "."}});
    } else if (!name.structured.empty()) {
      for (std::string* outer : {&name.full, &name.owner})
        absl::StrAppend(outer, "/", field);
      absl::StrAppend(&name.structured, ".", field);
      layer.set_name(field);
    }
    const auto [mark, first] =
        holder->marks.emplace(field, parts_.generated->mark());
    if (!first) parts_.generated->Return(mark->second);
    const bool shared = parts_.share;
    parts_.share = shared || own_name || !first;
    auto made =
        BuildReading(layer, name, site, std::move(reads), holder->depth + 1);
    parts_.share = shared;
    return made;
  }

  // The ops from this one on belong to a layer: viewers group them by it.
  void SetNameScope(const std::string& layer, size_t op) {
    const std::string path =
        absl::StrCat("/", absl::StrReplaceAll(layer, {{".", "/"}}), "/");
    for (auto& ops = built_.main.global().ops; op < ops.size(); ++op)
      ops[op].attrs.emplace("op_namescope", path);
  }

  // The variables that the ops from this one on make.
  std::vector<std::string> VariablesSince(size_t op) const {
    std::vector<std::string> made;
    for (const auto& ops = built_.main.global().ops; op < ops.size(); ++op)
      for (const auto& [slot, names] : ops[op].outputs)
        made.insert(made.end(), names.begin(), names.end());
    return made;
  }

  absl::Status FindInputs(const job::Layer& layer, const std::string& full_name,
                          const LayerInput& last, const LayerNames& names,
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
      const std::string who = absl::StrCat("layer '", full_name, "'");
      // A block hands on what it does not read itself.
      PD_ASSIGN_OR_RETURN(LayerInput input, layer.has_block()
                                                ? names.Find(name, who)
                                                : names.FindTensor(name, who));
      inputs->push_back(std::move(input));
    }
    return absl::OkStatus();
  }

  // Puts the layers of a block in, `repeat` times.
  absl::StatusOr<LayerResults> UseBlock(const job::Layer& layer,
                                        const LayerName& name, const Site& site,
                                        std::vector<LayerInput> inputs,
                                        int depth) {
    const job::UseBlock& use = layer.block();
    auto block = FindBlock(job_, use.use(), !ZooPlace(*site.written).empty());
    if (!block.ok()) return Annotate(block.status(), site.place);
    if (depth >= kMaxDepth)
      return Annotate(InvalidArgument("blocks use each other more than %d "
                                      "deep; does '%s' use itself?",
                                      kMaxDepth, use.use()),
                      site.place);
    job::Block copy = **block;
    std::set<std::string> left_out;
    const absl::Status set = SetArguments(use, **block, &copy, &left_out);
    if (!set.ok()) return Annotate(set, site.place);
    const absl::Status fit = CheckBlockInputs(use, copy, name.full, inputs);
    if (!fit.ok()) return Annotate(fit, site.place);
    BlockUse used{copy, **block, std::move(left_out)};
    if (use.has_weights_of()) {
      auto lent = weights_.Lender(use, name.full);
      if (!lent.ok()) return Annotate(lent.status(), site.place);
      used.lent = *lent;
    }
    return RepeatBlock(used, layer, name, site, std::move(inputs), depth);
  }

  absl::StatusOr<LayerResults> RepeatBlock(
      const BlockUse& used, const job::Layer& layer, const LayerName& name,
      const Site& site, std::vector<LayerInput> inputs, int depth) {
    const job::UseBlock& use = layer.block();
    const auto local = [](const std::string& full) {
      return full.rfind('/') + 1;  // 0 where there is none
    };
    const bool numbered = use.repeat() > 1 || use.has_first();
    // A block that is used once and without a name does not show in names.
    const bool plain = !layer.has_name() && !numbered;
    LayerResults results;
    std::map<std::string, LayerInput> inner;
    std::vector<BlockWeights::Copy> copies;
    for (int r = 0; r < use.repeat(); ++r) {
      const auto called = [&](const std::string& full) {
        return numbered
                   ? absl::StrCat(full, absl::EndsWith(full, "_") ? "" : ".",
                                  r + use.first())
                   : full;
      };
      const auto prefix = [&](const std::string& full) {
        return plain ? full.substr(0, local(full)) : called(full) + "/";
      };
      const std::string own = called(name.full);
      Inside inside;
      inside.prefix = prefix(name.full);
      inside.used = absl::StrCat(" (used at ", Where(*site.written), ")");
      inside.left_out = used.left_out;
      inside.in_job = site.in_job;
      const std::string shown = plain ? "" : own.substr(local(own)) + ".";
      BlockWeights::Copy copy{prefix(name.owner), {}};
      if (used.lent != nullptr)
        copy =
            (*used.lent)[used.lent->size() == 1 ? 0 : static_cast<size_t>(r)];
      else if (weights_.Lends(name.full))
        copy.mark = parts_.generated->mark();
      inside.owner = copy.prefix;
      PD_ASSIGN_OR_RETURN(
          results,
          used.lent == nullptr
              ? PutBlock(used, inside, shown, inputs, depth)
              : PutLent(used, copy.mark, inside, shown, inputs, site, depth));
      copies.push_back(std::move(copy));
      results.first.maker = absl::StrCat("layer '", own, "'");
      inputs = {results.first};
      inner.merge(results.inner);
      if (numbered) inner[own.substr(local(own))] = results.first;
    }
    if (weights_.Lends(name.full))
      weights_.Keep(name.full, use.use(), std::move(copies));
    results.inner = std::move(inner);
    return results;
  }

  // PutBlock with the parameters of the layers behind `inside.owner`; `mark` is
  // where the generated names stood before these.
  absl::StatusOr<LayerResults> PutLent(const BlockUse& used,
                                       const GeneratedNames::Mark& mark,
                                       const Inside& inside,
                                       const std::string& shown,
                                       const std::vector<LayerInput>& inputs,
                                       const Site& site, int depth) {
    const GeneratedNames::Mark now = parts_.generated->mark();
    const bool shared = std::exchange(parts_.share, true);
    const size_t known = built_.paddle_names.size();
    parts_.generated->Return(mark);
    PD_ASSIGN_OR_RETURN(LayerResults results,
                        PutBlock(used, inside, shown, inputs, depth));
    parts_.generated->Return(now);
    parts_.share = shared;
    if (built_.paddle_names.size() > known)
      return Annotate(
          InvalidArgument("the block that lends its weights has no '%s'; both "
                          "uses need the same arguments",
                          built_.paddle_names[known].first),
          site.place);
    return results;
  }

  // `shown` is before the names by which layers behind the block read its own.
  absl::StatusOr<LayerResults> PutBlock(const BlockUse& used,
                                        const Inside& inside,
                                        const std::string& shown,
                                        const std::vector<LayerInput>& inputs,
                                        int depth) {
    const job::Block& block = used.block;
    const job::Block& written = used.written;
    LayerNames read;
    size_t next = 0;
    const auto set = [&](const std::string& input) {
      read.Set(input, next < inputs.size() ? inputs[next] : LayerInput());
      ++next;
    };
    if (block.input().empty()) set("input");
    for (const std::string& input : block.input()) set(input);
    for (const std::string& input : block.optional_input()) set(input);
    LayerNames names = read;
    const LayerInput first = block.input_size() <= 1 ? inputs[0] : LayerInput();
    LayerResults results;
    std::map<std::string, int> numbers;
    PD_ASSIGN_OR_RETURN(results.first,
                        BuildLayers(block.layer(), written.layer(), inside,
                                    first, depth + 1, &names, &numbers));
    results.inner = names.Shown(shown, numbers, read);
    for (int i = 0; i < block.output_size(); ++i) {
      const std::string who =
          absl::StrCat("the output of block '", block.name(), "'");
      auto found = i == 0 ? names.FindTensor(block.output(i), who)
                          : names.Find(block.output(i), who);
      if (!found.ok()) return Annotate(found.status(), Where(written));
      if (i == 0) {
        results.first = *found;
      } else {
        results.others.push_back(
            {block.output(i), found->variable, found->group});
      }
    }
    return results;
  }

  // `last` is what a further layer would read.
  absl::Status FindOutputs(const LayerInput& last) {
    const job::Model& model = job_.proto().model();
    if (model.output().empty()) {
      built_.outputs = {built_.layers.back().output};
      // A network may end in a table that it lends to heads, as BERT does.
      const VarDesc* var = built_.main.global().FindVar(built_.outputs.front());
      if (var != nullptr && var->is_parameter)
        built_.outputs.front() = last.variable;
      written_outputs_ = AppendRowCounts(built_.main, &built_.outputs);
      return absl::OkStatus();
    }
    for (int i = 0; i < model.output_size(); ++i) {
      auto found = names_.FindTensor(model.output(i), "the model's output");
      if (!found.ok())
        return job_.At(found.status(), model, ElementPath("output", i));
      built_.outputs.push_back(found->variable);
    }
    written_outputs_ = AppendRowCounts(built_.main, &built_.outputs);
    return absl::OkStatus();
  }

  const LoadedJob& job_;
  const job::Phase::Kind form_;
  bool has_forms_ = false;
  size_t written_outputs_ = 0;  // of the model, without counts of rows
  size_t made_ = 0;             // layers, those of blocks and steps too
  // Where parameters of parts go, while a layer with parts is built.
  std::vector<std::string>* collected_ = nullptr;
  std::vector<NamedOp> named_ops_;  // what layers `op` appended
  BuiltModel built_;
  BlockBuilder main_, startup_;
  ModelParts parts_;
  LayerNames names_;
  BlockWeights weights_;
  FilledCaches filled_;
};

}  // namespace

absl::StatusOr<BuiltModel> BuildModel(const LoadedJob& job,
                                      const OpRegistry& registry) {
  if (!job.proto().has_model())
    return job.At(InvalidArgument("a saved program has no layers; expected a "
                                  "job with a 'model'"),
                  job.proto().program());
  for (const OpenSize& open : OpenSizes(job))
    return InvalidArgument("%s: '%s' is not known before data have been read",
                           open.place, open.text);
  ParameterGroups groups;
  PD_RETURN_IF_ERROR(groups.Read(job));
  GeneratedNames generated;
  ModelBuilder train(job, registry, job::Phase::train, &groups, &generated);
  absl::StatusOr<BuiltModel> built = train.Build();
  if (!built.ok())
    return train.has_forms() ? InForm(built.status(), "training")
                             : built.status();
  if (!train.has_forms()) {
    built->test = CloneForTest(built->main);
    built->test_layers = built->layers;
  } else {
    generated.Restart();
    ModelBuilder eval(job, registry, job::Phase::eval, &groups, &generated);
    absl::StatusOr<BuiltModel> other = eval.Build();
    if (!other.ok()) return InForm(other.status(), "evaluation");
    PD_RETURN_IF_ERROR(
        job.At(JoinForms(*std::move(other), &*built), job.proto().model()));
  }
  PD_RETURN_IF_ERROR(groups.CheckUsed(job));
  if (job.proto().has_quant())
    PD_RETURN_IF_ERROR(SimulateQuantization(job, registry, &*built));
  return built;
}

}  // namespace pd
