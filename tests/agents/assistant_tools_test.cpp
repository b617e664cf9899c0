// The options of the assistant, and the requests of its tools: one row for each rule.

#include "assistant/tools.hpp"

#include <hearth/operations.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assistant {
namespace {

using hearth::Effect;
using hearth::Json;

std::string failure_of(const auto& function) {
  try {
    function();
  } catch (const hearth::Error& error) {
    return error.what();
  }
  return "";
}

// ---- options ------------------------------------------------------------------------------------

struct RefusedOptions {
  std::string tool;  // JSON of the second tool
  std::string why;   // behind "options.tools[1]"
};

// clang-format off
const std::vector<RefusedOptions>& refused_tools() {
  static const std::vector<RefusedOptions> all{
    {R"(7)", ": expected object"},
    {R"({"client":true})", ".name: missing, expected string"},
    {R"({"name":"a b","client":true})", ".name: expected 1 to 64 letters, digits, _ or -"},
    {R"({"name":"","client":true})", ".name: expected 1 to 64 letters, digits, _ or -"},
    {R"({"name":"first","client":true})", ".name: an earlier tool has this name"},
    {R"({"name":"t"})", ": expected one of http, agent, chat and client: true"},
    {R"({"name":"t","client":true,"http":{"url":"http://h/"}})", ": expected one of http, agent, chat and client: true"},
    {R"({"name":"t","client":true,"approval":true})", ".approval: the client that runs a tool asks its user itself"},
    {R"({"name":"t","client":true,"aproval":true})", ".aproval: unknown; known are name, description, schema, approval, http, agent, chat, client"},
    {R"({"name":"t","client":true,"schema":[]})", ".schema: expected a JSON schema with type: object"},
    {R"({"name":"t","client":true,"schema":{"type":"string"}})", ".schema: expected a JSON schema with type: object"},

    {R"({"name":"t","http":{}})", ".http.url: missing, expected string"},
    {R"({"name":"t","http":{"url":7}})", ".http.url: expected string"},
    {R"({"name":"t","http":{"url":"http://h/","header":"x"}})", ".http.header: unknown; known are method, url, credential, effect"},
    {R"({"name":"t","http":{"url":"http://h/","method":"TRACE"}})", ".http.method: expected GET, POST, PUT, PATCH or DELETE"},
    {R"({"name":"t","http":{"url":"http://h/","effect":"safe"}})", ".http.effect: expected read, idempotent, keyed or unsafe"},
    {R"({"name":"t","http":{"url":"h/a"}})", ".http.url: expected a URL that begins with http:// or https://"},
    {R"({"name":"t","http":{"url":"{x}://h/a"}})", ".http.url: expected a URL that begins with http:// or https://"},
    {R"({"name":"t","http":{"url":"http:///a"}})", ".http.url: it has no host"},
    {R"({"name":"t","http":{"url":"http://{x}/a"}})", ".http.url: scheme and host are fixed: no field, user or password can be there"},
    {R"({"name":"t","http":{"url":"http://h{x}?a"}})", ".http.url: scheme and host are fixed: no field, user or password can be there"},
    {R"({"name":"t","http":{"url":"http://h:{x}/a"}})", ".http.url: scheme and host are fixed: no field, user or password can be there"},
    {R"({"name":"t","http":{"url":"http://me@h/a"}})", ".http.url: scheme and host are fixed: no field, user or password can be there"},
    {R"({"name":"t","http":{"url":"http://h\\{x}"}})", ".http.url: it has a character that URLs do not have, or a fragment"},
    {R"({"name":"t","http":{"url":"http://h/a b"}})", ".http.url: it has a character that URLs do not have, or a fragment"},
    {R"({"name":"t","http":{"url":"http://h/a#{x}"}})", ".http.url: it has a character that URLs do not have, or a fragment"},
    {R"({"name":"t","http":{"url":"http://h/{x"}})", ".http.url: a field is a name of letters, digits, _ and - in braces, as in {city}"},
    {R"({"name":"t","http":{"url":"http://h/x}"}})", ".http.url: a field is a name of letters, digits, _ and - in braces, as in {city}"},
    {R"({"name":"t","http":{"url":"http://h/{}"}})", ".http.url: a field is a name of letters, digits, _ and - in braces, as in {city}"},
    {R"({"name":"t","http":{"url":"http://h/{a/b}"}})", ".http.url: a field is a name of letters, digits, _ and - in braces, as in {city}"},
    {R"({"name":"t","http":{"url":"http://h/a?{x}=1"}})", ".http.url: in the query, a field can only be a value, as in ?city={city}"},
    {R"({"name":"t","http":{"url":"http://h/a?b&{x}"}})", ".http.url: in the query, a field can only be a value, as in ?city={city}"},
    {R"({"name":"t","http":{"url":"http://h/{x}"}})", ".http.url: {x} is not among the properties of the tool's schema"},
    {R"({"name":"t","schema":{"type":"object","properties":{"y":{}}},"http":{"url":"http://h/?a={x}"}})", ".http.url: {x} is not among the properties of the tool's schema"},

    {R"({"name":"t","chat":{}})", ".chat.class: missing, expected string"},
    {R"({"name":"t","chat":{"class":"shop"}})", ".chat.name: missing, expected string"},
    {R"({"name":"t","chat":{"class":"shop","name":"{x}"}})", ".chat.name: {x} is not among the properties of the tool's schema"},
    {R"({"name":"t","schema":{"type":"object","properties":{"y":{}}},"chat":{"class":"shop","name":"a"}})", ".chat: {text} is not among the properties of the tool's schema"},
    {R"({"name":"t","agent":{}})", ".agent.class: missing, expected string"},
    {R"({"name":"t","agent":{"class":"shop"}})", ".agent.name: missing, expected string"},
    {R"({"name":"t","agent":{"class":"shop","name":"a"}})", ".agent.method: missing, expected string"},
    {R"({"name":"t","agent":{"class":"shop","name":"{x","method":"m"}})", ".agent.name: a field is a name of letters, digits, _ and - in braces, as in {city}"},
    {R"({"name":"t","agent":{"class":"shop","name":"{x}","method":"m"}})", ".agent.name: {x} is not among the properties of the tool's schema"},
    {R"({"name":"t","agent":{"class":"shop","name":"a","method":"m","effect":"keyed"}})", ".agent.effect: expected read, idempotent or unsafe: a call of an agent carries no key"},
    {R"({"name":"t","agent":{"class":"shop","name":"a","method":"m","url":""}})", ".agent.url: unknown; known are class, name, method, effect"},
  };
  return all;
}
// clang-format on

TEST(AssistantOptionsTest, RefusesAToolWithASentenceThatNamesTheField) {
  for (const auto& [tool, why] : refused_tools()) {
    const Json first{{"name", "first"}, {"client", true}};
    const Json given{{"tools", {first, hearth::parse_json(tool)}}};
    EXPECT_EQ(failure_of([&] { static_cast<void>(read_assistant_options(given)); }),
              "options.tools[1]" + why)
        << tool;
  }
}

TEST(AssistantOptionsTest, RefusesOtherMistakes) {
  const auto why = [](const Json& given) {
    return failure_of([&] { static_cast<void>(read_assistant_options(given)); });
  };
  EXPECT_EQ(why({{"modle", "m"}}).substr(0, 31), "options.modle: unknown; known a");
  EXPECT_NE(why({{"modle", "m"}}).find("model"), std::string::npos);
  EXPECT_NE(why({{"modle", "m"}}).find(", tools"), std::string::npos);
  EXPECT_EQ(why({{"budget", {{"day", {{"cost", "a lot"}}}}}}),
            "options.budget.day.cost: expected number");
  EXPECT_EQ(why({{"tools", Json::object()}}), "options.tools: expected array");
}

TEST(AssistantOptionsTest, TheAssistantHasItsOwnDefaults) {
  const AssistantOptions options = read_assistant_options(nullptr);
  EXPECT_EQ(options.stall_timeout_ms, 60'000);
  EXPECT_EQ(options.client_history, "append");
  const AssistantOptions given =
      read_assistant_options({{"stall_timeout_ms", 5}, {"client_history", "edit"}});
  EXPECT_EQ(given.stall_timeout_ms, 5);
  EXPECT_EQ(given.client_history, "edit");
}

ToolConfig tool_with(const std::string& where, const Json& options,
                     const std::vector<std::string>& properties) {
  Json tool{{"name", "t"}, {where, options}};
  tool["schema"] = {{"type", "object"}, {"properties", Json::object()}};
  for (const std::string& each : properties) tool["schema"]["properties"][each] = Json::object();
  if (properties.empty()) tool["schema"].erase("properties");
  return read_assistant_options({{"tools", {tool}}}).tools.front();
}

TEST(AssistantOptionsTest, TheMethodGivesAnEffectThatTheFileDoesNot) {
  const auto effect = [](const Json& http) { return tool_with("http", http, {}).effect(); };
  EXPECT_EQ(effect({{"url", "http://h/"}}), Effect::kRead);
  for (const char* const method : {"POST", "PUT", "PATCH", "DELETE"})
    EXPECT_EQ(effect({{"url", "http://h/"}, {"method", method}}), Effect::kUnsafe) << method;
  EXPECT_EQ(effect({{"url", "http://h/"}, {"method", "PUT"}, {"effect", "idempotent"}}),
            Effect::kIdempotent);
  EXPECT_EQ(effect({{"url", "http://h/"}, {"method", "POST"}, {"effect", "keyed"}}),
            Effect::kKeyed);
  EXPECT_EQ(effect({{"url", "http://h/"}, {"effect", "unsafe"}}), Effect::kUnsafe);
  const Json agent{{"class", "shop"}, {"name", "a"}, {"method", "m"}};
  EXPECT_EQ(tool_with("agent", agent, {}).effect(), Effect::kUnsafe);
}

// ---- requests -----------------------------------------------------------------------------------

struct RequestRow {
  const char* method;
  const char* url;
  std::vector<std::string> properties;  // none: the schema lists none
  const char* input;
  const char* sent;  // the URL and the body, or the sentence for the model
};

// clang-format off
const std::vector<RequestRow>& requests() {
  static const std::vector<RequestRow> all{
    // Fields, encoded in their place.
    {"GET", "https://h:1/v1/{a}/x?b={b}", {"a", "b"}, R"({"a":"Bern","b":"C"})", "https://h:1/v1/Bern/x?b=C"},
    {"GET", "http://h/{a}.json", {"a"}, R"({"a":"a b/c?d#e%2F&=é;"})", "http://h/a%20b%2Fc%3Fd%23e%252F%26%3D%C3%A9%3B.json"},
    {"GET", "http://h/?q={a}", {"a"}, R"({"a":"x&admin=1#+ y"})", "http://h/?q=x%26admin%3D1%23%2B%20y"},
    {"GET", "http://h/{a}/{a}", {"a"}, R"({"a":-7})", "http://h/-7/-7"},
    {"GET", "http://h/{a}?b={b}", {"a", "b"}, R"({"a":1.5,"b":true})", "http://h/1.5?b=true"},
    {"GET", "http://h/{a}", {"a"}, R"({"a":"..."})", "http://h/..."},
    {"GET", "http://h/{a}", {"a"}, R"({"a":"//evil.example"})", "http://h/%2F%2Fevil.example"},
    {"GET", "http://h?q={a}", {"a"}, R"({"a":""})", "http://h?q="},

    // Other members: the query ...
    {"GET", "http://h/a", {"b", "c d", "e", "f", "g"}, R"({"b":"x y","c d":2,"e":null,"f":[1,"&",[3]],"g":{"h":1}})", "http://h/a?b=x%20y&c%20d=2&f=1&f=%26&g=%7B%22h%22%3A1%7D"},
    {"DELETE", "http://h/a?x=1", {"b"}, R"({"b":false})", "http://h/a?x=1&b=false"},
    {"GET", "http://h/a", {}, R"({"b":1})", "http://h/a?b=1"},
    // ... or the body.
    {"POST", "http://h/{a}", {"a", "b"}, R"({"a":"x","b":{"c":[null]}})", R"(http://h/x {"b":{"c":[null]}})"},
    {"PUT", "http://h/a?b={b}", {"b"}, R"({"b":"x"})", "http://h/a?b=x {}"},
    {"PATCH", "http://h/a?b=1", {}, R"({"b":2})", R"(http://h/a?b=1 {"b":2})"},

    // A field leads nowhere else.
    {"GET", "http://h/v1/{a}/x", {"a"}, R"({"a":".."})", "input.a: expected a name"},
    {"GET", "http://h/v1/{a}", {"a"}, R"({"a":"."})", "input.a: expected a name"},
    {"GET", "http://h/v1/{a}", {"a"}, R"({"a":"../admin"})", "input.a: expected a name"},
    {"GET", "http://h/v1/{a}", {"a"}, R"({"a":"b\\..\\c"})", "input.a: expected a name"},
    {"GET", "http://h/v1/.{a}", {"a"}, R"({"a":"."})", "input.a: expected a name"},
    {"DELETE", "http://h/v1/{a}", {"a"}, R"({"a":""})", "input.a: expected a name"},
    // Nor is a fixed value of the query overridden.
    {"GET", "http://h/a?tenan%74=1&b={b}", {"b", "tenant"}, R"({"b":1,"tenant":2})", "input.tenant: the tool's URL has a value of this name"},
    {"GET", "http://h/a", {"b"}, R"({"b":1,"c":2})", "input.c: the tool's schema has no such property"},
    {"POST", "http://h/a", {"b"}, R"({"b":1,"c":2})", "input.c: the tool's schema has no such property"},

    {"GET", "http://h/{a}", {"a"}, R"({})", "input.a: missing"},
    {"GET", "http://h/{a}", {"a"}, R"({"a":null})", "input.a: expected a text, a number, true or false"},
    {"GET", "http://h/?a={a}", {"a"}, R"({"a":[1]})", "input.a: expected a text, a number, true or false"},
    {"GET", "http://h/a", {}, R"([])", "input: expected an object"},
  };
  return all;
}
// clang-format on

TEST(AssistantToolsTest, AnHttpToolMakesARequestOfItsInput) {
  for (const RequestRow& row : requests()) {
    const ToolConfig tool = tool_with(
        "http", {{"method", row.method}, {"url", row.url}, {"credential", "key"}}, row.properties);
    std::string sent;
    try {
      const hearth::FetchRequest request = http_request(tool, hearth::parse_json(row.input));
      EXPECT_EQ(request.method, row.method);
      EXPECT_EQ(request.credential, "key");
      sent = request.url;
      if (!request.json.is_null()) sent += " " + hearth::to_text(request.json);
    } catch (const hearth::NotExecuted& error) {
      sent = error.what();
    }
    EXPECT_EQ(sent, row.sent) << row.method << " " << row.url << " " << row.input;
  }
}

struct NameRow {
  const char* name;
  const char* input;
  const char* called;
};

TEST(AssistantToolsTest, AnAgentIsNamedAsInUrls) {
  const std::vector<NameRow> rows{
      {"main", R"({"a":1})", "main"},
      {"user-{a}", R"({"a":"Zoë/7"})", "user-Zo%C3%AB%2F7"},
      {"{a}", R"({"a":".."})", "input.a: expected a name"},
      {"{a}", R"({"a":""})", "input.a: expected a name"},
      {"{a}", R"({})", "input.a: missing"},
      {"{a}", R"({"a":"x","b":1})", "input.b: the tool's schema has no such property"},
  };
  for (const NameRow& row : rows) {
    const ToolConfig tool =
        tool_with("agent", {{"class", "shop"}, {"name", row.name}, {"method", "m"}}, {"a"});
    std::string called;
    try {
      called = agent_name(tool, hearth::parse_json(row.input));
    } catch (const hearth::NotExecuted& error) {
      called = error.what();
    }
    EXPECT_EQ(called, row.called) << row.name << " " << row.input;
  }
}

// ---- answers ------------------------------------------------------------------------------------

TEST(AssistantToolsTest, AStatusSaysWhetherNothingWasDone) {
  struct Row {
    unsigned status;
    bool is_refusal;
    bool is_refusal_with_key;
  };
  for (const Row& row : std::vector<Row>{{302, true, true},
                                         {400, true, true},
                                         {401, true, false},
                                         {404, true, true},
                                         {409, true, false},
                                         {429, true, false},
                                         {500, false, false},
                                         {503, false, false}}) {
    EXPECT_EQ(is_refusal(row.status, Effect::kUnsafe), row.is_refusal) << row.status;
    EXPECT_EQ(is_refusal(row.status, Effect::kKeyed), row.is_refusal_with_key) << row.status;
  }
}

TEST(AssistantToolsTest, AnAnswerIsItsJsonOrItsText) {
  EXPECT_EQ(answer_json(200, R"({"a":[1]})"), Json({{"a", {1}}}));
  EXPECT_EQ(answer_json(200, "Sunny."), "Sunny.");
  EXPECT_EQ(answer_json(200,
                        "a\xff"
                        "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(answer_json(204, ""), Json({{"status", 204}}));
  EXPECT_EQ(answer_json(200, std::string(300, '[')), std::string(300, '['));  // too deep
}

// "é" has two bytes, and the limit is in the middle of one.
TEST(AssistantToolsTest, AnAnswerIsBounded) {
  std::string longer = "x";
  while (longer.size() <= kMaxAnswerBytes) longer += "é";
  const auto text = answer_json(200, longer).get<std::string>();
  EXPECT_EQ(text, longer.substr(0, kMaxAnswerBytes - 1) + "\n[The answer was longer.]");

  EXPECT_EQ(error_sentence(404, ""), "status 404");
  EXPECT_EQ(error_sentence(404, "no such city"), "status 404: no such city");
  const std::string sentence = error_sentence(500, longer);
  EXPECT_EQ(sentence, "status 500: " + longer.substr(0, kMaxErrorBytes - 1));
  EXPECT_EQ(error_sentence(500, std::string(kMaxErrorBytes, '\xff')).size(),
            std::string("status 500: ").size() + kMaxErrorBytes - kMaxErrorBytes % 3);
}

}  // namespace
}  // namespace assistant
