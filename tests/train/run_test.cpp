#include "headwise/train/run.hpp"

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "headwise/core/hash.hpp"
#include "headwise/core/parse.hpp"
#include "support/catch.hpp"
#include "support/training.hpp"

using namespace headwise;
using nlohmann::json;
using test::mentions;
using test::message_of;
using test::TemporaryFolder;

namespace {

const Tokenizer& letters() {
  static const Tokenizer t = Tokenizer::learn(TokenizerKind::character, "abcdefghij");
  return t;
}

/// No option at its default.
RunConfig unusual() {
  return {.model = {.vocab = 10,
                    .layers = 3,
                    .heads = 5,
                    .width = 20,
                    .context = 7,
                    .dropout = 0.1 + 0.2,  // 17 digits
                    .attention_only = true,
                    .tie = false,
                    .bias = false,
                    .gelu = Gelu::tanh,
                    .init_std = 1. / 3},
          .train = {.batch = 3,
                    .accumulate = 2,
                    .steps = 77,
                    .lr = 1e-300,
                    .min_lr = 5e-324,
                    .warmup = 11,
                    .schedule = Schedule::wsd,
                    .weight_decay = 1. / 7,
                    .beta1 = 0.85,
                    .beta2 = 0.9999999999999999,
                    .clip = 1e300,
                    .eval_every = 13,
                    .eval_batches = 17,
                    .freeze = "pos.*,blocks.0.*"},
          .loop = {.save_every = 3, .sample_every = 4, .study_every = 5},
          .dtype = Dtype::f64,
          .seed = 0xFFFFFFFFFFFFFFFF,
          .data = "a \"quoted\"\\path\n\u00FC.txt",
          .task = "pairs.tsv",
          .length = 19,
          .data_hash = text_hash("abc"),
          .blas = "some BLAS"};
}

RunConfig small() {
  RunConfig config;
  config.model = test::kSmallModel;
  config.train = test::kSmallTraining;
  return config;
}

/// What the first runs did not write.
const std::set<std::string> kAddedLater = {"blas", "schedule", "freeze", "task", "length"};

/// Every option as text, by name.
template <class Options>
std::map<std::string, std::string> texts(Options options) {
  std::map<std::string, std::string> all;
  options.visit([&]<class X>(const char* name, const X& x, const char*) {
    if constexpr (std::is_enum_v<X>)
      all[name] = std::string(names_of(x)[static_cast<std::size_t>(x)]);
    else
      all[name] = fmt::to_string(x);
  });
  return all;
}

/// What opening says of a run of which one JSON file was changed; it must begin with the file.
class Damaged {
 public:
  explicit Damaged(const std::string& file) : path_(folder_ / file) {
    Run::create(folder_.path(), small(), letters());
    original_ = json::parse(read_file(path_));
  }
  [[nodiscard]] const json& original() const { return original_; }

  std::string with_text(const std::string& text) const {
    replace_file(path_, text);
    const std::string message = message_of<DataError>([&] { Run::open(folder_.path()); });
    CAPTURE(text, message);
    CHECK(message.starts_with(path_ + ": "));
    return message;
  }
  std::string with(const json::json_pointer& where, const json& value) const {
    json j = original_;
    j[where] = value;
    return with_text(j.dump());
  }
  std::string without(const json::json_pointer& where) const {
    json j = original_;
    j[where.parent_pointer()].erase(where.back());
    return with_text(j.dump());
  }

 private:
  TemporaryFolder folder_;
  std::string path_;
  json original_;
};

}  // namespace

TEST_CASE("a new run's folder holds its configuration and tokenizer", "[train][run]") {
  const TemporaryFolder folder;
  const std::string path = folder / "deep/er";
  const Run run = Run::create(path, small(), letters());
  CHECK(run.unlocked().empty());
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    files.insert(entry.path().filename().string());
  CHECK(files == std::set<std::string>{"config.json", "tokenizer.json", FolderLock::kLockFile});
  CHECK(run.folder() == path);
  CHECK(run.last() == path + "/last.safetensors");
  CHECK(run.model() == path + "/model.safetensors");
}

TEST_CASE("a folder that holds a run is refused", "[train][run][errors]") {
  const TemporaryFolder folder;
  Run::create(folder.path(), small(), letters());
  Run::create(folder.path(), small(), letters());  // nothing was trained yet: nothing to lose
  replace_file(folder / "last.safetensors", "a state");
  const std::string before = read_file(folder / "config.json");
  for (const bool force : {false, true}) {
    CHECK_THROWS_WITH(
        Run::create(folder.path(), unusual(), letters(), force),
        "--out: " + folder.path() + " holds a run already; --resume it or choose another folder");
    CHECK_THROWS_AS(Run::create(folder.path(), unusual(), letters(), force), UsageError);
  }
  CHECK(read_file(folder / "config.json") == before);
}

TEST_CASE("a file is no folder for a run", "[train][run][errors]") {
  const TemporaryFolder folder;
  replace_file(folder / "file", "x");
  CHECK(message_of<DataError>([&] {
          Run::create(folder / "file", small(), letters());
        }).starts_with(folder / "file" + ": "));
  CHECK_THROWS_WITH(Run::open(folder / "file"), folder / "file" + ": no such run folder");
  CHECK_THROWS_WITH(Run::open(folder / "no"), folder / "no" + ": no such run folder");
  CHECK_THROWS_AS(Run::open(folder / "no"), DataError);
}

TEST_CASE("every option comes back from the run folder", "[train][run]") {
  const TemporaryFolder folder;
  const RunConfig c = unusual();
  Run::create(folder.path(), c, letters());
  const Run run = Run::open(folder.path());
  CHECK(texts(run.config().model) == texts(c.model));
  CHECK(texts(run.config().train) == texts(c.train));
  CHECK(texts(run.config().loop) == texts(c.loop));
  for (const auto& [name, text] : texts(ModelConfig{})) {  // or a forgotten one would not show
    CAPTURE(name);
    CHECK(text != texts(c.model).at(name));
  }
  for (const auto& [name, text] : texts(TrainOptions{})) {
    CAPTURE(name);
    CHECK(text != texts(c.train).at(name));
  }
  for (const auto& [name, text] : texts(LoopOptions{})) {
    CAPTURE(name);
    CHECK(text != texts(c.loop).at(name));
  }
  CHECK(run.config().model.vocab == 10);
  CHECK(run.config().dtype == Dtype::f64);
  CHECK(run.config().seed == c.seed);
  CHECK(run.config().data == c.data);
  CHECK(run.config().data_hash == c.data_hash);
  CHECK(run.config().blas == c.blas);
  CHECK(run.tokenizer().tokens() == letters().tokens());
}

TEST_CASE("any character can be a token of a run", "[train][run]") {
  const TemporaryFolder folder;
  const std::string text("\"\\\n\r\t\0\x7F/\u00FC\u2028\U0001F600", 17);
  RunConfig c = small();
  const auto tokenizer = Tokenizer::learn(TokenizerKind::character, text);
  c.model.vocab = tokenizer.vocab();
  Run::create(folder.path(), c, tokenizer);
  CHECK(Run::open(folder.path()).tokenizer().tokens() == tokenizer.tokens());
}

TEST_CASE("each kind of tokenizer comes back from the run folder", "[train][run]") {
  const std::string text = "it is what it is \u00FC\n";
  for (const auto kind : {TokenizerKind::character, TokenizerKind::byte, TokenizerKind::word}) {
    const TemporaryFolder folder;
    RunConfig c = small();
    const auto tokenizer = Tokenizer::learn(kind, text);
    c.model.vocab = tokenizer.vocab();
    Run::create(folder.path(), c, tokenizer);
    const Run run = Run::open(folder.path());
    CHECK(run.tokenizer().kind() == kind);
    CHECK(run.tokenizer().tokens() == tokenizer.tokens());
    CHECK(run.tokenizer().encode(text) == tokenizer.encode(text));
    const json saved = json::parse(read_file(folder / "tokenizer.json"));
    CHECK(saved.at("kind") == name_of(kind));
    CHECK(saved.contains("tokens") == (kind != TokenizerKind::byte));
  }
}

TEST_CASE("a data path that is not UTF-8 is kept or refused as ours", "[train][run]") {
  const TemporaryFolder folder;
  RunConfig c = small();
  c.data = "caf\xE9.txt";  // a file name may be any bytes
  std::string message;
  try {
    Run::create(folder.path(), c, letters());
    message = Run::open(folder.path()).config().data == c.data ? "" : "another path";
  } catch (const Error&) {
  } catch (const std::exception& e) {
    message = e.what();
  }
  CHECK(message == "");
}

TEST_CASE("new training options replace the old ones in the folder", "[train][run]") {
  const TemporaryFolder folder;
  Run run = Run::create(folder.path(), small(), letters());
  TrainOptions options = small().train;
  options.steps = 12345;
  run.change(options, unusual().loop, "another BLAS");
  CHECK(run.config().train.steps == 12345);
  const Run again = Run::open(folder.path());
  CHECK(again.config().blas == "another BLAS");
  CHECK(texts(again.config().train) == texts(options));
  CHECK(texts(again.config().loop) == texts(unusual().loop));
  CHECK(texts(again.config().model) == texts(small().model));
}

TEST_CASE("a configuration without any of its keys is refused by file and key",
          "[train][run][errors]") {
  const Damaged config("config.json");
  const auto refused = [&](const json& object, const std::string& at) {
    for (const auto& [key, value] : object.items()) {
      if (kAddedLater.contains(key)) continue;
      CAPTURE(key);
      CHECK(
          mentions(config.without(json::json_pointer(at + "/" + key)), {fmt::format("'{}'", key)}));
    }
  };
  refused(config.original(), "");
  refused(config.original().at("model"), "/model");
  refused(config.original().at("train"), "/train");
  refused(config.original().at("loop"), "/loop");
}

TEST_CASE("a run from before an option was there opens with its default", "[train][run]") {
  const TemporaryFolder folder;
  Run::create(folder.path(), unusual(), letters());
  const std::string path = folder / "config.json";
  json j = json::parse(read_file(path));
  for (const std::string& key : kAddedLater) CHECK(j.erase(key) + j["train"].erase(key) == 1);
  for (const char* key : {"format", "tokenizer", "identity", "loop"}) CHECK(j.erase(key) == 1);
  replace_file(path, j.dump());
  const RunConfig old = Run::open(folder.path()).config();
  CHECK(old.blas.empty());
  CHECK(old.train.schedule == Schedule::cosine);
  CHECK(old.train.freeze.empty());
  CHECK(old.train.warmup == unusual().train.warmup);
}

TEST_CASE("a configuration with a value of another kind is refused by file",
          "[train][run][errors]") {
  const Damaged config("config.json");
  const auto at = [](const char* text) { return json::json_pointer(text); };
  CHECK(mentions(config.with(at("/model/gelu"), "relu"), {"'relu' is none of exact, tanh"}));
  CHECK(mentions(config.with(at("/dtype"), "f16"), {"'f16' is none of f32, f64"}));
  CHECK(mentions(config.with(at("/train/schedule"), "step"),
                 {"'step' is none of cosine, linear, constant, wsd"}));
  config.with(at("/train/schedule"), nullptr);
  config.with(at("/dtype"), 32);
  config.with(at("/model/dropout"), nullptr);  // how JSON writes a NaN
  config.with(at("/train/lr"), std::numeric_limits<double>::quiet_NaN());
  config.with(at("/train/lr"), "0.001");
  config.with(at("/model/layers"), "2");
  config.with(at("/model/tie"), 1);
  config.with(at("/model"), json::array());
  config.with(at("/seed"), "1");
  config.with(at("/data"), 7);
}

TEST_CASE("a configuration with a number that is no such number is refused by file",
          "[train][run][errors]") {
  const Damaged config("config.json");
  const auto at = [](const char* text) { return json::json_pointer(text); };
  CHECK(mentions(config.with(at("/model/layers"), 2.5),  // and not quietly 2
                 {"'model.layers': expected a whole number", ", got 2.5"}));
  config.with(at("/train/batch"), true);
  config.with(at("/train/steps"), 1e30);
  config.with(at("/seed"), -1);
  config.with(at("/seed"), 1.5);
}

TEST_CASE("a configuration that cannot be is refused by file", "[train][run][errors]") {
  const Damaged config("config.json");
  const auto at = [](const char* text) { return json::json_pointer(text); };
  CHECK(mentions(config.with(at("/model/heads"), 3), {"heads: must divide width 16, got 3"}));
  config.with(at("/model/width"), -16);
  config.with(at("/model/dropout"), 1.5);
  CHECK(mentions(config.with(at("/train/lr"), -1), {"lr: must be finite and > 0, got -1"}));
  config.with(at("/train/batch"), 0);
}

TEST_CASE("a JSON file that is none is refused by file", "[train][run][errors]") {
  for (const char* file : {"config.json", "tokenizer.json"}) {
    const Damaged damaged(file);
    for (const char* text : {"", "{", "[]", "null", "7", "{} {}", "{\"a\": NaN}", "\xFF"})
      damaged.with_text(text);
  }
}

TEST_CASE("tokens that are none are refused by file", "[train][run][errors]") {
  const Damaged tokenizer("tokenizer.json");
  const auto with = [&](const json& tokens) {
    return tokenizer.with(json::json_pointer("/tokens"), tokens);
  };
  with("abc");
  with({1, 2});
  with(json::array());
  CHECK(mentions(with({"a", "bc"}), {"token 1 ('bc') is not one character"}));
  CHECK(mentions(with({"a", "a"}), {"token 1 ('a') stands there twice"}));
  tokenizer.without(json::json_pointer("/tokens"));
  CHECK(mentions(tokenizer.with(json::json_pointer("/kind"), "bpe"),
                 {"'bpe' is none of char, byte, word"}));
  tokenizer.with(json::json_pointer("/kind"), "byte");  // which has none
}

TEST_CASE("a tokenizer of another size than the model's is refused by both numbers",
          "[train][run][errors]") {
  const TemporaryFolder folder;
  Run::create(folder.path(), small(), Tokenizer::learn(TokenizerKind::character, "abc"));
  CHECK_THROWS_WITH(Run::open(folder.path()),
                    folder.path() + ": tokenizer.json has 3 tokens, config.json says 10");
  CHECK_THROWS_AS(Run::open(folder.path()), DataError);
}

TEST_CASE("a run without one of its files is refused by file", "[train][run][errors]") {
  for (const char* file : {"config.json", "tokenizer.json"}) {
    const TemporaryFolder folder;
    Run::create(folder.path(), small(), letters());
    std::filesystem::remove(folder / file);
    CHECK_THROWS_WITH(Run::open(folder.path()), folder / file + ": no such file");
  }
}

TEST_CASE("a log goes back to what its state has seen", "[train][run]") {
  const TemporaryFolder folder;
  const Run run = Run::create(folder.path(), small(), letters());
  run.rewind_log(5, 5);  // no log yet
  CHECK_FALSE(std::filesystem::exists(folder / "log.jsonl"));
  const auto line = [](const char* event, int step) {
    return fmt::format("{{\"event\":\"{}\",\"step\":{},\"lr\":1e-3}}", event, step);
  };
  for (const int step : {0, 10, 20, 30})
    for (const char* event : {"study", "eval"}) run.log(line(event, step));
  run.log("{\"event\":\"done\",\"steps\":30}");
  CHECK(read_file(folder / "log.jsonl").ends_with("{\"event\":\"done\",\"steps\":30}\n"));
  run.rewind_log(20, 10);  // saved before the evaluation of step 20
  const std::string kept = line("study", 0) + "\n" + line("eval", 0) + "\n" + line("study", 10) +
                           "\n" + line("eval", 10) + "\n" + line("study", 20) + "\n";
  CHECK(read_file(folder / "log.jsonl") == kept);
  run.log(line("eval", 20));
  CHECK(read_file(folder / "log.jsonl") == kept + line("eval", 20) + "\n");
  run.rewind_log(-1, -1);
  CHECK(read_file(folder / "log.jsonl").empty());
}

TEST_CASE("a log that goes back loses its damaged lines", "[train][run]") {
  const std::string good = "{\"event\":\"eval\",\"step\":10}\n";
  for (const char* bad : {"{\"event\":\"eval\",\"st", "\n", "7\n", "{\"step\":\"x\"}\n",
                          "{\"step\":null}\n", "\xFF\xFE\n"}) {
    CAPTURE(bad);
    const TemporaryFolder folder;
    const Run run = Run::create(folder.path(), small(), letters());
    replace_file(folder / "log.jsonl", good + bad);
    CHECK_NOTHROW(run.rewind_log(20, 20));
    CHECK(read_file(folder / "log.jsonl") == good);
  }
}

TEST_CASE("a log that cannot be written is an error", "[train][run][errors]") {
  const TemporaryFolder folder;
  const Run run = Run::create(folder / "run", small(), letters());
  std::filesystem::remove_all(folder / "run");
  CHECK(message_of<DataError>([&] {
          run.log("x");
        }).starts_with(folder / "run/log.jsonl" + ": cannot be written"));
}

TEST_CASE("the best weights are kept and the last state is saved", "[train][run]") {
  const test::OneThread quick;
  const TemporaryFolder folder;
  const Run run = Run::create(folder.path(), small(), letters());
  test::Training<float> t(small().model, small().train, 1);
  const auto saved_model = [&] {
    std::vector<std::string> not_finite;
    auto model = load_model<float>(run, not_finite);
    CHECK(not_finite.empty());
    return test::weights_of(model);
  };
  const auto saved_state = [&] {
    test::Training<float> other(small().model, small().train, 1);
    other.trainer.load(run.state());
    return other.saved();
  };
  save_run(run, t.trainer, t.model, false);  // the only ones, so the best
  const auto first = test::weights_of(t.model);
  CHECK(test::same_bits(saved_model(), first));
  t.run(1);
  save_run(run, t.trainer, t.model, false);
  CHECK(test::same_bits(saved_model(), first));
  CHECK((saved_state() == t.saved()));
  t.run(1);
  save_run(run, t.trainer, t.model, true);
  CHECK(test::same_bits(saved_model(), test::weights_of(t.model)));
  CHECK((saved_state() == t.saved()));
}

TEST_CASE("a run's model with a weight that is not finite tells its name", "[train][run]") {
  const TemporaryFolder folder;
  const Run run = Run::create(folder.path(), small(), letters());
  test::Training<float> t(small().model, small().train, 1);
  t.model.ln_f.bias.value.data()[3] = std::numeric_limits<float>::quiet_NaN();
  save_model(run, t.model);
  std::vector<std::string> not_finite;
  load_model<float>(run, not_finite);
  CHECK(not_finite == std::vector<std::string>{"ln_f.bias"});
}

TEST_CASE("the hash of a text is FNV-1a", "[train][run]") {
  CHECK(text_hash("") == "cbf29ce484222325");
  CHECK(text_hash("a") == "af63dc4c8601ec8c");
  CHECK(text_hash("foobar") == "85944171f73967e8");
}
