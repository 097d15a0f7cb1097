// SPDX-License-Identifier: Apache-2.0
// The server over loopback: answers in JSON and bytes, every address, limits,
// requests that are none, and an end that loses nothing.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "libcore/serve/http.h"
#include "libcore/serve/repository.h"
#include "libcore/serve/service.h"
#include "tests/serve/serve_fixture.h"

namespace pd {
namespace serve {
namespace {

using Json = nlohmann::json;

TEST(AddressTest, WhatIsOne) {
  EXPECT_EQ(ParseAddress("127.0.0.1:8000")->first, "127.0.0.1");
  EXPECT_EQ(ParseAddress("[::1]:0")->first, "::1");
  for (const char* bad : {"", "8000", ":8000", "a:", "a:-1", "a:65536", "a:080",
                          "::1:8000", "[]:1", "a:1x"})
    EXPECT_FALSE(ParseAddress(bad).ok()) << bad;
}

class HttpTest : public ::testing::Test {
 protected:
  HttpTest()
      : feed_(ArraysOf(Deployed("lenet-feed.npz")).begin()->second),
        want_(ArraysOf(Deployed("lenet-expect.npz")).begin()->second) {}
  // Not before a test has set its options.
  void Start() {
    auto places = PlacesOf({Deployed("lenet.pdmodel")});
    repository_ =
        std::make_unique<Repository>(*std::move(places), options_, &metrics_);
    ASSERT_TRUE(repository_->Open().ok());
    service_ = std::make_unique<Service>(repository_.get(), &metrics_, "0");
    http_.host = "127.0.0.1";
    auto server = Listen(http_, service_.get(), &metrics_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::unique_ptr<httplib::Client> Client() const {
    auto client =
        std::make_unique<httplib::Client>("127.0.0.1", server_->port());
    client->set_keep_alive(true);
    client->set_read_timeout(600);
    return client;
  }
  std::string Question(int64_t row) const {
    Json input = {
        {"name", "x"}, {"datatype", "FP32"}, {"shape", {1, 1, 28, 28}}};
    const float* values = feed_.data<float>() + row * 784;
    input["data"] = std::vector<float>(values, values + 784);
    return Json{{"id", absl::StrCat(row)}, {"inputs", {input}}}.dump();
  }
  void ExpectAnswer(const std::string& body, int64_t row) const {
    const Json json = Json::parse(body);
    EXPECT_EQ(json["id"], absl::StrCat(row));
    const auto data = json["outputs"][0]["data"].get<std::vector<float>>();
    ExpectClose(MakeArray<float>({1, 10}, data), RowOf(want_, row));
  }
  // Sends bytes as they are; all that comes until the connection ends.
  std::string Raw(const std::string& bytes, bool end = true) const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(
        connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    (void)!send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (end) shutdown(fd, SHUT_WR);
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = recv(fd, buffer, sizeof(buffer), 0)) > 0;)
      text.append(buffer, static_cast<size_t>(n));
    close(fd);
    return text;
  }

  const Array feed_, want_;
  RepositoryOptions options_;
  HttpOptions http_;
  Metrics metrics_;
  std::unique_ptr<Repository> repository_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<HttpServer> server_;
};

constexpr char kInfer[] = "/v2/models/lenet/infer";

TEST_F(HttpTest, AnswersAreThoseOfPaddlePaddle) {
  Start();
  const auto client = Client();
  for (int64_t row = 0; row < 5; ++row) {
    const auto answer = client->Post(
        row % 2 == 0 ? kInfer : "/v2/models/lenet/versions/1/infer",
        Question(row), "application/json");
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->status, 200) << answer->body;
    ExpectAnswer(answer->body, row);
  }
  const std::string json =
      R"({"inputs":[{"name":"x","datatype":"FP32","shape":[5,1,28,28],)"
      R"("parameters":{"binary_data_size":15680}}],)"
      R"("parameters":{"binary_data_output":true}})";
  std::string body = json;
  body.append(feed_.data<char>(), feed_.size_bytes());
  const auto answer = client->Post(
      kInfer, {{"Inference-Header-Content-Length", absl::StrCat(json.size())}},
      body, "application/octet-stream");
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->status, 200) << answer->body;
  const size_t head =
      std::stoul(answer->get_header_value("Inference-Header-Content-Length"));
  ASSERT_EQ(answer->body.size(), head + 200);
  std::vector<float> values(50);
  std::memcpy(values.data(), answer->body.data() + head, 200);
  ExpectClose(MakeArray<float>({5, 10}, values), want_);
}

TEST_F(HttpTest, Addresses) {
  Start();
  const auto client = Client();
  const auto status = [&](const std::string& path) {
    const auto answer = client->Get(path);
    return answer ? answer->status : -1;
  };
  for (const char* path :
       {"/v2", "/v2/", "/v2/health/live", "/v2/health/ready",
        "/v2/models/lenet", "/v2/models/lenet/ready",
        "/v2/models/lenet/versions/1", "/v2/models/lenet/versions/1/ready",
        "/v1/models/lenet", "/metrics"})
    EXPECT_EQ(status(path), 200) << path;
  for (const char* path :
       {"/", "/v3", "/v2/health", "/v2/models", "/v2/models/x",
        "/v2/models/lenet/versions/2", "/v2/models/lenet/versions/x/ready",
        "/v2/models/lenet/what", "/v2/models/lenet/ready/x", "/v1",
        "/v2/models/..%2f..%2fetc", "/v2/models/a%00b%0a", "/%ff%fe"})
    EXPECT_EQ(status(path), 404) << path;
  EXPECT_EQ(status(kInfer), 405);
  EXPECT_EQ(client->Post("/v2/health/live", "", "")->status, 405);
  EXPECT_EQ(client->Delete("/v2/models/lenet")->status, 405);
  EXPECT_EQ(client->Post("/v2/models/x/infer", "{}", "")->status, 404);
  const Json metadata = Json::parse(client->Get("/v2/models/lenet")->body);
  EXPECT_EQ(metadata["versions"], Json({"1"}));
  EXPECT_EQ(metadata["inputs"][0]["shape"], Json({-1, 1, 28, 28}));
  EXPECT_EQ(metadata["inputs"][0]["datatype"], "FP32");
  // The older protocol, and the repository's.
  Json rows = Json::array({Json::array({Json::array()})});
  for (int i = 0; i < 28; ++i)
    rows[0][0][i] = std::vector<float>(feed_.data<float>() + i * 28,
                                       feed_.data<float>() + i * 28 + 28);
  const auto v1 = client->Post("/v1/models/lenet:predict",
                               Json{{"instances", rows}}.dump(), "");
  ASSERT_EQ(v1->status, 200) << v1->body;
  const auto values =
      Json::parse(v1->body)["predictions"][0].get<std::vector<float>>();
  ExpectClose(MakeArray<float>({1, 10}, values), RowOf(want_, 0));
  const auto index = client->Post("/v2/repository/index", "", "");
  EXPECT_EQ(Json::parse(index->body)[0]["state"], "READY");
  EXPECT_EQ(client->Post("/v2/repository/models/lenet/unload", "", "")->status,
            200);
  EXPECT_EQ(status("/v2/models/lenet/ready"), 503);
  EXPECT_EQ(client->Post(kInfer, Question(0), "")->status, 503);
  EXPECT_EQ(client->Post("/v2/repository/models/lenet/load", "", "")->status,
            200);
  EXPECT_EQ(client->Post("/v2/repository/models/x/load", "", "")->status, 404);
  EXPECT_EQ(client->Post(kInfer, Question(0), "")->status, 200);
  const std::string text = client->Get("/metrics")->body;
  for (const char* line :
       {"pd_requests_total{model=\"lenet\",version=\"1\"} 2\n",
        "pd_queue_length{model=\"lenet\",version=\"1\"} 0\n",
        "pd_batch_rows_sum{model=\"lenet\",version=\"1\"} 2\n",
        "pd_request_seconds_count{model=\"lenet\",version=\"1\"} 2\n",
        "pd_responses_total{code=\"404\"} 15\n", "pd_connections 1\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST_F(HttpTest, LimitsOfBodies) {
  http_.max_body = 20000;
  Start();
  const auto client = Client();
  EXPECT_EQ(client->Post(kInfer, std::string(20000, ' '), "")->status, 400);
  const auto large = client->Post(kInfer, std::string(20001, ' '), "");
  EXPECT_EQ(large->status, 413);
  EXPECT_TRUE(Json::parse(large->body).contains("error"));
  // Large by its chunks, which no header tells.
  const auto chunks = client->Post(
      kInfer,
      [](size_t offset, httplib::DataSink& sink) {
        const std::string part(1000, ' ');
        sink.write(part.data(), part.size());
        if (offset > 40000) sink.done();
        return true;
      },
      "application/json");
  ASSERT_TRUE(chunks);
  EXPECT_EQ(chunks->status, 413);
  // And by what it is packed to.
  client->set_compress(true);
  const auto packed = client->Post(kInfer, std::string(1 << 20, ' '), "");
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->status, 413);
  EXPECT_EQ(client->Post(kInfer, Question(1), "")->status, 200);
}

TEST_F(HttpTest, AFullQueueAndALongWait) {
  options_.batch.max_batch = 64;
  options_.batch.max_delay = 600;
  options_.batch.max_queue = 1;
  options_.batch.max_wait_seconds = 0.4;
  Start();
  std::thread first(
      [&] { EXPECT_EQ(Client()->Post(kInfer, Question(0), "")->status, 503); });
  while (metrics_.Of("lenet", 1)->waiting == 0) std::this_thread::yield();
  const auto second = Client()->Post(kInfer, Question(1), "");
  EXPECT_EQ(second->status, 429);
  EXPECT_EQ(second->get_header_value("Retry-After"), "1");
  first.join();
}

TEST_F(HttpTest, WhatIsNoRequest) {
  http_.receive_seconds = 0.3;
  http_.max_body = 1 << 20;
  Start();
  const std::string post = absl::StrCat("POST ", kInfer, " HTTP/1.1\r\n");
  const struct {
    std::string bytes;
    int status;
  } cases[] = {
      {"\r\n\r\n", 400},
      {"nonsense\r\n\r\n", 400},
      {"GET /v2 HTTP/9.9\r\n\r\n", 400},
      {absl::StrCat("GET /", std::string(2000, 'a'), " HTTP/1.1\r\n\r\n"), 414},
      {post + "Content-Length: x\r\n\r\n", 400},
      {post + "Content-Length: -1\r\n\r\n", 400},
      {post + "Content-Length: 18446744073709551616\r\n\r\n", 400},
      {post + "Content-Length: 9223372036854775807\r\n\r\n", 413},
      {post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", 400},
      {post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400},
      {post + "Transfer-Encoding: gzip\r\n\r\n{}", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {post + "Content-Length: 100\r\n\r\n{}", 400},
      {post + "\r\n", 400},
      {post + "Content-Type: multipart/form-data; boundary=a\r\n"
              "Content-Length: 2\r\n\r\n{}",
       415},
      {post + "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope", 400},
      {post + "Inference-Header-Content-Length: 99\r\n"
              "Content-Length: 2\r\n\r\n{}",
       400},
      {post + "Inference-Header-Content-Length: -1\r\n"
              "Content-Length: 2\r\n\r\n{}",
       400},
      {"BREW /v2 HTTP/1.1\r\n\r\n", 400},
  };
  for (const auto& one : cases) {
    const std::string answer = Raw(one.bytes);
    EXPECT_EQ(answer.substr(0, 12), absl::StrCat("HTTP/1.1 ", one.status))
        << one.bytes.substr(0, 200);
    EXPECT_NE(answer.find("{\"error\":"), std::string::npos) << answer;
  }
  // A client that goes silent is given up.
  EXPECT_EQ(Raw(post + "Content-Length: 100\r\n\r\n{", false).substr(0, 12),
            "HTTP/1.1 408");
  Raw("GET /v2 HTTP/1.1\r\nA", false);
  // A head without end.
  Raw("GET /v2 HTTP/1.1\r\nA: " + std::string(1 << 20, 'a'));
  // Two requests at once are two answers.
  const std::string both =
      Raw("GET /v2 HTTP/1.1\r\n\r\nGET /v2/health/live HTTP/1.1\r\n\r\n");
  EXPECT_NE(both.find("{\"live\":true}"), std::string::npos) << both;
  // A body that a GET should not have is no second request.
  const std::string hidden =
      Raw("GET /v2 HTTP/1.1\r\nContent-Length: 36\r\n\r\n"
          "GET /v2/health/live HTTP/1.1\r\nA: b\r\n\r\n");
  EXPECT_EQ(hidden.find("live"), std::string::npos) << hidden;
}

// Good requests with bytes changed, cut or put in: an answer or none, and the
// server lives.
TEST_F(HttpTest, DamagedRequests) {
  http_.receive_seconds = 0.2;
  Start();
  const std::string body = Question(0).substr(0, 300);
  const std::string good = absl::StrCat(
      "POST ", kInfer, " HTTP/1.1\r\nContent-Length: ", body.size(),
      "\r\nInference-Header-Content-Length: ", body.size(), "\r\n\r\n", body);
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = good;
    for (int change = 0; change < 1 + i % 4; ++change) {
      const size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, 1 + random() % 20);
          break;
        default:
          bytes.insert(at, std::string(random() % 9, "[{\"0-9\r\n"[i % 8]));
      }
      if (bytes.empty()) bytes = "x";
    }
    Raw(bytes);
  }
  EXPECT_EQ(Client()->Post(kInfer, Question(0), "")->status, 200);
}

TEST_F(HttpTest, ConnectionsAreLimited) {
  http_.max_connections = 2;
  Start();
  // Four clients that keep their connections share two threads.
  std::vector<std::unique_ptr<httplib::Client>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(Client());
    EXPECT_EQ(clients.back()->Get("/v2")->status, 200) << i;
    EXPECT_LE(metrics_.connections, 2);
  }
}

TEST_F(HttpTest, TheEndLosesNothing) {
  options_.batch.max_wait_seconds = 600;
  Start();
  std::atomic<int> answered{0}, lost{0};
  std::vector<std::thread> threads;
  for (int64_t row = 0; row < 4; ++row)
    threads.emplace_back([&, row] {
      // New connections and kept ones.
      auto client = Client();
      client->set_keep_alive(row % 2 == 0);
      const std::string question = Question(row);
      for (;;) {
        const auto answer = client->Post(kInfer, question, "");
        if (!answer) {
          lost += answer.error() != httplib::Error::Connection;
          return;
        }
        EXPECT_EQ(answer->status, 200) << answer->body;
        if (answer->status == 200) ExpectAnswer(answer->body, row);
        ++answered;
      }
    });
  while (answered < 40) std::this_thread::yield();
  service_->SetDraining();
  EXPECT_EQ(service_->Answer({"GET", "/v2/health/ready", "", ""}).status, 503);
  EXPECT_EQ(service_->Answer({"GET", "/v2/health/live", "", ""}).status, 200);
  server_->Drain();
  EXPECT_EQ(metrics_.connections, 0);
  EXPECT_EQ(metrics_.body_bytes, 0);
  server_.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost, 0);
}

TEST_F(HttpTest, AnAddressThatCannotBeHad) {
  Start();
  HttpOptions same = http_;
  same.port = server_->port();
  EXPECT_FALSE(Listen(same, service_.get(), &metrics_).ok());
  same.host = "192.0.2.1";
  same.port = 0;
  EXPECT_FALSE(Listen(same, service_.get(), &metrics_).ok());
}

}  // namespace
}  // namespace serve
}  // namespace pd
