// SPDX-License-Identifier: Apache-2.0
#include "formats/caffe_file.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/caffe.pb.h"
#include "formats/proto_fields.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

namespace format = caffe_format;
namespace protobuf = google::protobuf;

// The types of today of V1Layer::Type's numbers.
constexpr const char* kV1Types[] = {"None",
                                    "Accuracy",
                                    "BNLL",
                                    "Concat",
                                    "Convolution",
                                    "Data",
                                    "Dropout",
                                    "EuclideanLoss",
                                    "Flatten",
                                    "HDF5Data",
                                    "HDF5Output",
                                    "Im2col",
                                    "ImageData",
                                    "InfogainLoss",
                                    "InnerProduct",
                                    "LRN",
                                    "MultinomialLogisticLoss",
                                    "Pooling",
                                    "ReLU",
                                    "Sigmoid",
                                    "Softmax",
                                    "SoftmaxWithLoss",
                                    "Split",
                                    "TanH",
                                    "WindowData",
                                    "Eltwise",
                                    "Power",
                                    "SigmoidCrossEntropyLoss",
                                    "HingeLoss",
                                    "MemoryData",
                                    "ArgMax",
                                    "Threshold",
                                    "DummyData",
                                    "Slice",
                                    "MVN",
                                    "AbsVal",
                                    "Silence",
                                    "ContrastiveLoss",
                                    "Exp",
                                    "Deconvolution"};
static_assert(std::size(kV1Types) == format::V1Layer::Type_ARRAYSIZE);

absl::StatusOr<Shape> ShapeOf(const format::BlobShape& in) {
  Shape shape(in.dim().begin(), in.dim().end());
  const auto bytes = CheckedBytes(shape, sizeof(float));
  if (!bytes.ok()) return DataLoss("%s", bytes.status().message());
  return shape;
}

// `net` keeps the numbers alive.
absl::StatusOr<Array> ArrayOf(const format::Blob& blob,
                              const std::shared_ptr<format::Net>& net) {
  format::BlobShape dims = blob.shape();
  if (!blob.has_shape())
    for (const int64_t dim :
         {blob.num(), blob.channels(), blob.height(), blob.width()})
      dims.add_dim(dim);
  PD_ASSIGN_OR_RETURN(Shape shape, ShapeOf(dims));
  const int count = std::max(blob.data_size(), blob.double_data_size());
  if (NumElements(shape) != count)
    return DataLoss("it has %d numbers; its shape is %s", count,
                    ToString(shape));
  Array array;
  if (blob.data_size() == 0) {
    std::byte* bytes = nullptr;
    PD_ASSIGN_OR_RETURN(array,
                        NewArray(DType::kFloat32, std::move(shape), &bytes));
    std::copy(blob.double_data().begin(), blob.double_data().end(),
              reinterpret_cast<float*>(bytes));
    return array;
  }
  array.dtype = DType::kFloat32;
  array.shape = std::move(shape);
  array.bytes = std::shared_ptr<const std::byte>(
      net, reinterpret_cast<const std::byte*>(blob.data().data()));
  return array;
}

double NumberOf(const protobuf::Message& message,
                const protobuf::FieldDescriptor& field, int i) {
  using Field = protobuf::FieldDescriptor;
  const protobuf::Reflection& get = *message.GetReflection();
  const bool many = field.is_repeated();
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT32:
      return many ? get.GetRepeatedInt32(message, &field, i)
                  : get.GetInt32(message, &field);
    case Field::CPPTYPE_UINT32:
      return many ? get.GetRepeatedUInt32(message, &field, i)
                  : get.GetUInt32(message, &field);
    case Field::CPPTYPE_FLOAT:
      return many ? get.GetRepeatedFloat(message, &field, i)
                  : get.GetFloat(message, &field);
    case Field::CPPTYPE_BOOL:
      return get.GetBool(message, &field) ? 1 : 0;
    case Field::CPPTYPE_ENUM:
      return get.GetEnumValue(message, &field);
    default:
      PD_INVARIANT(!"caffe.proto has a parameter of another type");
  }
}

// The numbers of the fields of one message, and fields of unknown meaning;
// `path` is in front of their names. Texts are about files of Caffe's tools.
void TakeNumbers(const protobuf::Message& params, const std::string& message,
                 const std::string& path, CaffeLayer* out) {
  const protobuf::Reflection& get = *params.GetReflection();
  for (int i = 0; i < get.GetUnknownFields(params).field_count(); ++i)
    out->unknown.push_back(absl::StrCat(
        message, " ", get.GetUnknownFields(params).field(i).number()));
  std::vector<const protobuf::FieldDescriptor*> fields;
  get.ListFields(params, &fields);
  for (const auto* field : fields) {
    using Field = protobuf::FieldDescriptor;
    const std::string name = absl::StrCat(path, field->name());
    if (field->cpp_type() == Field::CPPTYPE_STRING) continue;
    if (field->cpp_type() != Field::CPPTYPE_MESSAGE) {
      const int count = field->is_repeated() ? get.FieldSize(params, field) : 1;
      for (int i = 0; i < count; ++i)
        out->params[name].push_back(NumberOf(params, *field, i));
    } else if (field->message_type() ==
               format::NonMaximumSuppression::descriptor()) {
      TakeNumbers(get.GetMessage(params, field), name, absl::StrCat(name, "."),
                  out);
    } else if (!field->is_repeated() &&
               field->message_type() == format::BlobShape::descriptor()) {
      const auto& shape =
          static_cast<const format::BlobShape&>(get.GetMessage(params, field));
      out->params[name].assign(shape.dim().begin(), shape.dim().end());
    }
  }
}

void TakeParams(const protobuf::Message& layer, CaffeLayer* out) {
  std::vector<const protobuf::FieldDescriptor*> fields;
  layer.GetReflection()->ListFields(layer, &fields);
  for (const auto* field : fields)
    if (absl::EndsWith(field->name(), "_param"))
      TakeNumbers(layer.GetReflection()->GetMessage(layer, field),
                  field->name(), "", out);
}

// In the state that a network is tested in: the phase TEST, level 0, no stage.
bool Meets(const format::NetStateRule& rule) {
  return (!rule.has_phase() || rule.phase() == format::TEST) &&
         rule.min_level() <= 0 &&
         (!rule.has_max_level() || rule.max_level() >= 0) &&
         rule.stage().empty();
}

template <typename Layer>
bool InTest(const Layer& layer) {
  if (layer.include_size() > 0)
    return std::any_of(layer.include().begin(), layer.include().end(), Meets);
  return std::none_of(layer.exclude().begin(), layer.exclude().end(), Meets);
}

const std::string& TypeOf(const format::Layer& layer) { return layer.type(); }
std::string TypeOf(const format::V1Layer& layer) {
  return kV1Types[layer.type()];
}

absl::Status TakeInputs(const format::Net& net, CaffeNet* out) {
  for (int i = 0; i < net.input_size(); ++i) {
    format::BlobShape dims;
    if (net.input_shape_size() > 0) {
      if (net.input_shape_size() != net.input_size())
        return DataLoss("%d input_shape for %d inputs", net.input_shape_size(),
                        net.input_size());
      dims = net.input_shape(i);
    } else if (net.input_dim_size() > 0) {
      if (net.input_dim_size() != 4 * net.input_size())
        return DataLoss("%d input_dim for %d inputs; expected 4 for each",
                        net.input_dim_size(), net.input_size());
      for (int k = 0; k < 4; ++k) dims.add_dim(net.input_dim(4 * i + k));
    }
    PD_ASSIGN_OR_RETURN(Shape shape, ShapeOf(dims));
    out->inputs.emplace_back(net.input(i), std::move(shape));
  }
  return absl::OkStatus();
}

absl::Status TakeInputLayer(const format::Layer& layer, CaffeNet* out) {
  const auto& shapes = layer.input_param().shape();
  if (shapes.size() > 1 && shapes.size() != layer.top_size())
    return DataLoss("%d shapes for %d tops", shapes.size(), layer.top_size());
  for (int i = 0; i < layer.top_size(); ++i) {
    Shape shape;
    if (!shapes.empty()) {
      PD_ASSIGN_OR_RETURN(
          shape, ShapeOf(shapes.Get(std::min<int>(i, shapes.size() - 1))));
    }
    out->inputs.emplace_back(layer.top(i), std::move(shape));
  }
  return absl::OkStatus();
}

// Pictures and, where the layer has two tops, their labels.
template <typename Layer>
absl::Status TakeMemoryData(const Layer& layer, CaffeNet* out) {
  const format::MemoryData& data = layer.memory_data_param();
  for (int i = 0; i < std::min(layer.top_size(), 2); ++i) {
    format::BlobShape dims;
    dims.add_dim(data.batch_size());
    if (i == 0)
      for (const uint32_t dim : {data.channels(), data.height(), data.width()})
        dims.add_dim(dim);
    PD_ASSIGN_OR_RETURN(Shape shape, ShapeOf(dims));
    out->inputs.emplace_back(layer.top(i), std::move(shape));
  }
  return absl::OkStatus();
}

template <typename Layer>
absl::Status TakeLayer(const Layer& in, const std::shared_ptr<format::Net>& net,
                       CaffeNet* out) {
  if (!InTest(in)) return absl::OkStatus();
  CaffeLayer layer;
  layer.type = TypeOf(in);
  if (layer.type == "MemoryData") return TakeMemoryData(in, out);
  if constexpr (std::is_same_v<Layer, format::Layer>)
    if (layer.type == "Input") return TakeInputLayer(in, out);
  layer.name = in.name();
  layer.bottoms.assign(in.bottom().begin(), in.bottom().end());
  layer.tops.assign(in.top().begin(), in.top().end());
  for (const format::Blob& blob : in.blobs()) {
    PD_ASSIGN_OR_RETURN(Array array, ArrayOf(blob, net));
    layer.blobs.push_back(std::move(array));
  }
  TakeParams(in, &layer);
  out->layers.push_back(std::move(layer));
  return absl::OkStatus();
}

absl::StatusOr<CaffeNet> NetOf(const std::shared_ptr<format::Net>& net) {
  if (net->layer_size() > 0 && net->layers_size() > 0)
    return DataLoss(
        "it has both 'layer' and, as files before 2014, 'layers'; expected one "
        "of them");
  if (net->layer_size() + net->layers_size() == 0)
    return DataLoss("no Caffe network: it has no layers");
  CaffeNet out;
  out.name = net->name();
  PD_RETURN_IF_ERROR(TakeInputs(*net, &out));
  const auto take = [&](const auto& layer) {
    return Annotate(
        TakeLayer(layer, net, &out),
        absl::StrCat("layer '", layer.name(), "' (", TypeOf(layer), ")"));
  };
  for (const format::Layer& layer : net->layer())
    PD_RETURN_IF_ERROR(take(layer));
  for (const format::V1Layer& layer : net->layers())
    PD_RETURN_IF_ERROR(take(layer));
  return out;
}

// Fields that are not known: in a layer and in the network they are about
// training or reading data, in a layer's parameters they may change the answer.
class Errors : public protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (first_.empty())
      first_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ",
                            message);
  }
  void AddWarning(int line, int column, const std::string& message) override {
    for (const char* type : {"Net", "Layer", "V1Layer"})
      if (absl::StrContains(
              message, absl::StrCat("\"pd.caffe_format.", type, "\" has no")))
        return;
    AddError(line, column, message);
  }
  const std::string& first() const { return first_; }

 private:
  std::string first_;
};

}  // namespace

absl::StatusOr<CaffeNet> ParseCaffeModel(absl::string_view bytes) {
  const auto net = std::make_shared<format::Net>();
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !net->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return DataLoss("%d bytes are no Caffe network", bytes.size());
  return NetOf(net);
}

absl::StatusOr<CaffeNet> ParseCaffeText(absl::string_view text) {
  const auto net = std::make_shared<format::Net>();
  Errors errors;
  protobuf::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(100);
  parser.RecordErrorsTo(&errors);
  if (!parser.ParseFromString(std::string(text), net.get()) ||
      !errors.first().empty())
    return DataLoss("%s", errors.first());
  return NetOf(net);
}

bool IsCaffeModel(absl::string_view bytes) {
  ProtoField field;
  bool layers = false;
  while (!bytes.empty()) {
    if (!TakeField(&bytes, &field)) return false;
    const bool layer = field.number == 100 || field.number == 2;
    const bool message = field.number == 1 || field.number == 3 ||
                         field.number == 6 || field.number == 8 || layer;
    const bool number = field.number == 5 || field.number == 7;
    if (field.number != 4 && !message && !number) return false;
    if ((message && field.wire_type != 2) || (number && field.wire_type != 0))
      return false;
    if (!layer) continue;
    ProtoField first;
    if (!TakeField(&field.payload, &first) || first.wire_type > 2 ||
        first.number > 42)
      return false;
    layers = true;
  }
  return layers;
}

}  // namespace pd
