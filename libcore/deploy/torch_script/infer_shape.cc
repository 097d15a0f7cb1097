// SPDX-License-Identifier: Apache-2.0
// Shapes of ATen's operators that move, pick, join or make elements.
#include <algorithm>
#include <cmath>

#include "libcore/deploy/torch_script/call.h"

namespace pd {
namespace {

constexpr int64_t kMostParts = 4096;

std::ptrdiff_t At(size_t i) { return static_cast<std::ptrdiff_t>(i); }

// Extents of which one may be -1: what is left.
ScriptDims Filled(ScriptCall* call, ScriptDims dims, const ScriptDims& from) {
  ScriptInt product{1, false};
  ScriptInt* left = nullptr;
  for (ScriptInt& dim : dims) {
    if (dim.value != -1) {
      product = call->Or(MultiplyInts(product, dim));
      continue;
    }
    if (left != nullptr) call->Fail(InvalidArgument("several extents of -1"));
    left = &dim;
  }
  const ScriptInt all = call->Or(ProductOf(from));
  if (left != nullptr && call->ok()) *left = call->Or(DivideInts(all, product));
  if (call->ok() && !(call->Or(ProductOf(dims)) == all))
    call->Fail(InvalidArgument("%d elements in a shape of %d", all.value,
                               call->Or(ProductOf(dims)).value));
  return dims;
}

void InferView(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const char* name = call->Has("size") ? "size" : "shape";
  call->Give(self.dtype, Filled(call, call->Ints(name), self.dims));
}

void InferLike(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  call->Give(self.dtype, call->Tensor("other").dims);
}

void InferFlatten(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const size_t begin = call->Axis(call->Int("start_dim", 0), self.rank());
  const size_t end = call->Axis(call->Int("end_dim", -1), self.rank());
  if (begin > end)
    call->Fail(InvalidArgument("axes that end before they begin"));
  if (!call->ok()) return;
  ScriptDims dims(self.dims.begin(),
                  self.dims.begin() + At(std::min(begin, self.dims.size())));
  ScriptInt product{1, false};
  for (size_t i = begin; i <= end && i < self.dims.size(); ++i)
    product = call->Or(MultiplyInts(product, self.dims[i]));
  dims.push_back(product);
  for (size_t i = end + 1; i < self.dims.size(); ++i)
    dims.push_back(self.dims[i]);
  call->Give(self.dtype, dims);
}

void InferUnflatten(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const size_t axis = call->Axis(call->Int("dim", 0), self.rank());
  if (!call->ok() || axis >= self.dims.size()) return;
  const ScriptDims parts = Filled(call, call->Ints("sizes"), {self.dims[axis]});
  ScriptDims dims = self.dims;
  dims.erase(dims.begin() + At(axis));
  dims.insert(dims.begin() + At(axis), parts.begin(), parts.end());
  call->Give(self.dtype, dims);
}

void InferPermute(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  ScriptDims dims;
  std::vector<bool> seen(self.dims.size(), false);
  for (const ScriptInt& dim : call->Ints("dims")) {
    const size_t axis = call->Axis(call->Known(dim), self.rank());
    if (axis >= seen.size() || seen[axis])
      call->Fail(InvalidArgument("axes of which one stands twice"));
    if (!call->ok()) return;
    seen[axis] = true;
    dims.push_back(self.dims[axis]);
  }
  if (dims.size() != self.dims.size())
    call->Fail(InvalidArgument("%d axes for %d", dims.size(), self.rank()));
  call->Give(self.dtype, dims);
}

void InferTranspose(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const size_t a = call->Axis(call->Int("dim0", 0), self.rank());
  const size_t b = call->Axis(call->Int("dim1", 1), self.rank());
  ScriptDims dims = self.dims;
  if (call->ok() && dims.size() > 1) std::swap(dims[a], dims[b]);
  call->Give(self.dtype, dims);
}

void InferT(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  ScriptDims dims = self.dims;
  if (dims.size() > 2) call->Fail(InvalidArgument("%d axes", self.rank()));
  std::reverse(dims.begin(), dims.end());
  call->Give(self.dtype, dims);
}

void InferSelect(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const size_t axis = call->Axis(call->Int("dim", 0), self.rank());
  ScriptDims dims = self.dims;
  if (dims.empty()) call->Fail(InvalidArgument("a tensor without axes"));
  if (call->ok()) dims.erase(dims.begin() + At(axis));
  call->Give(self.dtype, dims);
}

void InferSlice(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const size_t axis = call->Axis(call->Int("dim", 0), self.rank());
  if (self.dims.empty()) call->Fail(InvalidArgument("a tensor without axes"));
  if (!call->ok()) return;
  ScriptDims dims = self.dims;
  const int64_t step = call->Int("step", 1);
  const ScriptInt extent = dims[axis];
  const ScriptValue* end = call->Find("end");
  const bool whole =
      (call->Find("start") == nullptr || call->Int("start", 0) == 0) &&
      (end == nullptr || end->integer == extent ||
       (!end->integer.open && end->integer.value >= INT32_MAX));
  if (step < 1) call->Fail(InvalidArgument("a step of %d", step));
  if (!call->ok()) return;
  if (!whole || step != 1) {
    const int64_t known = call->Known(extent);
    const auto place = [&](const char* name, int64_t otherwise) {
      const int64_t at = call->Int(name, otherwise);
      return std::clamp<int64_t>(at < 0 ? at + known : at, 0, known);
    };
    const int64_t from = place("start", 0), to = place("end", known);
    const int64_t count = std::max<int64_t>(to - from, 0);
    dims[axis] = {count == 0 ? 0 : (count - 1) / step + 1, false};
  }
  call->Give(self.dtype, dims);
}

void InferCat(ScriptCall* call) {
  const auto tensors = call->Tensors("tensors");
  if (!call->ok()) return;
  ScriptDims dims = tensors[0].dims;
  const size_t axis = call->Axis(call->Int("dim", 0), tensors[0].rank());
  if (dims.empty()) call->Fail(InvalidArgument("a tensor without axes"));
  for (size_t i = 1; i < tensors.size() && call->ok(); ++i) {
    if (tensors[i].dims.size() != dims.size())
      return call->Fail(InvalidArgument("tensors of %d and %d axes",
                                        dims.size(), tensors[i].dims.size()));
    dims[axis] = call->Or(AddInts(dims[axis], tensors[i].dims[axis]));
  }
  call->Give(tensors.empty() ? DType::kFloat32 : tensors[0].dtype, dims);
}

void InferStack(ScriptCall* call) {
  const auto tensors = call->Tensors("tensors");
  if (!call->ok()) return;
  ScriptDims dims = tensors[0].dims;
  const size_t axis = call->Axis(call->Int("dim", 0), tensors[0].rank() + 1);
  dims.insert(dims.begin() + At(std::min(axis, dims.size())),
              {static_cast<int64_t>(tensors.size()), false});
  call->Give(tensors[0].dtype, dims);
}

// Parts of as many as `each` elements, the last with what is left.
void GiveParts(ScriptCall* call, size_t axis, int64_t each) {
  const ScriptTensor& self = call->Tensor("self");
  if (!call->ok() || axis >= self.dims.size()) return;
  const int64_t extent = call->Known(self.dims[axis]);
  if (each < 1 || extent / each > kMostParts)
    call->Fail(InvalidArgument("parts of %d of an axis of %d", each, extent));
  for (int64_t at = 0; at < extent && call->ok(); at += each) {
    ScriptDims dims = self.dims;
    dims[axis] = {std::min(each, extent - at), false};
    call->Give(self.dtype, dims);
  }
  call->gives_list = true;
}

void InferSplit(ScriptCall* call) {
  GiveParts(call, call->Axis(call->Int("dim", 0), call->Tensor("self").rank()),
            call->Int("split_size", 1));
}

void InferChunk(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const size_t axis = call->Axis(call->Int("dim", 0), self.rank());
  const int64_t chunks = call->Int("chunks", 1);
  if (chunks < 1 || chunks > kMostParts || self.dims.empty())
    call->Fail(InvalidArgument("%d chunks", chunks));
  if (!call->ok()) return;
  const int64_t extent = call->Known(self.dims[axis]);
  GiveParts(call, axis,
            extent / chunks + (extent % chunks != 0 || extent == 0 ? 1 : 0));
}

void InferSplitSizes(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const size_t axis = call->Axis(call->Int("dim", 0), self.rank());
  for (const ScriptInt& size : call->Ints("split_sizes")) {
    if (!call->ok() || axis >= self.dims.size()) return;
    ScriptDims dims = self.dims;
    dims[axis] = size;
    call->Give(self.dtype, dims);
  }
  call->gives_list = true;
}

void InferUnbind(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const size_t axis = call->Axis(call->Int("dim", 0), self.rank());
  if (!call->ok() || axis >= self.dims.size()) return;
  const int64_t extent = call->Known(self.dims[axis]);
  if (extent > kMostParts) call->Fail(Unimplemented("%d parts", extent));
  ScriptDims dims = self.dims;
  dims.erase(dims.begin() + At(axis));
  for (int64_t i = 0; i < extent && call->ok(); ++i)
    call->Give(self.dtype, dims);
  call->gives_list = true;
}

// -1 is an extent that stays.
void InferExpand(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  ScriptDims dims =
      call->Has("other") ? call->Tensor("other").dims : call->Ints("size");
  if (dims.size() < self.dims.size())
    call->Fail(
        InvalidArgument("%d extents for %d axes", dims.size(), self.rank()));
  if (!call->ok()) return;
  const size_t more = dims.size() - self.dims.size();
  for (size_t i = more; i < dims.size(); ++i)
    if (dims[i].value == -1) dims[i] = self.dims[i - more];
  call->Give(self.dtype, dims);
}

void InferRepeat(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  ScriptDims dims = call->Ints("repeats");
  if (dims.size() < self.dims.size())
    call->Fail(
        InvalidArgument("%d repeats for %d axes", dims.size(), self.rank()));
  if (!call->ok()) return;
  const size_t more = dims.size() - self.dims.size();
  for (size_t i = more; i < dims.size(); ++i)
    dims[i] = call->Or(MultiplyInts(dims[i], self.dims[i - more]));
  call->Give(self.dtype, dims);
}

void InferPad(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const ScriptDims pad = call->Ints("pad");
  ScriptDims dims = self.dims;
  if (pad.size() % 2 != 0 || pad.size() > 2 * dims.size())
    call->Fail(InvalidArgument("%d pads for %d axes", pad.size(), self.rank()));
  for (size_t i = 0; i < pad.size() && call->ok(); ++i) {
    ScriptInt& dim = dims[dims.size() - 1 - i / 2];
    dim = call->Or(AddInts(dim, pad[i]));
  }
  call->Give(self.dtype, dims);
}

void InferSqueeze(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const bool all = !call->Has("dim");
  std::vector<bool> drop(self.dims.size(), all);
  for (const ScriptInt& dim : call->Ints("dim")) {
    const size_t axis = call->Axis(call->Known(dim), self.rank());
    if (axis < drop.size()) drop[axis] = true;
  }
  ScriptDims dims;
  for (size_t i = 0; i < drop.size(); ++i)
    if (!drop[i] || !(self.dims[i] == ScriptInt{1, false}))
      dims.push_back(self.dims[i]);
  call->Give(self.dtype, dims);
}

void InferUnsqueeze(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const size_t axis = call->Axis(call->Int("dim", 0), self.rank() + 1);
  ScriptDims dims = self.dims;
  dims.insert(dims.begin() + At(std::min(axis, dims.size())), {1, false});
  call->Give(self.dtype, dims);
}

void InferGather(ScriptCall* call) {
  call->Give(call->Tensor("self").dtype, call->Tensor("index").dims);
}

void InferIndexSelect(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const ScriptTensor& index = call->Tensor("index");
  const size_t axis = call->Axis(call->Int("dim", 0), self.rank());
  ScriptDims dims = self.dims;
  if (dims.empty() || index.rank() != 1)
    call->Fail(Unimplemented("an index of %d axes", index.rank()));
  if (call->ok()) dims[axis] = index.dims[0];
  call->Give(self.dtype, dims);
}

void InferIndex(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const auto indices = call->Tensors("indices");
  if (call->ok() && (indices.size() != 1 || self.dims.empty() ||
                     indices[0].dtype == DType::kBool))
    call->Fail(Unimplemented("%d tensors as indices", indices.size()));
  if (!call->ok()) return;
  ScriptDims dims = indices[0].dims;
  dims.insert(dims.end(), self.dims.begin() + 1, self.dims.end());
  call->Give(self.dtype, dims);
}

void InferArg(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  ScriptDims dims;
  if (call->Has("dim")) {
    dims = self.dims;
    const size_t axis = call->Axis(call->Int("dim", 0), self.rank());
    if (!call->ok() || axis >= dims.size()) return;
    dims[axis] = {1, false};
    if (call->Int("keepdim", 0) == 0) dims.erase(dims.begin() + At(axis));
  }
  call->Give(DType::kInt64, dims);
}

void InferExtreme(ScriptCall* call) {
  InferArg(call);
  if (!call->ok() || call->outputs.empty()) return;
  const ScriptDims dims = call->outputs[0].dims;
  call->outputs.clear();
  call->Give(call->Tensor("self").dtype, dims);
  call->Give(DType::kInt64, dims);
}

void InferTopK(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const size_t axis = call->Axis(call->Int("dim", -1), self.rank());
  ScriptDims dims = self.dims;
  if (dims.empty()) call->Fail(InvalidArgument("a tensor without axes"));
  if (!call->ok()) return;
  dims[axis] = {call->Int("k", 1), false};
  call->Give(self.dtype, dims);
  call->Give(DType::kInt64, dims);
}

void InferCumsum(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  call->Give(call->TypeOr("dtype",
                          IsFloating(self.dtype) ? self.dtype : DType::kInt64),
             self.dims);
}

void InferSame(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  call->Give(self.dtype, self.dims);
}

void InferFull(ScriptCall* call) {
  const ScriptValue* value = call->Find("fill_value");
  const bool whole = value != nullptr && value->Is(ScriptValue::Kind::kInt);
  call->Give(call->TypeOr("dtype", whole ? DType::kInt64 : DType::kFloat32),
             call->Ints("size"));
}

void InferFullLike(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  call->Give(call->TypeOr("dtype", self.dtype),
             call->Has("size") ? call->Ints("size") : self.dims);
}

void InferArange(ScriptCall* call) {
  bool whole = true;
  for (const char* name : {"start", "end", "step"})
    whole = whole &&
            (!call->Has(name) || call->Find(name)->Is(ScriptValue::Kind::kInt));
  const double step = call->Number("step", 1);
  const double count =
      std::ceil((call->Number("end", 0) - call->Number("start", 0)) / step);
  if (!(count >= 0 && count < 1e9))
    call->Fail(InvalidArgument("a range of %g numbers", count));
  if (!call->ok()) return;
  call->Give(call->TypeOr("dtype", whole ? DType::kInt64 : DType::kFloat32),
             {{static_cast<int64_t>(count), false}});
}

constexpr char kMade[] =
    "l size, |, i dtype, n layout, n device, n pin_memory, n memory_format";
constexpr char kLike[] =
    "t self, |, i dtype, n layout, n device, n pin_memory, n memory_format";
constexpr char kNew[] =
    "t self, l size, |, i dtype, n layout, n device, n pin_memory";

ScriptOperators Makers() {
  return {
      {"arange", "arange.start_step",
       "N start, N end, N step, |, i dtype, n layout, n device, n pin_memory",
       InferArange},
      {"arange", "arange.default",
       "N end, |, i dtype, d layout, d device, b pin_memory", InferArange},
      {"arange", "arange.start",
       "N start, N end, |, i dtype, d layout, d device, b pin_memory",
       InferArange},
      {"full", "full.default",
       "l size, N fill_value, |, i dtype, n layout, n device, n pin_memory",
       InferFull},
      {"full_like", "full_like.default",
       "t self, N fill_value, |, i dtype, n layout, n device, n pin_memory, n "
       "memory_format",
       InferFullLike},
      {"ones", "ones.default", kMade, InferFull},
      {"zeros", "zeros.default", kMade, InferFull},
      {"ones_like", "ones_like.default", kLike, InferFullLike},
      {"zeros_like", "zeros_like.default", kLike, InferFullLike},
      {"new_ones", "new_ones.default", kNew, InferFullLike},
      {"new_zeros", "new_zeros.default", kNew, InferFullLike},
  };
}

}  // namespace

ScriptOperators ScriptShapeOperators() {
  ScriptOperators rows = {
      {"argmax", "argmax.default", "t self, i dim, b keepdim", InferArg},
      {"argmin", "argmin.default", "t self, i dim, b keepdim", InferArg},
      {"cat", "cat.default", "T tensors, i dim", InferCat},
      {"chunk", "chunk.default", "t self, i chunks, i dim", InferChunk},
      {"constant_pad_nd", "constant_pad_nd.default", "t self, l pad, s value",
       InferPad},
      {"cumsum", "cumsum.default", "t self, i dim, i dtype", InferCumsum},
      {"expand", "expand.default", "t self, l size, b implicit", InferExpand},
      {"expand_as", "expand_as.default", "t self, t other", InferExpand},
      {"flatten", "flatten.using_ints", "t self, i start_dim, i end_dim",
       InferFlatten},
      {"flip", "flip.default", "t self, l dims", InferSame},
      {"gather", "gather.default", "t self, i dim, t index, b sparse_grad",
       InferGather},
      {"index", "index.Tensor", "t self, T indices", InferIndex},
      {"index_select", "index_select.default", "t self, i dim, t index",
       InferIndexSelect},
      {"max", "max.dim", "t self, I dim, b keepdim", InferExtreme},
      {"min", "min.dim", "t self, I dim, b keepdim", InferExtreme},
      {"pad", "pad.default", "t self, l pad, S mode, s value", InferPad},
      {"permute", "permute.default", "t self, l dims", InferPermute},
      {"repeat", "repeat.default", "t self, l repeats", InferRepeat},
      {"reshape", "reshape.default", "t self, l shape", InferView},
      {"roll", "roll.default", "t self, l shifts, l dims", InferSame},
      {"select", "select.int", "t self, i dim, i index", InferSelect},
      {"slice", "slice.Tensor", "t self, i dim, i start, i end, i step",
       InferSlice},
      {"split", "split.Tensor", "t self, i split_size, i dim", InferSplit},
      {"split", "split_with_sizes.default", "t self, l split_sizes, i dim",
       InferSplitSizes},
      {"split_with_sizes", "split_with_sizes.default",
       "t self, l split_sizes, i dim", InferSplitSizes},
      {"squeeze", "squeeze.dims", "t self, l dim", InferSqueeze},
      {"stack", "stack.default", "T tensors, i dim", InferStack},
      {"t", "t.default", "t self", InferT},
      {"topk", "topk.default", "t self, i k, i dim, b largest, b sorted",
       InferTopK},
      {"transpose", "transpose.int", "t self, i dim0, i dim1", InferTranspose},
      {"tril", "tril.default", "t self, i diagonal", InferSame},
      {"triu", "triu.default", "t self, i diagonal", InferSame},
      {"unbind", "unbind.int", "t self, i dim", InferUnbind},
      {"unflatten", "unflatten.int", "t self, i dim, l sizes", InferUnflatten},
      {"unsqueeze", "unsqueeze.default", "t self, i dim", InferUnsqueeze},
      {"view", "view.default", "t self, l size", InferView},
      {"view_as", "view_as.default", "t self, t other", InferLike},
  };
  for (const ScriptOperator& maker : Makers()) rows.push_back(maker);
  return rows;
}

}  // namespace pd
