// SPDX-License-Identifier: Apache-2.0
#include "formats/coco_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using nlohmann::json;

// A record of one of the lists, as far as it has been read.
struct Part {
  std::optional<int64_t> id, image_id, category_id, width, height, iscrowd;
  std::optional<std::string> file_name, name;
  std::vector<double> bbox;
};

// An annotation with the ids that it names.
struct NamedBox {
  CocoAnnotation annotation;
  int64_t image_id = 0, category_id = 0;
};

// Takes the records out of the parser's events. Depth 1 is the document's
// object, 2 a list, 3 a record, 4 its box.
class CocoHandler : public nlohmann::json_sax<json> {
 public:
  absl::StatusOr<CocoFile> Finish();

  bool null() override { return Other("null"); }
  bool boolean(bool value) override {
    return Integer(static_cast<int64_t>(value));
  }
  bool number_integer(int64_t value) override { return Integer(value); }
  bool number_unsigned(uint64_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return Float(static_cast<double>(value));
    return Integer(static_cast<int64_t>(value));
  }
  bool number_float(double value, const std::string&) override {
    return Float(value);
  }
  bool string(std::string& value) override;
  bool binary(json::binary_t&) override { return Other("bytes"); }
  bool start_object(size_t) override;
  bool key(std::string& name) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override;
  bool parse_error(size_t at, const std::string&,
                   const nlohmann::detail::exception& error) override {
    status_ = DataLoss("byte %d: no JSON: %s", at, error.what());
    return false;
  }

 private:
  enum class List { kNone, kImages, kCategories, kAnnotations };
  bool Fail(const absl::Status& status) {
    status_ = Annotate(status, Place());
    return false;
  }
  std::string Place() const {
    static constexpr const char* kNames[] = {"the file", "images", "categories",
                                             "annotations"};
    const char* list = kNames[static_cast<size_t>(list_)];
    return depth_ < 3 || list_ == List::kNone
               ? list
               : absl::StrCat(list, "[", record_, "]");
  }
  bool InRecord() const { return depth_ == 3 && list_ != List::kNone; }
  bool InBox() const { return in_box_ && depth_ == 4; }

  bool Integer(int64_t value);
  bool Float(double value);
  bool Other(const char* what);
  std::optional<int64_t>* IntegerField();
  std::optional<std::string>* TextField();
  bool IsBoxField() const {
    return list_ == List::kAnnotations && key_ == "bbox";
  }
  absl::Status EndRecord();
  absl::Status EndAnnotation();

  absl::Status status_;
  int depth_ = 0;
  List list_ = List::kNone;
  bool in_box_ = false;
  size_t record_ = 0;
  std::string key_;  // of the member of a record
  Part part_;
  CocoFile file_;
  std::vector<NamedBox> named_;
};

std::optional<int64_t>* CocoHandler::IntegerField() {
  if (!InRecord()) return nullptr;
  if (key_ == "id" && list_ != List::kAnnotations) return &part_.id;
  if (list_ == List::kImages && key_ == "width") return &part_.width;
  if (list_ == List::kImages && key_ == "height") return &part_.height;
  if (list_ != List::kAnnotations) return nullptr;
  if (key_ == "image_id") return &part_.image_id;
  if (key_ == "category_id") return &part_.category_id;
  return key_ == "iscrowd" ? &part_.iscrowd : nullptr;
}

std::optional<std::string>* CocoHandler::TextField() {
  if (!InRecord()) return nullptr;
  if (list_ == List::kImages && key_ == "file_name") return &part_.file_name;
  if (list_ == List::kCategories && key_ == "name") return &part_.name;
  return nullptr;
}

bool CocoHandler::Integer(int64_t value) {
  if (InBox()) return Float(static_cast<double>(value));
  std::optional<int64_t>* const field = IntegerField();
  if (field == nullptr) return Other("a number");
  *field = value;
  return true;
}

bool CocoHandler::Float(double value) {
  if (!InBox()) return Other("a number that is no integer of 64 bits");
  // Coordinates become float32.
  if (!(std::fabs(value) <= 1e9))
    return Fail(
        DataLoss("'bbox' holds %g, which is no place in a picture", value));
  if (part_.bbox.size() == 4)
    return Fail(
        DataLoss("'bbox' has more than 4 numbers; expected x, y, "
                 "width, height"));
  part_.bbox.push_back(value);
  return true;
}

// A value that is not what a field of this name holds.
bool CocoHandler::Other(const char* what) {
  if (InBox()) return Fail(DataLoss("'bbox' holds %s", what));
  if (IntegerField() != nullptr)
    return Fail(DataLoss("'%s' is %s; expected an integer", key_, what));
  if (TextField() != nullptr)
    return Fail(DataLoss("'%s' is %s; expected a text", key_, what));
  if (InRecord() && IsBoxField())
    return Fail(DataLoss("'bbox' is %s; expected 4 numbers", what));
  if (depth_ == 1 && list_ != List::kNone)
    return Fail(DataLoss("it is %s; expected a list", what));
  if (depth_ == 2 && list_ != List::kNone)
    return Fail(DataLoss("place %d is %s; expected an object", record_, what));
  if (depth_ == 0)
    return Fail(
        DataLoss("it is %s; expected an object with 'images', "
                 "'categories' and 'annotations'",
                 what));
  return true;
}

bool CocoHandler::string(std::string& value) {
  std::optional<std::string>* const field = TextField();
  if (field == nullptr) return Other("a text");
  *field = std::move(value);
  return true;
}

bool CocoHandler::key(std::string& name) {
  if (depth_ == 1) {
    list_ = name == "images"        ? List::kImages
            : name == "categories"  ? List::kCategories
            : name == "annotations" ? List::kAnnotations
                                    : List::kNone;
    record_ = 0;
  } else if (depth_ == 3) {
    key_ = std::move(name);
  }
  return true;
}

bool CocoHandler::start_object(size_t) {
  const bool is_record = depth_ == 2 && list_ != List::kNone;
  if (depth_ > 0 && !is_record && !Other("an object")) return false;
  ++depth_;
  if (is_record) part_ = Part();
  return true;
}

bool CocoHandler::start_array(size_t) {
  if (depth_ == 3 && IsBoxField()) {
    in_box_ = true;
    part_.bbox.clear();
  } else if (!(depth_ == 1 && list_ != List::kNone) && !Other("a list")) {
    return false;
  }
  ++depth_;
  return true;
}

bool CocoHandler::end_array() {
  if (--depth_ == 3) in_box_ = false;
  return true;
}

bool CocoHandler::end_object() {
  if (InRecord()) {
    const absl::Status status = EndRecord();
    if (!status.ok()) return Fail(status);
    ++record_;
  }
  --depth_;
  return true;
}

absl::Status CocoHandler::EndRecord() {
  if (list_ == List::kAnnotations) return EndAnnotation();
  if (!part_.id.has_value()) return DataLoss("it has no 'id'");
  if (list_ == List::kCategories) {
    if (part_.name.value_or("").empty()) return DataLoss("it has no 'name'");
    file_.categories.push_back({*part_.id, *std::move(part_.name)});
    return absl::OkStatus();
  }
  if (part_.file_name.value_or("").empty())
    return DataLoss("it has no 'file_name'");
  CocoImage image{*part_.id, *std::move(part_.file_name),
                  part_.width.value_or(0), part_.height.value_or(0)};
  if (image.width < 0 || image.height < 0)
    return DataLoss("the picture is %d x %d pixels", image.width, image.height);
  file_.images.push_back(std::move(image));
  return absl::OkStatus();
}

absl::Status CocoHandler::EndAnnotation() {
  if (!part_.image_id.has_value()) return DataLoss("it has no 'image_id'");
  if (!part_.category_id.has_value())
    return DataLoss("it has no 'category_id'");
  if (part_.bbox.size() != 4)
    return DataLoss("it has no 'bbox' of 4 numbers: x, y, width, height");
  NamedBox named;
  std::copy_n(part_.bbox.begin(), 4, named.annotation.bbox.begin());
  named.annotation.crowd = part_.iscrowd.value_or(0) != 0;
  named.image_id = *part_.image_id;
  named.category_id = *part_.category_id;
  named_.push_back(named);
  return absl::OkStatus();
}

// Where each id of a list is.
template <typename T>
absl::StatusOr<std::unordered_map<int64_t, size_t>> PlacesOf(
    const std::vector<T>& records, const char* list) {
  std::unordered_map<int64_t, size_t> places;
  places.reserve(records.size());
  for (size_t i = 0; i < records.size(); ++i)
    if (!places.emplace(records[i].id, i).second)
      return DataLoss("two of the %s have the id %d", list, records[i].id);
  return places;
}

absl::StatusOr<CocoFile> CocoHandler::Finish() {
  PD_RETURN_IF_ERROR(status_);
  if (file_.images.empty()) return DataLoss("the file has no 'images'");
  if (file_.categories.empty()) return DataLoss("the file has no 'categories'");
  std::stable_sort(file_.categories.begin(), file_.categories.end(),
                   [](const auto& a, const auto& b) { return a.id < b.id; });
  PD_ASSIGN_OR_RETURN(const auto images, PlacesOf(file_.images, "images"));
  PD_ASSIGN_OR_RETURN(const auto categories,
                      PlacesOf(file_.categories, "categories"));
  file_.annotations.reserve(named_.size());
  for (size_t i = 0; i < named_.size(); ++i) {
    const auto image = images.find(named_[i].image_id);
    const auto category = categories.find(named_[i].category_id);
    if (image == images.end())
      return DataLoss("annotations[%d]: 'image_id' is %d, which no picture has",
                      i, named_[i].image_id);
    if (category == categories.end())
      return DataLoss(
          "annotations[%d]: 'category_id' is %d, which no category has", i,
          named_[i].category_id);
    named_[i].annotation.image = image->second;
    named_[i].annotation.category = category->second;
    file_.annotations.push_back(named_[i].annotation);
  }
  return std::move(file_);
}

}  // namespace

absl::StatusOr<CocoFile> ParseCocoJson(absl::string_view text) {
  CocoHandler handler;
  json::sax_parse(text.begin(), text.end(), &handler);
  return handler.Finish();
}

}  // namespace pd
