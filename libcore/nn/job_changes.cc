// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/job_changes.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_text.h"

namespace pd {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;

std::string AbsolutePath(const std::string& file) {
  if (file.empty() || file == "-") return file;
  std::error_code error;
  const auto absolute = std::filesystem::absolute(file, error);
  return error ? file : absolute.lexically_normal().string();
}

// Long values are cut: the place says where the whole one is.
std::string Shortened(std::string text) {
  constexpr size_t kMost = 80;
  if (text.size() <= kMost) return text;
  size_t cut = kMost - 4;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80)
    --cut;  // not inside a character
  text.resize(cut);
  return text + " ...";
}

// Walks two messages of one type side by side.
class Comparer {
 public:
  explicit Comparer(const LoadedJob& job) : job_(job) {}

  void Compare(const Message& before, const Message& after,
               const std::string& field, const std::string& path) {
    const Descriptor* type = before.GetDescriptor();
    for (int i = 0; i < type->field_count(); ++i)
      if (type->field(i)->containing_oneof() == nullptr)
        CompareField(before, after, type->field(i), field, path);
    for (int i = 0; i < type->oneof_decl_count(); ++i)
      CompareChosen(before, after, type->oneof_decl(i), field, path);
  }

  std::vector<JobChange> Take() { return std::move(changes_); }

 private:
  // `index` -1: of a field that is no list.
  static std::string ValueText(const Message& holder,
                               const FieldDescriptor* field, int index) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      const Reflection* reflection = holder.GetReflection();
      std::string text =
          index < 0 ? reflection->GetString(holder, field)
                    : reflection->GetRepeatedString(holder, field, index);
      if (field->options().GetExtension(job::rule).path())
        text = AbsolutePath(text);
      return absl::StrCat("\"", text, "\"");
    }
    std::string text;
    google::protobuf::TextFormat::Printer printer;
    printer.SetSingleLineMode(true);
    printer.SetUseUtf8StringEscaping(true);
    printer.PrintFieldValueToString(holder, field, index, &text);
    while (!text.empty() && text.back() == ' ') text.pop_back();
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return text;
    return text.empty() ? "{}" : absl::StrCat("{ ", text, " }");
  }

  // The value that counts: the one given, or the default; "" where the schema
  // says the default in words.
  static std::string Effective(const Message& holder,
                               const FieldDescriptor* field) {
    const bool said =
        field->options().GetExtension(job::rule).has_otherwise() ||
        !field->has_default_value();
    if (!holder.GetReflection()->HasField(holder, field) && said) return "";
    return ValueText(holder, field, -1);
  }

  void Add(const Message& holder, const FieldDescriptor* field,
           const std::string& names, const std::string& path,
           const std::string& before, const std::string& after,
           absl::string_view placed_field) {
    JobChange change{names,
                     path,
                     Shortened(before),
                     Shortened(after),
                     job_.Where(holder, placed_field),
                     ""};
    if (field->options().GetExtension(job::rule).path() && before.size() > 2)
      change.old_file = before.substr(1, before.size() - 2);  // without quotes
    changes_.push_back(std::move(change));
  }

  void CompareField(const Message& before, const Message& after,
                    const FieldDescriptor* field, const std::string& names,
                    const std::string& path) {
    const std::string its_names = JoinPath(names, field->name());
    const std::string its_path = JoinPath(path, field->name());
    if (field->is_repeated())
      return CompareList(before, after, field, its_names, its_path);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const Reflection* reflection = before.GetReflection();
      const bool had = reflection->HasField(before, field);
      const bool has = reflection->HasField(after, field);
      // A message that means the same empty and absent is compared by fields.
      const bool marks =
          field->options().GetExtension(job::rule).has_otherwise();
      if ((had && has) || (had != has && !marks)) {
        const size_t first = changes_.size();
        Compare(reflection->GetMessage(before, field),
                reflection->GetMessage(after, field), its_names, its_path);
        // Messages that are not written have no place of their own.
        for (size_t i = first; i < changes_.size() && !has; ++i)
          changes_[i].place = job_.Where(after, field->name());
        return;
      }
      if (had == has) return;
    }
    const std::string was = Effective(before, field);
    const std::string is = Effective(after, field);
    if (was != is)
      Add(after, field, its_names, its_path, was, is, field->name());
  }

  // Alternatives: another one is one difference, not two.
  void CompareChosen(const Message& before, const Message& after,
                     const OneofDescriptor* oneof, const std::string& names,
                     const std::string& path) {
    const Reflection* reflection = before.GetReflection();
    const FieldDescriptor* was =
        reflection->GetOneofFieldDescriptor(before, oneof);
    const FieldDescriptor* is =
        reflection->GetOneofFieldDescriptor(after, oneof);
    if (was == is) {
      if (is != nullptr) CompareField(before, after, is, names, path);
      return;
    }
    const auto text = [](const Message& holder, const FieldDescriptor* field) {
      return field == nullptr ? ""
                              : absl::StrCat(field->name(), " ",
                                             ValueText(holder, field, -1));
    };
    const FieldDescriptor* named = is != nullptr ? is : was;
    Add(after, named, JoinPath(names, named->name()),
        path.empty() ? named->name() : path, text(before, was), text(after, is),
        is != nullptr ? is->name() : "");
  }

  bool SameElement(const Message& before, int i, const Message& after, int k,
                   const FieldDescriptor* field) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
      return ValueText(before, field, i) == ValueText(after, field, k);
    const Reflection* reflection = before.GetReflection();
    Comparer inner(job_);
    inner.Compare(reflection->GetRepeatedMessage(before, field, i),
                  reflection->GetRepeatedMessage(after, field, k), "", "");
    return inner.changes_.empty();
  }

  // "model.layer[fc1]"; by number where the element has no name.
  static std::string ElementOf(const Message& holder,
                               const FieldDescriptor* field, int index,
                               const std::string& path) {
    const bool named = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    const std::string name = named ? ElementName(holder, field, index) : "";
    return name.empty() ? ElementPath(path, index)
                        : absl::StrCat(path, "[", name, "]");
  }

  void CompareList(const Message& before, const Message& after,
                   const FieldDescriptor* field, const std::string& names,
                   const std::string& path) {
    const Reflection* reflection = before.GetReflection();
    const int had = reflection->FieldSize(before, field);
    const int has = reflection->FieldSize(after, field);
    int head = 0, tail = 0;
    const int both = std::min(had, has);
    while (head < both && SameElement(before, head, after, head, field)) ++head;
    while (tail < both - head &&
           SameElement(before, had - 1 - tail, after, has - 1 - tail, field))
      ++tail;
    const bool messages = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    const int pairs = had == has ? both - tail : head;
    for (int i = head; i < pairs; ++i) {
      if (SameElement(before, i, after, i, field)) continue;
      const std::string element = ElementOf(after, field, i, path);
      if (messages)
        Compare(reflection->GetRepeatedMessage(before, field, i),
                reflection->GetRepeatedMessage(after, field, i), names,
                element);
      else
        Add(after, field, names, element, ValueText(before, field, i),
            ValueText(after, field, i), ElementPath(field->name(), i));
    }
    for (int i = pairs; i < had - tail; ++i)
      Add(after, field, names, ElementOf(before, field, i, path),
          ValueText(before, field, i), "", field->name());
    for (int i = pairs; i < has - tail; ++i)
      Add(after, field, names, ElementOf(after, field, i, path), "",
          ValueText(after, field, i), ElementPath(field->name(), i));
  }

  const LoadedJob& job_;
  std::vector<JobChange> changes_;
};

}  // namespace

std::string JobChange::ToString() const {
  const std::string is = after.empty() ? "not given" : after;
  const std::string was = before.empty() ? "not given" : before;
  return absl::StrCat("'", path, "' is ", is, ", was ", was, " (", place, ")");
}

std::vector<JobChange> CompareJobs(const LoadedJob& before,
                                   const LoadedJob& after) {
  Comparer comparer(after);
  comparer.Compare(before.proto(), after.proto(), "", "");
  return comparer.Take();
}

}  // namespace pd
