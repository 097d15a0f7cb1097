// SPDX-License-Identifier: Apache-2.0
#include "cmd/job_man/job_page.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cmd/common/mdoc.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "libcore/base/error.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_check.h"

namespace pd {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::OneofDescriptor;
using google::protobuf::SourceLocation;

// Messages with a section of their own, in the page's order. All others are
// described where they are used.
const std::vector<std::pair<std::string, std::string>>& Sections() {
  static const auto* const kSections =
      new std::vector<std::pair<std::string, std::string>>{
          {"Job", "JOB"},
          {"Model", "MODEL"},
          {"Layer", "LAYERS"},
          {"Cell", "CELLS"},
          {"ParamAttr", "PARAMETERS"},
          {"Init", "INITIAL WEIGHTS"},
          {"Loss", "LOSSES"},
          {"Metric", "METRICS"},
          {"Optimizer", "OPTIMIZERS"},
          {"LRScheduler", "LEARNING RATES"},
          {"Data", "DATA"},
          {"DataSet", "DATA SETS"},
          {"Transform", "TRANSFORMS"},
          {"Train", "TRAINING"},
      };
  return *kSections;
}

std::string SectionOf(const Descriptor* type) {
  for (const auto& [name, title] : Sections())
    if (name == type->name()) return title;
  return "";
}

// The comment before a declaration, else the one behind it.
template <typename Declaration>
std::string Comment(const Declaration* declaration) {
  SourceLocation location;
  if (declaration == nullptr || !declaration->GetSourceLocation(&location))
    return "";
  const std::string& text = location.leading_comments.empty()
                                ? location.trailing_comments
                                : location.leading_comments;
  return std::string(absl::StripAsciiWhitespace(text));
}

std::string Number(double value) { return absl::StrCat(value); }

// The value words that stand after the colon.
std::string TypeWords(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return "string";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true|false";
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "number";
    case FieldDescriptor::CPPTYPE_ENUM: {
      std::vector<std::string> words;
      for (int i = 0; i < field->enum_type()->value_count(); ++i)
        words.push_back(field->enum_type()->value(i)->name());
      return absl::StrJoin(words, "|");
    }
    default:
      return "integer";
  }
}

std::string DefaultWords(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return absl::StrCat("`\"", field->default_value_string(), "\"`");
    case FieldDescriptor::CPPTYPE_BOOL:
      return field->default_value_bool() ? "true" : "false";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Number(field->default_value_double());
    case FieldDescriptor::CPPTYPE_ENUM:
      return field->default_value_enum()->name();
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(field->default_value_uint64());
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(field->default_value_int64());
    default:
      return absl::StrCat(field->default_value_int32());
  }
}

class Page {
 public:
  explicit Page(const DescriptorPool* pool) : pool_(pool) {}

  std::string Write(absl::string_view example) {
    absl::StrAppend(&out_, MdocHead("pd-job", 5, "the job file of pdkit"));
    Introduction();
    Index();
    for (const auto& [name, title] : Sections()) {
      const Descriptor* type =
          pool_->FindMessageTypeByName(absl::StrCat("pd.job.", name));
      absl::StrAppend(&out_, ".Sh ", title, "\n", MdocText(Comment(type)));
      Fields(type);
      if (name == "Init") InitExamples();
    }
    Closing(example);
    return std::move(out_);
  }

 private:
  void Text(absl::string_view text) { absl::StrAppend(&out_, MdocText(text)); }
  void Paragraph(absl::string_view text) {
    absl::StrAppend(&out_, ".Pp\n", MdocText(text));
  }
  void Literal(absl::string_view text) {
    absl::StrAppend(&out_, ".Bd -literal -offset indent\n", MdocEscape(text));
    if (!absl::EndsWith(text, "\n")) out_.push_back('\n');
    absl::StrAppend(&out_, ".Ed\n");
  }

  void Introduction() {
    absl::StrAppend(&out_, ".Sh DESCRIPTION\n");
    Text(
        "A job file says everything about a training job: the network, the "
        "loss, the optimizer, the data, how long to train. It is protobuf text "
        "format. Names and defaults are those of `paddle.nn`, "
        "`paddle.optimizer`, `paddle.vision` and `paddle.io`, so a user of "
        "PaddlePaddle knows them already.");
    Paragraph(
        "A field is a name, a colon and a value; a field that holds fields is "
        "a name and braces. A list is written with brackets, or by giving the "
        "field several times. Strings are in quotes, words such as `true` and "
        "`mean` are not. What follows a `#` is a comment.");
    Literal(
        "optimizer {\n  momentum { learning_rate: 0.1 momentum: 0.9 }\n}\n"
        "metric { accuracy { topk: [1, 5] } }  # top-1 and top-5\n");
    Paragraph(
        "What is wrong with a job is said with its place: "
        "`job.pbtxt:12:9: unknown field 'learning_rat', did you mean "
        "'learning_rate'?` is about line 12, column 9. Tools exit with status "
        "2 then.");
    Paragraph("Paths of files start at the folder of the job file.");
    absl::StrAppend(&out_, ".Ss Overrides\n");
    Text(
        "`-o path=value` changes one field. The path is the names on the way "
        "to the field, with dots between them; an element of a list is chosen "
        "by its name or its number from 0, in brackets. Giving one of several "
        "alternatives takes the other away. An empty value takes the field "
        "away. Paths of files start at the current folder here.");
    Literal(
        "-o optimizer.adam.learning_rate=0.01\n"
        "-o model.layer[conv1].conv2d.out_channels=8\n"
        "-o metric.accuracy.topk=[1,3]\n"
        "-o 'model.layer[relu1]={gelu {}}'\n"
        "-o optimizer.lr=\n");
    Sizes();
  }

  void Sizes() {
    absl::StrAppend(&out_, ".Ss Sizes that the data say\n");
    Text(
        "Outside of `data`, where an integer is expected, `@classes`, "
        "`@columns` or `@vocabulary` may stand, and so they may in the "
        "arguments of a block. The training set is read for them: they are the "
        "number of classes of the label, of columns of an input, and of words "
        "of a text or category. `@classes(FIELD)` names the field where "
        "another one is meant or several could be. `standardize` in a field of "
        "rows does the same for its mean and standard deviation. The run's "
        "`job.pbtxt` has the numbers, so that evaluation and export need no "
        "training data.");
    Literal(
        "input { name: \"x\" shape: [-1, @columns] }\n"
        "layer { linear { out_features: @classes } }\n"
        "layer { block { use: \"resnet18\" set: \"num_classes=@classes\" } "
        "}\n");
  }

  void InitExamples() {
    Paragraph(
        "A MobileNetV2 that PaddlePaddle trained, with a new head for five "
        "classes; the body is frozen. The first and the last line stand in "
        "`model`:");
    Literal(
        "layer { name: \"net\" block { use: \"mobilenet_v2\" set: "
        "\"num_classes=5\" } }\n"
        "init { from: \"mobilenet_v2.pdparams\" rename { from: \"*\" to: "
        "\"net.*\" } skip: \"net.classifier.*\" }\n"
        "parameter_group { match: \"net\\\\.features\\\\..*\" trainable: "
        "false }\n");
    Paragraph(
        "The same network from a file that holds it, as `paddle.jit.save` or "
        "an export to ONNX writes one: the job needs nothing but the name of "
        "the value that the new head reads. The run keeps the network and "
        "needs the file no more:");
    Literal(
        "layer { name: \"net\" model { file: \"mobilenet_v2.pdmodel\" cut: "
        "\"flatten_0.tmp_0\" } }\n"
        "layer { linear { out_features: 5 } }\n"
        "parameter_group { match: \"net[.].*\" trainable: false }\n");
    Paragraph("A ResNet of torchvision's:");
    Literal(
        "init {\n"
        "  from: \"resnet50.pth\"\n"
        "  rename { from: \"*.running_mean\" to: \"net.*._mean\" }\n"
        "  rename { from: \"*.running_var\" to: \"net.*._variance\" }\n"
        "  rename { from: \"*\" to: \"net.*\" }\n"
        "  skip: [\"*.num_batches_tracked\", \"net.fc.*\"]\n"
        "}\n");
  }

  // Every section with the kinds that it describes, so that a word can be
  // looked up and searched for.
  void Index() {
    absl::StrAppend(&out_, ".Ss Index\n.Bl -tag -width Ds\n");
    for (const auto& [name, title] : Sections()) {
      const Descriptor* type =
          pool_->FindMessageTypeByName(absl::StrCat("pd.job.", name));
      absl::StrAppend(&out_, ".It Sx ", title, "\n");
      std::vector<std::string> words;
      for (int i = 0; i < type->oneof_decl_count(); ++i)
        for (int k = 0; k < type->oneof_decl(i)->field_count(); ++k)
          words.push_back(type->oneof_decl(i)->field(k)->name());
      if (words.empty())
        for (int i = 0; i < type->field_count(); ++i)
          words.push_back(type->field(i)->name());
      std::sort(words.begin(), words.end());
      Text(absl::StrCat("`", absl::StrJoin(words, "`, `"), "`."));
    }
    absl::StrAppend(&out_, ".El\n");
  }

  void Closing(absl::string_view example) {
    absl::StrAppend(&out_, ".Sh FILES\n.Bl -tag -width Ds\n",
                    ".It Pa RUN/job.pbtxt\n");
    Text(
        "The job as it was run, overrides included, with absolute paths. It "
        "can be run again as it is.");
    absl::StrAppend(&out_, ".El\n.Sh EXAMPLES\n");
    Text("LeNet on MNIST:");
    Literal(example);
    absl::StrAppend(&out_, ".Sh SEE ALSO\n",
                    ".Xr pd-eval 1 ,\n.Xr pd-export 1 ,\n.Xr pd-train 1\n");
  }

  // The fields of a message: its own fields, then its alternatives.
  void Fields(const Descriptor* type) {
    std::vector<const FieldDescriptor*> plain;
    for (int i = 0; i < type->field_count(); ++i)
      if (type->field(i)->containing_oneof() == nullptr)
        plain.push_back(type->field(i));
    List(plain);
    for (int i = 0; i < type->oneof_decl_count(); ++i) {
      const OneofDescriptor* oneof = type->oneof_decl(i);
      Paragraph(plain.empty() ? "One of:" : "And one of:");
      std::vector<const FieldDescriptor*> kinds;
      for (int k = 0; k < oneof->field_count(); ++k)
        kinds.push_back(oneof->field(k));
      List(kinds);
    }
  }

  void List(const std::vector<const FieldDescriptor*>& fields) {
    if (fields.empty()) return;
    absl::StrAppend(&out_, ".Bl -tag -width Ds\n");
    for (const FieldDescriptor* field : fields) Item(field);
    absl::StrAppend(&out_, ".El\n");
  }

  void Item(const FieldDescriptor* field) {
    const bool holds = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    absl::StrAppend(&out_, ".It Cm \\&", field->name());
    if (holds) {
      const bool empty = field->message_type()->field_count() == 0;
      absl::StrAppend(&out_, " No ", empty ? "{}" : "{ ... }");
    } else {
      absl::StrAppend(&out_, " : Ar \\&", TypeWords(field));
    }
    absl::StrAppend(&out_, field->is_repeated() ? " ...\n" : "\n");
    std::string text = Comment(field);
    // A kind's line says what it is for; its message how it works.
    const std::string how = holds ? Comment(field->message_type()) : "";
    if (text.empty()) {
      text = how;
    } else if (!how.empty() && field->containing_oneof() != nullptr) {
      text = absl::StrCat(EndSentence(text), " ", how);
    }
    Said(absl::StrCat(EndSentence(text), " ", Facts(field)));
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM)
      Words(field->enum_type());
    if (!holds) return;
    const std::string section = SectionOf(field->message_type());
    if (section.empty()) {
      Fields(field->message_type());
    } else {
      absl::StrAppend(&out_, "See\n.Sx ", section, " .\n");
    }
  }

  // The paragraphs of a comment. Lines that stand four spaces further in are
  // examples and are shown as they are.
  void Said(const std::string& comment) {
    std::string words, example;
    bool first = true;
    const auto end_words = [&] {
      if (words.empty()) return;
      first ? Text(words) : Paragraph(words);
      first = false;
      words.clear();
    };
    const auto end_example = [&] {
      if (!example.empty()) Literal(example);
      example.clear();
    };
    for (const absl::string_view line : absl::StrSplit(comment, '\n')) {
      if (absl::StartsWith(line, "     ")) {
        end_words();
        absl::StrAppend(&example, line.substr(5), "\n");
        continue;
      }
      end_example();
      if (absl::StripAsciiWhitespace(line).empty()) {
        end_words();
      } else {
        absl::StrAppend(&words, line, "\n");
      }
    }
    end_example();
    end_words();
  }

  static std::string EndSentence(std::string text) {
    if (!text.empty() && !absl::EndsWith(text, ".")) text += ".";
    return text;
  }

  // "Must be given. At least 1. Default: 0."
  static std::string Facts(const FieldDescriptor* field) {
    // The rule was read from another pool: it goes through bytes.
    job::Rule rule;
    google::protobuf::FieldOptions options;
    options.ParseFromString(field->options().SerializeAsString());
    rule = options.GetExtension(job::rule);
    std::string facts;
    const auto add = [&](const std::string& fact) {
      absl::StrAppend(&facts, facts.empty() ? "" : " ", EndSentence(fact));
    };
    if (rule.required() || (rule.min_count() > 0 && !rule.has_otherwise()))
      add("Must be given");
    if (rule.has_max_count() && rule.min_count() == rule.max_count())
      add(absl::StrCat(rule.max_count(), " values"));
    else if (rule.has_max_count())
      add(absl::StrCat("Up to ", rule.max_count(), " values"));
    if (rule.counts_size() > 0) add(CountsInWords(rule) + " values");
    std::string bounds = BoundsInWords(rule);
    if (!bounds.empty()) {
      bounds[0] = absl::ascii_toupper(static_cast<unsigned char>(bounds[0]));
      add(bounds);
    }
    if (rule.has_otherwise()) {
      add(absl::StrCat("Default: ", rule.otherwise()));
    } else if (field->has_default_value()) {
      add(absl::StrCat("Default: ", DefaultWords(field)));
    }
    return facts;
  }

  // The meanings of an enum's words, where comments say so.
  void Words(const EnumDescriptor* type) {
    std::vector<std::string> said;
    for (int i = 0; i < type->value_count(); ++i) {
      const std::string comment = Comment(type->value(i));
      if (!comment.empty())
        said.push_back(
            absl::StrCat("`", type->value(i)->name(), "`: ", comment));
    }
    if (!said.empty()) Text(absl::StrCat(absl::StrJoin(said, "; "), "."));
  }

  const DescriptorPool* pool_;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::string> JobPage(absl::string_view descriptors,
                                    absl::string_view example) {
  google::protobuf::FileDescriptorSet set;
  if (!set.ParseFromArray(descriptors.data(),
                          static_cast<int>(descriptors.size())))
    return InvalidArgument("not a set of descriptors");
  DescriptorPool pool;
  for (const auto& file : set.file())
    if (pool.BuildFile(file) == nullptr)
      return InvalidArgument("'%s' cannot be used", file.name());
  for (const auto& section : Sections())
    if (pool.FindMessageTypeByName(absl::StrCat("pd.job.", section.first)) ==
        nullptr)
      return InvalidArgument("the schema has no message '%s'", section.first);
  return Page(&pool).Write(example);
}

}  // namespace pd
