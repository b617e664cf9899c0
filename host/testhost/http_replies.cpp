#include "testhost/http_replies.hpp"

#include "base/credit.hpp"
#include "extensions/abi_status.hpp"
#include "extensions/fetch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace hearth::testhost {

// One request and its reply.
class HttpReplies::Exchange final : public extensions::RemoteOperation {
 public:
  Exchange(HttpReplies& replies, extensions::FetchRequest request)
      : replies_(replies),
        timeout_(request.total_timeout),
        sent_{.method = std::move(request.method),
              .url = std::move(request.url),
              .headers = std::move(request.headers),
              .body = std::move(request.body),
              .credential = std::move(request.credential),
              .follow_redirects = request.follow_redirects,
              .http2 = request.http2} {
    raise_credit(credit_, request.window);
  }
  ~Exchange() override { std::erase(replies_.running_, this); }

  void start(extensions::RemoteListener& listener) override {
    listener_ = &listener;
    plan(replies_.reply_ ? replies_.reply_(sent_) : nobody());
    replies_.running_.push_back(this);
  }
  void credit(std::uint64_t bytes) override { raise_credit(credit_, bytes); }

  // Absent: it waits for credit.
  [[nodiscard]] std::optional<SteadyTime> next_due() const {
    if (parts_.empty() || (parts_.size() > 1 && credit_ <= 0)) return std::nullopt;
    return parts_.front().due;
  }
  void give() {
    Part part = std::move(parts_.front());
    parts_.pop_front();
    if (parts_.empty()) {
      std::erase(replies_.running_, this);
      Result<std::string> outcome = std::move(part.body);
      if (part.failure) outcome = Error{*part.failure, *std::move(outcome)};
      listener_->end(std::move(outcome), part.flags);
    } else {
      credit_ -= static_cast<std::int64_t>(part.body.size());
      listener_->part(std::move(part.body), part.flags);
    }
  }

 private:
  struct Part {
    SteadyTime due;
    std::string body;
    std::uint32_t flags = 0;
    std::optional<Errc> failure{};
  };

  static testing::FetchReply nobody() {
    testing::FetchReply reply;
    reply.status = 0;
    reply.failure = {.code = HEARTH_E_BUSY,
                     .phase = HEARTH_FETCH_PHASE_RESOLVE,
                     .sent = false,
                     .text = "no server is there: the test has no Host::on_fetch()"};
    return reply;
  }

  void plan(testing::FetchReply reply) {
    SteadyTime due = replies_.clock_.steady_now() + reply.after;
    if (reply.status != 0) {
      parts_.push_back({.due = due,
                        .body = extensions::fetch_head(reply.status, sent_.url, reply.headers,
                                                       reply.until_close),
                        .flags = HEARTH_FETCH_HEAD});
    }
    if (!reply.body.empty()) reply.pieces.insert(reply.pieces.begin(), std::move(reply.body));
    for (std::string& piece : reply.pieces) {
      parts_.push_back({.due = due, .body = std::move(piece)});
      due += reply.between;
    }
    Part end{.due = due, .body = {}};
    if (reply.failure) {
      end.body = reply.failure->text;
      end.flags = extensions::fetch_failure_flags(reply.failure->phase, reply.failure->sent);
      end.failure = extensions::to_errc(reply.failure->code);
    }
    parts_.push_back(std::move(end));
    if (timeout_.count() > 0) cut_at(replies_.clock_.steady_now() + timeout_);
  }
  void cut_at(SteadyTime deadline) {
    if (parts_.back().due <= deadline) return;
    std::erase_if(parts_, [deadline](const Part& part) { return part.due > deadline; });
    parts_.push_back(
        {.due = deadline,
         .body = "the request was not answered within its time",
         .flags = extensions::fetch_failure_flags(
             parts_.empty() ? HEARTH_FETCH_PHASE_HEADERS : HEARTH_FETCH_PHASE_BODY, true),
         .failure = Errc::kTimeout});
  }

  HttpReplies& replies_;
  std::int64_t credit_ = 0;
  const std::chrono::milliseconds timeout_;  // 0: none
  const testing::SentRequest sent_;
  extensions::RemoteListener* listener_ = nullptr;
  std::deque<Part> parts_;  // the parts that are left; the last is the end
};

Result<std::unique_ptr<extensions::RemoteOperation>> HttpReplies::make(
    extensions::FetchRequest request) {
  return std::make_unique<Exchange>(*this, std::move(request));
}

std::optional<SteadyTime> HttpReplies::next_due() const {
  std::optional<SteadyTime> next;
  for (const Exchange* each : running_) {
    const auto due = each->next_due();
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

bool HttpReplies::step() {
  const auto next = next_due();
  if (!next || *next > clock_.steady_now()) return false;
  (*std::ranges::find(running_, next, &Exchange::next_due))->give();
  return true;
}

}  // namespace hearth::testhost
