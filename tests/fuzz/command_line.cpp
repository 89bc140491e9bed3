// The command line's words, each of them ended by a NUL; nothing is done with what they say.
#include <algorithm>

#include "cli/options.hpp"
#include "fuzz/target.hpp"

namespace headwise::fuzz {
namespace {

constexpr cli::Command kEveryCommand[] = {
    {"train", "", cli::train_command}, {"sample", "", cli::sample_command},
    {"eval", "", cli::eval_command},   {"gradcheck", "", cli::gradcheck_command},
    {"study", "", cli::study_command}, {"data", "", cli::data_command},
    {"bench", "", cli::bench_command}, {"info", "", cli::info_command}};

}  // namespace

FUZZ_TARGET(command_line) {
  std::string texts(input);
  if (texts.empty() || texts.back() != '\0') texts += '\0';
  std::vector<const char*> words{"headwise"};
  for (std::size_t at = 0; at < texts.size(); at = texts.find('\0', at) + 1)
    words.push_back(texts.data() + at);
  accepted([&] {
    cli::CommonOptions common;
    must(cli::read_command_line(words, kEveryCommand, common) != nullptr,
         "words that are taken say what to do");
  });
}

}  // namespace headwise::fuzz
