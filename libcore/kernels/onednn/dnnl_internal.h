// SPDX-License-Identifier: Apache-2.0
// Shared declarations of the files that call oneDNN; only they include oneDNN.
#ifndef PD_LIBCORE_KERNELS_ONEDNN_DNNL_INTERNAL_H_
#define PD_LIBCORE_KERNELS_ONEDNN_DNNL_INTERNAL_H_

#include <oneapi/dnnl/dnnl.h>

#include <memory>
#include <string>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/onednn/dnnl.h"

namespace pd {
namespace onednn {

absl::Status ToStatus(dnnl_status_t status, const char* call);

#define PD_DNNL(function, ...) \
  PD_RETURN_IF_ERROR(ToStatus(function(__VA_ARGS__), #function))

absl::StatusOr<dnnl_memory_desc_t> ToDnnl(const ArgSpec& spec);

struct DeletePd {
  void operator()(dnnl_primitive_desc* p) const {
    dnnl_primitive_desc_destroy(p);
  }
};
using PdPtr = std::unique_ptr<dnnl_primitive_desc, DeletePd>;

/// Operations that follow a primitive, in this order.
struct PostOps {
  bool sum = false;  ///< the earlier value of dst is added
  Relu relu;
};

/// A primitive descriptor with our scratchpad. `desc` is a dnnl_*_desc_t.
absl::StatusOr<PdPtr> MakePd(const void* desc, const PostOps& post,
                             const dnnl_primitive_desc* hint);
/// "brgemm:avx512_core"; empty where oneDNN does not say.
std::string ImplementationOf(const dnnl_primitive_desc& pd);
absl::StatusOr<PrimitivePtr> Finish(PdPtr pd);

}  // namespace onednn
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_ONEDNN_DNNL_INTERNAL_H_
