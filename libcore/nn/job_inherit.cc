// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/job_inherit.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "google/protobuf/message.h"
#include "libcore/nn/job_data.pb.h"

namespace pd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// By kind: the fields that say how records are read.
struct Reading {
  const char* kind;
  std::vector<const char*> fields;
};

const std::vector<Reading>& Readings() {
  static const auto* const kReadings = new std::vector<Reading>{
      {"csv", {"field", "header", "delimiter", "quoting"}},
      {"tsv", {"field", "header", "delimiter", "quoting"}},
      {"jsonl", {"field"}},
      {"npz", {"field"}},
      {"voc_detection", {"class", "background", "max_boxes"}},
      {"coco_detection", {"background", "max_boxes"}},
      {"libsvm",
       {"num_features", "sparse", "zero_based", "num_classes", "label_value"}},
      {"language_model", {"text", "seq_len", "input", "label"}},
      {"parallel_text",
       {"source", "target", "source_name", "target_name", "label_name"}},
  };
  return *kReadings;
}

bool Has(const Message& message, const FieldDescriptor* field) {
  return field->is_repeated()
             ? message.GetReflection()->FieldSize(message, field) > 0
             : message.GetReflection()->HasField(message, field);
}

bool Reads(const Reading& reading, const FieldDescriptor& field) {
  return std::any_of(reading.fields.begin(), reading.fields.end(),
                     [&](const char* name) { return field.name() == name; });
}

}  // namespace

void InheritFields(job::Data* data) {
  const job::DataSet& train = data->train();
  if (train.has_boxes() && !data->eval().has_boxes())
    *data->mutable_eval()->mutable_boxes() = train.boxes();
  const auto* kinds = job::DataSet::descriptor();
  for (const Reading& reading : Readings()) {
    const FieldDescriptor* kind = kinds->FindFieldByName(reading.kind);
    if (!Has(train, kind) || !Has(data->eval(), kind)) continue;
    const Message& from = train.GetReflection()->GetMessage(train, kind);
    job::DataSet* eval = data->mutable_eval();
    Message* to = eval->GetReflection()->MutableMessage(eval, kind);
    const FieldDescriptor* columns =
        to->GetDescriptor()->FindFieldByName("field");
    const bool own_columns = columns != nullptr && Has(*to, columns);
    // The fields of train that eval does not give, and nothing else.
    const std::unique_ptr<Message> taken(from.New());
    taken->CopyFrom(from);
    std::vector<const FieldDescriptor*> given;
    from.GetReflection()->ListFields(from, &given);
    for (const FieldDescriptor* field : given)
      if (!Reads(reading, *field) || Has(*to, field))
        taken->GetReflection()->ClearField(taken.get(), field);
    to->MergeFrom(*taken);
    if (!own_columns && eval->pad_size() == 0)
      *eval->mutable_pad() = train.pad();
  }
}

}  // namespace pd
