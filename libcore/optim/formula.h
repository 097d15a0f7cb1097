// SPDX-License-Identifier: Apache-2.0
// An expression of the step, such as "0.95 ^ t", computed by muParser.
#ifndef PD_LIBCORE_OPTIM_FORMULA_H_
#define PD_LIBCORE_OPTIM_FORMULA_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace pd {

/// A number for each step t, by + - * / ^, comparisons, `c ? a : b`, the
/// functions abs, cos, exp, floor, ln, log10, max, min, sin, sqrt, tanh and the
/// constants _pi and _e. Any thread may ask.
class Formula {
 public:
  /// InvalidArgument, which tells the place in `text`, for text that is no such
  /// expression, names anything but t or is longer than 1000 characters.
  static absl::StatusOr<std::shared_ptr<const Formula>> Parse(
      const std::string& text);
  ~Formula();

  const std::string& text() const { return text_; }
  double At(int64_t t) const;
  /// start * At(1) * At(2) * ... * At(t), multiplied in this order; `start` for
  /// step 0. The steps after the one that was asked last are cheap.
  double Product(double start, int64_t t) const;

 private:
  struct Parser;
  explicit Formula(std::string text);

  std::string text_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPTIM_FORMULA_H_
