#pragma once
// Agent classes in plain C++, each made of one function, and the classes that the tests of this
// layer share.

#include "extensions/host_calls.hpp"
#include "runtime/agent_class.hpp"
#include "runtime/connection.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::api::testing {

using hearth::testing::HostCalls;
using runtime::AgentEvent;
using runtime::EventKind;
using runtime::FrameKind;

// What an agent does about an event. It has no memory of its own, so every shard can run it. An
// event that it accepts and does not complete stays open.
using Behaviour = std::function<Result<void>(HostCalls&, const AgentEvent&)>;

class PlainClass final : public runtime::AgentClass {
 public:
  PlainClass(std::string name, Behaviour behaviour)
      : name_(std::move(name)), behaviour_(std::move(behaviour)) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string_view version() const override { return "1.0.0"; }
  [[nodiscard]] std::string_view origin() const override { return "test"; }
  [[nodiscard]] std::string_view methods() const override { return R"([{"name":"set"}])"; }
  [[nodiscard]] bool checks_state() const override { return true; }
  [[nodiscard]] bool watches_state() const override { return false; }
  Result<std::unique_ptr<runtime::AgentInstance>> create(extensions::AgentContext& host,
                                                         std::string_view,
                                                         std::string_view) const override {
    return std::make_unique<Instance>(behaviour_, host);
  }
  [[nodiscard]] bool runs_jobs() const override { return false; }
  Result<void> run_offloaded(std::uint64_t, bool, const runtime::OffloadOrigin&) const override {
    return {};
  }

 private:
  class Instance final : public runtime::AgentInstance {
   public:
    Instance(const Behaviour& behaviour, extensions::AgentContext& agent)
        : behaviour_(behaviour), host_(agent) {}
    Result<void> on_event(const AgentEvent& event) override { return behaviour_(host_, event); }
    void on_cancel(runtime::CallId) override {}
    void on_result(const runtime::OperationResult&) override {}

   private:
    const Behaviour& behaviour_;  // the class outlives its instances
    HostCalls host_;
  };

  const std::string name_;
  const Behaviour behaviour_;
};

inline Result<void> nothing(HostCalls& host, const AgentEvent& event) {
  if (event.call != 0) return host.complete(event.call, std::string_view());
  return {};
}

inline bool asks(const AgentEvent& event, std::string_view query) {
  return event.name.find(query) != std::string_view::npos;
}

inline Result<void> decide_about_client(HostCalls& host, const AgentEvent& event) {
  if (asks(event, "refuse=1")) return Error{Errc::kForbidden, "not you"};
  if (asks(event, "readonly=1")) {
    return host.set_flags(event.connection, runtime::Connection::kReadonly);
  }
  if (asks(event, "protocol=0")) {
    return host.set_flags(event.connection, runtime::Connection::kNoProtocol);
  }
  return {};
}

inline Result<void> answer_call(HostCalls& host, const AgentEvent& event) {
  if (event.name == "arguments") return host.complete(event.call, event.body);
  if (event.name == "nothing") return host.complete(event.call, std::string_view());
  if (event.name == "null") return host.complete(event.call, std::string_view("null"));
  if (event.name == "set") {
    const auto stored = host.set_state(event.connection, event.body);
    if (stored.has_error()) return stored.error();
    return host.complete(event.call, std::string_view("true"));
  }
  if (event.name == "fail") return Error{Errc::kPlugin, "it said \"no\"\n"};
  if (event.name == "refuse") return Error{Errc::kConflict, "it said \"no\"\n"};
  if (event.name == "stream" || event.name == "stream_fail") {
    for (const std::string_view part : {"1", "\"two\"", "[3]"}) (void)host.emit(event.call, part);
    if (event.name == "stream_fail") return Error{Errc::kConflict, "broken off"};
    return host.complete(event.call, std::string_view("4"));
  }
  if (event.name == "id") {
    const std::string id = '"' + host.find_connection(event.connection)->client_id + '"';
    return host.complete(event.call, std::string_view(id));
  }
  if (event.name == "claims") {
    const auto origin = host.origin(event.call).origin;
    const std::string_view claims = origin == nullptr ? std::string_view() : origin->claims;
    return host.complete(event.call, claims.empty() ? "null" : claims);
  }
  if (event.name == "target") {
    const std::string target = '"' + host.find_connection(event.connection)->target + '"';
    return host.complete(event.call, std::string_view(target));
  }
  if (event.name == "close") {
    (void)host.close(event.connection, 4001, "as you wish");
    return host.complete(event.call, std::string_view());
  }
  return Error{Errc::kNotFound, "Method " + std::string(event.name) + " does not exist"};
}

// Answers by what follows the name in the path.
inline Result<void> answer_request(HostCalls& host, const AgentEvent& event) {
  const auto request = host.request(event.call);
  const std::string_view target = request->target;
  const auto is = [&](std::string_view rest) { return target.ends_with(rest); };
  if (is("/echo")) {
    request->response->headers.emplace_back("X-Method", std::string(event.name));
    return host.complete(event.call, event.body);
  }
  if (is("/teapot")) {
    request->response->status = 418;
    request->response->headers.emplace_back("X-Kind", "pot");
    request->response->headers.emplace_back("service-worker-allowed", "/");
    return host.complete(event.call, std::string_view("short and stout"));
  }
  if (is("/header")) {
    const std::string* const value = runtime::find_header(*request->headers, "x-ask");
    return host.complete(event.call, std::string_view(value == nullptr ? "none" : *value));
  }
  if (is("/claims")) return host.complete(event.call, std::string(request->claims));
  if (is("/target")) return host.complete(event.call, std::string(target));
  if (is("/stream")) {
    request->response->status = 201;
    for (const std::string_view part : {"one ", "two ", "three "})
      (void)host.emit(event.call, part);
    return host.complete(event.call, std::string_view("four"));
  }
  if (is("/stream-fail")) {
    (void)host.emit(event.call, "one ");
    return Error{Errc::kPlugin, "secret of the author"};
  }
  // Completes the event before its last look at the event's body.
  if (is("/early")) {
    const auto done = host.complete(event.call, std::string_view("early"));
    return std::string(event.body) == std::string(100'000, 'b') ? done
                                                                : Error{Errc::kInternal, "freed"};
  }
  if (is("/plugin")) return Error{Errc::kPlugin, "secret of the author"};
  if (is("/invalid")) return Error{Errc::kInvalidArgument, "say it otherwise"};
  if (is("/forbidden")) return Error{Errc::kForbidden, "not for you"};
  if (is("/busy")) return Error{Errc::kUnavailable, "too much to do"};
  return Error{Errc::kUnsupported, "no such page"};
}

// An agent that does one of everything.
inline Result<void> sampler(HostCalls& host, const AgentEvent& event) {
  switch (event.kind) {
    case EventKind::kConnecting: return decide_about_client(host, event);
    case EventKind::kMessage:
      (void)host.send(event.connection, static_cast<FrameKind>(event.flags), event.body);
      return nothing(host, event);
    case EventKind::kCall: return answer_call(host, event);
    case EventKind::kRequest: return answer_request(host, event);
    case EventKind::kStateCheck:
      if (event.body.find("bad") != std::string_view::npos) {
        return Error{Errc::kInvalidArgument, "the author's reason"};
      }
      if (event.body.find("forbidden") != std::string_view::npos) {
        return Error{Errc::kForbidden, "not this one"};
      }
      return {};
    default: return nothing(host, event);
  }
}

// The same, with a state from the start.
inline Result<void> counter(HostCalls& host, const AgentEvent& event) {
  if (event.kind == EventKind::kStart) (void)host.set_default_state(R"({"count":0})");
  return sampler(host, event);
}

// Sends each message of a client to all clients, and tells them when a client leaves.
inline Result<void> room(HostCalls& host, const AgentEvent& event) {
  if (event.kind == EventKind::kMessage) {
    (void)host.broadcast(FrameKind::kText, event.body, {}, {});
  } else if (event.kind == EventKind::kClose) {
    (void)host.broadcast(FrameKind::kText, "left " + std::to_string(event.flags & 0xFFFF), {}, {});
  } else if (event.kind == EventKind::kConnecting) {
    return host.set_flags(event.connection, runtime::Connection::kNoProtocol);
  }
  return nothing(host, event);
}

inline Result<void> broken(HostCalls& host, const AgentEvent& event) {
  if (event.kind == EventKind::kStart) return Error{Errc::kPlugin, "no luck today"};
  return nothing(host, event);
}

}  // namespace hearth::api::testing
