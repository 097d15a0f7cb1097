// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/evaluation_view.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/image.h"
#include "formats/json_text.h"
#include "libcore/data/dataset.h"

namespace pd {
namespace {

constexpr int64_t kShownNumbers = 12;
constexpr int64_t kMostSide = 1024;  // of a picture

int64_t PerRecord(const Shape& shape) {
  int64_t size = 1;
  for (size_t i = 1; i < shape.size(); ++i) size *= shape[i];
  return size;
}

double NumberAt(DType dtype, const void* data, int64_t i) {
  switch (dtype) {
    case DType::kFloat32:
      return static_cast<double>(static_cast<const float*>(data)[i]);
    case DType::kFloat64:
      return static_cast<const double*>(data)[i];
    case DType::kInt64:
      return static_cast<double>(static_cast<const int64_t*>(data)[i]);
    case DType::kInt32:
      return static_cast<const int32_t*>(data)[i];
    case DType::kUInt8:
      return static_cast<const uint8_t*>(data)[i];
    case DType::kBool:
      return static_cast<const bool*>(data)[i] ? 1 : 0;
    default:
      return NAN;
  }
}

// "3, 1, 4, ... (28 numbers)"
std::string NumbersText(DType dtype, const void* data, int64_t begin,
                        int64_t count) {
  std::string text;
  for (int64_t i = 0; i < std::min(count, kShownNumbers); ++i)
    absl::StrAppendFormat(&text, "%s%.5g", i > 0 ? ", " : "",
                          NumberAt(dtype, data, begin + i));
  if (count > kShownNumbers)
    absl::StrAppend(&text, ", ... (", count, " numbers)");
  return text;
}

// Scores of one record as probabilities, by the op that made them.
void MakeProbabilities(const std::string& made_by, std::vector<float>* scores) {
  if (made_by == "softmax" || made_by == "sigmoid") return;
  if (made_by == "log_softmax") {
    for (float& s : *scores) s = std::exp(s);
    return;
  }
  const float largest = *std::max_element(scores->begin(), scores->end());
  float sum = 0;
  for (float& s : *scores) sum += s = std::exp(s - largest);
  for (float& s : *scores) s /= sum;
}

// VisualDL's bucket of a probability. NaN is no reason to say yes.
size_t BucketOf(float probability) {
  const float last = static_cast<float>(EvaluationView::kThresholds - 1);
  const float place = std::floor(probability * last);
  return place > 0 ? static_cast<size_t>(std::min(place, last)) : 0;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

// A float array [channels, height, width] as a picture: its smallest number
// black, its largest white.
Image PictureOfPlanes(const float* values, const Shape& shape) {
  Image image{shape[2], shape[3], shape[1], {}};
  const int64_t plane = image.height * image.width;
  const int64_t n = plane * image.channels;
  const auto [low, high] = std::minmax_element(values, values + n);
  const float range = *high > *low ? *high - *low : 1;
  image.pixels.resize(static_cast<size_t>(n));
  for (int64_t p = 0; p < plane; ++p)
    for (int64_t c = 0; c < image.channels; ++c)
      image.pixels[static_cast<size_t>(p * image.channels + c)] =
          static_cast<uint8_t>(
              std::clamp((values[c * plane + p] - *low) / range, 0.0f, 1.0f) *
                  255 +
              0.5f);
  return image;
}

}  // namespace

void EvaluationView::Start(const TrainProgram* program, const Loader* loader,
                           int samples) {
  program_ = program;
  loader_ = loader;
  most_ = static_cast<size_t>(samples);
  FindAnswer();
}

// The first output that a label of the job can be held against.
void EvaluationView::FindAnswer() {
  const BlockDesc& block = program_->test.global();
  std::set<std::string> yes_no;  // read by losses of yes-or-no questions
  for (const OpDesc& op : block.ops)
    if (op.type == "bce_loss" || op.type == "sigmoid_cross_entropy_with_logits")
      yes_no.insert(op.In("X"));
  for (size_t o = 0; o < program_->outputs.size(); ++o) {
    const VarDesc* output = block.FindVar(program_->outputs[o]);
    if (output == nullptr || output->dtype != DType::kFloat32 ||
        output->shape.empty())
      continue;
    const int64_t width = PerRecord(output->shape);
    for (const FeedSpec& feed : program_->feeds) {
      if (std::count(program_->inputs.begin(), program_->inputs.end(),
                     feed.name) > 0)
        continue;
      const int64_t labels = PerRecord(feed.shape);
      if (output->shape.size() == 2 && width > 1 && labels == 1 &&
          feed.dtype == DType::kInt64)
        kind_ = AnswerKind::kClasses;
      else if (width == 1 && labels == 1 && yes_no.count(output->name) > 0)
        kind_ = AnswerKind::kYesNo;
      else if (IsFloat(feed.dtype) && labels == width && width > 0)
        kind_ = AnswerKind::kNumbers;
      else
        continue;
      output_ = o;
      label_ = feed.name;
      classes_ = kind_ == AnswerKind::kClasses ? width
                 : kind_ == AnswerKind::kYesNo ? 2
                                               : 0;
      for (const OpDesc& op : block.ops)
        for (const auto& [slot, names] : op.outputs)
          if (std::count(names.begin(), names.end(), output->name) > 0)
            made_by_ = op.type;
      if (kind_ == AnswerKind::kYesNo)
        for (const OpDesc& op : block.ops)
          if (op.type == "bce_loss" && op.In("X") == output->name)
            made_by_ = "sigmoid";  // a probability, whatever made it
      return;
    }
  }
}

void EvaluationView::OnBegin() {
  records_ = 0;
  samples_.clear();
  mistakes_.clear();
  points_.clear();
  const bool table = classes_ > 0 && classes_ <= kMostClasses;
  confusion_.assign(table ? static_cast<size_t>(classes_ * classes_) : 0, 0);
  const bool one = kind_ == AnswerKind::kYesNo;
  buckets_.assign(table ? (one ? 1 : static_cast<size_t>(classes_)) : 0, {});
}

std::string EvaluationView::ClassName(int64_t number) const {
  const FieldSpec* field = loader_->dataset().FindField(label_);
  return field != nullptr ? pd::ClassName(field->classes, number)
                          : absl::StrCat(number);
}

const BatchField* EvaluationView::FindField(const Batch& batch,
                                            const std::string& name) const {
  for (const BatchField& field : batch.fields)
    if (field.name == name) return &field;
  return nullptr;
}

void EvaluationView::OnBatch(const Batch& batch,
                             const std::vector<const Tensor*>& outputs) {
  const BatchField* label =
      kind_ == AnswerKind::kNone ? nullptr : FindField(batch, label_);
  const Tensor* output = output_ < outputs.size() ? outputs[output_] : nullptr;
  const bool usable = output != nullptr && output->rank() > 0 &&
                      output->dtype() == DType::kFloat32 &&
                      output->dim(0) == batch.size;
  if (usable && label != nullptr && kind_ == AnswerKind::kClasses) {
    CountClasses(batch, *output, *label);
  } else if (usable && label != nullptr && kind_ == AnswerKind::kYesNo) {
    CountYesNo(batch, *output, *label);
  } else if (usable && label != nullptr && kind_ == AnswerKind::kNumbers) {
    CountNumbers(batch, *output, *label);
  } else {
    for (int64_t i = 0; i < batch.size && samples_.size() < most_; ++i) {
      RecordView view;
      if (usable) {
        const int64_t width = PerRecord(output->shape());
        view.answer =
            NumbersText(output->dtype(), output->raw(), i * width, width);
      }
      Judge(batch, i, std::move(view));
    }
  }
  records_ += batch.size;
}

void EvaluationView::CountClasses(const Batch& batch, const Tensor& output,
                                  const BatchField& label) {
  const auto* labels = reinterpret_cast<const int64_t*>(label.data);
  std::vector<float> scores(static_cast<size_t>(classes_));
  if (output.dim(1) != classes_) return;
  for (int64_t i = 0; i < batch.size; ++i) {
    const float* row = output.data<float>() + i * classes_;
    scores.assign(row, row + classes_);
    MakeProbabilities(made_by_, &scores);
    const int64_t truth = labels[i];
    if (truth < 0 || truth >= classes_) continue;  // to be left out
    const int64_t answer =
        std::max_element(scores.begin(), scores.end()) - scores.begin();
    if (!confusion_.empty()) {
      ++confusion_[static_cast<size_t>(truth * classes_ + answer)];
      for (int64_t c = 0; c < classes_; ++c) {
        Buckets& buckets = buckets_[static_cast<size_t>(c)];
        const size_t bucket = BucketOf(scores[static_cast<size_t>(c)]);
        ++(c == truth ? buckets.right : buckets.wrong)[bucket];
      }
    }
    RecordView view;
    view.truth = ClassName(truth);
    view.answer = ClassName(answer);
    view.wrong = truth != answer;
    view.confidence = static_cast<double>(scores[static_cast<size_t>(answer)]);
    Judge(batch, i, std::move(view));
  }
}

void EvaluationView::CountYesNo(const Batch& batch, const Tensor& output,
                                const BatchField& label) {
  for (int64_t i = 0; i < batch.size; ++i) {
    float score = output.data<float>()[i];
    if (made_by_ != "sigmoid") score = 1 / (1 + std::exp(-score));
    const bool truth = NumberAt(label.dtype, label.data, i) > 0.5;
    const bool answer = score >= 0.5f;
    ++confusion_[static_cast<size_t>(truth) * 2 + static_cast<size_t>(answer)];
    ++(truth ? buckets_[0].right : buckets_[0].wrong)[BucketOf(score)];
    RecordView view;
    view.truth = ClassName(truth);
    view.answer = ClassName(answer);
    view.wrong = truth != answer;
    view.confidence = static_cast<double>(answer ? score : 1 - score);
    Judge(batch, i, std::move(view));
  }
}

void EvaluationView::CountNumbers(const Batch& batch, const Tensor& output,
                                  const BatchField& label) {
  const int64_t width = PerRecord(output.shape());
  if (PerRecord(label.shape) != width) return;
  for (int64_t i = 0; i < batch.size; ++i) {
    for (int64_t j = i * width;
         j < (i + 1) * width && points_.size() < kMostPoints; ++j)
      points_.emplace_back(
          static_cast<float>(NumberAt(label.dtype, label.data, j)),
          output.data<float>()[j]);
    if (samples_.size() >= most_) continue;
    RecordView view;
    view.truth = NumbersText(label.dtype, label.data, i * width, width);
    view.answer = NumbersText(output.dtype(), output.raw(), i * width, width);
    Judge(batch, i, std::move(view));
  }
}

// Keeps the record where it is one of those that are shown.
void EvaluationView::Judge(const Batch& batch, int64_t i, RecordView view) {
  view.record = batch.records[static_cast<size_t>(i)];
  if (samples_.size() < most_) {
    samples_.push_back(view);
    Describe(batch, i, &samples_.back());
  }
  if (!view.wrong) return;
  const auto place = std::find_if(
      mistakes_.begin(), mistakes_.end(),
      [&](const RecordView& m) { return m.confidence < view.confidence; });
  if (static_cast<size_t>(place - mistakes_.begin()) >= most_) return;
  Describe(batch, i, &view);
  mistakes_.insert(place, std::move(view));
  if (mistakes_.size() > most_) mistakes_.pop_back();
}

void EvaluationView::Describe(const Batch& batch, int64_t i, RecordView* view) {
  view->picture = PictureOf(batch, i);
  for (const std::string& name : program_->inputs) {
    const BatchField* field = FindField(batch, name);
    if (field == nullptr) continue;
    if (!view->picture.pixels.empty() && field->shape.size() == 4) continue;
    const int64_t width = PerRecord(field->shape);
    view->inputs.emplace_back(
        name, NumbersText(field->dtype, field->data, i * width, width));
  }
}

const Image& EvaluationView::PictureOf(const Batch& batch, int64_t i) {
  // The first records come again in every evaluation.
  if (pictures_.size() > 8 * most_) pictures_.clear();
  const int64_t record = batch.records[static_cast<size_t>(i)];
  const auto [known, fresh] = pictures_.try_emplace(record);
  Image& picture = known->second;
  if (!fresh) return picture;
  // The image as it is, before transforms; else an input that looks like one.
  const Dataset& dataset = loader_->dataset();
  const auto image =
      std::find_if(dataset.fields().begin(), dataset.fields().end(),
                   [](const FieldSpec& field) { return field.is_image; });
  Record raw;
  if (image != dataset.fields().end() && dataset.Read(record, &raw).ok()) {
    const FieldView& view =
        raw.fields[static_cast<size_t>(image - dataset.fields().begin())];
    const auto* bytes = reinterpret_cast<const uint8_t*>(view.data);
    const int64_t n = view.height * view.width * view.channels;
    if (view.height <= kMostSide && view.width <= kMostSide)
      picture = {view.height, view.width, view.channels,
                 std::vector<uint8_t>(bytes, bytes + n)};
    return picture;
  }
  for (const std::string& name : program_->inputs) {
    const BatchField* field = FindField(batch, name);
    if (field == nullptr || field->dtype != DType::kFloat32) continue;
    const Shape& shape = field->shape;
    if (shape.size() != 4 || (shape[1] != 1 && shape[1] != 3) || shape[2] < 4 ||
        shape[3] < 4 || shape[2] > kMostSide || shape[3] > kMostSide)
      continue;
    picture = PictureOfPlanes(
        reinterpret_cast<const float*>(field->data) + i * PerRecord(shape),
        shape);
    break;
  }
  return picture;
}

LogCurve EvaluationView::Buckets::Counts() const {
  LogCurve curve;
  for (auto* counts : {&curve.tp, &curve.fp, &curve.tn, &curve.fn})
    counts->resize(kThresholds);
  int64_t tp = 0, fp = 0;
  for (size_t i = kThresholds; i-- > 0;) {
    curve.tp[i] = tp += right[i];
    curve.fp[i] = fp += wrong[i];
  }
  for (size_t i = 0; i < kThresholds; ++i) {
    curve.tn[i] = fp - curve.fp[i];
    curve.fn[i] = tp - curve.tp[i];
  }
  return curve;
}

std::vector<ClassCurve> EvaluationView::Curves(int64_t most) const {
  std::vector<ClassCurve> curves;
  if (records_ == 0) return curves;
  Buckets all;
  for (size_t c = 0; c < buckets_.size(); ++c) {
    for (size_t i = 0; i < kThresholds; ++i) {
      all.right[i] += buckets_[c].right[i];
      all.wrong[i] += buckets_[c].wrong[i];
    }
    if (static_cast<int64_t>(c) >= most) continue;
    const int64_t number = static_cast<int64_t>(c);
    curves.push_back({ClassName(kind_ == AnswerKind::kYesNo ? 1 : number),
                      buckets_[c].Counts()});
  }
  if (buckets_.size() > 1) curves.push_back({"all", all.Counts()});
  return curves;
}

}  // namespace pd
