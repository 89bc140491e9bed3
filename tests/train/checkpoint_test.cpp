// Checkpoints that are not what they should be.
#include <filesystem>
#include <fstream>
#include <limits>

#include "headwise/core/safetensors.hpp"
#include "headwise/train/weights.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"
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

TEST_CASE("weights of another precision are taken, whole numbers refused", "[train][checkpoint]") {
  const TemporaryFolder folder;
  auto model = test::rough_decoder<float>(kSmallModel, 1);
  save_weights(model, folder / "float");
  Rng rng(2);
  Decoder<double> wide(kSmallModel, rng);
  CHECK(load_weights(wide, folder / "float").empty());
  CHECK(wide.pos.weight.value.data()[5] == static_cast<double>(model.pos.weight.value.data()[5]));
  save_weights(wide, folder / "double");
  auto back = decoder(kSmallModel);
  CHECK(load_weights(back, folder / "double").empty());
  CHECK(test::same_bits(weights_of(back), weights_of(model)));

  const std::vector<std::int64_t> ids(16);
  std::vector<TensorFileStream::Item> items;
  const TensorFile known(folder / "float");
  for (const auto& [name, entry] : known.entries())
    items.push_back({name, name == "ln_f.bias" ? "I64" : "F32", entry.shape});
  TensorFileStream stream(folder / "whole", items);
  for (const auto& item : items)
    if (item.dtype == "I64")
      stream.write(ids);
    else
      stream.write(std::vector<float>(static_cast<std::size_t>(item.shape.size())));
  stream.finish();
  CHECK_THROWS_WITH(load_weights(back, folder / "whole"),
                    folder / "whole" + ": tensor 'ln_f.bias' is I64, not F16, BF16, F32 or F64");
}

TEST_CASE("a state goes on only in its own precision", "[train][checkpoint][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "last";
  Training<float> t(kSmallModel, kSmallTraining, 1);
  t.trainer.save(path);
  Training<double> other(kSmallModel, kSmallTraining, 1);
  CHECK_THROWS_WITH(other.trainer.load(path),
                    path + ": tensor 'weight/tok.weight' is F32, and the run is f64");
}

TEST_CASE("damage is found before anything is replaced", "[train][checkpoint][errors]") {
  const test::OneThread quick;
  const TemporaryFolder folder;
  const std::string path = folder / "last";
  Training<float> t(kSmallModel, kSmallTraining, 1);
  t.run(1);
  t.trainer.save(path);
  const auto flip = [](const std::string& file) {
    std::string bytes = read_file(file);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);  // of the last tensor
    replace_file(file, bytes);
  };
  flip(path);
  const std::string before = t.saved();
  CHECK(mentions(message_of<DataError>([&] { t.trainer.load(path); }),
                 {path + ": damaged: tensor 'weight/tok.weight'"}));
  CHECK((t.saved() == before));

  auto model = decoder(kSmallModel), other = test::rough_decoder<float>(kSmallModel, 3);
  save_weights(model, folder / "model");
  flip(folder / "model");
  const auto weights = weights_of(other);
  CHECK_THROWS_AS(load_weights(other, folder / "model"), DataError);
  CHECK(test::same_bits(weights_of(other), weights));
}

TEST_CASE("a file of a thousand other tensors is refused in few words", "[train][checkpoint]") {
  const TemporaryFolder folder;
  auto model = decoder(kSmallModel);
  save_weights(model, folder / "model");
  const TensorFile file(folder / "model");
  TensorFileWriter writer;
  for (const auto& [name, entry] : file.entries()) writer.add(name, file.tensor<float>(name));
  for (int i = 0; i < 1000; ++i)
    writer.add(fmt::format("other.{:03}\x1b", i), Tensor<float>::zeros({1}));
  writer.save(folder / "more");
  CHECK_THROWS_WITH(load_weights(model, folder / "more"),
                    folder / "more" +
                        ": has tensors that the model does not: other.000\\x1b, other.001\\x1b, "
                        "other.002\\x1b, other.003\\x1b, other.004\\x1b and 995 more");
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

TEST_CASE("a state is loaded without a second copy of it", "[train][checkpoint][memory]") {
  if (test::kSanitized) return;
  const TemporaryFolder folder;
  ModelConfig config = kSmallModel;
  config.width = 256;
  TrainOptions options = kSmallTraining;
  options.accumulate = 1;
  {
    Training<float> t(config, options, 1);
    t.run(1);
    t.trainer.save(folder / "last");
  }
  const auto state = static_cast<std::int64_t>(std::filesystem::file_size(folder / "last"));
  Training<float> fresh(config, options, 1);  // has a third of it: the weights
  std::ofstream from_now("/proc/self/clear_refs");
  from_now << 5 << std::flush;  // the most so far is what there is now
  const std::int64_t before = test::peak_resident_bytes();
  fresh.trainer.load(folder / "last");
  CHECK(fresh.trainer.steps_done() == 1);
  if (from_now.good()) CHECK(test::peak_resident_bytes() - before < state * 2 / 3 + state * 3 / 10);
}
