#include "headwise/study/patching.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "headwise/core/parallel.hpp"
#include "headwise/study/recording.hpp"
#include "headwise/study/sequences.hpp"
#include "study/columns.hpp"

namespace headwise::study {
namespace {

/// Copy b of the prompt gets the clean z of a head at position first + b.
template <Real T>
class Patch : public Probe<T> {
 public:
  Patch(HeadId head, Index heads, const Tensor<T>& clean_z, Index first)
      : name_(attention_name(head.layer, "z")),
        head_(head.head),
        heads_(heads),
        clean_(clean_z),
        first_(first) {}
  [[nodiscard]] bool wants(std::string_view name) const override { return name == name_; }
  Var<T> at(std::string_view, Var<T> x) override {
    const Index time = x.shape()[1];
    return with_head(std::move(x), head_, heads_, [&](Index row, std::span<T> out) {
      const Index position = row % time;
      if (position != first_ + row / time) return;
      const std::span<const T> in = head_of_row(clean_, position, head_, heads_);
      std::copy(in.begin(), in.end(), out.begin());
    });
  }

 private:
  std::string name_;
  Index head_, heads_;
  const Tensor<T>& clean_;
  Index first_;
};

/// x (1,T,C) n times: (n,T,C).
template <Real T>
Var<T> copies(const Tensor<T>& x, Index n) {
  return concat(std::vector<Var<T>>(static_cast<std::size_t>(n), Var<T>(x)), 0);
}

void require_prompts(const std::vector<Id>& clean, const std::vector<Id>& corrupt, Index context) {
  require<ParameterError>(!clean.empty(), "clean: the prompt has no tokens");
  require<ParameterError>(clean.size() == corrupt.size(),
                          "corrupt: {} tokens, but clean has {}; patching takes a position of one "
                          "prompt to the same position of the other",
                          corrupt.size(), clean.size());
  require<ParameterError>(static_cast<Index>(clean.size()) <= context,
                          "clean: {} tokens do not fit the model's context of {}", clean.size(),
                          context);
}

/// The logits (V) after the last token of logits (1,T,V).
template <Real T>
std::span<const T> last_row(const Tensor<T>& logits) {
  return logits.values().last(static_cast<std::size_t>(logits.shape().last()));
}

template <Real T>
Id likeliest(std::span<const T> logits) {
  return static_cast<Id>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

template <Real T>
double logit(std::span<const T> logits, Id id) {
  return static_cast<double>(logits[static_cast<std::size_t>(id)]);
}

/// M.
template <Real T>
double difference(std::span<const T> logits, const Patching& p) {
  return logit(logits, p.answer) - logit(logits, p.wrong);
}

/// Everything but the effects, from the logits (V) after each prompt.
template <Real T>
Patching answered(std::span<const T> clean, std::span<const T> corrupt, const Answers& answers) {
  Patching p;
  p.answer = answers.answer.value_or(likeliest(clean));
  p.wrong = answers.wrong.value_or(likeliest(corrupt));
  for (const Id id : {p.answer, p.wrong})
    require(id >= 0 && id < static_cast<Id>(clean.size()), "patching: answer {} is not in [0, {})",
            id, clean.size());
  require<ParameterError>(
      p.answer != p.wrong,
      "clean: the answer to it and to corrupt is token {}; patching needs prompts "
      "with different answers",
      p.answer);
  p.clean_difference = difference(clean, p);
  p.corrupt_difference = difference(corrupt, p);
  double largest = 0;
  for (const Id id : {p.answer, p.wrong})
    largest = std::max({largest, std::fabs(logit(clean, id)), std::fabs(logit(corrupt, id))});
  const double rounding = static_cast<double>(std::numeric_limits<T>::epsilon()) * largest;
  require<ParameterError>(
      std::fabs(p.clean_difference - p.corrupt_difference) > 1000 * rounding,
      "clean: the logits of tokens {} and {} differ by {:.6g} after it and after "
      "corrupt; patching needs prompts that change this",
      p.answer, p.wrong, p.clean_difference);
  return p;
}

}  // namespace

template <Real T>
Patching patch_heads(const Decoder<T>& model, const std::vector<Id>& clean,
                     const std::vector<Id>& corrupt, const Answers& answers) {
  const ModelConfig& config = model.config;
  require_prompts(clean, corrupt, config.context);
  std::set<std::string, std::less<>> zs, streams;
  for (Index i = 0; i < config.layers; ++i) {
    zs.insert(attention_name(i, "z"));
    streams.insert(stream_name(i));
  }
  streams.insert(zs.begin(), zs.end());
  Recording<T> of_clean(zs), of_corrupt(streams);
  const Tensor<T> after_clean = model({.probe = &of_clean}, as_batch(clean)).value();
  const Tensor<T> after_corrupt = model({.probe = &of_corrupt}, as_batch(corrupt)).value();
  Patching p = answered(last_row(after_clean), last_row(after_corrupt), answers);

  const auto time = static_cast<Index>(clean.size());
  const Index together = std::clamp<Index>(kTokensAtOnce / time, 1, time);
  const Index parts = (time + together - 1) / together;
  const std::vector<HeadId> heads = heads_of(config);
  p.effects.assign(heads.size(), std::vector<double>(clean.size()));
  parallel_for(static_cast<Index>(heads.size()) * parts, 1, [&](Index item, Index) {
    const auto h = static_cast<std::size_t>(item / parts);
    const Index layer = heads[h].layer;
    const Index first = item % parts * together, end = std::min(time, first + together);
    Patch<T> patch(heads[h], config.heads, of_clean[attention_name(layer, "z")], first);
    const Var<T> stream = copies(of_corrupt[stream_name(layer)], end - first),
                 z = copies(of_corrupt[attention_name(layer, "z")], end - first);
    const Tensor<T> logits = model.resume({.probe = &patch}, layer, stream, z, time - 1).value();
    const auto vocab = static_cast<std::size_t>(config.vocab);
    for (Index t = first; t < end; ++t) {
      const auto row = logits.values().subspan(static_cast<std::size_t>(t - first) * vocab, vocab);
      p.effects[h][static_cast<std::size_t>(t)] =
          (difference(row, p) - p.corrupt_difference) / (p.clean_difference - p.corrupt_difference);
    }
  });
  return p;
}

template Patching patch_heads(const Decoder<float>&, const std::vector<Id>&, const std::vector<Id>&,
                              const Answers&);
template Patching patch_heads(const Decoder<double>&, const std::vector<Id>&,
                              const std::vector<Id>&, const Answers&);

}  // namespace headwise::study
