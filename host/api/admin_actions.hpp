#pragma once
// What an administrator can ask of a server, as the admin API needs it. It knows neither files nor
// libraries: app does.

#include "base/error.hpp"
#include "storage/audit_store.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hearth::api {

// One loaded version of a library.
struct PluginVersion {
  std::string file;
  std::string plugin;
  std::string version;
  std::string sha256;
  std::uint64_t generation = 0;
  bool current = false;  // new agents get it
  // "current", "on_trial" (new agents get it, and it is not proven yet), "quarantined" (a class of
  // it is), "draining", "retired" or "pinned"
  std::string state;
  std::string pinned_because;  // empty: it is not
  std::vector<std::string> classes;
};

// A file that is not served, or whose content is not: the version before it may go on.
struct RefusedFile {
  std::string file;
  std::string rule;  // "E6"
  std::string reason;
};

// Settings of a class that are not proven.
struct UnprovenSettings {
  std::string agent_class;  // as URLs spell it
  std::string state;        // "on_trial" or "taken_back"
  std::string reason;       // why they were taken back
};

struct PluginList {
  std::vector<PluginVersion> versions;  // oldest first
  std::vector<RefusedFile> refused;
  std::vector<std::string> moving =
      {};  // classes whose agents are on their way to another version, or to other settings
  std::vector<UnprovenSettings> settings = {};
};

// What came of one file when the directories were looked at.
struct ReloadedFile {
  std::string file;
  // "unchanged", "new_version" or "new_settings" (agents are on their way to it, since now or since
  // an earlier change), "refused" or "removed"
  std::string outcome;
  std::string version = {};            // of new_version
  std::uint64_t generation = 0;        // of new_version
  std::string reason = {};             // of refused
  std::string agent_class = {};        // of new_settings
  std::vector<std::string> keys = {};  // of new_settings: what is different
  std::string note = {};               // what else is to be known; mostly empty
};

struct ClassView {
  std::string name;     // "ChatRoom"
  std::string segment;  // "chat-room"
  std::vector<std::string> aliases = {};
  std::string version;
  std::string library;
  std::string refusal;       // not empty: no agent of it is woken, and why
  std::uint64_t agents = 0;  // that exist
  std::uint64_t live = 0;    // in memory
};

struct ClassMethodsView {
  std::string segment;
  std::string methods;  // JSON: runtime::AgentClass::methods()
};

// A class of one version of a library that is not served, because its code has ended the server too
// often.
struct QuarantinedView {
  std::string agent_class;
  std::string sha256;         // of the library
  std::string library;        // its file, when it happened
  std::string reason;         // of the last crash: "SIGSEGV", "hung"
  std::string call;           // in which that was
  std::int64_t since_ms = 0;  // Unix
};

struct ReleasedClass {
  std::string agent_class;
  std::vector<ReloadedFile>
      files;  // what came of its library when it was tried again; empty: it is not there
};

// Names one agent. Nothing of it was checked.
struct AgentName {
  std::string agent_class;  // as it is ("ChatRoom"), or as URLs spell it
  std::string name;         // as it stands in URLs
};

struct AgentView {
  std::string name;
  std::optional<std::int64_t>
      created_at_ms;  // Unix time of its first write; absent: it has stored nothing yet
  std::string state;  // "cold", "waking", "live" or "evicting"
  std::size_t connections = 0;
  std::string version;                       // of its code, while it is not cold
  bool working = false;                      // of durable work, which goes on if it is interrupted
  std::optional<std::int64_t> next_wake_ms;  // Unix time: when it wakes though nobody asks for it
};

struct AgentPageRequest {
  std::string agent_class;
  std::string after;  // names greater than this; "" from the first
  std::size_t limit = 0;
};

struct AgentPage {
  std::string agent_class;
  std::vector<AgentView> agents;  // in byte order of the names
  bool more = false;
};

// What is looked for in the ledgers of agents. What is empty does not restrict.
struct OperationQuery {
  std::string agent_class;
  std::string agent;  // as it stands in URLs; then the class is needed
  std::string kind;
  // "running", "interrupted", "unknown"; of one agent also "completed" and "not_executed". None:
  // the first three.
  std::vector<std::string> states;
  std::optional<std::int64_t> begun_before_ms;  // Unix time
  std::string after;                            // OperationPage::next
  std::size_t limit = 0;
};

struct SkippedAgent {
  AgentName agent;  // the class as it is
  std::string reason;
};

struct OperationPage {
  // JSON objects: "class", "agent", and what hearth/ext/operations.h says of a record, without
  // "args" and "result".
  std::vector<std::string> operations;
  std::vector<SkippedAgent> skipped;  // could not be looked at now
  std::string next;                   // empty: this was the last page. A page may have nothing
};

struct OperationName {
  AgentName agent;
  std::string id;
};

// The outcome that an administrator gives an operation.
struct Resolution {
  bool was_executed = false;
  std::string result;  // JSON, of one that was executed; empty: null
  std::string note;
};

// Promises   Each answer is called exactly once, maybe before the member returns.
// Failure    kNotFound: no such class or agent. kUnavailable: too much is asked at once, or an
//            event loop does not answer. kClosing: the server stops.
// Threads    All members from any thread; answers come on any.
class AdminActions {
 public:
  template <class T>
  using Answer = std::function<void(Result<T>)>;

  AdminActions() = default;
  virtual ~AdminActions() = default;
  AdminActions(const AdminActions&) = delete;
  AdminActions& operator=(const AdminActions&) = delete;

  virtual void plugins(Answer<PluginList> answer) = 0;

  // Looks at the plugin directories and the class files, or, if a class is named, at the file that
  // serves it and at its settings. Answers when the files were read and tried; agents may still be
  // on their way to a new version then.
  virtual void reload(std::string agent_class, Answer<std::vector<ReloadedFile>> answer) = 0;

  // In the order of ids, with what was recorded before the call.
  virtual void audit(storage::AuditQuery query,
                     Answer<std::vector<storage::AuditEntry>> answer) = 0;

  virtual void quarantined(Answer<std::vector<QuarantinedView>> answer) = 0;  // oldest first

  // The class is served again, at once, as if it had never crashed. kNotFound: it is not in
  // quarantine.
  virtual void release(std::string agent_class, Answer<ReleasedClass> answer) = 0;

  virtual void classes(Answer<std::vector<ClassView>> answer) = 0;
  // `agent_class`: as AgentName::agent_class. kNotFound: it is not served now.
  virtual void methods(std::string agent_class, Answer<ClassMethodsView> answer) = 0;
  virtual void agents(AgentPageRequest request, Answer<AgentPage> answer) = 0;
  virtual void agent(AgentName name, Answer<AgentView> answer) = 0;

  // The agent leaves memory as soon as its on_evict has returned; its clients stay. Answers with
  // the state that it was in: one that was cold, or on its way out, is left alone.
  virtual void evict(AgentName name, Answer<std::string> answer) = 0;

  // Nothing of the agent is left, and its clients are closed. That is certain when it answers.
  virtual void destroy(AgentName name, Answer<std::string> answer) = 0;

  // By class, agent and age. These three answer without any agent's code. But a cold agent is
  // opened, and one that has not heard yet that an operation is unknown is woken afterwards and
  // told, as whenever it is loaded (ten times at most for each operation).
  virtual void operations(OperationQuery query, Answer<OperationPage> answer) = 0;
  // With its arguments and result, as JSON.
  virtual void operation(OperationName name, Answer<std::string> answer) = 0;
  // As the agent's own resolve_operation(); the actor is "administrator". The record that it has
  // then, as JSON. kConflict: it runs, or is settled.
  virtual void resolve(OperationName name, Resolution how, Answer<std::string> answer) = 0;
};

}  // namespace hearth::api
