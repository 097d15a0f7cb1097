// SPDX-License-Identifier: Apache-2.0
// fused_rotary_position_embedding: pairs of the last axis of q, k and v [batch,
// steps, heads, width] turned by the angle of their step (J. Su et al.,
// "RoFormer", 2021). With a and b a pair's elements and sin, cos those of each
//   out_a = a cos_a - b sin_a,  out_b = b cos_b + a sin_b
// A pair is two neighbours, or, without use_neox_rotary_style, elements of the
// two halves. sin and cos are [steps, width] (or [1, steps, 1, width]), at the
// steps of position_ids [batch, steps] where those are given; without them the
// angle of neighbours 2i and 2i + 1 is step / 10000^(2i / width).
#include <cmath>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Rotary {
  int64_t batch = 0, steps = 0, heads = 0, width = 0;
  int64_t positions = 0;  // rows of sin and cos
  bool neighbours = true;
  Tensor *sin = nullptr, *cos = nullptr, *ids = nullptr;
};

struct RotaryPair {
  const char *in, *out;
};
constexpr RotaryPair kRotaryPairs[] = {
    {"q", "out_q"}, {"k", "out_k"}, {"v", "out_v"}};

absl::Status CheckRotary(const Shape& shape, bool neighbours, bool table) {
  if (shape.size() != 4 || (shape[3] >= 0 && shape[3] % 2 != 0))
    return InvalidArgument(
        "an input has shape %s; expected [batch, steps, heads, an even width]",
        ToString(shape));
  if (!neighbours && !table)
    return Unimplemented(
        "attr 'use_neox_rotary_style' is false, and 'sin' and 'cos' are not "
        "given");
  return absl::OkStatus();
}

// The arguments of tensors like `first`.
absl::StatusOr<Rotary> ReadRotary(const BindContext& context,
                                  const Tensor& first) {
  Rotary r;
  r.sin = context.Input("sin");
  r.cos = context.Input("cos");
  r.ids = context.Input("position_ids");
  r.neighbours = context.Attr<bool>("use_neox_rotary_style");
  if ((r.sin == nullptr) != (r.cos == nullptr))
    return InvalidArgument("one of 'sin' and 'cos' is given; expected both");
  PD_RETURN_IF_ERROR(
      CheckRotary(first.shape(), r.neighbours, r.sin != nullptr));
  r.batch = first.dim(0);
  r.steps = first.dim(1);
  r.heads = first.dim(2);
  r.width = first.dim(3);
  if (r.ids != nullptr) {
    PD_RETURN_IF_ERROR(CheckIndexType("position_ids", r.ids->dtype()));
    PD_RETURN_IF_ERROR(ExpectElements(context, "position_ids", r.ids->dtype(),
                                      r.batch * r.steps));
  }
  if (r.sin == nullptr) return r;
  if (r.width == 0 || r.sin->size() % r.width != 0 ||
      r.sin->size() / r.width < r.steps)
    return InvalidArgument("'sin' has shape %s; expected %d steps of %d",
                           ToString(r.sin->shape()), r.steps, r.width);
  r.positions = r.sin->size() / r.width;
  for (const char* slot : {"sin", "cos"})
    PD_RETURN_IF_ERROR(
        ExpectElements(context, slot, first.dtype(), r.sin->size()));
  return r;
}

// The sine or cosine of element i at a position.
template <typename T>
T Turn(const Rotary& r, const Tensor* table, int64_t position, int64_t i,
       double (*of)(double)) {
  if (table != nullptr) return table->data<T>()[position * r.width + i];
  const double power =
      static_cast<double>(i / 2 * 2) / static_cast<double>(r.width);
  return static_cast<T>(
      of(static_cast<double>(position) / std::pow(10000.0, power)));
}

// Turns forwards, or applies the transposed matrix.
template <typename T>
void Rotate(const Rotary& r, bool backward, const T* in, T* out) {
  const int64_t half = r.width / 2;
  ParallelFor(r.batch * r.steps, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t position =
          r.ids != nullptr ? LabelAt(*r.ids, row) : row % r.steps;
      for (int64_t p = 0; p < half; ++p) {
        const int64_t i = r.neighbours ? 2 * p : p;
        const int64_t j = r.neighbours ? 2 * p + 1 : p + half;
        const T sin_i = Turn<T>(r, r.sin, position, i, std::sin);
        const T sin_j = Turn<T>(r, r.sin, position, j, std::sin);
        const T cos_i = Turn<T>(r, r.cos, position, i, std::cos);
        const T cos_j = Turn<T>(r, r.cos, position, j, std::cos);
        for (int64_t h = 0; h < r.heads; ++h) {
          const int64_t at = (row * r.heads + h) * r.width;
          const T a = in[at + i], b = in[at + j];
          out[at + i] = a * cos_i + (backward ? b * sin_j : -b * sin_i);
          out[at + j] = b * cos_j + (backward ? -a * sin_i : a * sin_j);
        }
      }
    }
  });
}

absl::StatusOr<Step> BindRotary(BindContext* context, bool backward) {
  std::vector<std::pair<Tensor*, Tensor*>> pairs;
  std::vector<Rotary> each;  // heads of k and v may be fewer
  for (const RotaryPair& pair : kRotaryPairs) {
    Tensor* in = context->Input(backward ? GradName(pair.out) : pair.in);
    Tensor* out = context->Output(backward ? GradName(pair.in) : pair.out);
    if (in == nullptr || out == nullptr) continue;
    PD_ASSIGN_OR_RETURN(const Rotary r, ReadRotary(*context, *in));
    if (!pairs.empty() && in->dtype() != pairs[0].first->dtype())
      return InvalidArgument("the inputs have several dtypes");
    each.push_back(r);
    pairs.emplace_back(in, out);
  }
  if (pairs.empty()) return InvalidArgument("no output has its input");
  return DispatchFloat(
      pairs[0].first->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) -> absl::Status {
          for (size_t k = 0; k < pairs.size(); ++k) {
            const Rotary& r = each[k];
            if (r.ids != nullptr && r.sin != nullptr)
              PD_RETURN_IF_ERROR(
                  CheckIndices("position_ids", *r.ids, 0, r.positions));
            Rotate(r, backward, pairs[k].first->data<T>(),
                   pairs[k].second->data<T>());
          }
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> BindRotaryForward(BindContext* context) {
  return BindRotary(context, false);
}
absl::StatusOr<Step> BindRotaryBackward(BindContext* context) {
  return BindRotary(context, true);
}

absl::Status InferRotary(InferContext* context) {
  for (const RotaryPair& pair : kRotaryPairs) {
    if (!context->HasInput(pair.in)) continue;
    PD_RETURN_IF_ERROR(CheckRotary(context->Input(pair.in).shape,
                                   context->Attr<bool>("use_neox_rotary_style"),
                                   context->HasInput("sin")));
    context->Share(pair.in, pair.out);
  }
  return absl::OkStatus();
}

absl::Status InferRotaryGrad(InferContext* context) {
  for (const RotaryPair& pair : kRotaryPairs)
    if (context->HasInput(GradName(pair.out)))
      context->Share(GradName(pair.out), GradName(pair.in));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterRotaryEmbedding(OpRegistry* registry) {
  OpDef op("fused_rotary_position_embedding");
  OpDef grad("fused_rotary_position_embedding_grad");
  op.Input("q").OptionalInput("k").OptionalInput("v");
  op.Output("out_q").OptionalOutput("out_k").OptionalOutput("out_v");
  for (OpDef* def : {&op, &grad}) {
    for (const char* slot : {"sin", "cos", "position_ids"})
      def->OptionalInput(slot);
    def->Attr("use_neox_rotary_style", true);
  }
  op.Infer(InferRotary).Reference(BindRotaryForward);
  op.Grad(GradSpec{grad.type(),
                   {"sin", "cos", "position_ids"},
                   {},
                   {"out_q", "out_k", "out_v"},
                   {"q", "k", "v"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  for (const RotaryPair& pair : kRotaryPairs) {
    grad.OptionalInput(GradName(pair.out));
    grad.OptionalOutput(GradName(pair.in));
  }
  grad.Infer(InferRotaryGrad).NoGrad().Reference(BindRotaryBackward);
  return registry->Add(std::move(grad));
}

}  // namespace pd
