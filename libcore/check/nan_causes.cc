// SPDX-License-Identifier: Apache-2.0
// Why an op made a bad number, as far as its inputs tell: each rule looks at
// the values that the op read and says a sentence with them, or nothing.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "libcore/base/dispatch.h"
#include "libcore/check/nan_finding.h"

namespace pd {
namespace {

// Element i as a double; NaN for types that are no real numbers.
double At(const Array& array, int64_t i) {
  double value = std::numeric_limits<double>::quiet_NaN();
  (void)DispatchTypes<float, double, Float16, BFloat16, int32_t, int64_t,
                      int16_t, int8_t, uint8_t, bool>(
      array.dtype, [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        value = static_cast<double>(array.data<T>()[i]);
        return absl::OkStatus();
      });
  return value;
}

double AsDouble(const std::optional<Number>& number) {
  if (!number.has_value()) return std::numeric_limits<double>::quiet_NaN();
  return std::visit([](auto x) { return static_cast<double>(x); }, *number);
}

double LargestOf(const InspectedValue& look) {
  if (!look.stats.min.has_value()) return 0;
  return std::max(std::fabs(AsDouble(look.stats.min)),
                  std::fabs(AsDouble(look.stats.max)));
}

std::string Short(double x) { return absl::StrFormat("%.6g", x); }

// The largest finite number, and where exp overflows.
double LargestNumber(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 65504;
    case DType::kBFloat16:
      return 3.3895313892515355e38;
    case DType::kFloat64:
    case DType::kComplex128:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

// Data of this size are a mistake: their squares are at the end of float32.
constexpr double kHugeData = 1e17;

class Causes {
 public:
  explicit Causes(NanFinding* finding)
      : f_(*finding),
        gradient_(absl::EndsWith(finding->op.type, "_grad")),
        type_(absl::StripSuffix(finding->op.type, "_grad")) {}

  void All() {
    BadInputs();
    if (f_.causes.empty()) {
      Domain();
      Divisor();
      Exponent();
      Probability();
      Cast();
      Variance();
      Overflow();
    }
    Fed();
    Exploding();
  }

 private:
  void Say(std::string text) { f_.causes.push_back(std::move(text)); }

  const InspectedValue* Input(absl::string_view slot) const {
    for (const InspectedValue& look : f_.inputs)
      if (look.slot == slot) return &look;
    return nullptr;
  }
  const Array* Value(const InspectedValue* look) const {
    if (look == nullptr) return nullptr;
    const auto it = f_.input_values.find(look->name);
    return it == f_.input_values.end() ? nullptr : &it->second;
  }
  bool Is(std::initializer_list<absl::string_view> types) const {
    return std::find(types.begin(), types.end(), type_) != types.end();
  }
  // "element [2, 5] of 'x' is -0.3".
  std::string Element(const InspectedValue& look, int64_t i,
                      double value) const {
    return absl::StrCat("element ", IndexText(i, look.shape), " of '",
                        look.name, "' is ", Short(value));
  }
  // The first element of an input for which `bad` holds; how many there are.
  template <typename Bad>
  int64_t Find(const Array& array, const Bad& bad, int64_t* count) const {
    int64_t first = -1;
    *count = 0;
    for (int64_t i = 0; i < array.size(); ++i) {
      if (!bad(At(array, i))) continue;
      if (first < 0) first = i;
      ++*count;
    }
    return first;
  }
  template <typename Bad>
  bool SayElement(const char* what, const InspectedValue* look,
                  const Bad& bad) {
    const Array* array = Value(look);
    if (array == nullptr) return false;
    int64_t count = 0;
    const int64_t first = Find(*array, bad, &count);
    if (first < 0) return false;
    Say(absl::StrCat(
        what, ": ", Element(*look, first, At(*array, first)),
        count > 1 ? absl::StrCat(", and ", count - 1, " more") : ""));
    return true;
  }

  void BadInputs() {
    for (const InspectedValue& look : f_.inputs) {
      if (look.first_bad < 0) continue;
      const std::string holds =
          absl::StrCat("'", look.name, "' holds ", look.stats.nan, " NaN and ",
                       look.stats.inf, " Inf, the first at ",
                       IndexText(look.first_bad, look.shape));
      switch (look.origin) {
        case ValueOrigin::kFed:
          Say(absl::StrCat("bad data: the fed ", holds));
          break;
        case ValueOrigin::kLabel:
          Say(absl::StrCat("bad label: the fed ", holds));
          break;
        case ValueOrigin::kVariable:
          Say(absl::StrCat("bad variable: ", holds,
                           f_.place.step > 1
                               ? " before this step: it went bad in one that "
                                 "was not looked at"
                               : " before this run: a damaged checkpoint or "
                                 "initial value"));
          break;
        case ValueOrigin::kMade:
          Say(absl::StrCat("bad input: ", holds,
                           ", made by an op that was let pass"));
      }
    }
  }

  // Data that no op on the way here has made bad, but that is at fault.
  void Fed() {
    if (!f_.clean_inputs()) return;
    for (const InspectedValue& look : f_.fed) {
      if (look.first_bad < 0 &&
          (!IsFloating(look.dtype) || LargestOf(look) < kHugeData))
        continue;
      Say(absl::StrCat(
          look.origin == ValueOrigin::kLabel ? "bad label" : "bad data",
          ": the fed '", look.name, "' ",
          look.first_bad >= 0
              ? absl::StrCat("holds ", look.stats.nan, " NaN and ",
                             look.stats.inf, " Inf, the first at ",
                             IndexText(look.first_bad, look.shape))
              : absl::StrCat("reaches ", Short(LargestOf(look)))));
    }
  }

  // log, sqrt and their like outside of where they are defined.
  void Domain() {
    const InspectedValue* x = Input("X");
    const auto negative = [](double v) { return v < 0; };
    const auto zero = [](double v) { return v == 0; };
    if (Is({"log", "log2", "log10"})) {
      SayElement("log of zero", x, zero);
      SayElement("log of a negative number", x, negative);
    } else if (Is({"log1p"})) {
      SayElement("log of zero or of a negative number (log1p at -1 or below)",
                 x, [](double v) { return v <= -1; });
    } else if (Is({"sqrt", "rsqrt"})) {
      SayElement("square root of a negative number", x, negative);
      if (type_ == "rsqrt" || gradient_) {
        const InspectedValue* at = x != nullptr ? x : Input("Out");
        SayElement(gradient_ ? "gradient of a square root at zero"
                             : "division by zero (rsqrt of zero)",
                   at, zero);
      }
    } else if (Is({"acos", "asin", "atanh"})) {
      SayElement(absl::StrCat(type_, " outside of -1 to 1").c_str(), x,
                 [](double v) { return std::fabs(v) > 1; });
    } else if (Is({"acosh"})) {
      SayElement("acosh below 1", x, [](double v) { return v < 1; });
    } else if (Is({"reciprocal"})) {
      SayElement("division by zero", x, zero);
    } else if (Is({"pow", "elementwise_pow"})) {
      SayElement("power of a negative number", x, negative);
      SayElement("power of zero", x, zero);
    } else if (gradient_ && Is({"p_norm", "norm", "frobenius_norm"})) {
      SayElement("gradient of a norm at zero", Input("Out"), zero);
    }
  }

  void Divisor() {
    if (!Is({"elementwise_div", "elementwise_mod", "elementwise_floordiv",
             "divide"}))
      return;
    SayElement("division by zero", Input("Y"), [](double v) { return v == 0; });
  }

  void Exponent() {
    if (!Is({"exp", "expm1", "sinh", "cosh", "softplus", "logsumexp"})) return;
    const InspectedValue* x = Input("X");
    if (x == nullptr || !x->stats.max.has_value()) return;
    const double limit = std::log(LargestNumber(x->dtype));
    const double most =
        Is({"sinh", "cosh"}) ? LargestOf(*x) : AsDouble(x->stats.max);
    if (most > limit)
      Say(absl::StrCat("overflow in ", type_, ": the largest of '", x->name,
                       "' is ", Short(most), ", above ", Short(limit),
                       " the result is infinite"));
  }

  // Losses that take the logarithm of probabilities, and their labels.
  void Probability() {
    if (Is({"bce_loss", "cross_entropy", "cross_entropy2", "log_loss",
            "nll_loss"})) {
      const InspectedValue* x = Input(type_ == "log_loss" ? "Predicted" : "X");
      SayElement("log of a probability that is zero", x,
                 [](double v) { return v == 0; });
      SayElement("a probability outside of 0 to 1", x,
                 [](double v) { return v < 0 || v > 1; });
    }
    const InspectedValue* label = Input("Label");
    if (label == nullptr) return;
    const InspectedValue* x = Input("Logits");
    if (x == nullptr) x = Input("X");
    const bool classes = IsInteger(label->dtype);
    if (classes && x != nullptr && !x->shape.empty()) {
      const auto n = static_cast<double>(x->shape.back());
      SayElement(
          absl::StrCat("bad label (there are ", x->shape.back(), " classes)")
              .c_str(),
          label, [n](double v) { return v < 0 || v >= n; });
    } else if (!classes && LargestOf(*label) > 1e6) {
      Say(absl::StrCat("bad label: '", label->name, "' reaches ",
                       Short(LargestOf(*label))));
    }
  }

  void Cast() {
    if (!Is({"cast"}) || f_.inputs.empty()) return;
    const double limit = LargestNumber(f_.output.dtype);
    if (LargestOf(f_.inputs[0]) > limit)
      Say(absl::StrCat("overflow: '", f_.inputs[0].name, "' reaches ",
                       Short(LargestOf(f_.inputs[0])), "; ",
                       Name(f_.output.dtype), " ends at ", Short(limit)));
  }

  void Variance() {
    for (const char* slot : {"Variance", "SavedVariance"})
      SayElement("square root of a negative variance", Input(slot),
                 [](double v) { return v < 0; });
  }

  // Clean inputs, an infinite result: numbers that are too large.
  void Overflow() {
    if (!f_.causes.empty() || !f_.clean_inputs()) return;
    std::vector<const InspectedValue*> large;
    // Squares, products and long sums of such numbers leave the type's range.
    const double limit = std::sqrt(LargestNumber(f_.output.dtype)) / 1e4;
    for (const InspectedValue& look : f_.inputs)
      if (!IsInteger(look.dtype) && LargestOf(look) > limit)
        large.push_back(&look);
    std::vector<std::string> parts;
    for (const InspectedValue* look : large)
      parts.push_back(
          absl::StrCat("'", look->name, "' reaches ", Short(LargestOf(*look))));
    if (parts.empty()) return;
    Say(absl::StrCat("overflow: ", absl::StrJoin(parts, ", "), "; ",
                     Name(f_.output.dtype), " ends at ",
                     Short(LargestNumber(f_.output.dtype))));
    for (const InspectedValue* look : large)
      if (look->origin == ValueOrigin::kVariable && f_.place.step > 1)
        Say(absl::StrCat("'", look->name, "' was driven to ",
                         Short(LargestOf(*look)),
                         " by the updates before: the learning rate is too "
                         "high, or a gradient exploded"));
  }

  void Exploding() {
    const auto& steps = f_.gradients;
    if (steps.size() < 2) return;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [step, size] : steps)
      if (size > 0) least = std::min(least, size);
    const auto& [last, size] = steps.back();
    if (!(size > 100 * least) && !(size > 1e4)) return;
    Say(absl::StrCat("exploding gradients: the largest grew from ",
                     Short(least), " to ", Short(size), " over the last ",
                     steps.size(),
                     " steps: lower the learning rate or clip "
                     "gradients"));
  }

  NanFinding& f_;
  const bool gradient_;
  const std::string type_;
};

}  // namespace

void ExplainCauses(NanFinding* finding) {
  finding->causes.clear();
  Causes(finding).All();
}

}  // namespace pd
