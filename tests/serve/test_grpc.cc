// SPDX-License-Identifier: Apache-2.0
// The server over gRPC, asked by the stub that protoc writes for clients:
// answers in every form, messages that are wrong or no messages, limits, and an
// end that loses nothing.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/serve/grpc.h"
#include "libcore/serve/grpc/kserve.grpc.pb.h"
#include "libcore/serve/http.h"
#include "libcore/serve/repository.h"
#include "libcore/serve/service.h"
#include "tests/serve/serve_fixture.h"

namespace pd {
namespace serve {
namespace {

namespace wire = ::inference;
using Input = wire::ModelInferRequest::InferInputTensor;

class GrpcTest : public ::testing::Test {
 protected:
  GrpcTest()
      : feed_(ArraysOf(Deployed("lenet-feed.npz")).begin()->second),
        want_(ArraysOf(Deployed("lenet-expect.npz")).begin()->second) {
    grpc_.max_calls = 16;
  }
  void Start() {
    auto places = PlacesOf({Deployed("lenet.pdmodel")});
    repository_ =
        std::make_unique<Repository>(*std::move(places), options_, &metrics_);
    ASSERT_TRUE(repository_->Open().ok());
    service_ = std::make_unique<Service>(repository_.get(), &metrics_, "0");
    grpc_.host = "127.0.0.1";
    auto server = ListenGrpc(grpc_, service_.get());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = NewChannel();
    stub_ = wire::GRPCInferenceService::NewStub(channel_);
  }
  std::shared_ptr<grpc::Channel> NewChannel() const {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->port()),
                               grpc::InsecureChannelCredentials());
  }
  // Picture `row`, as raw contents or as typed ones.
  wire::ModelInferRequest Question(int64_t row, bool raw) const {
    wire::ModelInferRequest request;
    request.set_model_name("lenet");
    request.set_id(absl::StrCat(row));
    Input* const input = request.add_inputs();
    input->set_name("x");
    input->set_datatype("FP32");
    for (const int extent : {1, 1, 28, 28}) input->add_shape(extent);
    const float* const values = feed_.data<float>() + row * 784;
    if (raw)
      request.add_raw_input_contents(values, 784 * sizeof(float));
    else
      input->mutable_contents()->mutable_fp32_contents()->Add(values,
                                                              values + 784);
    return request;
  }
  grpc::Status Ask(const wire::ModelInferRequest& request,
                   wire::ModelInferResponse* answer) const {
    grpc::ClientContext context;
    return stub_->ModelInfer(&context, request, answer);
  }
  void ExpectRefused(const wire::ModelInferRequest& request,
                     const std::string& why) const {
    wire::ModelInferResponse answer;
    const grpc::Status status = Ask(request, &answer);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_NE(status.error_message().find(why), std::string::npos)
        << status.error_message();
  }
  void ExpectAnswer(const wire::ModelInferResponse& answer, int64_t row,
                    bool raw) const {
    EXPECT_EQ(answer.id(), absl::StrCat(row));
    EXPECT_EQ(answer.model_name(), "lenet");
    EXPECT_EQ(answer.model_version(), "1");
    ASSERT_EQ(answer.outputs_size(), 1);
    EXPECT_EQ(answer.outputs(0).datatype(), "FP32");
    const auto& typed = answer.outputs(0).contents().fp32_contents();
    std::vector<float> data(typed.begin(), typed.end());
    ASSERT_EQ(answer.raw_output_contents_size(), raw ? 1 : 0);
    if (raw) {
      ASSERT_TRUE(data.empty());
      data.resize(answer.raw_output_contents(0).size() / sizeof(float));
      std::memcpy(data.data(), answer.raw_output_contents(0).data(),
                  data.size() * sizeof(float));
    }
    ASSERT_EQ(data.size(), 10u);
    ExpectClose(MakeArray<float>({1, 10}, data), RowOf(want_, row));
  }

  const Array feed_, want_;
  RepositoryOptions options_;
  GrpcOptions grpc_;
  Metrics metrics_;
  std::unique_ptr<Repository> repository_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<wire::GRPCInferenceService::Stub> stub_;
};

TEST_F(GrpcTest, AnswersAreThoseOfPaddlePaddle) {
  Start();
  const std::string output =
      (*repository_->Find("lenet", ""))->signature.outputs[0].name;
  for (int64_t row = 0; row < 5; ++row)
    for (const bool raw : {false, true}) {
      wire::ModelInferRequest request = Question(row, raw);
      if (row == 1) request.set_model_version("1");
      if (row == 2) request.add_outputs()->set_name(output);
      wire::ModelInferResponse answer;
      const grpc::Status status = Ask(request, &answer);
      ASSERT_TRUE(status.ok()) << status.error_message();
      ExpectAnswer(answer, row, raw);
    }
  EXPECT_NE(metrics_.Text().find(
                "pd_requests_total{model=\"lenet\",version=\"1\"} 10"),
            std::string::npos)
      << metrics_.Text();
  EXPECT_EQ(metrics_.body_bytes.load(), 0);
}

TEST_F(GrpcTest, AStreamAnswersInOrderAndGoesOnAfterAnError) {
  Start();
  grpc::ClientContext context;
  const auto stream = stub_->ModelStreamInfer(&context);
  for (int64_t row = 0; row < 4; ++row) {
    wire::ModelInferRequest request = Question(row, /*raw=*/true);
    if (row == 2) request.set_model_name("nothing");
    ASSERT_TRUE(stream->Write(request));
  }
  ASSERT_TRUE(stream->WritesDone());
  wire::ModelStreamInferResponse answer;
  for (int64_t row = 0; row < 4; ++row) {
    ASSERT_TRUE(stream->Read(&answer));
    if (row == 2)
      EXPECT_NE(answer.error_message().find("nothing"), std::string::npos);
    else
      ExpectAnswer(answer.infer_response(), row, /*raw=*/true);
  }
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(GrpcTest, ServerAndModelSayWhatTheyAre) {
  Start();
  const auto context = [] { return std::make_unique<grpc::ClientContext>(); };
  wire::ServerLiveResponse live;
  ASSERT_TRUE(stub_->ServerLive(context().get(), {}, &live).ok());
  EXPECT_TRUE(live.live());
  wire::ServerReadyResponse ready;
  ASSERT_TRUE(stub_->ServerReady(context().get(), {}, &ready).ok());
  EXPECT_TRUE(ready.ready());
  wire::ServerMetadataResponse server;
  ASSERT_TRUE(stub_->ServerMetadata(context().get(), {}, &server).ok());
  EXPECT_EQ(server.name(), "pdkit");

  wire::ModelMetadataRequest asked;
  asked.set_name("lenet");
  wire::ModelMetadataResponse model;
  ASSERT_TRUE(stub_->ModelMetadata(context().get(), asked, &model).ok());
  EXPECT_EQ(model.versions(0), "1");
  ASSERT_EQ(model.inputs_size(), 1);
  EXPECT_EQ(model.inputs(0).name(), "x");
  EXPECT_EQ(model.inputs(0).datatype(), "FP32");
  const auto& shape = model.inputs(0).shape();
  EXPECT_EQ(std::vector<int64_t>(shape.begin(), shape.end()),
            (std::vector<int64_t>{-1, 1, 28, 28}));
  asked.set_version("2");
  EXPECT_EQ(stub_->ModelMetadata(context().get(), asked, &model).error_code(),
            grpc::StatusCode::NOT_FOUND);

  wire::ModelReadyRequest which;
  wire::ModelReadyResponse one;
  which.set_name("lenet");
  ASSERT_TRUE(stub_->ModelReady(context().get(), which, &one).ok());
  EXPECT_TRUE(one.ready());
  ASSERT_TRUE(repository_->Unload("lenet").ok());
  const grpc::Status gone = stub_->ModelReady(context().get(), which, &one);
  EXPECT_TRUE(!gone.ok() || !one.ready());
  which.set_name("nothing");
  EXPECT_EQ(stub_->ModelReady(context().get(), which, &one).error_code(),
            grpc::StatusCode::NOT_FOUND);
  service_->SetDraining();
  ASSERT_TRUE(stub_->ServerReady(context().get(), {}, &ready).ok());
  EXPECT_FALSE(ready.ready());
}

TEST_F(GrpcTest, WrongMessagesAreRefusedWithWords) {
  Start();
  ExpectRefused(
      [] {
        wire::ModelInferRequest none;
        none.set_model_name("lenet");
        return none;
      }(),
      "input 'x' (FP32[-1, 1, 28, 28]) is missing");
  const auto refused = [&](bool raw, const char* why, auto change) {
    wire::ModelInferRequest request = Question(0, raw);
    change(&request, request.mutable_inputs(0));
    ExpectRefused(request, why);
  };
  for (const bool raw : {false, true}) {
    refused(raw, "has no input 'y'",
            [](auto*, Input* input) { input->set_name("y"); });
    refused(raw, "datatype 'FP31' is not known",
            [](auto*, Input* input) { input->set_datatype("FP31"); });
    refused(raw, "has the datatype INT64",
            [](auto*, Input* input) { input->set_datatype("INT64"); });
    refused(raw, "extents are from 1",
            [](auto*, Input* input) { input->set_shape(0, 0); });
    refused(raw, "extents are from 1",
            [](auto*, Input* input) { input->set_shape(0, -1); });
    refused(raw, "extents are from 1", [](auto*, Input* input) {
      input->set_shape(0, std::numeric_limits<int64_t>::max());
    });
    // Two million pictures that are not there.
    refused(raw,
            raw ? "raw_input_contents[0] has 3136 bytes"
                : "fp32_contents has 784 elements",
            [](auto*, Input* input) { input->set_shape(0, 2000000); });
    refused(raw, "the model takes [-1, 1, 28, 28]",
            [](auto*, Input* input) { input->add_shape(1); });
    refused(raw, "the shape has 100000 extents", [](auto*, Input* input) {
      input->mutable_shape()->Resize(100000, 1);
    });
    refused(raw, "is given twice", [&](auto* request, Input* input) {
      *request->add_inputs() = *input;
      if (raw) request->add_raw_input_contents(request->raw_input_contents(0));
    });
    refused(raw, "has no output 'z'", [](auto* request, Input*) {
      request->add_outputs()->set_name("z");
    });
    refused(raw, "the request has 3 outputs", [](auto* request, Input*) {
      for (int i = 0; i < 3; ++i) request->add_outputs();
    });
    refused(raw, "the parameter \"lod\" is no string", [](auto*, Input* input) {
      (*input->mutable_parameters())["lod"].set_int64_param(1);
    });
    refused(raw, "lod", [](auto*, Input* input) {
      (*input->mutable_parameters())["lod"].set_string_param(
          std::string(100000, '['));
    });
  }
  refused(false, "1 elements are not in fp32_contents",
          [](auto*, Input* input) {
            input->mutable_contents()->add_bytes_contents("cat");
          });
  refused(false, "0 elements",
          [](auto*, Input* input) { input->clear_contents(); });
  refused(true, "raw_input_contents[0] has 3135 bytes",
          [](auto* request, Input*) {
            request->mutable_raw_input_contents(0)->pop_back();
          });
  refused(true, "has 2 raw_input_contents and 1 inputs",
          [](auto* request, Input*) { request->add_raw_input_contents(""); });
  refused(true, "expected one", [](auto*, Input* input) {
    input->mutable_contents()->add_fp32_contents(1);
  });
  wire::ModelInferRequest elsewhere = Question(0, true);
  elsewhere.set_model_name(std::string(100000, '\n'));
  wire::ModelInferResponse answer;
  EXPECT_EQ(Ask(elsewhere, &answer).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(metrics_.body_bytes.load(), 0);
}

// Bytes that are a message with one byte changed, or cut, under every method.
TEST_F(GrpcTest, DamagedMessagesEndInAnAnswerOrAnError) {
  Start();
  grpc::GenericStub generic(channel_);
  const auto send = [&](const std::string& method, const std::string& bytes) {
    grpc::ClientContext context;
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::CompletionQueue queue;
    const auto call = generic.PrepareUnaryCall(
        &context, "/inference.GRPCInferenceService/" + method, request, &queue);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  };
  const std::string whole = Question(0, true).SerializeAsString();
  EXPECT_TRUE(send("ModelInfer", whole).ok());
  EXPECT_EQ(send("Nothing", whole).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(send("ModelInfer", "\xff\xff").error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    // The head of the message, where names and lengths stand.
    bytes[random() % 60] = static_cast<char>(random());
    if (i % 3 == 0) bytes.resize(random() % bytes.size());
    const grpc::Status status = send("ModelInfer", bytes);
    EXPECT_TRUE(status.ok() ||
                status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ||
                status.error_code() == grpc::StatusCode::NOT_FOUND)
        << status.error_code() << ": " << status.error_message();
    EXPECT_NE(
        send(i % 2 == 0 ? "ModelReady" : "ModelMetadata", bytes).error_code(),
        grpc::StatusCode::UNAVAILABLE);
  }
  EXPECT_EQ(metrics_.body_bytes.load(), 0);
}

TEST_F(GrpcTest, LimitsOfSizesAndTime) {
  grpc_.max_message = 4096;
  grpc_.receive_seconds = 0.3;
  Start();
  wire::ModelInferRequest large = Question(0, true);
  large.set_id(std::string(4096, 'x'));
  wire::ModelInferResponse answer;
  EXPECT_EQ(Ask(large, &answer).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  // Calls of which no message comes give their threads back.
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReaderWriter<
      wire::ModelInferRequest, wire::ModelStreamInferResponse>>>
      silent;
  for (int i = 0; i < grpc_.max_calls; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    silent.push_back(stub_->ModelStreamInfer(contexts.back().get()));
  }
  grpc::ClientContext patient;
  patient.set_wait_for_ready(true);
  EXPECT_TRUE(stub_->ModelInfer(&patient, Question(0, true), &answer).ok());
  for (const auto& stream : silent) EXPECT_FALSE(stream->Finish().ok());
}

TEST_F(GrpcTest, AQuestionAboutAModelIsSmall) {
  Start();
  wire::ModelReadyRequest ready;
  ready.set_name(std::string(64 << 10, 'x'));
  wire::ModelReadyResponse is_ready;
  grpc::ClientContext first, second;
  const grpc::Status status = stub_->ModelReady(&first, ready, &is_ready);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  // A tag of one byte and a length of three stand before the name.
  EXPECT_EQ(status.error_message(),
            "the message has 65540 bytes; a ModelReadyRequest has at most "
            "65536");
  wire::ModelMetadataRequest metadata;
  metadata.set_name(ready.name());
  wire::ModelMetadataResponse model;
  EXPECT_EQ(stub_->ModelMetadata(&second, metadata, &model).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// Clients that take no answer give their threads back, and do not hold up the
// end: the window of a stream, which does not grow here, is less than an
// answer.
TEST_F(GrpcTest, AnswersThatAreNotTakenEnd) {
  grpc_.max_calls = 2;
  grpc_.receive_seconds = 1;
  Start();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto stub = wire::GRPCInferenceService::NewStub(
      grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                grpc::InsecureChannelCredentials(), arguments));
  wire::ModelInferRequest large = Question(0, /*raw=*/true);
  large.set_id(std::string(1 << 20, 'x'));
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReaderWriter<
      wire::ModelInferRequest, wire::ModelStreamInferResponse>>>
      deaf;
  for (int i = 0; i < grpc_.max_calls; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    deaf.push_back(stub->ModelStreamInfer(contexts.back().get()));
    deaf.back()->Write(large);
  }
  grpc::ClientContext patient;
  patient.set_wait_for_ready(true);
  wire::ModelInferResponse answer;
  const grpc::Status status =
      stub_->ModelInfer(&patient, Question(0, true), &answer);
  EXPECT_TRUE(status.ok()) << status.error_message();
  server_->Drain();
  for (const auto& stream : deaf) {
    // Half an answer came.
    wire::ModelStreamInferResponse none;
    EXPECT_FALSE(stream->Read(&none));
    EXPECT_FALSE(stream->Finish().ok());
  }
  EXPECT_EQ(metrics_.body_bytes.load(), 0);
}

TEST_F(GrpcTest, AnOccupiedAddressIsAnError) {
  Start();
  GrpcOptions same = grpc_;
  same.port = server_->port();
  EXPECT_TRUE(absl::IsUnavailable(ListenGrpc(same, service_.get()).status()));
}

TEST_F(GrpcTest, TheEndLosesNothing) {
  Start();
  grpc::ClientContext context;
  const auto silent = stub_->ModelStreamInfer(&context);
  std::atomic<int> answered{0}, lost{0};
  std::atomic<bool> ending{false};
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i)
    clients.emplace_back([&, i] {
      const auto stub = wire::GRPCInferenceService::NewStub(NewChannel());
      for (;;) {
        wire::ModelInferResponse answer;
        grpc::ClientContext context;
        const grpc::Status status =
            stub->ModelInfer(&context, Question(i, true), &answer);
        if (status.ok()) {
          ++answered;
          continue;
        }
        // Not let in any more.
        if (!ending || status.error_code() != grpc::StatusCode::UNAVAILABLE) {
          ++lost;
          ADD_FAILURE() << status.error_code() << ": "
                        << status.error_message();
        }
        return;
      }
    });
  // A stream that never stops is refused in the end.
  std::atomic<int> streamed{0};
  clients.emplace_back([&] {
    const auto stub = wire::GRPCInferenceService::NewStub(NewChannel());
    grpc::ClientContext context;
    const auto stream = stub->ModelStreamInfer(&context);
    wire::ModelStreamInferResponse answer;
    while (stream->Write(Question(streamed % 4, /*raw=*/true)) &&
           stream->Read(&answer)) {
      ExpectAnswer(answer.infer_response(), streamed % 4, /*raw=*/true);
      ++streamed;
    }
    EXPECT_TRUE(ending);
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(status.error_message(), "the server is shutting down");
  });
  while (answered < 20 || streamed < 20)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ending = true;
  server_->Drain();
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(lost, 0);
  EXPECT_NE(metrics_.Text().find("pd_body_bytes 0"), std::string::npos);
}

}  // namespace
}  // namespace serve
}  // namespace pd
