// SPDX-License-Identifier: Apache-2.0
// The answer of a network: which output holds it, and what kind of answer
// it is, as far as that follows from the label that the job holds it against.
#ifndef PD_LIBCORE_TRAIN_ANSWER_H_
#define PD_LIBCORE_TRAIN_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/tensor/tensor.h"
#include "libcore/train/train_program.h"

namespace pd {

enum class AnswerKind {
  kNone,     ///< something else
  kClasses,  ///< [records, classes]: scores against one class number
  kYesNo,    ///< [records, 1]: a score against 0 or 1
  kNumbers,  ///< numbers against as many numbers
  kTokens,   ///< [records, length, classes]: scores against a class a position;
             ///< or int64 [records, length]: the classes themselves
  kMask,     ///< [records, classes, height, width] or classes last: scores
             ///< against a class a pixel
  kBoxes,    ///< rows of class, score, box, as many as `counts` says
};

struct Answer {
  AnswerKind kind = AnswerKind::kNone;
  size_t output = 0;    ///< its place among the outputs
  std::string label;    ///< the field that it is held against; "" of kNone
  std::string made_by;  ///< the op that makes it, which tells scores apart
  int64_t classes = 0;  ///< 2 of kYesNo; 0 of kNumbers and of int64 outputs
  int axis = 1;         ///< of the classes in scores
  size_t counts = 0;    ///< of kBoxes: the place of the output that counts rows
  std::string boxes;    ///< of kBoxes: the field of the true boxes, or ""
  bool centred_boxes = false;  ///< those are centre, width, height
  /// Of kBoxes: coordinates are parts of the picture, not pixels.
  bool normalized = true;
};

/// A detected box.
struct DetectedBox {
  int64_t number;  ///< of its class
  float score;
  float corners[4];  ///< xmin, ymin, xmax, ymax
};

/// The first output that a label of the job can be held against.
Answer FindAnswer(const TrainProgram& program);

/// The type of the op that computes a variable of the program, past ops that
/// only move values; "" where none does.
std::string MakerOf(const ProgramDesc& program, const std::string& name);

/// Scores of one record, position or pixel as probabilities, by the op that
/// made them: "softmax", "sigmoid", "log_softmax"; others are taken for what a
/// softmax is fed.
void MakeProbabilities(const std::string& made_by, std::vector<float>* scores);
/// The probability of yes; others than "sigmoid" made what a sigmoid is fed.
float YesProbability(const std::string& made_by, float score);

/// The class with the largest score at `place` of record `record`, where the
/// classes lie along `answer.axis` of `shape`, which holds several records;
/// `place` counts a record's positions or pixels. Ties go to the first.
int64_t LargestAt(const Answer& answer, const Shape& shape, const float* scores,
                  int64_t record, int64_t place);

/// Of kBoxes: the boxes of record `record`, best first. InvalidArgument where
/// the outputs do not fit each other.
absl::StatusOr<std::vector<DetectedBox>> BoxesOf(
    const Answer& answer, const std::vector<const Tensor*>& outputs,
    int64_t record);

/// Elements of one record.
int64_t PerRecord(const Shape& shape);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_ANSWER_H_
