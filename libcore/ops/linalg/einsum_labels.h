// SPDX-License-Identifier: Apache-2.0
// Einstein's notation: an equation, "bij,bjk->bik", as labels of axes. A label
// that an operand has twice is its diagonal; one that the result lacks is
// summed over; axes of extent 1 broadcast. "..." stands for the axes that have
// no label, aligned at the right. Without "->" the result has the labels that
// occur once, in alphabetical order, after those of "...".
#ifndef PD_LIBCORE_OPS_LINALG_EINSUM_LABELS_H_
#define PD_LIBCORE_OPS_LINALG_EINSUM_LABELS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/shape.h"

namespace pd {

/// An axis: a letter, or one of the axes of "...", negative numbers.
using Label = int;
using Labels = std::vector<Label>;

struct Equation {
  std::vector<Labels> operands;
  Labels out;
  std::map<Label, int64_t> extents;  ///< -1: not known yet

  Shape ShapeOf(const Labels& labels) const;
};

/// InvalidArgument for what is no equation, or does not fit the shapes.
absl::StatusOr<Equation> ParseEquation(absl::string_view text,
                                       const std::vector<Shape>& shapes);

/// The labels, each once, in the order of their first occurrence.
Labels Distinct(const Labels& labels);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LINALG_EINSUM_LABELS_H_
