#include "parts.hpp"

#include <hearth/chat/ask_chat.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hearth::chat {

namespace {

using std::chrono::milliseconds;

// Preliminary outputs repeat what has been said: not each word is one.
constexpr milliseconds kShowEvery{500};
constexpr milliseconds kTryAgain{1'000};
constexpr std::chrono::hours kSilence{1};  // of the other chat
constexpr int kTries = 60;                 // in a row, without anything new

struct Followed {
  std::uint64_t seq = 0;
  Json chunk;
  HEARTH_FIELDS(seq, chunk)
};

// One of the chats that a turn asks.
class Asks {
 public:
  Asks(std::shared_ptr<AskedChats> all, std::string chat) : all_(std::move(all)) {
    if (all_) at_ = all_->insert(std::move(chat));
  }
  ~Asks() {
    if (all_) all_->erase(at_);
  }
  Asks(const Asks&) = delete;
  Asks& operator=(const Asks&) = delete;

 private:
  std::shared_ptr<AskedChats> all_;
  AskedChats::iterator at_;
};

class Asked {
 public:
  Asked(Agent& agent, AgentRef other, ToolCall call)
      : agent_(agent), other_(std::move(other)), call_(std::move(call)) {}

  Task<Json> run(std::string text) {
    // The ids of calls are the model's, and another turn may have the same.
    auto starting =
        other_.call<std::string>("chat.start", text, call_.turn + ":" + call_.id,
                                 call_.asked_by + asking_chat(agent_.class_name(), agent_.name()));
    turn_ = co_await starting;
    const std::stop_callback stops(call_.stop, std::function<void()>([this] { cancel(); }));
    heard_ = agent_.uptime();
    for (int tries = 0; !end_;) {
      const std::uint64_t before = seq_;
      auto following = follow();
      co_await std::move(following);
      tries = seq_ > before ? 0 : tries + 1;
      if (!end_ && (tries >= kTries || agent_.uptime() - heard_ >= kSilence))
        throw Error(HEARTH_E_BUSY, "The other chat does not answer.");
      if (!end_) co_await agent_.sleep(kTryAgain);
    }
    if (const std::string& error = parts::text(*end_, "error"); !error.empty())
      throw Error(HEARTH_E_FINAL, error);
    // A clear has taken the answer, too; or it was removed as one of the oldest.
    const std::string& outcome = parts::text(*end_, "outcome");
    const std::string& answer = parts::text(*end_, "text");
    if (outcome == "skipped" || (outcome == "aborted" && answer.empty()) ||
        parts::is_true(*end_, "is_cut"))
      throw Error(HEARTH_E_FINAL, "The other chat has dropped the question.");
    co_return Json(answer);
  }

 private:
  // Written with the stop, so that a crash loses neither.
  void cancel() {
    try {
      other_.notify("chat.cancel", turn_);
    } catch (const std::exception& error) {
      agent_.log.warn("chat: the other chat is not stopped: ", error.what());
    }
  }
  // Until the turn ends, or the other agent leaves memory.
  Task<void> follow() {
    try {
      CallStream stream = other_.stream("chat.follow", turn_, seq_);
      for (;;) {
        auto next = stream.next<Followed>();
        const std::optional<Followed> part = co_await next;
        if (!part) break;
        seq_ = part->seq + 1;
        heard_ = agent_.uptime();
        take(part->chunk);
      }
      end_ = stream.result();
    } catch (const CallError& error) {
      if (error.code() == HEARTH_E_NOT_FOUND || error.code() == HEARTH_E_FORBIDDEN) throw;
      agent_.log.debug("chat: another chat is followed on: ", error.what());
    }
  }
  void take(const Json& chunk) {
    if (parts::text(chunk, "type") == "reset-step") text_.clear();
    if (parts::text(chunk, "type") != "text-delta") return;
    text_ += parts::text(chunk, "delta");
    if (agent_.uptime() - shown_ < kShowEvery) return;
    shown_ = agent_.uptime();
    call_.show(Json(text_));
  }

  Agent& agent_;
  AgentRef other_;
  ToolCall call_;
  std::string turn_;
  std::uint64_t seq_ = 0;
  std::string text_;
  std::chrono::nanoseconds shown_{};
  std::chrono::nanoseconds heard_{};
  std::optional<Json> end_;
};

}  // namespace

std::string asking_chat(std::string_view agent_class, std::string_view name) {
  return std::string(agent_class) + "/" + std::string(name) + "\n";
}

std::string asked_chat(std::string_view agent_class, std::string_view name) {
  std::string plain;
  for (const char c : agent_class) {
    if (c != '-' && c != '_') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return asking_chat(plain, name);
}

Task<Json> ask_chat(Agent& agent, std::string agent_class, std::string name, Json input,
                    ToolCall call) {
  const std::string text = parts::text(input, "text");
  if (text.empty()) throw NotExecuted("input.text: missing, expected string", HEARTH_E_INVALID);
  const Asks asks(call.asks, asked_chat(agent_class, name));  // before the other one may ask back
  Asked asked(agent, agent.agent(agent_class, name, {.timeout = kSilence}), std::move(call));
  auto running = asked.run(text);
  co_return co_await std::move(running);
}

Json ask_chat_schema() {
  return {{"type", "object"},
          {"properties", {{"text", {{"type", "string"}}}}},
          {"required", Json::array({"text"})},
          {"additionalProperties", false}};
}

Tool ask_chat_tool(Agent& agent, ToolSpec spec, std::string agent_class, std::string name,
                   ToolOptions options) {
  Tool tool;
  tool.spec = std::move(spec);
  tool.effect = Effect::kIdempotent;
  tool.options = std::move(options);
  tool.run = [&agent, of = std::move(agent_class), other = std::move(name)](Json input,
                                                                            ToolCall call) {
    return ask_chat(agent, of, other, std::move(input), std::move(call));
  };
  return tool;
}

}  // namespace hearth::chat
