// SPDX-License-Identifier: Apache-2.0
// oneDNN's products of matrices.
#include <utility>
#include <vector>

#include "libcore/base/headroom.h"
#include "libcore/kernels/onednn/dnnl_internal.h"
#include "libcore/kernels/sgemm.h"

namespace pd {
namespace onednn {

absl::StatusOr<PrimitivePtr> MatmulForward(const Matmul& m) {
  PD_ASSIGN_OR_RETURN(const dnnl_memory_desc_t src, ToDnnl(m.src));
  PD_ASSIGN_OR_RETURN(const dnnl_memory_desc_t weights, ToDnnl(m.weights));
  PD_ASSIGN_OR_RETURN(const dnnl_memory_desc_t dst, ToDnnl(m.dst));
  dnnl_memory_desc_t bias;
  if (!m.bias.shape.empty()) {
    PD_ASSIGN_OR_RETURN(bias, ToDnnl(m.bias));
  }
  dnnl_matmul_desc_t desc;
  PD_DNNL(dnnl_matmul_desc_init, &desc, &src, &weights,
          m.bias.shape.empty() ? nullptr : &bias, &dst);
  PostOps post;
  post.relu = m.relu;
  PD_ASSIGN_OR_RETURN(PdPtr pd, MakePd(&desc, post, nullptr));
  return Finish(std::move(pd));
}

absl::Status CompileSgemm() {
  if (!HasMemoryLimit()) return absl::OkStatus();
  PD_RETURN_IF_ERROR(
      CheckHeadroom(kKernelHeadroom, "compiling a kernel of oneDNN's"));
  constexpr int64_t kSide = 64;  // none of the ways for small products
  const std::vector<float> a(kSide * kSide), b(kSide * kSide);
  std::vector<float> c(kSide * kSide);
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true})
      for (const float beta : {0.0f, 1.0f})
        Sgemm({kSide, kSide, kSide, trans_a, trans_b}, 1.0f, a.data(), b.data(),
              beta, c.data());
  return absl::OkStatus();
}

void Sgemm(const GemmShape& shape, const float* a, const float* b, float* c) {
  Sgemm(shape, 1.0f, a, b, 0.0f, c);
}

void Sgemm(const GemmShape& shape, float alpha, const float* a, const float* b,
           float beta, float* c) {
  if (shape.m == 0 || shape.n == 0) return;
  PD_INVARIANT(dnnl_sgemm(shape.trans_a ? 'T' : 'N', shape.trans_b ? 'T' : 'N',
                          shape.m, shape.n, shape.k, alpha, a,
                          shape.trans_a ? shape.m : shape.k, b,
                          shape.trans_b ? shape.k : shape.n, beta, c,
                          shape.n) == dnnl_success);
}

}  // namespace onednn

void Sgemm(const GemmShape& shape, const float* a, const float* b, float* c) {
  onednn::Sgemm(shape, a, b, c);
}

}  // namespace pd
