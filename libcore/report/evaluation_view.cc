// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/evaluation_view.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/image.h"
#include "formats/json_text.h"
#include "libcore/data/class_colors.h"
#include "libcore/data/dataset.h"
#include "libcore/data/vocabulary.h"
#include "libcore/report/draw_boxes.h"

namespace pd {
namespace {

constexpr int64_t kShownNumbers = 12;
constexpr int64_t kShownColumns = 30;
constexpr int64_t kShownWords = 60;
constexpr int64_t kMostSide = 1024;  // of a picture
constexpr float kShownScore = 0.3f;  // of a detected box

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

// The true boxes of record i; what has no size is padding.
std::vector<DrawnBox> TrueBoxes(const BatchField& label,
                                const BatchField& boxes, bool centred,
                                int64_t i) {
  std::vector<DrawnBox> truths;
  const int64_t count = PerRecord(label.shape);
  if (PerRecord(boxes.shape) != count * 4) return truths;
  for (int64_t k = i * count; k < (i + 1) * count; ++k) {
    double b[4];
    for (int64_t j = 0; j < 4; ++j)
      b[j] = NumberAt(boxes.dtype, boxes.data, k * 4 + j);
    if (centred) {
      const double width = b[2], height = b[3];
      b[0] -= width / 2, b[1] -= height / 2;
      b[2] = b[0] + width, b[3] = b[1] + height;
    }
    if (!(b[2] > b[0] && b[3] > b[1])) continue;
    truths.push_back(
        {static_cast<int64_t>(NumberAt(label.dtype, label.data, k)),
         {b[0], b[1], b[2], b[3]}});
  }
  return truths;
}

// VisualDL's bucket of a probability. NaN is no reason to say yes.
size_t BucketOf(float probability) {
  const float last = static_cast<float>(EvaluationView::kThresholds - 1);
  const float place = std::floor(probability * last);
  return place > 0 ? static_cast<size_t>(std::min(place, last)) : 0;
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
                           int samples, WordsByField words) {
  program_ = program;
  loader_ = loader;
  most_ = static_cast<size_t>(samples);
  words_ = std::move(words);
  answer_ = FindAnswer(*program);
}

void EvaluationView::OnBegin() {
  records_ = 0;
  samples_.clear();
  mistakes_.clear();
  points_.clear();
  by_class_.clear();
  const bool one = answer_.kind == AnswerKind::kYesNo;
  const int64_t classes = answer_.classes;
  const bool table =
      (one || answer_.kind == AnswerKind::kClasses) && classes <= kMostClasses;
  confusion_.assign(table ? static_cast<size_t>(classes * classes) : 0, 0);
  buckets_.assign(table ? (one ? 1 : static_cast<size_t>(classes)) : 0, {});
}

std::string EvaluationView::ClassName(int64_t number) const {
  const FieldSpec* field = loader_->dataset().FindField(answer_.label);
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
  const BatchField* label = answer_.kind == AnswerKind::kNone
                                ? nullptr
                                : FindField(batch, answer_.label);
  const Tensor* output =
      answer_.output < outputs.size() ? outputs[answer_.output] : nullptr;
  const bool usable =
      output != nullptr && output->rank() > 0 && output->dim(0) == batch.size;
  const bool floats = usable && output->dtype() == DType::kFloat32;
  if (floats && label != nullptr && answer_.kind == AnswerKind::kClasses) {
    CountClasses(batch, *output, *label);
  } else if (floats && label != nullptr && answer_.kind == AnswerKind::kYesNo) {
    CountYesNo(batch, *output, *label);
  } else if (floats && label != nullptr &&
             answer_.kind == AnswerKind::kNumbers) {
    CountNumbers(batch, *output, *label);
  } else if (usable && label != nullptr &&
             answer_.kind == AnswerKind::kTokens &&
             (floats || output->dtype() == DType::kInt64)) {
    LookAtPositions(batch, *output, *label);
  } else if (floats && label != nullptr && answer_.kind == AnswerKind::kMask) {
    LookAtMasks(batch, *output, *label);
  } else if (output != nullptr && answer_.kind == AnswerKind::kBoxes) {
    LookAtBoxes(batch, outputs);
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

// Numbers of a field as words: of a text, of classes, of a vocabulary.
std::string EvaluationView::WordsText(const std::string& field,
                                      const int64_t* numbers,
                                      int64_t count) const {
  const auto text = words_.find(field);
  if (text != words_.end()) {
    const std::string decoded =
        text->second->Decode(numbers, static_cast<size_t>(count));
    return IsUtf8(decoded) ? decoded : absl::CHexEscape(decoded);
  }
  const FieldSpec* spec = loader_->dataset().FindField(field);
  std::vector<std::string> names;
  if (spec != nullptr) names = spec->classes;
  const auto words = loader_->dataset().vocabularies().find(field);
  if (names.empty() && words != loader_->dataset().vocabularies().end())
    names = words->second->tokens();
  if (names.empty()) return NumbersText(DType::kInt64, numbers, 0, count);
  std::string shown;
  for (int64_t i = 0; i < std::min(count, kShownWords); ++i)
    absl::StrAppend(&shown, i > 0 ? " " : "", pd::ClassName(names, numbers[i]));
  if (count > kShownWords) absl::StrAppend(&shown, " ... (", count, " words)");
  return shown;
}

// The positions of record i that are no padding.
int64_t EvaluationView::LengthOf(const Batch& batch, const std::string& field,
                                 int64_t i, int64_t padded) const {
  const BatchField* lengths = FindField(batch, absl::StrCat(field, "_length"));
  if (lengths == nullptr || lengths->dtype != DType::kInt64) return padded;
  return std::min(padded, reinterpret_cast<const int64_t*>(lengths->data)[i]);
}

void EvaluationView::LookAtPositions(const Batch& batch, const Tensor& output,
                                     const BatchField& label) {
  const int64_t width = PerRecord(label.shape);
  const int64_t positions = output.dim(1);
  const bool ids = output.dtype() == DType::kInt64;
  std::vector<int64_t> answers(static_cast<size_t>(positions));
  for (int64_t i = 0; i < batch.size && samples_.size() < most_; ++i) {
    for (int64_t p = 0; p < positions; ++p)
      answers[static_cast<size_t>(p)] =
          ids ? output.data<int64_t>()[i * positions + p]
              : LargestAt(answer_, output.shape(), output.data<float>(), i, p);
    const int64_t length = LengthOf(batch, label.name, i, width);
    RecordView view;
    view.truth = WordsText(
        label.name, reinterpret_cast<const int64_t*>(label.data) + i * width,
        length);
    view.answer = WordsText(label.name, answers.data(),
                            ids ? positions : std::min(length, positions));
    Judge(batch, i, std::move(view));
  }
}

void EvaluationView::LookAtMasks(const Batch& batch, const Tensor& output,
                                 const BatchField& label) {
  const bool first = answer_.axis == 1;
  const int64_t height = output.dim(first ? 2 : 1);
  const int64_t width = output.dim(first ? 3 : 2);
  const int64_t pixels = height * width;
  if (PerRecord(label.shape) != pixels || height > kMostSide ||
      width > kMostSide)
    return;
  std::vector<int64_t> answers(static_cast<size_t>(pixels));
  for (int64_t i = 0; i < batch.size && samples_.size() < most_; ++i) {
    const auto* truth =
        reinterpret_cast<const int64_t*>(label.data) + i * pixels;
    int64_t counted = 0, right = 0;
    for (int64_t p = 0; p < pixels; ++p) {
      const int64_t answer =
          LargestAt(answer_, output.shape(), output.data<float>(), i, p);
      answers[static_cast<size_t>(p)] = answer;
      if (truth[p] < 0 || truth[p] >= answer_.classes) continue;  // left out
      ++counted;
      right += truth[p] == answer;
    }
    RecordView view;
    view.truth_mask = ColoredClasses({truth, truth + pixels}, height, width);
    view.answer_mask = ColoredClasses(answers, height, width);
    view.answer = absl::StrFormat(
        "%.1f %% of the pixels are right",
        counted > 0
            ? 100.0 * static_cast<double>(right) / static_cast<double>(counted)
            : 100.0);
    Judge(batch, i, std::move(view));
  }
}

void EvaluationView::LookAtBoxes(const Batch& batch,
                                 const std::vector<const Tensor*>& outputs) {
  // Of boxes in pixels: those of the network's picture.
  double sides[2] = {1, 1};
  for (const std::string& name : program_->inputs) {
    const BatchField* field = FindField(batch, name);
    if (answer_.normalized || field == nullptr || field->shape.size() != 4)
      continue;
    sides[0] = static_cast<double>(field->shape[3]);
    sides[1] = static_cast<double>(field->shape[2]);
  }
  const BatchField* label = FindField(batch, answer_.label);
  const BatchField* truths = FindField(batch, answer_.boxes);
  for (int64_t i = 0; i < batch.size && samples_.size() < most_; ++i) {
    const auto found = BoxesOf(answer_, outputs, i);
    if (!found.ok()) return;
    RecordView view;
    std::vector<DrawnBox> drawn;
    for (const DetectedBox& box : *found) {
      if (box.score < kShownScore) break;
      absl::StrAppendFormat(&view.answer, "%s%s %.2f",
                            drawn.empty() ? "" : ", ", ClassName(box.number),
                            box.score);
      drawn.push_back({box.number, {}});
      for (size_t k = 0; k < 4; ++k)
        drawn.back().corners[k] =
            static_cast<double>(box.corners[k]) / sides[k % 2];
    }
    const Image& picture = PictureOf(batch, i);
    view.answer_mask = DrawBoxes(picture, drawn);
    drawn.clear();
    if (label != nullptr && truths != nullptr) {
      drawn = TrueBoxes(*label, *truths, answer_.centred_boxes, i);
      for (DrawnBox& box : drawn) {
        for (size_t k = 0; k < 4; ++k) box.corners[k] /= sides[k % 2];
        absl::StrAppend(&view.truth, view.truth.empty() ? "" : ", ",
                        ClassName(box.number));
      }
      view.truth_mask = DrawBoxes(picture, drawn);
    }
    Judge(batch, i, std::move(view));
  }
}

void EvaluationView::CountClasses(const Batch& batch, const Tensor& output,
                                  const BatchField& label) {
  const auto* labels = reinterpret_cast<const int64_t*>(label.data);
  const int64_t classes = answer_.classes;
  std::vector<float> scores(static_cast<size_t>(classes));
  if (output.dim(1) != classes) return;
  for (int64_t i = 0; i < batch.size; ++i) {
    const float* row = output.data<float>() + i * classes;
    scores.assign(row, row + classes);
    MakeProbabilities(answer_.made_by, &scores);
    const int64_t truth = labels[i];
    if (truth < 0 || truth >= classes) continue;  // to be left out
    const int64_t answer =
        std::max_element(scores.begin(), scores.end()) - scores.begin();
    if (!confusion_.empty()) {
      ++confusion_[static_cast<size_t>(truth * classes + answer)];
      for (int64_t c = 0; c < classes; ++c) {
        Buckets& buckets = buckets_[static_cast<size_t>(c)];
        const size_t bucket = BucketOf(scores[static_cast<size_t>(c)]);
        ++(c == truth ? buckets.right : buckets.wrong)[bucket];
      }
    }
    RecordView view;
    view.truth = ClassName(truth);
    view.answer = ClassName(answer);
    view.wrong = truth != answer;
    view.truth_class = truth;
    view.confidence = static_cast<double>(scores[static_cast<size_t>(answer)]);
    Judge(batch, i, std::move(view));
  }
}

void EvaluationView::CountYesNo(const Batch& batch, const Tensor& output,
                                const BatchField& label) {
  for (int64_t i = 0; i < batch.size; ++i) {
    const float score =
        YesProbability(answer_.made_by, output.data<float>()[i]);
    const bool truth = NumberAt(label.dtype, label.data, i) > 0.5;
    const bool answer = score >= 0.5f;
    ++confusion_[static_cast<size_t>(truth) * 2 + static_cast<size_t>(answer)];
    ++(truth ? buckets_[0].right : buckets_[0].wrong)[BucketOf(score)];
    RecordView view;
    view.truth = ClassName(truth);
    view.answer = ClassName(answer);
    view.wrong = truth != answer;
    view.truth_class = truth ? 1 : 0;
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

// Where to keep another record of a class, once there are enough samples: the
// first ones may be all of one class. Null where its share is there already.
std::vector<RecordView>* EvaluationView::RoomFor(int64_t number) {
  if (number < 0 || most_ == 0) return nullptr;
  const auto most = static_cast<int64_t>(most_);
  const int64_t share = std::max<int64_t>(1, most / answer_.classes);
  int64_t shown = std::count_if(
      samples_.begin(), samples_.end(),
      [&](const auto& sample) { return sample.truth_class == number; });
  const auto kept = by_class_.find(number);
  if (kept != by_class_.end())
    shown += static_cast<int64_t>(kept->second.size());
  if (shown >= share) return nullptr;
  if (kept == by_class_.end() && by_class_.size() >= most_) return nullptr;
  return &by_class_[number];
}

// Keeps the record where it is one of those that are shown.
void EvaluationView::Judge(const Batch& batch, int64_t i, RecordView view) {
  view.record = batch.records[static_cast<size_t>(i)];
  std::vector<RecordView>* kept =
      samples_.size() < most_ ? &samples_ : RoomFor(view.truth_class);
  if (kept != nullptr) {
    kept->push_back(view);
    Describe(batch, i, &kept->back());
  }
  if (!view.wrong) return;
  const auto after = std::find_if(
      mistakes_.begin(), mistakes_.end(),
      [&](const RecordView& m) { return m.confidence < view.confidence; });
  if (static_cast<size_t>(after - mistakes_.begin()) >= most_) return;
  Describe(batch, i, &view);
  mistakes_.insert(after, std::move(view));
  if (mistakes_.size() > most_) mistakes_.pop_back();
}

// Records of classes that the first ones lack take the places of the last of
// those whose class is shown most often.
std::vector<RecordView> EvaluationView::samples() const {
  std::vector<RecordView> shown = samples_;
  std::map<int64_t, size_t> counts;
  for (const RecordView& view : shown) ++counts[view.truth_class];
  for (const auto& [number, views] : by_class_) {
    for (const RecordView& view : views) {
      const auto most = std::max_element(
          counts.begin(), counts.end(),
          [](const auto& a, const auto& b) { return a.second < b.second; });
      if (most == counts.end() || most->second <= counts[number] + 1) break;
      const int64_t crowded = most->first;
      const auto last = std::find_if(
          shown.rbegin(), shown.rend(),
          [&](const RecordView& v) { return v.truth_class == crowded; });
      --counts[crowded];
      ++counts[number];
      *last = view;
    }
  }
  std::sort(shown.begin(), shown.end(),
            [](const RecordView& a, const RecordView& b) {
              return a.record < b.record;
            });
  return shown;
}

// A field of record i: words, or numbers with the names of their columns.
std::string EvaluationView::InputText(const Batch& batch,
                                      const BatchField& field,
                                      int64_t i) const {
  const int64_t width = PerRecord(field.shape);
  if (field.dtype == DType::kInt64)
    return WordsText(field.name,
                     reinterpret_cast<const int64_t*>(field.data) + i * width,
                     LengthOf(batch, field.name, i, width));
  const FieldSpec* spec = loader_->dataset().FindField(field.name);
  if (spec == nullptr || static_cast<int64_t>(spec->columns.size()) != width)
    return NumbersText(field.dtype, field.data, i * width, width);
  std::string text;
  for (int64_t c = 0; c < std::min(width, kShownColumns); ++c)
    absl::StrAppendFormat(&text, "%s%s: %.5g", c > 0 ? ", " : "",
                          pd::ClassName(spec->columns, c),
                          NumberAt(field.dtype, field.data, i * width + c));
  if (width > kShownColumns)
    absl::StrAppend(&text, ", ... (", width, " columns)");
  return text;
}

void EvaluationView::Describe(const Batch& batch, int64_t i, RecordView* view) {
  const RecordPlace place = loader_->dataset().Place(view->record);
  if (!place.file.empty())
    view->place = place.unit[0] == '\0'
                      ? place.file
                      : absl::StrCat(place.file, ":", place.number);
  if (!IsUtf8(view->place)) view->place = absl::CHexEscape(view->place);
  view->picture = PictureOf(batch, i);
  const BatchField* heard = FindField(batch, sound_.name);
  if (heard != nullptr)
    view->sound =
        SoundOf(*heard, i, LengthOf(batch, sound_.name, i, heard->shape.back()),
                sound_);
  for (const std::string& name : program_->inputs) {
    const BatchField* field = FindField(batch, name);
    if (field == nullptr) continue;
    if (!view->picture.pixels.empty() && field->shape.size() == 4) continue;
    view->inputs.emplace_back(name, InputText(batch, *field, i));
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
    curves.push_back(
        {ClassName(answer_.kind == AnswerKind::kYesNo ? 1 : number),
         buckets_[c].Counts()});
  }
  if (buckets_.size() > 1) curves.push_back({"all", all.Counts()});
  return curves;
}

}  // namespace pd
