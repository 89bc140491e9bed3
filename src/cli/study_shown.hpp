// Texts that are shown token by token: their patterns, and what is told of each position.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/study_page.hpp"
#include "cli/study_selection.hpp"
#include "headwise/data/tokenizer.hpp"
#include "headwise/study/study.hpp"

namespace headwise::cli {

struct ShownText {
  std::string name, title;
  std::vector<Id> ids;  ///< the whole text, as the model reads it
  Range range;          ///< the part that is shown
};

/// The first sequence of each set. `data` says what the data is; `given`: one text of the user's.
std::vector<ShownText> shown_texts(const study::Sets& sets, const std::string& data, bool given,
                                   const Range& range);

/// A token as text: its characters; for a byte that is no character by itself, "\xe9".
std::string token_text(const Tokenizer& tokenizer, Id id);

/// The keys "texts", "attribution", "lens" and "value_norms" of the document.
template <Real T>
nlohmann::json json_of(const Decoder<T>& model, const Tokenizer& tokenizer,
                       const std::vector<ShownText>& texts);

/// Patterns of the texts, computed a layer at a time as they are asked for.
template <Real T>
class PatternsOfTexts {
 public:
  PatternsOfTexts(const Decoder<T>& model, const std::vector<ShownText>& texts)
      : model_(model), texts_(texts) {}

  /// A[i,j] for the keys j of the text's range up to query i, counted from the range's begin.
  void row(Index text, study::HeadId head, Index i, std::span<double> to);

 private:
  const Decoder<T>& model_;
  const std::vector<ShownText>& texts_;
  Index text_ = -1, layer_ = -1;  // whose pattern is at hand
  Tensor<T> pattern_;             // (1,H,T,T)
};

/// The bytes of the numbers that write_patterns() will write. Throws UsageError for more than
/// kPatternsLimit.
template <Real T>
std::uintmax_t patterns_size(const study::Sets& sets, const Selection& selection);

/// Writes the patterns (B,H,T,T) of a selection, set by set and layer by layer, as
/// "data.blocks.0.attn.pattern", with the tokens "data.ids" (B,T), what was to follow them,
/// "data.targets" (B,T), kIgnore where nothing counts, and "data.lengths" (B); likewise "repeated".
/// From these and the weights others can check the figures (tests/golden/study_scores.py does).
/// Holds the patterns of one block of sequences. Throws as patterns_size() does.
template <Real T>
void write_patterns(const std::string& path, const Decoder<T>& model, const study::Sets& sets,
                    const Selection& selection);

/// The largest file of patterns, in bytes.
inline constexpr std::uintmax_t kPatternsLimit = 4'000'000'000;

}  // namespace headwise::cli
