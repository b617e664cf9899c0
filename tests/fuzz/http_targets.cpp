// Requests from clients, and what agents ask of other servers.
#include "base/authority.hpp"
#include "base/ip_address.hpp"
#include "extensions/trace.hpp"
#include "fuzz/targets.hpp"
#include "net/http_parser.hpp"
#include "net/http_text.hpp"
#include "net/outbound_target.hpp"
#include "protocol/agent_address.hpp"
#include "protocol/request_query.hpp"
#include "storage/agent_key.hpp"

#include <algorithm>
#include <optional>
#include <variant>

namespace hearth::fuzz {
namespace {

using net::HttpParser;

// The result of one request whose bytes come in two pieces.
struct Parsed {
  HttpParser::Step last = HttpParser::Step::kMore;
  std::string target, body;
  std::size_t headers = 0;

  bool operator==(const Parsed&) const = default;
};

Parsed parse_in_pieces(std::string_view bytes, std::size_t first) {
  net::NetOptions options;
  options.max_body = 1024;
  HttpParser parser(options);
  Parsed parsed;
  std::string_view rest = bytes.substr(0, first);
  for (bool is_last = false;;) {
    std::size_t used = 0;
    parsed.last = parser.feed(rest, used);
    require(used <= rest.size(), "no more bytes are used than there are");
    require(parser.body_size() <= options.max_body, "a body is bounded");
    rest.remove_prefix(used);
    if (parsed.last == HttpParser::Step::kHeadDone) continue;
    if (parsed.last != HttpParser::Step::kMore || is_last) break;
    rest = bytes.substr(std::min(first, bytes.size()) - rest.size());
    is_last = true;
  }
  if (parsed.last == HttpParser::Step::kRefused)
    require(parser.refusal().status >= 400, "a refusal is an error");
  if (parsed.last != HttpParser::Step::kDone) return parsed;
  const net::HttpRequest request = parser.take();
  (void)net::upgrade_fault(request);
  const bool is_ascii = std::ranges::all_of(request.target, [](char c) { return c > ' '; });
  require(is_ascii, "a target is ASCII");
  return {parsed.last, request.target, request.body, request.headers.size()};
}

}  // namespace

// The first byte says where the request is cut.
void http_request(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto cut = static_cast<std::size_t>(static_cast<unsigned char>(bytes.front()));
  const std::string_view request = bytes.substr(1);
  const Parsed whole = parse_in_pieces(request, request.size());
  const Parsed in_two = parse_in_pieces(request, std::min(cut, request.size()));
  require(whole.last != HttpParser::Step::kDone || in_two == whole,
          "a request does not depend on where its bytes are cut");
}

void agent_target(std::string_view bytes) {
  const auto address = protocol::parse_agent_address(bytes);
  (void)protocol::class_alone(bytes);
  const auto* found = std::get_if<protocol::AgentAddress>(&address);
  if (found == nullptr) return;
  require(protocol::name_problem(found->name, protocol::kDefaultMaxNameBytes).empty(),
          "the name of an address keeps the rules");
  const auto is_class = [](std::string_view segment) { return segment.size() < 5; };
  const auto steps = protocol::parse_sub_agents(found->rest, is_class);
  if (const auto* below = std::get_if<0>(&steps)) {
    require(below->size() <= protocol::kMaxSubAgentSteps, "the way down is bounded");
    for (const protocol::SubAgentStep& step : *below)
      require(storage::is_sub_agent_name(step.name), "a name below keeps the rules");
  }
  (void)protocol::connection_id(found->query);
  (void)protocol::asks_for_other_transport(found->query);
  const auto value = protocol::query_value(found->query, "a", 64);
  require(!value || value->size() <= 64, "a value is bounded");
}

void authority(std::string_view bytes) {
  if (const auto parsed = parse_authority(bytes)) {
    const bool is_v6 = parsed->host.find(':') != std::string::npos;
    std::string text = is_v6 ? "[" + parsed->host + "]" : parsed->host;
    if (!parsed->port.empty()) text += ":" + parsed->port;
    require(parse_authority(text) == *parsed, "an authority reads as what it was");
    (void)is_loopback_host(parsed->host);
  }
  (void)parse_origin(bytes);
  if (const auto address = parse_ip_host(bytes)) {
    require(parse_ip_address(to_text(*address)) == *address, "an address reads as what it was");
    const auto inner = embedded_v4(*address);
    require(!inner || is_public(*address) == is_public(*inner), "an address within is what counts");
  }
}

void outbound_url(std::string_view bytes) {
  const auto from = net::parse_target("https://example.com/a/b?c");
  for (const auto& target : {net::parse_target(bytes), net::resolve_location(*from, bytes)}) {
    if (!target) continue;
    const auto again = net::parse_target(target->url);
    require(again && again->url == target->url && again->has_origin_of(*target),
            "a target's URL leads to the same place");
    require(target->url.find_first_of(std::string_view("\r\n\0 ", 4)) == std::string::npos,
            "a URL stays on its line");
  }
  (void)net::parse_proxy(bytes);
}

// A line for the method, and one for each header.
void outbound_request(std::string_view bytes) {
  net::OutboundRequest request;
  const auto next_line = [&bytes] {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
    return line;
  };
  request.method = std::string(next_line());
  while (!bytes.empty()) {
    const std::string_view line = next_line();
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::string_view value = line.substr(std::min(colon + 1, line.size()));
    request.headers.push_back({std::string(line.substr(0, colon)), std::string(value)});
  }
  if (net::check_words(request).has_error()) return;
  for (const auto& header : request.headers) {
    const std::string text = header.name + header.value;
    require(text.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos,
            "a header that may leave is one line");
  }
  if (net::follow_redirect(request, 303, false).has_error()) return;
  require(net::check_words(request).has_value(), "a redirect asks for nothing wrong");
}

void traceparent(std::string_view bytes) {
  const std::string trace = extensions::valid_trace(bytes);
  const bool is_later = !bytes.starts_with("00");
  require(trace.empty() || (trace.size() == 55 && (is_later || trace == bytes)),
          "a trace is taken as it is");
  require(trace.empty() || trace.substr(3, 49) == bytes.substr(3, 49), "its ids are");
}

}  // namespace hearth::fuzz
