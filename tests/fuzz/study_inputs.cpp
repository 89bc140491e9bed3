// What the command study reads besides a run: lists, ranges, names of heads, prompts, short texts.
#include "cli/study_selection.hpp"
#include "fuzz/target.hpp"
#include "headwise/study/sequences.hpp"

namespace headwise::fuzz {
namespace {

/// Takes the first line off a text.
std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

void check(const study::Sequences& s, Index vocab) {
  must(s.count() >= 1 && std::ssize(s.lengths) == s.count(), "each sequence has a length");
  for (Index b = 0; b < s.count(); ++b)
    for (const Id id : s.ids(b)) must(id >= 0 && id < vocab, "a token is one of the vocabulary");
}

}  // namespace

FUZZ_TARGET(selection) {
  std::string_view rest = input;
  const std::string list(next_line(rest)), range(next_line(rest)), head(rest);
  accepted([&] {
    const std::vector<Index> chosen = cli::parse_list("--layers", list, 12);
    must(!chosen.empty() && std::is_sorted(chosen.begin(), chosen.end()), "a list is sorted");
    must(chosen.front() >= 0 && chosen.back() < 12, "a number is below the count");
  });
  accepted([&] {
    const cli::Range r = cli::Range::parse("--range", range).within(100);
    must(r.begin >= 0 && r.begin < r.end && r.end <= 100, "a range is within the text");
  });
  accepted([&] {
    const ModelConfig config{.layers = 12, .heads = 12};
    const study::HeadId id = study::head_of("--show", head, config);
    must(id.layer >= 0 && id.layer < 12 && id.head >= 0 && id.head < 12, "a head is the model's");
  });
}

/// The first byte is the context, the second the kind of tokens, the rest a text.
FUZZ_TARGET(sequences) {
  if (input.size() < 2) return;
  const Index context = 1 + static_cast<unsigned char>(input[0]) % 64;
  const auto kind = static_cast<TokenizerKind>(static_cast<unsigned char>(input[1]) % 3);
  const std::string_view text = input.substr(2);
  accepted([&] {
    const Tokenizer t = Tokenizer::learn(kind, text);
    const std::vector<Id> ids = t.encode(text);
    accepted([&] { check(study::one_sequence(ids), t.vocab()); });
    // All of the text, as study --data has it, then a part held back.
    const TextSource whole(Split{ids, ids, true}, context);
    const study::Sequences seen = study::data_sequences(whole, 8, 1);
    check(seen, t.vocab());
    if (const auto repeated = study::repeated_sequences(seen, 4, context, ids[0], 1))
      check(*repeated, t.vocab());
    check(study::data_sequences(TextSource(ids, context), 8, 1), t.vocab());
  });
}

}  // namespace headwise::fuzz
