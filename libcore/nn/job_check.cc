// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/job_check.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"
#include "libcore/base/error.h"
#include "libcore/base/shape.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_sizes.h"
#include "libcore/nn/job_text.h"

namespace pd {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;

namespace {

bool IsMessage(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

// "layer 'conv1'", "conv2d", "the job": what a message is called.
std::string Called(const Message& message, absl::string_view field_name) {
  const FieldDescriptor* name =
      message.GetDescriptor()->FindFieldByName("name");
  std::string given;
  if (name != nullptr && message.GetReflection()->HasField(message, name))
    given = message.GetReflection()->GetString(message, name);
  if (field_name.empty()) return "a job";
  return given.empty() ? absl::StrCat("'", field_name, "'")
                       : absl::StrCat(field_name, " '", given, "'");
}

double NumberAt(const Message& m, const FieldDescriptor* f, int i) {
  const Reflection* r = m.GetReflection();
  const bool list = f->is_repeated();
  switch (f->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return list ? r->GetRepeatedInt32(m, f, i) : r->GetInt32(m, f);
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<double>(list ? r->GetRepeatedInt64(m, f, i)
                                      : r->GetInt64(m, f));
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(list ? r->GetRepeatedUInt64(m, f, i)
                                      : r->GetUInt64(m, f));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return list ? r->GetRepeatedDouble(m, f, i) : r->GetDouble(m, f);
    default:
      return 0;
  }
}

class RuleChecker {
 public:
  // `job` null: errors have no place.
  explicit RuleChecker(const LoadedJob* job) : job_(job) {}

  absl::Status Check(const Message& message, absl::string_view field_name) {
    const Descriptor* type = message.GetDescriptor();
    const Reflection* reflection = message.GetReflection();
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* field = type->field(i);
      PD_RETURN_IF_ERROR(CheckField(message, field, field_name));
      if (!IsMessage(field)) continue;
      if (!field->is_repeated()) {
        if (reflection->HasField(message, field))
          PD_RETURN_IF_ERROR(
              Check(reflection->GetMessage(message, field), field->name()));
        continue;
      }
      for (int k = 0; k < reflection->FieldSize(message, field); ++k)
        PD_RETURN_IF_ERROR(Check(
            reflection->GetRepeatedMessage(message, field, k), field->name()));
    }
    for (int i = 0; i < type->oneof_decl_count(); ++i)
      PD_RETURN_IF_ERROR(CheckChosen(message, type->oneof_decl(i), field_name));
    return absl::OkStatus();
  }

 private:
  absl::Status CheckChosen(const Message& message, const OneofDescriptor* oneof,
                           absl::string_view field_name) {
    if (!oneof->options().GetExtension(job::choose) ||
        message.GetReflection()->HasOneof(message, oneof))
      return absl::OkStatus();
    std::vector<std::string> names;
    for (int i = 0; i < oneof->field_count() && i < 12; ++i)
      names.push_back(oneof->field(i)->name());
    return At(
        InvalidArgument("%s does not say which kind it is; there are %s%s",
                        Called(message, field_name), absl::StrJoin(names, ", "),
                        oneof->field_count() > 12 ? ", ..." : ""),
        message);
  }

  absl::Status CheckField(const Message& message, const FieldDescriptor* field,
                          absl::string_view field_name) {
    const job::Rule& rule = field->options().GetExtension(job::rule);
    const Reflection* reflection = message.GetReflection();
    const int count = field->is_repeated()
                          ? reflection->FieldSize(message, field)
                          : reflection->HasField(message, field);
    // A list without a default in words is needed when it has a least count.
    const bool required =
        rule.required() ||
        (field->is_repeated() && rule.min_count() > 0 && !rule.has_otherwise());
    if (count == 0)
      return !required ? absl::OkStatus()
                       : At(InvalidArgument("%s needs '%s'",
                                            Called(message, field_name),
                                            field->name()),
                            message);
    if (field->is_repeated() &&
        (count < static_cast<int>(rule.min_count()) ||
         (rule.has_max_count() && count > static_cast<int>(rule.max_count())) ||
         !IsOneOf(rule.counts(), count)))
      return At(InvalidArgument("'%s' has %d values; it takes %s",
                                field->name(), count, CountWords(rule)),
                message, field->name());
    std::string bounds = BoundsInWords(rule);
    // Sizes and counts: what is computed of two of them stays in 64 bits.
    const bool size = field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 &&
                      rule.has_min() && !rule.has_max() && !rule.has_below();
    constexpr auto kMost = static_cast<double>(kMostBytes);
    for (int i = 0; i < count && !bounds.empty(); ++i) {
      const double value = NumberAt(message, field, i);
      if ((rule.has_min() && value < rule.min()) ||
          (rule.has_max() && value > rule.max()) ||
          (rule.has_above() && value <= rule.above()) ||
          (rule.has_below() && value >= rule.below()) ||
          (size && value > kMost)) {
        if (value > kMost) bounds = "at most 2^47, more than any memory has";
        return At(InvalidArgument("'%s' is %s; it must be %s", field->name(),
                                  absl::StrCat(value), bounds),
                  message,
                  field->is_repeated() ? ElementPath(field->name(), i)
                                       : field->name());
      }
    }
    return absl::OkStatus();
  }

  // Any count will do where there is no list of them.
  template <typename List>
  static bool IsOneOf(const List& counts, int count) {
    return counts.empty() ||
           std::find(counts.begin(), counts.end(),
                     static_cast<uint32_t>(count)) != counts.end();
  }

  static std::string CountWords(const job::Rule& rule) {
    const std::string words = CountsInWords(rule);
    if (!words.empty()) return words;
    if (!rule.has_max_count())
      return absl::StrCat(rule.min_count(), " or more");
    const uint32_t least = rule.min_count() == 0 ? 1 : rule.min_count();
    if (least == rule.max_count()) return absl::StrCat(least);
    return absl::StrCat(least, " to ", rule.max_count());
  }

  absl::Status At(const absl::Status& status, const Message& part,
                  absl::string_view field = "") const {
    return job_ == nullptr ? status : job_->At(status, part, field);
  }

  const LoadedJob* job_;
};

// Notes the element's name, which must be a new one.
template <typename Element>
absl::Status CheckName(const LoadedJob& job, const Element& element,
                       absl::string_view what, std::set<std::string>* seen) {
  if (!element.has_name()) return absl::OkStatus();
  if (element.name().empty() ||
      element.name().find_first_of("/[]=") != std::string::npos)
    return job.At(InvalidArgument("a name is not empty and has no '/', '[', "
                                  "']' or '='; got '%s'",
                                  element.name()),
                  element, "name");
  if (!seen->insert(element.name()).second)
    return job.At(InvalidArgument("there are two %s with the name '%s'", what,
                                  element.name()),
                  element, "name");
  return absl::OkStatus();
}

// Names in one list are given once.
template <typename List>
absl::Status CheckNames(const LoadedJob& job, const List& list,
                        absl::string_view what, std::set<std::string>* seen) {
  for (const auto& element : list)
    PD_RETURN_IF_ERROR(CheckName(job, element, what, seen));
  return absl::OkStatus();
}

// In each form of the network, names are given once.
template <typename List>
absl::Status CheckLayerNames(const LoadedJob& job, const List& layers,
                             const std::set<std::string>& inputs) {
  for (const job::Phase::Kind form : {job::Phase::train, job::Phase::eval}) {
    std::set<std::string> seen = inputs;
    for (const job::Layer& layer : layers)
      if (!layer.has_when() || layer.when() == form)
        PD_RETURN_IF_ERROR(CheckName(job, layer, "layers or inputs", &seen));
  }
  return absl::OkStatus();
}

absl::Status CheckPadding(const LoadedJob& job, const Message& layer,
                          int count) {
  if (count != 3) return absl::OkStatus();
  return job.At(InvalidArgument("'padding' has 3 values; it takes 1, 2 or 4"),
                layer, "padding");
}

absl::Status CheckModel(const LoadedJob& job) {
  const job::Model& model = job.proto().model();
  std::set<std::string> names, blocks;
  PD_RETURN_IF_ERROR(CheckNames(job, model.input(), "inputs", &names));
  PD_RETURN_IF_ERROR(CheckLayerNames(job, model.layer(), names));
  PD_RETURN_IF_ERROR(CheckNames(job, model.block(), "blocks", &blocks));
  for (const job::Input& input : model.input())
    for (int i = 0; i < input.shape_size(); ++i)
      if (input.shape(i) == 0)
        return job.At(InvalidArgument("an extent of 'shape' is 0; it must be 1 "
                                      "or more, or -1 for any"),
                      input, ElementPath("shape", i));
  for (const job::Block& block : model.block()) {
    std::set<std::string> inside(block.input().begin(), block.input().end());
    if (inside.empty()) inside.insert("input");
    PD_RETURN_IF_ERROR(CheckLayerNames(job, block.layer(), inside));
    std::set<std::string> arguments;
    PD_RETURN_IF_ERROR(
        CheckNames(job, block.argument(), "arguments", &arguments));
  }
  return absl::OkStatus();
}

// A network of the job's own, or a saved program, which brings what trains it.
absl::Status CheckProgram(const LoadedJob& job) {
  const job::Job& proto = job.proto();
  if (!proto.has_program())
    return proto.has_model()
               ? absl::OkStatus()
               : job.At(InvalidArgument("a job needs 'model' or 'program'"),
                        proto);
  const Reflection* reflection = proto.GetReflection();
  for (const char* name :
       {"model", "loss", "optimizer", "phase", "copy", "quant"}) {
    const FieldDescriptor* field = proto.GetDescriptor()->FindFieldByName(name);
    const bool list = field->is_repeated();
    if (list ? reflection->FieldSize(proto, field) == 0
             : !reflection->HasField(proto, field))
      continue;
    return job.At(
        InvalidArgument("'%s' cannot stand beside 'program' (%s): a saved "
                        "program has its own network, loss, gradients and "
                        "updates",
                        name, job.Where(proto.program())),
        list ? reflection->GetRepeatedMessage(proto, field, 0)
             : reflection->GetMessage(proto, field));
  }
  const job::SavedProgram& program = proto.program();
  std::set<std::string> fetches, feeds, fields;
  for (int i = 0; i < program.fetch_size(); ++i)
    if (!fetches.insert(program.fetch(i)).second)
      return job.At(InvalidArgument("'%s' is fetched twice", program.fetch(i)),
                    program, ElementPath("fetch", i));
  for (const job::ProgramFeed& feed : program.feed()) {
    if (!feeds.insert(feed.name()).second)
      return job.At(InvalidArgument("'%s' is fed twice", feed.name()), feed,
                    "name");
    if (!fields.insert(feed.field()).second)
      return job.At(InvalidArgument("field '%s' feeds another variable already",
                                    feed.field()),
                    feed, "field");
  }
  return absl::OkStatus();
}

template <typename List>
absl::Status CheckRising(const LoadedJob& job, const Message& part,
                         const std::string& field, const List& values) {
  for (int i = 1; i < values.size(); ++i)
    if (values[i] <= values[i - 1])
      return job.At(InvalidArgument("'%s' must rise; %d follows %d", field,
                                    values[i], values[i - 1]),
                    part, ElementPath(field, i));
  return absl::OkStatus();
}

absl::Status CheckScheduler(const LoadedJob& job, const job::LRScheduler& lr) {
  if (lr.has_piecewise_decay()) {
    const job::PiecewiseDecay& p = lr.piecewise_decay();
    PD_RETURN_IF_ERROR(CheckRising(job, p, "boundaries", p.boundaries()));
    if (p.values_size() != p.boundaries_size() + 1)
      return job.At(InvalidArgument("'boundaries' has %d values and 'values' "
                                    "%d; it must have one more",
                                    p.boundaries_size(), p.values_size()),
                    p, "values");
  }
  if (lr.has_multi_step_decay())
    PD_RETURN_IF_ERROR(CheckRising(job, lr.multi_step_decay(), "milestones",
                                   lr.multi_step_decay().milestones()));
  if (lr.has_linear_warmup() && lr.linear_warmup().has_after()) {
    const job::LinearWarmup& warmup = lr.linear_warmup();
    if (warmup.has_learning_rate())
      return job.At(InvalidArgument("'learning_rate' cannot stand beside "
                                    "'after', which says the rate"),
                    warmup, "learning_rate");
    if (warmup.after().has_by() && warmup.after().by() != lr.by())
      return job.At(InvalidArgument("'by' must be the same as that of the "
                                    "warm-up"),
                    warmup.after(), "by");
    if (warmup.after().has_reduce_on_plateau())
      return job.At(InvalidArgument("'reduce_on_plateau' cannot stand behind a "
                                    "warm-up"),
                    warmup.after(), "reduce_on_plateau");
    PD_RETURN_IF_ERROR(CheckScheduler(job, warmup.after()));
  }
  return absl::OkStatus();
}

absl::Status CheckAverages(const LoadedJob& job,
                           const job::Optimizer& optimizer) {
  if (!optimizer.has_model_average()) return absl::OkStatus();
  const job::ModelAverage& average = optimizer.model_average();
  if (optimizer.has_exponential_moving_average())
    return job.At(
        InvalidArgument("there is 'exponential_moving_average' already; only "
                        "one of them can stand in the parameters' place"),
        optimizer, "model_average");
  if (average.min_average_window() > average.max_average_window())
    return job.At(
        InvalidArgument("'min_average_window' is %d and 'max_average_window' "
                        "%d; min cannot be above max",
                        average.min_average_window(),
                        average.max_average_window()),
        average,
        average.has_min_average_window() ? "min_average_window"
                                         : "max_average_window");
  return absl::OkStatus();
}

absl::Status CheckOptimizer(const LoadedJob& job,
                            const job::Optimizer& optimizer) {
  if (optimizer.has_adamw() && optimizer.has_weight_decay())
    return job.At(InvalidArgument("adamw has its own 'weight_decay', inside "
                                  "'adamw'; this one cannot stand beside it"),
                  optimizer, "weight_decay");
  if (optimizer.has_lamb() && optimizer.has_weight_decay())
    return job.At(InvalidArgument("lamb has its own 'lamb_weight_decay', "
                                  "inside 'lamb'; this one cannot stand "
                                  "beside it"),
                  optimizer, "weight_decay");
  PD_RETURN_IF_ERROR(CheckAverages(job, optimizer));
  if (optimizer.grad_clip().has_by_value()) {
    const job::ClipGradByValue& clip = optimizer.grad_clip().by_value();
    const double low = clip.has_min() ? clip.min() : -clip.max();
    if (low > clip.max())
      return job.At(
          InvalidArgument("'min' is %s and 'max' %s; min cannot be "
                          "above max",
                          absl::StrCat(low), absl::StrCat(clip.max())),
          clip, clip.has_min() ? "min" : "max");
  }
  return CheckScheduler(job, optimizer.lr());
}

absl::Status CheckDataSet(const LoadedJob& job, const job::DataSet& set) {
  for (const job::Transform& transform : set.transform()) {
    if (transform.has_normalize()) {
      const job::Normalize& n = transform.normalize();
      if (n.mean_size() > 1 && n.std_size() > 1 &&
          n.mean_size() != n.std_size())
        return job.At(InvalidArgument("'mean' has %d values and 'std' %d",
                                      n.mean_size(), n.std_size()),
                      n);
    }
    if (transform.has_random_crop() || transform.has_pad()) {
      const bool crop = transform.has_random_crop();
      PD_RETURN_IF_ERROR(CheckPadding(
          job,
          crop ? static_cast<const Message&>(transform.random_crop())
               : transform.pad(),
          crop ? transform.random_crop().padding_size()
               : transform.pad().padding_size()));
    }
    if (transform.grayscale().num_output_channels() == 2)
      return job.At(InvalidArgument("'num_output_channels' is 2; it must be 1 "
                                    "or 3"),
                    transform.grayscale(), "num_output_channels");
    for (const auto* range : {&transform.random_resized_crop().scale(),
                              &transform.random_resized_crop().ratio()})
      if (range->size() == 2 && range->Get(0) > range->Get(1))
        return job.At(InvalidArgument("the smallest value stands first"),
                      transform.random_resized_crop());
  }
  if (set.csv().has_delimiter() && set.csv().delimiter().size() != 1)
    return job.At(InvalidArgument("'delimiter' is one character; got '%s'",
                                  set.csv().delimiter()),
                  set.csv(), "delimiter");
  std::set<std::string> fields;
  PD_RETURN_IF_ERROR(CheckNames(job, set.csv().field(), "fields", &fields));
  return CheckNames(job, set.npz().field(), "fields", &fields);
}

}  // namespace

absl::Status CheckRules(const Message& part, absl::string_view name) {
  return RuleChecker(nullptr).Check(part, name);
}

std::string CountsInWords(const Message& message) {
  const auto& rule = static_cast<const job::Rule&>(message);
  std::string words;
  for (int i = 0; i < rule.counts_size(); ++i) {
    const char* between = i + 1 == rule.counts_size() ? " or " : ", ";
    absl::StrAppend(&words, i == 0 ? "" : between, rule.counts(i));
  }
  return words;
}

std::string BoundsInWords(const Message& message) {
  const job::Rule& rule = static_cast<const job::Rule&>(message);
  const bool low = rule.has_min() || rule.has_above();
  const bool high = rule.has_max() || rule.has_below();
  const std::string least =
      absl::StrCat(rule.has_min() ? rule.min() : rule.above());
  const std::string most =
      absl::StrCat(rule.has_max() ? rule.max() : rule.below());
  if (low && high)
    return absl::StrCat("in ", rule.has_min() ? "[" : "(", least, ", ", most,
                        rule.has_max() ? "]" : ")");
  if (low) return absl::StrCat(rule.has_min() ? "at least " : "above ", least);
  if (high) return absl::StrCat(rule.has_max() ? "at most " : "below ", most);
  return "";
}

absl::Status CheckJob(const LoadedJob& job) {
  PD_RETURN_IF_ERROR(RuleChecker(&job).Check(job.proto(), ""));
  PD_RETURN_IF_ERROR(CheckProgram(job));
  PD_RETURN_IF_ERROR(CheckModel(job));
  PD_RETURN_IF_ERROR(CheckOptimizer(job, job.proto().optimizer()));
  std::set<std::string> phases;
  PD_RETURN_IF_ERROR(CheckNames(job, job.proto().phase(), "phases", &phases));
  for (const job::TrainPhase& phase : job.proto().phase())
    PD_RETURN_IF_ERROR(CheckOptimizer(job, phase.optimizer()));
  PD_RETURN_IF_ERROR(CheckDataSet(job, job.proto().data().train()));
  PD_RETURN_IF_ERROR(CheckDataSet(job, job.proto().data().eval()));
  // How many results a metric has may hang on a number of classes.
  return OpenSizes(job).empty() ? CheckResults(job) : absl::OkStatus();
}

}  // namespace pd
