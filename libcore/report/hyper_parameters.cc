// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/hyper_parameters.h"

#include <google/protobuf/message.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "libcore/nn/job.pb.h"

namespace pd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void Collect(const Message& message, const std::string& prefix,
             std::vector<LogParameter>* out);

void Take(const Message& message, const FieldDescriptor& field,
          const std::string& path, std::vector<LogParameter>* out) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      Collect(reflection.GetMessage(message, &field), path + ".", out);
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      out->push_back({path, reflection.GetEnum(message, &field)->name()});
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      out->push_back({path, reflection.GetString(message, &field)});
      return;
    case FieldDescriptor::CPPTYPE_BOOL:
      out->push_back({path, reflection.GetBool(message, &field)});
      return;
    case FieldDescriptor::CPPTYPE_FLOAT:
      out->push_back(
          {path, static_cast<double>(reflection.GetFloat(message, &field))});
      return;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      out->push_back({path, reflection.GetDouble(message, &field)});
      return;
    case FieldDescriptor::CPPTYPE_INT32:
      out->push_back({path, int64_t{reflection.GetInt32(message, &field)}});
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      out->push_back({path, reflection.GetInt64(message, &field)});
      return;
    case FieldDescriptor::CPPTYPE_UINT32:
      out->push_back({path, int64_t{reflection.GetUInt32(message, &field)}});
      return;
    case FieldDescriptor::CPPTYPE_UINT64:
      out->push_back(
          {path, static_cast<int64_t>(reflection.GetUInt64(message, &field))});
      return;
  }
}

// Fields that are set, and those with a default in messages that are.
void Collect(const Message& message, const std::string& prefix,
             std::vector<LogParameter>* out) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (field.is_repeated()) continue;
    const bool set = message.GetReflection()->HasField(message, &field);
    if (!set &&
        (field.containing_oneof() != nullptr || !field.has_default_value()))
      continue;
    Take(message, field, absl::StrCat(prefix, field.name()), out);
  }
}

}  // namespace

std::vector<LogParameter> HyperParametersOf(const LoadedJob& job) {
  std::vector<LogParameter> out;
  const job::Job& proto = job.proto();
  Collect(proto.optimizer(), "optimizer.", &out);
  out.push_back(
      {"data.train.batch_size", int64_t{proto.data().train().batch_size()}});
  out.push_back({"train.epochs", int64_t{proto.train().epochs()}});
  if (proto.train().steps() > 0)
    out.push_back({"train.steps", proto.train().steps()});
  out.push_back({"train.seed", static_cast<int64_t>(proto.train().seed())});
  return out;
}

}  // namespace pd
