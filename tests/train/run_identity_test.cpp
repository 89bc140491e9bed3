// A run's files belong together: one identity, one format, and nothing of an older run.
#include <filesystem>
#include <limits>

#include "core/json.hpp"
#include "headwise/train/run.hpp"
#include "support/catch.hpp"
#include "support/training.hpp"

using namespace headwise;
using nlohmann::json;
using test::mentions;
using test::message_of;
using test::TemporaryFolder;

namespace {

Tokenizer tokens_of(const char* text) { return Tokenizer::learn(TokenizerKind::character, text); }

RunConfig config_of(std::uint64_t seed = 1) {
  RunConfig config;
  config.model = test::kSmallModel;
  config.train = test::kSmallTraining;
  config.seed = seed;
  return config;
}

/// A folder with the run of that configuration, saved after a step.
void save_in(const std::string& folder, const RunConfig& config) {
  const Run run = Run::create(folder, config, tokens_of("abcdefghij"));
  test::Training<float> t(config.model, config.train, config.seed);
  t.run(1);
  save_run(run, t.trainer, t.model, true);
}

/// Opens all of a run: its JSON files, its state and its weights.
void open_all(const std::string& folder) {
  const Run run = Run::open(folder);
  (void)run.state();
  std::vector<std::string> not_finite;
  (void)load_model<float>(run, not_finite);
}

std::string refusal(const std::string& folder) {
  return message_of<DataError>([&] { open_all(folder); });
}

template <class F>
void change_json(const std::string& path, F change) {
  json j = parse_json(read_file(path), path);
  change(j);
  replace_file(path, j.dump(1));
}

}  // namespace

TEST_CASE("a file of another run is refused by name", "[train][run][errors]") {
  const test::OneThread quick;
  const TemporaryFolder folder;
  save_in(folder / "a", config_of(1));
  save_in(folder / "b", config_of(2));
  for (const char* name : {"last.safetensors", "model.safetensors", "config.json"}) {
    CAPTURE(name);
    const std::string mixed = folder / (std::string("with-") + name);
    std::filesystem::copy(folder / "a", mixed);
    std::filesystem::copy_file(folder / "b" + ("/" + std::string(name)), mixed + "/" + name,
                               std::filesystem::copy_options::overwrite_existing);
    // Another config.json is a whole one: then the state is what does not belong to it.
    const std::string blamed = name == std::string("config.json") ? "last.safetensors" : name;
    CHECK(mentions(refusal(mixed), {mixed + "/" + blamed + ": ", "another run"}));
  }
}

TEST_CASE("what cannot change in a run is in its identity", "[train][run][errors]") {
  const test::OneThread quick;
  const TemporaryFolder folder;
  const std::string run = folder / "run", config = run + "/config.json";
  save_in(run, config_of());
  const std::string good = read_file(config);
  const auto with = [&](const char* where, const json& value) {
    change_json(config, [&](json& j) { j[json::json_pointer(where)] = value; });
    const std::string message = refusal(run);
    replace_file(config, good);
    return message;
  };
  const std::string changed = config + ": is not what the run was started with (hash ";
  CHECK(with("/seed", 2).starts_with(changed));
  CHECK(with("/model/heads", 4).starts_with(changed));
  CHECK(with("/model/gelu", "tanh").starts_with(changed));
  CHECK(with("/model/dropout", 0).starts_with(changed));
  CHECK(with("/train/lr", 0.5).starts_with(changed));
  CHECK(with("/train/schedule", "wsd").starts_with(changed));
  CHECK(with("/train/freeze", "pos.*").starts_with(changed));
  CHECK(with("/task", "copy").starts_with(changed));
  CHECK(with("/data_hash", "0123").starts_with(changed));
  CHECK(with("/length", 3).starts_with(changed));
  CHECK(with("/identity", "0123").starts_with(changed));
  // What a resumed run may change, and where things are.
  for (const char* where : {"/train/steps", "/train/eval-every", "/loop/save-every"})
    CHECK(with(where, 777) == "nothing was thrown");
  CHECK(with("/data", "elsewhere.txt") == "nothing was thrown");
  CHECK(with("/blas", "another") == "nothing was thrown");

  change_json(run + "/tokenizer.json",
              [](json& j) { std::reverse(j["tokens"].begin(), j["tokens"].end()); });
  CHECK(refusal(run).starts_with(run + "/tokenizer.json: is not what the run was started with"));
}

TEST_CASE("weights without an identity are no run's, unless the run has none", "[train][run]") {
  const test::OneThread quick;
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  save_in(run, config_of());
  test::Training<float> t(config_of().model, config_of().train, 1);
  save_weights(t.model, run + "/model.safetensors");
  CHECK(mentions(refusal(run), {"model.safetensors", "has no identity"}));
  change_json(run + "/config.json", [](json& j) {
    for (const char* key : {"format", "tokenizer", "identity", "loop"}) j.erase(key);
  });
  CHECK(refusal(run) == "nothing was thrown");
  // Its states have an identity from its first save by this version on.
  save_in(folder / "other", config_of(2));
  std::filesystem::copy_file(folder / "other/last.safetensors", run + "/last.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(mentions(refusal(run), {"last.safetensors", "another run"}));
}

TEST_CASE("a run that was copied or moved is the same run", "[train][run]") {
  const test::OneThread quick;
  const TemporaryFolder folder;
  save_in(folder / "a", config_of());
  std::filesystem::copy(folder / "a", folder / "copy");
  CHECK_NOTHROW(open_all(folder / "copy"));
  std::filesystem::rename(folder / "a", folder / "moved");
  CHECK_NOTHROW(open_all(folder / "moved"));
}

TEST_CASE("an unknown key of a configuration is refused, with the name that was meant",
          "[train][run][errors]") {
  const TemporaryFolder folder;
  const std::string config = folder / "config.json";
  Run::create(folder.path(), config_of(), tokens_of("abcdefghij"));
  const std::string good = read_file(config);
  const auto with = [&](const char* where) {
    change_json(config, [&](json& j) { j[json::json_pointer(where)] = 1; });
    const std::string message = message_of<DataError>([&] { Run::open(folder.path()); });
    replace_file(config, good);
    return message;
  };
  CHECK(with("/model/hedas")
            .starts_with(config + ": 'model': unknown key 'hedas'; did you mean 'heads'?"));
  CHECK(with("/train/warm-up")
            .starts_with(config + ": 'train': unknown key 'warm-up'; did you mean 'warmup'?"));
  CHECK(with("/loop/x").starts_with(config + ": 'loop': unknown key 'x'"));
  CHECK(with("/sead").starts_with(config + ": unknown key 'sead'; did you mean 'seed'?"));
  change_json(folder / "tokenizer.json", [](json& j) { j["merges"] = json::array(); });
  CHECK(mentions(message_of<DataError>([&] { Run::open(folder.path()); }),
                 {"tokenizer.json: unknown key 'merges'"}));
}

TEST_CASE("a configuration of a newer format is refused by number", "[train][run][errors]") {
  const TemporaryFolder folder;
  Run::create(folder.path(), config_of(), tokens_of("abcdefghij"));
  change_json(folder / "config.json", [](json& j) { j["format"] = 2, j["new"] = true; });
  CHECK(message_of<DataError>([&] { Run::open(folder.path()); }) ==
        folder / "config.json" +
            ": 'format': 2 is not from 1 to 1, which this version knows; a newer one wrote it");
}

TEST_CASE("a run of which nothing is saved says so", "[train][run][errors]") {
  const TemporaryFolder folder;
  const Run run = Run::create(folder.path(), config_of(), tokens_of("abcdefghij"));
  const std::string message = folder.path() + ": nothing was saved yet: ";
  CHECK(message_of<DataError>([&] { (void)run.state(); }).starts_with(message));
  CHECK(message_of<DataError>([&] { (void)run.weights(); }).starts_with(message));
}

TEST_CASE("a state that is not finite replaces no good one", "[train][run][errors]") {
  const test::OneThread quick;
  const TemporaryFolder folder;
  const Run run = Run::create(folder.path(), config_of(), tokens_of("abcdefghij"));
  test::Training<float> t(config_of().model, config_of().train, 1);
  t.run(1);
  save_run(run, t.trainer, t.model, true);
  const std::string last = read_file(run.last()), model = read_file(run.model());
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    t.model.ln_f.bias.value.data()[3] = bad;
    const std::string message = message_of<Error>([&] { save_run(run, t.trainer, t.model, true); });
    CHECK(mentions(message, {"step 1", "'weight/ln_f.bias'", "not finite", "learning rate"}));
  }
  CHECK((read_file(run.last()) == last));
  CHECK((read_file(run.model()) == model));
  t.model.ln_f.bias.value.data()[3] = std::numeric_limits<float>::max();
  CHECK_NOTHROW(save_run(run, t.trainer, t.model, true));
}

TEST_CASE("a new run begins with nothing of an old one", "[train][run]") {
  const test::OneThread quick;
  const TemporaryFolder folder;
  save_in(folder.path(), config_of());
  Run::open(folder.path()).log("{\"event\":\"eval\",\"step\":1}");
  std::filesystem::remove(folder / "last.safetensors");
  const std::string temporary = folder / ".last.safetensors.0123456789abcdef.tmp";
  replace_file(temporary, "half");
  const Run run = Run::create(folder.path(), config_of(), tokens_of("abcdefghij"));
  for (const char* name : {"log.jsonl", "model.safetensors", "last.safetensors"})
    CHECK_FALSE(std::filesystem::exists(folder / name));
  CHECK_FALSE(std::filesystem::exists(temporary));
}

TEST_CASE("files that no run wrote are not replaced, unless that is wanted",
          "[train][run][errors]") {
  const TemporaryFolder folder;
  const std::map<std::string, std::string> mine = {
      {"config.json", "{\"architectures\": [\"GPT2\"]}"},
      {"tokenizer.json", "{\"version\": \"1.0\"}"},
      {"log.jsonl", "my notes\n"},
      {"model.safetensors", "weights"}};
  for (const auto& [name, text] : mine) replace_file(folder / name, text);
  const auto create = [&](bool force) {
    Run::create(folder.path(), config_of(), tokens_of("abcdefghij"), force);
  };
  CHECK(mentions(message_of<UsageError>([&] { create(false); }),
                 {"--out: " + folder.path() +
                      " has config.json, tokenizer.json, log.jsonl, "
                      "model.safetensors, which headwise did not write",
                  "--force"}));
  for (const auto& [name, text] : mine) CHECK(read_file(folder / name) == text);
  CHECK_FALSE(std::filesystem::exists(folder / FolderLock::kLockFile));
  CHECK_NOTHROW(create(true));
  CHECK_NOTHROW(Run::open(folder.path()));
  CHECK_FALSE(std::filesystem::exists(folder / "log.jsonl"));
}

TEST_CASE("a second training is refused, and reading is not", "[train][run][errors]") {
  const test::OneThread quick;
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  {
    const Run first = Run::create(run, config_of(), tokens_of("abcdefghij"));
    const auto in_use = run + ": is in use by process ";
    CHECK(message_of<DataError>([&] { Run::resume(run); }).starts_with(in_use));
    CHECK(message_of<DataError>([&] {
            Run::create(run, config_of(), tokens_of("abcdefghij"));
          }).starts_with(in_use));
    CHECK_NOTHROW(Run::open(run));
  }
  const Run second = Run::resume(run);
  CHECK(message_of<DataError>([&] { Run::resume(run); }) != "nothing was thrown");
}

TEST_CASE("a run stays in its folder when another takes the path", "[train][run]") {
  const test::OneThread quick;
  const TemporaryFolder folder;
  const std::string path = folder / "run", moved = folder / "moved";
  save_in(path, config_of());
  save_in(folder / "other", config_of(2));
  const std::string other = read_file(folder / "other/last.safetensors");
  const Run run = Run::resume(path);
  test::Training<float> t(config_of().model, config_of().train, 1);
  t.trainer.load(run.state());
  t.run(1);
  std::filesystem::rename(path, moved);
  std::filesystem::rename(folder / "other", path);
  save_run(run, t.trainer, t.model, true);
  run.log("{\"event\":\"eval\",\"step\":2}");
  CHECK((read_file(path + "/last.safetensors") == other));
  CHECK_FALSE(std::filesystem::exists(path + "/log.jsonl"));
  CHECK(std::filesystem::exists(moved + "/log.jsonl"));
  test::Training<float> again(config_of().model, config_of().train, 1);
  again.trainer.load(run.state());  // in the folder, not at its path
  CHECK(again.trainer.steps_done() == 2);
}
