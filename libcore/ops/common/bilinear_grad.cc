// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/bilinear_grad.h"
#include "libcore/base/error.h"

#include <utility>
#include <vector>

#include "libcore/ops/common/op_formula.h"

namespace pd {
namespace {

// The ops in the making, of which some are the gradient op of B.
class BilinearOps {
 public:
  BilinearOps(const GradRequest& request, const BilinearSlots& slots,
              std::string first)
      : request_(request),
        slots_(slots),
        first_(std::move(first)),
        formula_(request.op) {}

  bool Needs(const std::string& variable) const {
    return !variable.empty() && request_.needs_grad(variable);
  }

  OpDesc Op(const std::string& type, const std::string& x,
            const std::string& y) const {
    OpDesc op;
    op.type = type;
    op.attrs = request_.op.attrs;
    op.SetInput(slots_.x, {x});
    op.SetInput(slots_.y, {y});
    return op;
  }

  // The gradients of B(x, y) for `dout` to those of the two variables that are
  // needed; "" is none.
  void First(const std::string& x, const std::string& y,
             const std::string& dout, const std::string& to_x,
             const std::string& to_y) {
    OpDesc op = Op(first_, x, y);
    op.SetInput(GradName(slots_.out), {dout});
    Finish(std::move(op),
           {{GradName(slots_.x), to_x}, {GradName(slots_.y), to_y}});
  }

  // Adds an op with the outputs that are needed, if any is.
  void Finish(OpDesc op,
              const std::vector<std::pair<std::string, std::string>>& to) {
    bool any = false;
    for (const auto& [slot, variable] : to) {
      if (!Needs(variable)) continue;
      op.SetOutput(slot, {GradName(variable)});
      any = true;
    }
    if (any) formula_.Add(std::move(op));
  }

  std::vector<OpDesc> Take() { return formula_.Take(); }

 private:
  const GradRequest& request_;
  const BilinearSlots& slots_;
  const std::string first_;
  OpFormula formula_;
};

}  // namespace

GradMaker BilinearSecond(std::string forward, BilinearSlots slots) {
  return
      [forward, slots](
          const GradRequest& request) -> absl::StatusOr<std::vector<OpDesc>> {
        const OpDesc& grad = request.op;
        const std::string x = grad.In(slots.x), y = grad.In(slots.y);
        const std::string dout = grad.In(GradName(slots.out));
        const std::string p = CotangentOf(grad, GradName(slots.x));
        const std::string q = CotangentOf(grad, GradName(slots.y));
        BilinearOps ops(request, slots, grad.type);
        if (!p.empty()) {
          ops.Finish(ops.Op(forward, p, y), {{slots.out, dout}});
          ops.First(p, y, dout, "", y);
        }
        if (!q.empty()) {
          ops.Finish(ops.Op(forward, x, q), {{slots.out, dout}});
          ops.First(x, q, dout, x, "");
        }
        return ops.Take();
      };
}

GradMaker BilinearThird(std::string first, BilinearSecondSlots second,
                        BilinearSlots slots) {
  return [first, second, slots](const GradRequest& request)
             -> absl::StatusOr<std::vector<OpDesc>> {
    const OpDesc& op = request.op;
    const std::string x = op.In(slots.x), y = op.In(slots.y);
    const std::string dout = Present(op.In(second.dout));
    if (dout.empty())
      return Unimplemented(
          "op '%s' has no gradient with the slots of programs "
          "before 2.3",
          op.type);
    const std::string ddx = Present(op.In(second.ddx));
    const std::string ddy = Present(op.In(second.ddy));
    const std::string a = CotangentOf(op, second.ddout);
    const std::string b = CotangentOf(op, second.dx);
    const std::string c = CotangentOf(op, second.dy);
    BilinearOps ops(request, slots, first);
    if (!a.empty() && !ddx.empty()) ops.First(ddx, y, a, ddx, y);
    if (!a.empty() && !ddy.empty()) ops.First(x, ddy, a, x, ddy);
    if (!b.empty() && !ddy.empty()) {
      OpDesc again = ops.Op(op.type, x, ddy);
      again.SetInput(second.dout, {dout});
      again.SetInput(second.ddx, {b});
      ops.Finish(std::move(again), {{second.ddout, dout}, {second.dy, ddy}});
    }
    if (!c.empty() && !ddx.empty()) {
      OpDesc again = ops.Op(op.type, ddx, y);
      again.SetInput(second.dout, {dout});
      again.SetInput(second.ddy, {c});
      ops.Finish(std::move(again), {{second.ddout, dout}, {second.dx, ddx}});
    }
    return ops.Take();
  };
}

}  // namespace pd
