// Checkpoints that are not what they should be.
#include <limits>

#include "headwise/core/safetensors.hpp"
#include "headwise/train/weights.hpp"
#include "support/catch.hpp"
#include "support/training.hpp"

using namespace headwise;
using test::kSmallModel;
using test::kSmallTraining;
using test::mentions;
using test::message_of;
using test::TemporaryFolder;
using test::Training;
using test::weights_of;

namespace {

/// Writes `from` again as `to`: without one tensor, with another in its place, with other metadata.
struct Rewrite {
  std::string drop{}, add{};
  Tensor<float> tensor{};
  std::map<std::string, std::string> metadata{};  // "": left out

  void operator()(const std::string& from, const std::string& to) const {
    const TensorFile file(from);
    TensorFileWriter writer;
    for (const auto& [name, entry] : file.entries())
      if (name != drop) writer.add(name, file.tensor<float>(name));
    if (!add.empty()) writer.add(add, tensor);
    auto all = file.metadata();
    for (const auto& [key, value] : metadata) all[key] = value;
    for (const auto& [key, value] : all)
      if (!value.empty()) writer.metadata(key, value);
    writer.save(to);
  }
};

ModelConfig wider() {
  ModelConfig config = kSmallModel;
  config.width = 32;
  return config;
}

Decoder<float> decoder(const ModelConfig& config) {
  Rng rng(1);
  return Decoder<float>(config, rng);
}

}  // namespace

TEST_CASE("weights come back bit by bit", "[train][checkpoint]") {
  const TemporaryFolder folder;
  for (const bool tie : {true, false}) {
    ModelConfig config = kSmallModel;
    config.tie = tie;
    auto model = test::rough_decoder<float>(config, 1);
    save_weights(model, folder / "model");
    auto other = decoder(config);
    CHECK(load_weights(other, folder / "model").empty());
    CHECK(test::same_bits(weights_of(other), weights_of(model)));
    const TensorFile file(folder / "model");
    CHECK(file.has("head.weight") == !tie);
    CHECK(file.metadata().contains("tied") == tie);
  }
}

TEST_CASE("loaded weights that are not finite are named", "[train][checkpoint]") {
  const TemporaryFolder folder;
  auto model = decoder(kSmallModel);
  model.pos.weight.value.data()[127] = std::numeric_limits<float>::quiet_NaN();
  model.blocks[1].mlp->up.bias.value.data()[0] = -std::numeric_limits<float>::infinity();
  save_weights(model, folder / "model");
  auto other = decoder(kSmallModel);
  CHECK(load_weights(other, folder / "model") ==
        std::vector<std::string>{"pos.weight", "blocks.1.mlp.up.bias"});
}

TEST_CASE("weights of another shape are refused by tensor and both shapes",
          "[train][checkpoint][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "model";
  auto model = decoder(kSmallModel);
  save_weights(model, path);
  auto wide = decoder(wider());
  CHECK_THROWS_WITH(load_weights(wide, path),
                    path + ": tensor 'tok.weight' has shape (10,16), the model needs (10,32)");
  CHECK_THROWS_AS(load_weights(wide, path), DataError);
}

TEST_CASE("weights that miss a tensor or have one too many are refused by its name",
          "[train][checkpoint][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "model", changed = folder / "changed";
  auto model = decoder(kSmallModel);
  save_weights(model, path);
  Rewrite{.drop = "blocks.1.ln2.bias"}(path, changed);
  CHECK_THROWS_WITH(load_weights(model, changed), changed + ": has no tensor 'blocks.1.ln2.bias'");
  Rewrite{.add = "blocks.2.ln1.bias", .tensor = Tensor<float>::zeros({16})}(path, changed);
  CHECK_THROWS_WITH(load_weights(model, changed),
                    changed + ": has tensors that the model does not: blocks.2.ln1.bias");
  CHECK_THROWS_AS(load_weights(model, changed), DataError);
}

TEST_CASE("weights of an untied model do not go into a tied one", "[train][checkpoint][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "model";
  ModelConfig config = kSmallModel;
  config.tie = false;
  auto untied = decoder(config), tied = decoder(kSmallModel);
  save_weights(untied, path);
  CHECK_THROWS_WITH(load_weights(tied, path),
                    path + ": has tensors that the model does not: head.weight");
  save_weights(tied, path);
  CHECK_THROWS_WITH(load_weights(untied, path), path + ": has no tensor 'head.weight'");
}

TEST_CASE("weights of another precision are refused by both", "[train][checkpoint][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "model";
  auto model = decoder(kSmallModel);
  save_weights(model, path);
  Rng rng(1);
  Decoder<double> other(kSmallModel, rng);
  CHECK_THROWS_WITH(load_weights(other, path), path + ": tensor 'tok.weight' is F32, not F64");
}

TEST_CASE("a state to resume from that does not fit is refused by file and reason",
          "[train][checkpoint][errors]") {
  const test::OneThread quick;
  const TemporaryFolder folder;
  const std::string path = folder / "last", changed = folder / "changed";
  Training<float> t(kSmallModel, kSmallTraining, 1);
  t.run(1);
  t.trainer.save(path);
  const auto refusal = [&](const Rewrite& rewrite) {
    rewrite(path, changed);
    Training<float> fresh(kSmallModel, kSmallTraining, 1);
    const std::string message = message_of<DataError>([&] { fresh.trainer.load(changed); });
    REQUIRE(message.starts_with(changed + ": "));
    return message.substr(changed.size() + 2);
  };
  CHECK(refusal({.drop = "weight/ln_f.bias"}) == "has no tensor 'weight/ln_f.bias'");
  CHECK(refusal({.drop = "square/ln_f.bias"}) == "has no tensor 'square/ln_f.bias'");
  CHECK(refusal({.drop = "weight/ln_f.bias",
                 .add = "weight/ln_f.bias",
                 .tensor = Tensor<float>::zeros({8})}) ==
        "tensor 'weight/ln_f.bias' has shape (8), the model needs (16)");
  CHECK(refusal({.drop = "mean/pos.weight",
                 .add = "mean/pos.weight",
                 .tensor = Tensor<float>::zeros({16, 8})}) ==
        "tensor 'mean/pos.weight' has shape (16,8), the model needs (8,16)");
  CHECK(refusal({.metadata = {{"steps", ""}}}) == "has no 'steps' in its metadata");
  CHECK(refusal({.metadata = {{"steps", "1x"}}}) == "'steps' in its metadata is no number: '1x'");
  CHECK(refusal({.metadata = {{"updates/pos.weight", ""}}}) ==
        "has no 'updates/pos.weight' in its metadata");
}

TEST_CASE("a state that lost a mean or has a tensor too many is refused",
          "[train][checkpoint][errors]") {
  const test::OneThread quick;
  const TemporaryFolder folder;
  const std::string path = folder / "last", changed = folder / "changed";
  Training<float> t(kSmallModel, kSmallTraining, 1);
  t.run(1);
  t.trainer.save(path);
  const auto refusal = [&](const Rewrite& rewrite) {
    rewrite(path, changed);
    Training<float> fresh(kSmallModel, kSmallTraining, 1);
    return message_of<DataError>([&] { fresh.trainer.load(changed); });
  };
  // Without its mean the parameter would go on from nothing: another run, and no word of it.
  CHECK(mentions(refusal({.drop = "mean/ln_f.bias"}), {changed, "ln_f.bias"}));
  CHECK(mentions(refusal({.add = "weight/blocks.2.ln1.bias", .tensor = Tensor<float>::zeros({16})}),
                 {changed, "blocks.2.ln1.bias"}));
}

TEST_CASE("a state whose counters cannot be is refused", "[train][checkpoint][errors]") {
  const test::OneThread quick;
  const TemporaryFolder folder;
  const std::string path = folder / "last", changed = folder / "changed";
  Training<float> t(kSmallModel, kSmallTraining, 1);
  t.run(1);
  t.trainer.save(path);
  for (const char* key : {"steps", "updates/pos.weight", "loss_count"}) {
    CAPTURE(key);
    Rewrite{.metadata = {{key, "-3"}}}(path, changed);
    Training<float> fresh(kSmallModel, kSmallTraining, 1);
    CHECK(mentions(message_of<DataError>([&] { fresh.trainer.load(changed); }), {changed, key}));
  }
}

TEST_CASE("a state of another model or no state at all is refused", "[train][checkpoint][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "last";
  Training<float> t(kSmallModel, kSmallTraining, 1), wide(wider(), kSmallTraining, 1);
  t.trainer.save(path);
  CHECK_THROWS_WITH(
      wide.trainer.load(path),
      path + ": tensor 'weight/tok.weight' has shape (10,16), the model needs (10,32)");
  CHECK_THROWS_WITH(t.trainer.load(folder / "no"), folder / "no" + ": no such file");

  const std::string bytes = read_file(path);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{5}, bytes.size() / 2, bytes.size() - 1}) {
    replace_file(path, std::string_view(bytes).substr(0, size));
    CHECK(message_of<DataError>([&] { t.trainer.load(path); }).starts_with(path + ": "));
  }
}

TEST_CASE("a save that cannot be leaves the old file alone", "[train][checkpoint][errors]") {
  const TemporaryFolder folder;
  Training<float> t(kSmallModel, kSmallTraining, 1);
  const std::string path = folder / "no/last";
  CHECK(message_of<DataError>([&] {
          t.trainer.save(path);
        }).starts_with(path + ": cannot be written: "));
}
