#pragma once
// What an administrator can ask of a server. The interface knows neither files nor libraries:
// server/admin_desk.hpp implements it.

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
  // "current", "on_trial" (new agents get it; not proven yet), "quarantined" (it has a class in
  // quarantine), "draining", "retired" or "pinned"
  std::string state;
  std::string pinned_because;  // empty: it is not pinned
  std::vector<std::string> classes;
};

// A file that is rejected. The version before it may stay in use.
struct RefusedFile {
  std::string file;
  std::string rule;  // "E6"
  std::string reason;
};

// Settings of a class that are not proven yet.
struct UnprovenSettings {
  std::string agent_class;  // as URLs spell it
  std::string state;        // "on_trial" or "taken_back"
  std::string reason;       // why they were taken back
};

struct PluginList {
  std::vector<PluginVersion> versions;  // oldest first
  std::vector<RefusedFile> refused;
  std::vector<std::string> moving =
      {};  // classes whose agents still move to another version, or to other settings
  std::vector<UnprovenSettings> settings = {};
};

// The outcome of a reload for one file.
struct ReloadedFile {
  std::string file;
  // "unchanged", "new_version" or "new_settings" (agents move to it, because of this reload or an
  // earlier change), "refused" or "removed"
  std::string outcome;
  std::string version = {};            // of new_version
  std::uint64_t generation = 0;        // of new_version
  std::string reason = {};             // of refused
  std::string agent_class = {};        // of new_settings
  std::vector<std::string> keys = {};  // of new_settings: those that differ
  std::string note = {};               // a remark; mostly empty
};

struct ClassView {
  std::string name;     // "ChatRoom"
  std::string segment;  // "chat-room"
  std::vector<std::string> aliases = {};
  std::string version;
  std::string library;
  std::string code = {};     // the class of the library whose code it runs
  std::string refusal;       // not empty: why no agent of it is woken
  std::uint64_t agents = 0;  // that exist, in memory or not
  std::uint64_t live = 0;    // in memory
};

struct ClassMethodsView {
  std::string segment;
  std::string methods;  // JSON: runtime::AgentClass::methods()
};

// A class of one version of a library that is not served, because its code crashed the server too
// often.
struct QuarantinedView {
  std::string agent_class;
  std::string sha256;         // of the library
  std::string library;        // its file at the time of the crash
  std::string reason;         // of the last crash: "SIGSEGV", "hung"
  std::string call;           // the call that crashed
  std::int64_t since_ms = 0;  // Unix
};

struct ReleasedClass {
  std::string agent_class;
  std::vector<ReloadedFile>
      files;  // the outcome of the new try of its library; empty: the library is not there
};

// Names one agent. Neither part is checked yet.
struct AgentName {
  std::string agent_class;  // its name in the code ("ChatRoom"), or its spelling in URLs
  std::string name;         // as it stands in URLs
};

struct AgentView {
  std::string name;
  std::optional<std::int64_t>
      created_at_ms;  // Unix time of its first write; absent: it has stored nothing yet
  std::string state;  // "cold", "waking", "live" or "evicting"
  std::size_t connections = 0;
  std::string version;                       // of its code, while it is not cold
  bool working = false;                      // of durable work, which goes on after an interruption
  std::optional<std::int64_t> next_wake_ms;  // Unix time of its next alarm or other durable work
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

// A search in the ledgers of agents. An empty member does not restrict it.
struct OperationQuery {
  std::string agent_class;
  std::string agent;  // as it stands in URLs; needs `agent_class`
  std::string kind;
  // "running", "interrupted", "unknown"; for one agent also "completed" and "not_executed". Empty:
  // the first three.
  std::vector<std::string> states;
  std::optional<std::int64_t> begun_before_ms;  // Unix time
  std::string after;                            // OperationPage::next
  std::size_t limit = 0;
};

struct SkippedAgent {
  AgentName agent;  // the class by its name in the code
  std::string reason;
};

struct OperationPage {
  // JSON objects: "class", "agent", and the members that hearth/ext/operations.h lists for a
  // record, without "args" and "result".
  std::vector<std::string> operations;
  std::vector<SkippedAgent> skipped;  // agents that could not be read now
  std::string next;                   // empty: this is the last page. A page may be empty
};

struct OperationName {
  AgentName agent;
  std::string id;
};

// The outcome that an administrator gives an operation.
struct Resolution {
  bool was_executed = false;
  std::string result;  // JSON, if it was executed; empty: null
  std::string note;
};

// Promises   Each answer is called exactly once, maybe before the member returns.
// Failure    kNotFound: no such class or agent. kUnavailable: too many requests are in progress, or
//            an event loop does not answer. kClosing: the server stops.
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

  // Reads the plugin directories and the class files again; if a class is named, only the file that
  // serves it and its settings. Answers when the files were read and tried. Agents may still be
  // moving to a new version then.
  virtual void reload(std::string agent_class, Answer<std::vector<ReloadedFile>> answer) = 0;

  // In the order of ids. Has every entry that was recorded before the call.
  virtual void audit(storage::AuditQuery query,
                     Answer<std::vector<storage::AuditEntry>> answer) = 0;

  virtual void quarantined(Answer<std::vector<QuarantinedView>> answer) = 0;  // oldest first

  // Serves the class again at once, as if it had never crashed. kNotFound: it is not in quarantine.
  virtual void release(std::string agent_class, Answer<ReleasedClass> answer) = 0;

  virtual void classes(Answer<std::vector<ClassView>> answer) = 0;
  // `agent_class`: as AgentName::agent_class. kNotFound: it is not served now.
  virtual void methods(std::string agent_class, Answer<ClassMethodsView> answer) = 0;
  virtual void agents(AgentPageRequest request, Answer<AgentPage> answer) = 0;
  virtual void agent(AgentName name, Answer<AgentView> answer) = 0;

  // The agent leaves memory when its on_evict has returned; its clients stay connected. Answers
  // with the state that the agent was in. An agent that was cold, or was leaving already, is left
  // alone.
  virtual void evict(AgentName name, Answer<std::string> answer) = 0;

  // Deletes all data of the agent and closes its clients. Both are certain when it answers.
  virtual void destroy(AgentName name, Answer<std::string> answer) = 0;

  // In the order of class, agent and age. This call and the next two run no code of the agent in
  // order to answer. But a cold agent is opened, and an agent that was not told yet of an unknown
  // operation is woken afterwards and told. That happens whenever such an agent is loaded, at most
  // ten times for each operation.
  virtual void operations(OperationQuery query, Answer<OperationPage> answer) = 0;
  // With its arguments and result, as JSON.
  virtual void operation(OperationName name, Answer<std::string> answer) = 0;
  // As the agent's own resolve_operation(); the actor is "administrator". Answers with the record
  // after the change, as JSON. kConflict: the operation is in progress, or is settled.
  virtual void resolve(OperationName name, Resolution how, Answer<std::string> answer) = 0;
};

}  // namespace hearth::api
