// SPDX-License-Identifier: Apache-2.0
// Tables of numbers: a key is compared with all of the table's, which a node
// of the file fills before the network runs.
#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/node.h"
#include "libcore/deploy/tensorflow_import/call.h"
#include "libcore/deploy/tensorflow_import/flatten.h"

namespace pd {
namespace {

// Each key of a batch is compared with so many.
constexpr int64_t kMostKeys = int64_t{1} << 16;

// The table itself, which only a LookupTableFindV2 reads.
void ImportTable(TfCall* call) {
  TfValue value;
  value.plain = call->node().name;
  value.list = std::make_shared<TfList>();
  call->GiveValue(std::move(value));
}

const TfLookupTable* TableOf(TfCall* call) {
  const TfNode* table = call->Maker(call->node(), 0, "HashTableV2");
  if (table == nullptr) {
    call->Fail(Unimplemented("a table that is no HashTableV2 of the graph"));
    return nullptr;
  }
  TfShared& shared = *call->build().shared;
  if (!shared.tables.has_value()) {
    auto tables = TfTables(*shared.graph);
    if (!tables.ok()) {
      call->Fail(tables.status());
      return nullptr;
    }
    shared.tables = *std::move(tables);
  }
  const auto found = shared.tables->find(TfTableName(*table));
  if (found != shared.tables->end()) return &found->second;
  call->Fail(FailedPrecondition(
      "no node of the file fills the table '%s'; a frozen graph has left out "
      "those that do, a SavedModel has them",
      table->name));
  return nullptr;
}

void ImportTableLookup(TfCall* call) {
  const TfLookupTable* table = TableOf(call);
  if (table == nullptr) return;
  if (table->texts)
    return call->Fail(
        Unimplemented("tables of texts are looked up before the network, by "
                      "the program that feeds it"));
  const int64_t count = table->keys.size();
  if (count < 1 || count > kMostKeys || table->values.size() != count ||
      !OnnxInts(table->keys).has_value() || IsFloating(table->keys.dtype))
    return call->Fail(Unimplemented(
        "a table of %d keys of %s with %d values; from 1 to %d integers are "
        "read",
        count, Name(table->keys.dtype), table->values.size(), kMostKeys));
  const std::string keys =
      call->Constant(MakeArray({count}, *OnnxInts(table->keys)));
  Array flat = table->values;
  flat.shape = {count};
  const std::string x = call->Emit(
      "Unsqueeze",
      {call->Cast(call->In(1), DType::kInt64), call->ConstInts({-1})});
  const std::string same =
      call->Cast(call->Emit("Equal", {x, keys}), DType::kFloat32);
  const std::string place = call->Emit(
      "ArgMax", {same}, {{"axis", OnnxInt(-1)}, {"keepdims", OnnxInt(0)}});
  const std::string any =
      call->Cast(call->Emit("ReduceMax", {same, call->ConstInts({-1})},
                            {{"keepdims", OnnxInt(0)}}),
                 DType::kBool);
  call->Give(
      call->Emit("Where",
                 {any, call->Emit("Gather", {call->Constant(flat), place}),
                  call->In(2)}),
      call->Rank(1));
}

}  // namespace

TfImportEntries TfTableImports() {
  return {
      {"HashTableV2", ImportTable},
      {"LookupTableFindV2", ImportTableLookup},
  };
}

}  // namespace pd
