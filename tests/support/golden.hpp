// The golden decoders: see golden/README.md.
#pragma once

#include <set>
#include <string>

#include "headwise/core/parse.hpp"
#include "headwise/core/safetensors.hpp"
#include "headwise/data/text.hpp"
#include "support/backprop.hpp"
#include "support/catch.hpp"
#include "support/models.hpp"

namespace headwise::test {

/// One golden decoder's file, in precision T.
template <Real T>
class Golden {
 public:
  explicit Golden(const std::string& name) : file_(HEADWISE_GOLDEN "/" + name + ".safetensors") {}

  [[nodiscard]] double number(const std::string& key) const {
    return parse_number<double>(file_.metadata().at(key)).value();
  }
  [[nodiscard]] Index count(const std::string& key) const {
    return parse_number<Index>(file_.metadata().at(key)).value();
  }
  [[nodiscard]] Tensor<double> exact(const std::string& name) const {
    return file_.tensor<double>(name);
  }
  [[nodiscard]] Batch batch() const { return {file_.ids("inputs"), file_.ids("targets")}; }

  [[nodiscard]] ModelConfig config() const {
    const auto& meta = file_.metadata();
    return {.vocab = count("vocab"),
            .layers = count("layers"),
            .heads = count("heads"),
            .width = count("channels"),
            .context = count("context"),
            .tie = meta.at("tied") == "true",
            .bias = meta.at("bias") == "true",
            .gelu = parse_name<Gelu>(meta.at("gelu")).value()};
  }
  /// The decoder at the start. Every parameter of the file must have its place, and no other.
  [[nodiscard]] Decoder<T> decoder() const {
    Rng rng(1);
    Decoder<T> model(config(), rng);
    std::set<std::string> left;
    for (const auto& [name, entry] : file_.entries())
      if (name.starts_with("param/")) left.insert(name.substr(6));
    for_each_param(model, [&](const std::string& name, Param<T>& p) {
      CAPTURE(name);
      REQUIRE(left.erase(name) == 1);
      const auto x = as<T>(exact("param/" + name));
      REQUIRE(x.shape() == p.value.shape());
      p.value = x;
    });
    CHECK(left.empty());
    return model;
  }

 private:
  TensorFile file_;
};

}  // namespace headwise::test
