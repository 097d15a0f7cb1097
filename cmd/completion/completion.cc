// SPDX-License-Identifier: Apache-2.0
#include "cmd/completion/completion.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/descriptor.h"
#include "libcore/base/error.h"
#include "libcore/nn/job.pb.h"

namespace pd {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

bool IsOneOf(absl::string_view word,
             std::initializer_list<absl::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Names of messages are keys in the shells.
std::string Key(const Descriptor* type) {
  return absl::StrReplaceAll(type->full_name(), {{"pd.job.", ""}, {".", "_"}});
}

std::string EnumWords(const EnumDescriptor* type) {
  std::vector<std::string> words;
  for (int i = 0; i < type->value_count(); ++i)
    words.push_back(type->value(i)->name());
  return absl::StrJoin(words, ",");
}

std::string Describe(const FieldDescriptor* field) {
  std::string mark = "=";
  std::string kind;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      const Descriptor* type = field->message_type();
      const bool named =
          field->is_repeated() && type->FindFieldByName("name") != nullptr;
      mark = named ? "@" : ".";
      kind = Key(type);
      break;
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      kind = "true,false";
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      kind = EnumWords(field->enum_type());
      break;
    default:
      if (field->options().GetExtension(job::rule).path()) kind = "FILES";
  }
  return absl::StrCat(field->name(), ":", mark, ":", kind);
}

void Collect(const Descriptor* type, std::set<const Descriptor*>* seen,
             std::vector<JobMessage>* out) {
  if (!seen->insert(type).second) return;
  std::vector<std::string> fields;
  for (int i = 0; i < type->field_count(); ++i)
    fields.push_back(Describe(type->field(i)));
  out->push_back({Key(type), absl::StrJoin(fields, " ")});
  for (int i = 0; i < type->field_count(); ++i)
    if (type->field(i)->message_type() != nullptr)
      Collect(type->field(i)->message_type(), seen, out);
}

}  // namespace

Offer OfferFor(const OptionEntry& option) {
  if (!option.words.empty()) return {Offer::Kind::kWords, option.words};
  if (option.value == "PATH=VALUE") return {Offer::Kind::kJobField, {}};
  if (IsOneOf(option.value, {"RUN", "DIR", "FOLDER"}))
    return {Offer::Kind::kFolders, {}};
  if (IsOneOf(option.value,
              {"FILE", "JOB", "MODEL", "PREFIX", "IN", "OUT", "PATH"}))
    return {Offer::Kind::kFiles, {}};
  return {};
}

std::vector<OptionEntry> AllOptions(const std::vector<OptionGroup>& groups) {
  std::vector<OptionEntry> options;
  for (const OptionGroup& group : groups)
    options.insert(options.end(), group.options.begin(), group.options.end());
  return options;
}

bool HasJobFields(const std::vector<OptionEntry>& options) {
  return std::any_of(options.begin(), options.end(), [](const auto& option) {
    return OfferFor(option).kind == Offer::Kind::kJobField;
  });
}

std::vector<JobMessage> JobMessages() {
  std::set<const Descriptor*> seen;
  std::vector<JobMessage> messages;
  Collect(job::Job::descriptor(), &seen, &messages);
  return messages;
}

std::string ShellQuote(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string PlainHelp(const OptionEntry& option) {
  return absl::StrReplaceAll(option.help, {{"`", ""}});
}

absl::StatusOr<std::string> Completion(absl::string_view shell,
                                       const std::string& tool,
                                       const std::vector<OptionGroup>& groups) {
  const std::vector<OptionEntry> options = AllOptions(groups);
  if (shell == "bash") return BashCompletion(tool, options);
  if (shell == "zsh") return ZshCompletion(tool, options);
  if (shell == "fish") return FishCompletion(tool, options);
  return InvalidArgument("'%s' is none of bash, zsh, fish", shell);
}

}  // namespace pd
