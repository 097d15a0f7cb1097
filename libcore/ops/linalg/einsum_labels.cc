// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/linalg/einsum_labels.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The label of "..." until its number of axes is known.
constexpr Label kEllipsis = 0;

absl::StatusOr<Labels> ReadTerm(absl::string_view term) {
  Labels labels;
  bool ellipsis = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ') continue;
    if (IsLetter(term[i])) {
      labels.push_back(term[i]);
    } else if (term.substr(i, 3) == "..." && !ellipsis) {
      ellipsis = true;
      labels.push_back(kEllipsis);
      i += 2;
    } else {
      return InvalidArgument(
          "'%s' is no list of letters with at most one '...'", term);
    }
  }
  return labels;
}

// `count` axes in place of "...": -count ... -1, so that they align at the
// right.
Labels Expand(const Labels& labels, int64_t count) {
  Labels expanded;
  for (const Label label : labels) {
    if (label != kEllipsis) {
      expanded.push_back(label);
      continue;
    }
    for (int64_t i = count; i > 0; --i)
      expanded.push_back(static_cast<Label>(-i));
  }
  return expanded;
}

Labels ImplicitResult(const std::vector<Labels>& operands) {
  std::map<Label, int> uses;
  for (const Labels& operand : operands)
    for (const Label label : operand) ++uses[label];
  Labels result;  // a map is in order: "..." first, then the letters
  for (const auto& [label, count] : uses)
    if (count == 1 || label < 0) result.push_back(label);
  return result;
}

absl::Status MergeExtents(const Labels& labels, const Shape& shape,
                          std::map<Label, int64_t>* extents) {
  if (labels.size() != shape.size())
    return InvalidArgument(
        "an operand has shape %s; the equation gives it %d "
        "axes",
        ToString(shape), labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto [it, added] = extents->emplace(labels[i], shape[i]);
    int64_t& extent = it->second;
    if (added || shape[i] == 1 || shape[i] == extent) continue;
    if (extent == 1 || extent < 0)
      extent = shape[i];
    else if (shape[i] >= 0)
      return InvalidArgument(
          "extents %d and %d meet in one label (operand of shape %s); expected "
          "equal ones, or 1",
          extent, shape[i], ToString(shape));
  }
  return absl::OkStatus();
}

}  // namespace

Shape Equation::ShapeOf(const Labels& labels) const {
  Shape shape;
  for (const Label label : labels) shape.push_back(extents.at(label));
  return shape;
}

Labels Distinct(const Labels& labels) {
  Labels distinct;
  for (const Label label : labels)
    if (std::find(distinct.begin(), distinct.end(), label) == distinct.end())
      distinct.push_back(label);
  return distinct;
}

absl::StatusOr<Equation> ParseEquation(absl::string_view text,
                                       const std::vector<Shape>& shapes) {
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  if (sides.size() > 2)
    return InvalidArgument("equation '%s' has %d '->'; expected one at most",
                           text, sides.size() - 1);
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (terms.size() != shapes.size())
    return InvalidArgument("equation '%s' has %d operands; the op has %d", text,
                           terms.size(), shapes.size());
  Equation e;
  int64_t widest = 0;  // of the axes that "..." stands for
  for (size_t i = 0; i < terms.size(); ++i) {
    PD_ASSIGN_OR_RETURN(Labels labels, ReadTerm(terms[i]));
    const auto free = static_cast<int64_t>(shapes[i].size()) -
                      static_cast<int64_t>(labels.size()) + 1;
    if (std::find(labels.begin(), labels.end(), kEllipsis) != labels.end()) {
      if (free < 0)
        return InvalidArgument("equation '%s': operand %d has shape %s", text,
                               i, ToString(shapes[i]));
      widest = std::max(widest, free);
      labels = Expand(labels, free);
    }
    PD_RETURN_IF_ERROR(MergeExtents(labels, shapes[i], &e.extents));
    e.operands.push_back(std::move(labels));
  }
  if (sides.size() == 1) {
    e.out = ImplicitResult(e.operands);
    return e;
  }
  PD_ASSIGN_OR_RETURN(e.out, ReadTerm(sides[1]));
  e.out = Expand(e.out, widest);
  for (const Label label : e.out)
    if (e.extents.count(label) == 0)
      return InvalidArgument(
          "equation '%s': the result has a label that no operand has", text);
  if (Distinct(e.out).size() != e.out.size())
    return InvalidArgument("equation '%s': the result has a label twice", text);
  return e;
}

}  // namespace pd
