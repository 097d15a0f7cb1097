// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/unary_curve.h"

#include <map>
#include <utility>
#include <vector>

#include "libcore/ops/common/op_formula.h"

namespace pd {
namespace {

// A function at v, for the lines of the table. Constants that float32 does not
// hold are made of D, which is right in every dtype.
class UnaryAt {
 public:
  UnaryAt(const std::string& grad_type, GradReads reads, std::string v,
          const OpDesc& op)
      : f_(op),
        grad_type_(grad_type),
        slot_(reads == GradReads::kX ? "X" : "Out"),
        v_(std::move(v)),
        op_(op) {}

  OpFormula& f() { return f_; }
  const std::string& v() const { return v_; }
  double Attr(const char* name) const { return op_.Attr<float>(name); }

  // p * D(v)
  std::string D(const std::string& p) { return D(p, ""); }
  std::string D(const std::string& p, const std::string& out) {
    OpDesc op;
    op.type = grad_type_;
    op.attrs = op_.attrs;
    op.SetInput(slot_, {v_});
    op.SetInput("Out@GRAD", {p});
    if (out.empty()) return ApplyTo(std::move(op));
    op.SetOutput("X@GRAD", {out});
    f_.Add(std::move(op));
    return out;
  }
  // p where v > 0, else 0; and p where it is not.
  std::string Above(const std::string& p) {
    OpDesc op;
    op.type = "relu_grad";
    op.SetInput("Out", {v_});
    op.SetInput("Out@GRAD", {p});
    return ApplyTo(std::move(op));
  }
  std::string Below(const std::string& p) { return f_.Sub(p, Above(p)); }

  // The result of a gradient op, as a value between ops.
  std::string ApplyTo(OpDesc op) { return f_.Apply(std::move(op), "X@GRAD"); }

 private:
  OpFormula f_;
  const std::string& grad_type_;
  const char* const slot_;
  const std::string v_;
  const OpDesc& op_;
};

// Gives something times a function of v.
using Times = std::string (*)(UnaryAt& at, const std::string& p);

struct UnaryLine {
  Times bend = nullptr;    // D'; null: 0
  Times second = nullptr;  // E: D' / D where the second op reads X@GRAD
  Times third = nullptr;   // E', E being `second` or else D'; null: 0
};

using At = UnaryAt&;
using P = const std::string&;

std::string Same(At, P p) { return p; }
std::string Twice(At a, P p) { return a.f().Scale(p, 2); }
std::string MinusTwice(At a, P p) { return a.f().Scale(p, -2); }
std::string MinusOverV(At a, P p) {
  return a.f().Scale(a.f().Div(p, a.v()), -1);
}
// D is 1 / x over a constant.
std::string LogBend(At a, P p) { return MinusOverV(a, a.D(p)); }
std::string LogThird(At a, P p) {
  return a.f().Scale(a.f().Div(a.f().Div(a.D(p), a.v()), a.v()), 2);
}
std::string Log1pBend(At a, P p) { return a.f().Scale(a.D(a.D(p)), -1); }
std::string OverSquare(At a, P p) {
  return a.f().Div(a.f().Div(p, a.v()), a.v());
}
std::string ThreeOverV(At a, P p) {
  return a.f().Scale(a.f().Div(p, a.v()), 3);
}
std::string RsqrtBend(At a, P p) { return ThreeOverV(a, a.D(p)); }
std::string RsqrtThird(At a, P p) { return a.f().Scale(OverSquare(a, p), -3); }
std::string MinusTwoV(At a, P p) {
  return a.f().Scale(a.f().Mul(p, a.v()), -2);
}
std::string OneLessTwoV(At a, P p) {
  return a.f().Mul(p, a.f().Scale(a.v(), -2, 1));
}
template <bool kMinus>
std::string TimesSin(At a, P p) {
  const std::string made = a.f().Mul(p, a.f().Unary("sin", a.v()));
  return kMinus ? a.f().Scale(made, -1) : made;
}
std::string MinusCos(At a, P p) {
  return a.f().Scale(a.f().Mul(p, a.f().Unary("cos", a.v())), -1);
}
std::string TimesSinh(At a, P p) {
  return a.f().Mul(p, a.f().Unary("sinh", a.v()));
}
std::string TimesCosh(At a, P p) {
  return a.f().Mul(p, a.f().Unary("cosh", a.v()));
}
std::string TanBend(At a, P p) {
  return a.f().Scale(a.f().Mul(a.D(p), a.f().Unary("tan", a.v())), 2);
}
// kTimes * v * D to the power kPower.
template <int kTimes, int kPower>
std::string VTimesPower(At a, P p) {
  std::string made = a.f().Mul(p, a.v());
  for (int i = 0; i < kPower; ++i) made = a.D(made);
  return kTimes == 1 ? made : a.f().Scale(made, kTimes);
}
std::string LgammaBend(At a, P p) {
  OpDesc op;
  op.type = "digamma_grad";
  op.SetInput("X", {a.v()});
  op.SetInput("Out@GRAD", {p});
  return a.ApplyTo(std::move(op));
}
// s (1 - s) (2 + x (1 - 2 s)), s being the sigmoid of x.
std::string SiluBend(At a, P p) {
  OpFormula& f = a.f();
  const std::string s = f.Unary("sigmoid", a.v());
  const std::string slope = f.Mul(s, f.Scale(s, -1, 1));
  const std::string rest = f.Scale(f.Mul(a.v(), f.Scale(s, -2, 1)), 1, 2);
  return f.Mul(f.Mul(p, slope), rest);
}
// w (2 + x (1 - s - 2 t s)), w = (1 - t^2) s: t is the tanh of softplus.
std::string MishBend(At a, P p) {
  OpFormula& f = a.f();
  const std::string s = f.Unary("sigmoid", a.v());
  const std::string t = f.Unary("tanh", f.Unary("softplus", a.v()));
  const std::string w = f.Mul(f.Scale(f.Mul(t, t), -1, 1), s);
  const std::string inner = f.Sub(f.Scale(s, -1, 1), f.Scale(f.Mul(t, s), 2));
  return f.Mul(f.Mul(p, w), f.Scale(f.Mul(a.v(), inner), 1, 2));
}
std::string EluBend(At a, P p) { return a.D(a.Below(p)); }
std::string CeluBend(At a, P p) {
  return a.f().Scale(EluBend(a, p), 1 / a.Attr("alpha"));
}
std::string CeluThird(At a, P p) {
  return a.f().Scale(CeluBend(a, p), 1 / a.Attr("alpha"));
}
std::string SeluBend(At a, P p) { return a.Below(p); }
// beta D (1 - D)
std::string SoftplusBend(At a, P p) {
  const std::string once = a.D(p);
  return a.f().Scale(a.f().Sub(once, a.D(once)), a.Attr("beta"));
}
std::string SoftplusThird(At a, P p) {
  const std::string once = a.f().Sub(p, a.f().Scale(a.D(p), 2));
  return a.f().Scale(SoftplusBend(a, once), a.Attr("beta"));
}
std::string LogSigmoidBend(At a, P p) {
  const std::string once = a.D(p);
  return a.f().Sub(a.D(once), once);
}
std::string TanhShrinkBend(At a, P p) {
  OpFormula& f = a.f();
  const std::string t = f.Unary("tanh", a.v());
  return f.Scale(f.Sub(f.Mul(p, t), f.Mul(a.D(p), t)), 2);
}
std::string StanhBend(At a, P p) {
  const double inner = a.Attr("scale_a");
  const std::string t = a.f().Unary("tanh", a.f().Scale(a.v(), inner));
  return a.f().Scale(a.f().Mul(a.D(p), t), -2 * inner);
}
std::string SoftsignBend(At a, P p) {
  OpFormula& f = a.f();
  const std::string size = f.Scale(f.Unary("abs", a.v()), 1, 1);
  const std::string made = f.Mul(a.D(p), f.Unary("sign", a.v()));
  return f.Scale(f.Div(made, size), -2);
}
std::string LogitBend(At a, P p) {
  return a.f().Mul(a.D(a.D(p)), a.f().Scale(a.v(), 2, -1));
}

const std::map<std::string, UnaryLine>& UnaryLines() {
  static const auto* const kLines = new std::map<std::string, UnaryLine>{
      {"exp", {Same}},
      {"expm1", {Same}},
      {"log", {LogBend, nullptr, LogThird}},
      {"log2", {LogBend}},
      {"log10", {LogBend}},
      {"log1p", {Log1pBend}},
      {"sqrt",
       {[](At a, P p) { return MinusOverV(a, a.D(p)); }, MinusOverV,
        OverSquare}},
      {"rsqrt", {RsqrtBend, ThreeOverV, RsqrtThird}},
      {"square", {Twice}},
      {"reciprocal", {MinusTwoV}},
      {"sin", {TimesSin<true>, nullptr, MinusCos}},
      {"cos", {MinusCos, nullptr, TimesSin<false>}},
      {"tan", {TanBend}},
      {"asin", {VTimesPower<1, 3>}},
      {"acos", {VTimesPower<1, 3>}},
      {"atan", {VTimesPower<-2, 2>}},
      {"sinh", {TimesSinh}},
      {"cosh", {TimesCosh}},
      {"asinh", {VTimesPower<-1, 3>}},
      {"acosh", {VTimesPower<-1, 3>}},
      {"atanh", {VTimesPower<2, 2>}},
      {"erf", {VTimesPower<-2, 1>}},
      {"erfinv", {VTimesPower<2, 1>}},
      {"lgamma", {LgammaBend}},
      {"floor", {}},
      {"ceil", {}},
      {"round", {}},
      {"trunc", {}},
      {"sigmoid", {OneLessTwoV, nullptr, MinusTwice}},
      {"tanh", {MinusTwoV, nullptr, MinusTwice}},
      {"silu", {SiluBend}},
      {"swish", {SiluBend}},
      {"mish", {MishBend}},
      {"elu", {EluBend, nullptr, EluBend}},
      {"celu", {CeluBend, nullptr, CeluThird}},
      {"selu", {SeluBend}},
      {"relu6", {}},
      {"brelu", {}},
      {"leaky_relu", {}},
      {"thresholded_relu", {}},
      {"hard_sigmoid", {}},
      {"hard_shrink", {}},
      {"softshrink", {}},
      {"softplus", {SoftplusBend, nullptr, SoftplusThird}},
      {"logsigmoid", {LogSigmoidBend}},
      {"tanh_shrink", {TanhShrinkBend}},
      {"softsign", {SoftsignBend}},
      {"stanh", {StanhBend}},
      {"logit", {LogitBend}}};
  return *kLines;
}

const char* SlotOf(GradReads reads) {
  return reads == GradReads::kX ? "X" : "Out";
}

absl::StatusOr<std::vector<OpDesc>> MakeUnarySecond(const GradRequest& request,
                                                    const UnaryLine& line,
                                                    GradReads reads) {
  const OpDesc& grad = request.op;
  std::vector<OpDesc> ops;
  if (reads == GradReads::kNothing) return ops;  // it makes zeros
  const std::string v = grad.In(SlotOf(reads)), dout = grad.In("Out@GRAD");
  const std::string p = CotangentOf(grad, "X@GRAD");
  UnaryAt at(grad.type, reads, v, grad);
  if (request.needs_grad(dout)) at.D(p, GradName(dout));
  if (request.needs_grad(v) && line.bend != nullptr)
    at.f().Give(line.bend(at, at.f().Mul(p, dout)), v);
  return at.f().Take();
}

absl::StatusOr<std::vector<OpDesc>> MakeUnaryThird(const GradRequest& request,
                                                   const UnaryLine& line,
                                                   const std::string& grad_type,
                                                   GradReads reads,
                                                   const std::string& with,
                                                   const std::string& dout) {
  const OpDesc& second = request.op;
  const std::string v = second.In(SlotOf(reads));
  const std::string ddx = second.In("grad_x@GRAD");
  const std::string a = CotangentOf(second, GradName(dout));
  const std::string b = CotangentOf(second, GradName(SlotOf(reads)));
  const Times bends = line.second != nullptr ? line.second : line.bend;
  UnaryAt at(grad_type, reads, v, second);
  OpFormula& f = at.f();
  if (!a.empty() && request.needs_grad(ddx)) at.D(a, GradName(ddx));
  if (!a.empty() && request.needs_grad(v) && line.bend != nullptr)
    f.Give(line.bend(at, f.Mul(a, ddx)), v);
  if (b.empty() || with.empty()) return f.Take();
  const std::string w = second.In(with);
  if (request.needs_grad(ddx)) f.Give(bends(at, f.Mul(b, w)), ddx);
  if (request.needs_grad(w)) f.Give(bends(at, f.Mul(b, ddx)), w);
  if (request.needs_grad(v) && line.third != nullptr)
    f.Give(line.third(at, f.Mul(f.Mul(b, ddx), w)), v);
  return f.Take();
}

}  // namespace

void SetUnarySecond(const std::string& type, GradReads reads, OpDef* grad) {
  const auto line = UnaryLines().find(type);
  if (line == UnaryLines().end()) {
    grad->NoGrad();
    return;
  }
  grad->Grad(GradMaker([&line = line->second, reads](const GradRequest& r) {
    return MakeUnarySecond(r, line, reads);
  }));
}

void SetUnaryThird(const std::string& type, GradReads reads,
                   const std::string& with, const std::string& dout,
                   OpDef* second) {
  const auto line = UnaryLines().find(type);
  if (line == UnaryLines().end()) {
    second->NoGrad();
    return;
  }
  second->Grad(GradMaker([&line = line->second, grad_type = type + "_grad",
                          reads, with, dout](const GradRequest& r) {
    return MakeUnaryThird(r, line, grad_type, reads, with, dout);
  }));
}

GradMaker LinearThird(std::string first, std::string v, std::string second_v,
                      std::vector<std::string> keep) {
  return
      [first, v, second_v, keep](
          const GradRequest& request) -> absl::StatusOr<std::vector<OpDesc>> {
        const OpDesc& second = request.op;
        std::vector<OpDesc> ops;
        const std::string ddx = second.In("grad_x@GRAD");
        if (!request.needs_grad(ddx)) return ops;
        OpDesc op;
        op.type = first;
        op.attrs = second.attrs;
        op.SetInput(v, {second.In(second_v)});
        for (const std::string& slot : keep)
          if (!second.Input(slot).empty())
            op.SetInput(slot, second.Input(slot));
        op.SetInput("Out@GRAD", {CotangentOf(second, "grad_out@GRAD")});
        op.SetOutput("X@GRAD", {GradName(ddx)});
        ops.push_back(std::move(op));
        return ops;
      };
}

}  // namespace pd
