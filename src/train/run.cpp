#include "headwise/train/run.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "headwise/core/file.hpp"
#include "headwise/core/parse.hpp"

namespace headwise {

using nlohmann::json;

template <Named E>
void to_json(json& j, E e) {
  j = std::string(name_of(e));
}
template <Named E>
void from_json(const json& j, E& e) {
  const auto name = j.get<std::string>();
  const std::optional<E> value = parse_name<E>(name);
  require<DataError>(value.has_value(), "'{}' is none of {}", name, fmt::join(names_of(E{}), ", "));
  e = *value;
}

namespace {

template <class Options>
json to_json_object(Options options) {
  json j = json::object();
  options.visit([&](const char* name, const auto& member, const char*) { j[name] = member; });
  return j;
}

template <class Options>
void from_json_object(const json& j, Options& options) {
  options.visit([&](const char* name, auto& member, const char*) { j.at(name).get_to(member); });
}

/// A JSON file of a run, handed to `read`; whatever it lacks becomes a DataError that names it.
template <class F>
void read_json(const std::string& path, F read) {
  const std::string text = read_file(path);
  try {
    read(json::parse(text));
  } catch (const json::exception& e) {
    throw DataError(fmt::format("{}: {}", path, e.what()));
  } catch (const DataError& e) {
    throw DataError(fmt::format("{}: {}", path, e.what()));
  }
}

RunConfig read_config(const std::string& path) {
  RunConfig c;
  read_json(path, [&](const json& j) {
    from_json_object(j.at("model"), c.model);
    from_json_object(j.at("train"), c.train);
    j.at("model").at("vocab").get_to(c.model.vocab);
    j.at("dtype").get_to(c.dtype);
    j.at("seed").get_to(c.seed);
    j.at("data").get_to(c.data);
    j.at("data_hash").get_to(c.data_hash);
  });
  return c;
}

}  // namespace

std::string text_hash(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return fmt::format("{:016x}", hash);
}

Run::Run(std::string folder, const RunConfig& config, CharTokenizer tokenizer)
    : folder_(std::move(folder)), config_(config), tokenizer_(std::move(tokenizer)) {}

Run Run::create(const std::string& folder, const RunConfig& config,
                const CharTokenizer& tokenizer) {
  require<UsageError>(!std::filesystem::exists(folder + "/config.json"),
                      "--out: {} holds a run already; --resume it or choose another folder",
                      folder);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require<DataError>(!error, "{}: cannot be made a folder: {}", folder, error.message());
  const Run run(folder, config, tokenizer);
  replace_file(folder + "/tokenizer.json",
               json{{"kind", "char"}, {"tokens", tokenizer.tokens()}}.dump(1) + "\n");
  run.write_config();
  return run;
}

Run Run::open(const std::string& folder) {
  require<DataError>(std::filesystem::is_directory(folder), "{}: no such run folder", folder);
  std::vector<std::string> tokens;
  read_json(folder + "/tokenizer.json", [&](const json& j) { j.at("tokens").get_to(tokens); });
  Run run(folder, read_config(folder + "/config.json"), CharTokenizer::from_tokens(tokens));
  const Index known = run.tokenizer_.vocab(), vocab = run.config_.model.vocab;
  require<DataError>(known == vocab, "{}: tokenizer.json has {} tokens, config.json says {}",
                     folder, known, vocab);
  return run;
}

void Run::write_config() const {
  json model = to_json_object(config_.model);
  model["vocab"] = config_.model.vocab;
  const json j = {{"model", model},         {"train", to_json_object(config_.train)},
                  {"dtype", config_.dtype}, {"seed", config_.seed},
                  {"data", config_.data},   {"data_hash", config_.data_hash}};
  replace_file(folder_ + "/config.json", j.dump(1) + "\n");
}

void Run::set_train(const TrainOptions& options) {
  config_.train = options;
  write_config();
}

void Run::log(const std::string& line) const {
  std::ofstream file(folder_ + "/log.jsonl", std::ios::app | std::ios::binary);
  file << line << '\n' << std::flush;
  require<DataError>(file.good(), "{}/log.jsonl: cannot be written", folder_);
}

void Run::forget_after(Index step) const {
  const std::string path = folder_ + "/log.jsonl";
  if (!std::filesystem::exists(path)) return;
  std::string kept;
  std::ifstream file(path, std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    const json j = json::parse(line, nullptr, false);
    if (j.is_object() && j.value("step", step + 1) <= step) kept += line + "\n";
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
