#include "headwise/data/tokenizer.hpp"

#include "fuzz/target.hpp"

namespace headwise::fuzz {

/// The first byte chooses kind and least count, the rest is the text.
FUZZ_TARGET(tokenizer) {
  if (input.empty()) return;
  const auto byte = static_cast<unsigned char>(input[0]);
  const auto kind = static_cast<TokenizerKind>(byte % 3);
  const std::string_view text = input.substr(1), half = text.substr(0, text.size() / 2);

  accepted([&] {
    const Tokenizer t = Tokenizer::learn(kind, text, byte / 3 % 4);
    const std::vector<Id> ids = t.encode(text);
    must(t.decode(ids) == text, "decode(encode(x)) == x");
    must(t.bytes(ids) == std::ssize(text), "bytes() are those of the text");
    for (const Id id : ids) must(id >= 0 && id < t.vocab(), "an id is below vocab()");
    const bool bytes = kind == TokenizerKind::byte;
    const Tokenizer again =
        Tokenizer::from_tokens(kind, bytes ? std::vector<std::string>() : t.tokens());
    must(again.encode(text) == ids, "from_tokens() is the same tokenizer");
  });
  accepted([&] {  // a text that it did not learn from
    const Tokenizer t = Tokenizer::learn(kind, half);
    must(t.decode(t.encode(text)) == text, "decode(encode(x)) == x");
  });
  accepted([&] {  // tokens of a file are any strings
    std::vector<std::string> tokens{""};
    for (const char c : text)
      if (c == '\n')
        tokens.emplace_back();
      else
        tokens.back() += c;
    const Tokenizer t = Tokenizer::from_tokens(kind, tokens);
    must(t.decode(t.encode(tokens[0])) == tokens[0], "a token is decoded as it was encoded");
  });
}

}  // namespace headwise::fuzz
