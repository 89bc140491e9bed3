// Writes a page of `study` from a made-up document:  make_page FILE.html LAYERS HEADS TOKENS
// TOKENS 0: hostile ones, and a second, plain text.
#include <cstdlib>

#include "cli/study_page.hpp"
#include "headwise/core/error.hpp"
#include "support/study_document.hpp"

using namespace headwise;

int main(int argc, char** argv) try {
  require<UsageError>(argc == 5, "make_page FILE.html LAYERS HEADS TOKENS");
  const Index layers = std::atoi(argv[2]), heads = std::atoi(argv[3]), tokens = std::atoi(argv[4]);
  std::vector<std::vector<std::string>> texts{tokens == 0 ? test::hostile_tokens()
                                                          : test::plain_tokens(tokens)};
  if (tokens == 0) texts.push_back(test::plain_tokens(40));
  cli::write_study_page(argv[1], test::made_up_document(layers, heads, texts),
                        test::made_up_heads(layers, heads),
                        [&](Index text, study::HeadId head, Index i, std::span<double> row) {
                          test::made_up_row(head, texts[static_cast<std::size_t>(text)], i, row);
                        });
} catch (const Error& e) {
  std::fputs(e.what(), stderr);
  std::fputs("\n", stderr);
  return 1;
}
