#include "headwise/train/run.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "headwise/core/file.hpp"
#include "headwise/core/hash.hpp"
#include "headwise/core/parse.hpp"

namespace headwise {

using nlohmann::json;

namespace {

template <class T>
json to_json(const T& x) {
  if constexpr (Named<T>)
    return std::string(name_of(x));
  else
    return x;
}

/// What the first runs did not write: where it is absent, the default is what they did. Everything
/// else must be there.
bool added_later(std::string_view key) {
  static constexpr std::array<std::string_view, 5> kAdded = {"blas", "schedule", "freeze", "task",
                                                             "length"};
  return std::find(kAdded.begin(), kAdded.end(), key) != kAdded.end();
}

/// Reads j[key], which must be just what x is: no fraction for a whole number, no number for a
/// bool.
template <class T>
void read(const json& j, const char* key, T& x) {
  if (added_later(key) && !j.contains(key)) return;
  const json& value = j.at(key);
  const auto expect = [&](bool ok, const char* what) {
    require<DataError>(ok, "'{}': expected {}, got {}", key, what,
                       value.is_structured() ? value.type_name() : value.dump());
  };
  if constexpr (Named<T>) {
    expect(value.is_string(), "a name");
    const auto name = value.get<std::string>();
    const std::optional<T> known = parse_name<T>(name);
    require<DataError>(known.has_value(), "'{}' is none of {}", name,
                       fmt::join(names_of(T{}), ", "));
    x = *known;
    return;
  } else if constexpr (std::is_same_v<T, bool>) {
    expect(value.is_boolean(), "true or false");
  } else if constexpr (std::is_unsigned_v<T>) {
    expect(value.is_number_unsigned(), "a whole number from 0 up");
  } else if constexpr (std::is_integral_v<T>) {
    expect(value.is_number_integer(), "a whole number");
  } else if constexpr (std::is_floating_point_v<T>) {
    expect(value.is_number(), "a number");
  } else {
    expect(value.is_string(), "a text");
  }
  value.get_to(x);
}

template <class Options>
json to_json_object(Options options) {
  json j = json::object();
  options.visit(
      [&](const char* name, const auto& member, const char*) { j[name] = to_json(member); });
  return j;
}

template <class Options>
void from_json_object(const json& j, Options& options) {
  options.visit([&](const char* name, auto& member, const char*) { read(j, name, member); });
}

/// A JSON file of a run, handed to `use`; whatever it lacks becomes a DataError that names it.
template <class F>
void read_json(const std::string& path, F use) {
  const std::string text = read_file(path);
  try {
    use(json::parse(text));
  } catch (const json::exception& e) {  // "[json.exception....] what is wrong"
    const std::string_view what = e.what();
    throw DataError(fmt::format("{}: {}", path, what.substr(what.find("] ") + 2)));
  } catch (const Error& e) {
    throw DataError(fmt::format("{}: {}", path, e.what()));
  }
}

RunConfig read_config(const std::string& path) {
  RunConfig c;
  read_json(path, [&](const json& j) {
    from_json_object(j.at("model"), c.model);
    from_json_object(j.at("train"), c.train);
    read(j.at("model"), "vocab", c.model.vocab);
    read(j, "dtype", c.dtype);
    read(j, "seed", c.seed);
    read(j, "data", c.data);
    read(j, "data_hash", c.data_hash);
    read(j, "task", c.task);
    read(j, "length", c.length);
    read(j, "blas", c.blas);
    c.model.validate();
    c.train.validate();
  });
  return c;
}

}  // namespace

Run::Run(std::string folder, const RunConfig& config, Tokenizer tokenizer)
    : folder_(std::move(folder)), config_(config), tokenizer_(std::move(tokenizer)) {}

Run Run::create(const std::string& folder, const RunConfig& config, const Tokenizer& tokenizer) {
  require<UsageError>(!std::filesystem::exists(folder + "/last.safetensors"),
                      "--out: {} holds a run already; --resume it or choose another folder",
                      folder);
  Run run(folder, config, tokenizer);
  const std::string text = run.config_text();  // refused before there is a folder
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require<DataError>(!error, "{}: cannot be made a folder: {}", folder, error.message());
  json known = {{"kind", to_json(tokenizer.kind())}};
  if (tokenizer.kind() != TokenizerKind::byte) known["tokens"] = tokenizer.tokens();
  replace_file(folder + "/tokenizer.json", known.dump(1) + "\n");
  replace_file(folder + "/config.json", text);
  return run;
}

Run Run::open(const std::string& folder) {
  require<DataError>(std::filesystem::is_directory(folder), "{}: no such run folder", folder);
  std::optional<Tokenizer> tokenizer;
  read_json(folder + "/tokenizer.json", [&](const json& j) {
    TokenizerKind kind{};
    read(j, "kind", kind);
    std::vector<std::string> tokens;
    if (kind != TokenizerKind::byte || j.contains("tokens")) j.at("tokens").get_to(tokens);
    tokenizer = Tokenizer::from_tokens(kind, tokens);
  });
  Run run(folder, read_config(folder + "/config.json"), *tokenizer);
  const Index known = run.tokenizer_.vocab(), vocab = run.config_.model.vocab;
  require<DataError>(known == vocab, "{}: tokenizer.json has {} tokens, config.json says {}",
                     folder, known, vocab);
  return run;
}

std::string Run::config_text() const {
  json model = to_json_object(config_.model);
  model["vocab"] = config_.model.vocab;
  const json j = {{"model", model},
                  {"train", to_json_object(config_.train)},
                  {"dtype", to_json(config_.dtype)},
                  {"seed", config_.seed},
                  {"data", config_.data},
                  {"task", config_.task},
                  {"length", config_.length},
                  {"data_hash", config_.data_hash},
                  {"blas", config_.blas}};
  try {
    return j.dump(1) + "\n";
  } catch (const json::exception&) {
    throw UsageError("--data: the path is not UTF-8 and cannot be kept in config.json");
  }
}

void Run::change(const TrainOptions& options, const std::string& blas) {
  config_.train = options;
  config_.blas = blas;
  replace_file(folder_ + "/config.json", config_text());
}

void Run::log(const std::string& line) const {
  std::ofstream file(folder_ + "/log.jsonl", std::ios::app | std::ios::binary);
  file << line << '\n' << std::flush;
  require<DataError>(file.good(), "{}/log.jsonl: cannot be written", folder_);
}

void Run::forget_after(std::string_view event, Index step) const {
  const std::string path = folder_ + "/log.jsonl";
  if (!std::filesystem::exists(path)) return;
  std::string kept;
  std::istringstream file(read_file(path));
  for (std::string line; std::getline(file, line);) {
    const json j = json::parse(line, nullptr, false);
    const bool has_step = j.is_object() && j.contains("step") && j["step"].is_number_integer();
    if (!has_step) continue;
    const bool other = j.contains("event") && j["event"] != event;
    if (other || j["step"].get<Index>() <= step) kept += line + "\n";
  }
  replace_file(path, kept);
}

template <Real T>
void save_run(const Run& run, const Trainer<T>& trainer, Decoder<T>& model, bool best) {
  if (best || !std::filesystem::exists(run.model())) save_weights(model, run.model());
  trainer.save(run.last());
}

template <Real T>
Decoder<T> load_model(const Run& run, std::vector<std::string>& not_finite) {
  Rng rng(run.config().seed);
  Decoder<T> model(run.config().model, rng);
  not_finite = load_weights(model, run.model());
  return model;
}

#define HEADWISE_INSTANTIATE(T)                                             \
  template void save_run(const Run&, const Trainer<T>&, Decoder<T>&, bool); \
  template Decoder<T> load_model(const Run&, std::vector<std::string>&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise
