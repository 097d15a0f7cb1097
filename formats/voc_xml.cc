// SPDX-License-Identifier: Apache-2.0
#include "formats/voc_xml.h"

#include <expat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr size_t kDeepest = 64;
constexpr size_t kLongestText = 4096;  // of an element that counts

using Parser = std::unique_ptr<XML_ParserStruct, void (*)(XML_Parser)>;

// Takes what counts out of the events of one document.
class VocReader {
 public:
  explicit VocReader(XML_Parser parser) : parser_(parser) {
    XML_SetUserData(parser, this);
    XML_SetElementHandler(
        parser,
        [](void* self, const XML_Char* name, const XML_Char**) {
          static_cast<VocReader*>(self)->Begin(name);
        },
        [](void* self, const XML_Char*) {
          static_cast<VocReader*>(self)->End();
        });
    XML_SetCharacterDataHandler(parser, [](void* self, const XML_Char* text,
                                           int size) {
      static_cast<VocReader*>(self)->Text({text, static_cast<size_t>(size)});
    });
    // No such file has one, and entities that stand for others could grow
    // without an end.
    XML_SetStartDoctypeDeclHandler(
        parser,
        [](void* self, const XML_Char*, const XML_Char*, const XML_Char*, int) {
          static_cast<VocReader*>(self)->Fail(
              DataLoss("a document type declaration; expected none"));
        });
  }

  absl::StatusOr<VocAnnotation> Finish(bool parsed) {
    if (!status_.ok()) return status_;
    if (!parsed)
      return At(DataLoss("%s", XML_ErrorString(XML_GetErrorCode(parser_))));
    return std::move(annotation_);
  }

 private:
  absl::Status At(const absl::Status& status) const {
    return Annotate(
        status,
        absl::StrCat("line ", XML_GetCurrentLineNumber(parser_), ", column ",
                     XML_GetCurrentColumnNumber(parser_) + 1));
  }
  void Fail(const absl::Status& status) {
    if (!status_.ok()) return;
    status_ = At(status);
    XML_StopParser(parser_, XML_FALSE);
  }

  void Begin(absl::string_view name) {
    if (!status_.ok()) return;
    if (path_.empty() && name != "annotation")
      return Fail(
          DataLoss("the outermost element is %s; expected "
                   "'annotation'",
                   ShownText(name)));
    if (path_.size() == kDeepest)
      return Fail(DataLoss("elements are nested more than %d deep", kDeepest));
    path_.emplace_back(name);
    text_.clear();
    if (Is({"annotation", "object"})) {
      object_ = VocObject();
      object_.line = static_cast<int64_t>(XML_GetCurrentLineNumber(parser_));
      corners_ = 0;
    }
  }

  void Text(absl::string_view text) {
    if (text_.size() + text.size() <= kLongestText)
      absl::StrAppend(&text_, text);
    else
      text_.resize(kLongestText);
  }

  // Also called, once, for an empty element at which Begin has failed.
  void End() {
    if (!status_.ok()) return;
    const absl::Status status = Take(TrimBlanks(absl::string_view(text_)));
    if (!status.ok()) return Fail(status);
    path_.pop_back();
    text_.clear();
  }

  // The element that ends, whose text is `text`.
  absl::Status Take(absl::string_view text) {
    if (path_.size() == 2 && path_[1] == "object") return TakeObject();
    if (path_.size() == 3 && path_[1] == "size") {
      if (path_[2] == "width") return Side(text, &annotation_.width);
      if (path_[2] == "height") return Side(text, &annotation_.height);
    }
    if (path_.size() < 3 || path_[1] != "object") return absl::OkStatus();
    if (Is({"annotation", "object", "name"})) object_.name = std::string(text);
    if (Is({"annotation", "object", "difficult"})) {
      PD_ASSIGN_OR_RETURN(const double flag, Number(text));
      object_.difficult = flag != 0;
    }
    if (path_.size() != 4 || path_[2] != "bndbox") return absl::OkStatus();
    const std::pair<const char*, double*> corners[] = {{"xmin", &object_.xmin},
                                                       {"ymin", &object_.ymin},
                                                       {"xmax", &object_.xmax},
                                                       {"ymax", &object_.ymax}};
    for (size_t i = 0; i < 4; ++i) {
      if (path_[3] != corners[i].first) continue;
      PD_ASSIGN_OR_RETURN(*corners[i].second, Number(text));
      corners_ |= 1u << i;
    }
    return absl::OkStatus();
  }

  absl::Status TakeObject() {
    if (object_.name.empty())
      return DataLoss("the object that ends here has no 'name'");
    if (corners_ != 15)
      return DataLoss(
          "object %s has no whole 'bndbox'; expected xmin, ymin, xmax and ymax",
          ShownText(object_.name));
    annotation_.objects.push_back(std::move(object_));
    object_ = VocObject();
    return absl::OkStatus();
  }

  absl::StatusOr<double> Number(absl::string_view text) const {
    auto number = ParseNumber(text);
    // Coordinates become float32.
    if (number.ok() && !(std::fabs(*number) <= 1e9))
      number = DataLoss("%s is no place in a picture", ShownText(text));
    return number.ok() ? number
                       : Annotate(number.status(),
                                  absl::StrCat("'", path_.back(), "'"));
  }

  // Some programs write 0 where they do not know it.
  absl::Status Side(absl::string_view text, int64_t* side) const {
    PD_ASSIGN_OR_RETURN(const double number, Number(text));
    if (number < 0 || number != std::floor(number))
      return DataLoss("'%s' is %g; expected pixels", path_.back(), number);
    *side = static_cast<int64_t>(number);
    return absl::OkStatus();
  }

  bool Is(std::initializer_list<absl::string_view> path) const {
    return std::equal(path_.begin(), path_.end(), path.begin(), path.end());
  }

  XML_Parser parser_;
  absl::Status status_;
  std::vector<std::string> path_;
  std::string text_;
  VocAnnotation annotation_;
  VocObject object_;
  unsigned corners_ = 0;  // which of the four are there, by bit
};

}  // namespace

absl::StatusOr<VocAnnotation> ParseVocXml(absl::string_view text) {
  const Parser parser(XML_ParserCreate(nullptr), XML_ParserFree);
  if (parser == nullptr)
    return ResourceExhausted("no memory for an XML parser");
  VocReader reader(parser.get());
  if (text.size() > std::numeric_limits<int>::max())
    return DataLoss("%d bytes of XML; expected the boxes of one picture",
                    text.size());
  const bool parsed =
      XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()),
                XML_TRUE) == XML_STATUS_OK;
  return reader.Finish(parsed);
}

}  // namespace pd
