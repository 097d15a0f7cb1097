// SPDX-License-Identifier: Apache-2.0
// Overrides: "model.layer[conv1].conv2d.groups=2". The path is walked with
// reflection, so every field of the schema can be set.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_sizes.h"
#include "libcore/nn/job_text.h"
#include "libcore/nn/job_value.h"

namespace pd {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

// "3-7", "conv1": one step of an override's path.
struct PathStep {
  std::string name;
  std::string selector;  // between the brackets
  bool selected = false;
};

absl::StatusOr<std::vector<PathStep>> SplitPath(absl::string_view path) {
  std::vector<PathStep> steps;
  size_t i = 0;
  while (true) {
    PathStep step;
    while (i < path.size() && path[i] != '.' && path[i] != '[')
      step.name += path[i++];
    if (step.name.empty())
      return InvalidArgument("a field's name is missing in the path");
    if (i < path.size() && path[i] == '[') {
      const size_t end = path.find(']', i);
      if (end == absl::string_view::npos)
        return InvalidArgument("']' is missing in the path");
      step.selector = std::string(path.substr(i + 1, end - i - 1));
      step.selected = true;
      i = end + 1;
    }
    steps.push_back(std::move(step));
    if (i == path.size()) return steps;
    if (path[i] != '.')
      return InvalidArgument("expected '.' after ']' in the path");
    ++i;
  }
}

// The index that a step means in a repeated field.
absl::StatusOr<int> SelectElement(const PathStep& step, const Message& message,
                                  const FieldDescriptor* field) {
  const int count = message.GetReflection()->FieldSize(message, field);
  const bool named = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  std::vector<std::string> names;
  for (int i = 0; named && i < count; ++i)
    names.push_back(ElementName(message, field, i));
  if (!step.selected) {
    if (count == 1) return 0;
    return InvalidArgument(
        "there are %d '%s': say which with %s[0] or %s[NAME]", count, step.name,
        step.name, step.name);
  }
  for (int i = 0; i < static_cast<int>(names.size()); ++i)
    if (!names[static_cast<size_t>(i)].empty() &&
        names[static_cast<size_t>(i)] == step.selector)
      return i;
  int index = 0;
  if (absl::SimpleAtoi(step.selector, &index)) {
    if (index >= 0 && index < count) return index;
    return InvalidArgument("there is no '%s[%d]': there are %d", step.name,
                           index, count);
  }
  const std::string nearest = Nearest(step.selector, names);
  return InvalidArgument(
      "no '%s' has the name '%s'%s", step.name, step.selector,
      nearest.empty() ? "" : absl::StrCat(", did you mean '", nearest, "'?"));
}

// Where an override stands while it walks down its path.
struct Cursor {
  Message* message;
  std::string path;
  std::string place;
  Places* places;
};

// Choosing one field of a oneof takes the other away, with its places.
void DropOthers(const FieldDescriptor* field, Cursor* at) {
  if (field->containing_oneof() == nullptr) return;
  const FieldDescriptor* set =
      at->message->GetReflection()->GetOneofFieldDescriptor(
          *at->message, field->containing_oneof());
  if (set != nullptr && set != field)
    ErasePlaces(JoinPath(at->path, set->name()), at->places);
}

absl::StatusOr<const FieldDescriptor*> FieldOfStep(const PathStep& step,
                                                   const Cursor& at) {
  const Descriptor* type = at.message->GetDescriptor();
  const FieldDescriptor* field = type->FindFieldByName(step.name);
  if (field == nullptr)
    return InvalidArgument("%s",
                           UnknownFieldMessage(*type, step.name, at.path));
  if (step.selected && !field->is_repeated())
    return InvalidArgument("'%s' is not a list", step.name);
  return field;
}

absl::Status StepInto(const PathStep& step, Cursor* at) {
  PD_ASSIGN_OR_RETURN(const FieldDescriptor* field, FieldOfStep(step, *at));
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
    return InvalidArgument("'%s' is a value: it has no fields", step.name);
  const Reflection* reflection = at->message->GetReflection();
  DropOthers(field, at);
  at->path = JoinPath(at->path, step.name);
  at->places->emplace(at->path, at->place);
  if (!field->is_repeated()) {
    at->message = reflection->MutableMessage(at->message, field);
    return absl::OkStatus();
  }
  int index = 0;
  if (reflection->FieldSize(*at->message, field) == 0 && !step.selected) {
    reflection->AddMessage(at->message, field);
  } else {
    PD_ASSIGN_OR_RETURN(index, SelectElement(step, *at->message, field));
  }
  at->message = reflection->MutableRepeatedMessage(at->message, field, index);
  at->path = ElementPath(at->path, index);
  at->places->emplace(at->path, at->place);
  return absl::OkStatus();
}

bool StartsWithAny(absl::string_view text, absl::string_view characters) {
  return !text.empty() &&
         characters.find(text.front()) != absl::string_view::npos;
}

// Takes an element away; those behind it move up with their places.
absl::Status RemoveElement(const PathStep& step, const FieldDescriptor* field,
                           Cursor* at) {
  PD_ASSIGN_OR_RETURN(const int index,
                      SelectElement(step, *at->message, field));
  const Reflection* reflection = at->message->GetReflection();
  const std::string path = JoinPath(at->path, step.name);
  const int count = reflection->FieldSize(*at->message, field);
  ErasePlaces(ElementPath(path, index), at->places);
  for (int i = index; i + 1 < count; ++i) {
    reflection->SwapElements(at->message, field, i, i + 1);
    MovePlaces(ElementPath(path, i + 1), ElementPath(path, i), at->places);
  }
  reflection->RemoveLast(at->message, field);
  return absl::OkStatus();
}

// One element of a list gets a value: it is read into an empty list of its own.
absl::Status SetElement(const PathStep& step, const FieldDescriptor* field,
                        absl::string_view value, Cursor* at) {
  PD_ASSIGN_OR_RETURN(const int index,
                      SelectElement(step, *at->message, field));
  const Reflection* reflection = at->message->GetReflection();
  const std::string path = ElementPath(JoinPath(at->path, step.name), index);
  std::unique_ptr<Message> other(at->message->New());
  Places read;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
      !StartsWithAny(value, "\"'")) {
    PD_RETURN_IF_ERROR(SetScalar({ScalarToken::kString, std::string(value)},
                                 field, other.get()));
  } else {
    PD_RETURN_IF_ERROR(
        ReadTextValue(value, field, path, at->place, other.get(), &read));
  }
  if (other->GetReflection()->FieldSize(*other, field) != 1)
    return InvalidArgument("expected one value");
  // The new one is put last, moved to its place, and the old one dropped.
  at->message->MergeFrom(*other);
  const int last = reflection->FieldSize(*at->message, field) - 1;
  reflection->SwapElements(at->message, field, index, last);
  reflection->RemoveLast(at->message, field);
  ErasePlaces(path, at->places);
  at->places->emplace(path, at->place);
  for (const auto& [element, text] : read)
    if (absl::EndsWith(element, "@")) at->places->emplace(SizePath(path), text);
  return absl::OkStatus();
}

absl::Status SetLast(const PathStep& step, absl::string_view value,
                     Cursor* at) {
  PD_ASSIGN_OR_RETURN(const FieldDescriptor* field, FieldOfStep(step, *at));
  const std::string path = JoinPath(at->path, step.name);
  const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (step.selected)
    return value.empty() ? RemoveElement(step, field, at)
                         : SetElement(step, field, value, at);
  DropOthers(field, at);
  ErasePlaces(path, at->places);
  at->message->GetReflection()->ClearField(at->message, field);
  if (value.empty()) return absl::OkStatus();
  at->places->emplace(path, at->place);
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
      !StartsWithAny(value, "\"'") &&
      !(field->is_repeated() && StartsWithAny(value, "["))) {
    if (field->is_repeated())
      at->places->emplace(ElementPath(path, 0), at->place);
    return SetScalar({ScalarToken::kString, std::string(value)}, field,
                     at->message);
  }
  std::string text(value);
  if (field->is_repeated() && !is_message && !StartsWithAny(value, "["))
    text = absl::StrCat("[", value, "]");
  return ReadTextValue(text, field, path, at->place, at->message, at->places);
}

}  // namespace

absl::Status SetByPath(absl::string_view path, absl::string_view value,
                       const std::string& place, Message* message,
                       Places* places) {
  Cursor at{message, "", place, places};
  PD_ASSIGN_OR_RETURN(const std::vector<PathStep> steps, SplitPath(path));
  for (size_t i = 0; i + 1 < steps.size(); ++i)
    PD_RETURN_IF_ERROR(StepInto(steps[i], &at));
  return SetLast(steps.back(), value, &at);
}

absl::Status ApplyOverride(absl::string_view override_text, Message* message,
                           Places* places) {
  size_t equals = 0;
  bool in_brackets = false;
  for (; equals < override_text.size(); ++equals) {
    const char c = override_text[equals];
    if (c == '[') in_brackets = true;
    if (c == ']') in_brackets = false;
    if (c == '=' && !in_brackets) break;
  }
  if (equals == override_text.size())
    return InvalidArgument("-o %s: expected PATH=VALUE", override_text);
  const absl::string_view path =
      absl::StripAsciiWhitespace(override_text.substr(0, equals));
  const absl::string_view value =
      absl::StripAsciiWhitespace(override_text.substr(equals + 1));
  const std::string place = absl::StrCat("-o ", path);
  const absl::Status status = SetByPath(path, value, place, message, places);
  if (status.ok() || absl::StartsWith(status.message(), place + ": "))
    return status;
  return Annotate(status, place);
}

}  // namespace pd
