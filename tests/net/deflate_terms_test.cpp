#include "net/deflate_terms.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace hearth::net {
namespace {

// RFC 7692 section 7.1: an offer, and the answer to it; empty: it is declined.
struct OfferCase {
  std::string offers;
  std::string without_context;
  std::string with_context;
};

const std::string kNeither =
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover";

const std::vector<OfferCase>& offer_cases() {
  static const std::vector<OfferCase> cases = {
      {"permessage-deflate", kNeither, "permessage-deflate; client_no_context_takeover"},
      {"PERMESSAGE-DEFLATE", kNeither, "permessage-deflate; client_no_context_takeover"},
      {"permessage-deflate; client_max_window_bits", kNeither,
       "permessage-deflate; client_max_window_bits=12"},
      {"permessage-deflate;client_max_window_bits=15", kNeither,
       "permessage-deflate; client_max_window_bits=12"},
      {"permessage-deflate; client_max_window_bits=\"12\"", kNeither,
       "permessage-deflate; client_max_window_bits=12"},
      {"permessage-deflate; client_max_window_bits = 8", kNeither,
       "permessage-deflate; client_max_window_bits=8"},
      {"permessage-deflate; server_no_context_takeover; client_max_window_bits", kNeither,
       "permessage-deflate; server_no_context_takeover; client_max_window_bits=12"},
      {"permessage-deflate; Client_No_Context_Takeover; client_max_window_bits", kNeither,
       "permessage-deflate; client_no_context_takeover"},
      {"permessage-deflate; server_max_window_bits=12", kNeither + "; server_max_window_bits=12",
       "permessage-deflate; client_no_context_takeover; server_max_window_bits=12"},
      {"permessage-deflate; server_max_window_bits=15; client_max_window_bits=10",
       kNeither + "; server_max_window_bits=12",
       "permessage-deflate; server_max_window_bits=12; client_max_window_bits=10"},
      // The first offer that can be kept counts.
      {"permessage-deflate; server_max_window_bits=9, permessage-deflate", kNeither,
       "permessage-deflate; client_no_context_takeover"},
      {"x-webkit-deflate-frame, ,permessage-deflate; server_max_window_bits=14",
       kNeither + "; server_max_window_bits=12",
       "permessage-deflate; client_no_context_takeover; server_max_window_bits=12"},
      // What is not an offer.
      {"", "", ""},
      {"permessage-deflate2", "", ""},
      {"permessage-bzip2", "", ""},
      {"foo; bar=permessage-deflate", "", ""},
      {"permessage-deflate; unknown", "", ""},
      {"permessage-deflate;", kNeither, "permessage-deflate; client_no_context_takeover"},
      {"permessage-deflate; ; client_max_window_bits", "", ""},
      {"permessage-deflate; server_max_window_bits", "", ""},
      {"permessage-deflate; server_max_window_bits=11", "", ""},
      {"permessage-deflate; server_max_window_bits=16", "", ""},
      {"permessage-deflate; server_max_window_bits=7", "", ""},
      {"permessage-deflate; server_max_window_bits=012", "", ""},
      {"permessage-deflate; server_max_window_bits=+12", "", ""},
      {"permessage-deflate; client_max_window_bits=", "", ""},
      {"permessage-deflate; client_max_window_bits=1e1", "", ""},
      {"permessage-deflate; client_max_window_bits; client_max_window_bits=9", "", ""},
      {"permessage-deflate; server_max_window_bits=13; server_max_window_bits=13", "", ""},
      {"permessage-deflate; server_no_context_takeover; server_no_context_takeover", "", ""},
      {"permessage-deflate; server_no_context_takeover=1", "", ""},
      {"permessage-deflate; client_no_context_takeover=\"\"", "", ""},
  };
  return cases;
}

TEST(DeflateTermsTest, AnswerEachOfferAsTheRfcSays) {
  const auto answer = [](const std::string& offers, Compression wanted) {
    const auto terms = choose_deflate({{"Sec-WebSocket-Extensions", offers}}, wanted);
    return terms ? deflate_answer(*terms) : "";
  };
  for (const OfferCase& each : offer_cases()) {
    SCOPED_TRACE(each.offers);
    EXPECT_EQ(answer(each.offers, Compression::kNoContextTakeover), each.without_context);
    EXPECT_EQ(answer(each.offers, Compression::kContextTakeover), each.with_context);
    EXPECT_EQ(answer(each.offers, Compression::kNone), "");
  }
}

TEST(DeflateTermsTest, OffersMayStandInHeadersOfTheirOwn) {
  const HttpHeaders headers = {{"sec-websocket-extensions", "permessage-deflate; odd"},
                               {"Sec-WebSocket-Extensions", "permessage-deflate"}};
  EXPECT_TRUE(choose_deflate(headers, Compression::kNoContextTakeover));
  EXPECT_FALSE(choose_deflate({{"X", "permessage-deflate"}}, Compression::kNoContextTakeover));
}

}  // namespace
}  // namespace hearth::net
