// What clients send on a WebSocket: frames, compressed or not, JSON.
#include "fuzz/targets.hpp"
#include "json/json.hpp"
#include "json/json_scanner.hpp"
#include "json/json_text.hpp"
#include "net/deflate_terms.hpp"
#include "net/message_deflate.hpp"
#include "net/packed_frames.hpp"
#include "protocol/client_frame.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <variant>

namespace hearth::fuzz {

void client_frame(std::string_view bytes) {
  std::string mended;
  const protocol::ClientFrame frame = protocol::classify_client_frame(bytes, mended);
  if (const auto* call = std::get_if<protocol::RpcCall>(&frame)) {
    const std::string id(call->id_json);  // as it came
    require(is_json(without_lone_surrogates(id).value_or(id)), "the id is JSON");
    require(!call->problem.empty() || parse_json(call->args_json).has_value(),
            "arguments are JSON, or the call has a problem");
  } else if (const auto* write = std::get_if<protocol::StateWrite>(&frame)) {
    require(!write->problem.empty() || parse_json(write->state_json).has_value(),
            "a state is JSON, or the write has a problem");
  }
}

void deflate_offer(std::string_view bytes) {
  const net::HttpHeaders headers = {{"Sec-WebSocket-Extensions", std::string(bytes)}};
  for (const auto wanted :
       {net::Compression::kNoContextTakeover, net::Compression::kContextTakeover}) {
    const auto terms = net::choose_deflate(headers, wanted);
    if (!terms) continue;
    const net::HttpHeaders answer = {{"Sec-WebSocket-Extensions", net::deflate_answer(*terms)}};
    require(net::choose_deflate(answer, wanted).has_value(), "an answer would do as an offer");
  }
}

// The first byte says where the bytes are cut into two messages of one context.
void deflate_message(std::string_view bytes) {
  constexpr std::size_t kMost = 20'000;
  const std::size_t first = bytes.empty() ? 0 : static_cast<unsigned char>(bytes.front());
  ClientMemory memory(std::size_t{1} << 20);
  HeldBytes held(memory);
  net::MessageInflater inflater(net::kDeflateWindowBits);
  std::string message;
  for (const std::string_view each :
       {bytes.substr(0, first), bytes.substr(std::min(first, bytes.size()))}) {
    const net::Unpacked outcome = inflater.unpack(each, kMost, message, held);
    require(message.size() <= kMost + 1, "no more is unpacked than a message may have");
    require(outcome != net::Unpacked::kWhole || message.size() <= kMost, "too long is refused");
    if (outcome != net::Unpacked::kWhole) inflater.forget();
  }
}

void json_text(std::string_view bytes) {
  const auto parsed = parse_json(bytes);
  const bool has_mark = bytes.starts_with("\xef\xbb\xbf");
  require(has_mark || is_json(bytes) == parsed.has_value(), "is_json() agrees with parse_json()");
  std::array<WantedMember, 2> wanted = {{{.name = "type", .json = {}}, {.name = "a", .json = {}}}};
  const bool is_object = parsed.has_value() && parsed->is_object();
  require(has_mark || scan_json_object(bytes, wanted) == is_object,
          "scan_json_object() takes what is an object to parse_json()");
  (void)scan_unbounded_json_object(bytes, wanted);
  (void)without_lone_surrogates(bytes);
  if (parsed) {
    const auto again = parse_json(dump_json(*parsed));
    require(again.has_value() && *again == *parsed, "what is printed reads as what it was");
  }
  std::string quoted;
  append_json_string(quoted, bytes);
  const auto string = parse_json(quoted);
  require(string.has_value() && string->is_string(), "any bytes are a string once they are quoted");
  require(quoted.size() <= bytes.size() * 6 + 2, "six bytes for one at most");
}

// The first byte says how many of the others come at a time.
void packed_frames(std::string_view bytes) {
  const std::size_t step = bytes.empty() ? 1 : 1 + static_cast<unsigned char>(bytes.front()) % 32;
  net::PackedFrames at_once;
  net::PackedFrames in_pieces;
  std::string whole(bytes.substr(std::min<std::size_t>(1, bytes.size())));
  std::string cut = whole;
  at_once.pass(whole);
  for (std::size_t at = 0; at < cut.size(); at += step) {
    in_pieces.pass(std::span(cut).subspan(at, std::min(step, cut.size() - at)));
  }
  require(whole == cut, "it does not matter how the bytes are cut");
}

}  // namespace hearth::fuzz
