// SPDX-License-Identifier: Apache-2.0
// TorchScript's source as a tree: classes with methods, and functions. It is
// the subset of Python that torch.jit.save prints.
#ifndef PD_LIBCORE_DEPLOY_TORCH_SCRIPT_PARSE_H_
#define PD_LIBCORE_DEPLOY_TORCH_SCRIPT_PARSE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

struct ScriptExpr {
  enum class Kind {
    kNone,
    kBool,       ///< `integer`
    kInt,        ///< `integer`
    kFloat,      ///< `real`
    kText,       ///< `text`
    kName,       ///< `text`
    kAttribute,  ///< items[0].text
    kIndex,      ///< items[0][items[1]]
    kCall,       ///< items[0](the rest; `keywords` has a name for each or "")
    kList,
    kTuple,
    kDict,     ///< keys and values in turn
    kUnary,    ///< `text` of items[0]
    kBinary,   ///< items[0] `text` items[1]
    kTernary,  ///< items[0] if items[1] else items[2]
  };
  Kind kind = Kind::kNone;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<ScriptExpr> items;
  std::vector<std::string> keywords;
};

struct ScriptStatement {
  enum class Kind {
    kExpr,    ///< `value`
    kAssign,  ///< targets = value
    kReturn,  ///< `value`
    kIf,      ///< `value`, `body`, `otherwise`
    kWhile,   ///< `value`, `body`
    kFor,     ///< targets[0] in `value`, `body`
  };
  Kind kind = Kind::kExpr;
  int64_t line = 0;
  std::vector<ScriptExpr> targets;
  bool unpacks = false;  ///< kAssign: the value is a tuple, taken apart
  ScriptExpr value;
  std::vector<ScriptStatement> body, otherwise;
};

struct ScriptFunction {
  std::string name;
  /// With types as they are written: {"x", "Tensor"}.
  std::vector<std::pair<std::string, std::string>> parameters;
  std::map<std::string, ScriptExpr> defaults;  ///< by parameter
  std::vector<ScriptStatement> body;
};

/// The methods of one source: "forward" of class "Net" is "Net.forward".
using ScriptFunctions =
    std::map<std::string, std::shared_ptr<const ScriptFunction>>;

/// DataLoss, with the line, where the text is no TorchScript;
/// InvalidArgument where it is nested too deeply.
absl::StatusOr<ScriptFunctions> ParseTorchSource(absl::string_view source);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TORCH_SCRIPT_PARSE_H_
