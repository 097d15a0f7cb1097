// SPDX-License-Identifier: Apache-2.0
// Second gradients of elementwise ops by other ops. P and Q are the cotangents
// of X@GRAD and Y@GRAD (absent: zero), D is Out@GRAD:
//
//   max, min, fmax, fmin: Out@GRAD gets P where X was picked, Q elsewhere.
//   pow, with h = X^(Y-1) and Z = X^Y:
//     Out@GRAD gets P Y h + Q ln(X) Z
//     X@GRAD gets D P Y (Y-1) X^(Y-2) + D Q ln(X) Y h + D Q h
//     Y@GRAD gets D P Y ln(X) h + D P h + D Q ln(X)^2 Z
//   where the terms with two factors of a power's derivative are those of
//   elementwise_pow_grad. Without Q, as where Y is constant, nothing asks for
//   ln(X), so X may be 0 or less.
// The sums over axes that an operand was repeated along are
// elementwise_add_grad's.
#include <string>
#include <utility>
#include <vector>

#include "libcore/ops/common/op_formula.h"
#include "libcore/ops/elementwise/elementwise_second.h"

namespace pd {
namespace {

// The operands of the op whose gradient is made, in the shape of Out.
class PairFormula : public OpFormula {
 public:
  explicit PairFormula(const OpDesc& grad)
      : OpFormula(grad),
        x(grad.In("X")),
        y(grad.In("Y")),
        dout(grad.In("Out@GRAD")),
        p(CotangentOf(grad, "X@GRAD")),
        q(CotangentOf(grad, "Y@GRAD")),
        axis_(grad.AttrOr<int32_t>("axis", -1)) {}

  // A value like X, or like Y, repeated to the shape of Out.
  std::string LikeX(const std::string& value) {
    return Binary("elementwise_add", value, Like(y, 0), axis_);
  }
  std::string LikeY(const std::string& value) {
    return Binary("elementwise_add", Like(x, 0), value, axis_);
  }
  std::string Together(const char* type, const std::string& like_x,
                       const std::string& like_y) {
    return Binary(type, like_x, like_y, axis_);
  }

  // Appends a gradient op of this kind; "" is a gradient that is not wanted.
  void AddGradOp(const char* type, const std::string& exponent,
                 const std::string& of, const std::string& dx,
                 const std::string& dy) {
    if (dx.empty() && dy.empty()) return;
    OpDesc op;
    op.type = type;
    op.attrs["axis"] = axis_;
    op.SetInput("X", {x});
    op.SetInput("Y", {exponent});
    op.SetInput("Out@GRAD", {of});
    if (!dx.empty()) op.SetOutput("X@GRAD", {dx});
    if (!dy.empty()) op.SetOutput("Y@GRAD", {dy});
    Add(std::move(op));
  }

  const std::string x, y, dout, p, q;

 private:
  int32_t axis_;
};

// The elements whose gradient goes to X, as bools.
std::string PickedX(const std::string& type, PairFormula* f) {
  if (type == "elementwise_max_grad")
    return f->Together("greater_than", f->x, f->y);
  if (type == "elementwise_min_grad")
    return f->Together("less_than", f->x, f->y);
  const bool max = type == "elementwise_fmax_grad";
  return f->Together(
      "logical_or",
      f->Together(max ? "greater_equal" : "less_equal", f->x, f->y),
      f->Unary("isnan_v2", f->LikeY(f->y)));
}

absl::StatusOr<std::vector<OpDesc>> PickedSecond(const GradRequest& request) {
  PairFormula f(request.op);
  if (!request.needs_grad(f.dout)) return f.Take();
  OpDesc op;
  op.type = "where";
  op.SetInput("Condition", {PickedX(request.op.type, &f)});
  op.SetInput("X", {f.p.empty() ? f.Like(f.dout, 0) : f.LikeX(f.p)});
  op.SetInput("Y", {f.q.empty() ? f.Like(f.dout, 0) : f.LikeY(f.q)});
  op.SetOutput("Out", {GradName(f.dout)});
  f.Add(std::move(op));
  return f.Take();
}

absl::StatusOr<std::vector<OpDesc>> PowSecond(const GradRequest& request) {
  PairFormula f(request.op);
  const bool of_dout = request.needs_grad(f.dout);
  const std::string dx = request.needs_grad(f.x) ? GradName(f.x) : "";
  const std::string dy = request.needs_grad(f.y) ? GradName(f.y) : "";
  const std::string less = f.Scale(f.y, 1, -1);
  const std::string h = f.Together("elementwise_pow", f.x, less);
  if (!f.p.empty()) {
    const std::string py = f.Mul(f.LikeX(f.p), f.LikeY(f.y));
    if (of_dout) f.Give(f.Mul(py, h), f.dout);
    const std::string dpy = f.Mul(f.dout, py);
    f.AddGradOp("elementwise_pow_grad", less, dpy, dx, dy);
    if (!dy.empty())
      f.AddGradOp("elementwise_add_grad", f.y,
                  f.Mul(f.Mul(f.dout, f.LikeX(f.p)), h), "", dy);
  }
  if (!f.q.empty()) {
    const std::string q = f.LikeY(f.q);
    const std::string ql = f.Mul(q, f.LikeX(f.Unary("log", f.x)));
    const std::string z = f.Together("elementwise_pow", f.x, f.y);
    if (of_dout) f.Give(f.Mul(ql, z), f.dout);
    f.AddGradOp("elementwise_pow_grad", f.y, f.Mul(f.dout, ql), dx, dy);
    if (!dx.empty())
      f.AddGradOp("elementwise_add_grad", f.y, f.Mul(f.Mul(f.dout, q), h), dx,
                  "");
  }
  return f.Take();
}

}  // namespace

GradMaker PickedSecondMaker() { return PickedSecond; }
GradMaker PowSecondMaker() { return PowSecond; }

}  // namespace pd
