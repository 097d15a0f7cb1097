// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/run_watcher.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "formats/json_text.h"
#include "formats/pdmodel.h"
#include "formats/tfevents.h"
#include "libcore/base/clock.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/nn/job.pb.h"
#include "libcore/report/embedding_words.h"
#include "libcore/report/hyper_parameters.h"
#include "libcore/report/log_graph.h"
#include "libcore/train/bench.h"
#include "libcore/train/prediction_data.h"
#include "libcore/train/run_vocabularies.h"

namespace pd {
namespace {

constexpr int kBins = 30;                  // of a histogram; as TensorBoard
constexpr int64_t kMostLoggedCurves = 20;  // classes with curves of their own
constexpr int64_t kMostRows = 10000;       // of a table of embeddings

const job::Log& LogOf(const TrainStart& start) {
  return start.job->proto().train().log();
}

// The picture in colours with a frame, green or red.
Image Framed(const Image& image, bool wrong) {
  const int64_t edge =
      std::max<int64_t>(1, std::min(image.height, image.width) / 16);
  Image framed{image.height + 2 * edge, image.width + 2 * edge, 3, {}};
  for (int64_t y = -edge; y < image.height + edge; ++y)
    for (int64_t x = -edge; x < image.width + edge; ++x) {
      const bool inside =
          y >= 0 && x >= 0 && y < image.height && x < image.width;
      for (int64_t c = 0; c < 3; ++c) {
        const uint8_t frame = c == (wrong ? 0 : 1) ? 190 : 40;
        const int64_t at = (y * image.width + x) * image.channels +
                           std::min(c, image.channels - 1);
        framed.pixels.push_back(inside ? image.pixels[static_cast<size_t>(at)]
                                       : frame);
      }
    }
  return framed;
}

// A name as one part of a path.
std::string FileName(const std::string& name) {
  return absl::StrReplaceAll(name, {{"/", "_"}});
}

}  // namespace

RunWatcher::~RunWatcher() {
  if (times_file_ != nullptr) std::fclose(times_file_);
}

void RunWatcher::Keep(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

absl::Status RunWatcher::OnStart(const TrainStart& start) {
  start_ = start;
  step_ = start.step;
  epochs_ = start.job->proto().train().epochs();
  if (!options_.sound.name.empty()) {
    PD_RETURN_IF_ERROR(CheckSound(*start.program, options_.sound));
    if (start.eval_loader == nullptr)
      return InvalidArgument(
          "no record of input '%s' can be heard: the job has no 'data.eval'",
          options_.sound.name);
    view_.Hear(options_.sound);
  }
  if (start.eval_loader != nullptr) {
    RunVocabularies vocabularies(start.run);
    PD_ASSIGN_OR_RETURN(WordsByField words,
                        AllWordsOf(*start.job, start.job->proto().data().eval(),
                                   &vocabularies));
    view_.Start(start.program, start.eval_loader, LogOf(start).samples(),
                std::move(words));
  }
  if (start.step > 0) PD_RETURN_IF_ERROR(history_.Read(start.run));
  for (const LogKind kind : options_.logs) {
    PD_ASSIGN_OR_RETURN(logs_.emplace_back(),
                        LogFile::Open(kind, start.run, start.step));
    // VisualDL draws the model's file that lies beside its records.
    if (kind == LogKind::kVisualDl)
      PD_RETURN_IF_ERROR(
          WriteProgram(start.run + "/vdlgraph.pdmodel", start.program->test));
  }
  PD_RETURN_IF_ERROR(OpenTimes());
  if (!logs_.empty()) Add("graph", 0, GraphOf(*start.program));
  Flush();
  last_ = SteadySeconds();
  return status_;
}

absl::Status RunWatcher::OpenTimes() {
  PD_ASSIGN_OR_RETURN(times_, ReadTimes(start_.run, start_.step));
  std::string lines;
  for (const TimePoint& point : times_)
    absl::StrAppend(&lines, TimeLine(point), "\n");
  const std::string path = absl::StrCat(start_.run, "/times.jsonl");
  PD_RETURN_IF_ERROR(WriteFile(path, lines));
  times_file_ = std::fopen(path.c_str(), "ab");
  if (times_file_ == nullptr)
    return ErrnoToStatus(errno, absl::StrCat("cannot write '", path, "'"));
  if (!times_.empty()) seconds_ = times_.back().seconds;
  return absl::OkStatus();
}

void RunWatcher::Add(const std::string& tag, int64_t step,
                     const LogContent& content) {
  for (const auto& log : logs_) Keep(log->Add(tag, step, content));
}

void RunWatcher::Flush() {
  for (const auto& log : logs_) Keep(log->Flush());
}

void RunWatcher::OnEpoch(int64_t epoch, int64_t epochs, int64_t, int64_t) {
  epoch_ = epoch;
  epochs_ = epochs;
  last_ = SteadySeconds();
}

void RunWatcher::OnStep(const StepReport& report) {
  const double now = SteadySeconds();
  busy_ += now - last_;
  last_ = now;
  step_ = report.step;
  records_ += report.records;
  if (report.step % LogOf(start_).every_steps() == 0) MarkTime();
}

void RunWatcher::MarkTime() {
  if (records_ == 0) return;
  seconds_ += busy_;
  TimePoint point;
  point.step = step_;
  point.seconds = seconds_;
  point.records_per_second =
      busy_ > 0 ? static_cast<double>(records_) / busy_ : 0;
  point.rss_mb = RssMegabytes();
  point.peak_rss_mb = PeakRssMegabytes();
  busy_ = 0;
  records_ = 0;
  times_.push_back(point);
  const std::string line = TimeLine(point) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), times_file_) != line.size() ||
      std::fflush(times_file_) != 0)
    Keep(ErrnoToStatus(
        errno, absl::StrCat("cannot write '", start_.run, "/times.jsonl'")));
  Add("train/records_per_second", step_,
      static_cast<float>(point.records_per_second));
  Add("memory/rss_mb", step_, static_cast<float>(point.rss_mb));
}

bool RunWatcher::WantsGradients(int64_t step) {
  const int64_t every = LogOf(start_).histogram_every_steps();
  return !logs_.empty() && every > 0 && step % every == 0;
}

void RunWatcher::OnGradients(int64_t step,
                             const std::vector<ParameterGradient>& gradients) {
  for (const ParameterGradient& entry : gradients) {
    const Tensor& gradient = *entry.gradient;
    if (gradient.dtype() == DType::kFloat32)
      Add(absl::StrCat("gradients/", entry.parameter), step,
          MakeHistogram(gradient.data<float>(),
                        static_cast<size_t>(gradient.size()), kBins));
    const auto weight = start_.session->scope().Get(entry.parameter);
    if (weight.ok() && weight->dtype == DType::kFloat32)
      Add(absl::StrCat("weights/", entry.parameter), step,
          MakeHistogram(weight->data<float>(),
                        static_cast<size_t>(weight->size()), kBins));
  }
  last_ = SteadySeconds();
}

void RunWatcher::OnLog(const std::string& line) {
  history_.AddLine(line);
  const LogLinePoints points = PointsOf(line);
  for (const TaggedValue& value : points.values)
    Add(value.tag, points.step, static_cast<float>(value.value));
  Flush();
}

void RunWatcher::AddHyperParameters() {
  if (hyper_parameters_ || logs_.empty()) return;
  hyper_parameters_ = true;
  LogHyperParameters hyper;
  hyper.name = start_.job->proto().name();
  hyper.parameters = HyperParametersOf(*start_.job);
  for (const auto& [tag, points] : history_.series())
    if (tag.rfind("eval/", 0) == 0) hyper.metrics.push_back(tag);
  if (hyper.metrics.empty()) hyper.metrics.push_back("train/loss");
  Add("_hparams_/experiment", 0, hyper);
}

void RunWatcher::AddCurves(int64_t step) {
  for (const ClassCurve& curve : view_.Curves(kMostLoggedCurves)) {
    Add(absl::StrCat("pr/", curve.name), step, LogPrCurve{curve.counts});
    Add(absl::StrCat("roc/", curve.name), step, LogRocCurve{curve.counts});
    Add(absl::StrCat("auc/", curve.name), step,
        static_cast<float>(curve.counts.Area()));
  }
}

void RunWatcher::AddPicture(const std::string& tag, int64_t step,
                            const Image& picture) {
  auto png = EncodePng(picture);
  Keep(png.status());
  if (png.ok())
    Add(tag, step,
        LogPicture{picture.height, picture.width, picture.channels,
                   *std::move(png)});
}

void RunWatcher::AddSound(const std::string& tag, int64_t step,
                          const WavSound& sound) {
  auto wav = EncodeWav(sound);
  Keep(wav.status());
  if (wav.ok())
    Add(tag, step,
        LogAudio{sound.rate, sound.channels,
                 static_cast<int64_t>(sound.samples.size()) / sound.channels,
                 *std::move(wav)});
}

// Pictures of the same records each time, framed by whether the answer is
// right; a table says what the answers are.
void RunWatcher::AddSamples(int64_t step) {
  std::string table = "| record | truth | answer |\n|---|---|---|\n";
  for (const RecordView& view : view_.samples()) {
    absl::StrAppend(&table, "| ", view.record, " | ", view.truth, " | ",
                    view.answer, view.wrong ? " (wrong) |\n" : " |\n");
    const std::string tag = absl::StrCat("samples/", view.record);
    if (!view.picture.pixels.empty())
      AddPicture(tag, step, Framed(view.picture, view.wrong));
    if (!view.sound.samples.empty()) AddSound(tag + "/audio", step, view.sound);
    if (view.truth_mask.pixels.empty()) continue;
    AddPicture(tag + "/truth", step, view.truth_mask);
    AddPicture(tag + "/answer", step, view.answer_mask);
  }
  if (!view_.samples().empty()) Add("samples/answers", step, LogText{table});
}

void RunWatcher::AddEmbeddings(int64_t step) {
  for (const LayerInfo& layer : start_.program->layers) {
    if (layer.kind != "embedding" || layer.parameters.empty()) continue;
    const auto table = start_.session->scope().Get(layer.parameters[0]);
    if (!table.ok() || table->shape.size() != 2 ||
        table->dtype != DType::kFloat32)
      continue;
    LogEmbedding embedding;
    const int64_t rows = std::min(table->shape[0], kMostRows);
    embedding.width = static_cast<size_t>(table->shape[1]);
    embedding.labels =
        EmbeddingLabels(start_.program->main, layer.parameters[0], rows,
                        start_.loader->dataset());
    embedding.values.assign(table->data<float>(),
                            table->data<float>() + rows * table->shape[1]);
    Add(absl::StrCat("embedding/", layer.name), step, embedding);
    if (std::count(options_.logs.begin(), options_.logs.end(),
                   LogKind::kTensorBoard) > 0)
      Keep(WriteProjector(layer.name, embedding));
  }
}

// TensorBoard's projector reads tables from files that a third one names.
absl::Status RunWatcher::WriteProjector(const std::string& name,
                                        const LogEmbedding& table) {
  const std::string folder = absl::StrCat("embeddings/", FileName(name));
  PD_RETURN_IF_ERROR(MakeDirectories(absl::StrCat(start_.run, "/", folder)));
  std::string vectors, labels;
  for (size_t i = 0; i < table.labels.size(); ++i) {
    for (size_t j = 0; j < table.width; ++j)
      absl::StrAppendFormat(&vectors, "%s%.9g", j > 0 ? "\t" : "",
                            table.values[i * table.width + j]);
    vectors += '\n';
    absl::StrAppend(&labels, table.labels[i], "\n");
  }
  const std::string base = absl::StrCat(start_.run, "/", folder);
  PD_RETURN_IF_ERROR(WriteFile(base + "/tensors.tsv", vectors));
  PD_RETURN_IF_ERROR(WriteFile(base + "/metadata.tsv", labels));
  projected_.emplace_back(name, folder);
  std::string config;
  for (const auto& [layer, place] : projected_) {
    std::string quoted;
    AppendJsonString(layer, &quoted);
    absl::StrAppend(&config, "embeddings {\n  tensor_name: ", quoted,
                    "\n  tensor_path: \"", place,
                    "/tensors.tsv\"\n  metadata_path: \"", place,
                    "/metadata.tsv\"\n}\n");
  }
  return WriteFile(absl::StrCat(start_.run, "/projector_config.pbtxt"), config);
}

void RunWatcher::OnEvaluation(int64_t step, const EvaluationResult&) {
  MarkTime();
  AddHyperParameters();
  if (!logs_.empty()) {
    AddCurves(step);
    AddSamples(step);
  }
  Flush();
  Report("running");
  last_ = SteadySeconds();
}

void RunWatcher::OnCheckpoint(const std::string&) {
  Flush();
  last_ = SteadySeconds();
}

void RunWatcher::OnPlan(int64_t, const Plan& plan) {
  const PlanStats& stats = plan.stats();
  memory_.activations = std::max(memory_.activations, stats.arena_bytes);
  memory_.unshared = std::max(memory_.unshared, stats.unplanned_bytes);
  memory_.variables = std::max(memory_.variables, stats.persistable_bytes);
  last_ = SteadySeconds();
}

absl::Status RunWatcher::Finish(const TrainOutcome* outcome) {
  if (start_.job == nullptr) return status_;  // it never began
  MarkTime();
  AddHyperParameters();
  const bool stopped = outcome != nullptr && outcome->stopped_by != 0;
  if (outcome != nullptr && !stopped) AddEmbeddings(step_);
  if (!stopped) Add(kLogEndTag, step_, LogEnd{outcome != nullptr});
  Flush();
  // Where nothing was left to do, the page that is there shows an evaluation
  // that this process has not made.
  if (outcome == nullptr || !outcome->nothing_left ||
      !Exists(absl::StrCat(start_.run, "/report.html")))
    Report(outcome == nullptr ? "failed" : stopped ? "stopped" : "done");
  return status_;
}

void RunWatcher::Report(const std::string& state) {
  if (!options_.report) return;
  RunReport report;
  report.title = start_.job->proto().name();
  report.run = start_.run;
  report.state = state;
  report.step = step_;
  report.epoch = epoch_ + 1;
  report.epochs = epochs_;
  report.job_text = start_.job->EffectiveText();
  report.facts = options_.facts;
  report.history = &history_;
  report.times = times_;
  report.memory = memory_;
  report.peak_rss_mb = PeakRssMegabytes();
  if (view_.records() > 0) report.view = &view_;
  Keep(WriteReport(absl::StrCat(start_.run, "/report.html"), report));
}

}  // namespace pd
