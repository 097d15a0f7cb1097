// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/answer.h"

#include <algorithm>
#include <cmath>
#include <set>

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

// A label without an axis of 1 at its end.
Shape Squeezed(Shape shape, size_t rank) {
  if (shape.size() == rank + 1 && shape.back() == 1) shape.pop_back();
  return shape;
}

// A class for each position or pixel; the axis of the classes, or -1.
int ClassAxis(const Shape& output, const FeedSpec& feed) {
  if (feed.dtype != DType::kInt64 || output.size() < 3 || output.size() > 4)
    return -1;
  const Shape label = Squeezed(feed.shape, output.size() - 1);
  if (label.size() + 1 != output.size()) return -1;
  const auto last = output.size() - 1;
  const auto fits = [&](size_t axis) {
    for (size_t i = 1, j = 1; i < output.size(); ++i)
      if (i != axis && !MayEqual(output[i], label[j++])) return false;
    return output[axis] > 1;
  };
  // Pictures have channels first, texts last.
  const size_t first = output.size() == 4 ? 1 : last;
  const size_t second = output.size() == 4 ? last : 1;
  if (fits(first)) return static_cast<int>(first);
  return output.size() == 4 && fits(second) ? static_cast<int>(second) : -1;
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

}  // namespace

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
    for (const FeedSpec& feed : program.feeds) {
      if (std::count(program.inputs.begin(), program.inputs.end(), feed.name) >
          0)
        continue;
      Answer answer = AnswerTo(*output, feed, yes_no.count(output->name) > 0);
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
