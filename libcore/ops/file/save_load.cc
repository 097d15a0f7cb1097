// SPDX-License-Identifier: Apache-2.0
// Programs that keep tensors in files, as those of PaddlePaddle 1.x that save
// and load parameters: PaddlePaddle's tensor streams (formats/tensor_stream.h).
//   save: X, a tensor or selected rows, becomes the file file_path
//   save_combine: all X, one after the other, become one file
//   load: Out is the tensor of the file; with seek `shape` numbers of it, from
//     number seek on
//   load_combine: Out are the tensors of a joint file, in its order; with
//     model_from_memory file_path holds the file's bytes
// save_as_fp16 and load_as_fp16 make float16 of other numbers. Paths are those
// that program_files.h allows. Shapes are the file's, which is there when the
// program is compiled. Nothing is kept in variables (save_to_memory).
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "formats/tensor_stream.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/file/program_files.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// The same numbers as float16.
absl::StatusOr<Array> InHalves(const Array& array) {
  if (array.dtype == DType::kFloat16) return array;
  std::byte* bytes = nullptr;
  PD_ASSIGN_OR_RETURN(Array halves,
                      NewArray(DType::kFloat16, array.shape, &bytes));
  halves.lod = array.lod;
  PD_RETURN_IF_ERROR(
      (DispatchTypes<float, double, BFloat16, int32_t, int64_t, int16_t, int8_t,
                     uint8_t, bool>(array.dtype, [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        auto* to = reinterpret_cast<Float16*>(bytes);
        for (int64_t i = 0; i < array.size(); ++i)
          to[i] = Stored<Float16>(static_cast<float>(array.data<T>()[i]));
        return absl::OkStatus();
      })));
  return halves;
}

// The `shape` numbers of `array` from number `seek` on.
absl::StatusOr<Array> PartOfArray(const Array& array, int64_t seek,
                                  const Shape& shape) {
  PD_RETURN_IF_ERROR(CheckedBytes(shape, SizeOf(array.dtype)).status());
  const int64_t n = NumElements(shape);
  if (seek > array.size() || n > array.size() - seek)
    return OutOfRange("attr 'seek' is %d and 'shape' %s; the file has shape %s",
                      seek, ToString(shape), ToString(array.shape));
  Array part;
  part.dtype = array.dtype;
  part.shape = shape;
  part.bytes = std::shared_ptr<const std::byte>(
      array.bytes,
      array.bytes.get() + static_cast<size_t>(seek) * SizeOf(array.dtype));
  return part;
}

// The values of an op's outputs, in their order.
absl::StatusOr<std::vector<Array>> LoadArrays(const OpDesc& op) {
  const std::string& path = op.Attr<std::string>("file_path");
  std::vector<Array> arrays;
  if (op.type == "load") {
    PD_ASSIGN_OR_RETURN(const std::string place, ProgramFile(path));
    PD_ASSIGN_OR_RETURN(arrays.emplace_back(), ReadTensor(place));
    const auto seek = op.Attr<int64_t>("seek");
    if (seek < -1)
      return InvalidArgument("attr 'seek' is %d; expected -1 or more", seek);
    if (seek >= 0) {
      PD_ASSIGN_OR_RETURN(
          arrays[0],
          PartOfArray(arrays[0], seek, op.Attr<std::vector<int64_t>>("shape")));
    }
  } else {
    FileBytes file;
    std::string name = "attr 'file_path'";
    if (op.Attr<bool>("model_from_memory")) {
      const auto copy = std::make_shared<std::string>(path);
      file.size = copy->size();
      file.data = std::shared_ptr<const std::byte>(
          copy, reinterpret_cast<const std::byte*>(copy->data()));
    } else {
      PD_ASSIGN_OR_RETURN(name, ProgramFile(path));
      PD_ASSIGN_OR_RETURN(file, ReadFile(name));
    }
    auto list = ParseTensorList(file);
    if (!list.ok()) return Annotate(list.status(), name);
    arrays = *std::move(list);
    if (arrays.size() != op.Output("Out").size())
      return InvalidArgument("%s has %d tensors; 'Out' names %d", name,
                             arrays.size(), op.Output("Out").size());
  }
  if (op.Attr<bool>("load_as_fp16"))
    for (Array& array : arrays) {
      PD_ASSIGN_OR_RETURN(array, InHalves(array));
    }
  return arrays;
}

absl::Status InferLoad(InferContext* context) {
  PD_ASSIGN_OR_RETURN(const std::vector<Array> arrays,
                      LoadArrays(context->op()));
  for (size_t i = 0; i < arrays.size(); ++i) {
    TensorMeta meta;
    meta.dtype = arrays[i].dtype;
    meta.shape = arrays[i].shape;
    meta.SetLoD(arrays[i].lod);
    context->SetOutput("Out", std::move(meta), i);
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindLoad(BindContext* context) {
  std::vector<Tensor*> outs;
  for (size_t i = 0; i < context->OutputCount("Out"); ++i)
    outs.push_back(context->Output("Out", i));
  return Step([op = context->op(), outs](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const std::vector<Array> arrays, LoadArrays(op));
    for (size_t i = 0; i < outs.size(); ++i) {
      Tensor* out = outs[i];
      if (out == nullptr) continue;
      if (out->dtype() != arrays[i].dtype || out->shape() != arrays[i].shape)
        return FailedPrecondition(
            "'%s' became %s %s after the program was compiled; it was %s %s",
            op.Output("Out")[i], Name(arrays[i].dtype),
            ToString(arrays[i].shape), Name(out->dtype()),
            ToString(out->shape()));
      if (out->bytes() > 0)
        std::memcpy(out->raw(), arrays[i].bytes.get(), out->bytes());
    }
    return absl::OkStatus();
  });
}

absl::Status WriteRows(const Tensor& x, bool halves, const std::string& place) {
  SelectedRowsArray rows;
  rows.rows = x.rows();
  rows.height = x.height();
  Tensor values = x;
  values.set_kind(VarKind::kLodTensor);
  rows.value = ToArray(values);
  if (halves) {
    PD_ASSIGN_OR_RETURN(rows.value, InHalves(rows.value));
  }
  return WriteSelectedRows(place, rows);
}

absl::Status ExpectDense(const std::string& name, const Tensor& tensor) {
  if (tensor.kind() == VarKind::kLodTensor && tensor.has_value())
    return absl::OkStatus();
  return Unimplemented("'%s' is no dense tensor, which alone is saved here",
                       name);
}

absl::StatusOr<Step> BindSave(BindContext* context) {
  Tensor* x = context->Input("X");
  return Step([op = context->op(), x](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const std::string place,
                        ProgramFileToWrite(op.Attr<std::string>("file_path"),
                                           op.Attr<bool>("overwrite")));
    const bool halves = op.Attr<bool>("save_as_fp16");
    if (x->kind() == VarKind::kSelectedRows)
      return WriteRows(*x, halves, place);
    PD_RETURN_IF_ERROR(ExpectDense(op.In("X"), *x));
    Array array = ToArray(*x);
    if (halves) {
      PD_ASSIGN_OR_RETURN(array, InHalves(array));
    }
    return WriteTensor(place, array);
  });
}

absl::StatusOr<Step> BindSaveCombine(BindContext* context) {
  if (context->Attr<bool>("save_to_memory"))
    return Unimplemented(
        "attr 'save_to_memory' is true: bytes in a variable; only files are "
        "written here");
  std::vector<Tensor*> inputs;
  for (size_t i = 0; i < context->InputCount("X"); ++i)
    inputs.push_back(context->Input("X", i));
  return Step([op = context->op(), inputs](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const std::string place,
                        ProgramFileToWrite(op.Attr<std::string>("file_path"),
                                           op.Attr<bool>("overwrite")));
    NamedArrays arrays;  // written in name order, which is to be that of X
    for (size_t i = 0; i < inputs.size(); ++i) {
      PD_RETURN_IF_ERROR(ExpectDense(op.Input("X")[i], *inputs[i]));
      Array& array = arrays[absl::StrFormat("%012d", i)];
      array = ToArray(*inputs[i]);
      if (op.Attr<bool>("save_as_fp16")) {
        PD_ASSIGN_OR_RETURN(array, InHalves(array));
      }
    }
    return WriteTensors(place, arrays);
  });
}

}  // namespace

absl::Status RegisterSaveLoad(OpRegistry* registry) {
  OpDef load("load"), joint("load_combine");
  for (OpDef* op : {&load, &joint}) {
    op->RequiredAttr("file_path", AttrType::kString);
    op->Attr("load_as_fp16", false);
    op->Infer(InferLoad).NoGrad().Reference(BindLoad);
  }
  load.Output("Out").Attr("seek", int64_t{-1});
  load.Attr("shape", std::vector<int64_t>());
  PD_RETURN_IF_ERROR(registry->Add(std::move(load)));
  joint.Outputs("Out").Attr("model_from_memory", false);
  PD_RETURN_IF_ERROR(registry->Add(std::move(joint)));

  OpDef save("save"), all("save_combine");
  for (OpDef* op : {&save, &all}) {
    op->RequiredAttr("file_path", AttrType::kString);
    op->Attr("overwrite", true).Attr("save_as_fp16", false);
    op->Infer(InferNothing).NoGrad().With(Trait::kCommunicates);
  }
  save.Input("X").OptionalOutput("kLookupTablePath").Reference(BindSave);
  PD_RETURN_IF_ERROR(registry->Add(std::move(save)));
  all.Inputs("X").OptionalOutput("Y").Attr("save_to_memory", false);
  return registry->Add(std::move(all.Reference(BindSaveCombine)));
}

}  // namespace pd
