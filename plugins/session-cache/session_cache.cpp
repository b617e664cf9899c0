// A cache of one session as an object: values that expire, called with plain HTTP.
//
//   methods   set(key, value, ttl_seconds = the option), get(key) -> the value or null,
//             remove(key) -> true if it existed, keys() -> keys that have not expired, clear()
//   options   ttl_seconds (3600): how long a value stays; max_keys (1000): if the cache is full
//             after expired values were removed, set() is refused with LIMIT
//
// get() never gives an expired value. Expired values are removed when the cache is full, and by
// keys().

#include <hearth/agent.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

class SessionCache : public hearth::Agent {
 public:
  struct Options {
    double ttl_seconds = 3600;
    std::uint32_t max_keys = 1000;
    HEARTH_FIELDS(ttl_seconds, max_keys)
  };
  explicit SessionCache(Options options) : options_(options) {
    if (!is_ttl(options_.ttl_seconds) || options_.max_keys == 0)
      throw hearth::Error(HEARTH_E_INVALID, "ttl_seconds and max_keys must be more than 0");
  }

  static void methods(hearth::Methods<SessionCache>& m) {
    m.add("set", &SessionCache::set, "Keeps a value for so many seconds.");
    m.add("get", &SessionCache::get, hearth::kReadOnly, "The value, or null.");
    m.add("remove", &SessionCache::remove, "Removes a value. Gives whether it was there.");
    m.add("keys", &SessionCache::keys, "The keys of all values.");
    m.add("clear", &SessionCache::clear, "Removes everything.");
  }

  void set(const std::string& key, hearth::Json value, std::optional<double> ttl_seconds) {
    const double ttl = ttl_seconds.value_or(options_.ttl_seconds);
    if (!is_ttl(ttl))
      throw hearth::Error(HEARTH_E_INVALID, "ttl_seconds: more than 0, at most ten years");
    if (kv().usage().keys >= options_.max_keys && !kv().get(key)) make_room();
    const std::int64_t now = now_ms();
    kv().put(key, Entry{std::move(value), now, now + static_cast<std::int64_t>(ttl * 1000)});
  }

  hearth::Json get(const std::string& key) {
    auto entry = kv().get<Entry>(key);
    if (!entry || has_expired(*entry)) return nullptr;
    return std::move(entry->value);
  }

  bool remove(const std::string& key) {
    const auto entry = kv().get<Entry>(key);
    kv().remove(key);
    return entry && !has_expired(*entry);
  }

  std::vector<std::string> keys() {
    remove_if([this](const Entry& entry) { return has_expired(entry); });
    std::vector<std::string> all;
    each([&all](const std::string& key, const Entry&) { all.push_back(key); });
    return all;
  }

  void clear() {
    remove_if([](const Entry&) { return true; });
  }

 private:
  struct Entry {
    hearth::Json value;
    std::int64_t set_at_ms = 0;  // Unix time
    std::int64_t expires_at_ms = 0;
    HEARTH_FIELDS(value, set_at_ms, expires_at_ms)
  };

  static bool is_ttl(double seconds) {
    constexpr double kTenYears = 10.0 * 366 * 24 * 3600;
    return seconds > 0 && seconds <= kTenYears;
  }
  [[nodiscard]] std::int64_t now_ms() const { return now().time_since_epoch().count(); }
  // After the clock was set back by more than a minute, the age of earlier values is not known: a
  // cache may lose them, but must not keep a session for longer than it may last.
  [[nodiscard]] bool has_expired(const Entry& entry) const {
    constexpr std::int64_t kSkewMs = 60'000;
    const std::int64_t now = now_ms();
    return now >= entry.expires_at_ms || now < entry.set_at_ms - kSkewMs;
  }

  template <class See>
  void each(const See& see) {
    std::string after;
    for (;;) {
      const auto page = kv().list({.after = after, .limit = 1000});
      if (page.empty()) return;
      for (const hearth::KvEntry& found : page)
        see(found.key, hearth::read_json<Entry>(found.value, found.key));
      after = page.back().key;
    }
  }

  template <class Pick>
  void remove_if(const Pick& pick) {
    std::vector<std::string> picked;
    each([&](const std::string& key, const Entry& entry) {
      if (pick(entry)) picked.push_back(key);
    });
    for (const std::string& key : picked) kv().remove(key);
  }

  void make_room() {
    remove_if([this](const Entry& entry) { return has_expired(entry); });
    if (kv().usage().keys >= options_.max_keys)
      throw hearth::Error(HEARTH_E_LIMIT, "the cache is full");
  }

  const Options options_;
};

HEARTH_PLUGIN("session-cache", "1.0.0", SessionCache)
