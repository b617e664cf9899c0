#pragma once
// hearth.kv/1: the host's side.

#include "extensions/agent_context.hpp"
#include "storage/statement.hpp"

#include <hearth/ext/kv.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
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

// Whether an agent may keep this value under this key. kInvalidArgument, kTooLarge.
[[nodiscard]] Result<void> check_entry(const KvSettings& limits, std::string_view key,
                                       std::string_view json);
// ... and so much in all. kLimitExceeded.
[[nodiscard]] Result<void> check_usage(const KvSettings& limits, const KvUsage& used);

// The values that one agent keeps by key.
//
// On disk   cf_agents_kv(key, value), and cf_agents_kv_usage, one row that counts them; both made
//           with the first value. Counting is a part of the write, so that a rollback takes it
//           back.
// Durable   With the running turn. Nothing of it is in memory but compiled statements.
// Threads, Failure  As AgentContext.
class KvExtension final : public AgentExtension {
 public:
  explicit KvExtension(AgentContext& agent) : agent_(agent) {}

  // kNotFound, kInvalidArgument.
  Result<std::string> get(std::string_view key);
  // kInvalidArgument; kTooLarge, kLimitExceeded, as the class's settings say: nothing was changed.
  Result<void> put(std::string_view key, std::string_view json);
  // kNotFound, kInvalidArgument.
  Result<void> remove(std::string_view key);
  // A JSON array of {"key", "value"}, in the order of the keys, of some 4 MiB at most.
  Result<std::string> list(const KvFilter& filter);
  KvUsage usage();
  // A rollback of the host's own may have taken the tables away.
  void forget_tables() { exists_ = false; }

 private:
  [[nodiscard]] bool exists();
  // The bytes that the key and its value have; 0: it is not there.
  [[nodiscard]] std::uint64_t size_of(std::string_view key);
  void store_usage(const KvUsage& usage);
  storage::Statement& kept(std::string_view sql);

  AgentContext& agent_;
  bool exists_ = false;  // and no rollback of the agent's own can change that
  std::map<const char*, std::unique_ptr<storage::Statement>> statements_;  // by their text's place
};

[[nodiscard]] const hearth_kv_v1& kv_extension() noexcept;

}  // namespace hearth::extensions
