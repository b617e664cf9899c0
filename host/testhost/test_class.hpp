#pragma once
// A class of a library, or of the test's own program, for the runtime; and its instances. Stricter
// than a server: lent bytes become invalid as soon as the ABI allows.

#include "extensions/agent_context.hpp"
#include "runtime/agent_class.hpp"
#include "testhost/lent_bytes.hpp"

#include <hearth/abi.h>
#include <hearth/ext/offload.h>
#include <hearth/ext/sql.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::testhost {

class TestInstance;

// What a test host knows of its instances. The test's thread.
class Instances {
 public:
  Instances() = default;
  Instances(const Instances&) = delete;
  Instances& operator=(const Instances&) = delete;

  // The instance is about to be made; `options` for it.
  virtual std::string came(TestInstance& instance) = 0;
  virtual void left(TestInstance& instance) = 0;
  // The library breaks a rule of the ABI: the test fails.
  virtual void misused(std::string what) = 0;
  [[nodiscard]] virtual const hearth_host* table() const = 0;

 protected:
  ~Instances() = default;
};

// Threads    As AgentInstance; all members on the test's thread.
class TestInstance final : public runtime::AgentInstance {
 public:
  TestInstance(const hearth_class& definition, Instances& instances, extensions::AgentContext& host)
      : definition_(definition), instances_(instances), host_(host) {}
  ~TestInstance() override;

  // Once, first.
  Result<void> make(std::string_view name);

  Result<void> on_event(const runtime::AgentEvent& event) override;
  void on_cancel(runtime::CallId call) override;
  void on_result(const runtime::OperationResult& result) override;

  // Null: it is not made yet.
  [[nodiscard]] void* object() const { return object_; }
  [[nodiscard]] extensions::AgentContext& host() const { return host_; }
  [[nodiscard]] bool is_going() const { return is_going_; }

  // ---- around a function of the host that its code calls ----
  void function_begins(hearth_statement statement);
  [[nodiscard]] hearth_bytes lend(std::string_view bytes, hearth_statement statement);
  void function_ends(hearth_statement statement);

 private:
  // Bytes of a statement are valid until the next call on it.
  struct StatementBytes {
    LentBytes bytes;
    std::size_t before = 0;
  };

  const hearth_class& definition_;
  Instances& instances_;
  extensions::AgentContext& host_;
  void* object_ = nullptr;
  bool is_going_ = false;
  LentBytes lent_;  // by functions of the host, until its code returns
  std::size_t lent_before_ = 0;
  std::map<hearth_statement, StatementBytes> statements_;
};

// Lifetime  The definition and the instances' keeper outlive it.
class TestClass final : public runtime::AgentClass {
 public:
  TestClass(const hearth_class& definition, std::string name, Instances& instances);

  [[nodiscard]] const hearth_class& definition() const { return definition_; }

  // ---- AgentClass ----
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string_view version() const override { return "0.0.0"; }
  [[nodiscard]] std::string_view origin() const override { return "test"; }
  [[nodiscard]] std::uint32_t schema_version() const override { return schema_; }
  [[nodiscard]] std::optional<durable::Effect> listed_effect(std::string_view kind) const override;
  [[nodiscard]] bool is_idempotent(std::string_view method) const override;
  [[nodiscard]] bool is_read_only(std::string_view method) const override;
  [[nodiscard]] std::span<const std::string> exclusive_methods() const override {
    return exclusive_;
  }
  [[nodiscard]] bool checks_state() const override { return has(HEARTH_CLASS_CHECKS_STATE); }
  [[nodiscard]] bool watches_state() const override { return has(HEARTH_CLASS_WATCHES_STATE); }
  [[nodiscard]] bool reads_bodies() const override { return has(HEARTH_CLASS_READS_BODIES); }
  Result<std::unique_ptr<runtime::AgentInstance>> create(extensions::AgentContext& host,
                                                         std::string_view name,
                                                         std::string_view options) const override;
  [[nodiscard]] bool runs_jobs() const override { return offload_ != nullptr; }
  Result<void> run_offloaded(std::uint64_t job, bool cancelled,
                             const runtime::OffloadOrigin& origin) const override;

 private:
  [[nodiscard]] bool has(std::uint32_t flag) const { return (definition_.flags & flag) != 0; }

  const hearth_class& definition_;
  const std::string name_;
  Instances& instances_;
  const std::uint32_t schema_;
  const std::vector<std::string> idempotent_;  // sorted, like the two below
  const std::vector<std::string> read_only_;
  const std::vector<std::string> exclusive_;
  const hearth_offload_v1* const offload_;  // null: it has none
};

}  // namespace hearth::testhost
