// SPDX-License-Identifier: Apache-2.0
#include "formats/pdmodel.h"

#include <climits>
#include <set>
#include <utility>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include "absl/strings/str_cat.h"
#include "formats/framework.pb.h"
#include "formats/proto_fields.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

namespace pb = ::paddle::framework::proto;

// Refuses fields that Parse leaves among a message's unknown fields although
// the schema knows their number: a wrong wire type or an undefined enum value.
absl::Status CheckKnownFields(const google::protobuf::Message& message) {
  const auto* reflection = message.GetReflection();
  const auto& unknown = reflection->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto* field =
        message.GetDescriptor()->FindFieldByNumber(unknown.field(i).number());
    if (field != nullptr)
      return DataLoss("%s: field '%s' holds a value that is not of its type",
                      message.GetDescriptor()->name(), field->name());
  }
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE)
      continue;
    if (!field->is_repeated()) {
      PD_RETURN_IF_ERROR(
          CheckKnownFields(reflection->GetMessage(message, field)));
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i)
      PD_RETURN_IF_ERROR(Annotate(
          CheckKnownFields(reflection->GetRepeatedMessage(message, field, i)),
          absl::StrCat(field->name(), "[", i, "]")));
  }
  return absl::OkStatus();
}

template <typename Repeated>
auto ToVector(const Repeated& values) {
  using T = typename Repeated::value_type;
  return std::vector<T>(values.begin(), values.end());
}

absl::StatusOr<ScalarAttr> ScalarFromProto(const pb::Scalar& scalar) {
  ScalarAttr out;
  bool present = false;
  switch (scalar.type()) {
    case pb::Scalar::BOOLEAN:
      present = scalar.has_b();
      out.value = scalar.b();
      break;
    case pb::Scalar::LONG:
      present = scalar.has_i();
      out.value = static_cast<int64_t>(scalar.i());
      break;
    case pb::Scalar::FLOAT64:
      present = scalar.has_r();
      out.value = scalar.r();
      break;
    case pb::Scalar::COMPLEX128:
      present = scalar.has_c();
      out.value = std::complex<double>(scalar.c().r(), scalar.c().i());
      break;
  }
  if (!present) return DataLoss("a scalar has a type but no value");
  return out;
}

absl::StatusOr<std::vector<ScalarAttr>> ScalarsFromProto(
    const pb::OpDesc::Attr& a) {
  std::vector<ScalarAttr> values;
  for (const pb::Scalar& s : a.scalars()) {
    PD_ASSIGN_OR_RETURN(auto value, ScalarFromProto(s));
    values.push_back(value);
  }
  return values;
}

// The payload of an attribute; its field must be there unless it is a list,
// of which an empty one leaves no trace.
absl::StatusOr<Attribute> AttrFromProto(const pb::OpDesc::Attr& a) {
  bool present = true;
  Attribute out;
  switch (a.type()) {
    case pb::INT:
      present = a.has_i();
      out = static_cast<int32_t>(a.i());
      break;
    case pb::FLOAT:
      present = a.has_f();
      out = a.f();
      break;
    case pb::STRING:
      present = a.has_s();
      out = a.s();
      break;
    case pb::INTS:
      out = ToVector(a.ints());
      break;
    case pb::FLOATS:
      out = ToVector(a.floats());
      break;
    case pb::STRINGS:
      out = ToVector(a.strings());
      break;
    case pb::BOOLEAN:
      present = a.has_b();
      out = a.b();
      break;
    case pb::BOOLEANS:
      out = ToVector(a.bools());
      break;
    case pb::BLOCK:
      present = a.has_block_idx();
      out = BlockRef{a.block_idx()};
      break;
    case pb::LONG:
      present = a.has_l();
      out = static_cast<int64_t>(a.l());
      break;
    case pb::BLOCKS:
      out = BlockRefs{ToVector(a.blocks_idx())};
      break;
    case pb::LONGS:
      out = std::vector<int64_t>(a.longs().begin(), a.longs().end());
      break;
    case pb::FLOAT64S:
      out = ToVector(a.float64s());
      break;
    case pb::VAR:
      present = a.has_var_name();
      out = VarRef{a.var_name()};
      break;
    case pb::VARS:
      out = VarRefs{ToVector(a.vars_name())};
      break;
    case pb::FLOAT64:
      present = a.has_float64();
      out = a.float64();
      break;
    case pb::SCALAR: {
      present = a.has_scalar();
      if (!present) break;
      PD_ASSIGN_OR_RETURN(out, ScalarFromProto(a.scalar()));
      break;
    }
    case pb::SCALARS: {
      PD_ASSIGN_OR_RETURN(out, ScalarsFromProto(a));
      break;
    }
  }
  if (!present)
    return DataLoss("it is of type '%s' but holds no value",
                    Name(static_cast<AttrType>(a.type())));
  return out;
}

using ProtoSlots = google::protobuf::RepeatedPtrField<pb::OpDesc::Var>;

absl::Status SlotsFromProto(const ProtoSlots& slots, const char* what,
                            SlotList* out) {
  std::set<absl::string_view> seen;
  out->reserve(static_cast<size_t>(slots.size()));
  for (const pb::OpDesc::Var& slot : slots) {
    if (!seen.insert(slot.parameter()).second)
      return InvalidArgument("%s slot '%s' is there twice", what,
                             slot.parameter());
    out->emplace_back(slot.parameter(), ToVector(slot.arguments()));
  }
  return absl::OkStatus();
}

absl::StatusOr<OpDesc> OpFromProto(const pb::OpDesc& in) {
  OpDesc op;
  op.type = in.type();
  op.is_target = in.is_target();
  PD_RETURN_IF_ERROR(SlotsFromProto(in.inputs(), "input", &op.inputs));
  PD_RETURN_IF_ERROR(SlotsFromProto(in.outputs(), "output", &op.outputs));
  // PaddlePaddle writes one or two sorted runs; the first of two leads. It may
  // repeat an attribute of the first in the second.
  bool leads = false;
  std::vector<std::string> repeated;
  for (int i = 0; i < in.attrs_size(); ++i) {
    const std::string& name = in.attrs(i).name();
    auto value = AttrFromProto(in.attrs(i));
    if (!value.ok())
      return Annotate(value.status(), absl::StrCat("attr '", name, "'"));
    const auto [known, added] = op.attrs.emplace(name, *value);
    if (!added && !(known->second == *value))
      return InvalidArgument("attr '%s' is there twice with two values", name);
    if (!added) repeated.push_back(name);
    if (!leads && i > 0 && name <= in.attrs(i - 1).name()) {
      leads = true;
      for (int k = 0; k < i; ++k)
        op.leading_attrs.push_back(in.attrs(k).name());
    }
  }
  op.leading_attrs.insert(op.leading_attrs.end(), repeated.begin(),
                          repeated.end());
  return op;
}

absl::Status TensorFromProto(const pb::VarType::TensorDesc& tensor,
                             VarDesc* var) {
  const auto dtype = DTypeFromCode(tensor.data_type());
  if (!dtype.has_value())
    return Unimplemented("its element type is %s; expected a number or bool",
                         pb::VarType::Type_Name(tensor.data_type()));
  var->dtype = *dtype;
  var->shape.assign(tensor.dims().begin(), tensor.dims().end());
  return absl::OkStatus();
}

// LoDTensorDesc and LoDTensorArrayDesc.
template <typename Desc>
absl::Status LodTensorFromProto(const Desc& desc, VarDesc* var) {
  var->lod_level = desc.lod_level();
  if (!desc.has_lod_level()) var->omitted |= kOmitsLodLevel;
  return TensorFromProto(desc.tensor(), var);
}

absl::Status TypeFromProto(const pb::VarType& type, VarDesc* var) {
  if (DTypeFromCode(type.type()).has_value() ||
      type.type() == pb::VarType::SIZE_T)
    return InvalidArgument("its kind is the element type %s",
                           pb::VarType::Type_Name(type.type()));
  var->kind = static_cast<VarKind>(type.type());
  switch (type.type()) {
    case pb::VarType::LOD_TENSOR:
      if (type.has_lod_tensor())
        return LodTensorFromProto(type.lod_tensor(), var);
      break;
    case pb::VarType::LOD_TENSOR_ARRAY:
      if (type.has_tensor_array())
        return LodTensorFromProto(type.tensor_array(), var);
      break;
    case pb::VarType::SELECTED_ROWS:
      if (type.has_selected_rows())
        return TensorFromProto(type.selected_rows(), var);
      break;
    case pb::VarType::SPARSE_COO:
      if (type.has_sparse_coo()) return TensorFromProto(type.sparse_coo(), var);
      break;
    case pb::VarType::SPARSE_CSR:
      if (type.has_sparse_csr()) return TensorFromProto(type.sparse_csr(), var);
      break;
    default:
      if (type.ByteSizeLong() > 2) var->raw_type = type.SerializeAsString();
      break;
  }
  var->omitted |= kOmitsTensor | kOmitsLodLevel;
  return absl::OkStatus();
}

absl::StatusOr<VarDesc> VarFromProto(const pb::VarDesc& in) {
  VarDesc var;
  var.name = in.name();
  PD_RETURN_IF_ERROR(TypeFromProto(in.type(), &var));
  var.persistable = in.persistable();
  var.need_check_feed = in.need_check_feed();
  var.is_parameter = in.is_parameter();
  var.stop_gradient = in.stop_gradient();
  if (!in.has_persistable()) var.omitted |= kOmitsPersistable;
  if (!in.has_stop_gradient()) var.omitted |= kOmitsStopGradient;
  for (const pb::VarDesc::Attr& a : in.attrs()) {
    Attribute value;
    if (a.type() == pb::INT && a.has_i())
      value = static_cast<int32_t>(a.i());
    else if (a.type() == pb::STRING && a.has_s())
      value = a.s();
    else if (a.type() == pb::INTS)
      value = ToVector(a.ints());
    else
      return DataLoss("attr '%s' is of type '%s' but holds no value of it",
                      a.name(), Name(static_cast<AttrType>(a.type())));
    var.attrs[a.name()] = std::move(value);
  }
  return var;
}

std::string Place(int block, const char* what, absl::string_view name) {
  return absl::StrCat("block ", block, ": ", what, " '", name, "'");
}

absl::StatusOr<BlockDesc> BlockFromProto(const pb::BlockDesc& in) {
  BlockDesc block;
  block.idx = in.idx();
  block.parent_idx = in.parent_idx();
  block.forward_block_idx = in.forward_block_idx();
  block.vars.reserve(static_cast<size_t>(in.vars_size()));
  block.ops.reserve(static_cast<size_t>(in.ops_size()));
  for (const pb::VarDesc& v : in.vars()) {
    auto var = VarFromProto(v);
    if (!var.ok())
      return Annotate(var.status(), Place(in.idx(), "variable", v.name()));
    block.vars.push_back(*std::move(var));
  }
  for (int i = 0; i < in.ops_size(); ++i) {
    auto op = OpFromProto(in.ops(i));
    if (!op.ok())
      return Annotate(op.status(),
                      absl::StrCat(Place(in.idx(), "op", in.ops(i).type()),
                                   " (number ", i, ")"));
    block.ops.push_back(*std::move(op));
  }
  return block;
}

void ScalarToProto(const ScalarAttr& scalar, pb::Scalar* out) {
  if (const auto* b = std::get_if<bool>(&scalar.value)) {
    out->set_type(pb::Scalar::BOOLEAN);
    out->set_b(*b);
  } else if (const auto* i = std::get_if<int64_t>(&scalar.value)) {
    out->set_type(pb::Scalar::LONG);
    out->set_i(*i);
  } else if (const auto* r = std::get_if<double>(&scalar.value)) {
    out->set_type(pb::Scalar::FLOAT64);
    out->set_r(*r);
  } else {
    const auto& c = std::get<std::complex<double>>(scalar.value);
    out->set_type(pb::Scalar::COMPLEX128);
    out->mutable_c()->set_r(c.real());
    out->mutable_c()->set_i(c.imag());
  }
}

// One overload for each alternative of Attribute.
struct AttrWriter {
  pb::OpDesc::Attr* out;

  void operator()(int32_t v) const { out->set_i(v); }
  void operator()(float v) const { out->set_f(v); }
  void operator()(const std::string& v) const { out->set_s(v); }
  void operator()(const std::vector<int32_t>& v) const {
    out->mutable_ints()->Add(v.begin(), v.end());
  }
  void operator()(const std::vector<float>& v) const {
    out->mutable_floats()->Add(v.begin(), v.end());
  }
  void operator()(const std::vector<std::string>& v) const {
    for (const std::string& s : v) out->add_strings(s);
  }
  void operator()(bool v) const { out->set_b(v); }
  void operator()(const std::vector<bool>& v) const {
    for (const bool b : v) out->add_bools(b);
  }
  void operator()(const BlockRef& v) const { out->set_block_idx(v.index); }
  void operator()(int64_t v) const { out->set_l(v); }
  void operator()(const BlockRefs& v) const {
    out->mutable_blocks_idx()->Add(v.indices.begin(), v.indices.end());
  }
  void operator()(const std::vector<int64_t>& v) const {
    out->mutable_longs()->Add(v.begin(), v.end());
  }
  void operator()(const std::vector<double>& v) const {
    out->mutable_float64s()->Add(v.begin(), v.end());
  }
  void operator()(const VarRef& v) const { out->set_var_name(v.name); }
  void operator()(const VarRefs& v) const {
    for (const std::string& s : v.names) out->add_vars_name(s);
  }
  void operator()(double v) const { out->set_float64(v); }
  void operator()(const ScalarAttr& v) const {
    ScalarToProto(v, out->mutable_scalar());
  }
  void operator()(const std::vector<ScalarAttr>& v) const {
    for (const ScalarAttr& s : v) ScalarToProto(s, out->add_scalars());
  }
};

void AttrToProto(const std::string& name, const Attribute& value,
                 pb::OpDesc::Attr* out) {
  out->set_name(name);
  out->set_type(static_cast<pb::AttrType>(TypeOf(value)));
  std::visit(AttrWriter{out}, value);
}

void SlotsToProto(const SlotList& slots, ProtoSlots* out) {
  for (const auto& [name, arguments] : slots) {
    pb::OpDesc::Var* slot = out->Add();
    slot->set_parameter(name);
    for (const std::string& a : arguments) slot->add_arguments(a);
  }
}

void OpToProto(const OpDesc& op, pb::OpDesc* out) {
  out->set_type(op.type);
  SlotsToProto(op.inputs, out->mutable_inputs());
  SlotsToProto(op.outputs, out->mutable_outputs());
  std::set<absl::string_view> written, again;
  for (const std::string& name : op.leading_attrs) {
    const auto it = op.attrs.find(name);
    if (it == op.attrs.end()) continue;
    if (written.insert(name).second)
      AttrToProto(name, it->second, out->add_attrs());
    else
      again.insert(name);
  }
  for (const auto& [name, value] : op.attrs)
    if (written.count(name) == 0 || again.count(name) != 0)
      AttrToProto(name, value, out->add_attrs());
  if (op.is_target) out->set_is_target(true);
}

void TensorToProto(const VarDesc& var, pb::VarType::TensorDesc* out) {
  out->set_data_type(static_cast<pb::VarType::Type>(var.dtype));
  out->mutable_dims()->Add(var.shape.begin(), var.shape.end());
}

template <typename Desc>
void LodTensorToProto(const VarDesc& var, Desc* out) {
  TensorToProto(var, out->mutable_tensor());
  if (var.lod_level != 0 || (var.omitted & kOmitsLodLevel) == 0)
    out->set_lod_level(var.lod_level);
}

absl::Status TypeToProto(const VarDesc& var, pb::VarType* out) {
  if (!var.raw_type.empty() && !out->ParsePartialFromString(var.raw_type))
    return InvalidArgument("its raw_type is not a VarType");
  if (!pb::VarType::Type_IsValid(static_cast<int>(var.kind)))
    return InvalidArgument("its kind %d is not one of PaddlePaddle's",
                           static_cast<int>(var.kind));
  out->set_type(static_cast<pb::VarType::Type>(var.kind));
  if ((var.omitted & kOmitsTensor) != 0 && var.shape.empty())
    return absl::OkStatus();
  switch (var.kind) {
    case VarKind::kLodTensor:
      LodTensorToProto(var, out->mutable_lod_tensor());
      break;
    case VarKind::kLodTensorArray:
      LodTensorToProto(var, out->mutable_tensor_array());
      break;
    case VarKind::kSelectedRows:
      TensorToProto(var, out->mutable_selected_rows());
      break;
    case VarKind::kSparseCoo:
      TensorToProto(var, out->mutable_sparse_coo());
      break;
    case VarKind::kSparseCsr:
      TensorToProto(var, out->mutable_sparse_csr());
      break;
    default:
      break;
  }
  return absl::OkStatus();
}

absl::Status VarToProto(const VarDesc& var, pb::VarDesc* out) {
  out->set_name(var.name);
  PD_RETURN_IF_ERROR(TypeToProto(var, out->mutable_type()));
  if (var.persistable || (var.omitted & kOmitsPersistable) == 0)
    out->set_persistable(var.persistable);
  if (var.need_check_feed) out->set_need_check_feed(true);
  if (var.is_parameter) out->set_is_parameter(true);
  if (var.stop_gradient || (var.omitted & kOmitsStopGradient) == 0)
    out->set_stop_gradient(var.stop_gradient);
  for (const auto& [name, value] : var.attrs) {
    pb::VarDesc::Attr* a = out->add_attrs();
    a->set_name(name);
    a->set_type(static_cast<pb::AttrType>(TypeOf(value)));
    if (const auto* i = std::get_if<int32_t>(&value))
      a->set_i(*i);
    else if (const auto* s = std::get_if<std::string>(&value))
      a->set_s(*s);
    else if (const auto* ints = std::get_if<std::vector<int32_t>>(&value))
      a->mutable_ints()->Add(ints->begin(), ints->end());
    else
      return InvalidArgument(
          "attr '%s' is of type '%s'; expected int, string or ints", name,
          Name(TypeOf(value)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProgramDesc> ParseProgram(absl::string_view bytes) {
  if (bytes.size() > INT_MAX)
    return OutOfRange("the program has %d bytes; a ProgramDesc has at most %d",
                      bytes.size(), INT_MAX);
  pb::ProgramDesc in;
  if (!in.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return DataLoss("its %d bytes are not a ProgramDesc: damaged or cut",
                    bytes.size());
  PD_RETURN_IF_ERROR(CheckKnownFields(in));
  if (!in.IsInitialized())
    return DataLoss("required fields are missing: %s",
                    in.InitializationErrorString());
  ProgramDesc program;
  for (const pb::BlockDesc& b : in.blocks()) {
    PD_ASSIGN_OR_RETURN(auto block, BlockFromProto(b));
    program.blocks.push_back(std::move(block));
  }
  program.version = in.version().version();
  for (const auto& pair : in.op_version_map().pair())
    program.op_versions.emplace_back(pair.op_name(),
                                     pair.op_version().version());
  PD_RETURN_IF_ERROR(CheckProgramStructure(program));
  return program;
}

absl::StatusOr<std::string> SerializeProgram(const ProgramDesc& program) {
  PD_RETURN_IF_ERROR(CheckProgramStructure(program));
  pb::ProgramDesc out;
  for (const BlockDesc& block : program.blocks) {
    pb::BlockDesc* b = out.add_blocks();
    b->set_idx(block.idx);
    b->set_parent_idx(block.parent_idx);
    if (block.forward_block_idx != -1)
      b->set_forward_block_idx(block.forward_block_idx);
    for (const VarDesc& var : block.vars)
      PD_RETURN_IF_ERROR(Annotate(VarToProto(var, b->add_vars()),
                                  Place(block.idx, "variable", var.name)));
    for (const OpDesc& op : block.ops) OpToProto(op, b->add_ops());
  }
  out.mutable_version()->set_version(program.version);
  for (const auto& [name, version] : program.op_versions) {
    auto* pair = out.mutable_op_version_map()->add_pair();
    pair->set_op_name(name);
    pair->mutable_op_version()->set_version(version);
  }
  if (out.ByteSizeLong() > INT_MAX)
    return OutOfRange(
        "the program takes %d bytes; a ProgramDesc has at most %d",
        out.ByteSizeLong(), INT_MAX);
  return out.SerializeAsString();
}

absl::StatusOr<ProgramDesc> ReadProgram(const std::string& path) {
  PD_ASSIGN_OR_RETURN(auto file, ReadFile(path));
  auto program = ParseProgram(file.view());
  if (!program.ok())
    return Annotate(program.status(), absl::StrCat("'", path, "'"));
  return program;
}

absl::Status WriteProgram(const std::string& path, const ProgramDesc& program) {
  auto bytes = SerializeProgram(program);
  if (!bytes.ok())
    return Annotate(bytes.status(), absl::StrCat("'", path, "'"));
  return WriteFile(path, *bytes);
}

// ProgramDesc: blocks = 1, version = 4, op_version_map = 5, all messages; a
// block starts with idx = 1 and parent_idx = 2.
bool IsProgram(absl::string_view bytes) {
  ProtoField field;
  bool block = false;
  while (!bytes.empty()) {
    if (!TakeField(&bytes, &field)) return false;
    if (field.wire_type != 2) return false;
    if (field.number != 1) continue;
    ProtoField idx;
    if (!TakeField(&field.payload, &idx) || idx.number != 1 ||
        idx.wire_type != 0)
      return false;
    block = true;
  }
  return block;
}

}  // namespace pd
