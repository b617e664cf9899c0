#include "storage/full_text_rank.hpp"

#include "storage/step_budget.hpp"

#include <sqlite3.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hearth::storage {
namespace {

// The constants of sqlite.org/fts5.html.
constexpr double kK1 = 1.2;
constexpr double kB = 0.75;
// For a phrase that is in half of the rows or more: it still counts a little.
constexpr double kLeastRarity = 1e-6;

constexpr std::int64_t kMostRows = std::int64_t{1} << 26;
constexpr std::size_t kWorkPerRow = 64;  // some 20 ns

// The values that are equal for all rows of a query. FTS5 keeps them.
struct QueryFigures {
  double average_size = 1;     // of a row, in tokens
  std::vector<double> rarity;  // of each phrase: the inverse document frequency
};

struct RowCount {
  std::int64_t rows = 0;
  std::int64_t most = 0;
};

int count_row(const Fts5ExtensionApi* /*api*/, Fts5Context* /*row*/, void* to) {
  if (!StepBudget::has_time_for(kWorkPerRow)) return SQLITE_INTERRUPT;
  auto& count = *static_cast<RowCount*>(to);
  return ++count.rows > count.most ? SQLITE_TOOBIG : SQLITE_OK;
}

int measure(const Fts5ExtensionApi& api, Fts5Context* row, QueryFigures& figures) {
  sqlite3_int64 rows = 0;
  sqlite3_int64 tokens = 0;
  if (const int code = api.xRowCount(row, &rows); code != SQLITE_OK) return code;
  if (const int code = api.xColumnTotalSize(row, -1, &tokens); code != SQLITE_OK) return code;
  figures.average_size = static_cast<double>(tokens) / static_cast<double>(rows);
  std::int64_t left = kMostRows;
  for (int phrase = 0; phrase < api.xPhraseCount(row); ++phrase) {
    RowCount with_it{.most = left};
    const int code = api.xQueryPhrase(row, phrase, &with_it, count_row);
    if (code != SQLITE_OK) return code;
    left -= with_it.rows;
    const auto have = static_cast<double>(with_it.rows);
    const double rarity = std::log((static_cast<double>(rows) - have + 0.5) / (have + 0.5));
    figures.rarity.push_back(rarity > 0 ? rarity : kLeastRarity);
  }
  return SQLITE_OK;
}

const QueryFigures* figures_of_query(const Fts5ExtensionApi& api, Fts5Context* row, int& code) {
  if (const auto* kept = static_cast<const QueryFigures*>(api.xGetAuxdata(row, 0))) return kept;
  auto made = std::make_unique<QueryFigures>();
  code = measure(api, row, *made);
  if (code != SQLITE_OK) return nullptr;
  const QueryFigures* const figures = made.get();
  // FTS5 deletes it when the query ends, or at once if it cannot keep it.
  code = api.xSetAuxdata(row, made.release(),
                         [](void* kept) { delete static_cast<QueryFigures*>(kept); });
  return code == SQLITE_OK ? figures : nullptr;
}

// The matches of a phrase in the row, each with the weight of its column.
int weigh_matches(const Fts5ExtensionApi& api, Fts5Context* row, int phrase,
                  const std::vector<double>& weights, double& sum) {
  Fts5PhraseIter at{};
  int column = 0;
  int token = 0;
  const int code = api.xPhraseFirst(row, phrase, &at, &column, &token);
  if (code != SQLITE_OK) return code;
  for (; column >= 0; api.xPhraseNext(row, &at, &column, &token)) {
    const auto place = static_cast<std::size_t>(column);
    sum += place < weights.size() ? weights[place] : 1.0;
  }
  return SQLITE_OK;
}

int rank(const Fts5ExtensionApi& api, Fts5Context* row, const std::vector<double>& weights,
         double& score) {
  int code = SQLITE_OK;
  const QueryFigures* const figures = figures_of_query(api, row, code);
  if (figures == nullptr) return code;
  int size = 0;
  if (code = api.xColumnSize(row, -1, &size); code != SQLITE_OK) return code;
  const double length = kK1 * (1 - kB + kB * size / figures->average_size);
  for (std::size_t phrase = 0; phrase < figures->rarity.size(); ++phrase) {
    double matches = 0;
    code = weigh_matches(api, row, static_cast<int>(phrase), weights, matches);
    if (code != SQLITE_OK) return code;
    score -= figures->rarity[phrase] * ((matches * (kK1 + 1)) / (matches + length));
  }
  return SQLITE_OK;
}

}  // namespace

void rank_by_bm25(const Fts5ExtensionApi* api, Fts5Context* row, sqlite3_context* context,
                  int count, sqlite3_value** weights) {
  std::vector<double> of_columns;
  of_columns.reserve(static_cast<std::size_t>(count));
  for (int column = 0; column < count; ++column)
    of_columns.push_back(sqlite3_value_double(weights[column]));
  double score = 0;
  const int code = rank(*api, row, of_columns, score);
  if (code != SQLITE_OK) return sqlite3_result_error_code(context, code);
  sqlite3_result_double(context, score);
}

}  // namespace hearth::storage
