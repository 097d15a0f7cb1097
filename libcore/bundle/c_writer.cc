// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/c_writer.h"

#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/file_set.h"
#include "libcore/base/file_target.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/bundle/runtime_sources.h"

namespace pd {
namespace {

constexpr size_t kMostInline = size_t{1} << 20;
constexpr absl::string_view kInclude = "#include \"libcore/bundle/";

const std::map<std::string, std::string>& Texts() {
  static const auto* texts = [] {
    auto* all = new std::map<std::string, std::string>;
    for (const RuntimeSource& source : RuntimeSources())
      (*all)[source.name] = source.text;
    return all;
  }();
  return *texts;
}

// "libcore/bundle/runtime/conv.h" in an include line -> "conv.h"; "" for other
// lines.
absl::string_view Included(absl::string_view line) {
  if (!absl::ConsumePrefix(&line, kInclude)) return "";
  line = line.substr(0, line.find('"'));
  return line.substr(line.rfind('/') + 1);
}

// All files lie in one folder.
std::string Flattened(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (std::string& line : lines)
    if (const absl::string_view name = Included(line); !name.empty())
      line = absl::StrCat("#include \"", name, "\"");
  return absl::StrJoin(lines, "\n");
}

// The symbol and the source of each kernel by its name, from the definitions
// `const Kernel kConv = {"conv",`.
struct KernelPlace {
  std::string symbol, source;
};
std::map<std::string, KernelPlace> KernelPlaces() {
  const std::string definition = "\nconst Kernel k";
  std::map<std::string, KernelPlace> places;
  for (const auto& [source, text] : Texts()) {
    for (size_t at = text.find(definition); at != std::string::npos;
         at = text.find(definition, at + 1)) {
      const size_t symbol = at + definition.size() - 1;
      const size_t name = text.find('"', symbol) + 1;
      places[text.substr(name, text.find('"', name) - name)] = {
          text.substr(symbol, text.find(' ', symbol) - symbol), source};
    }
  }
  return places;
}

// Adds a source with all that it includes, and for each header the source that
// defines its functions.
void AddSource(const std::string& name, std::set<std::string>* names) {
  const auto text = Texts().find(name);
  if (text == Texts().end() || !names->insert(name).second) return;
  for (const absl::string_view line : absl::StrSplit(text->second, '\n')) {
    const std::string header(Included(line));
    if (header.empty()) continue;
    AddSource(header, names);
    // The header of all kernels is no reason to take one.
    if (absl::EndsWith(header, ".h"))
      AddSource(absl::StrCat(absl::StripSuffix(header, ".h"), ".cc"), names);
  }
}

std::vector<std::string> KernelsOf(const BundleGraph& graph) {
  std::set<std::string> kernels;
  for (const BundleNode& node : graph.nodes) kernels.insert(node.kernel);
  return {kernels.begin(), kernels.end()};
}

// The table of kernel.h for one model.
std::string KernelTable(const std::vector<std::string>& kernels) {
  const auto places = KernelPlaces();
  std::string text =
      "// SPDX-License-Identifier: Apache-2.0\n"
      "// The kernels that the model needs.\n"
      "#include \"kernels.h\"\n\nnamespace pd_run {\n\n"
      "const Kernel* const kKernels[] = {\n";
  for (const std::string& kernel : kernels) {
    const auto place = places.find(kernel);
    PD_INVARIANT(place != places.end());
    absl::StrAppend(&text, "    &", place->second.symbol, ",\n");
  }
  return absl::StrCat(text, "    nullptr};\n\n}  // namespace pd_run\n");
}

std::string ModelText(const std::string& bytes, bool is_inline) {
  std::string text =
      "// SPDX-License-Identifier: Apache-2.0\n"
      "#include \"model.h\"\n\n";
  if (!is_inline)
    return absl::StrCat(
        text,
        "#ifndef PD_MODEL_FILE\n#define PD_MODEL_FILE \"model.pdb\"\n#endif\n\n"
        "pd_run_status pd_model_open(const char* path,\n"
        "                            const pd_run_options* options,\n"
        "                            pd_run_model** model) {\n"
        "  return pd_run_open(path != nullptr ? path : PD_MODEL_FILE, "
        "options,\n"
        "                     model);\n}\n");
  // Words of eight bytes, which compilers read faster than as many bytes.
  absl::StrAppend(&text,
                  "// The bundle, in little-endian words.\n"
                  "alignas(64) static const uint64_t kBundle[] = {");
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at,
                std::min<size_t>(8, bytes.size() - at));
    absl::StrAppendFormat(&text, "%s0x%xu,", at % 32 == 0 ? "\n    " : " ",
                          word);
  }
  return absl::StrCat(text,
                      "\n};\n\n"
                      "pd_run_status pd_model_open(const char*, const "
                      "pd_run_options* options,\n"
                      "                            pd_run_model** model) {\n"
                      "  return pd_run_open_memory(kBundle, ",
                      bytes.size(), ", options, model);\n}\n");
}

std::string InputRows(const BundleGraph& graph) {
  std::string rows;
  for (const uint32_t input : graph.inputs) {
    const BundleValue& value = graph.values[input];
    const char* const names[] = {"float32", "int64", "int32", "uint8", "bool"};
    absl::StrAppend(&rows, "| `", value.name, "` | ",
                    names[static_cast<uint32_t>(value.dtype)], " | ",
                    ToString(value.shape), " |\n");
  }
  return rows;
}

// The texts that are made for the model, by file name.
std::map<std::string, std::string> MadeTexts(const BundleGraph& graph,
                                             const std::string& bytes,
                                             const std::string& name) {
  const bool is_inline = bytes.size() <= kMostInline;
  const std::vector<std::string> kernels = KernelsOf(graph);
  std::map<std::string, std::string> files;
  std::string sources;
  for (const std::string& source : SourcesFor(kernels)) {
    files[source] = Flattened(Texts().at(source));
    if (absl::EndsWith(source, ".cc"))
      absl::StrAppend(&sources, "  ", source, "\n");
  }
  absl::StrAppend(&sources, "  model.cc\n  model_kernels.cc");
  const std::vector<std::pair<std::string, std::string>> words = {
      {"@MODEL@", name},
      {"@VERSION@", PD_VERSION},
      {"@SOURCES@", sources},
      {"@INPUTS@", InputRows(graph)},
      {"@FILES@", graph.inputs.size() == 1 ? "INPUT" : "INPUT..."},
      {"@WEIGHTS@",
       is_inline
           ? "The weights are part of `model.cc`."
           : "The weights are in `model.pdb`, which has to stay where it was "
             "when the program was built, or whose path `pd_model_open` gets."},
  };
  files["CMakeLists.txt"] =
      absl::StrReplaceAll(Texts().at("CMakeLists.in"), words);
  files["README.md"] = absl::StrReplaceAll(Texts().at("README.in"), words);
  files["main.cc"] = Flattened(Texts().at("main.cc"));
  files["model.h"] = Flattened(Texts().at("model.h"));
  files["model.cc"] = ModelText(bytes, is_inline);
  files["model_kernels.cc"] = KernelTable(kernels);
  if (!is_inline) files["model.pdb"] = bytes;
  return files;
}

}  // namespace

std::vector<std::string> SourcesFor(const std::vector<std::string>& kernels) {
  std::set<std::string> names;
  AddSource("pd_run.cc", &names);
  const auto places = KernelPlaces();
  for (const std::string& kernel : kernels)
    if (const auto it = places.find(kernel); it != places.end())
      AddSource(it->second.source, &names);
  AddSource("kernels.h", &names);
  return {names.begin(), names.end()};
}

absl::Status WriteSourceFolder(const OpRegistry& registry,
                               const InferenceModel& model,
                               const std::string& folder) {
  PD_RETURN_IF_ERROR(CheckPrefix(folder, "a folder of sources"));
  PD_ASSIGN_OR_RETURN(const BundleGraph graph, LowerModel(registry, model));
  PD_ASSIGN_OR_RETURN(const std::string bytes, BundleBytes(graph));
  PD_RETURN_IF_ERROR(MakeDirectories(folder));
  FileSet files;
  std::string name(absl::StripSuffix(folder, "/"));
  name = name.substr(name.rfind('/') + 1);
  const auto texts = MadeTexts(graph, bytes, name);
  for (const auto& [file, text] : texts) {
    PD_ASSIGN_OR_RETURN(const std::string place,
                        files.Add(absl::StrCat(folder, "/", file)));
    PD_RETURN_IF_ERROR(WriteFile(place, text));
  }
  // A bundle that an earlier export left would be taken for this model's.
  if (texts.count("model.pdb") == 0)
    PD_RETURN_IF_ERROR(files.AddRemoval(absl::StrCat(folder, "/model.pdb")));
  PD_RETURN_IF_ERROR(files.Commit());
  return SyncDirectory(folder);
}

}  // namespace pd
