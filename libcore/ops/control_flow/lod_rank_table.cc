// SPDX-License-Identifier: Apache-2.0
// Sequences in the order of their lengths, as loops over time steps want them.
// A rank table is an int64 tensor [n, 2]: which sequence and how long it is,
// the longest first; its LoD is that of the levels outside the ranked one.
//   lod_rank_table: of level `level` of X; max_sequence_len: its first length
//   lod_tensor_to_array: element t holds step t of every sequence that is
//     longer than t; array_to_lod_tensor: the reverse. Each other's gradients.
//   reorder_lod_tensor_by_rank: the sequences of X (rows where it has no LoD)
//     in the table's order; its gradient puts them back
//   shrink_rnn_memory: the first sequences of X, as many as are longer than I;
//     the others get the gradient zero
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/control_flow/sub_lod.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {
namespace {

struct Ranked {
  int64_t index, length;
};

// The table's lines; each sequence once, lengths that do not rise.
absl::StatusOr<std::vector<Ranked>> ReadTable(const Tensor& table) {
  if (table.dtype() != DType::kInt64 || table.rank() != 2 || table.dim(1) != 2)
    return InvalidArgument("'RankTable' is %s %s; expected int64 [n, 2]",
                           Name(table.dtype()), ToString(table.shape()));
  const int64_t n = table.dim(0);
  std::vector<Ranked> lines;
  std::vector<bool> seen(static_cast<size_t>(n), false);
  for (int64_t i = 0; i < n; ++i) {
    const Ranked line = {table.data<int64_t>()[2 * i],
                         table.data<int64_t>()[2 * i + 1]};
    if (line.index < 0 || line.index >= n || line.length < 0 ||
        seen[static_cast<size_t>(line.index)] ||
        (i > 0 && line.length > lines.back().length))
      return InvalidArgument("line %d of 'RankTable' is (%d, %d)", i,
                             line.index, line.length);
    seen[static_cast<size_t>(line.index)] = true;
    lines.push_back(line);
  }
  return lines;
}

absl::Status InferTable(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const int32_t level = context->Attr<int32_t>("level");
  TensorMeta table;
  table.dtype = DType::kInt64;
  table.shape = {-1, 2};
  if (!x.lod.empty()) {
    PD_RETURN_IF_ERROR(KnownSequences(x, "X", SIZE_MAX).status());
    if (level < 0 || level >= static_cast<int32_t>(x.lod.size()))
      return InvalidArgument("attr 'level' is %d; the LoD of 'X' has %d levels",
                             level, x.lod.size());
    table.shape[0] = static_cast<int64_t>(x.lod[level].size()) - 1;
    table.SetLoD(LoD(x.lod.begin(), x.lod.begin() + level));
  }
  context->SetOutput("Out", std::move(table));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindTable(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  context->NoBuffer(x);
  PD_RETURN_IF_ERROR(SequencesOf(x, "X").status());
  const auto& offsets =
      x->lod()[static_cast<size_t>(context->Attr<int32_t>("level"))];
  std::vector<Ranked> lines;
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    lines.push_back({static_cast<int64_t>(i),
                     static_cast<int64_t>(offsets[i + 1] - offsets[i])});
  std::stable_sort(
      lines.begin(), lines.end(),
      [](const Ranked& a, const Ranked& b) { return a.length > b.length; });
  return Step([out, lines](const RunContext&) {
    for (size_t i = 0; i < lines.size(); ++i) {
      out->data<int64_t>()[2 * i] = lines[i].index;
      out->data<int64_t>()[2 * i + 1] = lines[i].length;
    }
    return absl::OkStatus();
  });
}

absl::Status InferMaxLength(InferContext* context) {
  context->SetOutput("Out", {1}, DType::kInt64);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindMaxLength(BindContext* context) {
  Tensor* table = context->Input("RankTable");
  Tensor* out = context->Output("Out");
  return Step([=](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const auto lines, ReadTable(*table));
    *out->data<int64_t>() = lines.empty() ? 0 : lines[0].length;
    return absl::OkStatus();
  });
}

// Rows of a tensor that are put together in some order, and their LoD.
struct Gathered {
  RowMap rows;
  LoD lod;

  absl::Status Add(const LoD& from, size_t level, int64_t first, int64_t last,
                   int64_t all_rows) {
    PD_ASSIGN_OR_RETURN(const SubLoD sub,
                        SubLoDOf(from, level, first, last, all_rows));
    for (int64_t r = sub.begin; r < sub.end; ++r) rows.push_back(r);
    return AppendSubLoD(sub, &lod);
  }
};

absl::Status InferToArray(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  out.kind = VarKind::kLodTensorArray;
  if (!out.shape.empty()) out.shape[0] = -1;
  out.lod.clear();
  out.lod_level = std::max(0, out.lod_level - 1);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindToArray(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* table = context->Input("RankTable");
  Tensor* out = context->Output("Out");
  return Step([=](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const auto lines, ReadTable(*table));
    PD_RETURN_IF_ERROR(SequencesOf(x, "X").status());
    const size_t level = table->lod().size();
    if (level >= x->lod().size() || x->lod()[level].size() != lines.size() + 1)
      return InvalidArgument(
          "'RankTable' ranks %d sequences of level %d; 'X' has a LoD of %d "
          "levels",
          lines.size(), level, x->lod().size());
    std::vector<Tensor> steps;
    for (int64_t t = 0; !lines.empty() && t < lines[0].length; ++t) {
      Gathered step;
      for (const Ranked& line : lines) {
        if (t >= line.length) break;
        const auto& offsets = x->lod()[level];
        const size_t i = static_cast<size_t>(line.index);
        const int64_t at = static_cast<int64_t>(offsets[i]) + t;
        if (at >= static_cast<int64_t>(offsets[i + 1]))
          return InvalidArgument("sequence %d of 'X' has no step %d",
                                 line.index, t);
        PD_RETURN_IF_ERROR(
            step.Add(x->lod(), level + 1, at, at + 1, x->dim(0)));
      }
      Tensor& element = steps.emplace_back(
          x->dtype(),
          WithRows({DType::kFloat32, x->shape()}, step.rows.size()).shape);
      PD_RETURN_IF_ERROR(element.Allocate());
      element.set_lod(std::move(step.lod));
      GatherRows(step.rows, *x, &element);
    }
    out->elements() = std::move(steps);
    return absl::OkStatus();
  });
}

// Which element and row each row of the sequences comes from.
struct Collected {
  std::vector<std::pair<size_t, int64_t>> rows;
  LoD lod;
};

absl::StatusOr<Collected> Collect(const std::vector<Tensor>& steps,
                                  const Tensor& table) {
  PD_ASSIGN_OR_RETURN(const auto lines, ReadTable(table));
  if (steps.empty()) return InvalidArgument("the array 'X' is empty");
  std::vector<size_t> place(lines.size());  // of each sequence in the table
  for (size_t i = 0; i < lines.size(); ++i)
    place[static_cast<size_t>(lines[i].index)] = i;
  for (const Tensor& step : steps) {
    if (step.dtype() != steps[0].dtype() || step.rank() == 0 ||
        step.rank() != steps[0].rank() ||
        RowWidth(step.shape()) != RowWidth(steps[0].shape()))
      return InvalidArgument("the array 'X' holds %s %s and %s %s",
                             Name(steps[0].dtype()), ToString(steps[0].shape()),
                             Name(step.dtype()), ToString(step.shape()));
    PD_RETURN_IF_ERROR(CheckLoD(step.lod(), step.dim(0), "X"));
  }
  Collected c;
  LoD inner;
  std::vector<uint64_t> level = {0};
  for (size_t i : place) {
    if (lines[i].length > static_cast<int64_t>(steps.size()))
      return InvalidArgument("a sequence has %d steps; 'X' has %d elements",
                             lines[i].length, steps.size());
    level.push_back(level.back() + static_cast<uint64_t>(lines[i].length));
    for (size_t t = 0; t < static_cast<size_t>(lines[i].length); ++t) {
      const int64_t at = static_cast<int64_t>(i);
      PD_ASSIGN_OR_RETURN(const SubLoD sub, SubLoDOf(steps[t].lod(), 0, at,
                                                     at + 1, steps[t].dim(0)));
      for (int64_t r = sub.begin; r < sub.end; ++r) c.rows.emplace_back(t, r);
      PD_RETURN_IF_ERROR(AppendSubLoD(sub, &inner));
    }
  }
  c.lod = table.lod();
  c.lod.push_back(std::move(level));
  c.lod.insert(c.lod.end(), inner.begin(), inner.end());
  return c;
}

absl::Status InferFromArray(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& table = context->Input("RankTable");
  TensorMeta out;
  out.dtype = x.dtype;
  out.shape = x.shape;
  if (!out.shape.empty()) out.shape[0] = -1;
  out.lod_level = x.lod_level + 1;
  if (x.value != nullptr && table.value != nullptr) {
    const auto& steps = x.value->elements();
    PD_ASSIGN_OR_RETURN(Collected c, Collect(steps, *table.value));
    out.dtype = steps[0].dtype();
    out.shape = steps[0].shape();
    out.shape[0] = static_cast<int64_t>(c.rows.size());
    out.SetLoD(std::move(c.lod));
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindFromArray(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* table = context->Input("RankTable");
  Tensor* out = context->Output("Out");
  return Step([=](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Collected c, Collect(x->elements(), *table));
    const size_t width =
        static_cast<size_t>(RowWidth(out->shape())) * SizeOf(out->dtype());
    if (static_cast<int64_t>(c.rows.size()) != out->dim(0))
      return InvalidArgument("'X' holds %d rows; 'Out' has shape %s",
                             c.rows.size(), ToString(out->shape()));
    char* to = out->data<char>();
    for (const auto& [t, row] : c.rows) {
      if (width > 0)
        std::memcpy(
            to,
            x->elements()[t].data<char>() + static_cast<size_t>(row) * width,
            width);
      to += width;
    }
    return absl::OkStatus();
  });
}

// Sequences of level 0 of X, or its rows, in the table's order or back.
absl::StatusOr<Gathered> Reorder(const LoD& lod, int64_t rows,
                                 const Tensor& table, bool back) {
  PD_ASSIGN_OR_RETURN(const auto lines, ReadTable(table));
  const int64_t have =
      lod.empty() ? rows : static_cast<int64_t>(lod[0].size()) - 1;
  if (have != static_cast<int64_t>(lines.size()))
    return InvalidArgument("'X' has %d sequences; 'RankTable' ranks %d", have,
                           lines.size());
  std::vector<int64_t> order(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t index = static_cast<size_t>(lines[i].index);
    order[back ? index : i] = back ? static_cast<int64_t>(i) : lines[i].index;
  }
  Gathered result;
  for (int64_t i : order)
    PD_RETURN_IF_ERROR(result.Add(lod, 0, i, i + 1, rows));
  return result;
}

bool IsReorderGrad(const OpDesc& op) {
  return op.type == "reorder_lod_tensor_by_rank_grad";
}

absl::Status InferReorder(InferContext* context) {
  TensorMeta out = context->Input("X");
  const TensorMeta& table = context->Input("RankTable");
  if (out.shape.empty())
    return InvalidArgument("'X' is a scalar; expected rows");
  PD_RETURN_IF_ERROR(CheckLoD(out.lod, out.shape[0], "X"));
  out.value = nullptr;
  if (table.value != nullptr && out.shape[0] >= 0) {
    PD_ASSIGN_OR_RETURN(Gathered order,
                        Reorder(out.lod, out.shape[0], *table.value,
                                IsReorderGrad(context->op())));
    out.SetLoD(std::move(order.lod));
  } else if (out.lod_level > 0) {
    out.shape[0] = -1;  // its LoD follows from the table
    out.lod.clear();
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindReorder(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* table = context->Input("RankTable");
  Tensor* out = context->Output("Out");
  const bool back = IsReorderGrad(context->op());
  PD_RETURN_IF_ERROR(CheckLoD(x->lod(), x->dim(0), "X"));
  return Step([=](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Gathered order,
                        Reorder(x->lod(), x->dim(0), *table, back));
    GatherRows(order.rows, *x, out);
    return absl::OkStatus();
  });
}

// The first sequences of X: those that run at step I.
absl::StatusOr<Gathered> Running(const LoD& lod, int64_t rows,
                                 const Tensor& table, const Tensor& step) {
  PD_ASSIGN_OR_RETURN(const auto lines, ReadTable(table));
  if (step.size() != 1 ||
      (step.dtype() != DType::kInt64 && step.dtype() != DType::kInt32))
    return InvalidArgument("'I' is %s %s; expected one int64",
                           Name(step.dtype()), ToString(step.shape()));
  const int64_t at = IntsOf(step)[0];
  int64_t count = 0;
  for (const Ranked& line : lines) count += line.length > at ? 1 : 0;
  Gathered result;
  PD_RETURN_IF_ERROR(result.Add(lod, 0, 0, count, rows));
  return result;
}

absl::Status InferShrink(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& table = context->Input("RankTable");
  const TensorMeta& step = context->Input("I");
  if (x.shape.empty()) return InvalidArgument("'X' is a scalar; expected rows");
  PD_RETURN_IF_ERROR(CheckLoD(x.lod, x.shape[0], "X"));
  TensorMeta out = WithRows(x, -1);
  out.lod_level = x.lod_level;
  if (table.value != nullptr && step.value != nullptr && x.shape[0] >= 0) {
    PD_ASSIGN_OR_RETURN(Gathered first,
                        Running(x.lod, x.shape[0], *table.value, *step.value));
    out.shape[0] = static_cast<int64_t>(first.rows.size());
    out.SetLoD(std::move(first.lod));
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindShrink(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  if (out->bytes() > x->bytes())
    return InvalidArgument("'Out' has shape %s; 'X' has %s",
                           ToString(out->shape()), ToString(x->shape()));
  return Step([=](const RunContext&) {
    if (out->bytes() > 0) std::memcpy(out->raw(), x->raw(), out->bytes());
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindShrinkGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(x);
  if (dout->dtype() != dx->dtype() || dout->size() > dx->size())
    return InvalidArgument("'Out@GRAD' is %s %s; 'X' is %s %s",
                           Name(dout->dtype()), ToString(dout->shape()),
                           Name(dx->dtype()), ToString(dx->shape()));
  return Step([=](const RunContext&) {
    if (dx->bytes() == 0) return absl::OkStatus();
    std::memset(dx->raw(), 0, dx->bytes());
    if (dout->bytes() > 0) std::memcpy(dx->raw(), dout->raw(), dout->bytes());
    return absl::OkStatus();
  });
}

// The gradient of an op over X and RankTable as an op over Out@GRAD and it.
GradMaker BackBy(const std::string& type) {
  return
      [type](
          const GradRequest& request) -> absl::StatusOr<std::vector<OpDesc>> {
        if (!request.needs_grad(request.op.In("X")))
          return std::vector<OpDesc>();
        OpDesc grad;
        grad.type = type;
        grad.SetInput("X", {GradName(request.op.Out("Out"))});
        grad.SetInput("RankTable", request.op.Input("RankTable"));
        grad.SetOutput("Out", {GradName(request.op.In("X"))});
        return std::vector<OpDesc>{std::move(grad)};
      };
}

absl::Status AddByTable(OpRegistry* registry, const std::string& type,
                        InferFn infer, BindFn bind, const char* gradient) {
  OpDef op(type);
  op.Input("X").Input("RankTable").Output("Out");
  op.Infer(infer).Reference(bind);
  if (infer == InferFromArray) op.With(Trait::kReadsArrays);
  if (gradient != nullptr)
    op.Grad(BackBy(gradient));
  else
    op.NoGrad();
  return registry->Add(std::move(op));
}

}  // namespace

absl::Status RegisterLodRankTable(OpRegistry* registry) {
  OpDef table("lod_rank_table");
  table.Input("X").Output("Out").Attr("level", int32_t{0});
  table.Infer(InferTable).NoGrad().Reference(BindTable);
  PD_RETURN_IF_ERROR(registry->Add(std::move(table)));

  OpDef longest("max_sequence_len");
  longest.Input("RankTable").Output("Out");
  longest.Infer(InferMaxLength).NoGrad().Reference(BindMaxLength);
  PD_RETURN_IF_ERROR(registry->Add(std::move(longest)));

  PD_RETURN_IF_ERROR(AddByTable(registry, "lod_tensor_to_array", InferToArray,
                                BindToArray, "array_to_lod_tensor"));
  PD_RETURN_IF_ERROR(AddByTable(registry, "array_to_lod_tensor", InferFromArray,
                                BindFromArray, "lod_tensor_to_array"));
  PD_RETURN_IF_ERROR(AddByTable(registry, "reorder_lod_tensor_by_rank",
                                InferReorder, BindReorder,
                                "reorder_lod_tensor_by_rank_grad"));
  PD_RETURN_IF_ERROR(AddByTable(registry, "reorder_lod_tensor_by_rank_grad",
                                InferReorder, BindReorder, nullptr));

  OpDef shrink("shrink_rnn_memory");
  shrink.Input("X").Input("RankTable").Input("I").Output("Out");
  shrink.Infer(InferShrink).Reference(BindShrink);
  shrink.Grad(GradSpec{"shrink_rnn_memory_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(shrink)));

  OpDef grad("shrink_rnn_memory_grad");
  grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindShrinkGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
