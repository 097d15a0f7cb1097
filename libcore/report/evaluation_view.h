// SPDX-License-Identifier: Apache-2.0
// The view of an evaluation: some of its records with the network's answers
// to them, how often one class was taken for another, how decisions fare at all
// thresholds. It counts while the evaluation runs and keeps no predictions but
// those of the records that it shows.
#ifndef PD_LIBCORE_REPORT_EVALUATION_VIEW_H_
#define PD_LIBCORE_REPORT_EVALUATION_VIEW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/image.h"
#include "formats/log_record.h"
#include "formats/wav.h"
#include "libcore/data/loader.h"
#include "libcore/report/sound_input.h"
#include "libcore/train/answer.h"
#include "libcore/train/evaluator.h"
#include "libcore/train/prediction_data.h"
#include "libcore/train/train_program.h"

namespace pd {

/// A record and what was said of it.
struct RecordView {
  int64_t record = 0;  ///< its number in the data set
  std::string place;   ///< its file, with the line in it; "" where it has none
  std::vector<std::pair<std::string, std::string>> inputs;  ///< name, text
  Image picture;   ///< no pixels where there is no image
  WavSound sound;  ///< no samples where there is no SoundInput
  /// Of kMask: the classes of its pixels; of kBoxes: the picture with boxes.
  Image truth_mask, answer_mask;
  std::string truth, answer;
  bool wrong = false;
  double confidence = 0;     ///< of the answer; of kClasses and kYesNo
  int64_t truth_class = -1;  ///< of kClasses and kYesNo
};

/// Counts at the thresholds of one class.
struct ClassCurve {
  std::string name;
  LogCurve counts;
};

class EvaluationView : public EvaluationObserver {
 public:
  /// Thresholds of curves: VisualDL's.
  static constexpr size_t kThresholds = 127;
  /// With more classes there is no table of them.
  static constexpr int64_t kMostClasses = 1000;
  static constexpr size_t kMostPoints = 1000;

  /// Shows `samples` records, the first of each class and then the data set's
  /// first, and as many mistakes. Both outlive the view. `words` turn numbers
  /// of texts back.
  void Start(const TrainProgram* program, const Loader* loader, int samples,
             WordsByField words = {});

  /// The records that are shown have their sound too, half a minute at most.
  void Hear(SoundInput sound) { sound_ = std::move(sound); }

  void OnBegin() override;
  void OnBatch(const Batch& batch,
               const std::vector<const Tensor*>& outputs) override;

  AnswerKind kind() const { return answer_.kind; }
  int64_t records() const { return records_; }
  int64_t classes() const { return answer_.classes; }
  std::string ClassName(int64_t number) const;
  /// Records of class `truth` that were taken for `answer`.
  int64_t Confused(int64_t truth, int64_t answer) const {
    return confusion_[static_cast<size_t>(truth * answer_.classes + answer)];
  }
  /// In the order of the data set.
  std::vector<RecordView> samples() const;
  /// The most confident of the wrong ones, most confident first.
  const std::vector<RecordView>& mistakes() const { return mistakes_; }
  /// One for each class, the first `most`; then, where there are several, one
  /// for the decisions of all classes together.
  std::vector<ClassCurve> Curves(int64_t most) const;
  /// Of kNumbers: truth and answer of the first records.
  const std::vector<std::pair<float, float>>& points() const { return points_; }

 private:
  // Scores at and above thresholds, before they are summed up.
  struct Buckets {
    std::vector<int64_t> right = std::vector<int64_t>(kThresholds);
    std::vector<int64_t> wrong = std::vector<int64_t>(kThresholds);
    LogCurve Counts() const;
  };

  void CountClasses(const Batch& batch, const Tensor& output,
                    const BatchField& label);
  void CountYesNo(const Batch& batch, const Tensor& output,
                  const BatchField& label);
  void CountNumbers(const Batch& batch, const Tensor& output,
                    const BatchField& label);
  void LookAtPositions(const Batch& batch, const Tensor& output,
                       const BatchField& label);
  void LookAtMasks(const Batch& batch, const Tensor& output,
                   const BatchField& label);
  void LookAtBoxes(const Batch& batch,
                   const std::vector<const Tensor*>& outputs);
  std::string WordsText(const std::string& field, const int64_t* numbers,
                        int64_t count) const;
  int64_t LengthOf(const Batch& batch, const std::string& field, int64_t i,
                   int64_t padded) const;
  std::string InputText(const Batch& batch, const BatchField& field,
                        int64_t i) const;
  std::vector<RecordView>* RoomFor(int64_t number);
  void Judge(const Batch& batch, int64_t i, RecordView view);
  void Describe(const Batch& batch, int64_t i, RecordView* view);
  const Image& PictureOf(const Batch& batch, int64_t i);
  const BatchField* FindField(const Batch& batch,
                              const std::string& name) const;

  const TrainProgram* program_ = nullptr;
  const Loader* loader_ = nullptr;
  size_t most_ = 0;
  WordsByField words_;
  SoundInput sound_;
  Answer answer_;
  int64_t records_ = 0;
  std::vector<int64_t> confusion_;
  std::vector<Buckets> buckets_;  // by class
  std::vector<RecordView> samples_, mistakes_;
  std::map<int64_t, std::vector<RecordView>> by_class_;  // the first of each
  std::vector<std::pair<float, float>> points_;
  std::map<int64_t, Image> pictures_;  // by record
};

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_EVALUATION_VIEW_H_
