#include "train/run_config.hpp"

#include <algorithm>
#include <optional>

#include "core/json.hpp"
#include "headwise/core/hash.hpp"
#include "headwise/core/parse.hpp"
#include "headwise/core/printable.hpp"

namespace headwise {

using nlohmann::json;

namespace {

constexpr Index kFormat = 1;  // of config.json

template <class T, std::size_t N>
bool among(const std::array<T, N>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// What the first runs did not write: where it is absent, the default is what they did. Everything
/// else must be there.
bool added_later(std::string_view key) {
  static constexpr std::array<std::string_view, 5> kAdded = {"blas", "schedule", "freeze", "task",
                                                             "length"};
  return among(kAdded, key);
}

/// Options of training that a resumed run may change.
bool may_change(std::string_view key) {
  static constexpr std::array<std::string_view, 3> kMayChange = {"steps", "eval-every",
                                                                 "eval-batches"};
  return among(kMayChange, key);
}

template <class T>
json to_json(const T& x) {
  if constexpr (Named<T>)
    return std::string(name_of(x));
  else
    return x;
}

template <class Options>
json to_json_object(Options options) {
  json j = json::object();
  options.visit(
      [&](const char* name, const auto& member, const char*) { j[name] = to_json(member); });
  return j;
}

/// Reads the member of an object into x.
template <class T>
void read(const JsonView& object, const char* key, T& x) {
  if (added_later(key) && !object.has(key)) return;
  const JsonView member = object[key];
  if constexpr (Named<T>) {
    const auto name = member.as<std::string>();
    const std::optional<T> known = parse_name<T>(name);
    if (!known)
      member.fail(
          fmt::format("'{}' is none of {}", printable(name), fmt::join(names_of(T{}), ", ")));
    x = *known;
  } else {
    x = member.as<T>();
  }
}

/// Reads an object that has the options, and these keys as well, and nothing else.
template <class Options>
void read_options(const JsonView& object, Options& options, std::vector<std::string> keys = {}) {
  options.visit([&](const char* name, auto& member, const char*) {
    read(object, name, member);
    keys.emplace_back(name);
  });
  object.require_known(keys);
}

/// A JSON file of a run, handed to `use`.
template <class F>
auto read_json_file(const Directory& folder, const char* name, F use) {
  const std::string path = folder.path(name);
  const json parsed = parse_json(folder.read(name), path);
  return use(JsonView(parsed, path));
}

/// f(). What it finds wrong with values of a file is wrong with the file.
template <class F>
auto valid(const JsonView& file, F f) {
  try {
    return f();
  } catch (const Error& e) {
    file.fail(e.what());
  }
}

std::string hash_of(const Tokenizer& tokenizer) {
  std::string text(name_of(tokenizer.kind()));
  for (const std::string& token : tokenizer.tokens())
    text += fmt::format(" {}:{}", token.size(), token);
  return text_hash(text);
}

/// config.json, and the two hashes in it; "" in a file that has no format number.
struct ConfigFile {
  RunConfig config;
  std::string tokenizer, identity;
};

ConfigFile read_config(const Directory& folder) {
  return read_json_file(folder, Run::kConfig, [&](const JsonView& file) {
    ConfigFile found;
    RunConfig& c = found.config;
    c.format = 0;
    if (file.has("format") || file.has("identity")) read(file, "format", c.format);
    if (c.format < 0 || c.format > kFormat)
      file["format"].fail(
          fmt::format("{} is not from 1 to {}, which this version knows; a newer one wrote it",
                      c.format, kFormat));
    if (c.format > 0) {
      read(file, "tokenizer", found.tokenizer);
      read(file, "identity", found.identity);
    }
    read(file["model"], "vocab", c.model.vocab);
    read_options(file["model"], c.model, {"vocab"});
    read_options(file["train"], c.train);
    if (c.format > 0 || file.has("loop")) read_options(file["loop"], c.loop);
    read(file, "dtype", c.dtype);
    read(file, "seed", c.seed);
    read(file, "data", c.data);
    read(file, "data_hash", c.data_hash);
    read(file, "task", c.task);
    read(file, "length", c.length);
    read(file, "blas", c.blas);
    file.require_known({"format", "tokenizer", "identity", "model", "train", "loop", "dtype",
                        "seed", "data", "data_hash", "task", "length", "blas"});
    valid(file, [&] {
      c.model.validate();
      c.train.validate();
      c.loop.validate();
    });
    return found;
  });
}

Tokenizer read_tokenizer(const Directory& folder) {
  return read_json_file(folder, Run::kTokenizer, [&](const JsonView& file) {
    TokenizerKind kind{};
    read(file, "kind", kind);
    std::vector<std::string> tokens;
    if (kind != TokenizerKind::byte || file.has("tokens"))
      for (const JsonView& token : file["tokens"].elements())
        tokens.push_back(token.as<std::string>());
    file.require_known({"kind", "tokens"});
    return valid(file, [&] { return Tokenizer::from_tokens(kind, tokens); });
  });
}

RunConfig checked_config(const Directory& folder, const Tokenizer& tokenizer) {
  const ConfigFile file = read_config(folder);
  const Index vocab = file.config.model.vocab;
  require<DataError>(tokenizer.vocab() == vocab,
                     "{}: tokenizer.json has {} tokens, config.json says {}",
                     printable(folder.path()), tokenizer.vocab(), vocab);
  if (file.config.format == 0) return file.config;
  const auto check = [&](const char* name, const std::string& is, const std::string& was) {
    require<DataError>(
        is == was,
        "{}: is not what the run was started with (hash {}, was {}): it was changed, "
        "or is another run's",
        printable(folder.path(name)), is, printable(was));
  };
  check(Run::kTokenizer, hash_of(tokenizer), file.tokenizer);
  check(Run::kConfig, identity_of(file.config, tokenizer), file.identity);
  return file.config;
}

}  // namespace

std::string identity_of(const RunConfig& config, const Tokenizer& tokenizer) {
  std::string text;
  const auto add = [&]<class Options>(const Options& options) {
    const auto all = option_texts(options), defaults = option_texts(Options{});
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& [name, value] = all[i];
      if (!may_change(name) && !(added_later(name) && all[i] == defaults[i]))
        text += fmt::format("{}={}\n", name, value);
    }
  };
  add(config.model);
  add(config.train);
  // What a text or a task file holds is in data_hash, wherever the file is.
  const std::string task = config.task.empty() || config.data_hash.empty() ? config.task : "a file";
  text +=
      fmt::format("vocab={}\ndtype={}\nseed={}\ndata_hash={}\ntask={}\nlength={}\ntokenizer={}\n",
                  config.model.vocab, name_of(config.dtype), config.seed, config.data_hash, task,
                  config.length, hash_of(tokenizer));
  return text_hash(text);
}

std::string config_text(const RunConfig& config, const Tokenizer& tokenizer) {
  json model = to_json_object(config.model);
  model["vocab"] = config.model.vocab;
  json j = {{"model", model},
            {"train", to_json_object(config.train)},
            {"loop", to_json_object(config.loop)},
            {"dtype", to_json(config.dtype)},
            {"seed", config.seed},
            {"data", config.data},
            {"task", config.task},
            {"length", config.length},
            {"data_hash", config.data_hash},
            {"blas", config.blas}};
  if (config.format > 0)
    j.update({{"format", config.format},
              {"tokenizer", hash_of(tokenizer)},
              {"identity", identity_of(config, tokenizer)}});
  try {
    return j.dump(1) + "\n";
  } catch (const json::exception&) {
    throw UsageError("--data: the path is not UTF-8 and cannot be kept in config.json");
  }
}

std::string tokenizer_text(const Tokenizer& tokenizer) {
  json known = {{"kind", to_json(tokenizer.kind())}};
  if (tokenizer.kind() != TokenizerKind::byte) known["tokens"] = tokenizer.tokens();
  return known.dump(1) + "\n";
}

RunFiles::RunFiles(const Directory& folder) : tokenizer(read_tokenizer(folder)) {
  config = checked_config(folder, tokenizer);
}

bool is_run_file(const Directory& folder, std::string_view name) try {
  if (folder.file(std::string(name)).size() == 0) return true;
  if (name == Run::kConfig) return (void)read_config(folder), true;
  if (name == Run::kTokenizer) return (void)read_tokenizer(folder), true;
  if (name == Run::kLog) {
    const std::string text = folder.read(Run::kLog);
    const json line = parse_json(text.substr(0, text.find('\n')), Run::kLog);
    return line.is_object() && line.contains("event");
  }
  const TensorFile file(folder.file(std::string(name)));
  return file.metadata().contains(kIdentityKey) || file.has("tok.weight") ||
         file.has("weight/tok.weight");
} catch (const Error&) {
  return false;
}

}  // namespace headwise
