// SPDX-License-Identifier: Apache-2.0
#include "libcore/convert/write.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/pdparams.h"
#include "formats/safetensors.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/file_set.h"
#include "libcore/base/file_target.h"
#include "libcore/base/status_macros.h"
#include "libcore/convert/write_internal.h"
#include "libcore/model/model_files.h"
#include "libcore/model/tree.h"
#include "libcore/program/text_dump.h"

namespace pd {
namespace {

constexpr int kInfoProtocol = 2;  // as paddle.jit.save writes it

Array VectorArray(const std::vector<int64_t>& values) {
  return MakeArray({static_cast<int64_t>(values.size())}, values);
}

PickleValue RowsObject(const SelectedRowsArray& rows) {
  PickleDict dict;
  dict.Add("value", PickleValue{rows.value});
  dict.Add("rows", PickleValue{VectorArray(rows.rows)});
  dict.Add("height", PickleValue{MakeArray<int64_t>({}, {rows.height})});
  return PickleValue{std::move(dict)};
}

absl::StatusOr<FlatTree> FlatOf(const WriteJob& job) {
  auto flat = Flatten(job.object, job.content.stem);
  if (job.content.program.has_value() && job.object.As<PickleNone>() != nullptr)
    flat = InvalidArgument("there are no parameters beside the program");
  if (!flat.ok())
    return Annotate(flat.status(), absl::StrCat("'", job.content.path, "'"));
  return flat;
}

// Pickles lose LoD levels only.
absl::Status WritePickled(const WriteJob& job) {
  PD_ASSIGN_OR_RETURN(const FlatTree flat, FlatOf(job));
  std::vector<std::string> lod;
  NamedArrays arrays;
  for (const TreeArray& array : flat.arrays) {
    if (!array.array->lod.empty())
      lod.push_back(absl::StrCat("the LoD of '", array.name, "'"));
    arrays.emplace(array.name, *array.array);
  }
  PD_RETURN_IF_ERROR(LeaveOut(job, "a pickle", lod));
  PickleValue object = job.object;
  auto* dict = std::get_if<PickleDict>(&object.value);
  if (dict != nullptr && job.options.protocol < 4)
    SplitBigParams(kSliceBytes, dict);
  Count(arrays, job.written);
  return WritePickle(job.path, object, job.options.protocol);
}

// An npz gets the tree as an array where arrays by name do not say it all: the
// order of names and the table of parameter names are not worth that.
absl::Status WriteNpzObject(const WriteJob& job) {
  PD_ASSIGN_OR_RETURN(const FlatTree flat, FlatOf(job));
  NamedArrays arrays;
  for (const TreeArray& array : flat.arrays)
    arrays.emplace(array.name, *array.array);
  if (arrays.count(std::string(kNpzSideName)) > 0)
    return InvalidArgument("'%s' has an array called '%s'", job.content.path,
                           kNpzSideName);
  Count(arrays, job.written);
  // One array alone and a dict of one array are different things.
  const bool lone =
      job.object.As<Array>() != nullptr || AsTensor(job.object) != nullptr;
  const bool plain =
      flat.others.empty() && !flat.has_lod && !flat.nested && !lone;
  if (job.options.arrays_only)
    PD_RETURN_IF_ERROR(LeaveOut(job, "npz", flat.others));
  else if (!plain) {
    const std::string text = TreeToJson(job.object, job.content.stem);
    arrays.emplace(
        kNpzSideName,
        MakeArray<uint8_t>({static_cast<int64_t>(text.size())},
                           std::vector<uint8_t>(text.begin(), text.end())));
  }
  return WriteNpz(job.path, arrays);
}

absl::Status WriteSafetensorsObject(const WriteJob& job) {
  PD_ASSIGN_OR_RETURN(const FlatTree flat, FlatOf(job));
  Safetensors out;
  NamedArrays counted;
  for (const TreeArray& array : flat.arrays) {
    if (array.array->dtype == DType::kComplex128)
      return InvalidArgument(
          "'%s': tensor '%s' is complex128, for which safetensors has no type "
          "(complex64 is its largest): npz and pickles hold it",
          job.content.path, array.name);
    out.tensors.emplace_back(array.name, *array.array);
    counted.emplace(array.name, *array.array);
  }
  Count(counted, job.written);
  out.metadata["format"] = "pd";
  if (job.options.arrays_only)
    PD_RETURN_IF_ERROR(LeaveOut(job, "safetensors", flat.others));
  else
    out.metadata[std::string(kMetadataSideName)] =
        TreeToJson(job.object, job.content.stem);
  return WriteSafetensors(job.path, out);
}

// The only array, for files of one.
absl::StatusOr<Array> OneArray(const WriteJob& job, absl::string_view target,
                               bool holds_lod) {
  PD_ASSIGN_OR_RETURN(const NamedArrays arrays,
                      ArraysOf(job, target, holds_lod));
  if (arrays.size() != 1)
    return InvalidArgument(
        "'%s' holds %d tensors; %s holds one: --to vars, npz or safetensors "
        "hold many",
        job.content.path, arrays.size(), target);
  Count(arrays, job.written);
  return arrays.begin()->second;
}

absl::Status WriteOneTensor(const WriteJob& job) {
  PD_ASSIGN_OR_RETURN(const Array array, OneArray(job, "a tensor file", true));
  return WriteTensor(job.path, array);
}

absl::Status WriteOneNpy(const WriteJob& job) {
  PD_ASSIGN_OR_RETURN(const Array array, OneArray(job, "npy", false));
  return WriteNpy(job.path, array);
}

absl::Status WriteJoint(const WriteJob& job) {
  PD_ASSIGN_OR_RETURN(const NamedArrays arrays,
                      ArraysOf(job, "a joint file", true));
  Count(arrays, job.written);
  return WriteTensors(job.path, arrays);
}

absl::Status WriteSeparate(const WriteJob& job) {
  PD_ASSIGN_OR_RETURN(const NamedArrays arrays,
                      ArraysOf(job, "a tensor file", true));
  return WriteTensorFolder(job, job.path, arrays);
}

absl::Status WriteRows(const WriteJob& job) {
  if (job.content.rows.has_value())
    return WriteSelectedRows(job.path, *job.content.rows);
  PD_ASSIGN_OR_RETURN(const NamedArrays arrays,
                      ArraysOf(job, "a SelectedRows file", false));
  const auto value = arrays.find("value");
  const auto rows = arrays.find("rows");
  const auto height = arrays.find("height");
  if (arrays.size() != 3 || value == arrays.end() || rows == arrays.end() ||
      height == arrays.end() || rows->second.dtype != DType::kInt64 ||
      height->second.dtype != DType::kInt64 || height->second.size() != 1 ||
      value->second.shape.empty() ||
      rows->second.size() != value->second.shape[0])
    return InvalidArgument(
        "'%s' is no SelectedRows: expected arrays 'value', 'rows' (int64, one "
        "for each row of the value) and 'height' (int64)",
        job.content.path);
  SelectedRowsArray out;
  out.value = value->second;
  out.rows.resize(static_cast<size_t>(rows->second.size()));
  if (!out.rows.empty())
    std::memcpy(out.rows.data(), rows->second.bytes.get(),
                rows->second.size_bytes());
  std::memcpy(&out.height, height->second.bytes.get(), sizeof(out.height));
  Count(arrays, job.written);
  return WriteSelectedRows(job.path, out);
}

absl::Status WriteInfo(const WriteJob& job) {
  const bool own = job.content.info.As<PickleNone>() == nullptr;
  const PickleValue& info = own ? job.content.info : job.object;
  if (info.As<PickleDict>() == nullptr)
    return InvalidArgument("'%s' has no table of variables", job.content.path);
  return WritePickle(job.path, info, kInfoProtocol);
}

absl::Status WriteText(const WriteJob& job) {
  if (!job.content.program.has_value())
    return InvalidArgument("'%s' holds no program to show as text",
                           job.content.path);
  return WriteFile(job.path, DumpProgram(*job.content.program));
}

bool IsSeveralFiles(Target target) {
  return target == Target::kPaddle || target == Target::kPaddleStatic ||
         target == Target::kLegacy || target == Target::kLegacyJoint ||
         target == Target::kSeparate;
}

absl::Status Write(const WriteJob& job, Target target) {
  switch (target) {
    case Target::kPickle:
      return WritePickled(job);
    case Target::kJoint:
      return WriteJoint(job);
    case Target::kSeparate:
      return WriteSeparate(job);
    case Target::kTensor:
      return WriteOneTensor(job);
    case Target::kSelectedRows:
      return WriteRows(job);
    case Target::kInfo:
      return WriteInfo(job);
    case Target::kNpy:
      return WriteOneNpy(job);
    case Target::kNpz:
      return WriteNpzObject(job);
    case Target::kSafetensors:
      return WriteSafetensorsObject(job);
    case Target::kText:
      return WriteText(job);
    default:
      return WriteModel(job, target);
  }
}

}  // namespace

absl::Status LeaveOut(const WriteJob& job, absl::string_view target,
                      const std::vector<std::string>& what) {
  constexpr size_t kMost = 8;
  if (what.empty()) return absl::OkStatus();
  if (job.options.arrays_only) {
    job.written->left_out.insert(job.written->left_out.end(), what.begin(),
                                 what.end());
    return absl::OkStatus();
  }
  const std::vector<std::string> shown(
      what.begin(),
      what.begin() + static_cast<long>(std::min(what.size(), kMost)));
  return InvalidArgument(
      "'%s': %s cannot hold %s%s; --arrays-only leaves them out",
      job.content.path, target, absl::StrJoin(shown, ", "),
      shown.size() < what.size()
          ? absl::StrCat(" and ", what.size() - shown.size(), " more")
          : "");
}

absl::StatusOr<NamedArrays> ArraysOf(const WriteJob& job,
                                     absl::string_view target, bool holds_lod) {
  PD_ASSIGN_OR_RETURN(const FlatTree flat, FlatOf(job));
  std::vector<std::string> what = flat.others;
  NamedArrays arrays;
  for (const TreeArray& array : flat.arrays) {
    Array kept = *array.array;
    if (!holds_lod && !kept.lod.empty()) {
      what.push_back(absl::StrCat("the LoD of '", array.name, "'"));
      kept.lod.clear();
    }
    arrays.emplace(array.name, std::move(kept));
  }
  PD_RETURN_IF_ERROR(LeaveOut(job, target, what));
  return arrays;
}

void Count(const NamedArrays& arrays, Written* written) {
  written->arrays += arrays.size();
  for (const auto& [name, array] : arrays) written->bytes += array.size_bytes();
}

absl::StatusOr<Written> WriteContent(const Content& content, Target target,
                                     const std::string& path,
                                     const WriteOptions& options) {
  if (IsSeveralFiles(target))
    PD_RETURN_IF_ERROR(CheckPrefix(path, "this form"));
  Written written;
  FileSet files;
  WriteJob job{
      content,
      options,
      path,
      content.rows.has_value() ? RowsObject(*content.rows) : content.object,
      &written,
      &files};
  PD_RETURN_IF_ERROR(Write(job, target));
  PD_RETURN_IF_ERROR(files.Commit());
  if (written.files.empty()) written.files.push_back(path);
  return written;
}

}  // namespace pd
