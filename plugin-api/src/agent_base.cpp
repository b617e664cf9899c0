#include <hearth/agent_base.hpp>
#include <hearth/detail/dispatch.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace hearth {

void Agent::set_state(const Json& next) {
  detail::Activation& live_agent = live();
  const auto& table = detail::need(live_agent.tables().state, HEARTH_EXT_STATE);
  validate_state(next, std::nullopt);
  std::string& text = live_agent.answer_buffer();
  append_json(text, next);
  const detail::Context& context = live_agent.context();
  const hearth_status status =
      table.set(live_agent.host(), live_agent.id(), context.on_behalf ? context.connection : 0,
                detail::slice(std::string_view(text)));
  if (status == HEARTH_E_FORBIDDEN) throw HostError(status, "Connection is readonly");
  live_agent.check(status, "set state");
  auto& cache = live_agent.state_cache();
  if (&next != &cache.value) cache.value = next;
  cache.text.assign(text);
}

bool Agent::has_on_connecting() const {
  return (live().traits().hooks & detail::kOnConnecting) != 0;
}

bool Agent::has_operation(std::string_view kind) const {
  return std::ranges::any_of(live().traits().methods().operations,
                             [&](const auto& each) { return each.name == kind; });
}

void Agent::unset_state() {
  detail::Activation& live_agent = live();
  const auto& table = detail::need(live_agent.tables().state, HEARTH_EXT_STATE);
  const detail::Context& context = live_agent.context();
  const hearth_status status =
      table.unset(live_agent.host(), live_agent.id(), context.on_behalf ? context.connection : 0);
  if (status == HEARTH_E_FORBIDDEN) throw HostError(status, "Connection is readonly");
  live_agent.check(status, "unset state");
}

Json Agent::caller_claims() {
  const detail::Context& context = live().context();
  const auto& table = detail::need(live().tables().connections, HEARTH_EXT_CONNECTIONS);
  hearth_bytes json = {nullptr, 0};
  hearth_status status = HEARTH_E_GONE;
  if (context.connection != 0)
    status = table.claims(live().host(), live().id(), context.connection, &json);
  // The event still has the claims of a client that has gone.
  if (status == HEARTH_E_GONE)
    status = table.request_claims(live().host(), live().id(), context.call, &json);
  // Work that is no client's event has no claims: a start, a fiber, a callback.
  if (status == HEARTH_E_NOT_FOUND || status == HEARTH_E_GONE) return {};
  live().check(status, "claims");
  return parse_json(detail::view(json));
}

std::vector<Connection> Agent::connections(std::string_view tag) {
  const auto& table = detail::need(live().tables().connections, HEARTH_EXT_CONNECTIONS);
  std::vector<Connection> all;
  std::uint64_t number = 0;
  for (;;) {
    const hearth_status status =
        table.next(live().host(), live().id(), number, detail::slice(tag), &number);
    if (status == HEARTH_E_NOT_FOUND) return all;
    live().check(status, "connections");
    all.emplace_back(live(), number);
  }
}

std::optional<Connection> Agent::connection(std::string_view id) {
  if (id.empty()) return std::nullopt;
  const auto& table = detail::need(live().tables().connections, HEARTH_EXT_CONNECTIONS);
  std::uint64_t number = 0;
  for (;;) {
    // A tag that another client chose may read like an id.
    const hearth_status status =
        table.next(live().host(), live().id(), number, detail::slice(id), &number);
    if (status == HEARTH_E_NOT_FOUND) return std::nullopt;
    live().check(status, "connection");
    const Connection found(live(), number);
    if (found.id() == id) return found;
  }
}

void Agent::broadcast_to(std::string_view tag, const detail::Outgoing& frame,
                         std::span<const Connection> except) {
  const auto& table = detail::need(live().tables().connections, HEARTH_EXT_CONNECTIONS);
  std::vector<std::uint64_t> numbers;
  numbers.reserve(except.size());
  for (const Connection& client : except) numbers.push_back(client.number());
  live().check(table.broadcast(live().host(), live().id(), frame.kind, frame.payload,
                               detail::slice(tag), numbers.data(), numbers.size()),
               "broadcast");
}

std::string Agent::uuid() const {
  std::array<std::byte, 16> bytes;
  fill_random(bytes);
  bytes[6] = (bytes[6] & std::byte{0x0f}) | std::byte{0x40};
  bytes[8] = (bytes[8] & std::byte{0x3f}) | std::byte{0x80};
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  text.reserve(36);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text.push_back('-');
    text.push_back(kHex[std::to_integer<unsigned>(bytes[i]) >> 4]);
    text.push_back(kHex[std::to_integer<unsigned>(bytes[i]) & 15]);
  }
  return text;
}

}  // namespace hearth

namespace hearth::detail {

Activation::Activation(const ClassTraits& traits, const hearth_class& definition,
                       const hearth_host* host, hearth_agent id, std::string_view name,
                       std::string_view options)
    : traits_(traits), definition_(definition), id_(id), name_(name), options_(options) {
  if (host == library_tables.host) {
    tables_ = &library_tables;
  } else {  // a test's host: there may be several in one process
    own_tables_ = std::make_unique<HostTables>();
    own_tables_->look_up(host);
    tables_ = own_tables_.get();
  }
}

void Activation::tell_error(std::string_view where) noexcept {
  if (!agent_) return;
  try {
    agent_->on_error(where, std::current_exception());
  } catch (...) {
    log(HEARTH_LOG_ERROR, "on_error failed: " + current_failure().text);
  }
}

Activation::~Activation() {
  // Rows of fibers stay: a fiber that is destroyed here was interrupted.
  while (!fibers_.empty()) fibers_.extract(std::prev(fibers_.end()));
  // Newest event first. A destructor in a frame may call the host, which answers CLOSING or GONE.
  std::vector<std::unique_ptr<Root>> events;
  events.reserve(roots_.size());
  for (auto& [call, root] : roots_) events.push_back(std::move(root));
  roots_.clear();
  std::ranges::sort(events, {}, &Root::number);
  while (!events.empty()) events.pop_back();
  kept_work_.clear();
  const Watch watch(*this);  // for tasks that the agent has as members
  agent_.reset();
}

}  // namespace hearth::detail
