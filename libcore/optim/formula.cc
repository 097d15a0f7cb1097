// SPDX-License-Identifier: Apache-2.0
#include "libcore/optim/formula.h"

#include <muParser.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

#include "libcore/base/error.h"

namespace pd {
namespace {

constexpr size_t kLongest = 1000;

double Floor(double x) { return std::floor(x); }

}  // namespace

// muParser writes t into its own memory, so that one thread computes at a time.
struct Formula::Parser {
  std::mutex mutex;
  mu::Parser parser;
  double t = 0;
  // Product's last answer.
  double start = std::numeric_limits<double>::quiet_NaN();
  int64_t reached = 0;
  double product = 1;

  double At(int64_t step) {
    t = static_cast<double>(step);
    try {
      return parser.Eval();
    } catch (const mu::Parser::exception_type&) {
      return std::numeric_limits<double>::quiet_NaN();
    }
  }
};

Formula::Formula(std::string text)
    : text_(std::move(text)), parser_(std::make_unique<Parser>()) {}
Formula::~Formula() = default;

absl::StatusOr<std::shared_ptr<const Formula>> Formula::Parse(
    const std::string& text) {
  if (text.size() > kLongest)
    return InvalidArgument(
        "an expression of %d characters; expected at most %d", text.size(),
        kLongest);
  std::shared_ptr<Formula> formula(new Formula(text));
  try {
    mu::Parser& parser = formula->parser_->parser;
    parser.DefineVar("t", &formula->parser_->t);
    parser.DefineFun("floor", Floor);
    parser.SetExpr(text);
    parser.Eval();
    if (parser.GetNumResults() != 1)
      return InvalidArgument("'%s' holds %d expressions; expected one", text,
                             parser.GetNumResults());
  } catch (const mu::Parser::exception_type& error) {
    return InvalidArgument("'%s' is no expression of t: %s", text,
                           error.GetMsg());
  }
  return formula;
}

double Formula::At(int64_t t) const {
  const std::lock_guard<std::mutex> lock(parser_->mutex);
  return parser_->At(t);
}

double Formula::Product(double start, int64_t t) const {
  const std::lock_guard<std::mutex> lock(parser_->mutex);
  Parser& p = *parser_;
  if (p.start != start || t < p.reached) {
    p.start = start;
    p.product = start;
    p.reached = 0;
  }
  while (p.reached < t) p.product *= p.At(++p.reached);
  return p.product;
}

}  // namespace pd
