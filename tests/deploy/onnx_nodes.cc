// SPDX-License-Identifier: Apache-2.0
#include "tests/deploy/onnx_nodes.h"

#include <zip.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "formats/onnx_file.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/exec/session.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

void Put(const std::string& file, std::string bytes, OnnxNodeCase* one) {
  if (file == "model.onnx")
    one->model = std::move(bytes);
  else
    one->data[file] = std::move(bytes);
}

absl::StatusOr<std::vector<OnnxNodeCase>> FromZip(const std::string& path) {
  int code = 0;
  zip_t* zip = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (zip == nullptr)
    return DataLoss("'%s' does not open as a zip (%d)", path, code);
  std::map<std::string, OnnxNodeCase> cases;
  for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0); ++i) {
    zip_stat_t stat;
    zip_stat_index(zip, static_cast<zip_uint64_t>(i), 0, &stat);
    const std::string name = stat.name;
    const size_t slash = name.find('/');
    if (slash == std::string::npos || name.back() == '/') continue;
    std::string bytes(stat.size, '\0');
    zip_file_t* file = zip_fopen_index(zip, static_cast<zip_uint64_t>(i), 0);
    if (file == nullptr || zip_fread(file, bytes.data(), bytes.size()) !=
                               static_cast<zip_int64_t>(bytes.size()))
      return DataLoss("'%s': '%s' cannot be read", path, name);
    zip_fclose(file);
    OnnxNodeCase& one = cases[name.substr(0, slash)];
    one.name = name.substr(0, slash);
    Put(name.substr(slash + 1), std::move(bytes), &one);
  }
  zip_discard(zip);
  std::vector<OnnxNodeCase> all;
  for (auto& [name, one] : cases) all.push_back(std::move(one));
  return all;
}

absl::StatusOr<std::vector<OnnxNodeCase>> FromFolder(const std::string& path) {
  std::vector<OnnxNodeCase> cases;
  for (const auto& folder : fs::directory_iterator(path)) {
    if (folder.path().extension() == ".zip") {
      PD_ASSIGN_OR_RETURN(auto more, FromZip(folder.path().string()));
      std::move(more.begin(), more.end(), std::back_inserter(cases));
    }
    if (!folder.is_directory()) continue;
    OnnxNodeCase one;
    one.name = folder.path().filename().string();
    for (const auto& file : fs::recursive_directory_iterator(folder)) {
      if (!file.is_regular_file()) continue;
      PD_ASSIGN_OR_RETURN(const FileBytes bytes,
                          ReadFile(file.path().string()));
      Put(fs::relative(file.path(), folder).string(), std::string(bytes.view()),
          &one);
    }
    if (!one.model.empty()) cases.push_back(std::move(one));
  }
  std::sort(cases.begin(), cases.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return cases;
}

// Why the arrays differ; "" when they do not. ONNX's runner grants bfloat16 two
// units in the last place.
template <typename T>
std::string DifferenceOf(const Array& got, const Array& want) {
  const double part = std::is_same_v<T, BFloat16> ? 0x1p-6 : 1e-3;
  for (int64_t i = 0; i < want.size(); ++i) {
    const double g = static_cast<double>(got.data<T>()[i]);
    const double w = static_cast<double>(want.data<T>()[i]);
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    if (std::abs(g - w) <= 1e-7 + part * std::abs(w)) continue;
    return absl::StrCat("element ", i, " is ", g, "; expected ", w);
  }
  return "";
}

std::string Difference(const Array& got, const Array& want) {
  if (got.dtype != want.dtype)
    return absl::StrCat("it is ", Name(got.dtype), "; expected ",
                        Name(want.dtype));
  if (got.shape != want.shape)
    return absl::StrCat("it has shape ", ToString(got.shape), "; expected ",
                        ToString(want.shape));
  switch (want.dtype) {
    case DType::kBool:
      return DifferenceOf<bool>(got, want);
    case DType::kInt8:
      return DifferenceOf<int8_t>(got, want);
    case DType::kUInt8:
      return DifferenceOf<uint8_t>(got, want);
    case DType::kInt16:
      return DifferenceOf<int16_t>(got, want);
    case DType::kInt32:
      return DifferenceOf<int32_t>(got, want);
    case DType::kInt64:
      return DifferenceOf<int64_t>(got, want);
    case DType::kFloat16:
      return DifferenceOf<Float16>(got, want);
    case DType::kBFloat16:
      return DifferenceOf<BFloat16>(got, want);
    case DType::kFloat32:
      return DifferenceOf<float>(got, want);
    case DType::kFloat64:
      return DifferenceOf<double>(got, want);
    default:
      return "complex";
  }
}

// The test data hold bfloat16 as the uint16 of its bits: element type 4 of
// field 2 becomes 16.
std::string AsBFloat16(std::string tensor) {
  const size_t at = tensor.find(std::string("\x10\x04"));
  if (at != std::string::npos) tensor[at + 1] = 16;
  return tensor;
}

absl::StatusOr<NamedArrays> Arrays(const OnnxNodeCase& one,
                                   const std::string& set, const char* kind,
                                   const std::vector<OnnxFileValue>& values) {
  NamedArrays arrays;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto file =
        one.data.find(absl::StrCat(set, "/", kind, "_", i, ".pb"));
    if (file == one.data.end()) continue;
    auto tensor =
        ParseOnnxTensor(OnnxTypeName(values[i].element_type) == "bfloat16"
                            ? AsBFloat16(file->second)
                            : file->second);
    if (!tensor.ok())
      return Annotate(tensor.status(), absl::StrCat(kind, " ", i));
    arrays[values[i].name] = std::move(tensor->second);
  }
  return arrays;
}

absl::Status RunSet(const OpRegistry& registry, const OnnxFile& file,
                    const OnnxNodeCase& one, const std::string& set) {
  PD_ASSIGN_OR_RETURN(const NamedArrays feeds,
                      Arrays(one, set, "input", file.graph.inputs));
  PD_ASSIGN_OR_RETURN(const NamedArrays wants,
                      Arrays(one, set, "output", file.graph.outputs));
  PD_ASSIGN_OR_RETURN(const InferenceModel model,
                      ImportOnnx(registry, file, &feeds));
  Session session(&registry);
  for (const auto& [name, value] : model.params)
    PD_RETURN_IF_ERROR(session.scope().Set(name, value));
  PD_ASSIGN_OR_RETURN(const NamedArrays gots,
                      session.Run(model.program, feeds, model.names.fetches));
  for (const auto& [name, want] : wants) {
    const auto got = gots.find(name);
    if (got == gots.end()) return NotFound("output '%s' is missing", name);
    const std::string why = Difference(got->second, want);
    if (!why.empty()) return Unknown("output '%s': %s", name, why);
  }
  return absl::OkStatus();
}

bool IsOneOf(int32_t element_type, int32_t first, int32_t last) {
  return element_type >= first && element_type <= last;
}

// "" when our types can hold every input and output.
std::string OtherTypes(const OnnxFile& file) {
  for (const auto* values : {&file.graph.inputs, &file.graph.outputs})
    for (const OnnxFileValue& value : *values) {
      if (!value.is_tensor) return "sequences or optionals";
      if (OnnxTypeName(value.element_type) == "string") return "strings";
      if (IsOneOf(value.element_type, 17, 20) || value.element_type == 24)
        return "8-bit floats";
      if (IsOneOf(value.element_type, 21, 26)) return "numbers of 4 or 2 bits";
    }
  return "";
}

}  // namespace

absl::StatusOr<std::vector<OnnxNodeCase>> ReadOnnxNodeCases(
    const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) ? FromFolder(path) : FromZip(path);
}

OnnxNodeOutcome RunOnnxNodeCase(const OpRegistry& registry,
                                const OnnxNodeCase& one) {
  OnnxNodeOutcome outcome;
  const auto fail = [&](const absl::Status& status) {
    outcome.kind = OnnxNodeOutcome::Kind::kFail;
    outcome.reason =
        absl::StrReplaceAll(status.message(), {{"\n", " "}, {"\x01", ""}});
    return outcome;
  };
  const auto file = ParseOnnx(one.model, "");
  if (!file.ok()) return fail(file.status());
  for (const auto& [domain, version] : file->opsets)
    outcome.opset = domain.empty() ? version : outcome.opset;
  outcome.reason = OtherTypes(*file);
  for (const OnnxFileNode& node : file->graph.nodes)
    if (node.domain == "ai.onnx.preview") outcome.reason = "preview operators";
  if (!outcome.reason.empty()) {
    outcome.kind = OnnxNodeOutcome::Kind::kOtherTypes;
    return outcome;
  }
  std::set<std::string> sets;
  for (const auto& [name, bytes] : one.data)
    sets.insert(name.substr(0, name.find('/')));
  for (const std::string& set : sets) {
    const absl::Status status = RunSet(registry, *file, one, set);
    if (!status.ok()) return fail(status);
  }
  return outcome;
}

}  // namespace pd
