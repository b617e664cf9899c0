// Load on chats: the provider of the model and the tabs of the clients in one process, so that one
// clock times both. Works on any server that speaks the protocol of useAgentChat.
//
// Prints the provider's port, then obeys lines of stdin; each is answered with a line of JSON:
//
//   server PORT               where the chats are
//   first CHATS TURNS         turns one after the other: request to provider, word to tab
//   fanout TABS RATE WORDS DEAF
//                             one answer to many tabs. RATE: words a second; 0: all at once.
//                             DEAF 1: one more tab reads nothing until the others have all
//   idle CHATS NAME           a tab for each of the chats NAME0, NAME1, ...
//   streams CHATS WORDS EVERY_MS
//                             an answer for each of the idle chats: so many words, then it waits
//   recover PORT              the server was killed: all tabs come back
//   finish                    the answers go on and end: what has come, and how often
//   calls SECONDS             the round trips of another chat's calls
//   fill CHAT MESSAGES BYTES  gives a chat its transcript
//   resend CHAT MESSAGES BYTES
//                             a message with the whole transcript, beside another chat's calls
//   clear                     all tabs close
#include "chat_peers.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>

namespace hearth::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Times, in milliseconds.
class Times {
 public:
  void add(Steady::duration time) {
    all_.push_back(std::chrono::duration<double, std::milli>(time).count());
  }
  // `"NAME_p50":..., "NAME_p99":..., "NAME_max":...`
  [[nodiscard]] std::string text(const std::string& name) {
    std::ranges::sort(all_);
    const auto at = [&](double share) {
      if (all_.empty()) return std::string("null");
      return std::to_string(all_[static_cast<std::size_t>(share * double(all_.size() - 1))]);
    };
    return '"' + name + "_p50\":" + at(0.5) + ",\"" + name + "_p99\":" + at(0.99) + ",\"" + name +
           "_max\":" + at(1);
  }

 private:
  std::vector<double> all_;
};

template <class Number>
std::string field(const std::string& name, Number value) {
  return '"' + name + "\":" + std::to_string(value);
}

std::string transcript(const std::string& chat, int count, int bytes) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) {
    text += i == 0 ? "" : ",";
    text += R"({"id":")" + chat + "-" + std::to_string(i) + R"(","role":")" +
            (i % 2 == 0 ? "user" : "assistant") + R"(","parts":[{"type":"text","text":")" +
            std::to_string(i) + std::string(static_cast<std::size_t>(bytes), 'x') + R"("}]})";
  }
  return text;
}

std::string escaped(const std::string& text) {
  std::string result;
  result.reserve(text.size() + text.size() / 8);
  for (const char letter : text) {
    if (letter == '"') result += '\\';
    result += letter;
  }
  return result;
}

class Load {
 public:
  void run() {
    std::printf("http://127.0.0.1:%d\n", provider_.port());
    std::fflush(stdout);
    // Tabs go on reading between two commands.
    const auto is_commanded = [] {
      pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      return ::poll(&input, 1, 0) > 0;
    };
    for (std::string line;;) {
      until("a command", is_commanded);
      if (!std::getline(std::cin, line)) return;
      std::istringstream words(line);
      std::string command;
      words >> command;
      const std::string result = obey(command, words);
      std::printf("{%s}\n", result.c_str());
      std::fflush(stdout);
    }
  }

 private:
  std::string obey(const std::string& command, std::istream& words) {
    int a = 0;
    int b = 0;
    int c = 0;
    int d = 0;
    std::string name;
    if (command == "fill" || command == "resend") words >> name;
    words >> a;
    if (command == "idle") words >> name;
    words >> b >> c >> d;
    if (command == "server") return take_server(a);
    if (command == "first") return first(a, b);
    if (command == "fanout") return fan_out(a, b, static_cast<std::uint32_t>(c), d != 0);
    if (command == "idle") return idle(a, name);
    if (command == "streams") return streams(static_cast<std::uint32_t>(b), milliseconds(c));
    if (command == "recover") return recover(a);
    if (command == "finish") return finish();
    if (command == "calls") return calls(milliseconds(a));
    if (command == "fill") return fill(name, a, b);
    if (command == "resend") return resend(name, a, b);
    if (command == "clear") return clear();
    fail("unknown command " + command);
  }

  std::string take_server(int port) {
    port_ = port;
    return {};
  }

  void until(const std::string& what, const std::function<bool()>& holds) {
    run_until(provider_, what, holds);
  }

  std::vector<std::unique_ptr<Tab>> open(int count, const std::function<std::string(int)>& name) {
    std::vector<std::unique_ptr<Tab>> tabs;
    for (int i = 0; i < count; ++i) {
      tabs.push_back(std::make_unique<Tab>(port_, name(i)));
      until("a greeting", [&] { return tabs.back()->is_ready; });
    }
    return tabs;
  }

  std::string first(int chats, int turns) {
    provider_.plan = {.pause = 1};
    const std::string name = "first" + std::to_string(++runs_) + "-";
    const auto tabs = open(chats, [&](int i) { return name + std::to_string(i); });
    Times asked;
    Times shown;
    for (int turn = 0; turn < turns; ++turn) {
      for (const auto& tab : tabs) {
        const std::uint64_t before = provider_.requests;
        const Time begin = Steady::now();
        tab->submit();
        until("a word", [&] { return tab->words() == 1; });
        if (turn > 0) {  // the first one is a warm-up
          asked.add(provider_.asked_at - begin);
          shown.add(tab->word_at - provider_.sent_at[0]);
        }
        if (provider_.requests != before + 1) fail("the provider was not asked once");
        provider_.finish();
        until("the end of a turn", [&] { return tab->is_done; });
      }
    }
    return asked.text("asked") + "," + shown.text("shown");
  }

  std::string fan_out(int count, int rate, std::uint32_t words, bool has_deaf) {
    std::string name = "fan" + std::to_string(++runs_);
    const auto tabs = open(count, [&](int) -> std::string { return name; });
    Tab deaf(port_, name);
    until("a greeting", [&] { return deaf.is_ready; });
    if (has_deaf) deaf.connect(port_, true);
    Times lags;
    Time last;
    for (const auto& tab : tabs)
      tab->on_word = [&](std::uint32_t word, Time at) {
        lags.add(at - provider_.sent_at[word]);
        last = at;
      };
    provider_.plan = {.pause = words,
                      .every = std::chrono::nanoseconds(rate == 0 ? 0 : 1'000'000'000 / rate)};
    const Time begin = Steady::now();
    tabs[0]->submit();
    until("all words for all tabs", [&] {
      return std::ranges::all_of(tabs, [&](auto& tab) { return tab->words() == words; });
    });
    const double took = std::chrono::duration<double>(last - begin).count();
    provider_.finish();
    until("the end of the turn",
          [&] { return std::ranges::all_of(tabs, [](auto& tab) { return tab->is_done; }); });
    if (has_deaf) hear(deaf, words);
    std::uint64_t frames = 0;
    std::uint64_t wrong = 0;
    for (const auto& tab : tabs) {
      frames += tab->frames;
      wrong += tab->lost + tab->doubled;
    }
    return lags.text("lag") + "," + field("seconds", took) + "," + field("frames", frames) + "," +
           field("wrong", wrong);
  }

  // It gets what it has missed, or, if the server has given it up, the transcript when it is back.
  void hear(Tab& deaf, std::uint32_t words) {
    deaf.read_at_last();
    const auto has_all = [&] { return deaf.words() == words || deaf.has_transcript; };
    until("the deaf tab to hear", [&] { return has_all() || !deaf.is_open(); });
    if (has_all()) return;
    deaf.connect(port_);
    until("the deaf tab to hear all", has_all);
  }

  std::string idle(int chats, const std::string& name) {
    tabs_ = open(chats, [&](int i) { return name + std::to_string(i); });
    return {};
  }

  std::string streams(std::uint32_t words, milliseconds every) {
    provider_.plan = {.pause = words, .every = every};
    const Time begin = Steady::now();
    for (const auto& tab : tabs_) tab->submit();
    // With a long pause between words the streams are still going on then.
    const std::uint32_t wanted = every.count() == 0 ? words : 2;
    until("words for all tabs", [&] {
      return std::ranges::all_of(tabs_, [&](auto& tab) { return tab->words() >= wanted; });
    });
    return field("seconds", std::chrono::duration<double>(Steady::now() - begin).count());
  }

  std::string recover(int port) {
    port_ = port;
    neighbour_.reset();
    const Time begin = Steady::now();
    for (const auto& tab : tabs_) tab->connect(port);
    Times times;
    const auto stream = [&] {
      call_now_and_then(times);
      return std::ranges::all_of(tabs_, [](auto& tab) { return tab->is_live; });
    };
    until("all streams to go on", stream);
    return field("seconds", std::chrono::duration<double>(Steady::now() - begin).count()) + "," +
           times.text("call");
  }

  std::string finish() {
    provider_.finish();
    until("the end of all turns",
          [&] { return std::ranges::all_of(tabs_, [](auto& tab) { return tab->is_done; }); });
    std::uint64_t lost = 0;
    std::uint64_t doubled = 0;
    for (const auto& tab : tabs_) {
      lost += tab->lost;
      doubled += tab->doubled;
    }
    return field("lost", lost) + "," + field("doubled", doubled) + "," +
           field("requests", provider_.requests);
  }

  // A call of another chat every 2 ms.
  void call_now_and_then(Times& times) {
    if (!neighbour_) {
      neighbour_ = std::make_unique<Tab>(port_, "neighbour");
      called_ = 0;
    }
    const Time now = Steady::now();
    if (!neighbour_->is_ready) return;
    if (called_ > neighbour_->answers) return;
    if (is_calling_) times.add(now - called_at_);
    is_calling_ = false;
    if (now < called_at_ + milliseconds(2)) return;
    called_at_ = now;
    is_calling_ = true;
    ++called_;
    neighbour_->call();
  }

  std::string calls(milliseconds time) {
    Times times;
    const Time end = Steady::now() + time;
    until("calls", [&] {
      call_now_and_then(times);
      return Steady::now() > end;
    });
    return times.text("call");
  }

  std::string fill(const std::string& chat, int messages, int bytes) {
    Tab tab(port_, chat);
    until("a greeting", [&] { return tab.is_ready; });
    tab.send_frame(R"({"type":"cf_agent_chat_messages","messages":)" +
                   transcript(chat, messages, bytes) + "]}");
    tab.call();  // frames are handled in order
    until("a transcript to be stored", [&] { return tab.answers == 1; });
    return {};
  }

  std::string resend(const std::string& chat, int messages, int bytes) {
    Tab tab(port_, chat);
    until("a greeting", [&] { return tab.is_ready; });
    provider_.plan = {.pause = 1};
    Times quiet;
    Times times;
    const Time quiet_end = Steady::now() + milliseconds(200);
    until("calls", [&] {
      call_now_and_then(quiet);
      return Steady::now() > quiet_end && !is_calling_ && tab.is_between_frames();
    });
    const std::string id = chat + std::to_string(++runs_);
    const std::string frame =
        R"({"type":"cf_agent_use_chat_request","id":"r-)" + id +
        R"(","init":{"method":"POST","body":"{\"messages\":)" +
        escaped(transcript(chat, messages, bytes) + R"(,{"id":"u-)" + id +
                R"(","role":"user","parts":[{"type":"text","text":"go"}]}],)") +
        R"(\"trigger\":\"submit-message\"}"}})";
    const std::uint64_t before = provider_.requests;
    const Time begin = Steady::now();
    tab.send_frame(frame);
    until("the provider to be asked", [&] {
      call_now_and_then(times);
      if (!tab.is_open()) fail("the server has closed a tab");
      if (tab.is_done) fail("a turn has ended without the provider");
      return provider_.requests > before;
    });
    const Time asked = provider_.asked_at;
    provider_.finish();
    until("the end of the turn", [&] {
      call_now_and_then(times);
      return tab.is_done;
    });
    return field("asked", std::chrono::duration<double, std::milli>(asked - begin).count()) + "," +
           times.text("call") + "," + quiet.text("quiet");
  }

  std::string clear() {
    tabs_.clear();
    neighbour_.reset();
    return {};
  }

  Provider provider_;
  int port_ = 0;
  int runs_ = 0;
  std::vector<std::unique_ptr<Tab>> tabs_;
  std::unique_ptr<Tab> neighbour_;
  std::uint64_t called_ = 0;
  bool is_calling_ = false;
  Time called_at_;
};

}  // namespace
}  // namespace hearth::bench

int main() {
  hearth::bench::Load().run();
}
