#pragma once
// What /objects asks of a server besides calls. api knows neither files nor the threads of shards:
// the server implements it.

#include "api/object_lookup.hpp"
#include "base/error.hpp"
#include "net/http.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::api {

// Names one object. Only the form of the name was checked.
struct ObjectName {
  std::string agent_class;  // its spelling in URLs, an alias, or its name in the code ("ChatRoom")
  std::string name;         // of the agent (protocol/object_address.hpp)
  // Not empty: only the object with this id, not a later object with the same name.
  std::string uuid = {};
};

struct ObjectView {
  std::string uuid;
  std::string segment;  // of the class
  std::string name;     // of the agent
  bool is_active = false;
  std::int64_t created_at_ms = 0;   // Unix time
  std::int64_t last_active_ms = 0;  // Unix time of its last event, as far as it is known
};

struct ObjectPageRequest {
  std::string agent_class;        // empty: all
  std::optional<bool> is_active;  // none: both
  std::string after;              // ObjectPage::next of the page before; empty: the first
  std::size_t limit = 0;
};

struct ObjectPage {
  std::vector<ObjectView> objects;
  std::string next;  // empty: this is the last page. A page may have fewer than `limit`
};

struct ObjectAlarm {
  std::string method;
  std::string arguments;   // JSON array
  std::int64_t at_ms = 0;  // Unix time
  // The client's address, for the limit on new objects (api/new_agents.hpp); null: no address is
  // limited.
  std::shared_ptr<const net::ClientAddress> setter = {};
  std::string actor = {};  // the client that sets it, as the audit log names clients
};

struct AlarmPageRequest {
  std::string after;  // "next" of the page before; empty: the first
  std::size_t limit = 0;
};

// The client that asks, as the audit log names it.
[[nodiscard]] inline std::string actor_of(const net::HttpExchange& exchange) {
  return "client " + exchange.request().peer;
}

// A request for an object's data runs no code of its class: a cold object is only opened for it
// (runtime/agent_visit.hpp).
//
// Promises   Each answer is called exactly once, maybe before the member returns.
// Failure    kNotFound: no such object, or with the message kNoSuchClass no such class.
//            kUnavailable: too many requests are in progress, an event loop does not answer, or the
//            class is not loaded. kClosing: the server stops.
// Threads    All members from any thread; answers come on any.
class ObjectActions {
 public:
  template <class T>
  using Answer = std::function<void(Result<T>)>;

  ObjectActions() = default;
  virtual ~ObjectActions() = default;
  ObjectActions(const ObjectActions&) = delete;
  ObjectActions& operator=(const ObjectActions&) = delete;

  virtual void list(ObjectPageRequest request, Answer<ObjectPage> answer) = 0;
  virtual void show(ObjectName name, Answer<ObjectView> answer) = 0;
  // By its own id.
  virtual void find(std::string uuid, Answer<ObjectView> answer) = 0;

  // Makes the object: it is listed, and stores what `patch` says (extensions::patch_storage();
  // empty: nothing). A patch that the class rejects makes no object. kConflict: the object exists.
  // `actor`: the client that asks for it, as the audit log names it.
  virtual void create(ObjectName name, std::string patch, std::string actor,
                      Answer<ObjectView> answer) = 0;
  // Deletes all data of the object. That is certain when it answers: later requests reach a new
  // object.
  virtual void remove(ObjectName name, std::string actor, Answer<ObjectView> answer) = 0;
  // Answers when the object has left memory. A call that came meanwhile may have woken it again.
  virtual void hibernate(ObjectName name, std::string actor, Answer<ObjectView> answer) = 0;
  // Answers when all writes of the object are durable.
  virtual void checkpoint(ObjectName name, std::string actor, Answer<ObjectView> answer) = 0;
  // extensions::patch_storage(). kInvalidArgument, kTooLarge, kLimitExceeded.
  virtual void patch_storage(ObjectName name, std::string patch, std::string actor,
                             Answer<std::string> answer) = 0;

  // A page of the object's storage: extensions::storage_page().
  virtual void storage(ObjectName name, std::string after, std::size_t limit,
                       Answer<std::string> answer) = 0;

  // ---- of users. Nothing of it waits for what administrators ask. ----
  // Answers with the record of the alarm, with "replaced". Makes the object if it does not exist.
  // kInvalidArgument; kTooLarge: the arguments; kLimitExceeded: the address has made too many
  // objects, or the object has too many alarms.
  virtual void set_alarm(ObjectAddress object, ObjectAlarm alarm, Answer<std::string> answer) = 0;
  // A page: extensions::alarm_page().
  virtual void alarms(ObjectAddress object, AlarmPageRequest request,
                      Answer<std::string> answer) = 0;
  virtual void cancel_alarm(ObjectAddress object, std::string id, std::string actor,
                            Answer<std::string> answer) = 0;
};

}  // namespace hearth::api
