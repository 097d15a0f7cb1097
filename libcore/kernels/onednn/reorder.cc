// SPDX-License-Identifier: Apache-2.0
// Changes of layout through oneDNN, where our transpose does not apply.
#include "libcore/kernels/reorder.h"

#include "libcore/base/status_macros.h"
#include "libcore/kernels/onednn/dnnl.h"

namespace pd {

absl::StatusOr<Step> BindReorder(Tensor* from, Tensor* to) {
  absl::StatusOr<Step> transpose = BindTranspose(from, to);
  if (transpose.status().code() != absl::StatusCode::kUnimplemented)
    return transpose;
  if (from->size() == 0) return Unimplemented("there is nothing to move");
  const auto spec = [](const Tensor& tensor) {
    return onednn::ArgSpec{tensor.dtype(), tensor.shape(), tensor.layout()};
  };
  PD_ASSIGN_OR_RETURN(const onednn::PrimitivePtr reorder,
                      onednn::Reorder(spec(*from), spec(*to)));
  if (reorder->ScratchpadBytes() > 0)
    return Unimplemented("oneDNN's reorder wants a scratchpad");
  reorder->Bind(onednn::Arg::kSrc, from);
  reorder->Bind(onednn::Arg::kDst, to);
  return Step([reorder](const RunContext&) { return reorder->Run(); });
}

}  // namespace pd
