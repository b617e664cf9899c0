// The agents of the first document about fibers, in C++ and nearly line by line.
// Plugin "seed-agents".
//
//   ResearchAgent   a lambda that stashes what it has completed, and a hook that goes on with it.
//                   startResearch(topic); steps() -> what was done, in order; fibers() -> how many
//                   there are
//   MyAgent         a named function with a payload: doResearch. startResearch({topic}) -> the
//                   fiber's id; turns(id); the state has the result at the end: result()
//
//   options         step_ms: how long a step or a turn takes

#include <hearth/agent.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

struct Pace {
  int step_ms = 50;
  HEARTH_FIELDS(step_ms)
};

class ResearchAgent : public hearth::Agent {
 public:
  using Options = Pace;
  explicit ResearchAgent(Options options) : options_(options) {
    sql("CREATE TABLE IF NOT EXISTS done (step TEXT)");
  }

  static void methods(hearth::Methods<ResearchAgent>& m) {
    m.add("startResearch", &ResearchAgent::start_research);
    m.add("steps", &ResearchAgent::steps);
    m.add("fibers", &ResearchAgent::fibers);
  }

  struct Snapshot {
    std::string topic;
    std::vector<std::string> completed_steps;
    HEARTH_FIELDS(topic, completed_steps)
  };

  hearth::Task<void> on_fiber_recovered(const hearth::RecoveredFiber& ctx) override {
    if (ctx.name != "research") return {};
    const auto snapshot = hearth::read_json<std::optional<Snapshot>>(ctx.snapshot, "snapshot");
    if (snapshot) {
      // Resume from checkpoint
      do_research(snapshot->topic, snapshot->completed_steps);
    } else {
      // There a hook that does nothing ends the fiber; here such a fiber waits for other code
      settle_fiber(ctx, hearth::FiberOutcome::interrupted());
    }
    return {};
  }

  void start_research(const std::string& topic) { do_research(topic, {}); }

  std::vector<std::string> steps() {
    return sql("SELECT step FROM done ORDER BY rowid").rows<std::string>();
  }
  std::size_t fibers() { return list_fibers().size(); }

 private:
  void do_research(const std::string& topic, const std::vector<std::string>& before) {
    start_fiber("research", [this, topic, before](hearth::FiberContext& ctx) -> hearth::Task<void> {
      const std::vector<std::string> steps = {"search", "analyze", "synthesize"};
      std::vector<std::string> completed = before;
      for (const std::string& step : steps) {
        if (std::find(before.begin(), before.end(), step) != before.end()) continue;
        const std::string result = co_await execute_step(step, topic);
        completed.push_back(step);
        sql("INSERT INTO done VALUES (?)", step);
        ctx.stash(Snapshot{topic, completed});
        broadcast(hearth::Json{{"type", "progress"}, {"step", step}, {"result", result}});
      }
      broadcast(hearth::Json{{"type", "complete"}});
    });
  }

  hearth::Task<std::string> execute_step(std::string step, std::string topic) {
    co_await sleep(std::chrono::milliseconds(options_.step_ms));
    co_return step + " " + topic;
  }

  Options options_;
};

class MyAgent : public hearth::Agent {
 public:
  using Options = Pace;
  explicit MyAgent(Options options) : options_(options) {}

  static void methods(hearth::Methods<MyAgent>& m) {
    m.add("startResearch", &MyAgent::start_research);
    m.add("turns", &MyAgent::turns);
    m.add("result", &MyAgent::result);
    m.fiber("doResearch", &MyAgent::do_research);
  }

  struct Payload {
    std::string topic;
    HEARTH_FIELDS(topic)
    HEARTH_REQUIRED(topic)
  };
  struct Message {
    std::string role;
    std::string content;
    HEARTH_FIELDS(role, content)
  };
  struct Snapshot {
    std::vector<Message> messages;
    int turn_index = -1;
    HEARTH_FIELDS(messages, turn_index)
  };

  std::string start_research(const Payload& payload) {
    const std::string fiber_id = start_fiber("doResearch", payload, {.keep_record = true}).id();
    broadcast(hearth::Json{{"type", "research_started"}, {"fiberId", fiber_id}});
    return fiber_id;
  }

  // Called again with the same payload, and the snapshot, if it was interrupted.
  hearth::Task<hearth::Json> do_research(Payload payload, hearth::FiberContext& fiber) {
    auto [messages, last_turn] = fiber.snapshot<Snapshot>().value_or(Snapshot());
    for (int turn = last_turn + 1; turn < kTurns; ++turn) {
      const std::string text = co_await generate_text(payload.topic, turn);
      messages.push_back({"user", payload.topic});
      messages.push_back({"assistant", text});

      // Checkpoint after each turn - if evicted, we resume from here
      stash(Snapshot{messages, turn});

      // Notify connected clients of progress
      broadcast(hearth::Json{{"type", "research_progress"}, {"turn", turn}, {"text", text}});
    }
    co_return hearth::Json{{"messages", messages}, {"summary", messages.back().content}};
  }

  hearth::Task<void> on_fiber_complete(const hearth::FiberRecord& ctx) override {
    set_state({{"researchResult", ctx.result}});
    broadcast(hearth::Json{{"type", "research_complete"}, {"result", ctx.result}});
    return {};
  }

  // How many turns have a checkpoint.
  int turns(const std::string& fiber_id) {
    const auto record = inspect_fiber(fiber_id);
    if (!record || record->snapshot.is_null()) return 0;
    return record->snapshot.at("turn_index").get<int>() + 1;
  }
  hearth::Json result() { return state(); }

 private:
  static constexpr int kTurns = 20;

  // The model of this example.
  hearth::Task<std::string> generate_text(std::string topic, int turn) {
    co_await sleep(std::chrono::milliseconds(options_.step_ms));
    co_return "turn " + std::to_string(turn) + " about " + topic;
  }

  Options options_;
};

HEARTH_PLUGIN("seed-agents", "1.0.0", ResearchAgent, MyAgent)
