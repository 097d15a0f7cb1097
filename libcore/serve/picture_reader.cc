// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/picture_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/image.h"
#include "libcore/base/error.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_data.h"
#include "libcore/train/prediction_data.h"
#include "libcore/train/preprocess.h"
#include "libcore/train/resolve_job.h"

namespace pd {
namespace serve {
namespace {

constexpr int64_t kMostPictureBytes = int64_t{1} << 30;

std::string JobOf(const LoadedModel& model) {
  const std::string path = model.run.empty()
                               ? PreprocessPath(model.path)
                               : absl::StrCat(model.run, "/job.pbtxt");
  return IsFile(path) ? path : "";
}

// The array of all pictures; the first one decides on its shape.
struct Rows {
  Shape shape;  // of one
  size_t bytes = 0;
  Array array;
  std::byte* to = nullptr;
};

absl::StatusOr<Rows> MakeRows(const Shape& row, int64_t count, DType dtype,
                              const Shape& input, const std::string& where) {
  Shape all = {count};
  all.insert(all.end(), row.begin(), row.end());
  PD_ASSIGN_OR_RETURN(const int64_t bytes, CheckedBytes(all, SizeOf(dtype)));
  if (bytes > kMostPictureBytes)
    return InvalidArgument("%s: %d pictures take %d bytes; expected at most %d",
                           where, count, bytes, kMostPictureBytes);
  // A network may take the elements in another shape.
  if (input.size() > 1 && input.size() != all.size()) {
    Shape other = input;
    other[0] = count;
    if (!IsDynamic(other) && NumElements(other) == NumElements(all))
      all = std::move(other);
  }
  Rows rows;
  rows.shape = row;
  rows.bytes = static_cast<size_t>(bytes / count);
  PD_ASSIGN_OR_RETURN(rows.array, NewArray(dtype, all, &rows.to));
  return rows;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PictureReader>> PictureReader::Open(
    const LoadedModel& model) {
  const std::string path = JobOf(model);
  if (path.empty() || model.feeds.size() != 1) return nullptr;
  PD_ASSIGN_OR_RETURN(const LoadedJob read, ReadJob(path));
  PD_ASSIGN_OR_RETURN(const LoadedJob job, ResolveJob(read, model.run));
  const job::Data& sets = job.proto().data();
  if (!sets.has_eval() && !sets.has_train()) return nullptr;
  const job::DataSet& set = sets.has_eval() ? sets.eval() : sets.train();
  const std::vector<Transform> transforms = TransformsOf(set);
  const VarDesc* const input = model.program.global().FindVar(model.feeds[0]);
  if (transforms.empty() || input == nullptr ||
      std::any_of(transforms.begin(), transforms.end(), IsRandom))
    return nullptr;
  const job::DataSet& first = FirstPartOf(set);
  const int64_t channels = first.has_mnist() || first.has_fashion_mnist()
                               ? 1
                               : PictureChannels(input->shape, transforms);
  auto pipeline = Pipeline::Create({-1, -1, channels}, transforms);
  if (!pipeline.ok()) return job.At(pipeline.status(), set);
  if (pipeline->output_dtype() != input->dtype) return nullptr;
  return std::make_shared<const PictureReader>(static_cast<int>(channels),
                                               *std::move(pipeline));
}

absl::StatusOr<Array> PictureReader::Read(
    const std::vector<absl::string_view>& pictures, DType dtype,
    const Shape& input, const std::string& where) const {
  Rows rows;
  Image image;
  TransformScratch scratch;
  ImageOptions options;
  options.channels = channels_;
  for (size_t i = 0; i < pictures.size(); ++i) {
    const auto refuse = [&](const absl::Status& status) {
      return InvalidArgument("%s: picture %d: %s", where, i, status.message());
    };
    const absl::Status decoded = DecodeImage(pictures[i], options, &image);
    if (!decoded.ok()) return refuse(decoded);
    Picture picture = {image.pixels.data(), image.height, image.width,
                       image.channels};
    // No transform here draws from it.
    RandomStream random = TransformStream(0, 0, 0);
    const absl::Status applied = pipeline_.Apply(&random, &scratch, &picture);
    if (!applied.ok()) return refuse(applied);
    const Shape row = pipeline_.ArrayShape(picture.height, picture.width);
    if (i == 0) {
      PD_ASSIGN_OR_RETURN(
          rows, MakeRows(row, static_cast<int64_t>(pictures.size()), dtype,
                         input, where));
    } else if (row != rows.shape) {
      return InvalidArgument(
          "%s: picture %d becomes %s, and the first %s: ask for each size "
          "alone",
          where, i, ToString(row), ToString(rows.shape));
    }
    pipeline_.Write(picture, rows.to + i * rows.bytes);
  }
  return std::move(rows.array);
}

absl::StatusOr<int64_t> PictureCount(const Shape& shape,
                                     const std::string& where) {
  const bool fits =
      (shape.size() == 1 || (shape.size() == 2 && shape[1] == 1)) &&
      shape[0] >= 1 && shape[0] <= kMostPictureBytes;
  if (fits) return shape[0];
  return InvalidArgument(
      "%s: pictures have the shape %s; expected [n], a file's bytes each",
      where, ToString(shape));
}

absl::StatusOr<std::vector<absl::string_view>> SplitBytes(
    absl::string_view bytes, int64_t count, const std::string& where) {
  constexpr size_t kLength = 4;
  std::vector<absl::string_view> parts;
  while (!bytes.empty()) {
    if (bytes.size() < kLength)
      return InvalidArgument(
          "%s: the length of element %d takes %d bytes; %d are left", where,
          parts.size(), kLength, bytes.size());
    size_t length = 0;
    for (size_t i = 0; i < kLength; ++i)
      length |= size_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    if (length > bytes.size() - kLength)
      return InvalidArgument("%s: element %d has %d bytes; %d are left", where,
                             parts.size(), length, bytes.size() - kLength);
    parts.push_back(bytes.substr(kLength, length));
    bytes.remove_prefix(kLength + length);
  }
  if (static_cast<int64_t>(parts.size()) == count) return parts;
  return InvalidArgument("%s: there are %d elements; the shape has %d", where,
                         parts.size(), count);
}

bool IsEncodedPicture(const nlohmann::json& value) {
  if (!value.is_object() || value.size() != 1) return false;
  const auto it = value.find("b64");
  return it != value.end() && it->is_string();
}

absl::StatusOr<std::vector<std::string>> PicturesOfJson(
    const nlohmann::json& list, const std::string& where) {
  if (!list.is_array() || list.empty())
    return InvalidArgument("%s: the pictures are no list of at least one",
                           where);
  std::vector<std::string> pictures;
  for (const nlohmann::json& value : list) {
    pictures.emplace_back();
    if (!IsEncodedPicture(value) ||
        !absl::Base64Unescape(value["b64"].get_ref<const std::string&>(),
                              &pictures.back()))
      return InvalidArgument(
          "%s: picture %d is no {\"b64\": \"...\"} in base64", where,
          pictures.size() - 1);
  }
  return pictures;
}

}  // namespace serve
}  // namespace pd
