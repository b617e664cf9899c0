#include "testhost/test_agent.hpp"

#include "base/close_codes.hpp"
#include "durable/jobs.hpp"
#include "extensions/call_rules.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/keep_alive.hpp"
#include "extensions/state.hpp"
#include "storage/agent_database.hpp"
#include "testhost/body_upload.hpp"
#include "testhost/questions.hpp"
#include "testhost/test_class.hpp"
#include "testhost/test_host.hpp"

#include <exception>
#include <stdexcept>
#include <utility>

namespace hearth::testhost {
namespace {

extensions::OriginPtr origin_with(std::string claims) {
  auto origin = std::make_shared<extensions::Origin>();
  origin->claims = std::move(claims);
  return origin;
}

std::uint64_t next_number() {
  static std::uint64_t last = 0;  // unique in the process, as a socket's is
  return ++last;
}

}  // namespace

std::string segment_of(std::string_view agent_class) {
  std::string segment;
  for (const char c : agent_class) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper && !segment.empty()) segment += '-';
    segment += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return segment;
}

TestAgent::TestAgent(TestHost& host, storage::AgentKey key)
    : host_(host),
      key_(std::move(key)),
      segment_(segment_of(key_.agent_class)),
      target_("/agents/agent-under-test/" + key_.root().name +
              (key_.is_sub_agent() ? "/sub/agent-under-test/" + key_.own_name() : "")) {}

// ---- life ---------------------------------------------------------------------------------------

void TestAgent::came(TestInstance& instance) {
  instance_ = &instance;
  failed_start_.clear();
  ++activations_;
}

void TestAgent::left(const TestInstance& instance) {
  if (instance_ != &instance) return;
  instance_ = nullptr;
  is_touched_ = false;
}

void TestAgent::note_failed_start(std::string why) {
  failed_start_ = std::move(why);
  --activations_;
}

void* TestAgent::instance() const {
  if (instance_ == nullptr) return nullptr;
  is_touched_ = true;
  return instance_->object();
}

runtime::LiveAgent* TestAgent::live() const {
  return instance_ == nullptr ? nullptr : host_.find_live(instance_->host().handle());
}

void TestAgent::end_turn() {
  if (!is_touched_ || live() == nullptr) return;
  host_.shard().admin().visit(
      key_, segment_,
      {.work = [](extensions::AgentContext&) { return Result<std::string>(""); },
       .sink = std::make_shared<OutcomeSink>(nullptr)});
}

void TestAgent::wake() {
  failed_start_.clear();
  host_.shard().admin().wake(key_, segment_);
  host_.settle();
  if (!failed_start_.empty()) throw std::runtime_error(failed_start_);
}

void TestAgent::evict(std::uint32_t reason, std::uint64_t grace_ns) {
  using std::chrono::ceil;
  const auto why =
      reason == 0 ? runtime::EvictReason::kAdmin : static_cast<runtime::EvictReason>(reason);
  host_.settle();
  if (grace_ns > 0 && instance_ != nullptr) {
    const std::chrono::nanoseconds grace(grace_ns);
    const TestInstance* const leaving = instance_;
    host_.shard().admin().evict(key_, why, ceil<std::chrono::milliseconds>(grace));
    host_.settle();
    if (instance_ == leaving) host_.advance_by(grace);
    if (instance_ != leaving) return;
  }
  host_.shard().admin().evict(key_, why, std::chrono::milliseconds(0));
  host_.settle();
}

void TestAgent::kill() {
  host_.kill();
}

void TestAgent::become(const hearth_class& definition) {
  host_.serve(key_.agent_class, definition);
}

void TestAgent::set_serial(bool serial) {
  host_.set_serial(key_.agent_class, serial);
}

// ---- events -------------------------------------------------------------------------------------

std::shared_ptr<const CallRecord> TestAgent::call(std::uint64_t client, std::string_view method,
                                                  std::string_view arguments, std::string claims) {
  auto record = std::make_shared<CallRecord>();
  const auto caller = client_of(client);
  auto sink = std::make_unique<RecordSink>(record, caller, host_.process());
  if (caller != nullptr) {
    host_.shard().call(caller->id, method, arguments, std::move(sink));
  } else if (client == 0) {
    host_.shard().call({.key = key_,
                        .segment = segment_,
                        .method = std::string(method),
                        .arguments = std::string(arguments),
                        .origin = origin_with(std::move(claims))},
                       std::move(sink));
  }
  host_.settle();
  return record;
}

void TestAgent::cancel(const CallRecord& call) {
  runtime::LiveAgent* const agent = live();
  if (!call.done && agent != nullptr) agent->abandon(call.id, Error{Errc::kCancelled, "cancelled"});
  host_.settle();
}

std::unique_ptr<runtime::RequestHead> TestAgent::head(std::string_view path,
                                                      testing::Headers headers,
                                                      std::string claims) const {
  auto made = std::make_unique<runtime::RequestHead>();
  made->target = target_ + std::string(path);
  made->headers = std::move(headers);
  made->claims = std::move(claims);
  return made;
}

std::shared_ptr<const CallRecord> TestAgent::request(std::string_view method, std::string_view path,
                                                     std::string_view body,
                                                     testing::Headers headers, std::string claims) {
  auto record = std::make_shared<CallRecord>();
  host_.shard().request(key_, segment_, method, body,
                        head(path, std::move(headers), std::move(claims)),
                        std::make_unique<RecordSink>(record, nullptr, host_.process()));
  host_.settle();
  return record;
}

std::shared_ptr<testing::detail::Upload> TestAgent::upload(std::string_view method,
                                                           std::string_view path,
                                                           testing::Headers headers,
                                                           std::string claims) {
  if (!host_.reads_bodies(key_.agent_class))
    throw std::logic_error("the class has no kReadsBodies: its requests have whole bodies");
  auto upload = std::make_shared<BodyUpload>(host_);
  auto its_head = head(path, std::move(headers), std::move(claims));
  its_head->body = upload->reader();
  host_.shard().request(key_, segment_, method, {}, std::move(its_head),
                        std::make_unique<RecordSink>(upload->call(), nullptr, host_.process()));
  host_.settle();
  return upload;
}

testing::detail::MockAgent& TestAgent::below(const hearth_class& definition,
                                             std::string agent_class, std::string_view name,
                                             std::string options) {
  if (!storage::is_sub_agent_name(name) || key_.depth() >= storage::AgentKey::kMaxDepth)
    throw std::runtime_error("no agent below this one can be called \"" + std::string(name) + "\"");
  return host_.agent_of(definition, key_.child(agent_class, name), std::move(options));
}

std::shared_ptr<const CallRecord> TestAgent::ask_for_sub_agent(std::string_view agent_class,
                                                               std::string_view name,
                                                               std::string_view query,
                                                               testing::Headers headers) {
  auto record = std::make_shared<CallRecord>();
  const std::string path = "/sub/" + std::string(agent_class) + "/" + std::string(name) +
                           (query.empty() ? "" : "?" + std::string(query));
  host_.shard().ask_for_sub_agent(key_, segment_, key_.child(agent_class, name),
                                  head(path, std::move(headers), {}),
                                  std::make_unique<RecordSink>(record, nullptr, host_.process()));
  host_.settle();
  return record;
}

// ---- clients ------------------------------------------------------------------------------------

std::shared_ptr<TestClient> TestAgent::client_of(std::uint64_t number) const {
  const auto found = clients_.find(number);
  return found == clients_.end() || !found->second->seen->open ? nullptr : found->second;
}

std::shared_ptr<ClientRecord> TestAgent::connect(std::string_view query, std::string id,
                                                 testing::Headers headers, std::string claims) {
  auto client = std::make_shared<TestClient>();
  client->seen = std::make_shared<ClientRecord>();
  client->seen->number = next_number();
  client->seen->id = id.empty() ? "client-" + std::to_string(client->seen->number) : std::move(id);
  client->closed = [this, its = std::weak_ptr(client)](std::uint16_t code, const std::string& why) {
    host_.loop().post([this, its, code, why] {
      if (const auto there = its.lock()) host_.shard().disconnected(there->id, code, why, true);
    });
  };
  clients_[client->seen->number] = client;
  client->id =
      host_.shard().connect(key_, segment_,
                            {.id = client->seen->id,
                             .target = target_ + (query.empty() ? "" : "?") + std::string(query),
                             .headers = std::move(headers),
                             .claims = std::move(claims)},
                            std::make_unique<TestPort>(client));
  host_.settle();
  return client->seen;
}

void TestAgent::receive(const ClientRecord& from, std::string_view frame, bool binary) {
  if (const auto client = client_of(from.number))
    host_.shard().message(client->id, frame,
                          binary ? runtime::FrameKind::kBinary : runtime::FrameKind::kText);
  host_.settle();
}

void TestAgent::set_state(ClientRecord& seen, std::string_view json) {
  const auto client = client_of(seen.number);
  if (client == nullptr) return;
  seen.state = json;
  host_.shard().write_state(
      client->id, json,
      std::make_unique<OutcomeSink>([client](const Result<std::string_view>& outcome) {
        if (!outcome.has_error()) return;
        const bool is_readonly = (client->seen->flags & extensions::Client::kReadonly) != 0;
        client->seen->errors.emplace_back(is_readonly ? "Connection is readonly"
                                                      : "State update rejected");
      }));
  host_.settle();
}

void TestAgent::hold(ClientRecord& seen, bool hold) {
  if (const auto client = client_of(seen.number)) client->hold(hold);
  host_.settle();
}

void TestAgent::leave(ClientRecord& seen, unsigned code, std::string reason, bool clean) {
  const auto client = client_of(seen.number);
  if (client == nullptr) return;
  client->end(code, reason, clean);
  host_.shard().disconnected(client->id, static_cast<std::uint16_t>(code), reason, clean);
  host_.settle();
}

void TestAgent::show_clients() {
  runtime::LiveAgent* const agent = live();
  if (agent == nullptr) return;
  for (const auto& [number, client] : clients_) {
    const extensions::Client* const known = agent->context().clients().find(client->id);
    if (known == nullptr) continue;
    client->seen->flags = known->flags;
    client->seen->tags = known->tags;
    client->seen->tags.insert(client->seen->tags.begin(), known->client_id);
  }
}

void TestAgent::lose_clients() {
  for (const auto& [number, client] : clients_) {
    if (client->seen->open) client->end(kCloseAbnormal, {}, false);
  }
  clients_.clear();
}

// ---- questions ----------------------------------------------------------------------------------

void TestAgent::visit(const Visitor& visitor) {
  end_turn();
  std::exception_ptr thrown;
  Result<void> outcome = Error{Errc::kUnavailable, "the agent starts or leaves"};
  host_.shard().admin().visit(
      key_, segment_,
      {.work =
           [&](extensions::AgentContext& agent) {
             try {
               visitor(agent);
             } catch (...) {  // it belongs to the test
               thrown = std::current_exception();
             }
             return Result<std::string>("");
           },
       .sink = std::make_shared<OutcomeSink>([&](const Result<std::string_view>& result) {
         outcome = result.has_error() ? Result<void>(result.error()) : Result<void>();
       })});
  host_.settle();
  if (thrown) std::rethrow_exception(thrown);
  if (outcome.has_error()) throw std::runtime_error(outcome.error().message);
}

std::optional<std::string> TestAgent::state() {
  std::optional<std::string> json;
  const auto read = [&](extensions::AgentContext& agent) {
    if (const auto shown = agent.of<extensions::StateExtension>().get()) json.emplace(*shown);
  };
  if (runtime::LiveAgent* const agent = live()) {
    read(agent->context());
  } else {
    visit(read);
  }
  return json;
}

std::size_t TestAgent::keep_alive() const {
  runtime::LiveAgent* const agent = live();
  if (agent == nullptr) return 0;
  const auto* const part = agent->context().extensions().find<extensions::KeepAliveExtension>();
  return part == nullptr ? 0 : part->held();
}

std::uint32_t TestAgent::schema_version() {
  std::uint32_t version = 0;
  visit([&](auto& agent) { version = agent.database().class_schema(); });
  return version;
}

std::size_t TestAgent::unfinished() const {
  runtime::LiveAgent* const agent = live();
  return agent == nullptr ? 0 : agent->calls().size();
}

std::size_t TestAgent::clients() const {
  return host_.shard().admin().standing(key_).connections;
}

std::string TestAgent::query(const std::string& sql) {
  std::string rows;
  visit([&](extensions::AgentContext& agent) { rows = rows_of(agent, sql); });
  return rows;
}

std::vector<testing::FiberRecord> TestAgent::fibers() {
  std::vector<testing::FiberRecord> all;
  const bool is_live = live() != nullptr;
  visit([&](extensions::AgentContext& agent) { all = fibers_of(agent, is_live); });
  return all;
}

std::string TestAgent::fiber_records() {
  std::string all;
  visit([&](extensions::AgentContext& agent) { all = fiber_records_of(agent); });
  return all;
}

std::string TestAgent::schedules() {
  std::string all;
  visit([&](extensions::AgentContext& agent) { all = schedules_of(agent); });
  return all;
}

std::string TestAgent::queue() {
  std::string all;
  visit([&](extensions::AgentContext& agent) { all = queue_of(agent); });
  return all;
}

std::optional<std::int64_t> TestAgent::due_of(std::string_view schedule) {
  std::optional<std::int64_t> due;
  visit([&](extensions::AgentContext& agent) { due = due_in(agent, schedule); });
  return due;
}

}  // namespace hearth::testhost
