// Answers in parts, for tests of streaming.
//
//   methods   pour(pieces, bytes) streams so many pieces at its client's pace, and answers how many
//                 it sent
//             flood(id, pieces, bytes) sends so many frames to a client, at its pace
//             go() releases the next event of all that stream events
//             ended() -> how the streams have ended, in order
//             tidy(file) answers, and then blocks its thread until the file is there, at most 10 s.
//                 Then "tidied" or "waited in vain" has ended
//   HTTP      /pour?pieces=&bytes= the same as a body; /events streams "1", "2", ..., one a go();
//             /tidy?file= as the method
//
// The class Reader reads the body of a request, and answers its length.
//
//   methods   seen() -> how many bytes were read; failure() -> why reading has failed; leave()
//             evicts it
#include <hearth/agent.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

class Streams : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Streams>& m) {
    m.stream("pour", &Streams::pour);
    m.add("flood", &Streams::flood);
    m.add("go", &Streams::go);
    m.add("ended", &Streams::ended);
    m.add("tidy", &Streams::tidy);
  }

  hearth::Task<int> pour(hearth::Stream& out, int pieces, int bytes) {
    const std::string piece(static_cast<std::size_t>(bytes), 'x');
    int sent = 0;
    while (sent < pieces && out.send(piece)) {
      ++sent;
      const bool listens = co_await out.drained();
      if (!listens) break;
    }
    ended_.push_back("pour " + std::string(sent == pieces ? "whole" : "cut"));
    co_return sent;
  }

  hearth::Task<hearth::Response> on_request(const hearth::Request& request) override {
    if (request.path().ends_with("/events")) return events(request);
    if (request.path().ends_with("/tidy")) {
      tidy(request.query("file").value_or(""));
      return hearth::Response::text("answered");
    }
    return pour_body(request);
  }

  hearth::Task<void> flood(std::string id, int pieces, int bytes) {
    const auto reader = *connection(id);
    const std::string piece(static_cast<std::size_t>(bytes), 'x');
    int sent = 0;
    bool open = true;
    for (; open && sent < pieces; ++sent) {
      reader.send(piece);
      open = co_await reader.drained();
    }
    ended_.push_back("flood " + std::string(open ? "whole" : "cut"));
  }

  void go() { ++allowed_; }
  void tidy(std::string file) {
    set_state(file);  // so that the answer has to wait for a commit
    after_turn([this, file] {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      bool there = false;
      while (!there && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        there = std::filesystem::exists(file);
      }
      ended_.emplace_back(there ? "tidied" : "waited in vain");
    });
  }
  std::vector<std::string> ended() { return ended_; }

 private:
  hearth::Task<hearth::Response> pour_body(const hearth::Request& request) {
    const int pieces = std::stoi(request.query("pieces").value_or("1"));
    const std::string piece(std::stoul(request.query("bytes").value_or("1")), 'x');
    hearth::ResponseStream out = request.stream(hearth::Response::text(""));
    int sent = 0;
    for (; sent < pieces; ++sent) {
      const bool reads = co_await out.write(piece);
      if (!reads) break;
    }
    ended_.push_back("body " + std::string(sent == pieces ? "whole" : "cut"));
    co_return out.end();
  }

  hearth::Task<hearth::Response> events(const hearth::Request& request) {
    hearth::EventStream out(request);
    for (int number = 1;;) {
      if (number > allowed_ + 1) {
        co_await sleep(std::chrono::milliseconds(1));
        const bool reads = co_await out.keep_open();
        if (!reads) break;
        continue;
      }
      const bool reads = co_await out.send(std::to_string(number++));
      if (!reads) break;
    }
    ended_.push_back("events");
    co_return out.end();
  }

  int allowed_ = 0;
  std::vector<std::string> ended_;
};

class Reader : public hearth::Agent {
 public:
  static constexpr bool kReadsBodies = true;

  static void methods(hearth::Methods<Reader>& m) {
    m.add("seen", &Reader::seen);
    m.add("failure", &Reader::failure);
    m.add("leave", &Reader::leave);
  }

  hearth::Task<hearth::Response> on_request(const hearth::Request& request) override {
    std::size_t length = 0;
    try {
      while (auto piece = co_await request.next()) {
        length += piece->size();
        seen_ += piece->size();
      }
    } catch (const hearth::Error& error) {
      failure_ = hearth::status_name(error.code());
      throw;
    }
    co_return hearth::Response::text(std::to_string(length));
  }

  std::size_t seen() { return seen_; }
  std::string failure() { return failure_; }
  void leave() { request_eviction(); }

 private:
  std::size_t seen_ = 0;
  std::string failure_;
};

HEARTH_PLUGIN("streams", "1.0.0", Streams, Reader)
