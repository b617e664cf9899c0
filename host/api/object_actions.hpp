#pragma once
// What /objects asks of a server beside calls. api knows neither files nor shards' threads: the
// server implements it.

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

// Names one object. Nothing of it was checked but the form of the name.
struct ObjectName {
  std::string agent_class;  // as URLs spell it, an alias of that, or as it is ("ChatRoom")
  std::string name;         // of the agent (protocol/object_address.hpp)
  // Not empty: only the object with this id of its own, and not another that has got its name.
  std::string uuid = {};
};

struct ObjectView {
  std::string uuid;
  std::string segment;  // of the class
  std::string name;     // of the agent
  bool is_active = false;
  std::int64_t created_at_ms = 0;   // Unix time
  std::int64_t last_active_ms = 0;  // ... of its last event, as far as that is known
};

struct ObjectPageRequest {
  std::string agent_class;        // empty: all
  std::optional<bool> is_active;  // none: both
  std::string after;              // ObjectPage::next of the page before; empty: the first
  std::size_t limit = 0;
};

struct ObjectPage {
  std::vector<ObjectView> objects;
  std::string next;  // empty: there are no more. A page may have fewer than were asked for
};

struct ObjectAlarm {
  std::string method;
  std::string arguments;   // JSON array
  std::int64_t at_ms = 0;  // Unix time
  // The client's address, which may have made too many objects (api/new_agents.hpp); null: no
  // address is limited.
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

// What is asked of an object's data runs no code of its class: a cold object is opened for it
// (runtime/agent_visit.hpp).
//
// Promises   Each answer is called exactly once, maybe before the member returns.
// Failure    kNotFound: no such object, or with the message kNoSuchClass no such class.
//            kUnavailable: too much is asked at once, an event
//            loop does not answer, or the class is not loaded. kClosing: the server stops.
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

  // `actor`: the client that asks for it, as the audit log names it.
  //
  // It is listed, and keeps what the patch says (extensions::patch_storage(); empty: nothing). A
  // patch that its class refuses makes no object. kConflict: it is there already.
  virtual void create(ObjectName name, std::string patch, std::string actor,
                      Answer<ObjectView> answer) = 0;
  // Nothing of it is left. That is certain when it answers: what is asked next is asked of a new
  // object.
  virtual void remove(ObjectName name, std::string actor, Answer<ObjectView> answer) = 0;
  // Answers when it is not in memory any more; a call that comes meanwhile may have woken it again.
  virtual void hibernate(ObjectName name, std::string actor, Answer<ObjectView> answer) = 0;
  // Answers when all that it has written is durable.
  virtual void checkpoint(ObjectName name, std::string actor, Answer<ObjectView> answer) = 0;
  // extensions::patch_storage(). kInvalidArgument, kTooLarge, kLimitExceeded.
  virtual void patch_storage(ObjectName name, std::string patch, std::string actor,
                             Answer<std::string> answer) = 0;

  // A page of what it keeps by key: extensions::storage_page().
  virtual void storage(ObjectName name, std::string after, std::size_t limit,
                       Answer<std::string> answer) = 0;

  // ---- of users. Nothing of it waits for what administrators ask. ----
  // The record of the alarm, with "replaced". Makes the object if need be. kInvalidArgument;
  // kTooLarge: the arguments; kLimitExceeded: the address has made too many objects, or the object
  // has too many alarms.
  virtual void set_alarm(ObjectAddress object, ObjectAlarm alarm, Answer<std::string> answer) = 0;
  // A page: extensions::alarm_page().
  virtual void alarms(ObjectAddress object, AlarmPageRequest request,
                      Answer<std::string> answer) = 0;
  virtual void cancel_alarm(ObjectAddress object, std::string id, std::string actor,
                            Answer<std::string> answer) = 0;
};

}  // namespace hearth::api
