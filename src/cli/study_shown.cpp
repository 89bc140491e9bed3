#include "cli/study_shown.hpp"

#include <fmt/format.h>

#include "cli/json.hpp"
#include "headwise/core/safetensors.hpp"
#include "headwise/study/attribution.hpp"
#include "headwise/study/lens.hpp"
#include "headwise/study/recording.hpp"
#include "headwise/study/value_norms.hpp"

namespace headwise::cli {

using nlohmann::json;
using study::Sequences;

namespace {

/// Likeliest tokens of the logit lens that are kept.
constexpr Index kLensTop = 3;

/// The numbers of a range of a row.
template <Real T>
json numbers(const T* row, const Range& range) {
  json all = json::array();
  for (Index i = range.begin; i < range.end; ++i)
    all.push_back(number(static_cast<double>(row[i])));
  return all;
}

/// What follows each token; after the last the likeliest token.
template <Real T>
Ids targets_of(const Decoder<T>& model, const std::vector<Id>& ids) {
  const Tensor<T> logits = model({}, study::as_batch(ids)).value();
  const auto last = logits.values().last(static_cast<std::size_t>(model.config.vocab));
  std::vector<Id> targets(ids.begin() + 1, ids.end());
  targets.push_back(static_cast<Id>(std::max_element(last.begin(), last.end()) - last.begin()));
  return study::as_batch(targets);
}

template <Real T>
json attribution_of(const Decoder<T>& model, const ShownText& text) {
  const auto found =
      study::attribute_logits(model, study::as_batch(text.ids), targets_of(model, text.ids));
  const Index time = std::ssize(text.ids);
  json values = json::array();
  for (Index c = 0; c < std::ssize(found.components); ++c)
    values.push_back(numbers(found.values.data() + c * time, text.range));
  return {{"components", found.components},
          {"logits", numbers(found.logits.data(), text.range)},
          {"remainder", numbers(found.remainder.data(), text.range)},
          {"values", std::move(values)}};
}

template <Real T>
json lens_of(const Decoder<T>& model, const Tokenizer& tokenizer, const ShownText& text) {
  json layers = json::array(), top = json::array();
  for (const study::LensLayer& layer : study::logit_lens(model, study::as_batch(text.ids),
                                                         std::min(kLensTop, model.config.vocab))) {
    layers.push_back(layer.name);
    json positions = json::array();
    for (Index i = text.range.begin; i < text.range.end; ++i) {
      json guesses = json::array();
      for (const study::Guess& g : layer.top[static_cast<std::size_t>(i)])
        guesses.push_back(
            {{"id", g.id}, {"token", token_text(tokenizer, g.id)}, {"p", number(g.p)}});
      positions.push_back(std::move(guesses));
    }
    top.push_back(std::move(positions));
  }
  return {{"layers", std::move(layers)}, {"top", std::move(top)}};
}

template <Real T>
json value_norms_of(const Decoder<T>& model, const ShownText& text) {
  std::set<std::string, std::less<>> names;
  for (Index layer = 0; layer < model.config.layers; ++layer)
    names.insert(study::attention_name(layer, "v"));
  study::Recording<T> seen(names);
  model({.probe = &seen}, study::as_batch(text.ids));
  json heads = json::object();
  const Index time = std::ssize(text.ids);
  for (const study::HeadId id : study::heads_of(model.config)) {
    const Tensor<double> norms =
        study::value_norms(model.blocks[static_cast<std::size_t>(id.layer)].attn,
                           seen[study::attention_name(id.layer, "v")]);
    heads[name_of(id)] = numbers(norms.data() + id.head * time, text.range);
  }
  return {{"heads", std::move(heads)}};
}

/// A set's name in a file of patterns, and its sequences.
struct NamedSet {
  std::string name;
  const Sequences* sequences;
};

std::vector<NamedSet> named_sets(const study::Sets& sets) {
  std::vector<NamedSet> all{{"data", &sets.data}};
  if (sets.repeated) all.push_back({"repeated", &*sets.repeated});
  return all;
}

template <Real T>
std::vector<TensorFileStream::Item> items_of(const std::vector<NamedSet>& sets,
                                             const Selection& selection) {
  std::vector<TensorFileStream::Item> items;
  for (const auto& [name, sequences] : sets) {
    const Index count = sequences->count();
    const Range range = selection.range.within(sequences->time());
    const Index time = range.end - range.begin;
    items.push_back({name + ".ids", "I64", {count, time}});
    items.push_back({name + ".targets", "I64", {count, time}});
    items.push_back({name + ".lengths", "I64", {count}});
    for (const Index layer : selection.layers)
      items.push_back({fmt::format("{}.{}", name, study::attention_name(layer, "pattern")),
                       std::is_same_v<T, float> ? "F32" : "F64",
                       {count, std::ssize(selection.heads), time, time}});
  }
  return items;
}

std::uintmax_t bytes_of(const std::vector<TensorFileStream::Item>& items) {
  std::uintmax_t bytes = 0;
  for (const auto& item : items)
    bytes += static_cast<std::uintmax_t>(item.shape.size()) * (item.dtype == "F32" ? 4 : 8);
  return bytes;
}

}  // namespace

std::vector<ShownText> shown_texts(const study::Sets& sets, const std::string& data, bool given,
                                   const Range& range) {
  std::vector<ShownText> texts;
  const auto add = [&](const Sequences& s, const std::string& name, const std::string& title) {
    const auto ids = s.ids(0);
    texts.push_back({name, title, {ids.begin(), ids.end()}, range.within(std::ssize(ids))});
  };
  if (given)
    add(sets.data, "text", data);
  else
    add(sets.data, "data", fmt::format("{}, sequence 1 of {}", data, sets.data.count()));
  if (sets.repeated)
    add(*sets.repeated, "repeated",
        fmt::format("repeated random tokens, sequence 1 of {}", sets.repeated->count()));
  return texts;
}

std::string token_text(const Tokenizer& tokenizer, Id id) {
  const std::string text = tokenizer.decode({id});
  const bool part = text.size() == 1 && static_cast<unsigned char>(text[0]) >= 0x80;
  return part ? fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0])) : text;
}

template <Real T>
json json_of(const Decoder<T>& model, const Tokenizer& tokenizer,
             const std::vector<ShownText>& texts) {
  json all;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const ShownText& text = texts[i];
    json tokens = json::array(), ids = json::array();
    for (Index t = text.range.begin; t < text.range.end; ++t) {
      ids.push_back(text.ids[static_cast<std::size_t>(t)]);
      tokens.push_back(token_text(tokenizer, text.ids[static_cast<std::size_t>(t)]));
    }
    all["texts"].push_back({{"name", text.name},
                            {"title", text.title},
                            {"tokens", std::move(tokens)},
                            {"ids", std::move(ids)},
                            {"start", text.range.begin}});
    const auto keep = [&](const char* key, json found) {
      found["text"] = i;
      all[key].push_back(std::move(found));
    };
    keep("attribution", attribution_of(model, text));
    keep("lens", lens_of(model, tokenizer, text));
    keep("value_norms", value_norms_of(model, text));
  }
  return all;
}

template <Real T>
void PatternsOfTexts<T>::row(Index text, study::HeadId head, Index i, std::span<double> to) {
  const ShownText& shown = texts_[static_cast<std::size_t>(text)];
  if (text != text_ || head.layer != layer_) {
    const std::string name = study::attention_name(head.layer, "pattern");
    study::Recording<T> seen({name});
    model_({.probe = &seen}, study::as_batch(shown.ids));
    pattern_ = seen[name];
    text_ = text;
    layer_ = head.layer;
  }
  const Index time = std::ssize(shown.ids);
  const T* const from = std::as_const(pattern_).data() +
                        (head.head * time + shown.range.begin + i) * time + shown.range.begin;
  std::copy_n(from, to.size(), to.begin());
}

template <Real T>
std::uintmax_t patterns_size(const study::Sets& sets, const Selection& selection) {
  const std::uintmax_t bytes = bytes_of(items_of<T>(named_sets(sets), selection));
  require<UsageError>(bytes <= kPatternsLimit,
                      "--patterns: {} MB are more than {} MB; choose with --layers, --heads, "
                      "--range or fewer --sequences",
                      bytes / 1'000'000, kPatternsLimit / 1'000'000);
  return bytes;
}

template <Real T>
void write_patterns(const std::string& path, const Decoder<T>& model, const study::Sets& sets,
                    const Selection& selection) {
  (void)patterns_size<T>(sets, selection);
  const std::vector<NamedSet> all = named_sets(sets);
  TensorFileStream file(path, items_of<T>(all, selection));
  for (const auto& [name, sequences] : all) {
    const Index time = sequences->time(), width = model.config.heads;
    const Range range = selection.range.within(time);
    const auto row_of = [&](const auto* row) {
      return std::span(row + range.begin, static_cast<std::size_t>(range.end - range.begin));
    };
    for (const Ids* of : {&sequences->batch.inputs, &sequences->batch.targets}) {
      const std::vector<std::int64_t> ids(of->values.begin(), of->values.end());
      for (Index b = 0; b < sequences->count(); ++b) file.write(row_of(ids.data() + b * time));
    }
    file.write(std::vector<std::int64_t>(sequences->lengths.begin(), sequences->lengths.end()));
    study::for_each_pattern<T>(model, *sequences, [&](const study::SeenLayer<T>& seen) {
      if (!std::binary_search(selection.layers.begin(), selection.layers.end(), seen.layer)) return;
      for (Index b = 0; b < seen.pattern.shape()[0]; ++b)
        for (const Index head : selection.heads)
          for (Index i = range.begin; i < range.end; ++i)
            file.write(row_of(seen.pattern.data() + ((b * width + head) * time + i) * time));
    });
  }
  file.finish();
}

#define HEADWISE_INSTANTIATE(T)                                                              \
  template json json_of(const Decoder<T>&, const Tokenizer&, const std::vector<ShownText>&); \
  template class PatternsOfTexts<T>;                                                         \
  template std::uintmax_t patterns_size<T>(const study::Sets&, const Selection&);            \
  template void write_patterns(const std::string&, const Decoder<T>&, const study::Sets&,    \
                               const Selection&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise::cli
