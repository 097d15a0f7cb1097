// SPDX-License-Identifier: Apache-2.0
// [scale ->] matmul by transposed keys [-> scale] [-> elementwise_add of a
// mask]
//   -> softmax [-> dropout] -> matmul by values
//   -> scaled_dot_product_attention
// and their gradient ops, where they are there, likewise
//   -> scaled_dot_product_attention_grad
// Products are matmul_v2 or matmul. What lies between them must be nobody
// else's, and the mask must want no gradient. Queries that are known to be one
// are trained by the chain, which is 3 % faster there. So is it where the op
// has no kernel but the reference: in float64, and without oneDNN. In a
// training program both sides change together, or neither does.
//
// On a GPU the op is one of halves: what mixed precision casts to float32
// before the softmax and to halves behind it goes with the chain, and what
// drops elements stays one.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libcore/passes/op_graph.h"

namespace pd {
namespace {

struct Chain {
  int query_scale = kNone, scores = kNone, scale = kNone, add = kNone;
  int softmax = kNone, dropout = kNone, output = kNone;
  int widened = kNone, narrowed = kNone;  // casts around the softmax
  // The same in the gradient, backwards: it ends with query_scale's.
  std::vector<size_t> grads;

  std::vector<size_t> Forward() const {
    std::vector<size_t> all;
    for (int i : {query_scale, scores, scale, add, widened, softmax, dropout,
                  narrowed, output})
      if (i != kNone) all.push_back(At(i));
    return all;
  }
};

bool IsProduct(const OpDesc& op) {
  return op.type == "matmul_v2" || op.type == "matmul";
}

bool HasTrans(const OpDesc& op, bool x, bool y) {
  const bool old = op.type == "matmul";
  return op.AttrOr(old ? "transpose_X" : "trans_x", false) == x &&
         op.AttrOr(old ? "transpose_Y" : "trans_y", false) == y;
}

// The op multiplies by a number.
bool IsScale(const OpDesc& op) {
  return op.type == "scale" && op.Input("ScaleTensor").empty() &&
         op.AttrOr("bias", 0.0f) == 0.0f;
}

float ScaleOf(const OpGraph& graph, int i) {
  return i == kNone ? 1.0f : graph.op(At(i)).AttrOr("scale", 1.0f);
}

bool HasRank4(const OpGraph& graph, const std::string& name) {
  const VarDesc* var = graph.Var(name);
  return var != nullptr && var->shape.size() == 4;
}

// Whether the values added to the scores are broadcast to them.
bool IsMask(const OpGraph& graph, const OpDesc& add) {
  const VarDesc* mask = graph.Var(add.In("Y"));
  return mask != nullptr && add.In("X") != add.In("Y") &&
         mask->shape.size() <= 4 && add.AttrOr<int32_t>("axis", -1) == -1;
}

// Extents of a mask that meet those of the scores, from the right: equal or 1.
bool Fits(const OpGraph& graph, const OpDesc& add) {
  const Shape& scores = graph.Var(add.In("X"))->shape;
  const Shape& mask = graph.Var(add.In("Y"))->shape;
  for (size_t i = 1; i <= mask.size(); ++i) {
    const int64_t of_mask = mask[mask.size() - i];
    if (of_mask > 1 && scores[4 - i] >= 0 && of_mask != scores[4 - i])
      return false;
    if (of_mask != 1 && scores[4 - i] == 1) return false;
  }
  return true;
}

// The writer of op i's X.
int Before(const OpGraph& graph, int i) {
  return graph.OnlyWriter(graph.op(At(i)).In("X"));
}

bool IsCast(const OpGraph& graph, int i) {
  return i != kNone && graph.op(At(i)).type == "cast";
}

bool FindScores(const OpGraph& graph, bool on_gpu, Chain* c) {
  int at = Before(graph, c->softmax);
  if (on_gpu && IsCast(graph, at)) {
    c->widened = at;
    at = Before(graph, at);
  }
  if (at != kNone && graph.op(At(at)).type == "elementwise_add") {
    const OpDesc& add = graph.op(At(at));
    if (!IsMask(graph, add) || !HasRank4(graph, add.In("X")) ||
        !Fits(graph, add))
      return false;
    c->add = at;
    at = Before(graph, at);
  }
  if (at != kNone && IsScale(graph.op(At(at)))) {
    c->scale = at;
    at = Before(graph, at);
  }
  if (at == kNone || !IsProduct(graph.op(At(at))) ||
      !HasTrans(graph.op(At(at)), false, true))
    return false;
  c->scores = at;
  const OpDesc& product = graph.op(At(at));
  const int scale = Before(graph, at);
  if (scale != kNone && IsScale(graph.op(At(scale)))) c->query_scale = scale;
  return product.In("X") != product.In("Y") &&
         HasRank4(graph, product.In("X")) && HasRank4(graph, product.In("Y"));
}

// The op behind the variable: its only reader of another kind than `grad`.
int After(const OpGraph& graph, const std::string& name,
          const std::vector<std::string>& grads) {
  std::set<size_t> ignored;
  for (size_t i : graph.Readers(name))
    if (std::find(grads.begin(), grads.end(), graph.op(i).type) != grads.end())
      ignored.insert(i);
  return graph.OnlyReader(name, ignored);
}

bool FindOutput(const OpGraph& graph, bool on_gpu, Chain* c) {
  const std::vector<std::string> grads = {"matmul_v2_grad", "matmul_grad",
                                          "softmax_grad"};
  std::string weights = graph.op(At(c->softmax)).Out("Out");
  int next = After(graph, weights, grads);
  const auto go_on = [&](int* found) {
    *found = next;
    weights = graph.op(At(next)).Out("Out");
    next = After(graph, weights, grads);
  };
  if (on_gpu && IsCast(graph, next)) go_on(&c->narrowed);
  if (next != kNone && graph.op(At(next)).type == "dropout") {
    const OpDesc& dropout = graph.op(At(next));
    if (!dropout.Input("Seed").empty() ||
        (on_gpu && !dropout.AttrOr("is_test", false)))
      return false;
    go_on(&c->dropout);
  }
  if (on_gpu && c->narrowed == kNone && IsCast(graph, next))
    go_on(&c->narrowed);
  if (next == kNone || !IsProduct(graph.op(At(next)))) return false;
  const OpDesc& product = graph.op(At(next));
  c->output = next;
  return HasTrans(product, false, false) && product.In("X") == weights &&
         product.In("Y") != weights && product.AttrOr("alpha", 1.0f) == 1.0f &&
         HasRank4(graph, product.In("Y"));
}

// Whether the op would be of float32; on a GPU of float16 or bfloat16, with a
// softmax of the same or between casts.
bool HasTypes(const OpGraph& graph, bool on_gpu, const Chain& c) {
  const auto dtype = [&](int i, const char* slot) {
    const VarDesc* var = graph.Var(graph.op(At(i)).In(slot));
    return var == nullptr ? DType::kFloat64 : var->dtype;
  };
  const DType softmax = dtype(c.softmax, "X");
  if (!on_gpu) return softmax == DType::kFloat32;
  const DType half = dtype(c.scores, "X");
  if (half != DType::kFloat16 && half != DType::kBFloat16) return false;
  if ((c.widened == kNone) != (c.narrowed == kNone) ||
      softmax != (c.widened == kNone ? half : DType::kFloat32))
    return false;
  if (c.widened != kNone && dtype(c.widened, "X") != half) return false;
  return dtype(c.scores, "Y") == half && dtype(c.output, "X") == half &&
         dtype(c.output, "Y") == half &&
         (c.add == kNone || dtype(c.add, "Y") == half);
}

bool FindForward(const OpGraph& graph, bool on_gpu, Chain* c) {
  const OpDesc& softmax = graph.op(At(c->softmax));
  const int32_t axis = softmax.AttrOr<int32_t>("axis", -1);
  return softmax.type == "softmax" && (axis == -1 || axis == 3) &&
         HasRank4(graph, softmax.In("X")) && FindScores(graph, on_gpu, c) &&
         FindOutput(graph, on_gpu, c) && HasTypes(graph, on_gpu, *c);
}

// Adds the gradient op of op i, which reads the gradient `*name`, and follows
// to the gradient of its X.
bool Follow(const OpGraph& graph, int i, const char* slot, std::string* name,
            Chain* c) {
  const OpDesc& op = graph.op(At(i));
  const int found = graph.OnlyReader(*name);
  if (found == kNone) return false;
  const OpDesc& grad = graph.op(At(found));
  const bool scale = op.type == "scale";
  if (grad.type != op.type + (scale ? "" : "_grad") ||
      grad.In(scale ? "X" : "Out@GRAD") != *name)
    return false;
  if (scale) {
    if (!IsScale(grad) || ScaleOf(graph, i) != ScaleOf(graph, found))
      return false;
  } else if (op.type == "softmax" || op.type == "dropout") {
    if (grad.In(slot) != op.Out(slot)) return false;
  } else if (grad.Input("X") != op.Input("X") ||
             grad.Input("Y") != op.Input("Y")) {
    return false;
  }
  const auto& next = grad.Output(scale ? "Out" : "X@GRAD");
  *name = next.empty() ? std::string(kEmptyVar) : next[0];
  c->grads.push_back(At(found));
  return true;
}

// The gradient ops; none where none reads what the chain makes.
bool FindBackward(const OpGraph& graph, Chain* c) {
  const OpDesc& output = graph.op(At(c->output));
  int first = kNone;
  for (size_t i : graph.Readers(output.In("X")))
    if (graph.op(i).type == output.type + "_grad" && first == kNone)
      first = static_cast<int>(i);
  if (first == kNone) return true;
  std::string name = graph.op(At(first)).In("Out@GRAD");
  // The gradient of what the chain makes may have other readers.
  const OpDesc& grad = graph.op(At(first));
  if (grad.Input("X") != output.Input("X") ||
      grad.Input("Y") != output.Input("Y") || grad.Output("X@GRAD").empty())
    return false;
  c->grads.push_back(At(first));
  name = grad.Out("X@GRAD");
  if (c->dropout != kNone && !Follow(graph, c->dropout, "Mask", &name, c))
    return false;
  if (!Follow(graph, c->softmax, "Out", &name, c)) return false;
  if (c->add != kNone) {
    if (!Follow(graph, c->add, "", &name, c)) return false;
    const auto& of_mask = graph.op(c->grads.back()).Output("Y@GRAD");
    if (!of_mask.empty() && of_mask[0] != kEmptyVar) return false;
  }
  if (c->scale != kNone && !Follow(graph, c->scale, "", &name, c)) return false;
  if (!Follow(graph, c->scores, "", &name, c)) return false;
  return c->query_scale == kNone || name == kEmptyVar ||
         Follow(graph, c->query_scale, "", &name, c);
}

std::string OutputOr(const OpDesc& op, const char* slot) {
  const auto& names = op.Output(slot);
  return names.empty() ? std::string(kEmptyVar) : names[0];
}

OpDesc Forward(const OpGraph& graph, const Chain& c) {
  const OpDesc& product = graph.op(At(c.scores));
  const OpDesc& output = graph.op(At(c.output));
  OpDesc fused;
  fused.type = "scaled_dot_product_attention";
  fused.SetInput("query", c.query_scale != kNone
                              ? graph.op(At(c.query_scale)).Input("X")
                              : product.Input("X"));
  fused.SetInput("key", product.Input("Y"));
  fused.SetInput("value", output.Input("Y"));
  if (c.add != kNone) fused.SetInput("bias", graph.op(At(c.add)).Input("Y"));
  fused.SetOutput("output", output.Output("Out"));
  fused.attrs["scale"] = product.AttrOr("alpha", 1.0f) *
                         ScaleOf(graph, c.query_scale) *
                         ScaleOf(graph, c.scale);
  if (c.dropout == kNone) return fused;
  const OpDesc& dropout = graph.op(At(c.dropout));
  for (const char* name : {"dropout_prob", "is_test", "dropout_implementation",
                           "fix_seed", "seed"})
    if (const Attribute* a = dropout.FindAttr(name)) fused.attrs[name] = *a;
  fused.attrs["dropout_name"] = dropout.Out("Out");
  if (!dropout.Output("Mask").empty())
    fused.SetOutput("mask", dropout.Output("Mask"));
  return fused;
}

OpDesc Backward(const OpGraph& graph, const Chain& c, const OpDesc& forward) {
  const OpDesc& output = graph.op(c.grads.front());
  const OpDesc& last = graph.op(c.grads.back());
  const bool scaled = last.type == "scale";
  const OpDesc& product = scaled ? graph.op(c.grads[c.grads.size() - 2]) : last;
  OpDesc fused;
  fused.type = "scaled_dot_product_attention_grad";
  fused.attrs = forward.attrs;
  for (const char* slot : {"query", "key", "value", "bias"})
    if (!forward.Input(slot).empty()) fused.SetInput(slot, forward.Input(slot));
  if (!forward.Output("mask").empty())
    fused.SetInput("mask", forward.Output("mask"));
  fused.SetInput("output", forward.Output("output"));
  fused.SetInput("output@GRAD", output.Input("Out@GRAD"));
  const std::string to_query =
      scaled ? last.Out("Out") : OutputOr(product, "X@GRAD");
  const std::pair<const char*, std::string> outputs[] = {
      {"query@GRAD", to_query},
      {"key@GRAD", OutputOr(product, "Y@GRAD")},
      {"value@GRAD", OutputOr(output, "Y@GRAD")}};
  for (const auto& [slot, name] : outputs)
    if (name != kEmptyVar) fused.SetOutput(slot, {name});
  std::vector<const OpDesc*> from;
  for (size_t i : c.grads) from.push_back(&graph.op(i));
  CopyOpAttrs(from, &fused);
  return fused;
}

// Whether nobody but the chain sees what lies between its ops.
bool IsOurs(const OpGraph& graph, const Chain& c, const OpDesc& forward,
            const OpDesc& backward) {
  std::vector<size_t> ops = c.Forward();
  ops.insert(ops.end(), c.grads.begin(), c.grads.end());
  const std::set<size_t> chain(ops.begin(), ops.end());
  std::set<std::string> made;
  for (const OpDesc* op : {&forward, &backward})
    for (const auto& [slot, names] : op->outputs)
      if (slot != "mask") made.insert(names.begin(), names.end());
  const auto in_chain = [&](const std::vector<size_t>& who) {
    return std::all_of(who.begin(), who.end(),
                       [&](size_t i) { return chain.count(i) > 0; });
  };
  for (size_t i : ops)
    for (const std::string& name : NamesOf(graph.op(i).outputs))
      if (made.count(name) == 0 &&
          (graph.IsWanted(name) || graph.OnlyWriter(name) == kNone ||
           !in_chain(graph.Readers(name))))
        return false;
  return true;
}

// The first of `ops`, which are sorted, that reads the variable; the first of
// all where none does.
size_t FirstReader(const OpGraph& graph, const std::vector<size_t>& ops,
                   const std::string& name) {
  const std::vector<size_t> readers = graph.Readers(name);
  for (size_t i : ops)
    if (std::find(readers.begin(), readers.end(), i) != readers.end()) return i;
  return ops.front();
}

// Whether `op` may stand in the place of the last of `ops` alone: what it reads
// is what they have read.
bool MayMove(const OpGraph& graph, std::vector<size_t> ops, const OpDesc& op) {
  std::sort(ops.begin(), ops.end());
  const std::set<size_t> replaced(ops.begin(), ops.end());
  const auto free_of = [&](const std::vector<size_t>& who) {
    return std::none_of(who.begin(), who.end(), [&](size_t i) {
      return i > ops.front() && i < ops.back() && replaced.count(i) == 0;
    });
  };
  for (const std::string& name : NamesOf(op.inputs))
    if (graph.IsWrittenBetween({name}, FirstReader(graph, ops, name),
                               ops.back()))
      return false;
  for (const std::string& name : NamesOf(op.outputs))
    if (!free_of(graph.Readers(name)) || !free_of(graph.Writers(name)))
      return false;
  return true;
}

void Replace(std::vector<size_t> ops, OpDesc op, OpGraph* graph) {
  std::sort(ops.begin(), ops.end());
  const size_t last = ops.back();
  ops.pop_back();
  graph->Replace(last, std::move(op), ops);
}

bool Fuse(const Chain& c, OpGraph* graph) {
  if (!c.grads.empty() &&
      graph->Var(graph->op(At(c.scores)).In("X"))->shape[2] == 1)
    return false;
  OpDesc forward = Forward(*graph, c), backward;
  if (!c.grads.empty()) backward = Backward(*graph, c, forward);
  if (!IsOurs(*graph, c, forward, backward) ||
      !MayMove(*graph, c.Forward(), forward) ||
      (!c.grads.empty() && !MayMove(*graph, c.grads, backward)))
    return false;
  Replace(c.Forward(), std::move(forward), graph);
  if (!c.grads.empty()) Replace(c.grads, std::move(backward), graph);
  return true;
}

// A query that is scaled for others too stays scaled.
void FuseAt(size_t softmax, bool on_gpu, OpGraph* graph) {
  Chain found;
  found.softmax = static_cast<int>(softmax);
  if (!FindForward(*graph, on_gpu, &found)) return;
  Chain whole = found;
  if (FindBackward(*graph, &whole) && Fuse(whole, graph)) return;
  if (found.query_scale == kNone) return;
  found.query_scale = kNone;
  if (FindBackward(*graph, &found)) Fuse(found, graph);
}

}  // namespace

absl::Status FuseAttention(const PassContext& context, ProgramDesc* program) {
  const OpDef* op = context.registry->Find("scaled_dot_product_attention");
  if (op == nullptr || (!context.on_gpu && op->implementations().size() < 2))
    return absl::OkStatus();
  OpGraph graph(context, program);
  for (size_t i = 0; i < graph.size(); ++i)
    if (!graph.IsRemoved(i) && graph.op(i).type == "softmax")
      FuseAt(i, context.on_gpu, &graph);
  graph.Finish();
  return absl::OkStatus();
}

}  // namespace pd
