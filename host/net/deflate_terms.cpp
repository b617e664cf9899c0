#include "net/deflate_terms.hpp"

#include "base/http_token.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace hearth::net {
namespace {

constexpr int kLargestWindowBits = 15;

// Removes and returns the text before the next `separator`.
std::string_view take_part(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return trimmed(part);
}

// RFC 7692 7.1.2: from 8 to 15, without leading zeros.
std::optional<int> parse_window_bits(std::string_view text) {
  if (text.size() == 1 && (text == "8" || text == "9")) return text[0] - '0';
  if (text.size() == 2 && text[0] == '1' && text[1] >= '0' && text[1] <= '5') {
    return 10 + (text[1] - '0');
  }
  return std::nullopt;
}

// The parameters of one offer.
struct DeflateOffer {
  bool server_no_context = false;
  bool client_no_context = false;
  std::optional<int> server_window_bits;
  std::optional<int> client_window_bits;  // the largest, if the client names none
};

// False: the offer is not valid.
bool read_parameter(std::string_view text, DeflateOffer& offer) {
  const std::size_t equals = text.find('=');
  const bool has_value = equals != std::string_view::npos;
  const std::string_view name = trimmed(text.substr(0, equals));
  std::string_view value = has_value ? trimmed(text.substr(equals + 1)) : "";
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    value = value.substr(1, value.size() - 2);
  }
  const auto take_flag = [&](bool& flag) { return !has_value && !std::exchange(flag, true); };
  const auto take_bits = [&](std::optional<int>& bits) {
    if (bits) return false;
    bits = parse_window_bits(value);
    return bits.has_value();
  };
  if (equal_ignoring_case(name, "server_no_context_takeover")) {
    return take_flag(offer.server_no_context);
  }
  if (equal_ignoring_case(name, "client_no_context_takeover")) {
    return take_flag(offer.client_no_context);
  }
  if (equal_ignoring_case(name, "server_max_window_bits")) {
    return take_bits(offer.server_window_bits);
  }
  if (equal_ignoring_case(name, "client_max_window_bits")) {
    if (has_value) return take_bits(offer.client_window_bits);
    if (offer.client_window_bits) return false;
    offer.client_window_bits = kLargestWindowBits;
    return true;
  }
  return false;
}

std::optional<DeflateOffer> read_offer(std::string_view text) {
  if (!equal_ignoring_case(take_part(text, ';'), "permessage-deflate")) return std::nullopt;
  DeflateOffer offer;
  while (!text.empty()) {
    if (!read_parameter(take_part(text, ';'), offer)) return std::nullopt;
  }
  return offer;
}

std::optional<DeflateTerms> accept_offer(const DeflateOffer& offer, Compression wanted) {
  if (offer.server_window_bits.value_or(kLargestWindowBits) < kDeflateWindowBits) {
    return std::nullopt;
  }
  const bool with_context = wanted == Compression::kContextTakeover;
  DeflateTerms terms;
  terms.tells_server_window = offer.server_window_bits.has_value();
  terms.server_keeps_context = with_context && !offer.server_no_context;
  terms.client_keeps_context =
      with_context && !offer.client_no_context && offer.client_window_bits.has_value();
  if (terms.client_keeps_context) {
    terms.client_window_bits = std::min(*offer.client_window_bits, kDeflateWindowBits);
  }
  return terms;
}

}  // namespace

std::optional<DeflateTerms> choose_deflate(const HttpHeaders& headers, Compression wanted) {
  if (wanted == Compression::kNone) return std::nullopt;
  for (const HttpHeader& header : headers) {
    if (!equal_ignoring_case(header.name, "Sec-WebSocket-Extensions")) continue;
    std::string_view rest = header.value;
    while (!rest.empty()) {
      const auto offer = read_offer(take_part(rest, ','));
      if (!offer) continue;
      if (auto terms = accept_offer(*offer, wanted)) return terms;
    }
  }
  return std::nullopt;
}

std::string deflate_answer(const DeflateTerms& terms) {
  std::string answer = "permessage-deflate";
  if (!terms.server_keeps_context) answer += "; server_no_context_takeover";
  if (!terms.client_keeps_context) answer += "; client_no_context_takeover";
  if (terms.tells_server_window) {
    answer += "; server_max_window_bits=" + std::to_string(kDeflateWindowBits);
  }
  if (terms.client_window_bits) {
    answer += "; client_max_window_bits=" + std::to_string(*terms.client_window_bits);
  }
  return answer;
}

}  // namespace hearth::net
