// SPDX-License-Identifier: Apache-2.0
// X with elements put before and after:
//   pad: `paddings` [before, after] of every axis, filled with pad_value
//   pad2d, pad3d: of the spatial axes of NCHW, NHWC, NCDHW, NDHWC; pad2d lists
//     the outermost axis first, pad3d the innermost. `mode` is what is put in:
//       constant   a value; negative paddings cut off
//       reflect    the mirrored elements, without the one at the border
//       edge, replicate  the one at the border
//       circular   those of the other end
//     The paddings may come from Paddings.
// X@GRAD: Out@GRAD summed over the places that an element went to. The second
// gradient pads again, with zeros where the mode is constant.
#include "libcore/ops/manipulation/pad.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/linear_grad.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

enum class Mode { kConstant, kReflect, kEdge, kCircular };

bool Is(const OpDesc& op, const char* type) {
  return op.type == type || op.type == std::string(type) + "_grad" ||
         op.type == std::string(type) + "_double_grad";
}

absl::StatusOr<Mode> ModeOf(const OpDesc& op) {
  if (Is(op, "pad")) return Mode::kConstant;  // it has no such attribute
  const auto& mode = op.Attr<std::string>("mode");
  if (mode == "constant") return Mode::kConstant;
  if (mode == "reflect") return Mode::kReflect;
  if (mode == "edge" || mode == "replicate") return Mode::kEdge;
  if (mode == "circular") return Mode::kCircular;
  return InvalidArgument(
      "attr 'mode' is '%s'; expected constant, reflect, replicate, edge or "
      "circular",
      mode);
}

bool IsDoubleGrad(const OpDesc& op) { return op.type == "pad3d_double_grad"; }
const char* InputSlot(const OpDesc& op) {
  return IsDoubleGrad(op) ? "grad_x@GRAD" : "X";
}
const char* OutputSlot(const OpDesc& op) {
  return IsDoubleGrad(op) ? "grad_out@GRAD" : "Out";
}

// Not of pad, which has no such attribute.
bool ChannelsLast(const OpDesc& op) {
  return absl::EndsWith(op.Attr<std::string>("data_format"), "C");
}

// Elements before and after each axis.
struct Paddings {
  std::vector<int64_t> before, after;
};

absl::StatusOr<Paddings> PaddingsOf(const OpDesc& op, size_t rank,
                                    const std::vector<int64_t>& given) {
  for (int64_t n : given)
    if (n < INT32_MIN || n > INT32_MAX) return OutOfRange("a padding is %d", n);
  Paddings p;
  p.before.assign(rank, 0);
  p.after.assign(rank, 0);
  const bool all = Is(op, "pad");
  const size_t spatial = all ? rank : Is(op, "pad2d") ? 2 : 3;
  if (given.size() != 2 * spatial || (!all && rank != spatial + 2))
    return InvalidArgument("there are %d paddings for a tensor of rank %d",
                           given.size(), rank);
  const size_t first = all ? 0 : ChannelsLast(op) ? 1 : 2;
  for (size_t i = 0; i < spatial; ++i) {
    const size_t axis = first + (Is(op, "pad3d") ? spatial - 1 - i : i);
    p.before[axis] = given[2 * i];
    p.after[axis] = given[2 * i + 1];
  }
  return p;
}

absl::Status CheckExtent(Mode mode, int64_t extent, int64_t before,
                         int64_t after) {
  const int64_t most = std::max(before, after);
  const int64_t least = std::min(before, after);
  const bool fits =
      mode == Mode::kConstant   ? extent + before + after >= 0
      : mode == Mode::kReflect  ? least >= 0 && (most == 0 || most < extent)
      : mode == Mode::kCircular ? least >= 0 && (most == 0 || extent > 0)
                                : least >= 0 && (most == 0 || extent > 0);
  if (fits) return absl::OkStatus();
  return InvalidArgument("an extent of %d is padded by %d and %d", extent,
                         before, after);
}

absl::Status InferPad(InferContext* context) {
  TensorMeta out = context->Input(InputSlot(context->op()));
  out.value = nullptr;
  PD_ASSIGN_OR_RETURN(const Mode mode, ModeOf(context->op()));
  std::vector<int64_t> given = IntsAttr(context->op(), "paddings");
  bool known = true;
  if (context->HasInput("Paddings")) {
    known = context->Input("Paddings").value != nullptr;
    given = known ? IntsOf(*context->Input("Paddings").value)
                  : std::vector<int64_t>(Is(context->op(), "pad2d") ? 4 : 6, 0);
  }
  PD_ASSIGN_OR_RETURN(const Paddings p,
                      PaddingsOf(context->op(), out.shape.size(), given));
  for (size_t i = 0; i < out.shape.size(); ++i) {
    int64_t& extent = out.shape[i];
    if (!known) {
      const size_t first = ChannelsLast(context->op()) ? 1 : 2;
      if (i >= first && i - first < out.shape.size() - 2) extent = -1;
    } else if (extent >= 0) {
      PD_RETURN_IF_ERROR(CheckExtent(mode, extent, p.before[i], p.after[i]));
      extent += p.before[i] + p.after[i];
    }
  }
  context->SetOutput(OutputSlot(context->op()), std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<PadSources> SourcesOf(const OpDesc& op, const Shape& x,
                                     const Shape& out, const Paddings& p) {
  PD_ASSIGN_OR_RETURN(const Mode mode, ModeOf(op));
  PadSources sources(x.size());
  for (size_t d = 0; d < x.size(); ++d) {
    const int64_t n = x[d];
    PD_RETURN_IF_ERROR(CheckExtent(mode, n, p.before[d], p.after[d]));
    if (n + p.before[d] + p.after[d] != out[d])
      return InvalidArgument(
          "X has shape %s, Out %s; axis %d is padded by %d "
          "and %d",
          ToString(x), ToString(out), d, p.before[d], p.after[d]);
    for (int64_t i = 0; i < out[d]; ++i) {
      int64_t from = i - p.before[d];
      if (from < 0 || from >= n) {
        if (mode == Mode::kConstant)
          from = -1;
        else if (mode == Mode::kEdge)
          from = from < 0 ? 0 : n - 1;
        else if (mode == Mode::kReflect)
          from = from < 0 ? -from : 2 * (n - 1) - from;
        else
          from = ((from % n) + n) % n;
      }
      sources[d].push_back(from);
    }
  }
  return sources;
}

}  // namespace

absl::StatusOr<PadSources> ReadPadSources(const OpDesc& op, const Shape& x,
                                          const Shape& out) {
  PD_ASSIGN_OR_RETURN(const Paddings p,
                      PaddingsOf(op, x.size(), IntsAttr(op, "paddings")));
  return SourcesOf(op, x, out, p);
}

namespace {

// Calls body(element of Out, element of X or -1) for every element of Out.
template <typename Body>
void ForSources(const PadSources& sources, const Shape& x, const Body& body) {
  const auto strides = RowMajorStrides(x);
  int64_t size = 1;
  for (const auto& line : sources) size *= static_cast<int64_t>(line.size());
  std::vector<size_t> index(x.size(), 0);
  for (int64_t i = 0; i < size; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size() && at >= 0; ++d) {
      const int64_t from = sources[d][index[d]];
      at = from < 0 ? -1 : at + from * strides[d];
    }
    body(i, at);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < sources[d].size()) break;
      index[d] = 0;
    }
  }
}

// Calls body(first element of Out, first element of X or -1, n) for runs of n
// elements of Out that are as many neighbours of X, or one by one, or all the
// value.
template <typename Body>
void ForRuns(const PadSources& sources, const Shape& x, const Body& body) {
  if (x.empty()) return body(0, 0, 1);
  struct Run {
    int64_t to, from, n;
  };
  const std::vector<int64_t>& line = sources.back();
  std::vector<Run> runs;
  for (int64_t i = 0; i < static_cast<int64_t>(line.size()); ++i) {
    const int64_t from = line[static_cast<size_t>(i)];
    if (!runs.empty() &&
        (from < 0 ? runs.back().from < 0
                  : runs.back().from >= 0 &&
                        runs.back().from + runs.back().n == from))
      ++runs.back().n;
    else
      runs.push_back({i, from, 1});
  }
  const PadSources outer(sources.begin(), sources.end() - 1);
  const Shape rows(x.begin(), x.end() - 1);
  const int64_t width = static_cast<int64_t>(line.size());
  ForSources(outer, rows, [&](int64_t i, int64_t at) {
    if (at < 0) return body(i * width, -1, width);
    for (const Run& run : runs)
      body(i * width + run.to, run.from < 0 ? -1 : at * x.back() + run.from,
           run.n);
  });
}

// The paddings: the attribute's, or read from a tensor in every step.
class Reader {
 public:
  explicit Reader(BindContext* context)
      : op_(context->op()), tensor_(context->Input("Paddings")) {}
  absl::StatusOr<PadSources> Read(const Shape& x, const Shape& out) const {
    if (tensor_ == nullptr) return ReadPadSources(op_, x, out);
    PD_ASSIGN_OR_RETURN(const Paddings p,
                        PaddingsOf(op_, x.size(), IntsOf(*tensor_)));
    return SourcesOf(op_, x, out, p);
  }
  bool fixed() const { return tensor_ == nullptr; }

 private:
  OpDesc op_;
  Tensor* tensor_;
};

// The step `work(sources)`; the sources are made once when they are known.
template <typename Work>
absl::StatusOr<Step> SourcesStep(BindContext* context, const Tensor* x,
                                 const Tensor* out, const Work& work) {
  const Reader reader(context);
  if (reader.fixed()) {
    PD_ASSIGN_OR_RETURN(PadSources sources,
                        reader.Read(x->shape(), out->shape()));
    return Step([work, sources = std::move(sources)](const RunContext&) {
      work(sources);
      return absl::OkStatus();
    });
  }
  return Step([work, reader, x, out](const RunContext&) {
    PD_ASSIGN_OR_RETURN(const PadSources sources,
                        reader.Read(x->shape(), out->shape()));
    work(sources);
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindPad(BindContext* context) {
  Tensor* x = context->Input(InputSlot(context->op()));
  Tensor* out = context->Output(OutputSlot(context->op()));
  // The gradient of what is filled in is nobody's.
  const float value =
      IsDoubleGrad(context->op())
          ? 0.0f
          : context->Attr<float>(Is(context->op(), "pad3d") ? "value"
                                                            : "pad_value");
  return DispatchArithmetic(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return SourcesStep(context, x, out, [=](const PadSources& sources) {
      const T* from = x->data<T>();
      T* to = out->data<T>();
      const T fill = static_cast<T>(value);
      ForRuns(sources, x->shape(), [&](int64_t i, int64_t at, int64_t n) {
        if (at < 0)
          std::fill_n(to + i, n, fill);
        else
          std::copy_n(from + at, n, to + i);
      });
    });
  });
}

absl::StatusOr<Step> BindPadGrad(BindContext* context) {
  if (Tensor* x = context->Input("X")) context->NoBuffer(x);
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (dx->rank() != dout->rank() || dx->dtype() != dout->dtype())
    return InvalidArgument("Out@GRAD is %s %s; X is %s %s", Name(dout->dtype()),
                           ToString(dout->shape()), Name(dx->dtype()),
                           ToString(dx->shape()));
  return DispatchArithmetic(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return SourcesStep(context, dx, dout, [=](const PadSources& sources) {
      std::memset(dx->raw(), 0, dx->bytes());
      const T* from = dout->data<T>();
      T* to = dx->data<T>();
      ForRuns(sources, dx->shape(), [&](int64_t i, int64_t at, int64_t n) {
        if (at < 0) return;
        for (int64_t k = 0; k < n; ++k) to[at + k] += from[i + k];
      });
    });
  });
}

absl::Status InferPadGrad(InferContext* context) {
  if (context->HasInput("X")) return InferGradLikeInput(context);
  TensorMeta dx = context->Input("Out@GRAD");
  dx.value = nullptr;
  PD_ASSIGN_OR_RETURN(const Paddings p,
                      PaddingsOf(context->op(), dx.shape.size(),
                                 IntsAttr(context->op(), "paddings")));
  for (size_t i = 0; i < dx.shape.size(); ++i) {
    int64_t& extent = dx.shape[i];
    if (extent < 0) continue;
    extent -= p.before[i] + p.after[i];
    if (extent < 0)
      return InvalidArgument(
          "Out@GRAD has shape %s; it is padded by %d and %d "
          "along axis %d",
          ToString(context->Input("Out@GRAD").shape), p.before[i], p.after[i],
          i);
  }
  context->SetOutput("X@GRAD", std::move(dx));
  return absl::OkStatus();
}

// The gradient of a gradient op: X@GRAD@GRAD, padded with zeros where the mode
// is constant.
absl::StatusOr<std::vector<OpDesc>> PadAgain(const GradRequest& request) {
  const std::string type =
      request.op.type.substr(0, request.op.type.rfind("_grad"));
  PD_ASSIGN_OR_RETURN(auto ops,
                      ForwardAgain(type, "X", "Out", {"Paddings"})(request));
  for (OpDesc& op : ops)
    op.attrs[type == "pad3d" ? "value" : "pad_value"] = 0.0f;
  return ops;
}

// PaddlePaddle's own op for the same of pad3d.
absl::Status AddPad3dDoubleGrad(OpRegistry* registry) {
  OpDef op("pad3d_double_grad");
  op.Input("grad_x@GRAD").OptionalInput("Paddings").Output("grad_out@GRAD");
  op.Attr("paddings", std::vector<int32_t>()).Attr("value", 0.0f);
  op.Attr("mode", std::string("constant"));
  op.Attr("data_format", std::string("NCDHW"));
  op.Infer(InferPad).Reference(BindPad).NoGrad();
  return registry->Add(std::move(op));
}

absl::Status AddPadOp(OpRegistry* registry, const std::string& type) {
  const auto add_arguments = [&](OpDef* op) {
    op->Attr("paddings", std::vector<int32_t>());
    op->Attr(type == "pad3d" ? "value" : "pad_value", 0.0f);
    if (type == "pad") return;
    op->OptionalInput("Paddings");
    op->Attr("mode", std::string("constant"));
    op->Attr("data_format", std::string(type == "pad3d" ? "NCDHW" : "NCHW"));
  };
  OpDef op(type);
  op.Input("X").Output("Out").Infer(InferPad).Reference(BindPad);
  add_arguments(&op);
  GradSpec spec{type + "_grad", {}, {}, {"Out"}, {"X"}};
  if (type != "pad") spec.inputs = {"X", "Paddings"};
  op.Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  type == "pad" ? grad.OptionalInput("X") : grad.Input("X");
  grad.Input("Out@GRAD").Output("X@GRAD");
  add_arguments(&grad);
  grad.Infer(InferPadGrad).Grad(GradMaker(PadAgain)).Reference(BindPadGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterPad(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddPadOp(registry, "pad"));
  PD_RETURN_IF_ERROR(AddPadOp(registry, "pad2d"));
  PD_RETURN_IF_ERROR(AddPad3dDoubleGrad(registry));
  return AddPadOp(registry, "pad3d");
}

}  // namespace pd
