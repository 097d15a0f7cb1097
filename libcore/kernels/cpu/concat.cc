// SPDX-License-Identifier: Apache-2.0
// concat and split along the channels, with their gradients, of tensors that
// lie in blocks of channels: as long as no block belongs to two of them, planes
// of blocks are copied whole.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "libcore/base/parallel.h"
#include "libcore/base/shape.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/blocked_channels.h"
#include "libcore/kernels/cpu/vector_floats.h"

namespace pd {
namespace cpu {
namespace {

struct ConcatParts {
  std::vector<Tensor*> tensors;  // null: nobody wants it
  std::vector<int64_t> blocks;   // of each
  Tensor* joined = nullptr;
  int64_t batch = 1, all_blocks = 0;
  size_t plane = 0;  // bytes
};

// `shapes` are those of the parts.
absl::StatusOr<ConcatParts> ReadParts(const BindContext& context,
                                      Tensor* joined,
                                      const std::vector<Shape>& shapes) {
  const Shape& shape = joined->shape();
  PD_ASSIGN_OR_RETURN(
      const int axis,
      NormalizeAxis(context.op().Attr<int32_t>("axis"), shape.size()));
  if (axis != 1 || context.op().Input("AxisTensor").size() > 0)
    return Unimplemented("it is for axis 1");
  if (shape.size() < 3 || joined->dtype() != DType::kFloat32 ||
      joined->size() == 0)
    return Unimplemented("it is for images of float32");
  ConcatParts p;
  p.joined = joined;
  p.batch = shape[0];
  const int64_t lanes = VectorFloats();
  p.plane = static_cast<size_t>(NumElements(shape, 2, shape.size()) * lanes) *
            sizeof(float);
  for (const Shape& part : shapes) {
    if (part.size() != shape.size() || part[1] % lanes != 0)
      return Unimplemented(
          "a part of shape %s does not end with a block of %d "
          "channels",
          ToString(part), lanes);
    p.blocks.push_back(part[1] / lanes);
    p.all_blocks += p.blocks.back();
  }
  if (p.all_blocks * lanes != shape[1])
    return InvalidArgument("the parts have %d channels, the whole has %d",
                           p.all_blocks * lanes, shape[1]);
  return p;
}

bool IsBlocked(const Tensor& tensor) {
  return tensor.layout() != nullptr &&
         SameLayout(tensor.layout(), BlockedChannels(tensor.shape()));
}

// Planes [begin, end) of the joined tensor's.
void CopyPlanes(const ConcatParts& p, bool join, int64_t begin, int64_t end) {
  int64_t image = begin / p.all_blocks, block = begin % p.all_blocks;
  size_t part = 0;
  for (; block >= p.blocks[part]; ++part) block -= p.blocks[part];
  char* joined = p.joined->data<char>() + static_cast<size_t>(begin) * p.plane;
  while (begin < end) {
    const int64_t count = std::min(p.blocks[part] - block, end - begin);
    const size_t bytes = static_cast<size_t>(count) * p.plane;
    if (p.tensors[part] != nullptr) {
      char* own = p.tensors[part]->data<char>() +
                  static_cast<size_t>(image * p.blocks[part] + block) * p.plane;
      std::memcpy(join ? joined : own, join ? own : joined, bytes);
    }
    joined += bytes;
    begin += count;
    block = 0;
    if (++part == p.blocks.size()) {
      part = 0;
      ++image;
    }
  }
}

Step CopyParts(ConcatParts p, bool join) {
  return [p = std::move(p), join](const RunContext&) {
    const int64_t grain = static_cast<int64_t>(65536 / p.plane) + 1;
    ParallelFor(p.batch * p.all_blocks, grain, [&](int64_t begin, int64_t end) {
      CopyPlanes(p, join, begin, end);
    });
    return absl::OkStatus();
  };
}

// From the joined tensor into the outputs of `slot`, whose shapes are `shapes`.
absl::StatusOr<Step> BindParting(BindContext* context, Tensor* joined,
                                 const std::vector<Shape>& shapes,
                                 const char* slot) {
  PD_ASSIGN_OR_RETURN(ConcatParts p, ReadParts(*context, joined, shapes));
  PD_ASSIGN_OR_RETURN(p.joined,
                      context->In(joined, BlockedChannels(joined->shape())));
  for (size_t i = 0; i < shapes.size(); ++i) {
    Tensor* part = context->Output(slot, i);
    if (part != nullptr) {
      PD_ASSIGN_OR_RETURN(part,
                          context->Out(part, BlockedChannels(part->shape())));
    }
    p.tensors.push_back(part);
  }
  return CopyParts(std::move(p), false);
}

}  // namespace

absl::StatusOr<Step> BindConcat(BindContext* context) {
  std::vector<Shape> shapes;
  bool blocked = false;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    shapes.push_back(context->Input("X", i)->shape());
    blocked |= IsBlocked(*context->Input("X", i));
  }
  if (!blocked) return Unimplemented("no part lies in blocks");
  PD_ASSIGN_OR_RETURN(ConcatParts p,
                      ReadParts(*context, context->Output("Out"), shapes));
  for (size_t i = 0; i < shapes.size(); ++i) {
    PD_ASSIGN_OR_RETURN(Tensor * part, context->In(context->Input("X", i),
                                                   BlockedChannels(shapes[i])));
    p.tensors.push_back(part);
  }
  PD_ASSIGN_OR_RETURN(
      p.joined, context->Out(p.joined, BlockedChannels(p.joined->shape())));
  return CopyParts(std::move(p), true);
}

absl::StatusOr<Step> BindConcatGrad(BindContext* context) {
  std::vector<Shape> shapes;
  bool blocked = false;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    Tensor* x = context->Input("X", i);
    shapes.push_back(x->shape());
    blocked |= IsBlocked(*x);
    context->NoBuffer(x);
  }
  if (!blocked) return Unimplemented("no part lies in blocks");
  return BindParting(context, context->Input("Out@GRAD"), shapes, "X@GRAD");
}

absl::StatusOr<Step> BindSplit(BindContext* context) {
  Tensor* x = context->Input("X");
  if (!IsBlocked(*x)) return Unimplemented("'X' does not lie in blocks");
  if (context->InputCount("SectionsTensorList") > 0)
    return Unimplemented("it is for sections known beforehand");
  std::vector<Shape> shapes;
  for (size_t i = 0; i < context->OutputCount("Out"); ++i) {
    if (context->Output("Out", i) == nullptr)
      return Unimplemented("an output is left out");
    shapes.push_back(context->Output("Out", i)->shape());
  }
  return BindParting(context, x, shapes, "Out");
}

}  // namespace cpu
}  // namespace pd
