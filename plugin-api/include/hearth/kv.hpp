#pragma once
// Small values that an agent keeps by key, beside its state and its tables.
//
//     kv().put("draft", {{"text", "Dear Ada"}});
//     auto draft = kv().get<Draft>("draft");          // nothing, if it is not there
//     for (const KvEntry& each : kv().list({.prefix = "note:"})) ...
//     kv().remove("draft");
//
// Promises  Written with the running turn, and undone with a transaction() that is not committed.
//           Clients are not informed: put what they should see into the state.
// Bounded   The class's YAML: kv.max_keys, kv.max_value, kv.max_total. A key: 1 to 2048 bytes of
//           UTF-8 without NUL.
// Failure   HostError: INVALID (no key), LIMIT: nothing was changed.

#include <hearth/callback.hpp>
#include <hearth/ext/kv.h>
#include <hearth/fields.hpp>
#include <hearth/time.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

struct KvEntry {
  std::string key;
  Json value;
};

// The filter of Kv::list(). A field with its default does not restrict.
struct KvFilter {
  std::string prefix = {};
  std::string after = {};     // only keys after this one, which need not exist
  std::uint32_t limit = 100;  // 1 to 1000
};

struct KvUsage {
  std::uint64_t keys = 0;
  std::uint64_t bytes = 0;  // of all keys and values
};

// Threads, Lifetime  As the agent that gives it: kv().
class Kv {
 public:
  explicit Kv(detail::Activation& activation) : activation_(activation) {}

  // As JSON, or as any type that read_json() takes. Nothing: it does not exist. Error(INVALID)
  // names the field that does not fit.
  template <class T = Json>
  [[nodiscard]] std::optional<T> get(std::string_view key) const {
    hearth_bytes value = {nullptr, 0};
    const hearth_status status =
        table().get(activation_.host(), activation_.id(), detail::slice(key), &value);
    if (!detail::found(activation_, status, "get a value")) return std::nullopt;
    return read_json<T>(detail::parse_record(detail::view(value)), std::string(key));
  }
  // Adds or replaces it.
  void put(std::string_view key, const Json& value);
  template <detail::MakesNoJson T>
  void put(std::string_view /*key*/, const T& /*value*/) {
    detail::need_json<T>();
  }
  // False: it did not exist.
  bool remove(std::string_view key);
  // In the order of the keys. A page of large values may be shorter than its limit: only an empty
  // one is the last.
  [[nodiscard]] std::vector<KvEntry> list(const KvFilter& filter = {}) const;
  [[nodiscard]] KvUsage usage() const;

 private:
  [[nodiscard]] const hearth_kv_v1& table() const {
    return detail::need(activation_.tables().kv, HEARTH_EXT_KV);
  }

  detail::Activation& activation_;
};

}  // namespace hearth
