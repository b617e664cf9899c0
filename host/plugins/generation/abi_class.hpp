#pragma once
// A class that runs the code of a class of a loaded library, for the runtime.

#include "diagnosis/call_records.hpp"
#include "plugins/generation/plugin_entry.hpp"
#include "runtime/agent_class.hpp"

#include <hearth/abi.h>
#include <hearth/ext/offload.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hearth::plugins {

class PluginGeneration;

// Promises  An exception of the library becomes a kPlugin error and a line in the log. A status
//           that the contract does not have counts as HEARTH_E_PLUGIN.
// Lifetime  Keeps its generation in use: the library is not unloaded while an AbiClass lives.
// Threads   As runtime::AgentClass. Made on the loader's thread; destroyed on any.
class AbiClass final : public runtime::AgentClass {
 public:
  // `entry` is one of the generation's classes, whose code the class `name` runs. If that is
  // another name, the code sees it: create() gets a copy of the library's table with this name.
  // `sha256` and `number` as in LibraryContent.
  AbiClass(std::shared_ptr<PluginGeneration> generation, const EntryClass& entry, std::string name,
           std::string sha256, std::uint64_t number);
  ~AbiClass() override;

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string_view code() const override { return entry_.name; }
  [[nodiscard]] std::string_view version() const override;
  [[nodiscard]] std::string_view origin() const override;
  [[nodiscard]] std::string_view sha256() const override { return owner_.sha256; }
  [[nodiscard]] std::uint32_t schema_version() const override { return schema_version_; }
  [[nodiscard]] std::optional<durable::Effect> listed_effect(std::string_view kind) const override;
  [[nodiscard]] bool is_idempotent(std::string_view method) const override;
  [[nodiscard]] bool is_read_only(std::string_view method) const override;
  [[nodiscard]] std::span<const std::string> exclusive_methods() const override;
  [[nodiscard]] std::string_view methods() const override;
  [[nodiscard]] bool checks_state() const override;
  [[nodiscard]] bool watches_state() const override;
  [[nodiscard]] bool reads_bodies() const override;

  Result<std::unique_ptr<runtime::AgentInstance>> create(extensions::AgentContext& host,
                                                         std::string_view name,
                                                         std::string_view options) const override;

  [[nodiscard]] bool runs_jobs() const override { return offload_ != nullptr; }
  Result<void> run_offloaded(std::uint64_t job, bool cancelled,
                             const runtime::OffloadOrigin& origin) const override;

  // The owner under which calls into the class are recorded.
  [[nodiscard]] const diagnosis::CallOwner& call_owner() const { return owner_; }

  // Logs that the library threw an exception through the C interface, which the contract forbids.
  void report_exception(std::string_view function) const noexcept;

 private:
  std::shared_ptr<PluginGeneration> generation_;
  const EntryClass& entry_;  // in the generation
  const std::string name_;
  const hearth_class own_table_;     // has its name; used only if that is another one
  const hearth_class* const table_;  // in the library, or own_table_
  const diagnosis::CallOwner owner_;
  const hearth_offload_v1* const offload_;  // in the library, or null
  const std::uint32_t schema_version_;
};

}  // namespace hearth::plugins
