// SPDX-License-Identifier: Apache-2.0
#include "cmd/upgrade_man.h"

#include "absl/strings/str_cat.h"
#include "cmd/common/mdoc.h"
#include "libcore/convert/api_arguments.h"
#include "libcore/convert/api_names.h"
#include "libcore/convert/upgrade.h"

namespace pd {
namespace {

std::string Item(absl::string_view name, absl::string_view text) {
  return absl::StrCat(".It Li \\&", MdocEscape(name), "\n", MdocText(text));
}

std::string WithParameters(const ApiName& row) {
  const std::string parameters = DescribeParameters(row.old_name);
  return parameters.empty() ? row.new_names
                            : absl::StrCat(row.new_names, "; ", parameters);
}

std::string Names(bool same) {
  std::string list = ".Bl -tag -width Ds -compact\n";
  for (const ApiName& row : ApiNames())
    if (row.same == same)
      absl::StrAppend(&list, Item(row.old_name, WithParameters(row)));
  return list + ".El\n";
}

std::string Operators() {
  std::string list = ".Bl -tag -width Ds -compact\n";
  for (const OpUpgrade& op : OpUpgrades())
    absl::StrAppend(&list, Item(op.from, op.condition.empty()
                                             ? op.to
                                             : absl::StrCat(op.to, ", where ",
                                                            op.condition)));
  return list + ".El\n";
}

}  // namespace

std::string UpgradePage() {
  return absl::StrCat(
      MdocHead("pd-upgrade", 7,
               "from PaddlePaddle 1.x to 2.x: names and operator types"),
      ".Sh DESCRIPTION\n",
      MdocText(
          "Programs and models of PaddlePaddle 1.x use names and operator "
          "types that 2.x has renamed, and that later versions have removed. "
          "`pd-convert IN OUT --upgrade` rewrites both: IN is a model that was "
          "saved for inference, or a Python source whose name ends in `.py`."),
      ".Ss Models\n",
      MdocText(
          "Each op of an old type is replaced by ops that compute the same. "
          "One that cannot be stays as it was, and a warning says the reason. "
          "Names of parameters, inputs and outputs stay, and so do the "
          "parameters. Programs with gradients are refused."),
      ".Ss Sources\n",
      MdocText(
          "A name below `paddle.fluid` is found under whatever name the source "
          "has imported it. The name is replaced where the table below says "
          "that a call stays right with the new one; any other gets a warning "
          "with file, line and column, and the names to choose from. Imports "
          "that nothing needs any more become `import paddle`. Names in "
          "strings "
          "and comments stay."),
      MdocText(
          "Arguments of a replaced call become those of 2.0: they get their "
          "new names (`dim` is `axis`), a name where they have another place "
          "now, and are added where the default changed (`argmax` takes "
          "`axis=0`). Arguments that 2.0 lacks go where they say what 2.0 "
          "does; a call that says something else, such as `act=\"relu\"` of a "
          "sum, stays, with a warning, and so does one whose arguments are "
          "unpacked from a list (`*args`)."),
      ".Sh OPERATOR TYPES\n", Operators(), ".Sh NAMES THAT ARE REPLACED\n",
      MdocText("Before each name stands `paddle.`, which is left out here. Of "
               "several new names the first is taken."),
      Names(true), ".Sh NAMES THAT NEED A LOOK\n",
      MdocText(
          "Arguments or results changed, or there are several successors."),
      Names(false), ".Sh SEE ALSO\n.Xr pd-convert 1\n");
}

}  // namespace pd
