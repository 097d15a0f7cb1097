// SPDX-License-Identifier: Apache-2.0
// Folders of images, in the order of paddle.vision.datasets.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "formats/format_table.h"
#include "formats/image.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/datasets.h"
#include "libcore/data/folder_files.h"
#include "libcore/data/read_picture.h"
#include "libcore/data/table_dataset.h"

namespace pd {
namespace {

class ImageFolder : public Dataset {
 public:
  ImageFolder(std::vector<std::string> paths, std::vector<int64_t> labels,
              std::vector<std::string> classes, std::vector<std::string> notes)
      : paths_(std::move(paths)), labels_(std::move(labels)) {
    size_ = static_cast<int64_t>(paths_.size());
    notes_ = std::move(notes);
    fields_ = {{"image", DType::kUInt8, {-1, -1, 3}, true}};
    if (!labels_.empty())
      fields_.push_back({"label", DType::kInt64, {1}, false});
    if (!labels_.empty()) fields_[1].classes = std::move(classes);
  }

  absl::Status Read(int64_t index, Record* record) const override {
    const size_t i = static_cast<size_t>(index);
    PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(paths_[i]));
    record->fields.resize(fields_.size());
    record->bytes.resize(1);
    const absl::Status status =
        DecodePicture(file.view(), {}, &record->bytes[0], &record->fields[0]);
    if (!status.ok()) return Annotate(status, Describe(index));
    if (!labels_.empty())
      record->fields[1] = {
          reinterpret_cast<const std::byte*>(labels_.data() + i)};
    return absl::OkStatus();
  }

  std::string Describe(int64_t index) const override {
    return absl::StrFormat("'%s' (record %d)",
                           paths_[static_cast<size_t>(index)], index);
  }
  RecordPlace Place(int64_t index) const override {
    return {paths_[static_cast<size_t>(index)], index, ""};
  }

 private:
  std::vector<std::string> paths_;
  std::vector<int64_t> labels_;
};

// Pictures of any folders, and one of standard input.
class Pictures : public Dataset {
 public:
  Pictures(const PicturesOptions& options, std::vector<std::string> paths,
           FileBytes standard_input)
      : paths_(std::move(paths)),
        channels_(options.channels),
        standard_input_(std::move(standard_input)) {
    size_ = static_cast<int64_t>(paths_.size());
    fields_ = {{options.field, DType::kUInt8, {-1, -1, channels_}, true}};
  }

  absl::Status Read(int64_t index, Record* record) const override {
    const std::string& path = paths_[static_cast<size_t>(index)];
    FileBytes file = standard_input_;
    if (path != "-") {
      PD_ASSIGN_OR_RETURN(file, ReadFile(path));
    }
    record->fields.resize(1);
    record->bytes.resize(1);
    ImageOptions options;
    options.channels = static_cast<int>(channels_);
    return Annotate(DecodePicture(file.view(), options, &record->bytes[0],
                                  &record->fields[0]),
                    Describe(index));
  }

  std::string Describe(int64_t index) const override {
    return absl::StrCat("'", paths_[static_cast<size_t>(index)], "'");
  }
  RecordPlace Place(int64_t index) const override {
    return {paths_[static_cast<size_t>(index)], index, ""};
  }

 private:
  std::vector<std::string> paths_;
  int64_t channels_;
  FileBytes standard_input_;
};

// Images with their class numbers, and what to say of classes without any.
struct Labelled {
  std::vector<std::string> paths, classes, notes;
  std::vector<int64_t> labels;
};

absl::StatusOr<Labelled> CollectClasses(const ImageFolderOptions& options) {
  PD_ASSIGN_OR_RETURN(const std::vector<std::string> folders,
                      ImageFolderClasses(options.root));
  if (folders.empty())
    return NotFound("'%s' holds no folders; expected one for each class",
                    options.root);
  Labelled all;
  all.classes = options.classes.empty() ? folders : options.classes;
  std::vector<std::string> empty;
  for (const std::string& folder : folders) {
    const size_t before = all.paths.size();
    PD_RETURN_IF_ERROR(CollectFiles(absl::StrCat(options.root, "/", folder),
                                    options.extensions, &all.paths));
    const auto known =
        std::find(all.classes.begin(), all.classes.end(), folder);
    if (all.paths.size() == before) {
      empty.push_back(folder);
      continue;
    }
    if (known == all.classes.end())
      return NotFound(
          "folder '%s/%s' is no class that training knows; the classes are %s",
          options.root, folder, ClassesText(all.classes));
    all.labels.resize(all.paths.size(), known - all.classes.begin());
  }
  if (!empty.empty())
    all.notes.push_back(absl::StrFormat(
        "'%s': %d of %d folders hold no images: %s", options.root, empty.size(),
        folders.size(), ClassesText(empty)));
  std::vector<std::string> missing;
  for (const std::string& name : all.classes)
    if (!std::binary_search(folders.begin(), folders.end(), name))
      missing.push_back(name);
  if (!missing.empty())
    all.notes.push_back(absl::StrFormat(
        "'%s' has no folder for %d of %d classes: %s", options.root,
        missing.size(), all.classes.size(), ClassesText(missing)));
  return all;
}

// The stems of `files` that `others` does not have.
std::vector<std::string> StemsWithout(
    const std::map<std::string, std::string>& files,
    const std::map<std::string, std::string>& others) {
  std::vector<std::string> missing;
  for (const auto& [stem, path] : files)
    if (others.count(stem) == 0) missing.push_back(stem);
  return missing;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ImageFolderClasses(
    const std::string& root) {
  PD_ASSIGN_OR_RETURN(FolderListing listing, ListFolder(root));
  return std::move(listing.folders);
}

absl::StatusOr<DatasetPtr> OpenImageFolder(const ImageFolderOptions& options) {
  Labelled found;
  if (options.labels) {
    PD_ASSIGN_OR_RETURN(found, CollectClasses(options));
  } else {
    PD_RETURN_IF_ERROR(
        CollectFiles(options.root, options.extensions, &found.paths));
  }
  if (found.paths.empty())
    return NotFound("'%s' holds no images; expected files ending in %s",
                    options.root, absl::StrJoin(options.extensions, ", "));
  return std::make_shared<ImageFolder>(
      std::move(found.paths), std::move(found.labels), std::move(found.classes),
      std::move(found.notes));
}

std::vector<std::string> PictureEndings() {
  const std::vector<absl::string_view> endings = ImageEndings();
  return {endings.begin(), endings.end()};
}

bool IsPictureName(const std::string& name) {
  return HasEnding(name, PictureEndings());
}

absl::StatusOr<DatasetPtr> OpenImageMaskFolder(
    const ImageMaskFolderOptions& options) {
  std::vector<std::string> images, masks;
  PD_RETURN_IF_ERROR(CollectFiles(options.images, options.extensions, &images));
  PD_RETURN_IF_ERROR(CollectFiles(options.masks, {".png"}, &masks));
  if (images.empty())
    return NotFound("'%s' holds no images; expected files ending in %s",
                    options.images, absl::StrJoin(options.extensions, ", "));
  PD_ASSIGN_OR_RETURN(const auto image_of, FilesByStem(options.images, images));
  PD_ASSIGN_OR_RETURN(const auto mask_of, FilesByStem(options.masks, masks));
  const std::vector<std::string> bare = StemsWithout(image_of, mask_of);
  const std::vector<std::string> lone = StemsWithout(mask_of, image_of);
  const absl::Status no_mask = NotFound(
      "%d of %d pictures in '%s' have no mask in '%s': %s", bare.size(),
      images.size(), options.images, options.masks, ClassesText(bare));
  const absl::Status no_image = NotFound(
      "%d of %d masks in '%s' have no picture in '%s': %s", lone.size(),
      masks.size(), options.masks, options.images, ClassesText(lone));
  if (!bare.empty() && !options.skip_bad) return no_mask;
  if (!lone.empty() && !options.skip_bad) return no_image;
  auto table = std::make_shared<TableDataset>();
  ImageOptions classes;
  classes.mask = true;
  FieldSpec label = {"label", DType::kUInt8, {-1, -1, 1}};
  label.is_mask = true;
  const size_t image =
      table->AddPicture({"image", DType::kUInt8, {-1, -1, 3}, true}, {}, 0);
  const size_t mask =
      table->AddPicture(std::move(label), classes, options.classes);
  table->BeginFile(options.images, "record");
  for (const auto& [stem, path] : image_of) {
    const auto found = mask_of.find(stem);
    if (found == mask_of.end()) {
      table->LeaveOut(
          NotFound("'%s' has no mask in '%s'", path, options.masks));
      continue;
    }
    table->PushPath(image, path);
    table->PushPath(mask, found->second);
    PD_RETURN_IF_ERROR(table->EndRecord(table->size()));
  }
  for (const std::string& name : lone)
    table->LeaveOut(NotFound("'%s' has no picture in '%s'", mask_of.at(name),
                             options.images));
  PD_RETURN_IF_ERROR(table->Finish());
  return table;
}

absl::StatusOr<DatasetPtr> OpenPictures(const PicturesOptions& options) {
  std::vector<std::string> paths;
  FileBytes standard_input;
  for (const std::string& path : options.paths) {
    struct stat info;
    if (path == "-") {
      PD_ASSIGN_OR_RETURN(standard_input, ReadInput(path));
      paths.push_back(path);
    } else if (::stat(path.c_str(), &info) != 0) {
      return ErrnoToStatus(errno, absl::StrCat("cannot open '", path, "'"));
    } else if (!S_ISDIR(info.st_mode)) {
      paths.push_back(path);
    } else {
      const size_t before = paths.size();
      PD_RETURN_IF_ERROR(CollectFiles(path, PictureEndings(), &paths));
      if (paths.size() == before)
        return NotFound("'%s' holds no images; expected files ending in %s",
                        path, absl::StrJoin(PictureEndings(), ", "));
    }
  }
  if (paths.empty()) return InvalidArgument("no picture is given");
  return std::make_shared<Pictures>(options, std::move(paths),
                                    std::move(standard_input));
}

}  // namespace pd
