// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/picture_fields.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

Picture PictureOf(const FieldView& view) {
  return {reinterpret_cast<const uint8_t*>(view.data), view.height, view.width,
          view.channels};
}

}  // namespace

absl::StatusOr<PictureFields> PictureFields::Create(
    const Dataset& dataset, const std::vector<Transform>& transforms,
    uint64_t seed) {
  const std::vector<FieldSpec>& specs = dataset.fields();
  const auto pictures =
      std::count_if(specs.begin(), specs.end(),
                    [](const FieldSpec& s) { return s.is_image; });
  PictureFields fields;
  for (size_t i = 0; i < specs.size(); ++i) {
    const FieldSpec& spec = specs[i];
    if (spec.is_mask && fields.mask_.has_value())
      return InvalidArgument(
          "fields '%s' and '%s' are both masks; a record has one",
          specs[*fields.mask_].name, spec.name);
    if (spec.is_mask) fields.mask_ = i;
    if (!spec.is_image) continue;
    auto pipeline = Pipeline::Create(spec.shape, transforms);
    if (!pipeline.ok())
      return pictures == 1 ? pipeline.status()
                           : Annotate(pipeline.status(),
                                      absl::StrCat("field '", spec.name, "'"));
    const Shape shape = pipeline->picture_shape();
    fields.pictures_.push_back(
        {i, spec.name, *std::move(pipeline), shape[0], shape[1]});
  }
  if (pictures == 0 && fields.mask_.has_value())
    return InvalidArgument(
        "field '%s' is a mask, and the record has no picture that it is of",
        specs[*fields.mask_].name);
  PD_ASSIGN_OR_RETURN(fields.boxes_, BoxFields::Create(specs));
  if (pictures == 0 && !transforms.empty())
    return InvalidArgument(
        "there are transforms, but %s holds no uint8 images to apply them to",
        dataset.Describe(0));
  PD_RETURN_IF_ERROR(fields.Probe(dataset, seed));
  return fields;
}

// Sizes that the transforms leave open are those of record 0.
absl::Status PictureFields::Probe(const Dataset& dataset, uint64_t seed) {
  const auto open = std::find_if(
      pictures_.begin(), pictures_.end(),
      [](const Field& field) { return field.height < 0 || field.width < 0; });
  if (open == pictures_.end()) return absl::OkStatus();
  if (dataset.is_stream())
    return InvalidArgument(
        "the size of the pictures in field '%s' is open after the transforms, "
        "and a stream's first record is not read to learn it (add Resize or a "
        "crop)",
        open->name);
  Record record;
  PD_RETURN_IF_ERROR(dataset.Read(0, &record));
  TransformScratch scratch;
  for (Field& field : pictures_) {
    Picture picture = PictureOf(record.fields[field.number]);
    RandomStream random = TransformStream(seed, 0, 0);
    const absl::Status status =
        field.pipeline.Apply(&random, &scratch, &picture);
    if (!status.ok()) return Annotate(status, dataset.Describe(0));
    field.height = picture.height;
    field.width = picture.width;
  }
  return absl::OkStatus();
}

const PictureFields::Field* PictureFields::Find(size_t field) const {
  for (const Field& picture : pictures_)
    if (picture.number == field) return &picture;
  return nullptr;
}

bool PictureFields::Has(size_t field) const {
  return mask_ == field || Find(field) != nullptr;
}

DType PictureFields::dtype(size_t field) const {
  return mask_ == field ? DType::kInt64 : Find(field)->pipeline.output_dtype();
}

Shape PictureFields::shape(size_t field) const {
  if (mask_ == field) return {pictures_[0].height, pictures_[0].width};
  const Field* const picture = Find(field);
  return picture->pipeline.ArrayShape(picture->height, picture->width);
}

absl::Status PictureFields::CheckSize(const Field& field,
                                      const Picture& picture) {
  if (picture.height == field.height && picture.width == field.width)
    return absl::OkStatus();
  return InvalidArgument(
      "the image is %d x %d pixels after the transforms; the batch holds %d x "
      "%d (add Resize or a crop)",
      picture.width, picture.height, field.width, field.height);
}

absl::Status PictureFields::Write(const RandomStream& random,
                                  PictureScratch* scratch,
                                  absl::FunctionRef<std::byte*(size_t)> out,
                                  Record* record) const {
  for (size_t i = 0; i < pictures_.size(); ++i) {
    const Field& field = pictures_[i];
    RandomStream same = random;
    Picture picture = PictureOf(record->fields[field.number]), mask;
    Companions others;
    if (i == 0 && mask_.has_value()) {
      mask = PictureOf(record->fields[*mask_]);
      others.mask = &mask;
      others.mask_scratch = &scratch->mask;
    }
    if (i == 0 && boxes_.has_value()) {
      PD_RETURN_IF_ERROR(boxes_->Take(*record, picture, &scratch->boxes));
      others.boxes = &scratch->boxes;
      others.min_visible = boxes_->min_visible();
    }
    PD_RETURN_IF_ERROR(
        field.pipeline.Apply(&same, &scratch->picture, &picture, others));
    PD_RETURN_IF_ERROR(CheckSize(field, picture));
    field.pipeline.Write(picture, out(field.number));
    if (others.mask != nullptr)
      std::copy_n(mask.pixels, field.height * field.width,
                  reinterpret_cast<int64_t*>(out(*mask_)));
    if (others.boxes != nullptr) boxes_->Put(scratch->boxes, picture, record);
  }
  return absl::OkStatus();
}

}  // namespace pd
