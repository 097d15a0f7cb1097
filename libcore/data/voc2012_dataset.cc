// SPDX-License-Identifier: Apache-2.0
// Pascal VOC 2012's segmentation: a list of names, a picture and a mask for
// each. The archive is read twice: for the list, then for what it names.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "formats/tar.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/class_lists.h"
#include "libcore/data/packed_images.h"
#include "libcore/data/paddle_datasets.h"
#include "libcore/data/python_text.h"

namespace pd {
namespace {

constexpr char kTop[] = "VOCdevkit/VOC2012/";

std::string ListOf(const std::string& mode) {
  const char* list = mode == "train"  ? "trainval"
                     : mode == "test" ? "train"
                                      : "val";
  return absl::StrCat(kTop, "ImageSets/Segmentation/", list, ".txt");
}

absl::StatusOr<std::vector<std::string>> ReadNames(const std::string& path,
                                                   const std::string& list) {
  PD_ASSIGN_OR_RETURN(
      const std::vector<TarFile> files,
      ReadTarFiles(path, [&](absl::string_view name) { return name == list; }));
  PD_ASSIGN_OR_RETURN(const FileBytes text, FindTarFile(files, list, path));
  std::vector<std::string> names;
  PD_RETURN_IF_ERROR(python::ForEachLine(
      text.view(), [&names](absl::string_view line, int64_t) {
        names.emplace_back(python::Strip(line, python::Blanks::kBytes));
        return absl::OkStatus();
      }));
  if (names.empty())
    return DataLoss("'%s': member '%s' names no pictures", path, list);
  return names;
}

// Whether pictures are called as those of Pascal VOC, "2007_000032". Its
// folders say nothing: people's own pictures are packed into the same ones.
bool AreOfVoc(const std::vector<std::string>& names) {
  constexpr absl::string_view kForm = "dddd_dddddd";
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    const bool formed = std::equal(
        name.begin(), name.end(), kForm.begin(), kForm.end(),
        [](char c, char f) {
          return f == 'd' ? absl::ascii_isdigit(static_cast<unsigned char>(c))
                          : c == f;
        });
    return formed && "2007" <= name.substr(0, 4) && name.substr(0, 4) <= "2012";
  });
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenVoc2012(const Voc2012Options& options) {
  const std::string& path = options.data_file;
  const std::string list = ListOf(options.mode);
  PD_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                      ReadNames(path, list));
  const auto image_of = [](const std::string& name) {
    return absl::StrCat(kTop, "JPEGImages/", name, ".jpg");
  };
  const auto mask_of = [](const std::string& name) {
    return absl::StrCat(kTop, "SegmentationClass/", name, ".png");
  };
  std::map<std::string, FileBytes> files;
  for (const std::string& name : names) {
    files[image_of(name)];
    files[mask_of(name)];
  }
  PD_RETURN_IF_ERROR(ForEachTarFile(
      path,
      [&files](const TarMember& member, TarReader* reader) -> absl::Status {
        const auto wanted = files.find(member.name);
        if (wanted == files.end()) return absl::OkStatus();
        PD_ASSIGN_OR_RETURN(wanted->second, reader->Read());
        return absl::OkStatus();
      }));
  auto dataset = std::make_shared<PackedImages>(path);
  dataset->AddMask(AreOfVoc(names) ? VocClasses() : std::vector<std::string>());
  for (size_t i = 0; i < names.size(); ++i) {
    absl::Status status;
    for (const std::string& name : {image_of(names[i]), mask_of(names[i])}) {
      if (status.ok() && files[name].data == nullptr)
        status = NotFound(
            "'%s' holds no member '%s', which '%s' names in line "
            "%d",
            path, name, list, i + 1);
    }
    if (status.ok())
      dataset->Add({image_of(names[i]), files[image_of(names[i])]},
                   TarFile{mask_of(names[i]), files[mask_of(names[i])]});
    else if (options.skip_bad)
      dataset->LeaveOut(status);
    else
      return status;
  }
  PD_RETURN_IF_ERROR(dataset->Finish());
  return dataset;
}

}  // namespace pd
