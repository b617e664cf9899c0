// What administrators send: paths, queries and JSON.
#include "api/admin_api.hpp"
#include "api/fake_actions.hpp"
#include "api/object_alarms.hpp"
#include "api/objects_admin.hpp"
#include "fuzz/targets.hpp"
#include "json/json_scanner.hpp"
#include "support/manual_clock.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace hearth::fuzz {
namespace {

// Answers at once, with nothing.
class NoObjects final : public api::ObjectActions {
 public:
  void list(api::ObjectPageRequest request, Answer<api::ObjectPage> answer) override {
    require(request.limit > 0 && request.limit <= 1000, "a page is bounded");
    answer(api::ObjectPage{});
  }
  void show(api::ObjectName name, Answer<api::ObjectView> answer) override { view(name, answer); }
  void find(std::string /*uuid*/, Answer<api::ObjectView> answer) override {
    answer(api::ObjectView{});
  }
  void create(api::ObjectName name, std::string /*patch*/, std::string actor,
              Answer<api::ObjectView> answer) override {
    act(name, actor, answer);
  }
  void remove(api::ObjectName name, std::string actor, Answer<api::ObjectView> answer) override {
    act(name, actor, answer);
  }
  void hibernate(api::ObjectName name, std::string actor, Answer<api::ObjectView> answer) override {
    act(name, actor, answer);
  }
  void checkpoint(api::ObjectName name, std::string actor,
                  Answer<api::ObjectView> answer) override {
    act(name, actor, answer);
  }
  void storage(api::ObjectName /*name*/, std::string /*after*/, std::size_t limit,
               Answer<std::string> answer) override {
    require(limit > 0 && limit <= 1000, "a page of storage is bounded");
    answer(std::string("{}"));
  }
  void patch_storage(api::ObjectName /*name*/, std::string /*patch*/, std::string actor,
                     Answer<std::string> answer) override {
    require(!actor.empty(), "somebody asks for it");
    answer(std::string("{}"));
  }
  void set_alarm(api::ObjectAddress object, api::ObjectAlarm alarm,
                 Answer<std::string> answer) override {
    require(object.served != nullptr, "an alarm is one of a class");
    require(is_json(alarm.arguments), "arguments are JSON");
    answer(std::string(R"({"fire_at":1})"));
  }
  void alarms(api::ObjectAddress /*object*/, api::AlarmPageRequest request,
              Answer<std::string> answer) override {
    require(request.limit > 0 && request.limit <= 1000, "a page of alarms is bounded");
    answer(std::string(R"({"alarms":[],"next":null})"));
  }
  void cancel_alarm(api::ObjectAddress /*object*/, std::string /*id*/, std::string actor,
                    Answer<std::string> answer) override {
    require(!actor.empty(), "somebody asks for it");
    answer(std::string("null"));
  }

 private:
  static void act(const api::ObjectName& name, const std::string& actor,
                  const Answer<api::ObjectView>& answer) {
    require(!actor.empty(), "somebody asks for it");
    view(name, answer);
  }
  static void view(const api::ObjectName& name, const Answer<api::ObjectView>& answer) {
    require(!name.agent_class.empty() && !name.name.empty(), "an object has a class and a name");
    answer(api::ObjectView{});
  }
};

// A class whose objects are never woken.
class NoCode final : public runtime::AgentClass {
 public:
  [[nodiscard]] std::string_view name() const override { return "Counter"; }
  [[nodiscard]] std::string_view version() const override { return "1.0.0"; }
  [[nodiscard]] std::string_view origin() const override { return "fuzz"; }
  [[nodiscard]] bool checks_state() const override { return false; }
  [[nodiscard]] bool watches_state() const override { return false; }
  Result<std::unique_ptr<runtime::AgentInstance>> create(
      extensions::AgentContext& /*host*/, std::string_view /*options*/,
      std::string_view /*state*/) const override {
    return Error{Errc::kUnsupported, "there is no code"};
  }
  [[nodiscard]] bool runs_jobs() const override { return false; }
  Result<void> run_job(std::uint64_t /*job*/, bool /*cancelled*/,
                       const runtime::JobOrigin& /*origin*/) const override {
    return {};
  }
};

class FuzzedExchange final : public net::HttpExchange {
 public:
  explicit FuzzedExchange(net::HttpRequest request) : request_(std::move(request)) {}
  [[nodiscard]] const net::HttpRequest& request() const override { return request_; }
  void respond(net::HttpResponse response) override {
    require(++answers == 1, "a request is answered once");
    require(response.status >= 200 && response.status < 600, "an answer has a status");
    require(response.body.empty() || is_json(response.body), "an answer is JSON");
  }
  void start(net::HttpResponse response) override { respond(std::move(response)); }
  void write(std::string /*part*/) override {}
  void finish() override {}
  void when_drained(std::function<void()> /*notice*/) override {}
  void read_body(std::size_t /*bytes*/, net::BodyListener /*listener*/) override {}
  void on_abort(std::function<void()> /*notice*/) override {}

  int answers = 0;

 private:
  const net::HttpRequest request_;
};

}  // namespace

// A line with the method and the target, and the body.
void admin_request(std::string_view bytes) {
  const std::size_t line = std::min(bytes.find('\n'), bytes.size());
  const std::size_t blank = std::min(bytes.find(' '), line);
  net::HttpRequest request;
  request.method = bytes.substr(0, blank);
  request.target = bytes.substr(std::min(blank + 1, line), line - std::min(blank + 1, line));
  request.body = bytes.substr(std::min(line + 1, bytes.size()));
  const auto exchange = std::make_shared<FuzzedExchange>(std::move(request));

  const std::unique_ptr<Logger> logger = make_null_logger();
  Metrics metrics;
  hearth::testing::ManualClock clock;
  api::testing::FakeActions actions;
  NoObjects objects;
  runtime::ClassRegistry classes;
  runtime::ServedClass counter{
      .segment = "counter", .agent_class = std::make_shared<NoCode>(), .settings = {}};
  counter.settings.is_object = true;
  classes.add(std::move(counter));
  api::Readiness readiness;
  readiness.set(api::Readiness::Phase::kReady);
  api::AdminApi admin(actions, "a token of sixteen or more", *logger, metrics);
  api::ObjectsAdmin objects_admin(objects, classes, readiness, 256);
  api::ObjectAlarms object_alarms(objects, classes, readiness, clock, 256);
  api::Routes routes;
  admin.add_routes(routes);
  objects_admin.add_routes(routes);
  object_alarms.add_routes(routes);
  const std::string_view target = exchange->request().target;
  const std::string_view path = target.substr(0, target.find('?'));
  auto found = routes.find(exchange->request().method, path);
  if (found.route == nullptr) return;
  const std::string_view query = target.substr(std::min(target.size(), path.size() + 1));
  found.route->answer({exchange, std::move(found.values), query});
  require(exchange->answers == 1, "a request is answered");
}

}  // namespace hearth::fuzz
