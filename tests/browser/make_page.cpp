// Writes a page of `study` from a made-up document:  make_page FILE.html LAYERS HEADS TOKENS
// TOKENS 0: hostile ones, and a second, plain text. TOKENS bare: nothing but a text and the heads,
// and the pattern of the first one only.
#include <cstdio>
#include <cstdlib>

#include "cli/study_page.hpp"
#include "headwise/core/error.hpp"
#include "support/study_document.hpp"

using namespace headwise;

int main(int argc, char** argv) try {
  require<UsageError>(argc == 5, "make_page FILE.html LAYERS HEADS TOKENS");
  const Index layers = std::atoi(argv[2]), heads = std::atoi(argv[3]), tokens = std::atoi(argv[4]);
  const bool bare = std::string(argv[4]) == "bare";
  std::vector<std::vector<std::string>> texts{test::plain_tokens(tokens)};
  if (bare) texts = {test::plain_tokens(5)};
  if (tokens == 0 && !bare) texts = {test::hostile_tokens(), test::plain_tokens(40)};

  test::Json document = test::made_up_document(layers, heads, texts);
  std::vector<study::HeadId> drawn = test::made_up_heads(layers, heads);
  if (texts.size() > 1) document["texts"][1]["start"] = 100;
  if (bare) {
    document = {{"texts", document["texts"]}, {"heads", test::Json::array()}, {"timeline", {}}};
    for (const study::HeadId head : drawn)
      document["heads"].push_back({{"layer", head.layer}, {"head", head.head}, {"role", {}}});
    drawn.resize(1);
  }
  cli::write_study_page(argv[1], document, drawn,
                        [&](Index text, study::HeadId head, Index i, std::span<double> row) {
                          test::made_up_row(head, texts[static_cast<std::size_t>(text)], i, row);
                        });
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
