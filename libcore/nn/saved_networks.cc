// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/saved_networks.h"

#include "absl/strings/str_cat.h"
#include "libcore/nn/job.pb.h"

namespace pd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void Collect(const Message& message,
             std::vector<const job::SavedModel*>* models) {
  if (message.GetDescriptor() == job::SavedModel::descriptor())
    return models->push_back(static_cast<const job::SavedModel*>(&message));
  const google::protobuf::Reflection* values = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  values->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Collect(values->GetMessage(message, field), models);
      continue;
    }
    for (int i = 0; i < values->FieldSize(message, field); ++i)
      Collect(values->GetRepeatedMessage(message, field, i), models);
  }
}

}  // namespace

std::string NetworkKey(const job::SavedModel& model) {
  std::string key = model.file();
  for (const std::string& cut : model.cut()) absl::StrAppend(&key, "\n", cut);
  return key;
}

std::vector<const job::SavedModel*> SavedModelsOf(const job::Job& job) {
  std::vector<const job::SavedModel*> models;
  Collect(job.model(), &models);
  return models;
}

}  // namespace pd
