// SPDX-License-Identifier: Apache-2.0
// Oxford's 102 flowers: pictures in a compressed archive, labels and lists of
// pictures in .mat files. The pictures of the mode stay as they are packed.
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/image.h"
#include "formats/mat.h"
#include "formats/tar.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/packed_images.h"
#include "libcore/data/paddle_datasets.h"

namespace pd {
namespace {

// The first row of an array of integers.
absl::StatusOr<std::vector<int64_t>> ReadRow(const std::string& path,
                                             const std::string& name) {
  PD_ASSIGN_OR_RETURN(const NamedArrays arrays, ReadMat(path));
  const auto found = arrays.find(name);
  if (found == arrays.end())
    return NotFound("'%s' holds no array '%s'", path, name);
  const Array& array = found->second;
  if (array.shape.size() != 2 || array.size() == 0)
    return DataLoss("'%s': array '%s' has the shape %s; expected [1, count]",
                    path, name, ToString(array.shape));
  std::vector<int64_t> row(static_cast<size_t>(array.shape[1]));
  for (size_t i = 0; i < row.size(); ++i) {
    const double value = array.data<double>()[i];
    constexpr double kMost = 1e9;
    if (!(std::fabs(value) <= kMost) || value != std::floor(value))
      return DataLoss("'%s': array '%s' holds %g; expected integers", path,
                      name, value);
    row[i] = static_cast<int64_t>(value);
  }
  return row;
}

std::string NameOf(int64_t picture) {
  return absl::StrFormat("jpg/image_%05d.jpg", picture);
}

std::string ListOf(const std::string& mode) {
  if (mode == "train") return "tstid";
  return mode == "test" ? "trnid" : "valid";
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenFlowers(const FlowersOptions& options) {
  const std::string list = ListOf(options.mode);
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                      ReadRow(options.setid_file, list));
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> labels,
                      ReadRow(options.label_file, "labels"));
  std::map<std::string, FileBytes, std::less<>> pictures;
  for (const int64_t id : ids) {
    const auto count = static_cast<int64_t>(labels.size());
    if (id < 1 || id > count)
      return OutOfRange(
          "'%s': array '%s' holds picture %d; '%s' labels 1 to "
          "%d",
          options.setid_file, list, id, options.label_file, count);
    pictures[NameOf(id)];
  }
  PD_RETURN_IF_ERROR(ForEachTarFile(
      options.data_file,
      [&pictures](const TarMember& member, TarReader* reader) -> absl::Status {
        const auto wanted = pictures.find(member.name);
        if (wanted == pictures.end()) return absl::OkStatus();
        PD_ASSIGN_OR_RETURN(wanted->second, reader->Read());
        return absl::OkStatus();
      }));
  auto dataset = std::make_shared<PackedImages>(options.data_file);
  dataset->AddLabel();
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t label = labels[static_cast<size_t>(ids[i] - 1)];
    const std::string name = NameOf(ids[i]);
    const FileBytes& bytes = pictures[name];
    absl::Status status;
    if (label < 1 || label > options.classes)
      status = OutOfRange("'%s' picture %d: label is %d; expected 1 to %d",
                          options.label_file, ids[i], label, options.classes);
    else if (bytes.data == nullptr)
      status = NotFound("'%s' holds no member '%s', picture %d of '%s'",
                        options.data_file, name, i, list);
    if (status.ok())
      dataset->Add({name, bytes}, label);
    else if (options.skip_bad)
      dataset->LeaveOut(status);
    else
      return status;
  }
  PD_RETURN_IF_ERROR(dataset->Finish());
  return dataset;
}

}  // namespace pd
