// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/job_inherit.h"

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
    const std::unique_ptr<Message> taken(from.New());
    taken->CopyFrom(from);
    bool own = false;
    std::vector<const FieldDescriptor*> given;
    to->GetReflection()->ListFields(*to, &given);
    const auto reads = [&](const FieldDescriptor* field) {
      for (const char* name : reading.fields)
        if (field->name() == name) return true;
      return false;
    };
    for (const FieldDescriptor* field : given) own = own || reads(field);
    given.clear();
    taken->GetReflection()->ListFields(*taken, &given);
    for (const FieldDescriptor* field : given)
      if (!reads(field)) taken->GetReflection()->ClearField(taken.get(), field);
    if (!own) {
      to->MergeFrom(*taken);
      if (eval->pad_size() == 0) *eval->mutable_pad() = train.pad();
    }
  }
}

}  // namespace pd
