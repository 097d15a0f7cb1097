// SPDX-License-Identifier: Apache-2.0
// sequence_conv, its gradient and fusion_seqconv_eltadd_relu: the columns of
// libcore/ops/sequence/sequence_window.h are rows that move by a map, the
// products cuBLASLt's.
#include "libcore/ops/sequence/sequence_conv.h"

#include <optional>

#include "libcore/kernels/cuda/bound_product.h"
#include "libcore/kernels/cuda/conv_arguments.h"
#include "libcore/kernels/cuda/row_maps.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

// Where each block of Col comes from: a row of X, a row of PaddingData; -1
// where it is the other's.
struct BlockMaps {
  RowMap x, padding;
  bool pads = false;
};

BlockMaps MapsOf(const SequenceWindow& window) {
  BlockMaps maps;
  ForEachBlock(window, [&](int64_t, int64_t row, int64_t pad) {
    maps.x.push_back(row);
    maps.padding.push_back(pad);
    maps.pads |= row < 0;
  });
  return maps;
}

// Fills Col.
class Columns {
 public:
  static absl::StatusOr<Columns> Make(BindContext* context,
                                      DeviceBinding* binding,
                                      const SequenceConv& c,
                                      const BlockMaps& maps) {
    Columns columns;
    const int64_t width = c.window.width;
    columns.device_ = CudaOf(binding);
    columns.x_ = c.x;
    columns.bytes_ = maps.x.size() * static_cast<size_t>(width) * sizeof(float);
    columns.col_ = context->Output("ColMat");
    if (columns.col_ == nullptr)
      columns.col_ = context->Scratch(columns.bytes_);
    columns.zeros_ = maps.pads && c.padding == nullptr;
    PD_ASSIGN_OR_RETURN(columns.rows_, RowGather::Make(binding, maps.x, width,
                                                       DType::kFloat32));
    if (!maps.pads || c.padding == nullptr) return columns;
    columns.padding_ = c.padding;
    PD_ASSIGN_OR_RETURN(columns.pads_, RowGather::Make(binding, maps.padding,
                                                       width, DType::kFloat32));
    return columns;
  }

  absl::StatusOr<float*> Fill() const {
    if (zeros_) PD_RETURN_IF_ERROR(device_->Clear(col_->raw(), bytes_));
    PD_RETURN_IF_ERROR(rows_->Run(x_->raw(), col_->raw()));
    if (pads_.has_value())
      PD_RETURN_IF_ERROR(pads_->Run(padding_->raw(), col_->raw()));
    return At(col_);
  }
  float* col() const { return At(col_); }

 private:
  CudaDevice* device_ = nullptr;
  Tensor *x_ = nullptr, *padding_ = nullptr, *col_ = nullptr;
  size_t bytes_ = 0;
  bool zeros_ = false;
  std::optional<RowGather> rows_, pads_;
};

absl::StatusOr<SequenceConv> ReadSequenceConvFloat32(BindContext* context) {
  PD_ASSIGN_OR_RETURN(SequenceConv c, ReadSequenceConv(context));
  PD_RETURN_IF_ERROR(OnlyFloat32({c.x}));
  if (c.x->size() == 0 || c.n == 0) return Unimplemented("no elements");
  return c;
}

absl::StatusOr<Step> BindSequenceConv(BindContext* context,
                                      DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const SequenceConv c, ReadSequenceConvFloat32(context));
  Tensor* const out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Columns columns,
                      Columns::Make(context, binding, c, MapsOf(c.window)));
  PD_ASSIGN_OR_RETURN(
      const BoundAt product,
      BoundAt::Make(context, binding,
                    MatrixProduct{c.window.rows(), c.n, c.window.columns()}));
  // fusion_seqconv_eltadd_relu has one.
  Tensor* const bias = context->Input("Bias");
  if (bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", DType::kFloat32, c.n));
  PD_ASSIGN_OR_RETURN(const auto tail,
                      Starter<ConvTailArgs>::Find(binding, "conv_tail"));
  return Step([=](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const float* const col, columns.Fill());
    PD_RETURN_IF_ERROR(product.Run(col, At(c.filter), At(out)));
    if (bias == nullptr) return absl::OkStatus();
    ConvTailArgs args{};
    args.out = out->raw();
    args.bias = bias->raw();
    args.n = out->size();
    args.inner = 1;
    args.channels = c.n;
    args.type = NumberType::kFloat32;
    args.relu = 1;
    return tail.Elements(args.n, args);
  });
}

// Filter@GRAD.
absl::StatusOr<Step> BindFilterGrad(BindContext* context,
                                    DeviceBinding* binding,
                                    const SequenceConv& c,
                                    const Columns& columns) {
  Tensor *dout = context->Input("Out@GRAD"),
         *to = context->Output("Filter@GRAD");
  if (to == nullptr) return Step();
  PD_ASSIGN_OR_RETURN(const BoundAt product,
                      BoundAt::Make(context, binding,
                                    MatrixProduct{c.window.columns(), c.n,
                                                  c.window.rows(), true}));
  return Step([=](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const float* const col, columns.Fill());
    return product.Run(col, At(dout), At(to));
  });
}

// X@GRAD and PaddingData@GRAD, by the gradient of Col.
absl::StatusOr<Step> BindRowGrads(BindContext* context, DeviceBinding* binding,
                                  const SequenceConv& c, const Columns& columns,
                                  const BlockMaps& maps) {
  Tensor *dout = context->Input("Out@GRAD"), *dx = context->Output("X@GRAD"),
         *dpadding = c.padding != nullptr ? context->Output("PaddingData@GRAD")
                                          : nullptr;
  if (dx == nullptr && dpadding == nullptr) return Step();
  PD_ASSIGN_OR_RETURN(
      const BoundAt product,
      BoundAt::Make(context, binding,
                    MatrixProduct{c.window.rows(), c.window.columns(), c.n,
                                  false, true}));
  PD_ASSIGN_OR_RETURN(
      const RowSums rows,
      RowSums::Make(binding, maps.x, c.window.rows(), c.window.width));
  std::optional<RowSums> pads;
  if (dpadding != nullptr) {
    PD_ASSIGN_OR_RETURN(pads, RowSums::Make(binding, maps.padding,
                                            c.padding->dim(0), c.window.width));
  }
  return Step([=](const RunContext&) {
    float* const col = columns.col();
    PD_RETURN_IF_ERROR(product.Run(At(dout), At(c.filter), col));
    if (dx != nullptr) PD_RETURN_IF_ERROR(rows.Run(col, At(dx)));
    return pads.has_value() ? pads->Run(col, At(dpadding)) : absl::OkStatus();
  });
}

absl::StatusOr<Step> BindSequenceConvGrad(BindContext* context,
                                          DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const SequenceConv c, ReadSequenceConvFloat32(context));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", DType::kFloat32,
                                 {c.window.rows(), c.n}));
  const BlockMaps maps = MapsOf(c.window);
  PD_ASSIGN_OR_RETURN(const Columns columns,
                      Columns::Make(context, binding, c, maps));
  PD_ASSIGN_OR_RETURN(Step filter,
                      BindFilterGrad(context, binding, c, columns));
  PD_ASSIGN_OR_RETURN(Step rows,
                      BindRowGrads(context, binding, c, columns, maps));
  std::vector<Step> steps;
  for (Step* step : {&filter, &rows})
    if (*step != nullptr) steps.push_back(std::move(*step));
  return InOrder(std::move(steps));
}

}  // namespace

void AddSequenceConv(KernelTable* kernels) {
  kernels->Add("sequence_conv", {"cublaslt", BindSequenceConv});
  kernels->Add("fusion_seqconv_eltadd_relu", {"cublaslt", BindSequenceConv});
  kernels->Add("sequence_conv_grad", {"cublaslt", BindSequenceConvGrad});
}

}  // namespace pd::cuda
