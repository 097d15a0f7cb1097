// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/answer.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "libcore/base/error.h"
#include "libcore/nn/row_counts.h"
#include "libcore/train/metrics/box_units.h"

namespace pd {
namespace {

bool IsFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

bool MayEqual(int64_t a, int64_t b) { return a < 0 || b < 0 || a == b; }

// Outputs that losses of yes-or-no questions read.
std::set<std::string> YesNoInputs(const BlockDesc& block) {
  std::set<std::string> inputs;
  for (const OpDesc& op : block.ops)
    if (op.type == "bce_loss" || op.type == "sigmoid_cross_entropy_with_logits")
      inputs.insert(op.In("X"));
  return inputs;
}

bool KeepsValues(const std::string& type) {
  for (const char* kept : {"assign", "reshape2", "squeeze2", "unsqueeze2",
                           "transpose2", "flatten_contiguous_range"})
    if (type == kept) return true;
  return false;
}

bool Fits(const Shape& label, const Shape& expected) {
  return std::equal(label.begin(), label.end(), expected.begin(),
                    expected.end(), MayEqual);
}

// Whether `label` has a class where `output` has scores along `axis`: without
// that axis, with 1 in its place, or with 1 at the end.
bool HasClassesAlong(const Shape& output, const Shape& label, size_t axis) {
  if (output[axis] <= 1) return false;
  Shape without = output, with = output;
  without.erase(without.begin() + static_cast<std::ptrdiff_t>(axis));
  with[axis] = 1;
  Shape behind = without;
  behind.push_back(1);
  return Fits(label, without) || Fits(label, with) || Fits(label, behind);
}

// A class for each position or pixel; the axis of the classes, or -1.
int ClassAxis(const Shape& output, const FeedSpec& feed) {
  if (feed.dtype != DType::kInt64) return -1;
  // Texts have the classes last; pictures have them first, or last.
  if (output.size() == 3)
    return HasClassesAlong(output, feed.shape, 2) ? 2 : -1;
  if (output.size() != 4) return -1;
  for (const int axis : {1, 3})
    if (HasClassesAlong(output, feed.shape, static_cast<size_t>(axis)))
      return axis;
  return -1;
}

// The kind of answer that `output` is to `feed`; kNone where it is none.
Answer AnswerTo(const VarDesc& output, const FeedSpec& feed, bool yes_no) {
  Answer answer;
  const Shape& shape = output.shape;
  const int64_t width = PerRecord(shape), labels = PerRecord(feed.shape);
  if (output.dtype == DType::kInt64) {
    if (shape.size() == 2 && feed.dtype == DType::kInt64 && labels != 1)
      answer.kind = AnswerKind::kTokens;
  } else if (output.dtype != DType::kFloat32 || shape.empty()) {
    return answer;
  } else if (shape.size() == 2 && width > 1 && labels == 1 &&
             feed.dtype == DType::kInt64) {
    answer.kind = AnswerKind::kClasses;
    answer.classes = width;
  } else if (width == 1 && labels == 1 && yes_no) {
    answer.kind = AnswerKind::kYesNo;
    answer.classes = 2;
  } else if (IsFloat(feed.dtype) && labels == width && width > 0) {
    answer.kind = AnswerKind::kNumbers;
  } else if (const int axis = ClassAxis(shape, feed); axis > 0) {
    answer.kind = shape.size() == 4 ? AnswerKind::kMask : AnswerKind::kTokens;
    answer.axis = axis;
    answer.classes = shape[static_cast<size_t>(axis)];
  }
  return answer;
}

// Boxes are held against the classes that a metric of boxes reads. The metric
// also says in which units they are, else the layer does. kNone where another
// kind of thing is at `output`.
Answer BoxesAnswer(const TrainProgram& program, size_t output) {
  const auto& outputs = program.outputs;
  const std::string counts = RowCountsOf(program.test, outputs[output]);
  Answer answer;
  if (counts.empty()) return answer;
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (PastCopies(program.test, outputs[o]) != counts) continue;
    answer.kind = AnswerKind::kBoxes;
    answer.counts = o;
  }
  if (answer.kind == AnswerKind::kNone) return answer;
  answer.output = output;
  answer.made_by = MakerOf(program.test, outputs[output]);
  const std::string rows = PastCopies(program.test, outputs[output]);
  for (const OpDesc& op : program.test.global().ops)
    if (op.Out("Out") == rows)
      answer.normalized = op.AttrOr<bool>("normalized", true);
  for (const MetricUse& use : program.metrics) {
    if (PastCopies(program.test, use.prediction) != rows) continue;
    if (!use.label_variable) answer.label = use.label;
    if (const auto units = BoxUnitsOf(*use.metric); units.has_value()) {
      answer.normalized = units->normalized;
      answer.centred_boxes = units->centred;
    }
    for (const MetricUse::More& more : use.more)
      if (more.slot == MetricSlot::kBox) answer.boxes = more.name;
  }
  return answer;
}

}  // namespace

absl::StatusOr<std::vector<DetectedBox>> BoxesOf(
    const Answer& answer, const std::vector<const Tensor*>& outputs,
    int64_t record) {
  const Tensor& rows = *outputs[answer.output];
  const Tensor& counts = *outputs[answer.counts];
  if (rows.dtype() != DType::kFloat32 || rows.rank() != 2 || rows.dim(1) != 6 ||
      counts.dtype() != DType::kInt32 || counts.size() <= record)
    return InvalidArgument(
        "the detected boxes are %s%s and their counts %s%s; expected "
        "float32[rows, 6] and a count for each record",
        Name(rows.dtype()), ToString(rows.shape()), Name(counts.dtype()),
        ToString(counts.shape()));
  const int32_t* count = counts.data<int32_t>();
  int64_t first = 0;
  for (int64_t i = 0; i < record; ++i) first += count[i];
  if (count[record] < 0 || first < 0 || first + count[record] > rows.dim(0))
    return InvalidArgument("record %d has %d boxes behind %d others of %d",
                           record, count[record], first, rows.dim(0));
  std::vector<DetectedBox> boxes;
  for (int64_t i = first; i < first + count[record]; ++i) {
    const float* row = rows.data<float>() + i * 6;
    if (!(row[0] >= 0)) continue;  // stands for no box
    DetectedBox box{static_cast<int64_t>(row[0]), row[1], {}};
    std::copy_n(row + 2, 4, box.corners);
    boxes.push_back(box);
  }
  std::stable_sort(boxes.begin(), boxes.end(),
                   [](const DetectedBox& a, const DetectedBox& b) {
                     return a.score > b.score;
                   });
  return boxes;
}

int64_t PerRecord(const Shape& shape) {
  int64_t size = 1;
  for (size_t i = 1; i < shape.size(); ++i) size *= shape[i];
  return size;
}

Answer FindAnswer(const TrainProgram& program) {
  const BlockDesc& block = program.test.global();
  const std::set<std::string> yes_no = YesNoInputs(block);
  for (size_t o = 0; o < program.outputs.size(); ++o) {
    const VarDesc* output = block.FindVar(program.outputs[o]);
    if (output == nullptr) continue;
    const Answer boxes = BoxesAnswer(program, o);
    if (boxes.kind == AnswerKind::kBoxes) return boxes;
    // A network may give out the probability, and its loss take the logit.
    const bool asks =
        yes_no.count(output->name) > 0 ||
        (!yes_no.empty() && MakerOf(program.test, output->name) == "sigmoid");
    for (const FeedSpec& feed : program.feeds) {
      if (std::count(program.inputs.begin(), program.inputs.end(), feed.name) >
          0)
        continue;
      Answer answer = AnswerTo(*output, feed, asks);
      if (answer.kind == AnswerKind::kNone) continue;
      answer.output = o;
      answer.label = feed.name;
      answer.made_by = MakerOf(program.test, output->name);
      for (const OpDesc& op : block.ops)
        if (op.type == "bce_loss" && op.In("X") == output->name)
          answer.made_by = "sigmoid";  // a probability, whatever made it
      return answer;
    }
  }
  return {};
}

std::string MakerOf(const ProgramDesc& program, const std::string& variable) {
  const BlockDesc& block = program.global();
  std::string made_by, name = variable;
  for (size_t i = block.ops.size(); i-- > 0;) {
    const OpDesc& op = block.ops[i];
    bool makes = false;
    for (const auto& [slot, names] : op.outputs)
      makes = makes || std::count(names.begin(), names.end(), name) > 0;
    if (!makes) continue;
    made_by = op.type;
    if (!KeepsValues(op.type)) break;
    name = op.In("X");
  }
  return made_by;
}

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

float YesProbability(const std::string& made_by, float score) {
  return made_by == "sigmoid" ? score : 1 / (1 + std::exp(-score));
}

int64_t LargestAt(const Answer& answer, const Shape& shape, const float* scores,
                  int64_t record, int64_t place) {
  const auto axis = static_cast<size_t>(answer.axis);
  int64_t step = 1;  // between the scores of two classes
  for (size_t i = axis + 1; i < shape.size(); ++i) step *= shape[i];
  const int64_t classes = shape[axis];
  const float* first = scores + record * PerRecord(shape) +
                       place / step * step * classes + place % step;
  int64_t best = 0;
  for (int64_t c = 1; c < classes; ++c)
    if (first[c * step] > first[best * step]) best = c;
  return best;
}

}  // namespace pd
