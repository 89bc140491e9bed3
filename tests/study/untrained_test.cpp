// No names for heads that have learned nothing.
#include "headwise/data/text.hpp"
#include "headwise/study/study.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/models.hpp"

using namespace headwise;
using namespace headwise::study;

TEST_CASE("untrained heads get no names", "[study]") {
  const test::OneThread small;
  const Tokenizer tokenizer = Tokenizer::learn(TokenizerKind::word, builtin_text());
  Index heads = 0, named = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ModelConfig config{
        .vocab = tokenizer.vocab(), .layers = 2, .heads = 4, .width = 64, .context = 64};
    config.attention_only = seed % 2 == 0;
    if (seed % 4 < 2) config.init_std = 0.125;  // large enough for patterns that are far from even
    Rng rng(seed);
    const Decoder<float> model(config, rng);
    const Sequences data{{test::random_ids({20, 64}, config.vocab, seed),
                          test::random_ids({20, 64}, config.vocab, seed)},
                         std::vector<Index>(20, 64)};
    const Sets sets{.data = data,
                    .repeated = repeated_sequences(data, 20, 64, Id{0}, seed),
                    .stories = story_questions(tokenizer, 64, 100, seed)};
    for (const HeadStudy& head : study_heads(model, sets, seed)) {
      ++heads;
      named += head.role.has_value();
      if (head.role) UNSCOPED_INFO(seed << " " << name_of(head.id) << " " << head.label);
    }
  }
  CHECK(heads == 160);
  CHECK(named * 100 <= heads);
}
