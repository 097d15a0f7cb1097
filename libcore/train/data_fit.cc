// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/data_fit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/field_facts.h"
#include "libcore/data/vocabulary.h"
#include "libcore/nn/job.pb.h"
#include "libcore/program/match_params.h"
#include "libcore/train/heads.h"

namespace pd {
namespace {

using google::protobuf::Message;

// Steps at which the learning rate is looked at.
constexpr int64_t kMostRates = 10000;

// Where the job speaks of what the network is fed.
absl::Status AtFeed(const LoadedJob& job, const std::string& name,
                    bool is_there, const absl::Status& status) {
  for (const job::Input& input : job.proto().model().input())
    if (input.name() == name)
      return job.At(status, input, is_there ? "shape" : "name");
  for (const job::Loss& loss : job.proto().loss())
    if (loss.label() == name) return job.At(status, loss, "label");
  for (const job::ProgramFeed& feed : job.proto().program().feed())
    if (feed.field() == name) return job.At(status, feed, "field");
  return job.At(status, job.proto().data());
}

// How many classes a field has.
struct Classes {
  int64_t count = 0;  // 0: not known
  bool named = false;
};

absl::StatusOr<Classes> ClassesOf(const Dataset& dataset, const Head& head,
                                  absl::string_view set) {
  for (size_t i = 0; i < dataset.fields().size(); ++i) {
    const FieldSpec& spec = dataset.fields()[i];
    if (spec.name != head.field) continue;
    Classes classes{static_cast<int64_t>(spec.classes.size()), true};
    const auto words = dataset.vocabularies().find(head.field);
    if (classes.count == 0 && words != dataset.vocabularies().end())
      classes.count = words->second->size();
    if (classes.count > head.outputs)
      return InvalidArgument(
          "%s: layer '%s' has %d outputs, but field '%s' of data.%s has %d "
          "classes: it needs %d",
          head.place, head.layer, head.outputs, head.field, set, classes.count,
          classes.count);
    // Names say nothing of the numbers that mark what has no class.
    if (classes.count > 0 && !spec.is_mask) return classes;
    const auto range = LookAtLabels(dataset, i, head.ignored);
    if (!range.has_value()) return classes;
    const bool negative = range->lowest < 0;
    const int64_t label = negative ? range->lowest : range->largest;
    if (negative || label >= head.outputs)
      return BadLabel(
          head, label, spec.is_mask,
          absl::StrCat("data.", set, ", ",
                       dataset.Describe(negative ? range->lowest_record
                                                 : range->largest_record)));
    if (classes.count == 0 && range->complete)
      classes = {range->largest + 1, false};
    return classes;
  }
  return Classes{};
}

}  // namespace

absl::Status CheckDataFits(const LoadedJob& job, const TrainProgram& program,
                           const Loader& loader, absl::string_view set) {
  const std::vector<BatchField>& fields = loader.fields();
  for (const FeedSpec& feed : program.feeds) {
    const bool is_there =
        std::any_of(fields.begin(), fields.end(),
                    [&](const BatchField& f) { return f.name == feed.name; });
    const absl::Status fits = MatchFields({feed}, fields).status();
    if (!fits.ok())
      return AtFeed(job, feed.name, is_there,
                    Annotate(fits, absl::StrCat("data.", set)));
  }
  for (const Head& head : HeadsOf(program))
    PD_RETURN_IF_ERROR(ClassesOf(loader.dataset(), head, set).status());
  return absl::OkStatus();
}

namespace {

// How many steps an epoch has; at least 1.
int64_t StepsOfEpoch(const TrainProgram& program, const Loader& train) {
  return std::max<int64_t>(1, train.batches() / program.batches_per_step);
}

// Collects warnings about one job.
class Warner {
 public:
  Warner(const LoadedJob& job, const TrainProgram& program, const Loader& train)
      : job_(job), program_(program), train_(train) {
    const job::Train& how = job.proto().train();
    epochs_ = how.epochs();
    if (train.batches() == 0) return;  // a stream's end is not known
    const int64_t in_epoch = StepsOfEpoch(program, train);
    steps_ = epochs_ * in_epoch;
    // --steps for a first try changes nothing of what the job means.
    if (how.steps() > 0 && how.steps() < steps_ && !how.has_epochs()) {
      steps_ = how.steps();
      epochs_ = (steps_ + in_epoch - 1) / in_epoch;
    }
  }

  std::vector<std::string> All() {
    Heads();
    if (train_.batches() == 0) return std::move(warnings_);
    Rates();
    const job::LRScheduler& lr = job_.proto().optimizer().lr();
    Schedule(lr, lr.by() == job::LRScheduler::epoch, 0);
    for (const job::TrainPhase& phase : job_.proto().phase())
      Schedule(phase.optimizer().lr(),
               phase.optimizer().lr().by() == job::LRScheduler::epoch, 0);
    if (!program_.untrained.empty())
      Add(job_.proto().phase(0), "",
          absl::StrCat("no phase trains ", QuotedList(program_.untrained)));
    Followed();
    return std::move(warnings_);
  }

 private:
  void Add(const Message& part, absl::string_view field,
           const std::string& text) {
    AddAt(job_.Where(part, field), text);
  }
  void AddAt(const std::string& place, const std::string& text) {
    warnings_.push_back(absl::StrCat(place, ": ", text));
  }

  void Heads() {
    for (const Head& head : HeadsOf(program_)) {
      const auto classes = ClassesOf(train_.dataset(), head, "train");
      if (!classes.ok() || classes->count == 0 ||
          classes->count >= head.outputs)
        continue;
      const std::string found =
          classes->named
              ? absl::StrFormat("field '%s' of data.train has %d classes",
                                head.field, classes->count)
              : absl::StrFormat(
                    "the largest class number in field '%s' of "
                    "data.train is %d",
                    head.field, classes->count - 1);
      AddAt(head.place,
            absl::StrFormat("layer '%s' has %d outputs, but %s: the others "
                            "are never the answer",
                            head.layer, head.outputs, found));
    }
  }

  void Rates() {
    const job::Optimizer& optimizer = job_.proto().optimizer();
    const int64_t stride = std::max<int64_t>(1, steps_ / kMostRates);
    if (program_.learning_rate.empty()) return;
    const double first = program_.rate(0, 0);
    bool same = true;
    for (int64_t step = 0; step < steps_ && same; step += stride)
      same = program_.rate(step, step / train_.batches()) == first;
    if (!same) return;
    const auto* kind = optimizer.GetReflection()->GetOneofFieldDescriptor(
        optimizer, optimizer.GetDescriptor()->FindOneofByName("kind"));
    if (kind != nullptr && first == 0)
      Add(optimizer.GetReflection()->GetMessage(optimizer, kind),
          "learning_rate",
          "the learning rate is 0 in every step: nothing would be learned");
    else if (optimizer.has_lr() && !optimizer.lr().has_reduce_on_plateau() &&
             steps_ > 1)
      Add(optimizer, "lr",
          absl::StrFormat("the learning rate is %g in all of %d steps, %d "
                          "epochs: the schedule does nothing",
                          first, steps_, epochs_));
  }

  // `before`: steps or epochs that are over when the schedule begins.
  void Schedule(const job::LRScheduler& lr, bool by_epoch, int64_t before) {
    const int64_t length = (by_epoch ? epochs_ : steps_) - before;
    const char* unit = by_epoch ? "epochs" : "steps";
    if (lr.has_cosine_annealing_decay()) {
      const job::CosineAnnealingDecay& cosine = lr.cosine_annealing_decay();
      if (cosine.t_max() < length)
        Add(cosine, "T_max",
            absl::StrFormat("T_max is %d and the training has %d %s%s: the "
                            "learning rate rises again after %d",
                            cosine.t_max(), length, unit,
                            before > 0 ? " after the warm-up" : "",
                            cosine.t_max()));
    }
    if (!lr.has_linear_warmup()) return;
    const job::LinearWarmup& warmup = lr.linear_warmup();
    if (warmup.warmup_steps() >= length)
      Add(warmup, "warmup_steps",
          absl::StrFormat("warmup_steps is %d and the training has %d %s: it "
                          "ends before the warm-up does",
                          warmup.warmup_steps(), length, unit));
    if (warmup.has_after())
      Schedule(warmup.after(), by_epoch, before + warmup.warmup_steps());
  }

  // How often the evaluation set is run before the end.
  int64_t Evaluations() const {
    const job::Evaluation& when = job_.proto().train().evaluation();
    int64_t times = 0;
    if (when.every_epochs() > 0) times += epochs_ / when.every_epochs();
    if (when.every_steps() > 0) times += steps_ / when.every_steps();
    return times;
  }

  void Followed() {
    const job::Train& train = job_.proto().train();
    const bool evaluates = job_.proto().data().has_eval();
    if (train.checkpoint().has_best() && !evaluates)
      Add(train.checkpoint(), "best",
          "'best' follows a result of evaluation and there is no data.eval: "
          "nothing is kept as the best");
    else if (train.checkpoint().has_best() && Evaluations() <= 1)
      Add(train.checkpoint(), "best",
          "'best' chooses between evaluations and there is one, at the end: "
          "train.evaluation says when there are more");
    if (!train.has_early_stopping()) return;
    const job::EarlyStopping& early = train.early_stopping();
    const bool by_loss = early.monitor() == "train_loss" || !evaluates;
    const int64_t compared = by_loss ? epochs_ : Evaluations();
    if (std::max<int64_t>(early.patience(), 1) >= compared)
      Add(early, "patience",
          absl::StrFormat("early_stopping waits for %d comparisons without "
                          "success and there are %d in all: it never stops",
                          std::max<int64_t>(early.patience(), 1), compared));
  }

  const LoadedJob& job_;
  const TrainProgram& program_;
  const Loader& train_;
  int64_t epochs_ = 0, steps_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace

std::vector<std::string> WarningsOf(const LoadedJob& job,
                                    const TrainProgram& program,
                                    const Loader& train) {
  if (train.batches() == 0 && !train.is_stream()) return {};
  return Warner(job, program, train).All();
}

}  // namespace pd
