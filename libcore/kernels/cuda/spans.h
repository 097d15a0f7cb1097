// SPDX-License-Identifier: Apache-2.0
// SequenceSpans for kernels.
#ifndef PD_LIBCORE_KERNELS_CUDA_SPANS_H_
#define PD_LIBCORE_KERNELS_CUDA_SPANS_H_

#include "absl/strings/str_format.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/device_tables.h"
#include "libcore/kernels/cuda/spans_arguments.h"
#include "libcore/ops/sequence/sequence_spans.h"

namespace pd::cuda {

/// All but the lengths' place, which LengthsOf gives when a step runs. `slot`
/// is theirs.
inline absl::StatusOr<SpanArgs> KeepSpans(const BindContext& context,
                                          DeviceBinding* binding,
                                          const SequenceSpans& spans,
                                          const char* slot) {
  SpanArgs args{};
  args.count = spans.count();
  args.width = spans.width();
  if (spans.lengths() == nullptr) {
    PD_ASSIGN_OR_RETURN(args.offsets, KeepTable(binding, spans.offsets()));
    return args;
  }
  PD_ASSIGN_OR_RETURN(args.wide, IsWide(*spans.lengths()));
  PD_ASSIGN_OR_RETURN(args.bad, binding->ErrorFlag(absl::StrFormat(
                                    "'%s' of %s holds a number outside [0, %d]",
                                    slot, context.op().type, args.width)));
  return args;
}
inline const void* LengthsOf(const SequenceSpans& spans) {
  return spans.lengths() == nullptr ? nullptr : spans.lengths()->raw();
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_SPANS_H_
