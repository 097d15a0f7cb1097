// SPDX-License-Identifier: Apache-2.0
#include "cmd/inspection_text.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cmd/common/table.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

std::string Real(double value) { return absl::StrFormat("%.6g", value); }

std::string NumberText(const std::optional<Number>& value) {
  if (!value.has_value()) return "-";
  if (const auto* integer = std::get_if<int64_t>(&*value))
    return absl::StrCat(*integer);
  return Real(std::get<double>(*value));
}

// 1234567 as "1234.6 k" for steps of 1000: four to five digits at most.
std::string Scaled(int64_t count, double step,
                   const std::vector<const char*>& units) {
  auto value = static_cast<double>(count);
  size_t unit = 0;
  for (; value >= 10 * step && unit + 1 < units.size(); ++unit) value /= step;
  return absl::StrFormat("%.*f%s", unit == 0 ? 0 : 1, value, units[unit]);
}

std::string Bytes(int64_t bytes) {
  return Scaled(bytes, 1024, {" B", " KB", " MB", " GB", " TB"});
}

std::string Flops(int64_t count) {
  return Scaled(count, 1000, {"", " k", " M", " G", " T", " P"});
}

std::string FactText(const Fact& fact) {
  if (const auto* on = std::get_if<bool>(&fact.value))
    return *on ? "yes" : "no";
  if (const auto* n = std::get_if<int64_t>(&fact.value))
    return absl::StrCat(*n);
  if (const auto* x = std::get_if<double>(&fact.value)) return Real(*x);
  return Printable(std::get<std::string>(fact.value));
}

void AppendSection(const std::string& title, const std::string& body,
                   std::string* text) {
  absl::StrAppend(text, "\n", title, "\n", body);
}

void AppendVariables(const char* title, const std::vector<VariableInfo>& vars,
                     std::string* text) {
  if (vars.empty()) return;
  Table table(3);
  for (const VariableInfo& var : vars)
    table.Add({Printable(var.name), ToString(var.shape),
               std::string(Name(var.dtype))});
  AppendSection(title, table.ToString(), text);
}

std::string FlopsLine(const FlopCount& flops) {
  if (!flops.total.has_value())
    return absl::StrCat("FLOPs: unknown, ", Printable(flops.why_unknown), "\n");
  if (flops.by_type.empty())
    return "FLOPs: 0 (no convolutions and matrix products)\n";
  std::vector<std::string> parts;
  for (const auto& [type, count] : flops.by_type)
    parts.push_back(absl::StrCat(Printable(type), " ", Flops(count)));
  std::string assumed;
  for (const auto& [name, shape] : flops.assumed)
    absl::StrAppend(&assumed, ", with ", Printable(name), " as ",
                    ToString(shape));
  return absl::StrCat("FLOPs: ", Flops(*flops.total),
                      " (2 for each multiply-add, batch of 1", assumed, ": ",
                      absl::StrJoin(parts, ", "), ")\n");
}

void AppendModel(const ModelInfo& model, std::string* text) {
  AppendVariables("inputs", model.inputs, text);
  AppendVariables("outputs", model.outputs, text);
  Table table(1);
  int64_t total = 0;
  for (const auto& [type, count] : model.ops) {
    table.Add({Printable(type), absl::StrCat(count)});
    total += count;
  }
  AppendSection(absl::StrCat("ops: ", total), table.ToString(), text);
  absl::StrAppend(text, "\n", FlopsLine(model.flops));
}

struct Totals {
  int64_t elements = 0, bytes = 0, nan = 0, inf = 0;
  bool lod = false;
};

Totals TotalsOf(const std::vector<TensorInfo>& tensors) {
  Totals totals;
  for (const TensorInfo& tensor : tensors) {
    totals.bytes += tensor.bytes.value_or(0);
    totals.elements +=
        tensor.bytes.value_or(0) / static_cast<int64_t>(SizeOf(tensor.dtype));
    totals.lod |= tensor.lod_levels > 0;
    if (!tensor.stats.has_value()) continue;
    totals.nan += tensor.stats->nan;
    totals.inf += tensor.stats->inf;
  }
  return totals;
}

Table::Row TensorRow(const TensorInfo& tensor, size_t number,
                     const Totals& totals) {
  const TensorStats stats = tensor.stats.value_or(TensorStats());
  Table::Row row = {
      tensor.name.empty() ? absl::StrCat("#", number) : Printable(tensor.name),
      ToString(tensor.shape), std::string(Name(tensor.dtype))};
  if (totals.lod) row.push_back(absl::StrCat(tensor.lod_levels));
  row.push_back(tensor.bytes.has_value() ? Bytes(*tensor.bytes) : "-");
  row.push_back(NumberText(stats.min));
  row.push_back(NumberText(stats.max));
  row.push_back(stats.mean.has_value() ? Real(*stats.mean) : "-");
  if (totals.nan > 0) row.push_back(absl::StrCat(stats.nan));
  if (totals.inf > 0) row.push_back(absl::StrCat(stats.inf));
  return row;
}

void AppendTensors(const std::vector<TensorInfo>& tensors, std::string* text) {
  if (tensors.empty()) return;
  const Totals totals = TotalsOf(tensors);
  Table table(3);
  Table::Row heading = {"name", "shape", "dtype"};
  if (totals.lod) heading.push_back("lod");
  heading.insert(heading.end(), {"bytes", "min", "max", "mean"});
  if (totals.nan > 0) heading.push_back("nan");
  if (totals.inf > 0) heading.push_back("inf");
  table.Add(std::move(heading));
  for (size_t i = 0; i < tensors.size(); ++i)
    table.Add(TensorRow(tensors[i], i, totals));
  AppendSection(
      absl::StrFormat("tensors: %d, %d elements, %s, %d NaN, %d infinite",
                      tensors.size(), totals.elements, Bytes(totals.bytes),
                      totals.nan, totals.inf),
      table.ToString(), text);
}

// NaN and infinities of a fact have no JSON: null.
Json RealJson(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json NumberJson(const std::optional<Number>& value) {
  if (!value.has_value()) return Json();
  if (const auto* integer = std::get_if<int64_t>(&*value)) return *integer;
  return RealJson(std::get<double>(*value));
}

Json FactJson(const Fact& fact) {
  if (const auto* x = std::get_if<double>(&fact.value)) return RealJson(*x);
  return std::visit([](const auto& value) { return Json(value); }, fact.value);
}

Json TensorJson(const TensorInfo& tensor) {
  const bool known = tensor.stats.has_value();
  const TensorStats stats = tensor.stats.value_or(TensorStats());
  Json json = {
      {"name", tensor.name},
      {"shape", tensor.shape},
      {"dtype", std::string(Name(tensor.dtype))},
      {"bytes", tensor.bytes.has_value() ? Json(*tensor.bytes) : Json()},
      {"min", NumberJson(stats.min)},
      {"max", NumberJson(stats.max)},
      {"mean", stats.mean.has_value() ? RealJson(*stats.mean) : Json()},
      {"nan", known ? Json(stats.nan) : Json()},
      {"inf", known ? Json(stats.inf) : Json()}};
  if (tensor.lod_levels > 0) json["lod_levels"] = tensor.lod_levels;
  if (!tensor.parameter_name.empty())
    json["parameter_name"] = tensor.parameter_name;
  return json;
}

Json VariablesJson(const std::vector<VariableInfo>& vars) {
  Json list = Json::array();
  for (const VariableInfo& var : vars)
    list.push_back({{"name", var.name},
                    {"shape", var.shape},
                    {"dtype", std::string(Name(var.dtype))}});
  return list;
}

// An object even when it is empty.
Json CountsJson(const std::map<std::string, int64_t>& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json[name] = count;
  return json;
}

}  // namespace

std::string InspectionText(const Inspection& inspection) {
  std::string text =
      absl::StrCat(Printable(inspection.path), ": ", inspection.kind);
  if (!inspection.content.empty())
    absl::StrAppend(&text, ", ", inspection.content);
  if (inspection.producer != "unknown")
    absl::StrAppend(&text, ", by ", inspection.producer);
  absl::StrAppend(&text, "\n");
  Table facts(2);
  for (const Fact& fact : inspection.facts)
    facts.Add({fact.name, FactText(fact)});
  absl::StrAppend(&text, facts.ToString());
  if (inspection.model.has_value()) AppendModel(*inspection.model, &text);
  AppendTensors(inspection.tensors, &text);
  if (!inspection.entries.empty()) {
    Table table(3);
    for (const EntryInfo& entry : inspection.entries)
      table.Add({Printable(entry.name), entry.type, Printable(entry.value)});
    AppendSection(absl::StrCat("other entries: ", inspection.entries.size()),
                  table.ToString(), &text);
  }
  for (const std::string& note : inspection.notes)
    absl::StrAppend(&text, "\nnote: ", Printable(note), "\n");
  return text;
}

std::string InspectionJson(const Inspection& inspection) {
  Json json = {{"kind", inspection.kind},
               {"content", inspection.content},
               {"producer", inspection.producer},
               {"path", inspection.path}};
  Json details = Json::object();
  for (const Fact& fact : inspection.facts) details[fact.name] = FactJson(fact);
  json["details"] = std::move(details);
  Json tensors = Json::array();
  for (const TensorInfo& tensor : inspection.tensors)
    tensors.push_back(TensorJson(tensor));
  json["tensors"] = std::move(tensors);
  if (inspection.model.has_value()) {
    const ModelInfo& model = *inspection.model;
    json["inputs"] = VariablesJson(model.inputs);
    json["outputs"] = VariablesJson(model.outputs);
    json["ops"] = CountsJson(model.ops);
    json["flops"] =
        model.flops.total.has_value() ? Json(*model.flops.total) : Json();
    json["flops_by_op"] = CountsJson(model.flops.by_type);
    for (const auto& [name, shape] : model.flops.assumed)
      json["flops_assume"][name] = shape;
  }
  for (const EntryInfo& entry : inspection.entries)
    json["entries"].push_back(
        {{"name", entry.name}, {"type", entry.type}, {"value", entry.value}});
  std::vector<std::string> notes = inspection.notes;
  if (inspection.model.has_value() &&
      !inspection.model->flops.why_unknown.empty())
    notes.push_back(
        absl::StrCat("FLOPs unknown: ", inspection.model->flops.why_unknown));
  if (!notes.empty()) json["notes"] = notes;
  // Names out of a file may be no UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pd
