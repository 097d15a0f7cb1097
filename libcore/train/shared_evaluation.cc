// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/shared_evaluation.h"

#include <cstring>
#include <optional>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ir/array.h"
#include "libcore/train/batch_outcome.pb.h"

namespace pd {
namespace {

// Protobuf takes messages below 2 GiB.
constexpr size_t kMostBytes = size_t{1} << 31;

void Put(const std::string& name, DType dtype, const Shape& shape,
         const std::byte* data, outcome::Values* values) {
  values->set_name(name);
  values->set_dtype(std::string(Name(dtype)));
  for (const int64_t extent : shape) values->add_shape(extent);
  values->set_data(reinterpret_cast<const char*>(data),
                   static_cast<size_t>(NumElements(shape)) * SizeOf(dtype));
}

absl::StatusOr<std::string> TextOf(const outcome::BatchOutcome& message) {
  if (message.ByteSizeLong() >= kMostBytes)
    return Unimplemented(
        "batch %d has results of %d bytes, which is too much to hand to other "
        "processes; make batches smaller",
        message.index(), message.ByteSizeLong());
  return message.SerializeAsString();
}

absl::Status NotOurs() {
  return DataLoss(
      "another process sent results of an evaluation that make no sense");
}

// A copy of the values, aligned.
absl::StatusOr<Array> Take(const outcome::Values& values) {
  const std::optional<DType> dtype = DTypeFromName(values.dtype());
  if (!dtype.has_value()) return NotOurs();
  std::byte* data = nullptr;
  PD_ASSIGN_OR_RETURN(
      Array array,
      NewArray(*dtype, {values.shape().begin(), values.shape().end()}, &data));
  if (array.size_bytes() != values.data().size()) return NotOurs();
  std::memcpy(data, values.data().data(), values.data().size());
  return array;
}

absl::Status Deliver(
    const outcome::BatchOutcome& message,
    const std::function<absl::Status(const BatchOutcome&)>& see) {
  BatchOutcome result;
  std::vector<Array> arrays;  // own the bytes
  result.batch.index = message.index();
  result.batch.records = {message.records().begin(), message.records().end()};
  result.batch.size = result.batch.whole = message.records_size();
  for (const outcome::Values& values : message.fields()) {
    PD_ASSIGN_OR_RETURN(Array array, Take(values));
    result.batch.fields.push_back({values.name(), array.dtype, array.shape,
                                   const_cast<std::byte*>(array.bytes.get())});
    arrays.push_back(std::move(array));
  }
  for (const outcome::Values& values : message.outputs()) {
    PD_ASSIGN_OR_RETURN(Array array, Take(values));
    Tensor tensor(array.dtype, array.shape);
    tensor.Attach(const_cast<std::byte*>(array.bytes.get()));
    result.outputs.push_back(std::move(tensor));
    arrays.push_back(std::move(array));
  }
  return see(result);
}

}  // namespace

absl::StatusOr<bool> SharedEvaluation::Round(
    const Batch* batch, const std::vector<const Tensor*>& outputs,
    const BadRecords& left_out,
    const std::function<absl::Status(const BatchOutcome&)>& see) {
  outcome::BatchOutcome own;
  own.set_end(batch == nullptr);
  if (batch == nullptr) {
    own.set_left_out(left_out.count);
    for (const std::string& text : left_out.first) own.add_left_out_first(text);
  } else {
    own.set_index(batch->index);
    for (const int64_t record : batch->records) own.add_records(record);
    if (batch->size > 0) {
      for (const BatchField& field : batch->fields)
        if (wanted_(field.name))
          Put(field.name, field.dtype, field.shape, field.data,
              own.add_fields());
      for (const Tensor* output : outputs)
        Put("", output->dtype(), output->shape(),
            reinterpret_cast<const std::byte*>(output->raw()),
            own.add_outputs());
    }
  }
  PD_ASSIGN_OR_RETURN(const std::string text, TextOf(own));
  PD_ASSIGN_OR_RETURN(const auto texts, processes_.GatherTexts(text));
  bool more = false;
  BadRecords all;
  for (const std::string& other : texts) {
    outcome::BatchOutcome message;
    if (!message.ParseFromString(other)) return NotOurs();
    more |= !message.end();
    all.Add(BadRecords{
        message.left_out(),
        {message.left_out_first().begin(), message.left_out_first().end()}});
    if (message.records_size() > 0) PD_RETURN_IF_ERROR(Deliver(message, see));
  }
  left_out_ = std::move(all);
  return more;
}

}  // namespace pd
