#include "server/work_records.hpp"

#include "extensions/durable_work.hpp"
#include "extensions/fibers.hpp"
#include "extensions/schedule.hpp"
#include "json/json.hpp"
#include "server/chats.hpp"
#include "server/work_places.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::server {
namespace {

using extensions::AgentContext;

// Looked at in one call, whether they are shown or not.
constexpr std::size_t kMostLooks = 1000;
constexpr std::size_t kMostLookedBytes = std::size_t{4} << 20;
constexpr std::size_t kAtOnce = 100;
constexpr std::size_t kMostOperations = 100;  // of a fiber

struct Kind {
  std::string_view word;
  Result<std::string> (*list)(AgentContext&, std::string_view after);
  Result<std::string> (*get)(AgentContext&, std::string_view id);
};
struct Action {
  std::string_view kind;
  std::string_view word;
  Result<void> (*run)(AgentContext&, std::string_view id, const api::WorkChange& change);
};

constexpr std::string_view kTurn = "turn";

std::string reason_of(const api::WorkChange& change) {
  return change.note.empty() ? "an administrator has cancelled it" : change.note;
}

constexpr std::array<Kind, 4> kKinds{
    Kind{"fiber",
         [](AgentContext& agent, std::string_view after) {
           durable::FiberFilter filter;
           filter.after = after;
           filter.limit = kAtOnce;
           return agent.work().fibers().records().list(filter);
         },
         [](AgentContext& agent, std::string_view id) {
           return agent.work().fibers().records().inspect(id, "");
         }},
    Kind{"schedule",
         [](AgentContext& agent, std::string_view after) -> Result<std::string> {
           durable::ScheduleFilter filter;
           filter.after = after;
           filter.limit = kAtOnce;
           filter.by_age = true;  // one that moves in time is in one page
           return agent.work().schedules().list(filter);
         },
         [](AgentContext& agent, std::string_view id) { return agent.work().schedules().get(id); }},
    Kind{"item",
         [](AgentContext& agent, std::string_view after) {
           durable::QueueFilter filter;
           filter.after = after;
           filter.limit = kAtOnce;
           return agent.work().queue().list(filter);
         },
         [](AgentContext& agent, std::string_view id) { return agent.work().queue().get(id); }},
    Kind{kTurn, list_turns, find_turn}};

constexpr std::array<Action, 11> kActions{
    Action{kTurn, "cancel",
           [](AgentContext& agent, std::string_view id, const api::WorkChange& change) {
             return cancel_turn(agent, id, reason_of(change));
           }},
    Action{"fiber", "cancel",
           [](AgentContext& agent, std::string_view id,
              const api::WorkChange& change) -> Result<void> {
             const auto done = extensions::FiberExtension(agent).cancel(id, "", reason_of(change));
             return done ? Result<void>() : done.error();
           }},
    Action{"fiber", "end",
           [](AgentContext& agent, std::string_view id, const api::WorkChange& change) {
             return extensions::FiberExtension(agent).resolve(id, change.outcome,
                                                              durable::Decides::kOperator);
           }},
    Action{"fiber", "revive",
           [](AgentContext& agent, std::string_view id, const api::WorkChange&) {
             return agent.work().fibers().records().retry(id, durable::Decides::kOperator);
           }},
    Action{"schedule", "run",
           [](AgentContext& agent, std::string_view id, const api::WorkChange&) {
             return agent.work().schedules().run_now(id);
           }},
    Action{"schedule", "pause",
           [](AgentContext& agent, std::string_view id, const api::WorkChange&) {
             return agent.work().schedules().pause(id, true);
           }},
    Action{"schedule", "resume",
           [](AgentContext& agent, std::string_view id, const api::WorkChange&) {
             return agent.work().schedules().pause(id, false);
           }},
    Action{"schedule", "revive",
           [](AgentContext& agent, std::string_view id, const api::WorkChange&) {
             return agent.work().schedules().retry(id);
           }},
    Action{"schedule", "cancel",
           [](AgentContext& agent, std::string_view id, const api::WorkChange&) {
             return extensions::cancel_schedule(agent, id);
           }},
    Action{"item", "revive",
           [](AgentContext& agent, std::string_view id, const api::WorkChange&) {
             return agent.work().queue().retry(id);
           }},
    Action{"item", "cancel", [](AgentContext& agent, std::string_view id, const api::WorkChange&) {
             return agent.work().queue().remove(id);
           }}};

const Kind* kind_of(std::string_view word) {
  const auto* const found = std::ranges::find(kKinds, word, &Kind::word);
  return found == kKinds.end() ? nullptr : found;
}

Error no_such_kind() {
  return {Errc::kInvalidArgument, "the kinds of work are fiber, schedule, item and turn"};
}

const Json& member(const Json& record, const char* name, const char* other) {
  static const Json none;
  for (const char* const each : {name, other}) {
    const auto found = record.find(each);
    if (found != record.end() && !found->is_null()) return *found;
  }
  return none;
}

Json state_of_work(const Json& record) {
  if (record.value("dead", false)) return "dead";
  if (record.value("waits_for_code", false)) return "waits_for_code";
  return member(record, "state", "status");
}

Json summary(const Kind& kind, const Json& record) {
  return {{"kind", kind.word},
          {"id", member(record, "id", "id")},
          {"name", member(record, "name", "callback")},
          {"state", state_of_work(record)},
          {"created_at", member(record, "created_at", "created_at")},
          {"next_at", member(record, "next_at", "time")},
          {"error", member(record, "last_error", "error")}};
}

class Page {
 public:
  explicit Page(const api::WorkQuery& query) : query_(query) {}

  // False: the page is full, or enough was looked at.
  [[nodiscard]] Result<bool> add_all(AgentContext& agent, const Kind& kind, std::string after) {
    for (;;) {
      const auto text = kind.list(agent, after);
      if (!text) return text.error();
      bytes_ += text->size();
      const auto records = parse_host_json(*text);
      if (!records) return records.error();
      if (records->empty()) return true;
      for (const Json& record : *records) {
        after = text_member(record, "id");
        last_ = {&kind, after};
        Json shown = summary(kind, record);
        if (query_.state.empty() || shown.at("state") == query_.state)
          work_.push_back(std::move(shown));
        if (work_.size() >= query_.limit || ++looks_ >= kMostLooks) return false;
      }
      if (bytes_ >= kMostLookedBytes) return false;
    }
  }
  [[nodiscard]] std::string text(AgentContext& agent, bool is_last) {
    Json next;
    if (!is_last) {
      const std::string_view kind = last_.first->word;
      next = std::string(kind) + "/" + place_of_work(agent.database(), kind, last_.second);
    }
    return dump_json(Json{{"work", std::move(work_)}, {"next", std::move(next)}});
  }

 private:
  const api::WorkQuery& query_;
  Json work_ = Json::array();
  std::pair<const Kind*, std::string> last_;
  std::size_t looks_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

bool is_kind_of_work(std::string_view word) {
  return kind_of(word) != nullptr;
}

Result<std::string> work_page(AgentContext& agent, const api::WorkQuery& query) {
  if (!query.kind.empty() && !is_kind_of_work(query.kind)) return no_such_kind();
  const std::size_t slash = std::min(query.after.find('/'), query.after.size());
  const std::string first = query.after.substr(0, slash);
  if (!first.empty() && !is_kind_of_work(first))
    return Error{Errc::kInvalidArgument, "`after` is the `next` of a page before"};
  Page page(query);
  bool has_begun = first.empty();
  for (const Kind& kind : kKinds) {
    std::string after;
    if (kind.word == first) {
      has_begun = true;
      after = work_at_place(agent.database(), first,
                            query.after.substr(std::min(slash + 1, query.after.size())));
    }
    if (!has_begun || (!query.kind.empty() && query.kind != kind.word)) continue;
    if (query.kind.empty() && kind.word == kTurn) continue;  // its fiber is in the list
    const auto goes_on = page.add_all(agent, kind, std::move(after));
    if (!goes_on) return goes_on.error();
    if (!*goes_on) return page.text(agent, false);
  }
  return page.text(agent, true);
}

Result<std::string> work_record(AgentContext& agent, std::string_view kind, std::string_view id) {
  const Kind* const its = kind_of(kind);
  if (its == nullptr) return no_such_kind();
  const auto text = its->get(agent, id);
  if (!text) return text.error();
  auto record = parse_host_json(*text);
  if (!record) return record.error();
  Json all = summary(*its, *record);
  all["record"] = *std::move(record);
  if (kind == "fiber") {
    const auto operations = agent.work().operations().records().list(
        {.fiber = id, .keyed_too = true, .limit = kMostOperations, .without_documents = true});
    if (!operations) return operations.error();
    auto list = parse_host_json(*operations);
    if (!list) return list.error();
    all["operations"] = *std::move(list);
  }
  return dump_json(all);
}

Result<std::string> change_work(AgentContext& agent, std::string_view kind, std::string_view id,
                                std::string_view action, const api::WorkChange& change) {
  const auto* const found = std::ranges::find_if(
      kActions, [&](const Action& each) { return each.kind == kind && each.word == action; });
  if (found == kActions.end()) {
    std::string words;
    for (const Action& each : kActions) {
      if (each.kind == kind) words += (words.empty() ? "" : ", ") + std::string(each.word);
    }
    if (words.empty()) return no_such_kind();
    return Error{Errc::kInvalidArgument, "what can be done with this kind of work: " + words};
  }
  if (auto refusal = agent.work_refusal()) return *std::move(refusal);
  const auto before = work_record(agent, kind, id);
  if (!before) return before.error();
  if (const auto done = found->run(agent, id, change); done.has_error()) {
    const Error& why = done.error();
    if (why.code != Errc::kNotFound) return why;
    const auto record = parse_host_json(*before);
    return Error{Errc::kConflict,
                 why.message + "; its state is " + (record ? text_member(*record, "state") : "")};
  }
  auto after = work_record(agent, kind, id);
  if (after || after.error().code != Errc::kNotFound) return after;
  return dump_json({{"kind", kind}, {"id", id}, {"record", nullptr}});
}

}  // namespace hearth::server
