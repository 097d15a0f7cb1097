// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/onednn/dnnl.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "libcore/base/headroom.h"
#include "libcore/kernels/onednn/dnnl_internal.h"

namespace pd {
namespace onednn {

absl::Status ToStatus(dnnl_status_t status, const char* call) {
  if (status == dnnl_success) return absl::OkStatus();
  // It calls arguments invalid that are outside what it knows: a window beyond
  // the image.
  if (status == dnnl_unimplemented || status == dnnl_invalid_arguments)
    return Unimplemented("oneDNN's %s has no implementation for this", call);
  if (status == dnnl_out_of_memory)
    return ResourceExhausted("oneDNN's %s ran out of memory", call);
  return Internal("oneDNN's %s failed with status %d", call,
                  static_cast<int>(status));
}

absl::Status TakesType(DType dtype) {
  if (dtype == DType::kFloat32) return absl::OkStatus();
  if (dtype != DType::kBFloat16)
    return Unimplemented("it is for float32 and bfloat16");
  const int isa = static_cast<int>(dnnl_get_effective_cpu_isa());
  constexpr int kBrain = dnnl_cpu_isa_avx512_core_bf16;
  return (isa & kBrain) == kBrain
             ? absl::OkStatus()
             : Unimplemented("this CPU has no avx512_bf16");
}

namespace {

// One engine and one stream for the process; never destroyed, because plans may
// outlive every static object.
struct Runtime {
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;
};

absl::StatusOr<Runtime> GetRuntime() {
  static const absl::StatusOr<Runtime>* const kRuntime = [] {
    const auto make = []() -> absl::StatusOr<Runtime> {
      Runtime r;
      PD_DNNL(dnnl_engine_create, &r.engine, dnnl_cpu, 0);
      PD_DNNL(dnnl_stream_create, &r.stream, r.engine,
              dnnl_stream_default_flags);
      return r;
    };
    return new absl::StatusOr<Runtime>(make());
  }();
  return *kRuntime;
}

int ToDnnl(Arg arg) {
  switch (arg) {
    case Arg::kSrc:
      return DNNL_ARG_SRC;
    case Arg::kWeights:
      return DNNL_ARG_WEIGHTS;
    case Arg::kBias:
      return DNNL_ARG_BIAS;
    case Arg::kDst:
      return DNNL_ARG_DST;
    case Arg::kDiffSrc:
      return DNNL_ARG_DIFF_SRC;
    case Arg::kDiffWeights:
      return DNNL_ARG_DIFF_WEIGHTS;
    case Arg::kDiffBias:
      return DNNL_ARG_DIFF_BIAS;
    case Arg::kDiffDst:
      return DNNL_ARG_DIFF_DST;
    case Arg::kWorkspace:
      return DNNL_ARG_WORKSPACE;
    case Arg::kScratchpad:
      return DNNL_ARG_SCRATCHPAD;
  }
  return 0;
}

absl::StatusOr<dnnl_data_type_t> ToDnnl(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return dnnl_f32;
    case DType::kBFloat16:
      return dnnl_bf16;
    case DType::kFloat16:
      return dnnl_f16;
    case DType::kInt32:
      return dnnl_s32;
    case DType::kInt8:
      return dnnl_s8;
    case DType::kUInt8:
      return dnnl_u8;
    default:
      return Unimplemented("oneDNN has no dtype %s", Name(dtype));
  }
}

}  // namespace

absl::StatusOr<dnnl_memory_desc_t> ToDnnl(const ArgSpec& spec) {
  dnnl_memory_desc_t md{};
  const int rank = static_cast<int>(spec.shape.size());
  if (rank == 0 || rank > DNNL_MAX_NDIMS)
    return Unimplemented("oneDNN has no tensors of rank %d", rank);
  PD_ASSIGN_OR_RETURN(const dnnl_data_type_t dtype, ToDnnl(spec.dtype));
  dnnl_dims_t dims;
  std::copy(spec.shape.begin(), spec.shape.end(), dims);
  if (spec.any) {
    PD_DNNL(dnnl_memory_desc_init_by_tag, &md, rank, dims, dtype,
            dnnl_format_tag_any);
    return md;
  }
  // Row-major first: oneDNN checks strides as if there were no blocks.
  PD_DNNL(dnnl_memory_desc_init_by_strides, &md, rank, dims, dtype, nullptr);
  if (spec.layout == nullptr) return md;
  if (spec.layout->blocks.size() > DNNL_MAX_NDIMS)
    return Unimplemented("oneDNN has no layouts of %d blocks",
                         spec.layout->blocks.size());
  std::copy(spec.layout->padded.begin(), spec.layout->padded.end(),
            md.padded_dims);
  dnnl_blocking_desc_t& blocking = md.format_desc.blocking;
  std::copy(spec.layout->strides.begin(), spec.layout->strides.end(),
            blocking.strides);
  for (const Layout::Block& block : spec.layout->blocks) {
    blocking.inner_blks[blocking.inner_nblks] = block.size;
    blocking.inner_idxs[blocking.inner_nblks] = block.dim;
    ++blocking.inner_nblks;
  }
  return md;
}

namespace {

absl::StatusOr<LayoutPtr> FromDnnl(const dnnl_memory_desc_t& md) {
  if (md.format_kind != dnnl_blocked || md.extra.flags != 0 || md.offset0 != 0)
    return Unimplemented("oneDNN wants a layout that is not made of blocks");
  const dnnl_blocking_desc_t& blocking = md.format_desc.blocking;
  Layout layout;
  layout.shape.assign(md.dims, md.dims + md.ndims);
  layout.padded.assign(md.padded_dims, md.padded_dims + md.ndims);
  layout.strides.assign(blocking.strides, blocking.strides + md.ndims);
  for (int i = 0; i < blocking.inner_nblks; ++i)
    layout.blocks.push_back(
        {static_cast<int>(blocking.inner_idxs[i]), blocking.inner_blks[i]});
  return Canonical(std::move(layout));
}

struct DeleteAttr {
  void operator()(dnnl_primitive_attr* p) const {
    dnnl_primitive_attr_destroy(p);
  }
};
using AttrPtr = std::unique_ptr<dnnl_primitive_attr, DeleteAttr>;

struct DeletePostOps {
  void operator()(dnnl_post_ops* p) const { dnnl_post_ops_destroy(p); }
};

// The scratchpad is ours.
absl::StatusOr<AttrPtr> MakeAttr(const PostOps& post) {
  dnnl_primitive_attr_t attr = nullptr;
  PD_DNNL(dnnl_primitive_attr_create, &attr);
  AttrPtr owner(attr);
  PD_DNNL(dnnl_primitive_attr_set_scratchpad_mode, attr,
          dnnl_scratchpad_mode_user);
  if (!post.sum && !post.relu.on) return owner;
  dnnl_post_ops_t ops = nullptr;
  PD_DNNL(dnnl_post_ops_create, &ops);
  const std::unique_ptr<dnnl_post_ops, DeletePostOps> ops_owner(ops);
  if (post.sum) PD_DNNL(dnnl_post_ops_append_sum, ops, 1.0f);
  const float top = post.relu.top;
  if (post.relu.on && std::isfinite(top))
    PD_DNNL(dnnl_post_ops_append_eltwise, ops, 1.0f, dnnl_eltwise_clip, 0, top);
  else if (post.relu.on)
    PD_DNNL(dnnl_post_ops_append_eltwise, ops, 1.0f, dnnl_eltwise_relu, 0, 0);
  PD_DNNL(dnnl_primitive_attr_set_post_ops, attr, ops);
  return owner;
}

}  // namespace

struct Primitive::Impl {
  struct Bound {
    Tensor* tensor;
    dnnl_memory_t memory;
    void* data;
  };
  Runtime runtime;
  PdPtr pd;
  dnnl_primitive_t primitive = nullptr;
  std::string implementation;
  std::vector<Bound> bound;
  std::vector<dnnl_exec_arg_t> args;

  ~Impl() {
    for (const Bound& b : bound) dnnl_memory_destroy(b.memory);
    if (primitive != nullptr) dnnl_primitive_destroy(primitive);
  }
};

std::string ImplementationOf(const dnnl_primitive_desc& pd) {
  const char* name = nullptr;
  const dnnl_status_t status =
      dnnl_primitive_desc_query(&pd, dnnl_query_impl_info_str, 0, &name);
  return status == dnnl_success && name != nullptr ? name : "";
}

absl::StatusOr<PrimitivePtr> Finish(PdPtr pd) {
  PD_ASSIGN_OR_RETURN(const Runtime runtime, GetRuntime());
  auto impl = std::make_unique<Primitive::Impl>();
  impl->runtime = runtime;
  // Without room for the code, oneDNN would write it to a null pointer.
  PD_RETURN_IF_ERROR(
      CheckHeadroom(kKernelHeadroom, "compiling a kernel of oneDNN's"));
  PD_DNNL(dnnl_primitive_create, &impl->primitive, pd.get());
  impl->implementation = ImplementationOf(*pd);
  impl->pd = std::move(pd);
  return std::make_shared<Primitive>(std::move(impl));
}

absl::StatusOr<PdPtr> MakePd(const void* desc, const PostOps& post,
                             const dnnl_primitive_desc* hint) {
  PD_ASSIGN_OR_RETURN(const Runtime runtime, GetRuntime());
  PD_ASSIGN_OR_RETURN(const AttrPtr attr, MakeAttr(post));
  dnnl_primitive_desc_t pd = nullptr;
  PD_DNNL(dnnl_primitive_desc_create, &pd, desc, attr.get(), runtime.engine,
          hint);
  return PdPtr(pd);
}

namespace {

absl::StatusOr<PdPtr> InnerProductPd(const InnerProduct& p) {
  PD_ASSIGN_OR_RETURN(const dnnl_memory_desc_t src, ToDnnl(p.src));
  PD_ASSIGN_OR_RETURN(const dnnl_memory_desc_t weights, ToDnnl(p.weights));
  PD_ASSIGN_OR_RETURN(const dnnl_memory_desc_t dst, ToDnnl(p.dst));
  dnnl_memory_desc_t bias{};
  const bool has_bias = !p.bias.shape.empty();
  if (has_bias) {
    PD_ASSIGN_OR_RETURN(bias, ToDnnl(p.bias));
  }
  dnnl_inner_product_desc_t desc;
  PD_DNNL(dnnl_inner_product_forward_desc_init, &desc, dnnl_forward_training,
          &src, &weights, has_bias ? &bias : nullptr, &dst);
  return MakePd(&desc, {false, p.relu}, nullptr);
}

}  // namespace

Primitive::Primitive(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Primitive::~Primitive() = default;

const std::string& Primitive::implementation() const {
  return impl_->implementation;
}

absl::StatusOr<LayoutPtr> Primitive::LayoutOf(Arg arg) const {
  const dnnl_memory_desc_t* md = dnnl_primitive_desc_query_md(
      impl_->pd.get(), dnnl_query_exec_arg_md, ToDnnl(arg));
  if (md == nullptr || md->ndims == 0)
    return Internal("oneDNN has no argument %d", ToDnnl(arg));
  return FromDnnl(*md);
}

size_t Primitive::ScratchpadBytes() const {
  const dnnl_memory_desc_t* md = dnnl_primitive_desc_query_md(
      impl_->pd.get(), dnnl_query_scratchpad_md, 0);
  return md == nullptr ? 0 : dnnl_memory_desc_get_size(md);
}

void Primitive::Bind(Arg arg, Tensor* tensor) {
  const dnnl_memory_desc_t* md = dnnl_primitive_desc_query_md(
      impl_->pd.get(), dnnl_query_exec_arg_md, ToDnnl(arg));
  dnnl_memory_t memory = nullptr;
  PD_INVARIANT(md != nullptr);
  PD_INVARIANT(dnnl_memory_create(&memory, md, impl_->runtime.engine,
                                  DNNL_MEMORY_NONE) == dnnl_success);
  impl_->bound.push_back({tensor, memory, nullptr});
  impl_->args.push_back({ToDnnl(arg), memory});
}

absl::Status Primitive::Run() {
  for (Impl::Bound& b : impl_->bound) {
    void* const data = b.tensor->raw();
    if (b.data == data) continue;
    // Padding is zero where oneDNN wrote the tensor, and stays so.
    PD_DNNL(dnnl_memory_set_data_handle_v2, b.memory, data, nullptr);
    b.data = data;
  }
  // Its products compile themselves when they run for the first time, on
  // threads where nobody can catch what that throws.
  PD_RETURN_IF_ERROR(
      CheckHeadroom(kKernelHeadroom, "running a kernel of oneDNN's"));
  PD_DNNL(dnnl_primitive_execute, impl_->primitive, impl_->runtime.stream,
          static_cast<int>(impl_->args.size()), impl_->args.data());
  return absl::OkStatus();
}

absl::StatusOr<PrimitivePtr> InnerProductForward(const InnerProduct& p) {
  PD_ASSIGN_OR_RETURN(PdPtr pd, InnerProductPd(p));
  return Finish(std::move(pd));
}

absl::StatusOr<PrimitivePtr> InnerProductBackwardWeights(
    const InnerProduct& p) {
  PD_ASSIGN_OR_RETURN(const PdPtr hint, InnerProductPd(p));
  PD_ASSIGN_OR_RETURN(const dnnl_memory_desc_t src, ToDnnl(p.src));
  PD_ASSIGN_OR_RETURN(const dnnl_memory_desc_t weights, ToDnnl(p.weights));
  PD_ASSIGN_OR_RETURN(const dnnl_memory_desc_t dst, ToDnnl(p.dst));
  dnnl_memory_desc_t bias{};
  const bool has_bias = !p.bias.shape.empty();
  if (has_bias) {
    PD_ASSIGN_OR_RETURN(bias, ToDnnl(p.bias));
  }
  dnnl_inner_product_desc_t desc;
  PD_DNNL(dnnl_inner_product_backward_weights_desc_init, &desc, &src, &weights,
          has_bias ? &bias : nullptr, &dst);
  PD_ASSIGN_OR_RETURN(PdPtr pd, MakePd(&desc, {}, hint.get()));
  return Finish(std::move(pd));
}

ArgSpec WorkspaceOf(const Primitive& primitive) {
  const dnnl_memory_desc_t* md = dnnl_primitive_desc_query_md(
      primitive.impl().pd.get(), dnnl_query_workspace_md, 0);
  ArgSpec spec;
  spec.dtype = DType::kUInt8;
  const size_t bytes = md == nullptr ? 0 : dnnl_memory_desc_get_size(md);
  if (bytes > 0) spec.shape = {static_cast<int64_t>(bytes)};
  return spec;
}

absl::StatusOr<PrimitivePtr> Reorder(const ArgSpec& from, const ArgSpec& to) {
  PD_ASSIGN_OR_RETURN(const Runtime runtime, GetRuntime());
  PD_ASSIGN_OR_RETURN(const dnnl_memory_desc_t src, ToDnnl(from));
  PD_ASSIGN_OR_RETURN(const dnnl_memory_desc_t dst, ToDnnl(to));
  PD_ASSIGN_OR_RETURN(const AttrPtr attr, MakeAttr({}));
  dnnl_primitive_desc_t pd = nullptr;
  PD_DNNL(dnnl_reorder_primitive_desc_create, &pd, &src, runtime.engine, &dst,
          runtime.engine, attr.get());
  return Finish(PdPtr(pd));
}

void BindScratchpad(BindContext* context, Primitive* primitive) {
  const size_t bytes = primitive->ScratchpadBytes();
  if (bytes > 0) primitive->Bind(Arg::kScratchpad, context->Scratch(bytes));
}

absl::Status BindIn(BindContext* context, Primitive* primitive, Arg arg,
                    Tensor* tensor) {
  PD_ASSIGN_OR_RETURN(const LayoutPtr layout, primitive->LayoutOf(arg));
  PD_ASSIGN_OR_RETURN(Tensor * moved, context->In(tensor, layout));
  primitive->Bind(arg, moved);
  return absl::OkStatus();
}

absl::Status BindOut(BindContext* context, Primitive* primitive, Arg arg,
                     Tensor* tensor) {
  PD_ASSIGN_OR_RETURN(const LayoutPtr layout, primitive->LayoutOf(arg));
  PD_ASSIGN_OR_RETURN(Tensor * moved, context->Out(tensor, layout));
  primitive->Bind(arg, moved);
  return absl::OkStatus();
}

}  // namespace onednn
}  // namespace pd
