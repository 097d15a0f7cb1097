// SPDX-License-Identifier: Apache-2.0
// The product of two or more matrices, in the order that takes the fewest
// multiplications. The first one may be a vector, a row; the last one too, a
// column; those axes are dropped from Out.
//   X[i]@GRAD = (X[0] ... X[i - 1])^T Out@GRAD (X[i + 1] ... )^T
#include <algorithm>
#include <limits>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/linalg/linalg.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Rows and columns of each factor, and the shape of the product.
struct Chain {
  std::vector<Matrices> factors;
  Shape out;
};

absl::StatusOr<Chain> ChainOf(const std::vector<Shape>& shapes) {
  Chain c;
  if (shapes.size() < 2)
    return InvalidArgument("'X' holds %d tensors; expected 2 or more",
                           shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape& s = shapes[i];
    const bool first = i == 0, last = i + 1 == shapes.size();
    if (s.size() != 2 && !(s.size() == 1 && (first || last)))
      return InvalidArgument(
          "'X' holds %s at %d; expected a matrix, or a "
          "vector at either end",
          ToString(s), i);
    Matrices m;
    if (s.size() == 2) {
      m.rows = s[0];
      m.cols = s[1];
    } else {
      m.rows = first ? 1 : s[0];
      m.cols = first ? s[0] : 1;
    }
    if (!first && m.rows != c.factors.back().cols && m.rows >= 0 &&
        c.factors.back().cols >= 0)
      return InvalidArgument("'X' holds %s and %s one after the other",
                             ToString(shapes[i - 1]), ToString(s));
    c.factors.push_back(m);
  }
  if (shapes.front().size() == 2) c.out.push_back(shapes.front()[0]);
  if (shapes.back().size() == 2) c.out.push_back(shapes.back()[1]);
  return c;
}

// The product of factors [begin, end) in the best order.
class MultiDotProduct {
 public:
  explicit MultiDotProduct(const std::vector<MatrixXd>& factors)
      : factors_(factors), n_(factors.size()), split_(n_ * n_) {
    std::vector<double> cost(n_ * n_, 0.0);
    for (size_t length = 2; length <= n_; ++length) {
      for (size_t i = 0; i + length <= n_; ++i) {
        const size_t j = i + length - 1;
        double& best = cost[i * n_ + j];
        best = std::numeric_limits<double>::infinity();
        for (size_t k = i; k < j; ++k) {
          const double here = cost[i * n_ + k] + cost[(k + 1) * n_ + j] +
                              static_cast<double>(factors[i].rows()) *
                                  static_cast<double>(factors[k].cols()) *
                                  static_cast<double>(factors[j].cols());
          if (here >= best) continue;
          best = here;
          split_[i * n_ + j] = k;
        }
      }
    }
  }

  MatrixXd Of(size_t begin, size_t end) const {
    if (end - begin == 1) return factors_[begin];
    const size_t k = split_[begin * n_ + end - 1];
    return Times(Of(begin, k + 1), Of(k + 1, end));
  }

 private:
  const std::vector<MatrixXd>& factors_;
  size_t n_;
  std::vector<size_t> split_;
};

struct Inputs {
  Chain chain;
  std::vector<Tensor*> x;

  std::vector<MatrixXd> Factors() const {
    std::vector<MatrixXd> factors;
    for (size_t i = 0; i < x.size(); ++i)
      factors.push_back(Load(x[i], chain.factors[i], 0));
    return factors;
  }
};

absl::StatusOr<Inputs> ReadInputs(const BindContext& context) {
  Inputs in;
  std::vector<Shape> shapes;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    in.x.push_back(context.Input("X", i));
    if (in.x[i] == nullptr || in.x[i]->dtype() != in.x[0]->dtype())
      return InvalidArgument("'X' holds tensors of several dtypes");
    shapes.push_back(in.x[i]->shape());
  }
  PD_ASSIGN_OR_RETURN(in.chain, ChainOf(shapes));
  return in;
}

// The product as one matrix, whatever axes it lacks.
Matrices OutOf(const Chain& chain) {
  return {{}, chain.factors.front().rows, chain.factors.back().cols};
}

absl::StatusOr<Step> BindMultiDot(BindContext* context) {
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Inputs in, ReadInputs(*context));
  PD_RETURN_IF_ERROR(CheckReal(out->dtype()));
  return Step([=](const RunContext&) {
    const auto factors = in.Factors();
    Store(MultiDotProduct(factors).Of(0, factors.size()), out, OutOf(in.chain),
          0);
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindMultiDotGrad(BindContext* context) {
  Tensor* dout = context->Input("Out@GRAD");
  PD_ASSIGN_OR_RETURN(const Inputs in, ReadInputs(*context));
  PD_RETURN_IF_ERROR(CheckReal(in.x[0]->dtype()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", in.x[0]->dtype(),
                                    NumElements(in.chain.out)));
  std::vector<Tensor*> dx;
  for (size_t i = 0; i < in.x.size(); ++i)
    dx.push_back(context->Output("X@GRAD", i));
  return Step([=](const RunContext&) {
    const auto factors = in.Factors();
    const size_t n = factors.size();
    const MultiDotProduct product(factors);
    for (size_t i = 0; i < n; ++i) {
      if (dx[i] == nullptr) continue;
      MatrixXd g = Load(dout, OutOf(in.chain), 0);
      if (i > 0) g = TransposeTimes(product.Of(0, i), g);
      if (i + 1 < n) g = TimesTranspose(g, product.Of(i + 1, n));
      Store(g, dx[i], in.chain.factors[i], 0);
    }
    return absl::OkStatus();
  });
}

absl::Status InferMultiDot(InferContext* context) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < context->InputCount("X"); ++i)
    shapes.push_back(context->Input("X", i).shape);
  PD_ASSIGN_OR_RETURN(Chain chain, ChainOf(shapes));
  context->SetOutput("Out", std::move(chain.out), context->Input("X").dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterMultiDot(OpRegistry* registry) {
  OpDef op("multi_dot");
  op.Inputs("X").Output("Out").Infer(InferMultiDot).Reference(BindMultiDot);
  op.Grad(GradSpec{"multi_dot_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("multi_dot_grad");
  grad.Inputs("X").Input("Out@GRAD").Outputs("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindMultiDotGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
