// SPDX-License-Identifier: Apache-2.0
// Pascal VOC's boxes: every XML file is read when the set is opened, every
// picture when its record is.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/text_input.h"
#include "formats/voc_xml.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/boxes_dataset.h"
#include "libcore/data/folder_files.h"

namespace pd {
namespace {

using Stems = std::map<std::string, std::string>;  // to files

absl::StatusOr<Stems> StemsOf(const std::string& folder,
                              const std::vector<std::string>& endings) {
  std::vector<std::string> paths;
  PD_RETURN_IF_ERROR(CollectFiles(folder, endings, &paths));
  return FilesByStem(folder, paths);
}

// The first word of each line: lists of one class have a second.
absl::StatusOr<std::vector<std::string>> NamesOfList(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadInput(path));
  LineReader lines(file.view());
  absl::string_view line;
  std::vector<std::string> names;
  while (lines.Next(&line)) {
    line = TrimBlanks(line);
    line = line.substr(0, line.find_first_of(" \t"));
    if (!line.empty()) names.emplace_back(line);
  }
  if (names.empty()) return DataLoss("'%s' holds no names", path);
  return names;
}

// A picture and what its XML file says.
struct Annotated {
  std::string picture, xml;
  VocAnnotation annotation;
};

absl::StatusOr<Annotated> ReadAnnotated(const VocDetectionOptions& options,
                                        const std::string& name,
                                        const Stems& pictures,
                                        const Stems& xmls) {
  const auto picture = pictures.find(name), xml = xmls.find(name);
  if (xml == xmls.end())
    return NotFound("'%s' names '%s', and '%s' has no '%s.xml'", options.list,
                    name, options.annotations, name);
  if (picture == pictures.end())
    return NotFound("'%s' has no picture in '%s'", xml->second, options.images);
  Annotated result{picture->second, xml->second, {}};
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(xml->second));
  auto annotation = ParseVocXml(file.view());
  if (!annotation.ok())
    return Annotate(annotation.status(), absl::StrCat("'", xml->second, "'"));
  result.annotation = *std::move(annotation);
  return result;
}

// VOC's pixels count from 1, and the last one is in the box.
absl::StatusOr<std::vector<LabelledBox>> BoxesOf(
    const Annotated& annotated, const std::vector<std::string>& classes) {
  std::vector<LabelledBox> boxes;
  for (const VocObject& object : annotated.annotation.objects) {
    const auto found = std::find(classes.begin(), classes.end(), object.name);
    if (found == classes.end())
      return NotFound("'%s':%d: %s is no class of this data set; they are %s",
                      annotated.xml, object.line, ShownText(object.name),
                      ClassesText(classes));
    LabelledBox box;
    box.box.xmin = object.xmin - 1;
    box.box.ymin = object.ymin - 1;
    box.box.xmax = object.xmax;
    box.box.ymax = object.ymax;
    box.label = found - classes.begin();
    box.difficult = object.difficult;
    boxes.push_back(box);
  }
  return boxes;
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenVocDetection(
    const VocDetectionOptions& options) {
  PD_ASSIGN_OR_RETURN(const Stems pictures,
                      StemsOf(options.images, PictureEndings()));
  PD_ASSIGN_OR_RETURN(const Stems xmls, StemsOf(options.annotations, {".xml"}));
  std::vector<std::string> names;
  if (options.list.empty()) {
    for (const auto& [stem, path] : xmls) names.push_back(stem);
  } else {
    PD_ASSIGN_OR_RETURN(names, NamesOfList(options.list));
  }
  auto dataset =
      std::make_shared<BoxesDataset>(options.annotations, options.boxes);
  std::vector<Annotated> all;
  std::set<std::string> found;
  for (const std::string& name : names) {
    auto annotated = ReadAnnotated(options, name, pictures, xmls);
    if (!annotated.ok()) {
      if (!options.boxes.skip_bad) return annotated.status();
      dataset->LeaveOut(annotated.status());
      continue;
    }
    for (const VocObject& object : annotated->annotation.objects)
      found.insert(object.name);
    all.push_back(*std::move(annotated));
  }
  std::vector<std::string> classes = options.classes;
  if (classes.empty()) classes.assign(found.begin(), found.end());
  for (const Annotated& annotated : all) {
    PD_ASSIGN_OR_RETURN(const auto boxes, BoxesOf(annotated, classes));
    PD_RETURN_IF_ERROR(dataset->Add(annotated.picture,
                                    annotated.annotation.height,
                                    annotated.annotation.width, boxes));
  }
  PD_RETURN_IF_ERROR(dataset->Finish(std::move(classes)));
  return dataset;
}

}  // namespace pd
