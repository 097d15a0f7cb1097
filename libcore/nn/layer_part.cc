// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/layer_part.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const FieldDescriptor* KindField(const Message& message) {
  return message.GetReflection()->GetOneofFieldDescriptor(
      message, message.GetDescriptor()->FindOneofByName("kind"));
}

}  // namespace

std::string KindOf(const Message& message) {
  return KindField(message)->name();
}

std::string NumberedName(const job::Layer& layer,
                         std::map<std::string, int>* numbers) {
  const std::string kind = KindOf(layer);
  const int number = (*numbers)[kind]++;
  return layer.has_name() ? layer.name() : absl::StrCat(kind, "_", number);
}

const Message& MessageOf(const Message& message) {
  return message.GetReflection()->GetMessage(message, KindField(message));
}

absl::Status MakePart(const Message& part, const char* field,
                      job::Layer* layer) {
  const auto* name = part.GetDescriptor()->FindFieldByName("name");
  if (part.GetReflection()->HasField(part, name)) {
    layer->set_name(part.GetReflection()->GetString(part, name));
    if (layer->name().empty() ||
        layer->name().find_first_of("/[]=") != std::string::npos)
      return InvalidArgument(
          "a name is not empty and has no '/', '[', ']' or '='; got '%s'",
          layer->name());
  }
  const Message& message = MessageOf(part);
  layer->GetReflection()
      ->MutableMessage(layer,
                       layer->GetDescriptor()->FindFieldByName(KindOf(part)))
      ->CopyFrom(message);
  std::vector<const FieldDescriptor*> given;
  message.GetReflection()->ListFields(message, &given);
  for (const FieldDescriptor* one : given)
    if (one->options().GetExtension(job::rule).reads())
      return InvalidArgument(
          "'%s' stands in '%s', which reads what its layer hands it",
          one->name(), field);
  return absl::OkStatus();
}

}  // namespace pd
