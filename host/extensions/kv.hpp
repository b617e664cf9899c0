#pragma once
// hearth.kv/1: the host's side.

#include "extensions/agent_context.hpp"
#include "storage/statement.hpp"

#include <hearth/ext/kv.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::extensions {

struct KvFilter {
  std::string_view prefix{};
  std::string_view after{};
  std::size_t limit = 100;
};

struct KvUsage {
  std::uint64_t keys = 0;
  std::uint64_t bytes = 0;  // of all keys and values
};

// Whether an agent may store this value under this key. kInvalidArgument, kTooLarge.
[[nodiscard]] Result<void> check_entry(const KvSettings& limits, std::string_view key,
                                       std::string_view json);
// Whether it may store so much in total. kLimitExceeded.
[[nodiscard]] Result<void> check_usage(const KvSettings& limits, const KvUsage& used);

// The values that one agent stores by key.
//
// On disk   cf_agents_kv(key, value), and cf_agents_kv_usage, one row that counts them; both are
//           made with the first value. Counts are updated in the write itself, so a rollback undoes
//           both.
// Durable   With the running turn. Only compiled statements are kept in memory.
// Threads, Failure  As AgentContext.
class KvExtension final : public AgentExtension {
 public:
  explicit KvExtension(AgentContext& agent) : agent_(agent) {}

  // kNotFound, kInvalidArgument.
  Result<std::string> get(std::string_view key);
  // kInvalidArgument; kTooLarge, kLimitExceeded by the class's settings. A failed call changes
  // nothing.
  Result<void> put(std::string_view key, std::string_view json);
  // kNotFound, kInvalidArgument.
  Result<void> remove(std::string_view key);
  // A JSON array of {"key", "value"}, in the order of the keys, of some 4 MiB at most.
  Result<std::string> list(const KvFilter& filter);
  KvUsage usage();

 private:
  [[nodiscard]] bool exists();
  // The bytes of the key and its value; 0: there is no such key.
  [[nodiscard]] std::uint64_t size_of(std::string_view key);
  void store_usage(const KvUsage& usage);

  AgentContext& agent_;
};

extern const hearth_kv_v1 kKvTable;

}  // namespace hearth::extensions
