// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/message_places.h"

#include <vector>

namespace pd {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void MessagePlaces::NoteAt(const std::string& path, const Message& message) {
  paths_[&message] = path;
  const Reflection* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const std::string inner = JoinPath(path, field->name());
    if (!field->is_repeated()) {
      NoteAt(inner, reflection->GetMessage(message, field));
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i)
      NoteAt(ElementPath(inner, i),
             reflection->GetRepeatedMessage(message, field, i));
  }
}

std::string MessagePlaces::PathOf(const Message& part) const {
  const auto it = paths_.find(&part);
  return it == paths_.end() ? "" : it->second;
}

std::string MessagePlaces::Where(const Message& part,
                                 absl::string_view field) const {
  std::string path = PathOf(part);
  if (!field.empty()) path = JoinPath(path, field);
  while (!path.empty()) {
    const auto place = written.find(path);
    if (place != written.end()) return place->second;
    const size_t cut = path.find_last_of(".[");
    path.resize(cut == std::string::npos ? 0 : cut);
  }
  return "";
}

}  // namespace pd
