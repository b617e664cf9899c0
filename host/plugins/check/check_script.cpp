#include "plugins/check/check_script.hpp"

#include "base/files.hpp"
#include "plugins/admission/file_rules.hpp"

#include <hearth/ext/fibers.h>
#include <hearth/ext/http.h>
#include <hearth/ext/operations.h>
#include <hearth/ext/queue.h>
#include <hearth/ext/schedule.h>
#include <hearth/ext/subagents.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace hearth::plugins {
namespace {

constexpr std::uint64_t kClient = 1;
constexpr std::size_t kMaxNames = 1000;

constexpr const char* kScheduleRun =
    R"({"id":"check-1","type":"delay","payload":{"a":[1,"x",null]},"scheduled_for":1700000000000,)"
    R"("late_ms":0,"attempt":1,"missed":0})";
constexpr const char* kQueueRun =
    R"({"id":"check-2","payload":[1,2,3],"created_at":1700000000000,"attempt":1})";
constexpr const char* kRecovered =
    R"({"id":"00000000-0000-4000-8000-000000000001","snapshot":{"step":1},)"
    R"("created_at":1700000000000,"attempt":1})";
constexpr const char* kInterrupted =
    R"([{"id":"00000000-0000-4000-8000-000000000001","name":"check","created_at":1700000000000,"attempt":1}])";
constexpr const char* kSettledRecord =
    R"({"id":"check-3","name":"check","status":"completed","key":null,"input":null,"metadata":null,)"
    R"("snapshot":null,"result":{"a":1},"error":null,"dead":false,"created_at":1700000000000,)"
    R"("started_at":1700000000001,"completed_at":1700000000002,"attempts":0,"failures":0,)"
    R"("max_retries":0,"next_at":null})";

constexpr const char* kUnknownOperation =
    R"({"id":"1c0d6e0f6f0c4f2e9d8b7a695847362514f3e2d1c0bfae9d8c7b6a5948372615","kind":"check",)"
    R"("effect":"unsafe","state":"unknown","key":null,"scope":"check-3","args":{"a":1},)"
    R"("result":null,"cost":0,"attempts":1,"started_at":1700000000000,"horizon_at":null,)"
    R"("settled_at":null,"settled_by":null,"note":"its run was cut off"})";

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_name_part(char c) {
  return is_name_start(c) || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

// Names of libraries, sections and the ABI are in every file.
bool is_foreign_name(std::string_view name) {
  return name.starts_with("_Z") || name.starts_with("__") || name.starts_with("hearth.") ||
         name.starts_with("hearth_") || name.starts_with("lib") || name.starts_with("GLIBC") ||
         name.starts_with("CXXABI") || name.starts_with("GCC") || name.ends_with(".c") ||
         name.ends_with(".cpp") || name.ends_with(".hpp");
}

}  // namespace

std::vector<CheckEvent> life_events(const hearth_class& table,
                                    std::span<const std::string> methods) {
  std::vector<CheckEvent> events = {
      {.kind = HEARTH_EVENT_START},
      {.kind = HEARTH_EVENT_CONNECTING, .name = "/agents/check/it?x=1", .connection = kClient},
      {.kind = HEARTH_EVENT_CONNECT, .name = "/agents/check/it?x=1", .connection = kClient},
      {.kind = HEARTH_EVENT_MESSAGE, .body = "hello", .connection = kClient},
      {.kind = HEARTH_EVENT_MESSAGE,
       .body = R"({"type":"check","n":1,"list":[1,2,3]})",
       .connection = kClient},
      {.kind = HEARTH_EVENT_MESSAGE,
       .body = std::string("\x00\xff\xfe\x80", 4),
       .flags = HEARTH_MESSAGE_BINARY,
       .connection = kClient},
      {.kind = HEARTH_EVENT_MESSAGE, .connection = kClient},
      {.kind = HEARTH_EVENT_CALL,
       .name = std::string(kNoSuchMethod),
       .body = "[]",
       .connection = kClient}};
  for (const std::string& method : methods) {
    for (const char* const arguments : {"[]", R"(["a"])", "[1,2]"})
      events.push_back(
          {.kind = HEARTH_EVENT_CALL, .name = method, .body = arguments, .connection = kClient});
  }
  events.push_back({.kind = HEARTH_EVENT_REQUEST, .name = "GET"});
  events.push_back({.kind = HEARTH_EVENT_REQUEST, .name = "POST", .body = R"({"a":1})"});
  if ((table.flags & HEARTH_CLASS_READS_BODIES) != 0) {
    for (const char* const body : {R"({"a":1})", R"({"cut off)"}) {
      events.push_back({.kind = HEARTH_EVENT_REQUEST,
                        .name = "POST",
                        .body = body,
                        .flags = HEARTH_REQUEST_UNREAD_BODY});
    }
  }
  events.push_back({.kind = HEARTH_EVENT_SUB_AGENT, .name = "Check", .body = "a/sub-agent"});
  if ((table.flags & HEARTH_CLASS_CHECKS_STATE) != 0) {
    events.push_back(
        {.kind = HEARTH_EVENT_STATE_CHECK, .body = R"({"a":1})", .connection = kClient});
  }
  if ((table.flags & HEARTH_CLASS_WATCHES_STATE) != 0) {
    events.push_back(
        {.kind = HEARTH_EVENT_STATE_CHANGED, .body = R"({"a":1})", .connection = kClient});
  }
  const std::vector<CheckEvent> rest = {
      {.kind = HEARTH_EVENT_SCHEDULE, .name = "hearth-check", .body = kScheduleRun},
      {.kind = HEARTH_EVENT_QUEUE_ITEM, .name = "hearth-check", .body = kQueueRun},
      {.kind = HEARTH_EVENT_FIBERS_RECOVERED, .body = kInterrupted},
      {.kind = HEARTH_EVENT_FIBER_RECOVERED, .name = "hearth-check", .body = kRecovered},
      {.kind = HEARTH_EVENT_FIBER_SETTLED, .name = "hearth-check", .body = kSettledRecord},
      {.kind = HEARTH_EVENT_OPERATION_UNKNOWN, .name = "hearth-check", .body = kUnknownOperation},
      {.kind = HEARTH_EVENT_CLOSE,
       .name = "it left",
       .flags = 1000U | HEARTH_CLOSE_WAS_CLEAN,
       .connection = kClient},
      {.kind = HEARTH_EVENT_EVICT, .flags = HEARTH_EVICT_CODE_UPDATE, .deadline_ms = 1000}};
  events.insert(events.end(), rest.begin(), rest.end());
  return events;
}

hearth_status play(CheckSubject& subject, const hearth_class& table, const std::string& name,
                   const Script& script, const AfterEach& after_each) {
  CheckInstance instance(subject, table, name);
  const hearth_status made = instance.create();
  if (made != HEARTH_OK) return made;
  for (const CheckEvent& event : life_events(table, script.methods)) {
    if (event.kind == HEARTH_EVENT_CONNECTING) {
      instance.agent().add_connection(event.connection).deciding = true;
    } else if (extensions::Client* const client =
                   instance.agent().clients().find(event.connection)) {
      client->deciding = false;
      if (client->state == extensions::ConnectionState::kWaiting)
        client->state = extensions::ConnectionState::kConnecting;
      if (event.kind == HEARTH_EVENT_MESSAGE) client->state = extensions::ConnectionState::kOpen;
      if (event.kind == HEARTH_EVENT_CLOSE) client->state = extensions::ConnectionState::kClosed;
    }
    const Delivered delivered = script.pumps ? instance.go_through(event) : instance.deliver(event);
    if (after_each && !after_each(instance, event, delivered)) break;
  }
  return made;
}

std::vector<std::string> find_names(std::span<const std::byte> bytes, std::size_t limit) {
  constexpr std::size_t kShortest = 2;
  constexpr std::size_t kLongest = 41;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::string> names;
  std::set<std::string_view> seen;
  for (std::size_t at = 0; at < text.size() && names.size() < limit;) {
    const std::size_t end = text.find('\0', at);
    if (end == std::string_view::npos) break;
    const std::string_view name = text.substr(at, end - at);
    at = end + 1;
    if (name.size() < kShortest || name.size() > kLongest || !is_name_start(name.front())) continue;
    if (!std::ranges::all_of(name, is_name_part) || is_foreign_name(name)) continue;
    if (seen.insert(name).second) names.emplace_back(name);
  }
  return names;
}

std::vector<std::string> find_methods(CheckSubject& subject, const hearth_class& table) {
  const CheckSetting& setting = subject.run().setting;
  if (!setting.may_call) return {};
  if (!setting.methods.empty()) return setting.methods;
  const auto bytes = read_file(setting.library, kMaxLibraryBytes);
  if (!bytes) throw StorageError("read the library for its methods: " + bytes.error().message);
  std::vector<std::string> methods;
  std::optional<CheckInstance> instance;
  for (const std::string& name : find_names(std::as_bytes(std::span(*bytes)), kMaxNames)) {
    if (methods.size() >= kMaxMethods || subject.run().is_late()) break;
    if (!instance) {
      instance.emplace(subject, table, "methods");
      if (instance->create() != HEARTH_OK) break;
      instance->go_through({.kind = HEARTH_EVENT_START});
    }
    const Delivered called =
        instance->go_through({.kind = HEARTH_EVENT_CALL, .name = name, .body = "[]"});
    const CheckCall& call = instance->agent().open_calls()[called.call];
    const bool missing = !call.ok && call.code == Errc::kNotFound;
    if (missing || called.status == HEARTH_E_UNSUPPORTED) continue;
    methods.push_back(name);
    instance.reset();  // the effects of one method must not hide the next method
  }
  return methods;
}

}  // namespace hearth::plugins
