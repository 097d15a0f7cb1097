// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/row_field.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <utility>

#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/half.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// The name of class 0 where it stands for every other text.
constexpr char kOther[] = "(other)";

// For a place: the only number, that place's, or what holds without any.
double Of(const std::vector<double>& values, size_t place, double otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values[0] : values[place];
}

}  // namespace

FieldSpec RowField::Spec(const Shape& shape) const {
  FieldSpec spec;
  spec.name = name_;
  spec.dtype = takes_text() ? DType::kInt64 : options_.dtype;
  spec.shape = kind_ == Kind::kText ? Shape{-1} : shape;
  if (kind_ != Kind::kPicture) return spec;
  const PictureFileOptions& picture = *options_.picture;
  spec.dtype = DType::kUInt8;
  spec.shape = {-1, -1, picture.grey || picture.mask ? 1 : 3};
  spec.is_image = !picture.mask;
  spec.is_mask = picture.mask;
  return spec;
}

int64_t HashBucket(absl::string_view text, size_t place, int64_t buckets) {
  // The finalizer of MurmurHash3: FNV's high bits alone are not random enough.
  uint64_t hash = StreamOf(text) ^ (0x9E3779B97F4A7C15ull * place);
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdull;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53ull;
  hash ^= hash >> 33;
  return static_cast<int64_t>(hash % static_cast<uint64_t>(buckets));
}

absl::StatusOr<RowField> RowField::Create(const std::string& name,
                                          const ValueOptions& options,
                                          const Shape& shape,
                                          TableDataset* table) {
  RowField field;
  field.name_ = name;
  field.options_ = options;
  field.table_ = table;
  if (options.hash_buckets > 0) field.kind_ = Kind::kHash;
  if (options.categories.has_value()) field.kind_ = Kind::kCategory;
  if (options.text.has_value()) field.kind_ = Kind::kText;
  if (options.picture.has_value()) field.kind_ = Kind::kPicture;
  FieldSpec spec = field.Spec(shape);
  PD_RETURN_IF_ERROR(field.Check(
      IsDynamic(spec.shape) ? 0
                            : static_cast<size_t>(NumElements(spec.shape))));
  for (const FieldSpec& other : table->fields())
    if (other.name == name)
      return AlreadyExists("two fields are named '%s'", name);
  if (field.kind_ == Kind::kPicture) {
    ImageOptions image;
    image.channels = options.picture->grey ? 1 : 3;
    image.mask = options.picture->mask;
    field.field_ = table->AddPicture(std::move(spec), image, options.classes);
    return field;
  }
  field.field_ = table->AddField(std::move(spec));
  if (field.kind_ == Kind::kText) {
    auto encoder = TextEncoder::Create(*options.text);
    if (!encoder.ok())
      return Annotate(encoder.status(), absl::StrCat("field '", name, "'"));
    field.encoder_ = *std::move(encoder);
    table->set_pad_value(field.field_,
                         static_cast<double>(field.encoder_->pad()));
  } else if (field.kind_ == Kind::kCategory &&
             options.categories->names == nullptr) {
    field.names_.emplace();
  }
  return field;
}

absl::Status RowField::Check(size_t width) const {
  const int kinds = (options_.hash_buckets > 0) +
                    options_.categories.has_value() +
                    options_.text.has_value() + options_.picture.has_value();
  if (kinds > 1)
    return InvalidArgument(
        "field '%s': a text is hashed, the name of a class, cut into tokens, "
        "or a picture's path; only one of them",
        name_);
  if (options_.picture.has_value() && !options_.picture->mask &&
      options_.classes > 0)
    return InvalidArgument(
        "field '%s' is a picture; num_classes is for masks (mask: true)",
        name_);
  if (options_.picture.has_value() && options_.picture->mask &&
      options_.picture->grey)
    return InvalidArgument(
        "field '%s' is a mask, which has no colours to "
        "make grey",
        name_);
  for (const std::vector<double>* values : {&options_.mean, &options_.std}) {
    if (values->size() > 1 && values->size() != width)
      return InvalidArgument(
          "field '%s' has %d columns and %d numbers to scale them", name_,
          width, values->size());
    if (!values->empty() && (kinds > 0 || !IsFloating(options_.dtype)))
      return InvalidArgument("field '%s' is %s; only floats are scaled", name_,
                             Name(Spec({}).dtype));
  }
  if (options_.log1p && (kinds > 0 || !IsFloating(options_.dtype)))
    return InvalidArgument("field '%s': only floats have a logarithm", name_);
  switch (options_.dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kFloat16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt8:
    case DType::kBool:
      return absl::OkStatus();
    default:
      return Unimplemented(
          "field '%s' is %s; expected float32, float64, float16, int32, int64, "
          "uint8 or bool",
          name_, Name(options_.dtype));
  }
}

template <typename T>
absl::Status RowField::Push(double value) {
  if constexpr (std::numeric_limits<T>::is_integer) {
    // Integers up to here are exact in a double.
    const double limit = std::min(
        9007199254740992.0, static_cast<double>(std::numeric_limits<T>::max()));
    if (!(std::fabs(value) <= limit) || value != std::floor(value))
      return DataLoss("%g in field '%s' is not an integer", value, name_);
    if (value < static_cast<double>(std::numeric_limits<T>::min()))
      return DataLoss("%g in field '%s' is below 0", value, name_);
  }
  table_->Push(field_, static_cast<T>(value));
  return absl::OkStatus();
}

absl::Status RowField::Number(double value, size_t place) {
  if (options_.classes > 0) {
    if (value != std::floor(value))
      return DataLoss("%g in field '%s' is not an integer", value, name_);
    if (value < 0 || value >= static_cast<double>(options_.classes))
      return OutOfRange("field '%s' is %g; expected 0 to %d", name_, value,
                        options_.classes - 1);
  }
  if (options_.log1p) value = std::log1p(std::max(value, 0.0));
  if (!options_.mean.empty()) value -= Of(options_.mean, place, 0);
  if (!options_.std.empty()) value /= Of(options_.std, place, 1);
  switch (options_.dtype) {
    case DType::kFloat32:
      return Push<float>(value);
    case DType::kFloat64:
      return Push<double>(value);
    case DType::kFloat16:
      table_->Push(field_, Float16(static_cast<float>(value)));
      return absl::OkStatus();
    case DType::kUInt8:
      return Push<uint8_t>(value);
    case DType::kBool:
      if (value != 0 && value != 1)
        return DataLoss("%g in field '%s' is neither 0 nor 1", value, name_);
      table_->Push(field_, value != 0);
      return absl::OkStatus();
    case DType::kInt32:
      return Push<int32_t>(value);
    default:
      return Push<int64_t>(value);
  }
}

absl::Status RowField::Missing(size_t place, const absl::Status& what) {
  if (kind_ == Kind::kHash || kind_ == Kind::kText) return Text("", place);
  if (!options_.missing.has_value()) return what;
  if (kind_ == Kind::kNumber) return Number(*options_.missing, place);
  return what;
}

absl::Status RowField::Text(absl::string_view text, size_t place) {
  if (kind_ == Kind::kHash) {
    table_->Push<int64_t>(field_,
                          HashBucket(text, place, options_.hash_buckets));
    return absl::OkStatus();
  }
  if (kind_ == Kind::kCategory) return Category(text);
  if (kind_ == Kind::kPicture) return Picture(text);
  ids_.clear();
  const absl::Status status = encoder_->Encode(text, &ids_);
  if (!status.ok())
    return Annotate(status, absl::StrCat("field '", name_, "'"));
  table_->Extend(field_, ids_.data(), ids_.size());
  return absl::OkStatus();
}

absl::Status RowField::Category(absl::string_view text) {
  int64_t number;
  if (names_.has_value()) {
    number = names_->Add(text);
  } else {
    number = options_.categories->names->Find(text);
    if (number < 0 && !options_.categories->unknown)
      return NotFound("%s is no class of field '%s'", ShownText(text), name_);
    number += options_.categories->unknown;
  }
  if (!names_.has_value() && options_.classes > 0 && number >= options_.classes)
    return OutOfRange("field '%s' is %s, class %d; expected 0 to %d", name_,
                      ShownText(text), number, options_.classes - 1);
  table_->Push<int64_t>(field_, number);
  return absl::OkStatus();
}

// A picture that is not there is found here, not after hours of training.
absl::Status RowField::Picture(absl::string_view text) {
  if (text.empty()) return DataLoss("field '%s' names no picture", name_);
  if (text.find('\0') != absl::string_view::npos)
    return DataLoss("field '%s': a path holds a byte 0", name_);
  std::string folder = options_.picture->folder;
  if (folder.empty())
    folder = std::filesystem::path(table_->file()).parent_path().string();
  if (folder.empty()) folder = ".";
  const std::string path =
      text[0] == '/' ? std::string(text) : absl::StrCat(folder, "/", text);
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return ErrnoToStatus(
        errno, absl::StrCat("field '", name_, "': cannot open '", path, "'"));
  table_->PushPath(field_, path);
  return absl::OkStatus();
}

absl::Status RowField::FinishCategories() {
  PD_ASSIGN_OR_RETURN(Vocabulary names, names_->Sorted());
  std::vector<int64_t> renumber;
  for (const std::string& token : names_->tokens())
    renumber.push_back(names.Find(token) + options_.categories->unknown);
  table_->Renumber(field_, renumber);
  const int64_t count = names.size() + options_.categories->unknown;
  if (options_.classes > 0 && count > options_.classes)
    return OutOfRange("field '%s' has %d classes; expected at most %d", name_,
                      count, options_.classes);
  options_.categories->names =
      std::make_shared<const Vocabulary>(std::move(names));
  NameClasses();
  return absl::OkStatus();
}

void RowField::NameClasses() {
  table_->set_vocabulary(field_, options_.categories->names);
  std::vector<std::string> classes = options_.categories->names->tokens();
  if (options_.categories->unknown) classes.insert(classes.begin(), kOther);
  table_->set_classes(field_, std::move(classes));
}

absl::Status RowField::Finish() {
  if (names_.has_value()) return FinishCategories();
  if (kind_ == Kind::kCategory) NameClasses();
  if (kind_ != Kind::kText) return absl::OkStatus();
  const bool building = encoder_->building();
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> renumber, encoder_->Finish());
  if (building) table_->Renumber(field_, renumber);
  if (encoder_->vocabulary() != nullptr)
    table_->set_vocabulary(field_, encoder_->vocabulary());
  return absl::OkStatus();
}

}  // namespace pd
