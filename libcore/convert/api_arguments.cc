// SPDX-License-Identifier: Apache-2.0
#include "libcore/convert/api_arguments.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace pd {
namespace {

// Names below paddle.fluid that share their parameters. A word of `parameters`
// is one of 1.8's, in order:
//
//   x             stays
//   dim:axis      has a new name
//   axis=0        stays; a call without it says axis=0, as the default changed
//   -act=None     is gone; a call that says something else stays as it is
//   -use_cudnn    is gone, whatever a call says
//   !batch=False  is gone, and only what 1.8 did with False is left
//   *             parameters behind it have other positions in 2.0
//   +mean=False   is new; a call says it to get what 1.8 did
struct Row {
  const char* names;
  const char* parameters;
};

constexpr Row kRows[] = {
    // Arithmetic.
    {"layers.elementwise_add layers.elementwise_div "
     "layers.elementwise_floordiv "
     "layers.elementwise_max layers.elementwise_min layers.elementwise_mod "
     "layers.elementwise_mul layers.elementwise_pow",
     "x y -axis=-1 -act=None name"},
    {"layers.equal layers.greater_equal layers.greater_than layers.less_equal "
     "layers.not_equal",
     "x y -cond=None"},
    {"layers.less_than", "x y -force_cpu -cond=None"},
    {"layers.is_empty", "x -cond=None"},
    {"layers.pow", "x factor:y=1.0 name"},
    {"layers.log1p", "x -out=None name"},
    {"layers.increment", "x value -in_place=True"},
    {"layers.sums", "input:inputs -out=None"},
    {"layers.matmul", "x y transpose_x transpose_y -alpha=1.0 name"},
    {"layers.addmm", "input x y * alpha beta name"},
    {"layers.kron", "x y -out=None name"},
    {"layers.cross", "input:x other:y dim:axis"},
    {"layers.allclose", "input:x other:y rtol atol equal_nan name"},
    {"layers.trace", "input:x offset dim1:axis1 dim2:axis2 -out=None name"},
    {"layers.tril layers.triu", "input:x diagonal name"},

    // Reductions.
    {"layers.reduce_all layers.reduce_any layers.reduce_max layers.reduce_mean "
     "layers.reduce_min",
     "input:x dim:axis keep_dim:keepdim name"},
    {"layers.reduce_sum layers.reduce_prod",
     "input:x dim:axis * keep_dim:keepdim name"},
    {"layers.logsumexp", "x dim:axis keepdim -out=None name"},
    {"layers.mean", "x * name"},
    {"layers.argmax layers.argmin", "x axis=0"},
    {"layers.topk", "input:x k * name"},
    {"layers.size", "input:x"},

    // Activations.
    {"layers.softmax", "input:x * -use_cudnn name axis"},
    {"layers.log_softmax", "input:x axis dtype name"},
    {"layers.leaky_relu", "x alpha:negative_slope=0.02 name"},
    {"layers.hard_sigmoid", "x slope=0.2 offset name"},
    {"layers.hard_swish", "x -threshold=6.0 -scale=6.0 -offset=3.0 name"},
    {"layers.softshrink", "x alpha:threshold"},
    {"layers.softplus", "x * name"},
    {"layers.swish", "x -beta=1.0 name"},
    {"layers.maxout", "x groups * name axis"},
    {"layers.prelu", "x mode param_attr * name"},

    // Shapes and elements.
    {"layers.assign", "input:x output"},
    {"layers.concat", "input:x axis name"},
    {"layers.split", "input:x num_or_sections dim:axis=-1 name"},
    {"layers.expand_as", "x target_tensor:y name"},
    {"layers.flip", "input:x dims:axis name"},
    {"layers.roll", "input:x shifts dims:axis"},
    {"layers.reshape", "x shape -actual_shape=None -act=None -inplace name"},
    {"layers.squeeze layers.unsqueeze", "input:x axes:axis name"},
    {"layers.gather", "input:x index -overwrite=True"},
    {"layers.gather_nd", "input:x index name"},
    {"layers.index_select", "input:x index dim:axis"},
    {"layers.nonzero", "input:x as_tuple"},
    {"layers.scatter", "input:x index updates * name overwrite"},
    {"layers.scatter_nd_add", "ref:x index updates name"},
    {"layers.strided_slice", "input:x axes starts ends strides"},
    {"layers.meshgrid", "input * name"},
    {"layers.affine_grid", "theta out_shape * name"},

    // New tensors.
    {"layers.fill_constant",
     "shape * dtype value:fill_value -force_cpu -out=None"},
    {"layers.full",
     "shape fill_value -out=None dtype -device=None -stop_gradient=True name"},
    {"layers.full_like",
     "input:x fill_value -out=None dtype -device=None -stop_gradient=True "
     "name"},
    {"layers.ones layers.zeros", "shape dtype -force_cpu"},
    {"layers.ones_like layers.zeros_like", "x -out=None"},
    {"layers.eye", "num_rows num_columns -batch_shape=None dtype"},
    {"layers.randn",
     "shape -out=None dtype -device=None -stop_gradient=True name"},
    {"layers.randint",
     "low high shape -out=None dtype -device=None -stop_gradient -seed=0 "
     "name"},
    {"layers.randperm",
     "n -out=None dtype -device=None -stop_gradient -seed=0"},
    {"layers.data",
     "name shape !append_batch_size=False dtype lod_level -type "
     "-stop_gradient"},
    {"dygraph.to_variable", "value:data -name=None -zero_copy"},

    // Layers and losses.
    {"layers.fc",
     "input:x size num_flatten_dims param_attr:weight_attr bias_attr "
     "act:activation name"},
    {"layers.Print",
     "input first_n message summarize print_tensor_name print_tensor_type "
     "print_tensor_shape * print_tensor_lod print_phase"},
    {"layers.cross_entropy",
     "input label * soft_label ignore_index +reduction='none' "
     "+use_softmax=False"},
    {"layers.softmax_with_cross_entropy",
     "logits:input label * soft_label ignore_index -numeric_stable_mode "
     "-return_softmax=False axis +reduction='none'"},
    {"layers.kldiv_loss", "x:input target:label reduction name"},
    {"layers.label_smooth", "label prior_dist epsilon -dtype='float32' name"},
    {"dygraph.NLLLoss", "weight * reduction ignore_index"},
    {"dygraph.BilinearTensorProduct",
     "input1_dim:in1_features input2_dim:in2_features output_dim:out_features "
     "* name -act=None param_attr:weight_attr bias_attr -dtype='float32'"},
    {"dygraph.Conv2D dygraph.Conv3D",
     "num_channels:in_channels num_filters:out_channels "
     "filter_size:kernel_size stride padding dilation groups * "
     "param_attr:weight_attr bias_attr -use_cudnn -act=None "
     "-dtype='float32'"},
    {"dygraph.Conv3DTranspose",
     "num_channels:in_channels num_filters:out_channels "
     "filter_size:kernel_size * padding stride dilation groups "
     "param_attr:weight_attr bias_attr -use_cudnn -act=None "
     "-dtype='float32'"},
    {"dygraph.GroupNorm",
     "* channels:num_channels groups:num_groups epsilon "
     "param_attr:weight_attr bias_attr -act=None data_layout:data_format "
     "-dtype='float32'"},
    {"dygraph.Linear",
     "input_dim:in_features output_dim:out_features param_attr:weight_attr "
     "bias_attr -act=None -dtype='float32'"},
    {"dygraph.grad",
     "outputs inputs grad_outputs retain_graph create_graph only_inputs "
     "allow_unused no_grad_vars -backward_strategy=None"},
    {"io.DataLoader",
     "dataset feed_list places return_list=False batch_sampler batch_size "
     "shuffle drop_last collate_fn num_workers use_buffer_reader * "
     "use_shared_memory timeout worker_init_fn"},

    // Initializers, decay and optimizers.
    {"initializer.Constant initializer.ConstantInitializer",
     "value -force_cpu"},
    {"initializer.Normal initializer.NormalInitializer",
     "loc:mean scale:std -seed=0"},
    {"initializer.Uniform initializer.UniformInitializer",
     "low high -seed=0 -diag_num=0 -diag_step=0 -diag_val=1.0"},
    {"regularizer.L1Decay regularizer.L1DecayRegularizer regularizer.L2Decay "
     "regularizer.L2DecayRegularizer",
     "regularization_coeff:coeff"},
    {"optimizer.Adadelta optimizer.AdadeltaOptimizer",
     "learning_rate epsilon rho parameter_list:parameters "
     "regularization:weight_decay grad_clip name"},
    {"optimizer.Adagrad optimizer.AdagradOptimizer",
     "learning_rate epsilon parameter_list:parameters "
     "regularization:weight_decay grad_clip name initial_accumulator_value"},
    {"optimizer.Adam optimizer.AdamOptimizer",
     "learning_rate beta1 beta2 epsilon parameter_list:parameters "
     "regularization:weight_decay grad_clip * name lazy_mode"},
    {"optimizer.Adamax optimizer.AdamaxOptimizer",
     "learning_rate beta1 beta2 epsilon parameter_list:parameters "
     "regularization:weight_decay grad_clip name"},
    {"optimizer.Momentum optimizer.MomentumOptimizer",
     "learning_rate momentum parameter_list:parameters use_nesterov "
     "regularization:weight_decay grad_clip * name"},
    {"optimizer.RMSProp optimizer.RMSPropOptimizer",
     "learning_rate rho epsilon momentum centered parameter_list:parameters "
     "regularization:weight_decay grad_clip name"},
    {"optimizer.SGD optimizer.SGDOptimizer",
     "learning_rate parameter_list:parameters regularization:weight_decay "
     "grad_clip * name"},
};

std::vector<ApiParameter> ReadRow(absl::string_view words) {
  using Kind = ApiParameter::Kind;
  std::vector<ApiParameter> parameters;
  bool positional = true;
  for (absl::string_view word : absl::StrSplit(words, ' ')) {
    if (word == "*") {
      positional = false;
      continue;
    }
    ApiParameter parameter;
    switch (word[0]) {
      case '-':
        parameter.kind = Kind::kDropped;
        break;
      case '!':
        parameter.kind = Kind::kRequired;
        break;
      case '+':
        parameter.kind = Kind::kAdded;
        break;
      default:
        parameter.kind = Kind::kKept;
    }
    if (parameter.kind != Kind::kKept) {
      word.remove_prefix(1);
      positional = false;  // whatever follows moves up
    }
    const size_t equals = word.find('=');
    if (equals != absl::string_view::npos)
      parameter.value = std::string(word.substr(equals + 1));
    const absl::string_view names = word.substr(0, equals);
    const size_t colon = names.find(':');
    if (parameter.kind != Kind::kAdded)
      parameter.old_name = std::string(names.substr(0, colon));
    if (parameter.kind == Kind::kKept || parameter.kind == Kind::kAdded)
      parameter.new_name = std::string(
          colon == absl::string_view::npos ? names : names.substr(colon + 1));
    parameter.positional = positional;
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

using Table = std::map<std::string, std::vector<ApiParameter>, std::less<>>;

Table ReadRows() {
  Table table;
  for (const Row& row : kRows)
    for (absl::string_view name : absl::StrSplit(row.names, ' '))
      table[absl::StrCat("fluid.", name)] = ReadRow(row.parameters);
  return table;
}

}  // namespace

const std::vector<ApiParameter>& ApiParameters(absl::string_view old_name) {
  static const Table& table = *new Table(ReadRows());
  static const auto& none = *new std::vector<ApiParameter>;
  const auto it = table.find(old_name);
  return it == table.end() ? none : it->second;
}

std::string DescribeParameters(absl::string_view old_name) {
  using Kind = ApiParameter::Kind;
  std::vector<std::string> changes;
  for (const ApiParameter& p : ApiParameters(old_name)) {
    if (p.kind == Kind::kKept && p.old_name != p.new_name)
      changes.push_back(absl::StrCat(p.old_name, " is ", p.new_name));
    if (p.kind == Kind::kKept && !p.value.empty())
      changes.push_back(
          absl::StrCat(p.new_name, "=", p.value, " was the default"));
    if (p.kind == Kind::kAdded)
      changes.push_back(absl::StrCat(p.new_name, "=", p.value, " is added"));
    if (p.kind == Kind::kRequired)
      changes.push_back(
          absl::StrCat("only where ", p.old_name, "=", p.value, " is said"));
    if (p.kind == Kind::kDropped)
      changes.push_back(
          p.value.empty()
              ? absl::StrCat(p.old_name, " is dropped")
              : absl::StrCat("only where ", p.old_name, " is ", p.value));
  }
  return absl::StrJoin(changes, ", ");
}

}  // namespace pd
