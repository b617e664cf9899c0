#include <hearth/fetch.hpp>
#include <hearth/operation_kind.hpp>

#include <algorithm>

namespace hearth::detail {

bool same_header_name(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

std::optional<StoredAnswer> find_stored_answer(const Activation& activation, std::string_view id) {
  const auto& table = need(activation.tables().operations, HEARTH_EXT_OPERATIONS);
  hearth_bytes head = {nullptr, 0};
  hearth_bytes body = {nullptr, 0};
  const hearth_status status =
      table.answer(activation.host(), activation.id(), slice(id), &head, &body);
  if (status == HEARTH_E_NOT_FOUND) return std::nullopt;
  activation.check(status, "look at the answer to an operation");
  StoredAnswer stored;
  stored.answer.body = view(body);
  const Json read = parse_json(view(head));
  stored.can_resume = read.at("can_resume").get<bool>();
  stored.answer.whole = read.at("whole").get<bool>();
  const Json& its_head = read.at("head");
  if (its_head.is_null()) return stored;
  stored.answer.status = its_head.at("status").get<unsigned>();
  stored.answer.url = its_head.at("url").get<std::string>();
  stored.answer.headers = its_head.at("headers").get<HeaderList>();
  stored.answer.until_close = its_head.value("until_close", false);
  return stored;
}

std::optional<PartialAnswer> go_on_with_answer(Activation& activation, FetchRequest& request) {
  auto& kinds = activation.operation_kinds();
  const auto found = kinds.find(request.op);
  if (found == kinds.end()) return std::nullopt;
  const OperationKind& kind = *found->second;
  kinds.erase(found);  // the bytes that are stored from now on belong to this run
  if (kind.resume == nullptr) return std::nullopt;
  auto stored = find_stored_answer(activation, request.op);
  if (!stored || !stored->can_resume) return std::nullopt;
  PartialAnswer& answer = stored->answer;
  if (answer.whole) return std::move(answer);
  ResumedFetch resumed = kind.resume(request, answer);
  resumed.request.op = request.op;
  resumed.request.stop = request.stop;
  request = std::move(resumed.request);
  answer.body.resize(std::min(resumed.from, answer.body.size()));
  return std::move(answer);
}

void check_resumed(const Activation& activation, std::string_view id, std::string_view head,
                   PartialAnswer& answer) {
  const Json read = parse_json(head);
  answer.until_close = read.value("until_close", false);
  // The ledger has checked the head before the agent gets it.
  const auto stored = find_stored_answer(activation, id);
  if (stored && stored->can_resume) return;
  const auto status = read.at("status").get<unsigned>();
  throw FetchError(HEARTH_E_BUSY,
                   "the other side does not go on with its answer where it was cut off: it says " +
                       std::to_string(status),
                   FetchPhase::kHeaders, true);
}

}  // namespace hearth::detail

namespace hearth {

FetchResponse::FetchResponse(std::unique_ptr<detail::PartsOperation> operation,
                             std::string_view head)
    : operation_(std::move(operation)) {
  const Json read = parse_json(head);
  status_ = read.at("status").get<unsigned>();
  url_ = read.at("url").get<std::string>();
  headers_ = read.at("headers").get<HeaderList>();
  until_close_ = read.value("until_close", false);
}

FetchResponse::FetchResponse(std::unique_ptr<detail::PartsOperation> operation,
                             PartialAnswer stored) noexcept
    : operation_(std::move(operation)),
      status_(stored.status),
      url_(std::move(stored.url)),
      headers_(std::move(stored.headers)),
      until_close_(stored.until_close),
      stored_(std::move(stored.body)) {}

std::optional<std::string> FetchResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers_) {
    if (detail::same_header_name(key, name)) return value;
  }
  return std::nullopt;
}

Task<std::string> FetchResponse::text() {
  std::string all;
  while (auto piece = co_await next()) all += *piece;
  co_return all;
}

}  // namespace hearth
