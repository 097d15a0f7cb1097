// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/golden_case.h"

#include <zip.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"

namespace pd {

absl::StatusOr<std::map<std::string, ZipFolder>> ReadZipFolders(
    const std::string& path) {
  int code = 0;
  zip_t* zip = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (zip == nullptr)
    return DataLoss("'%s' does not open as a zip (%d)", path, code);
  std::map<std::string, ZipFolder> folders;
  for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0); ++i) {
    zip_stat_t stat;
    zip_stat_index(zip, static_cast<zip_uint64_t>(i), 0, &stat);
    const std::string name = stat.name;
    const size_t slash = name.find('/');
    if (slash == std::string::npos || slash + 1 == name.size()) continue;
    std::string bytes(stat.size, '\0');
    zip_file_t* file = zip_fopen_index(zip, static_cast<zip_uint64_t>(i), 0);
    const bool read =
        file != nullptr && zip_fread(file, bytes.data(), bytes.size()) ==
                               static_cast<zip_int64_t>(bytes.size());
    if (file != nullptr) zip_fclose(file);
    if (!read) {
      zip_discard(zip);
      return DataLoss("'%s': entry '%s' cannot be read", path, name);
    }
    folders[name.substr(0, slash)][name.substr(slash + 1)] = std::move(bytes);
  }
  zip_discard(zip);
  return folders;
}

absl::StatusOr<NamedArrays> ArraysOf(const ZipFolder& files, const char* name) {
  const auto it = files.find(name);
  if (it == files.end()) return NamedArrays();
  auto copy = std::make_shared<std::string>(it->second);
  FileBytes bytes;
  bytes.size = copy->size();
  bytes.data = std::shared_ptr<const std::byte>(
      copy, reinterpret_cast<const std::byte*>(copy->data()));
  return ParseNpz(bytes);
}

namespace {

absl::StatusOr<ProgramDesc> Program(const ZipFolder& files, const char* name) {
  const auto it = files.find(name);
  if (it == files.end()) return NotFound("'%s' is missing", name);
  return ParseProgram(it->second);
}

// The lengths of sequences, by feed and level, become offsets.
absl::Status ReadLoD(const ZipFolder& files, NamedArrays* feed) {
  const auto text = files.find("feed.lod.json");
  if (text == files.end()) return absl::OkStatus();
  const auto json = nlohmann::json::parse(text->second, nullptr, false);
  if (json.is_discarded()) return DataLoss("'feed.lod.json' is not JSON");
  for (const auto& [name, levels] : json.items()) {
    LoD lod;
    for (const auto& lengths : levels) {
      lod.push_back({0});
      for (uint64_t length : lengths)
        lod.back().push_back(lod.back().back() + length);
    }
    (*feed)[name].lod = std::move(lod);
  }
  return absl::OkStatus();
}

absl::StatusOr<GoldenCase> ReadCase(const std::string& name,
                                    const ZipFolder& files) {
  GoldenCase one;
  one.name = name;
  PD_ASSIGN_OR_RETURN(one.program, Program(files, "program.pdmodel"));
  PD_ASSIGN_OR_RETURN(
      one.forward,
      Program(files, files.count("forward.pdmodel") > 0 ? "forward.pdmodel"
                                                        : "program.pdmodel"));
  if (files.count("startup.pdmodel") > 0) {
    PD_ASSIGN_OR_RETURN(one.startup, Program(files, "startup.pdmodel"));
  }
  PD_ASSIGN_OR_RETURN(one.feed, ArraysOf(files, "feed.npz"));
  PD_ASSIGN_OR_RETURN(one.expect, ArraysOf(files, "expect.npz"));
  PD_RETURN_IF_ERROR(ReadLoD(files, &one.feed));
  const auto text = files.find("case.json");
  if (text == files.end()) return NotFound("'case.json' is missing");
  const auto json = nlohmann::json::parse(text->second, nullptr, false);
  if (json.is_discarded()) return DataLoss("'case.json' is not JSON");
  one.rtol = json.value("rtol", 1e-5);
  one.atol = json.value("atol", 1e-6);
  if (!json.contains("grad")) return one;
  const auto& grad = json["grad"];
  for (const auto& [out, cotangent] : grad["targets"].items())
    one.targets[out] = cotangent;
  for (const auto& input : grad["inputs"]) one.inputs.push_back(input);
  for (const auto& [input, gradient] : grad["grads"].items())
    one.grads[input] = gradient;
  return one;
}

}  // namespace

absl::StatusOr<std::vector<GoldenCase>> ReadGoldenCases(
    const std::string& path) {
  PD_ASSIGN_OR_RETURN(const auto folders, ReadZipFolders(path));
  std::vector<GoldenCase> cases;
  for (const auto& [name, files] : folders) {
    auto one = ReadCase(name, files);
    if (!one.ok())
      return Annotate(one.status(), absl::StrCat(path, ": ", name));
    cases.push_back(*std::move(one));
  }
  return cases;
}

}  // namespace pd
