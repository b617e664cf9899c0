// A real server that sends its spans to a collector, which is there, slow or away.

#include "json/json.hpp"
#include "net/raw_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"
#include "support/exposition.hpp"
#include "support/provider.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hearth::testing {
namespace {

// The median answer of a server whose collector takes nothing, against one without a collector: a
// span costs microseconds, a wait for the collector milliseconds.
constexpr double kMostDelay = 2;

class TracingProcessTest : public ProcessTest {
 protected:
  TracingProcessTest() {
    install(built::agent("traced-agent"), "traced-agent.so");
    put("classes/traced.yaml", "class: Traced\negress: {allow: [127.0.0.1]}\n");
    put("collector.key", "X-Collector-Key: opensesame\n");
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> serve_with(const std::string& endpoint) const {
    put("hearth.yaml", "tracing: {endpoint: \"" + endpoint +
                           "\", headers: [collector.key], service_name: shop}\n");
    return serve_ready({"--config", "hearth.yaml", "--shards", "2"});
  }
  [[nodiscard]] std::string provider(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(provider_.http()) + path;
  }
  static double value(const ServerProcess& server, const std::string& name,
                      const std::map<std::string, std::string>& labels = {}) {
    const Exposition seen(request(server, "GET", "/metrics").body);
    return seen.value(name, labels).value_or(0);
  }

  // A call over a WebSocket, which is closed afterwards; returns the header that /echo got.
  [[nodiscard]] std::string forward(const ServerProcess& server, const std::string& trace) const {
    RawClient client(server.port());
    EXPECT_EQ(client.upgrade("/agents/traced/caller", "traceparent: " + trace + "\r\n").status,
              101);
    client.send(RawClient::text_frame(R"({"type":"rpc","id":"1","method":"forward","args":[")" +
                                      provider("/echo") + R"("]})"));
    Json answer;
    while (!answer.is_object() || answer.at("type") != "rpc")
      answer = parse_json(client.read_text()).value();
    EXPECT_EQ(answer.at("success"), true) << dump_json(answer);
    return answer.value("result", "");
  }

  // Requests over one connection.
  static void ask_many(const ServerProcess& server, int many) {
    RawClient client(server.port());
    const std::string asked = "GET /agents/traced/a HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (int request = 0; request < many; ++request) EXPECT_NE(client.request(asked).status, 0);
  }
  // Microseconds.
  static double median_answer(const ServerProcess& server) {
    RawClient client(server.port());
    const std::string asked = "GET /agents/traced/a HTTP/1.1\r\nHost: localhost\r\n\r\n";
    std::vector<double> times;
    for (int request = 0; request < 200; ++request) {
      const auto began = std::chrono::steady_clock::now();
      EXPECT_NE(client.request(asked).status, 0);
      times.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began)
              .count());
    }
    std::ranges::nth_element(times, times.begin() + 100);
    return times[100];
  }

  // What the collector has got.
  [[nodiscard]] Json batches() const {
    RawClient reader(provider_.http());
    const Reply reply =
        reader.request("GET /v1/traces HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    return parse_json(reply.body).value();
  }

  Provider provider_;
};

// {"stringValue":"a"} and others, as a text.
std::string attribute(const Json& span, const std::string& key) {
  for (const Json& each : span.at("attributes")) {
    if (each.at("key") != key) continue;
    const Json& its = each.at("value").front();
    return its.is_string() ? its.get<std::string>() : dump_json(its);
  }
  return "";
}

Json spans_of(const Json& batches) {
  Json spans = Json::array();
  for (const Json& batch : batches) {
    EXPECT_EQ(batch.at("type"), "application/json");
    EXPECT_EQ(batch.at("key"), "opensesame");
    const Json& resource = batch.at("resourceSpans").at(0);
    EXPECT_EQ(attribute(resource.at("resource"), "service.name"), "shop");
    for (const Json& span : resource.at("scopeSpans").at(0).at("spans")) spans.push_back(span);
  }
  return spans;
}

TEST_F(TracingProcessTest, ATraceGoesFromAClientOverTwoAgentsToAnotherServer) {
  const auto server = serve_with(provider("/v1/traces"));
  const std::string trace = "0af7651916cd43dd8448eb211c80319c";
  const std::string got = forward(*server, "00-" + trace + "-b7ad6b7169203331-01");
  // The operation is not run again, and so has no second span.
  EXPECT_EQ(forward(*server, "00-22222222222222222222222222222222-b7ad6b7169203331-01"), got);
  // The answer to a request has the id of its trace, which this client does not want recorded.
  const Reply unrecorded =
      RawClient(server->port())
          .request(
              "GET /agents/traced/caller HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
              "traceparent: 00-11111111111111111111111111111111-b7ad6b7169203331-00\r\n\r\n");
  EXPECT_TRUE(contains(unrecorded.head, "traceresponse: 00-11111111111111111111111111111111-"));
  server->wait_for_log("tracing.failing");
  server->wait_for_log("tracing.recovered");
  EXPECT_GT(value(*server, "hearth_spans_exported_total"), 0);
  EXPECT_EQ(server->stop(), kClean);

  const Json seen = batches();
  const std::string all = dump_json(seen);
  for (const char* absent : {"secret", "1111111111111111", "/echo"})
    EXPECT_TRUE(lacks(all, absent)) << absent;
  std::map<std::string, Json> spans;  // by kind and name
  for (const Json& span : spans_of(seen)) {
    EXPECT_FALSE(span.contains("status")) << "failed: " << dump_json(span);
    if (span.at("traceId") != trace) continue;
    spans[std::to_string(span.at("kind").get<int>()) + " " + span.at("name").get<std::string>()] =
        span;
  }
  const std::vector<std::string> way = {"2 Traced.forward", "3 Traced.ask", "2 Traced.ask",
                                        "1 asking",         "3 chat m-1",   "3 GET"};
  std::string above = "b7ad6b7169203331";
  for (const std::string& each : way) {
    ASSERT_TRUE(spans.contains(each)) << each << " in " << all;
    EXPECT_EQ(spans[each].at("parentSpanId"), above) << each;
    above = spans[each].at("spanId").get<std::string>();
  }
  ASSERT_TRUE(spans.contains("2 Traced.connecting")) << all;
  EXPECT_EQ(spans["2 Traced.connecting"].at("parentSpanId"), "b7ad6b7169203331");
  EXPECT_EQ(got, "00-" + trace + "-" + above + "-01") << "the other server knows the last span";
  const Json& model = spans["3 chat m-1"];
  EXPECT_EQ(attribute(model, "gen_ai.request.model"), "m-1");
  EXPECT_EQ(attribute(model, "gen_ai.usage.input_tokens"), "12");
  EXPECT_EQ(attribute(model, "hearth.operation.state"), "completed");
  EXPECT_EQ(attribute(model, "hearth.agent.name"), "callee");
  EXPECT_EQ(attribute(spans["1 asking"], "hearth.fiber.state"), "completed");
  EXPECT_EQ(attribute(spans["3 GET"], "http.response.status_code"), "200");
  EXPECT_EQ(attribute(spans["3 GET"], "server.address"), "127.0.0.1");
}

TEST_F(TracingProcessTest, ACallOfAModelHasTheAttributesOfItsConventionsAndNoContents) {
  ServerProcess model({"python3", (built::sources() / "packaging/model_server").string()});
  const std::string said = model.wait_for_line();
  const std::string address = said.substr(said.rfind('/') + 1);
  install(bundled("assistant"), "assistant.so");
  put("classes/assistant.yaml", "class: assistant\negress: {allow: [\"" + address +
                                    "\"]}\noptions: {provider: anthropic, model: m-1, base_url: "
                                    "\"http://" +
                                    address + "/v1\", max_output_tokens: 100}\n");
  const auto server = serve_with(provider("/v1/traces"));
  RawClient client(server->port());
  EXPECT_EQ(client
                .request("POST /agents/assistant/a/chat HTTP/1.1\r\nHost: localhost\r\n"
                         "Connection: close\r\nContent-Type: application/json\r\n"
                         "Content-Length: 19\r\n\r\n{\"text\":\"a secret\"}")
                .status,
            200);
  server->wait_for_log("tracing.recovered");  // the collector refuses its first batch
  EXPECT_EQ(server->stop(), kClean);
  std::map<std::string, Json> spans;
  for (const Json& span : spans_of(batches())) spans[span.at("name").get<std::string>()] = span;
  ASSERT_TRUE(spans.contains("chat m-1")) << dump_json(Json(spans));
  const Json& call = spans["chat m-1"];
  for (const auto& [key, value] : {std::pair("gen_ai.operation.name", "chat"),
                                   {"gen_ai.provider.name", "anthropic"},
                                   {"gen_ai.request.model", "m-1"},
                                   {"hearth.operation.kind", "chat.model"}})
    EXPECT_EQ(attribute(call, key), value);
  for (const char* const key :
       {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.response.id"})
    EXPECT_NE(attribute(call, key), "") << key;
  ASSERT_TRUE(spans.contains("POST"));
  EXPECT_EQ(spans["POST"].at("parentSpanId"), call.at("spanId"));
  EXPECT_TRUE(lacks(dump_json(Json(spans)), "a secret"));
}

TEST_F(TracingProcessTest, ACollectorThatTakesNothingDelaysNoAnswer) {
  struct Case {
    std::string endpoint;
    std::string dropped;  // for this reason, at once or when the queue is full
  };
  const Case cases[] = {
      {"http://127.0.0.1:" + std::to_string(provider_.silent()) + "/v1/traces", "queue_full"},
      {"http://127.0.0.1:1/v1/traces", "queue_full"},
      {provider("/status?code=400"), "refused"}};
  const auto control = serve_ready({"--shards", "2", "--data", "control"});
  (void)median_answer(*control);
  for (const Case& each : cases) {
    SCOPED_TRACE(each.endpoint);
    const auto server = serve_with(each.endpoint);
    (void)median_answer(*server);
    const auto dropped = [&] {
      return value(*server, "hearth_spans_dropped_total", {{"reason", each.dropped}});
    };
    // More spans than the queue holds.
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    while (dropped() == 0 && std::chrono::steady_clock::now() < deadline) ask_many(*server, 1000);
    EXPECT_GT(dropped(), 0);
    // Both of them side by side, so that the load of the machine is that of both.
    double ratio = 1000;
    for (int tries = 0; tries < 5 && ratio > kMostDelay; ++tries)
      ratio = std::min(ratio, median_answer(*server) / median_answer(*control));
    EXPECT_LE(ratio, kMostDelay);
    const auto before = std::chrono::steady_clock::now();
    EXPECT_EQ(server->stop(), kClean);
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(15));
  }
}

}  // namespace
}  // namespace hearth::testing
