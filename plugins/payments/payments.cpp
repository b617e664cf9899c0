// Charges and refunds at a payment provider, and webhooks that report them. Each effect outside is
// an operation of the ledger: after any crash, none of them happens twice unnoticed.
//
//   methods   charge(order, cents) -> payment      begins the charge. A second call gives the
//             payment, and goes on with a charge that has stopped; other cents are rejected
//             refund(order) -> payment             the same, for a payment that is paid
//             payment(order) -> {"order", "cents", "status", "receipt", "refund", "note"}; the last
//             three only if they exist
//             subscribe(url), unsubscribe(url) -> true if it was subscribed
//             deliveries(order) -> [{"url", "event", "status"}]
//   status    charging, paid, refused, refunding, refunded, or unknown: it cannot be known whether
//             the provider has executed it. `note` names the operation. After `hearth resolve` says
//             that it was executed, payment() says so too; if it was not, call the method again
//   frames    {"type": "payment", and the payment} to every client after each change
//   webhooks  POST {"event": "paid" or "refunded", "order", "cents"} to each URL, with Webhook-Id.
//             status of a delivery: pending, delivered, refused or unknown
//   options   provider: its URL
//             keys: how the provider treats an Idempotency-Key. "honoured": it executes a key once;
//             "listed": it can be asked for a key; "ignored": neither. After a change of this
//             option, charges in progress go on as they were begun
//             credential: a name under egress.secrets; timeout_ms: of a request, 30000
//             settles_within_ms: "listed": how long the provider may go on with a request whose
//             sender was killed or has given up, 60000. Until then its 404 proves nothing
//
// The provider: POST /charges {"order", "cents"} and POST /refunds {"order", "cents", "receipt"}
// give {"receipt"}; 400 to 499: it has refused. "listed": GET of the same path with the key gives
// the answer of POST, or 404.

#include <hearth/agent.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

class Payments : public hearth::Agent {
 public:
  struct Options {
    std::string provider;
    std::string keys = "honoured";
    std::string credential;
    std::uint32_t timeout_ms = 30'000;
    std::uint32_t settles_within_ms = 60'000;
    HEARTH_FIELDS(provider, keys, credential, timeout_ms, settles_within_ms)
  };
  struct Payment {
    std::string order;
    std::int64_t cents = 0;
    std::string status;
    std::optional<std::string> receipt;
    std::optional<std::string> refund;
    std::optional<std::string> note;
    HEARTH_FIELDS(order, cents, status, receipt, refund, note)
  };
  struct Delivery {
    std::string url;
    std::string event;
    std::string status;
    HEARTH_FIELDS(url, event, status)
  };

  explicit Payments(Options options) : options_(std::move(options)) {
    check(suffix_of(options_.keys).has_value(), "keys: honoured, listed or ignored");
    sql("CREATE TABLE IF NOT EXISTS payments(id TEXT PRIMARY KEY, cents INTEGER NOT NULL, "
        "status TEXT NOT NULL, receipt TEXT, refund TEXT, note TEXT)");
    if (!sql("SELECT count(*) FROM sqlite_schema WHERE name = 'open_moves'").value<bool>())
      make_open_moves();
    sql("CREATE TABLE IF NOT EXISTS hooks(url TEXT PRIMARY KEY)");
    sql("CREATE TABLE IF NOT EXISTS deliveries(payment TEXT NOT NULL, event TEXT NOT NULL, "
        "url TEXT NOT NULL, status TEXT NOT NULL, PRIMARY KEY(payment, event, url))");
    sql("CREATE TABLE IF NOT EXISTS unknown_moves(payment TEXT PRIMARY KEY, what TEXT NOT NULL, "
        "operation TEXT NOT NULL)");
  }

  static void methods(hearth::Methods<Payments>& m) {
    m.add("charge", &Payments::charge, hearth::kIdempotent);
    m.add("refund", &Payments::refund, hearth::kIdempotent);
    m.add("payment", &Payments::payment, hearth::kIdempotent);
    m.add("subscribe", &Payments::subscribe, hearth::kIdempotent);
    m.add("unsubscribe", &Payments::unsubscribe);
    m.add("deliveries", &Payments::deliveries, hearth::kIdempotent);
    m.fiber("charge", &Payments::run_charge);
    m.fiber("refund", &Payments::run_refund);
    m.fiber("tell", &Payments::run_tell);
    operations(m);
  }

  Payment charge(const std::string& order, std::int64_t cents) {
    check(!order.empty() && order.size() <= kLongestOrder, "order: 1 to 100 bytes");
    check(cents > 0 && cents <= kMostCents, "cents: 1 to 100000000");
    check(!options_.provider.empty(), "this class has no provider: set its option `provider`");
    if (const auto known = find(order)) {
      check(known->cents == cents, "this order has another amount", HEARTH_E_CONFLICT);
      if (known->receipt || known->status == "refused") return *known;
    } else {
      check(sql("SELECT count(*) FROM payments").value<int>() < kMostPayments,
            "this agent has had enough payments", HEARTH_E_LIMIT);
      change({order, cents, "charging", {}, {}, {}});
    }
    start_fiber("charge", order, {.key = "charge " + order, .max_retries = kRetries});
    return payment(order);
  }

  Payment refund(const std::string& order) {
    Payment known = payment(order);
    check(known.receipt.has_value(), "this order is not paid", HEARTH_E_CONFLICT);
    if (known.refund) return known;
    if (known.status == "paid") {
      known.status = "refunding";
      change(known);
    }
    start_fiber("refund", order, {.key = "refund " + order, .max_retries = kRetries});
    return payment(order);
  }

  Payment payment(const std::string& order) {
    auto known = find(order);
    check(known.has_value(), "no such order", HEARTH_E_NOT_FOUND);
    if (known && known->status == "unknown" && take_resolution(order)) known = find(order);
    return *std::move(known);  // NOLINT(bugprone-unchecked-optional-access): looked at above
  }

  void subscribe(const std::string& url) {
    check(!url.empty() && url.size() <= kLongestUrl, "url: 1 to 1000 bytes");
    check(sql("SELECT count(*) FROM hooks WHERE url <> ?", url).value<int>() < kMostHooks,
          "this agent has enough webhooks", HEARTH_E_LIMIT);
    sql("INSERT OR IGNORE INTO hooks VALUES(?)", url);
  }
  bool unsubscribe(const std::string& url) {
    return sql("DELETE FROM hooks WHERE url = ?", url).changes() > 0;
  }

  std::vector<Delivery> deliveries(const std::string& order) {
    return sql("SELECT url, event, status FROM deliveries WHERE payment = ? ORDER BY rowid", order)
        .rows<Delivery>();
  }

  // The fiber that began it may be over, and then writes nothing down any more.
  hearth::Task<void> on_operation_unknown(const hearth::OperationRecord& operation) override {
    if (operation.key) {
      const std::string what = operation.kind.substr(0, operation.kind.find('.'));
      const auto known = find(*operation.key);
      if (known && known->status == (what == "charge" ? "charging" : "refunding"))
        finish(what, *known, unknown_outcome(operation.id, operation.warning()));
    } else if (operation.kind == "webhook") {
      const auto notice = hearth::read_json<Notice>(operation.args, "args");
      set_delivery(notice, "unknown");
    }
    return {};
  }

 private:
  static constexpr std::size_t kLongestOrder = 100;
  static constexpr std::size_t kLongestUrl = 1'000;
  static constexpr std::int64_t kMostCents = 100'000'000;
  static constexpr int kMostPayments = 10'000;
  static constexpr int kMostHooks = 100;
  static constexpr int kRetries = 5;

  // The content of a webhook, and its receiver.
  struct Notice {
    std::string url;
    std::string event;
    std::string order;
    std::int64_t cents = 0;
    HEARTH_FIELDS(url, event, order, cents)
  };

  struct UnknownMove {
    std::string what;
    std::string operation;
    HEARTH_FIELDS(what, operation)
  };

  // ---- the kinds of effects, and their outcomes -------------------------------------------------

  // A charge and a refund exist three times: how the provider treats keys decides what may be done
  // after a crash.
  static void operations(hearth::Methods<Payments>& m) {
    using hearth::Effect;
    for (const char* const kind : {"charge", "refund"}) {
      m.operation(kind, {.effect = Effect::kKeyed,
                         .same = "the order: it is the key of the operation",
                         .interrupted = "asks again with the same Idempotency-Key",
                         .upstream = "does a key once, and gives the same receipt, for a day",
                         .unknown = "the payment is unknown, and says so to its clients",
                         .acts_by_request = true});
    }
    for (const char* const kind : {"charge.listed", "refund.listed"}) {
      m.operation(kind, {.effect = Effect::kProbe,
                         .same = "the order: it is the key of the operation",
                         .interrupted = "asks for the key, until the request can no longer arrive",
                         .upstream = "does it twice, so it is asked first",
                         .unknown = "the payment is unknown, and says so to its clients",
                         .acts_by_request = true});
    }
    for (const char* const kind : {"charge.ignored", "refund.ignored"}) {
      m.operation(kind, {.effect = Effect::kUnsafe,
                         .same = "the order: it is the key of the operation",
                         .interrupted = "nothing: it may have been done",
                         .upstream = "does it twice",
                         .unknown = "the payment is unknown until an operator has checked",
                         .acts_by_request = true});
    }
    m.operation("webhook", {.effect = Effect::kUnsafe,
                            .same = "the fiber of this notice",
                            .interrupted = "nothing: the receiver may have acted on it",
                            .upstream = "is not known; the receiver can compare Webhook-Id",
                            .unknown = "the delivery is unknown, and the payment stands",
                            .key_header = "Webhook-Id",
                            .acts_by_request = true});
  }
  // The ending of the kinds that fit the option `keys`.
  static std::optional<std::string> suffix_of(const std::string& keys) {
    if (keys == "honoured") return "";
    if (keys == "listed" || keys == "ignored") return "." + keys;
    return std::nullopt;
  }

  // ---- the work ---------------------------------------------------------------------------------

  // Each of these is called again after a crash. Then the ledger answers the operation, or it is
  // tried again, or it is unknown. Its result, the payment and the notices are one commit.
  hearth::Task<void> run_charge(std::string order, hearth::FiberContext&) {
    const Payment known = payment(order);
    if (known.receipt) co_return;
    hearth::Json details = {{"order", order}, {"cents", known.cents}};
    const Outcome outcome = co_await move_money("charge", std::move(order), std::move(details));
    finish("charge", payment(known.order), outcome);
  }

  hearth::Task<void> run_refund(std::string order, hearth::FiberContext&) {
    const Payment known = payment(order);
    if (known.refund) co_return;
    hearth::Json details = {
        {"order", order}, {"cents", known.cents}, {"receipt", known.receipt.value_or("")}};
    const Outcome outcome = co_await move_money("refund", std::move(order), std::move(details));
    finish("refund", payment(known.order), outcome);
  }

  hearth::Task<void> run_tell(Notice notice, hearth::FiberContext&) {
    const auto act = [this, notice](hearth::OperationAttempt attempt) {
      return post_notice(notice, std::move(attempt.id));
    };
    std::string status = "delivered";
    try {
      hearth::OperationCall call{.kind = "webhook", .args = notice};
      co_await operation(std::move(call), act);
    } catch (const hearth::NotExecuted&) {
      status = "refused";
    } catch (const hearth::OperationUnknown&) {
      status = "unknown";
    }
    set_delivery(notice, status);
  }

  // Charges and refunds whose outcome is not known yet, and the option `keys` that each was begun
  // with: with another value it would be another operation, and could happen twice. The first
  // version had no such table: for its operations the ledger has the kind.
  void make_open_moves() {
    sql("CREATE TABLE open_moves(payment TEXT NOT NULL, what TEXT NOT NULL, "
        "keys TEXT NOT NULL, PRIMARY KEY(payment, what))");
    hearth::OperationFilter filter{.limit = 100};
    for (;;) {
      const auto page = list_operations(filter);
      if (page.empty()) return;
      for (const hearth::OperationRecord& each : page) {
        if (each.key && each.state != hearth::OperationState::kNotExecuted)
          note_begun(each.kind, *each.key);
      }
      filter.after = page.back().id;
    }
  }
  // An operation of this kind was begun for `order`. A resolved one may be open too: the payment
  // does not know the resolution before the operation is called again.
  void note_begun(const std::string& kind, const std::string& order) {
    const std::size_t dot = kind.find('.');
    const std::string keys = dot == std::string::npos ? "honoured" : kind.substr(dot + 1);
    sql("INSERT OR IGNORE INTO open_moves SELECT id, ?1, ?2 FROM payments WHERE id = ?3 AND "
        "?1 = iif(receipt IS NULL, 'charge', 'refund') AND "
        "status IN ('charging', 'refunding', 'unknown')",
        kind.substr(0, dot), keys, order);
  }

  // The outcome of a charge or a refund.
  struct Outcome {
    bool is_known = true;
    std::optional<std::string> receipt = std::nullopt;  // none: it was refused
    std::optional<std::string> note = std::nullopt;     // why there is no receipt
    std::string operation = {};                         // if the outcome is not known

    [[nodiscard]] std::string status(const char* if_done, const char* if_refused) const {
      if (!is_known) return "unknown";
      return receipt ? if_done : if_refused;
    }
  };
  hearth::Task<Outcome> move_money(std::string what, std::string order, hearth::Json details) {
    const std::string path = "/" + what + "s";
    sql("INSERT OR IGNORE INTO open_moves VALUES(?, ?, ?)", order, what, options_.keys);
    const auto keys = sql("SELECT keys FROM open_moves WHERE payment = ? AND what = ?", order, what)
                          .value<std::string>();
    const auto act = [this, path, keys, details](hearth::OperationAttempt attempt) {
      return ask_provider(path, std::move(attempt.id), keys, details);
    };
    const auto look = [this, path](hearth::OperationAttempt attempt) {
      return look_it_up(path, std::move(attempt.id));
    };
    Outcome outcome;
    try {
      hearth::OperationCall call{.kind = what + suffix_of(keys).value_or(""),
                                 .args = details,
                                 .key = order,
                                 .cost = details.at("cents").get<std::uint64_t>()};
      outcome.receipt = receipt_of(co_await operation(std::move(call), act, look));
    } catch (const hearth::NotExecuted& error) {
      outcome.note = error.what();
    } catch (const hearth::OperationUnknown& error) {
      outcome = unknown_outcome(error.id(), error.what());
    }
    co_return outcome;
  }
  static Outcome unknown_outcome(const std::string& id, std::string note) {
    return {.is_known = false, .note = std::move(note), .operation = id};
  }
  // An operator who resolves an operation by hand may have no receipt.
  static std::string receipt_of(const hearth::Json& result) {
    return result.is_string() ? result.get<std::string>() : "by hand";
  }

  // Each outcome comes here, some twice: from the fiber, and from a hook or a look-up.
  void finish(const std::string& what, Payment known, const Outcome& outcome) {
    const bool is_charge = what == "charge";
    std::optional<std::string>& receipt = is_charge ? known.receipt : known.refund;
    if (receipt) return;
    const bool is_news =
        outcome.is_known || known.status != "unknown" || known.note != outcome.note;
    receipt = outcome.receipt;
    known.status =
        is_charge ? outcome.status("paid", "refused") : outcome.status("refunded", "paid");
    known.note = outcome.note;
    sql("DELETE FROM unknown_moves WHERE payment = ?", known.order);
    if (outcome.is_known)
      sql("DELETE FROM open_moves WHERE payment = ? AND what = ?", known.order, what);
    else
      sql("INSERT INTO unknown_moves VALUES(?, ?, ?)", known.order, what, outcome.operation);
    if (is_news) change(known);
    if (receipt) tell_hooks(known, is_charge ? "paid" : "refunded");
  }
  // Whether an operator has resolved the unknown operation of `order` as executed.
  bool take_resolution(const std::string& order) {
    const auto moves = sql("SELECT what, operation FROM unknown_moves WHERE payment = ?", order)
                           .rows<UnknownMove>();
    if (moves.empty()) return false;
    const auto resolved = inspect_operation(moves.front().operation);
    auto known = find(order);
    if (!known || !resolved || resolved->state != hearth::OperationState::kCompleted) return false;
    finish(moves.front().what, *std::move(known), {.receipt = receipt_of(resolved->result)});
    return true;
  }

  // ---- requests ---------------------------------------------------------------------------------

  // A request that throws here may have been executed, unless it throws NotExecuted: the ledger
  // decides.
  hearth::Task<hearth::Json> ask_provider(std::string path, std::string key, std::string keys,
                                          hearth::Json details) {
    hearth::FetchRequest request{.method = "POST",
                                 .url = options_.provider + path,
                                 .json = std::move(details),
                                 .timeout = std::chrono::milliseconds(options_.timeout_ms),
                                 .credential = options_.credential,
                                 .op = std::move(key)};  // also its Idempotency-Key
    auto response = co_await send(std::move(request), std::move(keys));
    const hearth::Json answer = co_await response.json();
    co_return answer.at("receipt");
  }

  // If the provider does not know a key yet, it may still work on its request. So it is asked again
  // when that request must be settled. The wait is a sleep that begins now: the clock may be set
  // meanwhile, and a request of an ended run was sent earlier.
  hearth::Task<hearth::Probed> look_it_up(std::string path, std::string key) {
    auto found = co_await look_once(path, key);
    if (!found) {
      co_await sleep(std::chrono::milliseconds(options_.settles_within_ms));
      found = co_await look_once(path, key);
    }
    co_return found.value_or(hearth::Probed::not_executed());
  }
  // nullopt: the provider does not have the key.
  hearth::Task<std::optional<hearth::Probed>> look_once(std::string path, std::string key) {
    hearth::FetchRequest request{.url = options_.provider + path,
                                 .headers = {{"Idempotency-Key", std::move(key)}},
                                 .timeout = std::chrono::milliseconds(options_.timeout_ms),
                                 .credential = options_.credential};
    auto response = co_await fetch(std::move(request));
    if (response.status() == 404) co_return std::nullopt;
    if (!response.ok()) throw status_error(response.status());
    const hearth::Json answer = co_await response.json();
    co_return hearth::Probed::completed(answer.at("receipt"));
  }

  hearth::Task<void> post_notice(Notice notice, std::string id) {
    hearth::FetchRequest request{
        .method = "POST",
        .url = std::move(notice.url),
        .json = {{"event", notice.event}, {"order", notice.order}, {"cents", notice.cents}},
        .timeout = std::chrono::milliseconds(options_.timeout_ms),
        .op = std::move(id)};  // also its Webhook-Id
    co_await send(std::move(request), "ignored");
  }

  // Whether a request with this status certainly had no effect. With a key, an earlier attempt may
  // have had one: then only a status about the payment itself is a refusal, not "too early", "too
  // many" or a changed credential.
  static bool is_refusal(unsigned status, const std::string& keys) {
    if (status < 400 || status > 499) return false;
    if (keys != "honoured") return true;
    return status == 400 || status == 402 || status == 403 || status == 404 || status == 422;
  }
  // Sends a request that has an effect. NotExecuted: it was refused. If it did not leave, the
  // ledger knows whether an earlier one may have had its effect, and the fiber tries again.
  // `keys`: how the receiver treats its key.
  hearth::Task<hearth::FetchResponse> send(hearth::FetchRequest request, std::string keys) {
    auto response = co_await fetch(std::move(request));
    if (is_refusal(response.status(), keys))
      throw hearth::NotExecuted("refused with status " + std::to_string(response.status()));
    if (!response.ok()) throw status_error(response.status());
    co_return response;
  }
  static hearth::Error status_error(unsigned status) {
    return {HEARTH_E_BUSY, "the answer has status " + std::to_string(status)};
  }

  // ---- stored data ------------------------------------------------------------------------------

  std::optional<Payment> find(const std::string& order) {
    auto rows = sql("SELECT id AS \"order\", cents, status, receipt, refund, note FROM payments "
                    "WHERE id = ?",
                    order)
                    .rows<Payment>();
    if (rows.empty()) return std::nullopt;
    return std::move(rows.front());
  }

  void change(const Payment& known) {
    sql("INSERT OR REPLACE INTO payments VALUES(?, ?, ?, ?, ?, ?)", known.order, known.cents,
        known.status, known.receipt, known.refund, known.note);
    hearth::Json frame = known;
    frame["type"] = "payment";
    broadcast(frame);
    log.info("payment ", known.order, " is ", known.status);
  }

  void set_delivery(const Notice& notice, const std::string& status) {
    const bool is_new =
        sql("UPDATE deliveries SET status = ?1 WHERE payment = ?2 AND event = ?3 AND url = ?4 AND "
            "status <> ?1",
            status, notice.order, notice.event, notice.url)
            .changes() > 0;
    if (is_new) log.info("the notice that ", notice.order, " is ", notice.event, " is ", status);
  }

  // One fiber for each receiver, so that a slow one does not hold up the others.
  void tell_hooks(const Payment& known, const std::string& event) {
    for (const std::string& url : sql("SELECT url FROM hooks ORDER BY url").rows<std::string>()) {
      sql("INSERT INTO deliveries VALUES(?, ?, ?, 'pending')", known.order, event, url);
      start_fiber("tell", Notice{url, event, known.order, known.cents}, {.max_retries = kRetries});
    }
  }

  static void check(bool good, const char* text, hearth_status code = HEARTH_E_INVALID) {
    if (!good) throw hearth::Error(code, text);
  }

  Options options_;
};

HEARTH_PLUGIN("payments", "1.0.0", Payments)
