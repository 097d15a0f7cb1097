// SPDX-License-Identifier: Apache-2.0
// data_norm normalises each column of X [n, columns] by sums that were gathered
// over all data so far:
//   Means = BatchSum / BatchSize; Scales = sqrt(BatchSize / BatchSquareSum)
//   Y = (X - Means) * Scales, and with enable_scale_and_shift
//   Y = (X - Means) * Scales * scale_w + bias
// With slot_dim > 0 a row is a list of slots of slot_dim columns; a slot whose
// first element is 0 (nothing was shown) has Y = 0 and counts nowhere.
//   X@GRAD = Y@GRAD * Scales (* scale_w); bias@GRAD = sum(Y@GRAD),
//   scale_w@GRAD = sum(Y@GRAD * (X - Means) * Scales)
// The "gradients" of the sums are what the batch adds to them:
//   BatchSize@GRAD = n, BatchSum@GRAD = sum(X),
//   BatchSquareSum@GRAD = sum((X - Means)^2) + n * epsilon
// and with slots, where n counts the shown rows of a column: 1, sum(X) / n,
// sum((X - Means)^2) / n + n * epsilon; all 0 when n = 0.
// As in PaddlePaddle X@GRAD without scale_w does not look at the slots.
#include <cmath>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr double kNothing = 1e-7;  // a smaller first element is 0

struct Table {
  int64_t rows, columns, slot;  // slot: columns each, 0 without slots
  bool scaled;
  double epsilon;

  template <typename T>
  bool Shown(const T* row, int64_t column) const {
    if (slot == 0) return true;
    const double first = row[column / slot * slot];
    return !(first > -kNothing && first < kNothing);
  }
};

absl::StatusOr<Table> ReadTable(const OpDesc& op, const Shape& x) {
  if (x.size() != 2)
    return InvalidArgument("'X' has shape %s; expected rank 2", ToString(x));
  const int64_t slot = op.Attr<int32_t>("slot_dim");
  if (slot > 0 && x[1] >= 0 && x[1] % slot != 0)
    return InvalidArgument("attr 'slot_dim' is %d; 'X' %s has %d columns", slot,
                           ToString(x), x[1]);
  return Table{x[0], x[1], slot > 0 ? slot : 0,
               op.Attr<bool>("enable_scale_and_shift"),
               op.Attr<float>("epsilon")};
}

absl::Status CheckColumns(const BindContext& context, const Table& table,
                          DType dtype, std::vector<const char*> slots) {
  if (table.scaled) slots.push_back("scale_w");
  for (const char* slot : slots)
    PD_RETURN_IF_ERROR(ExpectElements(context, slot, dtype, table.columns));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindDataNorm(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* size = context->Input("BatchSize");
  Tensor* sum = context->Input("BatchSum");
  Tensor* squares = context->Input("BatchSquareSum");
  Tensor* scale_w = context->Input("scale_w");
  Tensor* bias = context->Input("bias");
  Tensor* y = context->Output("Y");
  Tensor* means = context->Output("Means");
  Tensor* scales = context->Output("Scales");
  PD_ASSIGN_OR_RETURN(const Table table, ReadTable(context->op(), x->shape()));
  PD_RETURN_IF_ERROR(CheckColumns(*context, table, x->dtype(),
                                  {"BatchSize", "BatchSum", "BatchSquareSum"}));
  if (table.scaled)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "bias", x->dtype(), table.columns));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      for (int64_t c = 0; c < table.columns; ++c) {
        const T n = size->data<T>()[c];
        const T mean = sum->data<T>()[c] / n;
        const T scale = std::sqrt(n / squares->data<T>()[c]);
        if (means != nullptr) means->data<T>()[c] = mean;
        if (scales != nullptr) scales->data<T>()[c] = scale;
        for (int64_t r = 0; r < table.rows; ++r) {
          const T* row = x->data<T>() + r * table.columns;
          T out = (row[c] - mean) * scale;
          if (table.scaled)
            out = out * scale_w->data<T>()[c] + bias->data<T>()[c];
          y->data<T>()[r * table.columns + c] =
              table.Shown(row, c) ? out : T(0);
        }
      }
      return absl::OkStatus();
    });
  });
}

struct DataNormGradTensors {
  Tensor *x, *dy, *scale_w, *means, *scales;
  Tensor *dx, *dscale, *dbias, *dsize, *dsum, *dsquares;
};

template <typename T>
void StoreDataNorm(Tensor* tensor, int64_t i, double value) {
  if (tensor != nullptr) tensor->data<T>()[i] = static_cast<T>(value);
}

template <typename T>
void BackwardColumn(const Table& table, const DataNormGradTensors& t,
                    int64_t c) {
  const double mean = t.means->data<T>()[c], scale = t.scales->data<T>()[c];
  const double weight = table.scaled ? double{t.scale_w->data<T>()[c]} : 1;
  double n = 0, sum = 0, squares = 0, dbias = 0, dscale = 0;
  for (int64_t r = 0; r < table.rows; ++r) {
    const T* row = t.x->data<T>() + r * table.columns;
    const bool shown = table.Shown(row, c);
    const double dy = t.dy->data<T>()[r * table.columns + c];
    StoreDataNorm<T>(t.dx, r * table.columns + c,
                     shown || !table.scaled ? dy * scale * weight : 0);
    if (!shown) continue;
    n += 1;
    sum += row[c];
    squares += (row[c] - mean) * (row[c] - mean);
    dbias += dy;
    dscale += dy * (row[c] - mean) * scale;
  }
  StoreDataNorm<T>(t.dbias, c, dbias);
  StoreDataNorm<T>(t.dscale, c, dscale);
  const bool slots = table.slot > 0 && table.rows > 0;
  const double share = slots && n > 0 ? n : 1;
  StoreDataNorm<T>(t.dsize, c, n / share);
  StoreDataNorm<T>(t.dsum, c, sum / share);
  StoreDataNorm<T>(t.dsquares, c, squares / share + n * table.epsilon);
}

absl::StatusOr<Step> BindDataNormGrad(BindContext* context) {
  DataNormGradTensors t;
  t.x = context->Input("X");
  t.dy = context->Input("Y@GRAD");
  t.scale_w = context->Input("scale_w");
  t.means = context->Input("Means");
  t.scales = context->Input("Scales");
  t.dx = context->Output("X@GRAD");
  t.dscale = context->Output("scale_w@GRAD");
  t.dbias = context->Output("bias@GRAD");
  t.dsize = context->Output("BatchSize@GRAD");
  t.dsum = context->Output("BatchSum@GRAD");
  t.dsquares = context->Output("BatchSquareSum@GRAD");
  const DType dtype = t.x->dtype();
  PD_ASSIGN_OR_RETURN(const Table table,
                      ReadTable(context->op(), t.x->shape()));
  PD_RETURN_IF_ERROR(CheckColumns(*context, table, dtype, {"Means", "Scales"}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y@GRAD", dtype, t.x->shape()));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      for (int64_t c = 0; c < table.columns; ++c)
        BackwardColumn<T>(table, t, c);
      return absl::OkStatus();
    });
  });
}

absl::Status InferDataNorm(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Table table, ReadTable(context->op(), x.shape));
  if (table.scaled &&
      !(context->HasInput("scale_w") && context->HasInput("bias")))
    return InvalidArgument("'scale_w' or 'bias' is missing");
  context->Share("X", "Y");
  context->SetOutput("Means", {table.columns}, x.dtype);
  context->SetOutput("Scales", {table.columns}, x.dtype);
  return absl::OkStatus();
}

absl::Status InferDataNormGrad(InferContext* context) {
  PD_RETURN_IF_ERROR(InferGradLikeInput(context));
  for (const char* slot : {"BatchSize", "BatchSum", "BatchSquareSum"}) {
    context->Share("Means", GradName(slot));
    // PaddlePaddle lists the sums themselves as outputs; they stay as they are.
    context->Share("Means", slot);
  }
  return absl::OkStatus();
}

// The gradient op wants all three sums' gradients or none.
absl::StatusOr<std::vector<OpDesc>> MakeGrad(const GradRequest& request) {
  const OpDesc& op = request.op;
  OpDesc grad;
  grad.type = "data_norm_grad";
  grad.attrs = op.attrs;
  for (const char* slot : {"X", "scale_w", "bias"})
    if (!op.Input(slot).empty()) grad.SetInput(slot, op.Input(slot));
  for (const char* slot : {"Means", "Scales"})
    grad.SetInput(slot, op.Output(slot));
  grad.SetInput("Y@GRAD", {GradName(op.Output("Y")[0])});
  for (const char* slot :
       {"BatchSize", "BatchSum", "BatchSquareSum", "X", "scale_w", "bias"})
    if (!op.Input(slot).empty())
      grad.SetOutput(GradName(slot), {request.needs_grad(op.Input(slot)[0])
                                          ? GradName(op.Input(slot)[0])
                                          : std::string(kEmptyVar)});
  return std::vector<OpDesc>{std::move(grad)};
}

void AddDataNormAttrs(OpDef* def) {
  def->Attr("epsilon", 1e-4f)
      .Attr("slot_dim", int32_t{-1})
      .Attr("enable_scale_and_shift", false);
}

}  // namespace

absl::Status RegisterDataNorm(OpRegistry* registry) {
  OpDef norm("data_norm");
  norm.OptionalInput("scale_w").OptionalInput("bias").Input("X");
  norm.Input("BatchSize").Input("BatchSum").Input("BatchSquareSum");
  norm.Output("Y").IntermediateOutput("Means").IntermediateOutput("Scales");
  AddDataNormAttrs(&norm);
  norm.Infer(InferDataNorm).Reference(BindDataNorm);
  norm.Grad(GradMaker(MakeGrad));
  PD_RETURN_IF_ERROR(registry->Add(std::move(norm)));

  OpDef grad("data_norm_grad");
  grad.Input("X").OptionalInput("scale_w").OptionalInput("bias");
  grad.Input("Means").Input("Scales").Input("Y@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("scale_w@GRAD");
  grad.OptionalOutput("bias@GRAD");
  for (const char* slot : {"BatchSize", "BatchSum", "BatchSquareSum"}) {
    grad.OptionalInput(slot);
    grad.OptionalOutput(slot).OptionalOutput(GradName(slot));
  }
  AddDataNormAttrs(&grad);
  grad.Infer(InferDataNormGrad).NoGrad().Reference(BindDataNormGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
