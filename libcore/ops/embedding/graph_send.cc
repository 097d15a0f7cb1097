// SPDX-License-Identifier: Apache-2.0
// Messages along the edges e of a graph, from node s[e] = Src_index to node
// d[e] = Dst_index:
//   graph_send_recv: Out[n] = X[s[e]] over all e with d[e] = n
//   graph_send_ue_recv: the same of X[s[e]] op Y[e]
//   graph_send_uv: out[e] = x[s[e]] op y[d[e]]
// op (message_op) is ADD or MUL and broadcasts; over (reduce_op) is SUM, MEAN,
// MAX or MIN, and 0 where no message arrives. Out has as many rows as X, or
// out_size. Dst_count: how many messages arrived.
// Gradients: of a message m[e], g = Out@GRAD[d[e]]; MEAN: divided by the count;
// MAX, MIN: where m[e] equals Out. Then X@GRAD and Y@GRAD get g (MUL: times the
// other operand), summed where it was broadcast.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

enum class GraphSendPool { kNone, kSum, kMean, kMax, kMin };

// The three ops' slot names, and what the ops compute.
struct Form {
  const char *x, *y, *src, *dst, *out;  // y: null when there is none
  bool per_edge;                        // y has a row for every edge
  GraphSendPool pool = GraphSendPool::kNone;
  bool multiplies = false;

  bool Pools() const { return y == nullptr || per_edge; }
};

Form SlotsOf(const std::string& type) {
  if (type.rfind("graph_send_uv", 0) == 0)
    return {"x", "y", "src_index", "dst_index", "out", false};
  if (type.rfind("graph_send_ue_recv", 0) == 0)
    return {"X", "Y", "Src_index", "Dst_index", "Out", true};
  return {"X", nullptr, "Src_index", "Dst_index", "Out", false};
}

absl::StatusOr<Form> FormOf(const OpDesc& op) {
  Form f = SlotsOf(op.type);
  if (f.y != nullptr) {
    const auto& message = op.Attr<std::string>("message_op");
    if (message != "ADD" && message != "MUL")
      return InvalidArgument("attr 'message_op' is '%s'; expected ADD or MUL",
                             message);
    f.multiplies = message == "MUL";
  }
  if (!f.Pools()) return f;
  // 2.3 called it pool_type; no schema has that name any more.
  const auto pool =
      op.AttrOr<std::string>("pool_type", op.Attr<std::string>("reduce_op"));
  if (pool == "SUM")
    f.pool = GraphSendPool::kSum;
  else if (pool == "MEAN")
    f.pool = GraphSendPool::kMean;
  else if (pool == "MAX")
    f.pool = GraphSendPool::kMax;
  else if (pool == "MIN")
    f.pool = GraphSendPool::kMin;
  else
    return InvalidArgument(
        "attr 'reduce_op' is '%s'; expected SUM, MEAN, MAX or MIN", pool);
  return f;
}

Shape RowShape(const Shape& shape) {
  return Shape(shape.begin() + (shape.empty() ? 0 : 1), shape.end());
}

// A message's extents in both operands.
absl::StatusOr<Broadcast> MessageShape(const Form& form, const Shape& x,
                                       const Shape& y) {
  return BroadcastShapes(RowShape(x), form.y != nullptr ? RowShape(y) : Shape(),
                         -1);
}

// The rows that are asked for; 0: as many as X; -1: not known yet.
int64_t RowsAsked(const InferContext& context) {
  if (const auto given = IntsIn(context, "Out_size"))
    return given->size() != 1 ? -1
           : context.Input("Out_size").value == nullptr
               ? -1
               : std::max<int64_t>(0, given->front());
  const Attribute* a = context.op().FindAttr("out_size");
  if (a == nullptr) return 0;
  if (const auto* v = std::get_if<int64_t>(a)) return std::max<int64_t>(0, *v);
  if (const auto* v = std::get_if<int32_t>(a)) return std::max<int32_t>(0, *v);
  const std::vector<int64_t> list = IntsAttr(context.op(), "out_size");
  return list.empty() ? 0 : std::max<int64_t>(0, list[0]);
}

absl::Status InferSend(InferContext* context) {
  PD_ASSIGN_OR_RETURN(const Form form, FormOf(context->op()));
  const TensorMeta& x = context->Input(form.x);
  const TensorMeta& dst = context->Input(form.dst);
  for (const char* slot : {form.src, form.dst})
    PD_RETURN_IF_ERROR(CheckIndexType(slot, context->Input(slot).dtype));
  Shape y;
  if (form.y != nullptr) {
    y = context->Input(form.y).shape;
    if (y.empty() || context->Input(form.y).dtype != x.dtype)
      return InvalidArgument("%s is %s; %s is %s %s", form.x, Name(x.dtype),
                             form.y, Name(context->Input(form.y).dtype),
                             ToString(y));
  }
  if (x.shape.empty() || dst.shape.empty())
    return InvalidArgument("%s has shape %s, %s %s; expected rows", form.x,
                           ToString(x.shape), form.dst, ToString(dst.shape));
  PD_ASSIGN_OR_RETURN(const Broadcast message, MessageShape(form, x.shape, y));
  int64_t rows = dst.shape[0];
  if (form.pool != GraphSendPool::kNone) {
    rows = RowsAsked(*context);
    if (rows == 0) rows = x.shape[0];
    context->SetOutput("Dst_count", {rows}, DType::kInt32);
  }
  Shape shape = message.out;
  shape.insert(shape.begin(), rows);
  context->SetOutput(form.out, std::move(shape), x.dtype);
  return absl::OkStatus();
}

// The edges and how a message is made.
class Graph {
 public:
  static absl::StatusOr<Graph> Of(const BindContext& context, const Form& form,
                                  const Tensor& x, const Tensor* y,
                                  const Tensor& out) {
    Graph g;
    g.form_ = form;
    g.src_ = context.Input(form.src);
    g.dst_ = context.Input(form.dst);
    PD_RETURN_IF_ERROR(CheckIndexType(form.src, g.src_->dtype()));
    PD_RETURN_IF_ERROR(CheckIndexType(form.dst, g.dst_->dtype()));
    if (x.rank() == 0 || out.rank() == 0 || (y != nullptr && y->rank() == 0))
      return InvalidArgument("an operand or the output has rank 0");
    PD_ASSIGN_OR_RETURN(
        const Broadcast message,
        MessageShape(form, x.shape(), y != nullptr ? y->shape() : Shape()));
    g.loop_ = BroadcastLoop(message);
    g.width_ = NumElements(message.out);
    g.x_width_ = NumElements(message.x);
    g.y_width_ = NumElements(message.y);
    g.nodes_ = x.dim(0);
    g.y_rows_ = y != nullptr ? y->dim(0) : 0;
    g.rows_ = out.dim(0);
    const bool fits =
        g.src_->size() == g.dst_->size() && out.size() == g.rows_ * g.width_ &&
        out.dtype() == x.dtype() && (y == nullptr || y->dtype() == x.dtype()) &&
        (!form.per_edge || g.y_rows_ == g.src_->size()) &&
        (form.pool != GraphSendPool::kNone || g.rows_ == g.src_->size());
    if (!fits)
      return InvalidArgument(
          "%d sources, %d destinations, %s of shape %s; the "
          "output has %s",
          g.src_->size(), g.dst_->size(), form.x, ToString(x.shape()),
          ToString(out.shape()));
    return g;
  }

  absl::Status Check() const {
    PD_RETURN_IF_ERROR(CheckIndices(form_.src, *src_, 0, nodes_));
    return CheckIndices(form_.dst, *dst_, 0,
                        form_.pool != GraphSendPool::kNone ? rows_ : y_rows_);
  }

  // Calls body(row of out, element of it, element of x, element of y) for every
  // element of every message; y's is 0 when there is none.
  template <typename Body>
  void ForMessages(const Body& body) const {
    const auto s = loop_.row_strides();
    for (int64_t e = 0; e < src_->size(); ++e) {
      const int64_t to = LabelAt(*dst_, e);
      const int64_t row = form_.pool != GraphSendPool::kNone ? to : e;
      const int64_t x = LabelAt(*src_, e) * x_width_;
      const int64_t y =
          form_.y == nullptr ? 0 : (form_.per_edge ? e : to) * y_width_;
      loop_.ForParts(0, width_, [&](const auto& at, int64_t n) {
        for (int64_t j = 0; j < n; ++j)
          body(row, row * width_ + at[2] + j * s[2], x + at[0] + j * s[0],
               y + at[1] + j * s[1]);
      });
    }
  }
  // Calls body(row of out) for every edge.
  template <typename Body>
  void ForEdges(const Body& body) const {
    for (int64_t e = 0; e < dst_->size(); ++e) body(LabelAt(*dst_, e));
  }
  int64_t width() const { return width_; }

 private:
  Form form_;
  Tensor *src_ = nullptr, *dst_ = nullptr;
  StridedLoop<3> loop_;  // over x, y, and the message
  int64_t width_ = 1, x_width_ = 1, y_width_ = 1;
  int64_t nodes_ = 0, rows_ = 0, y_rows_ = 0;
};

template <typename T>
T Message(const Form& form, const T* x, const T* y) {
  if (form.y == nullptr) return *x;
  return form.multiplies ? static_cast<T>(*x * *y) : static_cast<T>(*x + *y);
}

absl::StatusOr<Step> BindSend(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const Form form, FormOf(context->op()));
  Tensor* x = context->Input(form.x);
  Tensor* y = form.y != nullptr ? context->Input(form.y) : nullptr;
  Tensor* out = context->Output(form.out);
  Tensor* count = context->Output("Dst_count");
  if (Tensor* size = context->Input("Out_size")) context->NoBuffer(size);
  PD_ASSIGN_OR_RETURN(const Graph graph,
                      Graph::Of(*context, form, *x, y, *out));
  Tensor* seen =
      context->Scratch(static_cast<size_t>(out->dim(0)) * sizeof(int32_t));
  return DispatchTypes<float, double, int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          PD_RETURN_IF_ERROR(graph.Check());
          const T* px = x->data<T>();
          const T* py = y != nullptr ? y->data<T>() : nullptr;
          T* to = out->data<T>();
          const int64_t rows = out->dim(0);
          int32_t* arrived = seen->data<int32_t>();
          std::fill_n(arrived, rows, 0);
          std::fill_n(to, out->size(), T(0));
          const int64_t width = graph.width();
          int64_t part = 0;
          graph.ForMessages([&](int64_t row, int64_t at, int64_t i, int64_t j) {
            if (part++ % width == 0) ++arrived[row];
            const T m = Message(form, px + i, py + j);
            const bool first = arrived[row] == 1;
            if (form.pool == GraphSendPool::kMax)
              to[at] = first ? m : std::max(to[at], m);
            else if (form.pool == GraphSendPool::kMin)
              to[at] = first ? m : std::min(to[at], m);
            else
              to[at] += m;
          });
          for (int64_t i = 0;
               form.pool == GraphSendPool::kMean && i < out->size(); ++i)
            if (arrived[i / width] > 1)
              to[i] /= static_cast<T>(arrived[i / width]);
          if (count != nullptr)
            std::copy_n(arrived, rows, count->data<int32_t>());
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> BindSendGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const Form form, FormOf(context->op()));
  Tensor* x = context->Input(form.x);
  Tensor* y = form.y != nullptr ? context->Input(form.y) : nullptr;
  Tensor* out = context->Input(form.out);
  Tensor* dout = context->Input(GradName(form.out));
  Tensor* dx = context->Output(GradName(form.x));
  Tensor* dy = form.y != nullptr ? context->Output(GradName(form.y)) : nullptr;
  const bool extremum =
      form.pool == GraphSendPool::kMax || form.pool == GraphSendPool::kMin;
  if (x == nullptr || (form.y != nullptr && y == nullptr) ||
      (extremum && (out == nullptr || out->shape() != dout->shape() ||
                    out->dtype() != dout->dtype())))
    return InvalidArgument("an operand or Out is missing or does not fit");
  PD_ASSIGN_OR_RETURN(const Graph graph,
                      Graph::Of(*context, form, *x, y, *dout));
  Tensor* seen =
      context->Scratch(static_cast<size_t>(dout->dim(0)) * sizeof(int32_t));
  return DispatchTypes<float, double, int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          PD_RETURN_IF_ERROR(graph.Check());
          const T* px = x->data<T>();
          const T* py = y != nullptr ? y->data<T>() : nullptr;
          T* gx = dx != nullptr ? dx->data<T>() : nullptr;
          T* gy = dy != nullptr ? dy->data<T>() : nullptr;
          if (gx != nullptr) std::fill_n(gx, dx->size(), T(0));
          if (gy != nullptr) std::fill_n(gy, dy->size(), T(0));
          int32_t* arrived = seen->data<int32_t>();
          std::fill_n(arrived, dout->dim(0), 0);
          if (form.pool == GraphSendPool::kMean)
            graph.ForEdges([&](int64_t row) { ++arrived[row]; });
          graph.ForMessages([&](int64_t row, int64_t at, int64_t i, int64_t j) {
            T g = dout->data<T>()[at];
            if (form.pool == GraphSendPool::kMean)
              g /= static_cast<T>(arrived[row]);
            if (extremum && Message(form, px + i, py + j) != out->data<T>()[at])
              g = T(0);
            if (gx != nullptr) gx[i] += form.multiplies && py ? g * py[j] : g;
            if (gy != nullptr) gy[j] += form.multiplies ? g * px[i] : g;
          });
          return absl::OkStatus();
        });
      });
}

absl::Status AddGraphSendOp(OpRegistry* registry, const std::string& type) {
  const Form form = SlotsOf(type);
  const bool pools = form.Pools();
  OpDef op(type), grad(type + "_grad");
  GradSpec spec{type + "_grad", {form.x}, {}, {form.out}, {form.x}};
  for (OpDef* def : {&op, &grad}) {
    def->Input(form.x).Input(form.src).Input(form.dst);
    if (form.y != nullptr) {
      def->Input(form.y).Attr("message_op", std::string("ADD"));
    }
    if (pools)
      def->OptionalInput("Out_size").Attr("reduce_op", std::string("SUM"));
  }
  if (form.y != nullptr) {
    spec.inputs.push_back(form.y);
    spec.in_grads.push_back(form.y);
    grad.OptionalOutput(GradName(form.y));
  }
  spec.inputs.push_back(form.src);
  spec.inputs.push_back(form.dst);
  op.Output(form.out);
  grad.OptionalInput(form.out).Input(GradName(form.out));
  grad.OptionalOutput(GradName(form.x));
  if (pools) {
    op.IntermediateOutput("Dst_count");
    grad.OptionalInput("Dst_count");
    spec.outputs = {"Out", "Dst_count"};
  }
  op.Infer(InferSend).Reference(BindSend).Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindSendGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterGraphSend(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddGraphSendOp(registry, "graph_send_recv"));
  PD_RETURN_IF_ERROR(AddGraphSendOp(registry, "graph_send_ue_recv"));
  return AddGraphSendOp(registry, "graph_send_uv");
}

}  // namespace pd
