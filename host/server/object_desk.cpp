#include "server/object_desk.hpp"

#include "api/new_agents.hpp"
#include "api/object_answer.hpp"
#include "extensions/alarms.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/kv_storage.hpp"
#include "protocol/class_segment.hpp"
#include "server/shard_questions.hpp"

#include <map>
#include <utility>

namespace hearth::server {
namespace {

using api::ObjectName;
using api::ObjectView;

constexpr std::size_t kMaxWaitingVisitors = 64;
// For one page, with a filter that few objects pass.
constexpr std::size_t kMostLookedAt = 5'000;

Error no_object() {
  return Error{Errc::kNotFound, "there is no such object"};
}
Error no_class() {
  return Error{Errc::kNotFound, std::string(api::kNoSuchClass)};
}
Error no_loop() {
  return Error{Errc::kUnavailable,
               "an event loop does not answer: the code of some agent holds it up"};
}

// The result of a visit, as an answer.
class VisitAnswer final : public runtime::CallSink {
 public:
  explicit VisitAnswer(api::ObjectActions::Answer<std::string> answer)
      : answer_(std::move(answer)) {}
  ~VisitAnswer() override {
    if (answer_) answer_(Error{Errc::kClosing, "the server is shutting down"});
  }
  void part(const runtime::ResponseHead& /*head*/, std::string_view /*body*/) override {}
  void finish(const runtime::ResponseHead& /*head*/,
              const Result<std::string_view>& outcome) override {
    const auto answer = std::exchange(answer_, nullptr);
    if (outcome.has_error()) return answer(outcome.error());
    answer(std::string(*outcome));
  }

 private:
  api::ObjectActions::Answer<std::string> answer_;
};

std::function<Result<std::string>(extensions::AgentContext&)> patch_with(std::string patch) {
  return [patch = std::move(patch)](extensions::AgentContext& agent) -> Result<std::string> {
    if (const auto done = extensions::patch_storage(agent, patch); done.has_error())
      return done.error();
    return std::string();
  };
}

std::string cursor_of(const storage::AgentKey& key) {
  return key.agent_class + '/' + key.name;
}
storage::AgentKey key_of(const std::string& cursor) {
  const std::size_t slash = cursor.find('/');
  if (slash == std::string::npos) return {};
  return {cursor.substr(0, slash), cursor.substr(slash + 1)};
}

}  // namespace

ObjectDesk::ObjectDesk(runtime::Runtime& runtime, const storage::DataDirectory& data,
                       Logger& logger, std::chrono::milliseconds shard_patience)
    : runtime_(runtime),
      data_(data),
      logger_(logger),
      shard_patience_(shard_patience),
      pool_(1, kMaxWaitingVisitors) {}

void ObjectDesk::stop() {
  stopping_ = true;
  pool_.stop();
}

template <class T>
void ObjectDesk::ask(Answer<T> answer, std::function<void(const Answer<T>&)> work) {
  // Shared, because a rejected request must be answered here.
  const auto shared = std::make_shared<Answer<T>>(std::move(answer));
  const bool accepted = pool_.run([this, shared, work = std::move(work)](bool cancelled) {
    if (cancelled) return (*shared)(Error{Errc::kClosing, "the server is shutting down"});
    try {
      work(*shared);
    } catch (const StorageError& failure) {  // agent boundary: the directory of agents failed
      logger_.write(LogLevel::kError, "object.storage_failed",
                    {{"error", std::string_view(failure.what())}});
      (*shared)(Error{Errc::kInternal, "the directory of agents failed; the log says why"});
    }
  });
  if (accepted) return;
  (*shared)(stopping_ ? Error{Errc::kClosing, "the server is shutting down"}
                      : Error{Errc::kUnavailable, "too much is asked at once; try again"});
}

storage::Directory& ObjectDesk::directory() {
  if (!directory_) directory_.emplace(data_.directory_path(), data_.directory_vfs());
  return *directory_;
}

// ---- which object -------------------------------------------------------------------------------

// A class that is served or has agents. Only for administrators: the server does not know which
// clients a class lets in that is not served.
Result<std::pair<std::string, std::string>> ObjectDesk::class_of(const std::string& given) {
  const auto served = runtime_.classes().find_by_any_name(given);
  if (served != nullptr)
    return std::pair(std::string(served->agent_class->name()), served->segment);
  for (std::string& recorded : directory().classes()) {
    std::string segment = protocol::kebab_case(recorded);
    if (recorded == given || segment == given)
      return std::pair(std::move(recorded), std::move(segment));
  }
  return no_class();
}

Result<ObjectDesk::Known> ObjectDesk::existing(const ObjectName& name) {
  auto its_class = class_of(name.agent_class);
  if (!its_class) return its_class.error();
  auto entry = directory().object(storage::AgentKey{its_class->first, name.name});
  if (!entry || (!name.uuid.empty() && entry->uuid != name.uuid)) return no_object();
  return Known{*std::move(entry), std::move(its_class->second)};
}

Result<std::vector<ObjectView>> ObjectDesk::views(
    const std::vector<storage::ObjectEntry>& entries) {
  using Standings = std::vector<runtime::Shard::Standing>;
  std::map<unsigned, std::vector<std::size_t>> places;  // of `entries`, by shard
  for (std::size_t i = 0; i < entries.size(); ++i)
    places[runtime_.shard_index(entries[i].key)].push_back(i);
  Questions<Standings> questions(shard_patience_);
  for (const auto& [shard, here] : places) {
    std::vector<storage::AgentKey> keys;
    for (const std::size_t place : here) keys.push_back(entries[place].key);
    questions.ask(runtime_, shard, [keys = std::move(keys)](runtime::Shard& asked) {
      Standings standings;
      for (const storage::AgentKey& key : keys) standings.push_back(asked.standing(key));
      return standings;
    });
  }
  const auto all = questions.wait();
  if (!all) return no_loop();
  std::vector<std::optional<ObjectView>> found(entries.size());
  auto standings = all->begin();
  for (const auto& [shard, here] : places) {
    for (std::size_t i = 0; i < here.size(); ++i) {
      const storage::ObjectEntry& entry = entries[here[i]];
      const runtime::Shard::Standing& standing = (*standings)[i];
      if (standing.condemned) continue;
      found[here[i]] =
          ObjectView{.uuid = entry.uuid,
                     .segment = protocol::kebab_case(entry.key.agent_class),
                     .name = entry.key.name,
                     .is_active = standing.in_memory,
                     .created_at_ms = entry.created_at_ms,
                     .last_active_ms = standing.last_active_ms.value_or(entry.last_active_ms)};
    }
    ++standings;
  }
  std::vector<ObjectView> made;
  for (auto& each : found) {
    if (each) made.push_back(*std::move(each));
  }
  return made;
}

Result<ObjectView> ObjectDesk::view(const storage::ObjectEntry& entry) {
  auto made = views({entry});
  if (!made) return made.error();
  if (made->empty()) return no_object();
  return std::move(made->front());
}

// ---- what is asked ------------------------------------------------------------------------------

void ObjectDesk::list(api::ObjectPageRequest request, Answer<api::ObjectPage> answer) {
  ask<api::ObjectPage>(std::move(answer), [this, request = std::move(request)](const auto& told) {
    told(page(request));
  });
}

// Moves views that match the request to the page, until the page is full. `views` has the `entries`
// that are not being destroyed. Returns the last entry that was looked at.
std::optional<storage::AgentKey> ObjectDesk::add_wanted(
    const std::vector<storage::ObjectEntry>& entries, std::vector<ObjectView>& views,
    const api::ObjectPageRequest& request, std::vector<ObjectView>& page) {
  std::optional<storage::AgentKey> last;
  auto next = views.begin();
  for (const storage::ObjectEntry& entry : entries) {
    if (page.size() == request.limit) break;
    last = entry.key;
    if (next == views.end() || next->uuid != entry.uuid) continue;
    if (!request.is_active || next->is_active == *request.is_active)
      page.push_back(std::move(*next));
    ++next;
  }
  return last;
}

Result<api::ObjectPage> ObjectDesk::page(const api::ObjectPageRequest& request) {
  std::string name;
  if (!request.agent_class.empty()) {
    auto its_class = class_of(request.agent_class);
    if (!its_class) return its_class.error();
    name = std::move(its_class->first);
  }
  api::ObjectPage page;
  storage::AgentKey after = key_of(request.after);
  for (std::size_t looked_at = 0; looked_at < kMostLookedAt; looked_at += request.limit) {
    const std::size_t wanted = request.limit - page.objects.size();
    // Without a filter every entry counts. With a filter, look at a page of entries at a time.
    const auto entries =
        directory().list_objects(name, after, request.is_active ? request.limit : wanted);
    if (entries.empty()) break;
    auto found = views(entries);
    if (!found) return found.error();
    if (const auto last = add_wanted(entries, *found, request, page.objects)) after = *last;
    page.next = cursor_of(after);
    if (page.objects.size() == request.limit) break;
  }
  if (directory().list_objects(name, after, 1).empty()) page.next.clear();
  return page;
}

void ObjectDesk::show(ObjectName name, Answer<ObjectView> answer) {
  ask<ObjectView>(std::move(answer), [this, name = std::move(name)](const auto& told) {
    const auto known = existing(name);
    if (!known) return told(known.error());
    told(view(known->entry));
  });
}

void ObjectDesk::find(std::string uuid, Answer<ObjectView> answer) {
  ask<ObjectView>(std::move(answer), [this, uuid = std::move(uuid)](const auto& told) {
    const auto entry = directory().object(std::string_view(uuid));
    if (!entry) return told(no_object());
    told(view(*entry));
  });
}

void ObjectDesk::record(const AdminAct& act, const storage::AgentKey& key) {
  if (act.event.empty()) return;
  logger_.record(LogLevel::kInfo, act.event,
                 {{"class", key.agent_class}, {"agent", key.name}, {"actor", act.actor}});
}

void ObjectDesk::create(ObjectName name, std::string patch, std::string actor,
                        Answer<ObjectView> answer) {
  ask<ObjectView>(std::move(answer), [this, name = std::move(name), patch = std::move(patch),
                                      actor = std::move(actor)](const auto& told) {
    auto made = created(name, patch);
    if (!made) return told(made.error());
    record({"admin.object_created", actor}, made->entry.key);
    auto seen = view(made->entry);
    if (!seen || patch.empty()) return told(std::move(seen));
    visit_known(*made, patch_with(patch),
                [told, seen = *std::move(seen)](const Result<std::string>& stored) {
                  if (!stored) return told(stored.error());
                  told(seen);
                });
  });
}

// Checks the patch first: a refused patch makes no object.
Result<ObjectDesk::Known> ObjectDesk::created(const ObjectName& name, const std::string& patch) {
  auto its_class = class_of(name.agent_class);
  if (!its_class) return its_class.error();
  const auto served = runtime_.classes().find(its_class->second);
  if (served == nullptr) return Error{Errc::kUnavailable, "the class is not loaded now"};
  if (!served->settings.is_object) return no_class();
  if (!patch.empty()) {
    if (auto good = extensions::check_first_patch(served->settings.kv, patch); good.has_error())
      return good.error();
  }
  const storage::AgentKey key{its_class->first, name.name};
  const auto is_new =
      ask_one<Result<bool>>(runtime_, runtime_.shard_index(key), shard_patience_,
                            [key](runtime::Shard& shard) { return shard.create_object(key); });
  if (!is_new) return no_loop();
  if (!*is_new) return is_new->error();
  if (!**is_new) return Error{Errc::kConflict, "the object is there already"};
  auto entry = directory().object(key);
  if (!entry) return no_object();
  return Known{*std::move(entry), std::move(its_class->second)};
}

void ObjectDesk::remove(ObjectName name, std::string actor, Answer<ObjectView> answer) {
  ask<ObjectView>(std::move(answer), [this, name = std::move(name),
                                      actor = std::move(actor)](const auto& told) {
    const auto known = existing(name);
    if (!known) return told(known.error());
    auto before = removed(*known);
    if (!before) return told(before.error());
    record({"admin.object_removed", actor}, known->entry.key);
    wait_for_cold(*known, [told, seen = *std::move(before)](const auto&) { told(seen); });
  });
}

void ObjectDesk::wait_for_cold(const Known& known, Answer<std::string> then) {
  visit_known(known, {}, std::move(then));
}

Result<ObjectView> ObjectDesk::removed(const Known& known) {
  auto before = view(known.entry);
  if (!before) return before.error();
  const storage::AgentKey& key = known.entry.key;
  const auto destroyed =
      ask_one<Result<void>>(runtime_, runtime_.shard_index(key), shard_patience_,
                            [key](runtime::Shard& shard) { return shard.destroy(key); });
  if (!destroyed) return no_loop();
  if (!*destroyed) return destroyed->error();
  if (!runtime_.sync_directory()) {
    return Error{Errc::kInternal,
                 "the object is being destroyed, but a loss of power may bring it back: the "
                 "directory of agents could not be synced"};
  }
  return *std::move(before);
}

void ObjectDesk::hibernate(ObjectName name, std::string actor, Answer<ObjectView> answer) {
  ask<ObjectView>(std::move(answer), [this, name = std::move(name),
                                      actor = std::move(actor)](const auto& told) {
    const auto known = existing(name);
    if (!known) return told(known.error());
    auto before = view(known->entry);
    if (!before) return told(before.error());
    const unsigned index = runtime_.shard_index(known->entry.key);
    auto then = [told, seen = *std::move(before)](const Result<std::string>& cold) mutable {
      if (!cold) return told(cold.error());
      seen.is_active = false;
      told(std::move(seen));
    };
    runtime_.loop(index).post(
        [&shard = runtime_.shard(index), key = known->entry.key] { shard.evict(key); });
    record({"admin.object_hibernated", actor}, known->entry.key);
    wait_for_cold(*known, std::move(then));
  });
}

// ---- what is asked of its data ------------------------------------------------------------------

void ObjectDesk::visit_known(const Known& known, Visit work, Answer<std::string> answer) {
  const unsigned index = runtime_.shard_index(known.entry.key);
  runtime_.loop(index).post([&shard = runtime_.shard(index), key = known.entry.key,
                             segment = known.segment, work = std::move(work),
                             sink = std::make_shared<VisitAnswer>(std::move(answer))] {
    shard.visit(key, segment, {.work = work, .sink = sink});
  });
}

void ObjectDesk::visit(ObjectName name, Visit work, Answer<std::string> answer, AdminAct act) {
  ask<std::string>(std::move(answer), [this, name = std::move(name), work = std::move(work),
                                       act = std::move(act)](const auto& told) {
    const auto known = existing(name);
    if (!known) return told(known.error());
    visit_known(*known, work,
                [this, told, act, key = known->entry.key](Result<std::string> outcome) {
                  if (outcome) record(act, key);
                  told(std::move(outcome));
                });
  });
}

void ObjectDesk::storage(ObjectName name, std::string after, std::size_t limit,
                         Answer<std::string> answer) {
  visit(
      std::move(name),
      [after = std::move(after), limit](extensions::AgentContext& agent) {
        return extensions::storage_page(agent, after, limit);
      },
      std::move(answer));
}

// The writes of each call are durable before its answer: a later visit finds them durable.
void ObjectDesk::checkpoint(ObjectName name, std::string actor, Answer<ObjectView> answer) {
  visit(
      name, [](extensions::AgentContext&) -> Result<std::string> { return std::string(); },
      [this, name, answer = std::move(answer)](const Result<std::string>& seen) {
        if (!seen) return answer(seen.error());
        show(name, answer);
      },
      {"admin.object_checkpointed", std::move(actor)});
}

void ObjectDesk::patch_storage(ObjectName name, std::string patch, std::string actor,
                               Answer<std::string> answer) {
  visit(std::move(name), patch_with(std::move(patch)), std::move(answer),
        {"admin.object_patched", std::move(actor)});
}

// ---- what users ask -----------------------------------------------------------------------------

namespace {

Result<void> object_is_there(runtime::Shard& shard, const storage::AgentKey& key) {
  try {
    if (shard.exists(key)) return {};
    return no_object();
  } catch (const StorageError&) {  // agent boundary
    return Error{Errc::kInternal, "the directory of agents cannot be read"};
  }
}

}  // namespace

void ObjectDesk::visit_for_user(api::ObjectAddress object, Gate may_visit, Visit work,
                                Answer<std::string> answer) {
  const unsigned index = runtime_.shard_index(object.key);
  runtime_.loop(index).post([&shard = runtime_.shard(index), object = std::move(object),
                             may_visit = std::move(may_visit), work = std::move(work),
                             sink = std::make_shared<VisitAnswer>(std::move(answer))] {
    if (const auto fine = may_visit(shard, object.key); fine.has_error())
      return sink->finish({}, fine.error());
    shard.visit(object.key, object.served->segment, {.work = work, .sink = sink});
  });
}

// Any client may set alarms: so their audit entries are limited like those of agents.
ObjectDesk::Answer<std::string> ObjectDesk::recorded(std::string_view event,
                                                     const storage::AgentKey& key,
                                                     std::string actor, std::string_view what,
                                                     std::string value,
                                                     Answer<std::string> answer) {
  return [this, event, key, actor = std::move(actor), what, value = std::move(value),
          answer = std::move(answer)](Result<std::string> done) {
    if (done) {
      (void)logger_.record_limited(
          LogLevel::kDebug, event, {key.agent_class},
          {{"class", key.agent_class}, {"agent", key.name}, {"actor", actor}, {what, value}},
          extensions::kAuditLimit);
    }
    answer(std::move(done));
  };
}

void ObjectDesk::set_alarm(api::ObjectAddress object, api::ObjectAlarm alarm,
                           Answer<std::string> answer) {
  auto request = extensions::checked_alarm(alarm.method, alarm.arguments, alarm.at_ms,
                                           object.served->settings.sql.max_value_bytes);
  if (!request) return answer(request.error());
  answer = recorded("alarm.set", object.key, std::move(alarm.actor), "method", request->method,
                    std::move(answer));
  const auto make_it = [setter = std::move(alarm.setter)](
                           runtime::Shard& shard, const storage::AgentKey& key) -> Result<void> {
    if (api::makes_too_many(shard, setter.get(), key))
      return Error{Errc::kLimitExceeded, net::too_many_reason(api::kNewAgents)};
    if (const auto made = shard.create_object(key); !made) return made.error();
    return {};
  };
  visit_for_user(
      std::move(object), make_it,
      [request = *std::move(request)](extensions::AgentContext& agent) {
        return extensions::set_alarm(agent, request);
      },
      std::move(answer));
}

void ObjectDesk::alarms(api::ObjectAddress object, api::AlarmPageRequest request,
                        Answer<std::string> answer) {
  visit_for_user(
      std::move(object), object_is_there,
      [request = std::move(request)](extensions::AgentContext& agent) {
        return extensions::alarm_page(agent, request.after, request.limit);
      },
      std::move(answer));
}

void ObjectDesk::cancel_alarm(api::ObjectAddress object, std::string id, std::string actor,
                              Answer<std::string> answer) {
  answer = recorded("alarm.removed", object.key, std::move(actor), "alarm", id, std::move(answer));
  visit_for_user(
      std::move(object), object_is_there,
      [id = std::move(id)](extensions::AgentContext& agent) -> Result<std::string> {
        if (const auto done = agent.work().alarms().remove(id); done.has_error())
          return done.error();
        return std::string();
      },
      std::move(answer));
}

}  // namespace hearth::server
