// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/layer_reads.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/job_text.h"

namespace pd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// `path` is the part's own place in the layer's message, "" or "input[0].".
absl::Status AddFields(const Message& part, const std::string& path,
                       const std::string& full_name, const LayerNames& names,
                       LayerReads* reads) {
  const google::protobuf::Reflection* values = part.GetReflection();
  for (int i = 0; i < part.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = part.GetDescriptor()->field(i);
    const bool list = field->is_repeated();
    const std::string called = path + field->name();
    if (list && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
        field->message_type() != job::Layer::descriptor()) {
      for (int k = 0; k < values->FieldSize(part, field); ++k)
        PD_RETURN_IF_ERROR(AddFields(values->GetRepeatedMessage(part, field, k),
                                     ElementPath(called, k) + ".", full_name,
                                     names, reads));
    }
    if (!field->options().GetExtension(job::rule).reads()) continue;
    const int count =
        list ? values->FieldSize(part, field) : values->HasField(part, field);
    for (int k = 0; k < count; ++k) {
      PD_ASSIGN_OR_RETURN(
          LayerInput input,
          names.Find(
              list ? values->GetRepeatedString(part, field, k)
                   : values->GetString(part, field),
              absl::StrCat("'", called, "' of layer '", full_name, "'")));
      if (input.left_out()) {
        if (field->options().GetExtension(job::rule).required() ||
            field->options().GetExtension(job::rule).has_min_count())
          return InvalidArgument(
              "'%s' of layer '%s' must be given; this use of the block leaves "
              "out its input",
              called, full_name);
        continue;
      }
      // A field of one name takes the first tensor of a group.
      std::vector<LayerInput>& list = reads->fields[called];
      if (input.group.empty()) list.push_back(input);
      for (const std::string& variable : input.group)
        if (list.empty() || field->is_repeated())
          list.push_back({variable, input.maker});
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string InputsInWords(const LayerSpec& spec) {
  if (spec.max_inputs == 1 && spec.min_inputs == 1) return "one input";
  if (spec.max_inputs == kAnyInputs)
    return absl::StrCat("at least ", spec.min_inputs, " inputs");
  if (spec.min_inputs == spec.max_inputs)
    return absl::StrCat(spec.max_inputs, " inputs");
  return absl::StrCat(spec.min_inputs, " to ", spec.max_inputs, " inputs");
}

bool TakesLast(const LayerSpec& spec, const job::Layer& layer,
               const OpRegistry& registry) {
  return spec.takes_last == nullptr ? spec.max_inputs > 0
                                    : spec.takes_last(layer, registry);
}

absl::Status FindFields(const Message& part, const std::string& full_name,
                        const LayerNames& names, LayerReads* reads) {
  return AddFields(part, "", full_name, names, reads);
}

}  // namespace pd
