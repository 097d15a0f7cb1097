// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/job_sizes.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/message.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_text.h"

namespace pd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The end of the size that begins with the '@' at `begin`.
size_t EndOfSize(absl::string_view text, size_t begin) {
  size_t end = begin + 1;
  while (end < text.size() &&
         absl::ascii_isalpha(static_cast<unsigned char>(text[end])))
    ++end;
  if (end == text.size() || text[end] != '(') return end;
  const size_t close = text.find(')', end);
  return close == absl::string_view::npos ? text.size() : close + 1;
}

// Where a size begins in the value of "num_classes=@classes"; npos where none
// does. Names of fields hold no '@'.
size_t SizeIn(absl::string_view argument) {
  const size_t equals = argument.find('=');
  return equals == absl::string_view::npos ? equals
                                           : argument.find('@', equals);
}

// Calls `see(path, string)` for every value of a block's arguments.
template <typename See>
void EachArgument(const std::string& path, const Message& message,
                  const See& see) {
  if (message.GetDescriptor() == job::UseBlock::descriptor()) {
    const auto& use = static_cast<const job::UseBlock&>(message);
    for (int i = 0; i < use.set_size(); ++i)
      see(ElementPath(JoinPath(path, "set"), i), use.set(i));
    return;
  }
  const auto* values = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  values->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const std::string inner = JoinPath(path, field->name());
    if (!field->is_repeated()) {
      EachArgument(inner, values->GetMessage(message, field), see);
      continue;
    }
    for (int i = 0; i < values->FieldSize(message, field); ++i)
      EachArgument(ElementPath(inner, i),
                   values->GetRepeatedMessage(message, field, i), see);
  }
}

std::string PlaceOf(const Places& places, std::string path) {
  for (;;) {
    const auto place = places.find(path);
    if (place != places.end()) return place->second;
    const size_t cut = path.find_last_of(".[");
    if (cut == std::string::npos) return "";
    path.resize(cut);
  }
}

}  // namespace

std::string SizePath(absl::string_view path) { return absl::StrCat(path, "@"); }

absl::StatusOr<OpenSize> ParseSize(absl::string_view text) {
  OpenSize size;
  size.text = std::string(text);
  absl::string_view rest = text;
  absl::ConsumePrefix(&rest, "@");
  const size_t open = rest.find('(');
  size.kind = std::string(rest.substr(0, open));
  bool right = size.kind == "classes" || size.kind == "columns" ||
               size.kind == "vocabulary";
  if (open != absl::string_view::npos) {
    rest.remove_prefix(open + 1);
    right = right && absl::ConsumeSuffix(&rest, ")") && !rest.empty();
    size.field = std::string(rest);
  }
  if (right) return size;
  return InvalidArgument(
      "'%s' is no size that data say; there are @classes, @columns and "
      "@vocabulary, and @classes(FIELD) of a certain field",
      text);
}

std::vector<OpenSize> FindSizes(const job::Job& job, const Places& places) {
  std::vector<OpenSize> sizes;
  for (const auto& [path, text] : places) {
    if (!absl::EndsWith(path, "@")) continue;
    absl::StatusOr<OpenSize> size = ParseSize(text);
    PD_INVARIANT(size.ok());  // the reader took it
    size->path = path.substr(0, path.size() - 1);
    size->place = PlaceOf(places, size->path);
    sizes.push_back(*std::move(size));
  }
  EachArgument("", job, [&](const std::string& path, const std::string& value) {
    const size_t at = SizeIn(value);
    if (at == std::string::npos) return;
    const std::string text = value.substr(at, EndOfSize(value, at) - at);
    // One that is none is an error when somebody asks for its number.
    OpenSize size = ParseSize(text).value_or(OpenSize());
    size.text = text;
    size.path = path;
    size.place = PlaceOf(places, path);
    sizes.push_back(std::move(size));
  });
  return sizes;
}

absl::Status SetSizes(const SizeFn& number, job::Job* job, Places* places) {
  // An argument may hold several, which are found one after the other.
  for (std::vector<OpenSize> sizes = FindSizes(*job, *places); !sizes.empty();
       sizes = FindSizes(*job, *places)) {
    for (const OpenSize& size : sizes) {
      PD_RETURN_IF_ERROR(Annotate(ParseSize(size.text).status(), size.place));
      PD_ASSIGN_OR_RETURN(const int64_t value, number(size));
      std::string text = absl::StrCat(value);
      if (places->count(SizePath(size.path)) == 0) {
        std::string argument;
        EachArgument("", *job,
                     [&](const std::string& path, const std::string& old) {
                       if (path == size.path) argument = old;
                     });
        argument.replace(SizeIn(argument), size.text.size(), text);
        text = absl::StrCat("\"", absl::CEscape(argument), "\"");
      }
      PD_RETURN_IF_ERROR(Annotate(
          SetByPath(size.path, text, size.place, job, places), size.place));
    }
  }
  return absl::OkStatus();
}

}  // namespace pd
