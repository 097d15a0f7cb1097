// SPDX-License-Identifier: Apache-2.0
#include "cmd/eval_predict.h"
#include "cmd/eval_session.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/progress.h"
#include "cmd/common/text.h"
#include "cmd/evaluation_spec.h"
#include "cmd/predict_output.h"
#include "cmd/run_network.h"
#include "formats/image.h"
#include "libcore/base/clock.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/class_colors.h"
#include "libcore/exec/session.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/row_counts.h"
#include "libcore/program/prune.h"
#include "libcore/train/answer.h"
#include "libcore/train/job_amp.h"
#include "libcore/train/predict.h"
#include "libcore/train/prediction_data.h"
#include "libcore/train/preprocess.h"
#include "libcore/train/run_log.h"
#include "libcore/train/run_vocabularies.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

const std::string kAnswer = "answer";

// Makes predictions of outputs, as the answer's kind says.
class Answers {
 public:
  Answers(const EvalOptions& options, const TrainProgram& program,
          Answer answer)
      : program_(program),
        answer_(std::move(answer)),
        top_(options.top),
        masks_(options.masks) {
    if (masks_.empty() && !options.out.empty() && options.out != "-" &&
        !absl::EndsWith(options.out, ".npz"))
      masks_ =
          absl::StrCat(options.out.substr(0, options.out.rfind('.')), "_masks");
  }

  const Answer& answer() const { return answer_; }
  void set_words(std::unique_ptr<TextEncoder> words) {
    words_ = std::move(words);
  }
  /// Whether pictures have a place, where there are any.
  absl::Status Begin(bool arrays) {
    arrays_ = arrays;
    if (!fetched_.empty()) return absl::OkStatus();
    if (answer_.kind == AnswerKind::kBoxes && arrays)
      return CommandLineError(
          "--out: records differ in how many boxes they have, which arrays of "
          ".npz do not; .csv and .jsonl take them");
    if (answer_.kind != AnswerKind::kMask) {
      if (!masks_.empty() && asked()) return NoMasks();
      masks_.clear();
      return absl::OkStatus();
    }
    if (masks_.empty() && arrays) return absl::OkStatus();
    if (masks_.empty())
      return CommandLineError(
          "the network gives each pixel a class: say with --masks FOLDER where "
          "the pictures go, or with --out FILE.npz");
    return MakeDirectories(masks_);
  }
  void set_asked(bool asked) { asked_ = asked; }
  /// The names that the outputs were asked for by; there is no answer then.
  void set_fetched(std::vector<std::string> names) {
    fetched_ = std::move(names);
  }

  absl::Status Make(const Batch& batch, const Dataset& data,
                    const std::vector<const Tensor*>& outputs, int64_t i,
                    Prediction* prediction);

 private:
  bool asked() const { return asked_; }
  static absl::Status NoMasks() {
    return CommandLineError(
        "--masks is for networks that give each pixel a class");
  }
  absl::Status CheckOutput(const Tensor& output) const;
  void Classes(const Tensor& output, int64_t i, Prediction* p);
  void YesNo(const Tensor& output, int64_t i, Prediction* p) const;
  void Numbers(const Tensor& output, int64_t i, Prediction* p) const;
  absl::Status Fetched(const std::string& name, const Tensor& output,
                       const Batch& batch, int64_t i, Prediction* p) const;
  absl::Status Positions(const Batch& batch, const Tensor& output, int64_t i,
                         Prediction* p);
  absl::Status Mask(const Tensor& output, int64_t i, Prediction* p);
  template <typename T>
  void AddArray(const std::string& name, Shape shape,
                const std::vector<T>& values, Prediction* p) const {
    if (arrays_) p->arrays.emplace_back(name, MakeArray(shape, values));
  }

  const TrainProgram& program_;
  const Answer answer_;
  const int64_t top_;
  std::string masks_;
  std::vector<std::string> fetched_;
  bool asked_ = false, arrays_ = false;
  std::unique_ptr<TextEncoder> words_;
  int64_t records_ = 0;
  std::vector<float> scores_;   // reused
  std::vector<int64_t> order_;  // reused
};

absl::Status Answers::CheckOutput(const Tensor& output) const {
  if (answer_.kind == AnswerKind::kNone && output.dtype() == DType::kInt64)
    return absl::OkStatus();
  const bool ids = answer_.kind == AnswerKind::kTokens && answer_.classes == 0;
  if (output.dtype() == (ids ? DType::kInt64 : DType::kFloat32))
    return absl::OkStatus();
  return Unimplemented("the network's output is %s; expected %s",
                       Name(output.dtype()), ids ? "int64" : "float32");
}

void Answers::Classes(const Tensor& output, int64_t i, Prediction* p) {
  const int64_t classes = output.dim(1);
  const float* row = output.data<float>() + i * classes;
  scores_.assign(row, row + classes);
  MakeProbabilities(answer_.made_by, &scores_);
  const int64_t top = std::min(top_, classes);
  const auto at = [this](int64_t c) { return scores_[static_cast<size_t>(c)]; };
  const auto before = [&at](int64_t a, int64_t b) {
    return at(a) > at(b) || (at(a) == at(b) && a < b);
  };
  order_.resize(static_cast<size_t>(classes));
  std::iota(order_.begin(), order_.end(), 0);
  std::partial_sort(order_.begin(), order_.begin() + top, order_.end(), before);
  std::vector<int64_t> numbers;
  std::vector<float> probabilities;
  for (int64_t k = 0; k < top; ++k) {
    const int64_t c = order_[static_cast<size_t>(k)];
    p->top.emplace_back(c, at(c));
    numbers.push_back(c);
    probabilities.push_back(at(c));
  }
  AddArray<int64_t>("class", {}, {numbers[0]}, p);
  AddArray<float>("probability", {}, {probabilities[0]}, p);
  AddArray("probabilities", {classes}, scores_, p);
  if (top_ == 1) return;
  AddArray("top_classes", {top}, numbers, p);
  AddArray("top_probabilities", {top}, probabilities, p);
}

void Answers::YesNo(const Tensor& output, int64_t i, Prediction* p) const {
  const float yes = YesProbability(answer_.made_by, output.data<float>()[i]);
  const int64_t number = yes >= 0.5f;
  p->top = {{number, number == 1 ? yes : 1 - yes}};
  if (top_ > 1) p->top.emplace_back(1 - number, number == 1 ? 1 - yes : yes);
  AddArray<int64_t>("class", {}, {number}, p);
  AddArray<float>("probability", {}, {p->top[0].second}, p);
}

void Answers::Numbers(const Tensor& output, int64_t i, Prediction* p) const {
  const int64_t width = PerRecord(output.shape());
  const Shape row(output.shape().begin() + 1, output.shape().end());
  const std::string& name = answer_.label.empty() ? kAnswer : answer_.label;
  const auto take = [&](const auto* values) {
    p->numbers.assign(values, values + width);
    AddArray(name, row, std::vector(values, values + width), p);
  };
  if (output.dtype() == DType::kInt64)
    take(output.data<int64_t>() + i * width);
  else
    take(output.data<float>() + i * width);
  p->scalar = width == 1;
}

absl::Status Answers::Fetched(const std::string& name, const Tensor& output,
                              const Batch& batch, int64_t i,
                              Prediction* p) const {
  // Boxes have as many rows as are found.
  if (output.kind() != VarKind::kLodTensor || output.rank() == 0 ||
      output.dim(0) != batch.size)
    return Unimplemented(
        "'%s' is %s%s for %d records; predictions have one row a record", name,
        Name(output.dtype()), ToString(output.shape()), batch.size);
  const int64_t width = PerRecord(output.shape());
  if (arrays_) {
    const Shape row(output.shape().begin() + 1, output.shape().end());
    std::byte* bytes = nullptr;
    Array array = NewCopy(output.dtype(), row, &bytes);
    const size_t size = array.size_bytes();
    if (size > 0)
      std::memcpy(bytes,
                  static_cast<const std::byte*>(output.raw()) +
                      static_cast<size_t>(i) * size,
                  size);
    p->arrays.emplace_back(name, std::move(array));
    return absl::OkStatus();
  }
  return DispatchTypes<float, double, int32_t, int64_t, int16_t, int8_t,
                       uint8_t, bool>(
      output.dtype(), [&](auto tag) -> absl::Status {
        const auto* values =
            output.data<typename decltype(tag)::type>() + i * width;
        p->fetched.emplace_back(name,
                                std::vector<double>(values, values + width));
        return absl::OkStatus();
      });
}

// The positions of the record that are no padding: as many as its input has,
// where the batch tells.
int64_t LengthOf(const TrainProgram& program, const Batch& batch, int64_t i,
                 int64_t padded) {
  for (const std::string& input : program.inputs)
    for (const BatchField& field : batch.fields)
      if (field.name == absl::StrCat(input, "_length"))
        return std::min(padded,
                        reinterpret_cast<const int64_t*>(field.data)[i]);
  return padded;
}

absl::Status Answers::Positions(const Batch& batch, const Tensor& output,
                                int64_t i, Prediction* p) {
  const bool ids = answer_.classes == 0;
  const int64_t padded = output.dim(1);
  // Texts that a decoder makes have an end of their own.
  const int64_t length = ids ? padded : LengthOf(program_, batch, i, padded);
  for (int64_t place = 0; place < length; ++place)
    p->positions.push_back(ids ? output.data<int64_t>()[i * padded + place]
                               : LargestAt(answer_, output.shape(),
                                           output.data<float>(), i, place));
  p->has_positions = true;
  if (words_ != nullptr) {
    p->has_text = true;
    p->text = words_->Decode(p->positions.data(), p->positions.size());
  }
  AddArray("classes", {length}, p->positions, p);
  return absl::OkStatus();
}

absl::Status Answers::Mask(const Tensor& output, int64_t i, Prediction* p) {
  const bool first = answer_.axis == 1;
  const int64_t height = output.dim(first ? 2 : 1);
  const int64_t width = output.dim(first ? 3 : 2);
  std::vector<int64_t> classes(static_cast<size_t>(height * width));
  for (int64_t place = 0; place < height * width; ++place)
    classes[static_cast<size_t>(place)] =
        LargestAt(answer_, output.shape(), output.data<float>(), i, place);
  AddArray("classes", {height, width}, classes, p);
  if (masks_.empty()) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(const std::string png,
                      EncodePng(ColoredClasses(classes, height, width)));
  std::string name = absl::StrFormat("%06d", records_);
  if (p->place.unit[0] == '\0' && p->place.file != "-")
    absl::StrAppend(&name, "_", fs::path(p->place.file).stem().string());
  p->mask = absl::StrCat(masks_, "/", name, ".png");
  return WriteFile(p->mask, png);
}

absl::Status Answers::Make(const Batch& batch, const Dataset& data,
                           const std::vector<const Tensor*>& outputs, int64_t i,
                           Prediction* p) {
  p->place = data.Place(batch.records[static_cast<size_t>(i)]);
  for (size_t k = 0; k < fetched_.size(); ++k)
    PD_RETURN_IF_ERROR(Fetched(fetched_[k], *outputs[k], batch, i, p));
  if (!fetched_.empty()) return absl::OkStatus();
  const Tensor& output = *outputs[answer_.output];
  PD_RETURN_IF_ERROR(CheckOutput(output));
  switch (answer_.kind) {
    case AnswerKind::kClasses:
      Classes(output, i, p);
      break;
    case AnswerKind::kYesNo:
      YesNo(output, i, p);
      break;
    case AnswerKind::kNone:
    case AnswerKind::kNumbers:
      Numbers(output, i, p);
      break;
    case AnswerKind::kTokens:
      PD_RETURN_IF_ERROR(Positions(batch, output, i, p));
      break;
    case AnswerKind::kMask:
      PD_RETURN_IF_ERROR(Mask(output, i, p));
      break;
    case AnswerKind::kBoxes: {
      PD_ASSIGN_OR_RETURN(p->boxes, BoxesOf(answer_, outputs, i));
      p->has_boxes = true;
      break;
    }
  }
  ++records_;
  return absl::OkStatus();
}

// Makes the variables that `fetched` names the predictor's outputs.
absl::Status FetchInstead(const TrainProgram& built,
                          const std::vector<std::string>& fetched,
                          const LoadedModel& model, Predictor* predictor) {
  NetworkOfJob network;
  if (model.kind != LoadedModel::Kind::kInference)
    network.layers = built.test_layers;
  auto named = VariablesNamed(fetched, predictor->program, network);
  if (!named.ok()) return OfModel(model, named.status());
  predictor->outputs = *std::move(named);
  for (size_t k = 1; k < fetched.size(); ++k)
    for (size_t j = 0; j < k; ++j)
      if (predictor->outputs[j] == predictor->outputs[k])
        return CommandLineError(absl::StrCat("--fetch: '", fetched[j],
                                             "' and '", fetched[k],
                                             "' are one variable"));
  for (size_t k = 0; k < fetched.size(); ++k) {
    const VarDesc* var =
        predictor->program.global().FindVar(predictor->outputs[k]);
    if (var != nullptr && var->persistable)
      return CommandLineError(
          absl::StrCat("--fetch: '", fetched[k],
                       "' is a parameter; predictions have one row a record"));
  }
  predictor->counted.clear();
  for (const std::string& output : predictor->outputs)
    predictor->counted.push_back(
        !RowCountsOf(predictor->program, output).empty());
  return absl::OkStatus();
}

// The predictor to run: the job's network, or the model as it is; it gives its
// outputs, or what `fetched` names.
absl::StatusOr<Predictor> MakePredictor(const TrainProgram& built,
                                        const std::vector<std::string>& fetched,
                                        LoadedModel* model, Session* session) {
  Predictor predictor;
  EvaluationSpec spec = SpecOfJob(built);
  if (model->kind == LoadedModel::Kind::kInference) {
    // An exported model may lack layers that only metrics and losses look at.
    TrainProgram answering = built;
    answering.metrics.clear();
    answering.loss.clear();
    PD_ASSIGN_OR_RETURN(spec, SpecOfModel(answering, *model));
    PD_RETURN_IF_ERROR(FillScope(*model, &session->scope()));
  } else {
    FitNames(spec.program, model);
    PD_RETURN_IF_ERROR(SetParameters(*model, spec.program, session));
  }
  predictor.program = std::move(spec.program);
  predictor.outputs = std::move(spec.outputs);
  // The job tells which outputs hold a counted number of rows: a model of
  // another format has no such op.
  for (const std::string& output : built.outputs)
    predictor.counted.push_back(!RowCountsOf(built.test, output).empty());
  predictor.counted.resize(predictor.outputs.size(), false);
  if (!fetched.empty())
    PD_RETURN_IF_ERROR(FetchInstead(built, fetched, *model, &predictor));
  // Inputs that only the loss depends on, such as a decoder's target, are not
  // read from the data; an exported model may lack their variables.
  std::vector<std::string> inputs;
  for (const std::string& input : built.inputs)
    if (predictor.program.global().FindVar(input) != nullptr)
      inputs.push_back(input);
  PD_ASSIGN_OR_RETURN(
      inputs, FeedsNeeded(predictor.program, inputs, predictor.outputs));
  for (const FeedSpec& feed : built.feeds)
    if (std::count(inputs.begin(), inputs.end(), feed.name) > 0)
      predictor.inputs.push_back(feed);
  return predictor;
}

// Runs it and writes what comes.
absl::Status WriteAll(const Predictor& predictor, Session* session,
                      PredictionData* data, Answers* answers,
                      PredictionWriter* writer) {
  const double begin = SteadySeconds();
  Progress progress(Progress::Standard());
  progress.Begin("predicting", 0);
  int64_t batches = 0, done = 0;
  BadRecords skipped;
  const auto sink =
      [&](const Batch& batch, const Dataset& set,
          const std::vector<const Tensor*>& outputs) -> absl::Status {
    for (int64_t i = 0; i < batch.size; ++i) {
      Prediction prediction;
      PD_RETURN_IF_ERROR(answers->Make(batch, set, outputs, i, &prediction));
      PD_RETURN_IF_ERROR(writer->Write(prediction));
    }
    progress.Update(++batches, done += batch.size);
    return writer->Flush();
  };
  const auto records = Predict(predictor, session, data, sink, &skipped);
  progress.End();
  PD_RETURN_IF_ERROR(records.status());
  PD_RETURN_IF_ERROR(writer->Finish());
  if (skipped.count > 0) LogWarning("%s", SkippedText(skipped, "predict"));
  LogInfo("%d records in %.2f s", *records, SteadySeconds() - begin);
  return absl::OkStatus();
}

}  // namespace

absl::Status PredictRecords(const EvalOptions& options,
                            const OpRegistry& registry, LoadedModel model,
                            std::ostream& out) {
  if (options.config.empty() && model.run.empty())
    return CommandLineError(absl::StrCat(
        "'", options.model,
        "' is no run, whose job says how records are read, and there is no '",
        PreprocessPath(model.path), "': say it with -c, as -c RUN/job.pbtxt"));
  const std::string config = options.config.empty()
                                 ? absl::StrCat(model.run, "/job.pbtxt")
                                 : options.config;
  PD_ASSIGN_OR_RETURN(
      const LoadedJob job,
      ReadJobFor(config, options.overrides, options.common.seed, model.run));
  const job::Data& sets = job.proto().data();
  if (!sets.has_eval() && !sets.has_train())
    return UsageError(job.Require({"data.eval"}, "pd-eval --predict"));
  const job::DataSet& set = sets.has_eval() ? sets.eval() : sets.train();
  auto built = BuildTestProgram(registry, job);
  if (!built.ok()) return UsageError(built.status());
  Session session(&registry, job.proto().train().seed());
  PrepareSession(options, &session);
  const std::vector<std::string> fetched = SplitNames(options.fetch);
  PD_ASSIGN_OR_RETURN(const Predictor predictor,
                      MakePredictor(*built, fetched, &model, &session));
  Answer answer = FindAnswer(*built);
  if (!fetched.empty()) answer = Answer();
  // An exported model may end in another op than the job's network.
  if (model.kind == LoadedModel::Kind::kInference && fetched.empty() &&
      answer.made_by != "sigmoid")
    answer.made_by =
        MakerOf(predictor.program, predictor.outputs[answer.output]);
  RunVocabularies vocabularies(model.run.empty() ? RunOfJobFile(options.config)
                                                 : model.run);
  Answers answers(options, *built, answer);
  answers.set_asked(!options.masks.empty());
  answers.set_fetched(fetched);
  PredictionLayout layout;
  layout.top = options.top;
  layout.files = options.sources.size() > 1;
  if (!answer.label.empty()) {
    layout.answer = answer.label;
    PD_ASSIGN_OR_RETURN(layout.classes, vocabularies.Classes(answer.label));
    const auto own = model.classes.find(predictor.outputs[answer.output]);
    if (layout.classes.empty() && own != model.classes.end())
      layout.classes = own->second;
  }
  if (answer.kind == AnswerKind::kTokens && layout.classes.empty()) {
    PD_ASSIGN_OR_RETURN(auto words,
                        WordsOf(job, set, answer.label, &vocabularies));
    answers.set_words(std::move(words));
  }
  PD_ASSIGN_OR_RETURN(auto writer,
                      OpenPredictions(options.out, options.common.json(),
                                      std::move(layout), out));
  PD_RETURN_IF_ERROR(answers.Begin(writer->wants_arrays()));
  PredictionData data(job, set, predictor.inputs, &vocabularies,
                      {options.sources, options.from});
  return MarkJobErrors(
      job, WriteAll(predictor, &session, &data, &answers, writer.get()));
}

}  // namespace pd
