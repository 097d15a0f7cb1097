// SPDX-License-Identifier: Apache-2.0
// A graph of TensorFlow whose calls of functions are replaced by the functions'
// nodes, in an order in which every node comes after those that it reads.
#ifndef PD_LIBCORE_DEPLOY_TENSORFLOW_IMPORT_FLATTEN_H_
#define PD_LIBCORE_DEPLOY_TENSORFLOW_IMPORT_FLATTEN_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/tensorflow_file.h"
#include "libcore/deploy/tensorflow_import/call.h"

namespace pd {

struct TfFlatGraph {
  /// Names are unique; inputs are "NODE" or "NODE:1", none of them only for
  /// order; attributes are those of the calls.
  std::vector<TfNode> nodes;
  /// By value of the graph as it was: that of these nodes.
  std::map<std::string, std::string> values;
  /// By node of the graph as it was, functions apart: the name of this one.
  std::map<std::string, std::string> names;
};

/// The nodes that `wanted` values ("NODE:0") need. Nodes keep their names
/// where nodes of several functions do not share them and `taken` has none of
/// them.
absl::StatusOr<TfFlatGraph> FlattenTf(const TfGraph& graph,
                                      const std::vector<std::string>& wanted,
                                      std::set<std::string> taken);

/// The body of a function, for operators that run it.
struct TfFlatFunction {
  std::vector<std::string> arguments;  ///< values that nothing gives yet
  std::vector<TfNode> nodes;           ///< as those of TfFlatGraph
  std::vector<std::string> outputs;    ///< values of arguments or nodes
};

/// All names begin with `prefix`.
absl::StatusOr<TfFlatFunction> FlattenTfFunction(const TfGraph& graph,
                                                 const std::string& name,
                                                 const std::string& prefix);

/// By node that makes a variable: its key among the saved ones, as the graph's
/// node `restore` reads them.
absl::StatusOr<std::map<std::string, std::string>> TfVariableKeys(
    const TfGraph& graph, const std::string& restore);

/// The name by which nodes share a table: the shared one, or its node's.
std::string TfTableName(const TfNode& table);

/// By TfTableName: the tables that nodes of the graph, or of functions that
/// these call, fill with constants.
absl::StatusOr<std::map<std::string, TfLookupTable>> TfTables(
    const TfGraph& graph);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TENSORFLOW_IMPORT_FLATTEN_H_
